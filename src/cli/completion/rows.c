/* SPDX-License-Identifier: MIT */
/*
 * Prints the table of commands, options and exit codes, and the keys of the
 * configuration file, in rows whose fields are separated by tabs. The build
 * runs it; make.py turns the rows into
 * completion scripts, and docs/man/command.py into manual pages.
 */
#include <stdio.h>
#include <string.h>

#include "cli/help.h"
#include "cli/table.h"

static int is_repeated(const struct option *option)
{
    return option->type == VALUE_URL || option->type == VALUE_ALSO;
}

/* LETTER, NAME, VALUE, choices of the value, "*" if it can be repeated, help.
 * The first two have their dashes. */
static void print_option(const struct option *option)
{
    fputs("option\t", stdout);
    if (option->letter != '\0')
        printf("-%c", option->letter);
    printf("\t--%s\t%s\t", option->name, option->value ? option->value : "");
    for (const struct choice *c = option->choices; c && c->name; c++)
        printf("%s%s", c == option->choices ? "" : " ", c->name);
    printf("\t%s\t%s\n", is_repeated(option) ? "*" : "", option->help);
}

/* Each form of the synopsis, and the exit codes. */
static void print_usage(unsigned command)
{
    const char *form = command_table[command].synopsis;

    for (size_t length; *form; form += length + 1) {
        length = strcspn(form, "\n");
        printf("synopsis\t%.*s\n", (int)length, form);
    }
    for (size_t i = 0; i < exit_count; i++) {
        if (!(exit_table[i].commands & 1U << command))
            continue;
        printf("exit\t%s\t", exit_table[i].code);
        /* A line break in --help is a blank here. */
        for (const char *c = exit_table[i].meaning; *c; c++)
            putchar(*c == '\n' ? ' ' : *c);
        putchar('\n');
    }
}

int main(void)
{
    const struct option *option;

    for (unsigned i = 0; i < COMMANDS; i++) {
        const struct command_info *info = &command_table[i];
        printf("command\t%s\t%s\t%s\t%s\n", info->name, info->operands,
            info->runs ? "--" : "", info->purpose);
        for (size_t at = 0; (option = option_at((enum command)i, &at));)
            print_option(option);
        print_usage(i);
    }
    for (const struct choice *c = once_actions; c->name; c++)
        printf("action\tonce\t%s\n", c->name);
    for (size_t i = 0; (option = option_any(&i));) {
        if (option->in_file)
            printf(
                "key\t%s\t%s\t%s\n", option->name, option->value, option->help);
    }
    puts("topic\t" HELP_CONNECTION_WORD "\t" HELP_CONNECTION_SUMMARY);
    return ferror(stdout) || fflush(stdout) != 0;
}

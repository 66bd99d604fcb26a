/* SPDX-License-Identifier: MIT */
/*
 * Prints the table of commands and options, one on a line, its fields separated
 * by tabs. The build runs it; make.py turns the lines into completion scripts.
 */
#include <stdio.h>

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

int main(void)
{
    const struct option *option;

    for (unsigned i = 0; i < COMMANDS; i++) {
        const struct command_info *info = &command_table[i];
        printf("command\t%s\t%s\t%s\t%s\n", info->name, info->operands,
            info->runs ? "--" : "", info->purpose);
        for (size_t at = 0; (option = option_at((enum command)i, &at));)
            print_option(option);
    }
    puts("topic\t" HELP_CONNECTION_WORD "\t" HELP_CONNECTION_SUMMARY);
    return ferror(stdout) || fflush(stdout) != 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * The script for bash: the table as two functions that set variables, for those
 * of completion/functions.bash.
 */
#include "cli/completion_shells.h"

#include <string.h>

#include "cli/completion_words.h"
#include "cli/help.h"

static void print_offers(FILE *out, const struct offer *offer)
{
    for (; offer->text; offer++)
        fprintf(out, "%s ", offer->text);
}

static void print_command_names(FILE *out)
{
    for (unsigned i = 0; i < COMMANDS; i++)
        fprintf(out, "%s ", command_table[i].name);
}

/* The case of an option that takes a value: "    --wait | -w) value='...' ;;".
 */
static void print_value(FILE *out, const struct option *option)
{
    fprintf(out, "    --%s", option->name);
    if (option->letter != '\0')
        fprintf(out, " | -%c", option->letter);
    fputs(") ", out);
    switch (completion_value(option)) {
    case COMPLETE_CHOICES:
        fputs("value='", out);
        completion_print_choices(out, option);
        fputs("' ", out);
        break;
    case COMPLETE_FILES:
        fputs("value=@file ", out);
        break;
    case COMPLETE_FOLDERS:
        fputs("value=@folder ", out);
        break;
    case COMPLETE_NAMES:
        fputs("value=@name ", out);
        break;
    case COMPLETE_NOTHING:
        break;
    }
    fputs(";;\n", out);
}

/* Does a command before this one have an option of that name? */
static bool is_printed(const struct option *option, unsigned command)
{
    while (command-- > 0) {
        if (option_find(command, '\0', option->name, strlen(option->name)))
            return true;
    }
    return false;
}

/* The values of all options. An option has the same values in all commands, so
 * they are printed for the first command that has it. */
static void print_values(FILE *out)
{
    const struct option *option;

    fputs("\n_nxlock_value() { # OPTION: fails if it takes no value\n"
          "    value=''\n"
          "    case $1 in\n",
        out);
    for (unsigned command = 0; command < COMMANDS; command++) {
        for (size_t i = 0; (option = option_at(command, &i));) {
            if (option->value && !is_printed(option, command))
                print_value(out, option);
        }
    }
    fputs("    *) return 1 ;;\n    esac\n}\n", out);
}

static void print_command(FILE *out, enum command command)
{
    const struct command_info *info = &command_table[command];
    const struct option *option;
    struct offer feature;

    fprintf(out, "    %s) options='", info->name);
    for (size_t i = 0; (option = option_at(command, &i));) {
        fprintf(out, "--%s ", option->name);
        if (option->letter != '\0')
            fprintf(out, "-%c ", option->letter);
    }
    fputs(info->runs ? "--' runs=1" : "'", out);
    if (info->names_held)
        fputs(" operand=@name", out);
    if (info->takes_features) {
        fputs(" operand='", out);
        for (size_t i = 0; (feature = completion_feature(i)).text; i++)
            fprintf(out, "%s ", feature.text);
        fputs("'", out);
    }
    fputs(" ;;\n", out);
}

void completion_bash(FILE *out)
{
    fputs(functions_bash, out);
    print_values(out);
    fputs("\n_nxlock_table() { # COMMAND\n    first='", out);
    print_command_names(out);
    print_offers(out, completion_first);
    fputs("' options='' operand='' runs=0\n    case $1 in\n", out);
    for (unsigned i = 0; i < COMMANDS; i++)
        print_command(out, (enum command)i);
    fputs("    help) operand='", out);
    print_command_names(out);
    fputs(HELP_CONNECTION_WORD "' ;;\n    completion) operand='", out);
    print_offers(out, completion_shells);
    fputs("' ;;\n    esac\n}\n", out);
}

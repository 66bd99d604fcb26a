/* SPDX-License-Identifier: MIT */
/*
 * The script for fish: the table as calls of fish's complete, with
 * descriptions.
 */
#include "cli/completion_shells.h"

#include "cli/completion_words.h"
#include "cli/help.h"

/* Ends the line: help is the description, or NULL. */
static void print_help(FILE *out, const char *help)
{
    if (help) {
        fputs(" -d '", out);
        completion_escape(out, help, "\\");
        fputc('\'', out);
    }
    fputc('\n', out);
}

/* A word that is offered if the condition holds. */
static void print_word(
    FILE *out, const char *condition, const char *word, const char *help)
{
    fprintf(out, "complete -c nxlock -n '%s' -a %s", condition, word);
    print_help(out, help);
}

static void print_commands(FILE *out, const char *condition)
{
    for (unsigned i = 0; i < COMMANDS; i++)
        print_word(
            out, condition, command_table[i].name, command_table[i].purpose);
}

static void print_first(FILE *out)
{
    print_commands(out, "__nxlock_first");
    for (const struct offer *o = completion_first; o->text; o++) {
        if (o->text[0] != '-') {
            print_word(out, "__nxlock_first", o->text, o->help);
            continue;
        }
        fprintf(out, "complete -c nxlock -n __nxlock_first -l %s", o->text + 2);
        print_help(out, o->help);
    }
}

static void print_value(
    FILE *out, const struct command_info *info, const struct option *option)
{
    switch (completion_value(option)) {
    case COMPLETE_CHOICES:
        fputs(" -x -a '", out);
        completion_print_choices(out, option);
        fputc('\'', out);
        break;
    case COMPLETE_FILES:
        fputs(" -r -F", out);
        break;
    case COMPLETE_FOLDERS:
        fputs(" -x -a '(__fish_complete_directories (commandline -ct))'", out);
        break;
    case COMPLETE_NAMES:
        fputs(info->names_held ? " -x -a '(__nxlock_names | string split0)'"
                               : " -x",
            out);
        break;
    case COMPLETE_NOTHING:
        fputs(" -x", out);
        break;
    }
}

static void print_command(FILE *out, enum command command)
{
    const struct command_info *info = &command_table[command];
    const struct option *option;
    struct offer feature;
    char condition[64];

    snprintf(condition, sizeof(condition), "__nxlock_in %s", info->name);
    for (size_t i = 0; (option = option_at(command, &i));) {
        fprintf(
            out, "complete -c nxlock -n '%s' -l %s", condition, option->name);
        if (option->letter != '\0')
            fprintf(out, " -s %c", option->letter);
        if (option->value)
            print_value(out, info, option);
        print_help(out, option->help);
    }
    if (info->names_held)
        print_word(
            out, condition, "'(__nxlock_names | string split0)'", "held lock");
    for (size_t i = 0;
         info->takes_features && (feature = completion_feature(i)).text; i++)
        print_word(out, condition, feature.text, feature.help);
}

/* Is the cursor behind the -- of a command that runs another one? */
static void print_runs(FILE *out)
{
    fputs("\nfunction __nxlock_runs\n"
          "    set -l words (commandline -opc)\n"
          "    contains -- \"$words[2]\"",
        out);
    for (unsigned i = 0; i < COMMANDS; i++) {
        if (command_table[i].runs)
            fprintf(out, " %s", command_table[i].name);
    }
    fputs("\n"
          "    and contains -- -- $words\n"
          "end\n"
          "\n"
          "complete -c nxlock -f\n"
          "complete -c nxlock -n __nxlock_runs -a '(__nxlock_command)'\n",
        out);
}

void completion_fish(FILE *out)
{
    fputs(functions_fish, out);
    print_runs(out);
    print_first(out);
    for (unsigned i = 0; i < COMMANDS; i++)
        print_command(out, (enum command)i);
    print_commands(out, "__nxlock_in help");
    print_word(
        out, "__nxlock_in help", HELP_CONNECTION_WORD, HELP_CONNECTION_SUMMARY);
    for (const struct offer *o = completion_shells; o->text; o++)
        print_word(out, "__nxlock_in completion", o->text, o->help);
}

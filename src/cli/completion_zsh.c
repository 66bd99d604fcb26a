/* SPDX-License-Identifier: MIT */
/*
 * The script for zsh: the table as arguments of zsh's own _arguments and
 * _describe, with descriptions.
 */
#include "cli/completion_shells.h"

#include "cli/completion_words.h"
#include "cli/help.h"

/* Ends a description, and what follows it, in _arguments. */
#define SPECIAL "\\[]:"

/* An entry of an array for _describe: 'text:help'. */
static void print_entry(FILE *out, const char *text, const char *help)
{
    fprintf(out, "        '%s:", text);
    completion_escape(out, help, "\\");
    fputs("'\n", out);
}

static void print_commands(FILE *out)
{
    for (unsigned i = 0; i < COMMANDS; i++)
        print_entry(out, command_table[i].name, command_table[i].purpose);
}

static void print_first(FILE *out)
{
    fputs("\n_nxlock_first() {\n    local -a commands=(\n", out);
    print_commands(out);
    for (const struct offer *o = completion_first; o->text; o++) {
        if (o->text[0] != '-')
            print_entry(out, o->text, o->help);
    }
    fputs("    ) options=(\n", out);
    for (const struct offer *o = completion_first; o->text; o++) {
        if (o->text[0] == '-')
            print_entry(out, o->text, o->help);
    }
    fputs("    )\n"
          "    _describe -t commands command commands\n"
          "    _describe -o -t options option options\n"
          "}\n",
        out);
}

static void print_runs(FILE *out)
{
    fputs("\n_nxlock_runs() { # COMMAND: does it run another one?\n"
          "    case $1 in\n",
        out);
    for (unsigned i = 0; i < COMMANDS; i++) {
        if (command_table[i].runs)
            fprintf(out, "    %s) return 0 ;;\n", command_table[i].name);
    }
    fputs("    esac\n    return 1\n}\n", out);
}

/* ":DUR: ", what _arguments wants to know of a value. */
static void print_value(
    FILE *out, const struct command_info *info, const struct option *option)
{
    fprintf(out, ":%s:", option->value);
    switch (completion_value(option)) {
    case COMPLETE_CHOICES:
        fputc('(', out);
        completion_print_choices(out, option);
        fputc(')', out);
        break;
    case COMPLETE_FILES:
        fputs("_files", out);
        break;
    case COMPLETE_FOLDERS:
        fputs("_files -/", out);
        break;
    case COMPLETE_NAMES:
        fputs(info->names_held ? "_nxlock_names" : " ", out);
        break;
    case COMPLETE_NOTHING:
        fputc(' ', out);
        break;
    }
}

/* '(-w --wait)'{-w+,--wait=}'[help]:DUR: ', an argument of _arguments. */
static void print_option(
    FILE *out, const struct command_info *info, const struct option *option)
{
    const char *value = option->value ? "=" : "";
    const char *letter_value = option->value ? "+" : "";

    fputs(" \\\n            ", out);
    if (option->type == VALUE_URL) /* as often as one likes */
        fputs("\\*", out);
    else if (option->letter)
        fprintf(out, "'(-%c --%s)'", option->letter, option->name);
    if (option->letter)
        fprintf(out, "{-%c%s,--%s%s}'[", option->letter, letter_value,
            option->name, value);
    else
        fprintf(out, "'--%s%s[", option->name, value);
    completion_escape(out, option->help, SPECIAL);
    fputc(']', out);
    if (option->value)
        print_value(out, info, option);
    fputc('\'', out);
}

static void print_operands(FILE *out, const struct command_info *info)
{
    struct offer feature;

    if (info->takes_no_word)
        return;
    if (info->takes_features) {
        fprintf(out, " \\\n            '*:%s:((", info->operands);
        for (size_t i = 0; (feature = completion_feature(i)).text; i++) {
            fprintf(out, " %s\\:\"", feature.text);
            completion_escape(out, feature.help, "\\:\"$`");
            fputc('"', out);
        }
        fputs("))'", out);
    } else if (info->names_held) {
        fprintf(out, " \\\n            '1:%s:_nxlock_names'", info->operands);
    } else { /* words, of which nothing is known: the action does nothing */
        fprintf(out, " \\\n            '*:%s: :'", info->operands);
    }
}

static void print_command(FILE *out, enum command command)
{
    const struct command_info *info = &command_table[command];
    const struct option *option;

    fprintf(out, "    %s)\n        _arguments -s -S", info->name);
    for (size_t i = 0; (option = option_at(command, &i));)
        print_option(out, info, option);
    print_operands(out, info);
    fputs("\n        ;;\n", out);
}

void completion_zsh(FILE *out)
{
    fputs("#compdef nxlock\n", out);
    fputs(functions_zsh, out);
    print_first(out);
    print_runs(out);
    fputs("\n_nxlock_words() { # COMMAND\n"
          "    local -a commands=(\n",
        out);
    print_commands(out);
    fputs("        '" HELP_CONNECTION_WORD ":" HELP_CONNECTION_SUMMARY "'\n"
          "    )\n"
          "    case $1 in\n",
        out);
    for (unsigned i = 0; i < COMMANDS; i++)
        print_command(out, (enum command)i);
    fputs("    help) _arguments '1: :{_describe -t commands command "
          "commands}' ;;\n"
          "    completion) _arguments '1:SHELL:(",
        out);
    for (const struct offer *o = completion_shells; o->text; o++)
        fprintf(out, "%s%s", o == completion_shells ? "" : " ", o->text);
    fputs(")' ;;\n    esac\n}\n\n"
          "# Found in fpath, or evaluated.\n"
          "if [[ $funcstack[1] == _nxlock ]]; then\n"
          "    _nxlock \"$@\"\n"
          "else\n"
          "    compdef _nxlock nxlock\n"
          "fi\n",
        out);
}

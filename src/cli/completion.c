/* SPDX-License-Identifier: MIT */
/*
 * Prints scripts with which a shell completes commands, options and values,
 * made from the table of options. The script for zsh is the one for bash, which
 * zsh can load.
 *
 * Invariant: completing a word contacts no server.
 */
#include "cli/completion.h"

#include <string.h>

#include "cli/acl_rules.h"
#include "cli/help.h"
#include "cli/table.h"

/* The script: this, then its words, the cases of the options' values, the
 * commands' options, and the tail. */
static const char head[] =
    "# Completion of nxlock; made by 'nxlock completion'.\n"
    "_nxlock() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
    "    local i command=${COMP_WORDS[1]} options=\n"
    "    COMPREPLY=()\n"
    "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
    "        COMPREPLY=($(compgen -W '";
static const char words[] =
    "help completion --help --version' -- \"$cur\"))\n"
    "        return\n"
    "    fi\n"
    "    # Behind -- comes another command.\n"
    "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
    "        [ \"${COMP_WORDS[i]}\" = -- ] || continue\n"
    "        [ \"$(type -t _command_offset)\" != function ] ||\n"
    "            _command_offset $((i + 1))\n"
    "        return\n"
    "    done\n"
    "    case $prev in\n";
static const char cases[] = "    esac\n"
                            "    case $command in\n";
static const char tail[] =
    "' -- \"$cur\")); return ;;\n"
    "    completion) COMPREPLY=($(compgen -W 'bash zsh' -- \"$cur\")); "
    "return ;;\n"
    "    esac\n"
    "    [ \"${cur:0:1}\" != - ] ||\n"
    "        COMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n"
    "}\n"
    "complete -F _nxlock nxlock\n";

/* Which of "    -w | --wait) action ;;" the value of an option needs. */
static void print_value(FILE *out, const struct option *option)
{
    fprintf(out, "    --%s", option->name);
    if (option->letter != '\0')
        fprintf(out, " | -%c", option->letter);
    fputs(") ", out);
    if (option->choices) {
        fputs("COMPREPLY=($(compgen -W '", out);
        for (const struct choice *c = option->choices; c->name; c++)
            fprintf(out, "%s%s", c == option->choices ? "" : " ", c->name);
        fputs("' -- \"$cur\")); ", out);
    } else if (strcmp(option->value, "FILE") == 0) {
        fputs("COMPREPLY=($(compgen -f -- \"$cur\")); ", out);
    } else if (strcmp(option->value, "DIR") == 0) {
        fputs("COMPREPLY=($(compgen -d -- \"$cur\")); ", out);
    }
    fputs("return ;;\n", out);
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

/* The values of all options: those of one name are the same everywhere, so
 * they are printed for the first command that has it. */
static void print_values(FILE *out)
{
    const struct option *option;

    for (unsigned command = 0; command < COMMANDS; command++) {
        for (size_t i = 0; (option = option_at(command, &i));) {
            if (option->value && !is_printed(option, command))
                print_value(out, option);
        }
    }
}

/* The words that acl takes, where no option is written. */
static void print_features(FILE *out)
{
    fputs("\n        [ \"${cur:0:1}\" = - ] ||\n"
          "            COMPREPLY=($(compgen -W '",
        out);
    for (const struct acl_command *c = acl_commands; c->name; c++)
        fprintf(out, "%s ", c->name);
    for (unsigned i = 0; i < ACL_FEATURE_COUNT; i++)
        fprintf(out, "%s ", acl_features[i].name);
    fputs("' -- \"$cur\"))", out);
}

static void print_option_words(FILE *out, enum command command)
{
    const struct option *option;

    fprintf(out, "    %s) options='", command_table[command].name);
    for (size_t i = 0; (option = option_at(command, &i));) {
        fprintf(out, "--%s ", option->name);
        if (option->letter != '\0')
            fprintf(out, "-%c ", option->letter);
    }
    fputs(command_table[command].runs ? "--'" : "'", out);
    if (command_table[command].takes_features)
        print_features(out);
    fputs(" ;;\n", out);
}

static void print_command_names(FILE *out)
{
    for (unsigned i = 0; i < COMMANDS; i++)
        fprintf(out, "%s ", command_table[i].name);
}

bool completion_print(const char *shell, FILE *out)
{
    if (strcmp(shell, "zsh") == 0)
        fputs("#compdef nxlock\nautoload -U +X bashcompinit && bashcompinit\n",
            out);
    else if (strcmp(shell, "bash") != 0)
        return false;
    fputs(head, out);
    print_command_names(out);
    fputs(words, out);
    print_values(out);
    fputs(cases, out);
    for (unsigned i = 0; i < COMMANDS; i++)
        print_option_words(out, (enum command)i);
    fputs("    help) COMPREPLY=($(compgen -W '", out);
    print_command_names(out);
    fputs(HELP_CONNECTION_WORD, out);
    fputs(tail, out);
    return true;
}

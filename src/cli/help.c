/* SPDX-License-Identifier: MIT */
/*
 * Prints --help.
 *
 * Invariant: every help text begins with examples that can be copied, and its
 * options come before its prose.
 */
#include "cli/help.h"

#include <string.h>

#include "cli/table.h"
#include "config/params.h"

static void print_options(enum command command, FILE *out)
{
    const struct option *option;
    char left[64];

    for (size_t i = 0; (option = option_at(command, &i));) {
        char letter[] = {'-', option->letter, ',', '\0'};
        int length = snprintf(left, sizeof(left), "%3s --%s %s",
            option->letter ? letter : "", option->name,
            option->value ? option->value : "");
        /* A long one has a line of its own. */
        fprintf(out, "  %-24s", left);
        fprintf(out, length > 24 ? "\n%28s%s\n" : "%2s%s\n", "", option->help);
    }
}

static bool takes_duration(enum command command)
{
    const struct option *option;

    for (size_t i = 0; (option = option_at(command, &i));)
        if (option->type == VALUE_DURATION)
            return true;
    return false;
}

/* Prints which commands use an exit code, if there are at most two. */
static void print_code_commands(unsigned commands, FILE *out)
{
    const char *before = "";

    commands &= (1U << COMMANDS) - 1;
    if (__builtin_popcount(commands) > 2)
        return;
    for (unsigned i = 0; i < COMMANDS; i++) {
        if (commands & 1U << i) {
            fprintf(out, "%s%s", before, command_table[i].name);
            before = ", ";
        }
    }
    fputs(": ", out);
}

/* Prints the exit codes of one command or, for COMMANDS, of all. */
static void print_exit_codes(enum command command, FILE *out)
{
    fputs("\nexit codes:\n", out);
    for (size_t i = 0; i < exit_count; i++) {
        const struct exit_info *row = &exit_table[i];
        if (command != COMMANDS && !(row->commands & 1U << command))
            continue;
        fprintf(out, "%6s  ", row->code);
        if (command == COMMANDS)
            print_code_commands(row->commands, out);
        fprintf(out, "%s\n", row->meaning);
    }
}

void help_overview(FILE *out)
{
    char left[32];

    fprintf(out, "%s\ncommands:\n", help_texts[HELP_OVERVIEW]);
    for (unsigned i = 0; i < COMMANDS; i++) {
        const struct command_info *info = &command_table[i];
        snprintf(left, sizeof(left), "%s %s", info->name, info->operands);
        fprintf(out, "  %-20s  %s\n", left, info->purpose);
    }
    fprintf(out,
        "\n'nxlock COMMAND --help' lists options and examples. The server is "
        "-u URL or\n--url-file FILE, else $NXLOCK_URL or $NXLOCK_URL_FILE, "
        "else the url of\n%s, else redis://127.0.0.1:6379; 'nxlock doctor' "
        "shows\nwhich. 'nxlock help " HELP_CONNECTION_WORD
        "' explains passwords, TLS and more.\n"
        "If a job did not run: 'nxlock status --help'.\n",
        system_config);
    print_exit_codes(COMMANDS, out);
    fputs("Otherwise run and once exit with the code of CMD. With 64 to 78 and "
          "125 to\n127, CMD was not started; but once also exits with 70 or 76 "
          "if it started CMD\nand the work is in doubt.\n",
        out);
}

/* A text is examples, an empty line, and prose. The prose of a command that
 * runs another one ends with its exit codes: the list would be too long. */
void help_command(enum command command, FILE *out)
{
    const char *text = help_texts[command];
    const char *prose = strstr(text, "\n\n") + 1;

    fprintf(out, "%s\n%.*s\noptions:\n", command_table[command].synopsis,
        (int)(prose - text), text);
    print_options(command, out);
    if (takes_duration(command))
        fputs("DUR is 500ms, 30s, 10m, 2h or 1d, for example; a bare number is "
              "seconds.\n",
            out);
    fputs(prose, out);
    if (!command_table[command].runs)
        print_exit_codes(command, out);
    fputs("\n'nxlock help " HELP_CONNECTION_WORD
          "' explains the server, the password, TLS and the URL.\n",
        out);
}

void help_connection(FILE *out)
{
    char left[64];

    fprintf(out, "%s\nparameters of the URL:\n", help_texts[HELP_CONNECTION]);
    for (size_t i = 0; i < url_param_count; i++) {
        snprintf(left, sizeof(left), "%s=%s", url_params[i].name,
            url_params[i].value);
        fprintf(out, "  %-22s", left);
        fprintf(out, strlen(left) > 22 ? "\n%24s  %s\n" : "%.0s  %s\n", "",
            url_params[i].help);
    }
}

/* SPDX-License-Identifier: MIT */
/*
 * Prints --help.
 *
 * Invariant: every help text begins with examples that can be copied.
 */
#include "cli/help.h"

#include "cli/table.h"

/* Prints the options of a command: the URL parameters, or the others. */
static void print_option_lines(enum command command, bool parameters, FILE *out)
{
    const struct option *option;
    char left[64];

    for (size_t i = 0; (option = option_at(command, &i));) {
        char letter[] = {'-', option->letter, ',', '\0'};
        if ((option->type == VALUE_PARAMETER) != parameters)
            continue;
        snprintf(left, sizeof(left), "%3s --%s %s",
            option->letter ? letter : "", option->name,
            option->value ? option->value : "");
        fprintf(out, "  %-24s  %s\n", left, option->help);
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

    fprintf(out, "%s\ncommands:\n", help_texts[COMMANDS]);
    for (unsigned i = 0; i < COMMANDS; i++) {
        const struct command_info *info = &command_table[i];
        snprintf(left, sizeof(left), "%s %s", info->name, info->operands);
        fprintf(out, "  %-20s  %s\n", left, info->purpose);
    }
    fputs("\n'nxlock COMMAND --help' lists options and examples; 'nxlock "
          "completion bash' or\nzsh prints a completion script. The server: "
          "-u URL or --url-file FILE, else\n$NXLOCK_URL_FILE, $NXLOCK_URL, "
          "$REDIS_URL or redis://127.0.0.1:6379.\n",
        out);
    print_exit_codes(COMMANDS, out);
    fputs("run exits as CMD does; with 64 to 78 and 125 to 127, CMD was not "
          "started.\n",
        out);
}

void help_command(enum command command, FILE *out)
{
    fprintf(out, "%s\n%s\noptions:\n", command_table[command].synopsis,
        help_texts[command]);
    print_option_lines(command, false, out);
    if (takes_duration(command))
        fputs("DUR is 500ms, 30s, 10m, 2h or 1d, for example; a bare number is "
              "seconds.\n",
            out);
    print_exit_codes(command, out);
    fputs("\nURL parameters as options:\n", out);
    print_option_lines(command, true, out);
}

/* SPDX-License-Identifier: MIT */
/*
 * The entry point: finds the command, parses its words, and runs it.
 *
 * Invariant: a word that is not a command starts nothing.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <nxlock.h>

#include "cli/commands.h"
#include "cli/servers/conf_file.h"
#include "cli/report/event.h"
#include "cli/report/event_log.h"
#include "cli/help.h"
#include "cli/report/outbox.h"
#include "cli/parse.h"
#include "cli/report/report.h"
#include "cli/servers/secret.h"
#include "cli/servers/source.h"
#include "cli/table.h"
#include "cli/run/timing.h"

static int (*const commands[COMMANDS])(const struct args *args) = {
#define COMMAND(number, name, ...) [CMD_##number] = subcommand_##name,
    COMMAND_LIST
#undef COMMAND
};

static int unknown_command(const char *word)
{
    static const char *const alone[] = {"version", "help"};
    struct nearest nearest, option;
    char shown[DISCREET_ROOM], names[128] = "";
    size_t dashes = strspn(word, "-");

    discreet(shown, word);
    nearest_start(&nearest, word);
    for (size_t i = 0; i < COMMANDS; i++) {
        size_t used = strlen(names);
        nearest_consider(&nearest, command_table[i].name);
        snprintf(names + used, sizeof(names) - used, "%s%s", used ? ", " : "",
            command_table[i].name);
    }
    /* With or without dashes, but not for short options such as -n. */
    nearest_start(&option, dashes == 1 ? "" : word + dashes);
    for (size_t i = 0; i < 2; i++)
        nearest_consider(&option, alone[i]);
    if (option.best && !nearest.best)
        say("there is no command '%s'; did you mean 'nxlock --%s'?", shown,
            option.best);
    else if (word[0] == '-')
        say("'%.*s' is not a command; options come after the command: nxlock "
            "COMMAND NAME [OPTION...]",
            is_password_letter(word) ? 2 : (int)strcspn(shown, "="), shown);
    else if (nearest.best)
        say("there is no command '%s'; did you mean '%s'?", shown,
            nearest.best);
    else
        say("there is no command '%s'; the commands are %s", shown, names);
    return EXIT_USAGE;
}

static bool asks_for_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static int word_too_many(const char *word, const char *form)
{
    char shown[DISCREET_ROOM];

    say("unexpected '%s'; write: %s", discreet(shown, word), form);
    return EXIT_USAGE;
}

/* "nxlock help [COMMAND]", "nxlock help connection", "nxlock --help". */
static int help(const char *word)
{
    enum command command = word ? command_by_name(word) : COMMANDS;

    if (!word)
        help_overview(stdout);
    else if (command != COMMANDS)
        help_command(command, stdout);
    else if (strcmp(word, HELP_CONNECTION_WORD) == 0)
        help_connection(stdout);
    else
        return unknown_command(word);
    return report_output();
}

static int run_command(enum command command, char **words)
{
    struct args args;
    int code = args_parse(&args, command, words);
    if (code == 0 && args.help)
        code = help(command_table[command].name);
    else if (code == 0 && (code = source_settle(&args)) == 0 &&
             (!command_table[command].leases ||
                 (code = timing_limit(&args)) == 0)) {
        event_begin(&args);
        code = event_log_open(&args);
        if (code == 0)
            code = commands[command](&args);
        event_end(code);
    }
    /* A 77 may come from CMD. */
    if (code == EXIT_DENIED && !args.child && source_is_stripped(&args))
        source_explain();
    outbox_end(OUTBOX_PATIENCE); /* what is said then may quote args */
    conf_free(args.conf);
    args_free(&args);
    return code;
}

/* Opens descriptors 0 to 2 if they are closed; otherwise a socket could get one
 * of these numbers, and messages would be written into it. Read-only, so that
 * printing fails as before, and close-on-exec, so that CMD finds them closed.
 */
static void open_standard_fds(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

static int act(int argc, char **argv)
{
    if (argc < 2) {
        help_overview(stderr);
        return EXIT_USAGE;
    }
    if (asks_for_help(argv[1]))
        return argc > 2 ? word_too_many(argv[2], "nxlock help [COMMAND]")
                        : help(NULL);
    if (strcmp(argv[1], "help") == 0)
        return argc > 3 ? word_too_many(argv[3], "nxlock help [COMMAND]")
                        : help(argv[2]);
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        if (argc > 2)
            return word_too_many(argv[2], "nxlock --version");
        printf("nxlock %s\n", nxl_version());
        return report_output();
    }
    enum command command = command_by_name(argv[1]);
    return command == COMMANDS ? unknown_command(argv[1])
                               : run_command(command, argv + 2);
}

int main(int argc, char **argv)
{
    open_standard_fds();
    int code = act(argc, argv);
    outbox_end(OUTBOX_PATIENCE);
    return code;
}

/* SPDX-License-Identifier: MIT */
/*
 * Keeps: a word that is not a command starts nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <nxlock.h>

#include "cli/commands.h"
#include "cli/help.h"
#include "cli/report.h"
#include "cli/secret.h"

static const struct {
    const char *name;
    enum command command;
    int (*work)(const struct args *args);
} commands[] = {
    {"run", CMD_RUN, command_run},
    {"acquire", CMD_ACQUIRE, command_acquire},
    {"renew", CMD_RENEW, command_renew},
    {"release", CMD_RELEASE, command_release},
    {"status", CMD_STATUS, command_status},
    {"wait", CMD_WAIT, command_wait},
    {"list", CMD_LIST, command_list},
    {"unlock", CMD_UNLOCK, command_unlock},
    {"doctor", CMD_DOCTOR, command_doctor},
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static size_t find(const char *word)
{
    size_t i;

    for (i = 0; i < COMMANDS; i++) {
        if (strcmp(word, commands[i].name) == 0)
            break;
    }
    return i;
}

static int unknown_command(const char *word)
{
    struct nearest nearest;
    char shown[DISCREET_ROOM];

    discreet(shown, word);
    if (word[0] == '-') {
        say("'%.*s' stands where the command belongs: options come after it; "
            "write: nxlock COMMAND NAME [OPTION...]",
            is_password_letter(word) ? 2 : (int)strcspn(shown, "="), shown);
        return EXIT_USAGE;
    }
    nearest_start(&nearest, word);
    for (size_t i = 0; i < COMMANDS; i++)
        nearest_consider(&nearest, commands[i].name);
    if (nearest.best != NULL)
        say("there is no command '%s'; did you mean '%s'?", shown,
            nearest.best);
    else
        say("there is no command '%s'; the commands are run, acquire, renew, "
            "release, status, wait, list, unlock and doctor", shown);
    return EXIT_USAGE;
}

static int flushed(void)
{
    if (fflush(stdout) == 0)
        return EXIT_DONE;
    say("cannot print: %s", strerror(errno));
    return EXIT_INTERNAL;
}

/* "nxlock help [COMMAND]", "nxlock --help". */
static int help(const char *word)
{
    if (word == NULL) {
        help_overview(stdout);
        return flushed();
    }
    size_t i = find(word);
    if (i == COMMANDS)
        return unknown_command(word);
    help_command(commands[i].command, stdout);
    return flushed();
}

static int obey(size_t i, char **words)
{
    struct args args;
    int code = args_parse(&args, commands[i].command, words);

    if (code == 0 && args.help)
        code = help(commands[i].name);
    else if (code == 0)
        code = commands[i].work(&args);
    args_free(&args);
    return code;
}

/* Descriptors 0 to 2 that were closed must not become a socket of ours, into
 * which a message would then go. Not for writing, so that printing fails as it
 * would have; and CMD gets them closed as they were. */
static void fill_standard(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

int main(int argc, char **argv)
{
    fill_standard();
    if (argc < 2) {
        help_overview(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return help(NULL);
    if (strcmp(argv[1], "help") == 0)
        return help(argv[2]);
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        printf("nxlock %s\n", nxl_version());
        return flushed();
    }
    size_t i = find(argv[1]);
    return i == COMMANDS ? unknown_command(argv[1]) : obey(i, argv + 2);
}

/* SPDX-License-Identifier: MIT */
/*
 * Prints the names of held locks for a shell that completes a word.
 *
 * Invariant: it ends soon, whatever a server, a name server or a file does. It
 * prints all names or none: with only some of them, a shell would insert a
 * beginning that not all names have. No name has a byte that controls a
 * terminal.
 */
#include "cli/completion_names.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "cli/connect.h"
#include "cli/parse.h"
#include "cli/report.h"
#include "cli/scan.h"
#include "cli/settings_file.h"
#include "cli/source.h"
#include "cli/table.h"
#include "cli/utf8.h"

/* A shell waits for 200 ms; the rest is for starting this process. */
#define TIME_MS 150
#define TIME_WORDS "150 ms"

#define NAMES_MOST 500
#define NAME_MOST 255 /* bytes of a name that is offered */

/* SIGALRM: ends the process; nothing has been printed yet. */
static void give_up(int signo)
{
    static const char words[] =
        "nxlock: the names were not known within " TIME_WORDS
        "; 'nxlock list' waits longer\n";

    (void)signo;
    if (write(STDERR_FILENO, words, sizeof(words) - 1) < 0)
        _exit(EXIT_INTERNAL);
    _exit(EXIT_UNAVAILABLE);
}

static void set_alarm(int ms)
{
    struct itimerval timer = {.it_value.tv_usec = ms * 1000};
    struct sigaction action = {.sa_handler = give_up};
    sigset_t alarm;

    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    sigaction(SIGALRM, &action, NULL);
    sigprocmask(SIG_UNBLOCK, &alarm, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
}

/* The pattern for names with this beginning; the caller frees it. NULL: no
 * memory. */
static char *glob_beginning(const char *beginning)
{
    char *glob = malloc(2 * strlen(beginning) + sizeof("*"));
    char *at = glob;

    if (!glob)
        return NULL;
    for (; *beginning != '\0'; beginning++) {
        if (strchr("*?[\\", *beginning))
            *at++ = '\\';
        *at++ = *beginning;
    }
    memcpy(at, "*", sizeof("*"));
    return glob;
}

/* Can a shell insert and show it? Text in UTF-8 without control characters,
 * except for newlines, which all three shells quote. A name that begins with
 * '-' would be taken for an option, so it is offered only if the user has
 * written the '-'. */
static bool is_offered(const struct lock_entry *entry, const char *beginning)
{
    char text[NAME_MOST + 1];

    if (entry->name_length > NAME_MOST || entry->name_length == 0 ||
        (entry->name[0] == '-' && beginning[0] != '-') ||
        !utf8_is_valid(entry->name, entry->name_length))
        return false;
    for (size_t i = 0; i <= entry->name_length; i++)
        text[i] = entry->name[i] == '\n' ? ' ' : entry->name[i];
    clean_text(text, entry->name_length);
    for (size_t i = 0; i < entry->name_length; i++) {
        if (text[i] != entry->name[i] && entry->name[i] != '\n')
            return false;
    }
    return true;
}

static int print_names(const struct lock_list *locks, const char *beginning)
{
    const char *before = NULL;

    if (locks->count > NAMES_MOST) {
        say("more than %d locks are held; write more of the name", NAMES_MOST);
        return EXIT_UNAVAILABLE;
    }
    for (size_t i = 0; i < locks->count; i++) {
        const struct lock_entry *entry = locks->list[i];
        if (!is_offered(entry, beginning) ||
            (before && strcmp(before, entry->name) == 0))
            continue;
        fwrite(entry->name, 1, entry->name_length + 1, stdout);
        before = entry->name;
    }
    return report_output();
}

/* With several servers, one that hangs must leave time for the others: a
 * majority has every lock that is held. False: no memory. */
static bool share_time(struct args *args)
{
    struct url_list list;

    if (!connect_urls(args, &list))
        return false;
    if (list.count > 1)
        args->timeout_ms = TIME_MS / (int64_t)list.count;
    url_list_free(&list);
    return true;
}

static int find_names(struct lister *lister)
{
    lister->names_only = true;
    scan_servers(lister);
    return lister->scanned > lister->servers / 2 ? EXIT_DONE : lister->code;
}

static int print_found(struct args *args, const char *beginning)
{
    struct lister lister;
    char *glob = glob_beginning(beginning);

    if (!glob || !share_time(args)) {
        free(glob);
        say("out of memory");
        return EXIT_INTERNAL;
    }
    memset(&lister, 0, sizeof(lister));
    lister.glob = glob;
    int code = session_open_plain(&lister.session, args);
    if (code == 0)
        code = find_names(&lister);
    session_close(&lister.session);
    set_alarm(0); /* from here on nothing waits for a server */
    lock_list_sort(&lister.locks);
    if (code == 0)
        code = print_names(&lister.locks, beginning);
    lock_list_free(&lister.locks);
    free(glob);
    return code;
}

int completion_names(char **words)
{
    enum command command = words[0] ? command_by_name(words[0]) : COMMANDS;
    char **last = words;
    struct args args;

    if (command == COMMANDS || !command_table[command].names_held ||
        !words[1]) {
        say("write: nxlock completion names COMMAND [OPTION...] BEGINNING; "
            "COMMAND is status, wait or unlock");
        return EXIT_USAGE;
    }
    set_alarm(TIME_MS);
    while (last[1])
        last++;
    const char *beginning = *last;
    *last = NULL;
    int code = args_read(&args, command, words + 1);
    if (code == 0 && !args.help && !args.name &&
        (code = source_settle(&args)) == 0)
        code = print_found(&args, beginning);
    set_alarm(0);
    settings_files_free(args.settings);
    args_free(&args);
    return code;
}

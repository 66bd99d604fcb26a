/* SPDX-License-Identifier: MIT */
/*
 * The one table of commands, options and exit codes, and functions to look
 * something up in it. The examples and prose of --help are in NAME.txt, beside
 * NAME.c.
 *
 * Invariant: an option is written once, here; no other file knows its name,
 * its limits or the commands that take it.
 */
#include "cli/table.h"

#include <string.h>

#include <nxlock.h>

#include "config/params.h"

/* One row per line where it fits, so that rows can be compared. */
/* clang-format off */
const struct command_info command_table[COMMANDS] = {
#define COMMAND(number, word, ...) \
    [CMD_##number] = {.name = #word, __VA_ARGS__},
COMMAND_LIST
#undef COMMAND
};

#define ON(command) (1U << CMD_##command)
#define ON_ALL (~0U)
#define RUN ON(RUN)
#define RUNNING (ON(RUN) | ON(ONCE))
#define ACQUIRING (RUNNING | ON(ACQUIRE))
#define WITH_TOKEN (ON(RENEW) | ON(RELEASE))
#define SHARING (RUN | ON(ACQUIRE) | ON(WAIT))
#define NAMING (SHARING | WITH_TOKEN)
#define LOGGING (ACQUIRING | WITH_TOKEN | ON(WAIT) | ON(UNLOCK))

const struct exit_info exit_table[] = {
{"0", ON_ALL & ~ON(STATUS), "done"},
{"0", ON(STATUS), "held"},
{"1", ON(STATUS), "free"},
{"1", ON(UNLOCK), "already free, line empty, or changed since it was shown"},
{"1", ON(DOCTOR), "it works, with a warning"},
{"1", ON(ONCE), "show: no record; confirm, forget: nothing to change"},
{"64", ON_ALL, "the command line is wrong, or its times do not fit"},
{"65", ON(ONCE), "the record is about other work (--fingerprint)"},
{"69", ON_ALL, "server unreachable, request refused or timed out, or "
    "the key\n        holds something else"},
{"70", ON_ALL, "internal error, or the output cannot be written"},
{"75", RUN, "busy, or --every is not due (-E CODE replaces it)"},
{"75", ON(ACQUIRE) | ON(ONCE), "busy (-E CODE replaces it)"},
{"75", ON(WAIT), "still held when -w was over"},
{"75", ON(UNLOCK), "held under another token, or the answer was no"},
{"76", ON(ONCE), "in doubt: nxlock does not know whether it was done"},
{"77", ON_ALL, "wrong password, user or certificate, or no permission"},
{"78", ON_ALL, "the URL, the configuration file, or an option or file for TLS,"
    "\n        password or --log, is wrong"},
{"79", RUN, "the lock was lost before CMD ended"},
{"79", ON(ONCE), "CMD ran, but its outcome was not recorded, or the lock was"
    "\n        lost"},
{"79", WITH_TOKEN, "the lock is not held under this token"},
{"124", RUNNING, "CMD was stopped by --at-most"},
{"125", RUNNING, "cannot create a process for CMD"},
{"126", RUNNING, "CMD cannot be executed"},
{"127", RUNNING, "CMD was not found"},
{"128+N", ON_ALL, "signal N ended CMD or nxlock"},
};
const size_t exit_count = sizeof(exit_table) / sizeof(exit_table[0]);

static const struct choice lost_choices[] = {{"kill", LOST_KILLS},
    {"warn", LOST_WARNS}, {NULL, 0}};
static const struct choice log_choices[] = {{"syslog", LOG_TO_SYSLOG},
    {"stderr", LOG_TO_STDERR}, {"json", LOG_TO_JSON},
    {LOG_FILE "PATH", LOG_TO_FILE}, {"none", LOG_NOWHERE}, {NULL, 0}};
static const struct choice doubt_choices[] = {{"halt", NXL_ONCE_HALT},
    {"retry", NXL_ONCE_RETRY}, {NULL, 0}};

#define FLAG(letter, name, commands, into, text) \
    {letter, name, NULL, NULL, VALUE_NONE, commands, \
        offsetof(struct args, into), .help = text}
#define TEXT(letter, name, value, variable, kind, commands, into, text) \
    {letter, name, value, variable, VALUE_##kind, commands, \
        offsetof(struct args, into), .help = text}
#define WORD(name, commands, into, list, text) \
    {0, name, "WHAT", NULL, VALUE_CHOICE, commands, \
        offsetof(struct args, into), .choices = list, .help = text}
#define CODES(name, into, text) \
    {0, name, "CODES", NULL, VALUE_CODES, ON(ONCE), \
        offsetof(struct args, into), .help = text}
#define COUNT(name, value, commands, into, range, text) \
    {0, name, value, NULL, VALUE_NUMBER, commands, \
        offsetof(struct args, into), 0, range, NULL, text, NULL, false}
#define TIME(letter, name, commands, into, range, text) \
    {letter, name, "DUR", NULL, VALUE_DURATION, commands, \
        offsetof(struct args, into##_ms), offsetof(struct args, into), \
        range, NULL, text, NULL, false}
/* The same, and the configuration file may set it. */
#define TEXT_KEY(letter, name, value, variable, kind, into, text) \
    {letter, name, value, variable, VALUE_##kind, ON_ALL, \
        offsetof(struct args, into), .help = text, .in_file = true}
#define WORD_KEY(name, commands, into, list, text) \
    {0, name, "WHAT", NULL, VALUE_CHOICE, commands, \
        offsetof(struct args, into), offsetof(struct args, into##_word), \
        .choices = list, .help = text, .in_file = true}
#define TIME_KEY(letter, name, commands, into, range, text) \
    {letter, name, "DUR", NULL, VALUE_DURATION, commands, \
        offsetof(struct args, into##_ms), offsetof(struct args, into), \
        range, NULL, text, NULL, true}

/* A parameter of the URLs. */
#define PARAMETER(name, value, parameter, text, ...) \
    {0, name, value, #parameter, VALUE_PARAMETER, ON_ALL, \
        offsetof(struct args, parameters.parameter), .help = text, __VA_ARGS__}

/* A lease has at most 31 bits of milliseconds; what --every records is a lease
 * of nine tenths of it. */
#define LEASE 1, INT32_MAX, "such as 30s, at most 24d"
#define EVERY 40, INT64_C(266) * 24 * 3600 * 100, "from 40ms to 26.6d"
#define KEEP 1, INT64_C(365) * 24 * 3600 * 1000, "such as 3d, at most 365d"
#define SOME 1, 0, "such as 30s"
#define ANY 0, 0, NULL
#define PERMITS 1, INT32_MAX, "from 1 to 2147483647"

static const struct option options[] = {
FLAG('n', "no-wait", ACQUIRING, no_wait,
    "try once; do not wait for a busy lock"),
TIME_KEY('w', "wait", ACQUIRING | ON(WAIT), wait, ANY,
    "wait at most this long (default: no limit)"),
TIME_KEY(0, "ttl", ACQUIRING | ON(RENEW), ttl, LEASE,
    "lease: how long a dead holder blocks others (30s)"),
COUNT("permits", "N", SHARING, permits, PERMITS,
    "hold it with others: at most N permits in all"),
COUNT("weight", "K", SHARING, weight, PERMITS,
    "with --permits: how many this holder takes (1)"),
FLAG('s', "shared", SHARING, shared,
    "share it with other -s holders, as readers do"),
{'E', "busy-code", "CODE", NULL, VALUE_NUMBER, ACQUIRING,
    offsetof(struct args, busy_code), 0, 0, 255, "from 0 to 255", NULL,
    "exit code if the lock is busy (75)", NULL, false},
TEXT('c', "command", "STRING", NULL, TEXT, RUNNING, script,
    "run STRING with /bin/sh -c, instead of -- CMD..."),
TEXT_KEY('u', "url", "URL", "NXLOCK_URL", URL, urls,
    "the server; repeat it for several (Redlock)"),
TEXT_KEY(0, "url-file", "FILE", "NXLOCK_URL_FILE", TEXT, url_file,
    "read the URL from a file that others cannot read"),
TEXT(0, "name", "NAME", NULL, NAME, ON_ALL, name,
    "the same as NAME; for names that start with '-'"),
TEXT(0, "also", "NAME", NULL, ALSO, NAMING, also,
    "another NAME, along with the first; repeatable"),
FLAG('v', "verbose", ACQUIRING, verbose,
    "report waiting, acquiring, renewals and release"),
FLAG('v', "verbose", WITH_TOKEN, verbose, "report what was done"),
FLAG('v', "verbose", ON(STATUS), verbose,
    "show each server, its answer, and who waits in line"),
FLAG('v', "verbose", ON(WAIT), verbose,
    "report who holds the lock, and how long it took"),
WORD_KEY("log", LOGGING, log, log_choices,
    "log events: syslog, stderr, json, file:PATH (none)"),
FLAG(0, "json", ON(STATUS), json, "print a JSON object"),
FLAG(0, "json", ON(ONCE), json, "show: print a JSON object"),
FLAG(0, "json", ON(LIST) | ON(DOCTOR), json,
    "print a JSON object for each result"),
FLAG(0, "once", ON(LIST), records,
    "list all records of 'nxlock once', not only doubts"),
FLAG(0, "once", ON(DOCTOR), records,
    "check whether it suits the records of 'nxlock once'"),
TEXT(0, "token", "TOKEN", NULL, TOKEN, ON(UNLOCK), token,
    "remove only the lock held under TOKEN"),
FLAG(0, "force", ON(UNLOCK), force, "remove the lock of any holder"),
TEXT(0, "holder", "ID", NULL, ID, ON(UNLOCK), holder,
    "remove one of several holders: its 8 characters"),
FLAG(0, "all", ON(UNLOCK), every_holder,
    "remove all holders that there are now"),
FLAG(0, "line", ON(UNLOCK), line,
    "empty the line of those who wait; keep the lock"),
FLAG('y', "yes", ON(ONCE), yes, "confirm, forget: do not ask"),
FLAG('y', "yes", ON(UNLOCK), yes, "do not ask before the removal"),
TIME(0, "at-least", RUN, run.at_least, LEASE,
    "keep NAME locked this long, even after a failure"),
TIME(0, "at-most", RUNNING, run.at_most, SOME,
    "stop CMD after this time; exit code 124"),
TIME_KEY(0, "grace", RUNNING, run.grace, ANY,
    "time from TERM to KILL (--ttl / 6, at most 5s)"),
TIME(0, "every", RUN, run.every, EVERY,
    "skip if a run, failed or not, began < 0.9 DUR ago"),
WORD("on-lost", RUNNING, run.on_lost, lost_choices,
    "if the lock is lost: kill CMD, or only warn (kill)"),
FLAG(0, "leave-descendants", RUNNING, run.leave,
    "do not stop what CMD leaves behind"),
FLAG(0, "pass-url", RUNNING, run.pass_url,
    "keep the server's password in CMD's NXLOCK_URL"),
TEXT(0, "metrics", "DIR", NULL, TEXT, RUNNING, metrics,
    "write this run's result to DIR, for Prometheus"),
TIME(0, "keep", ON(ONCE), work.keep, KEEP,
    "how long to keep the record of finished work (30d)"),
TEXT(0, "fingerprint", "WORD", NULL, WORD, ON(ONCE), work.fingerprint,
    "what the work is about; 65 if the record differs"),
WORD("on-doubt", ON(ONCE), work.on_doubt, doubt_choices,
    "halt: exit with 76; retry: run CMD again (HARM)"),
TEXT(0, "check", "STRING", NULL, TEXT, ON(ONCE), work.check,
    "if in doubt: run STRING, which prints yes or no"),
CODES("done-on", work.done_on, "exit codes of CMD that mean done (0)"),
CODES("retry-on", work.retry_on,
    "exit codes that mean that NOTHING happened (none)"),
TIME_KEY(0, "keep-trying", ON(ONCE), work.keep_trying, ANY,
    "how long to try to record the outcome of CMD (60s)"),
FLAG('q', "quiet", ON(ONCE), work.quiet, "do not print the output again"),
PARAMETER("password-file", "FILE", password_file,
    "the password is its first line", .in_file = true),
PARAMETER("cacert", "FILE", cacert,
    "TLS: the CAs to trust (PEM), not the system's", .in_file = true),
PARAMETER("insecure", NULL, verify,
    "TLS: trust any certificate; HARM: see nxlock(1)", .implied = "none"),
PARAMETER("prefix", "TEXT", prefix,
    "text to put in front of every name (none)", .in_file = true),
FLAG('h', "help", ON_ALL, help, "show this help"),
};

/* clang-format on */
#define OPTIONS (sizeof(options) / sizeof(options[0]))
_Static_assert(OPTIONS <= 64, "option_bit() has 64 bits");

/* Of each group, a command line may have only one. */
static const char *const exclusive[][5] = {{"no-wait", "wait"},
    {"url", "url-file"}, {"token", "force", "holder", "all", "line"},
    {"also", "every"}, {"shared", "permits"}, {"shared", "weight"},
    {"check", "on-doubt"}};

const struct choice once_actions[] = {{"show", ONCE_SHOW},
    {"confirm", ONCE_CONFIRM}, {"forget", ONCE_FORGET}, {NULL, ONCE_RUN}};

enum once_action once_action(const char *word)
{
    const struct choice *action = once_actions;

    while (action->name && strcmp(action->name, word) != 0)
        action++;
    return (enum once_action)action->number;
}

enum command command_by_name(const char *word)
{
    unsigned i = 0;

    while (i < COMMANDS && strcmp(word, command_table[i].name) != 0)
        i++;
    return (enum command)i;
}

static bool is_among(const char *name, const char *const *names, size_t count)
{
    size_t i = 0;

    while (i < count && strcmp(name, names[i]) != 0)
        i++;
    return i < count;
}

#define IS_AMONG(name, names)                                                  \
    is_among(name, names, sizeof(names) / sizeof((names)[0]))

/* The next option of one of these commands. */
static const struct option *option_next(unsigned commands, size_t *i)
{
    while (*i < OPTIONS && !(options[*i].commands & commands))
        ++*i;
    return *i < OPTIONS ? &options[(*i)++] : NULL;
}

const struct option *option_at(enum command command, size_t *i)
{
    return option_next(1U << command, i);
}

const struct option *option_any(size_t *i)
{
    return option_next(ON_ALL, i);
}

uint64_t option_bit(const struct option *option)
{
    return UINT64_C(1) << (option - options);
}

bool options_exclude(const struct args *args, const struct option **one,
    const struct option **other)
{
    for (size_t i = 0; i < sizeof(exclusive) / sizeof(exclusive[0]); i++) {
        *one = NULL;
        for (size_t n = 0; n < 5 && exclusive[i][n]; n++) {
            const char *name = exclusive[i][n];
            *other = option_find(args->command, '\0', name, strlen(name));
            if (!*other || !(args->given & option_bit(*other)))
                continue;
            if (*one)
                return true;
            *one = *other;
        }
    }
    return false;
}

const char *option_parameter(
    const struct args *args, const struct option *option)
{
    return option->type == VALUE_PARAMETER
               ? *(const char *const *)((const char *)args + option->member)
               : NULL;
}

bool option_of_tls(const struct option *option)
{
    return option->type == VALUE_PARAMETER &&
           param_of_tls(param_find(slice_of(option->variable)));
}

bool option_of_server(const struct option *option)
{
    return option->type == VALUE_PARAMETER &&
           param_of_server(param_find(slice_of(option->variable)));
}

bool option_of_cmd(const struct option *option)
{
    static const char *const names[] = {"no-wait", "wait", "busy-code", "ttl",
        "at-most", "grace", "on-lost", "leave-descendants", "pass-url",
        "metrics", "keep", "on-doubt", "check", "done-on", "retry-on",
        "keep-trying", "quiet"};

    return IS_AMONG(option->name, names);
}

bool option_is_server(const struct option *option)
{
    return option->type == VALUE_URL ||
           option->member == offsetof(struct args, url_file);
}

bool option_names_file(const struct option *option)
{
    return option->value && (strcmp(option->value, "FILE") == 0 ||
                                strcmp(option->value, "DIR") == 0);
}

static bool same_name(const char *own, const char *name, size_t length)
{
    size_t i = 0;

    while (i < length && own[i] == (name[i] == '_' ? '-' : name[i]))
        i++;
    return i == length && own[i] == '\0';
}

const struct option *option_find(
    enum command command, char letter, const char *name, size_t length)
{
    const struct option *option;

    for (size_t i = 0; (option = option_at(command, &i));) {
        if (letter ? option->letter == letter
                   : same_name(option->name, name, length))
            break;
    }
    return option;
}

const struct option *option_named(const char *name)
{
    const struct option *option;

    for (size_t i = 0; (option = option_any(&i));) {
        if (same_name(option->name, name, strlen(name)))
            break;
    }
    return option;
}

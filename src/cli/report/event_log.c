/* SPDX-License-Identifier: MIT */
/*
 * The log: an entry for each event, as text or as a JSON object.
 *
 * Invariant: writing never blocks, and the run is not affected. An entry that
 * is not taken at once is kept until the end, and lost if the log does not take
 * it then either, or its disk is full. Only the first loss is reported, on
 * standard error.
 *
 * syslog(3) is not used: it blocks while the daemon does not read, and the
 * command would not be stopped in time.
 */
#include "cli/report/event_log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include <nxlock.h>

#include "cli/servers/conf.h"
#include "cli/report/event.h"
#include "cli/report/json.h"
#include "cli/report/outbox.h"
#include "cli/report/report.h"

#define SYSLOG_SOCKET "/dev/log"

/* A pipe takes so many bytes at once or, with O_NONBLOCK, none. */
#define ENTRY_ROOM PIPE_BUF
/* A datagram is never cut: the sentence is its longest part. */
#define DATAGRAM_ROOM 8192
#define TIME_ROOM 40
#define WHY_ROOM 512

static struct {
    const struct args *args;
    struct outlet outlet;
    bool warned;
    struct sockaddr_un to; /* syslog */
} logger = {.outlet.fd = -1};

/* ------------------------------------------------------------------- facts */

#define ON(kind) (1U << EVENT_##kind)

/* The numbers of an event. 0 means "not known", and is not written, unless the
 * event is one of these kinds. */
static const struct {
    const char *json;
    size_t member;
    unsigned kinds; /* bits of ON(): here 0 is a value like any other */
} numbers[] = {
    {"waited_ms", offsetof(struct event, waited_ms),
        ON(ACQUIRED) | ON(FREE) | ON(SKIPPED)},
    {"held_ms", offsetof(struct event, held_ms), 0},
    {"left_ms", offsetof(struct event, left_ms),
        ON(ACQUIRED) | ON(RENEWED) | ON(NOT_RENEWED) | ON(RENEWED_AGAIN) |
            ON(LEFT_HELD)},
    {"ran_ms", offsetof(struct event, ran_ms), ON(COMMAND_ENDED)},
    {"pause_ms", offsetof(struct event, pause_ms), ON(FAILOVER)},
    {"fence", offsetof(struct event, fence), 0},
    {"command_pid", offsetof(struct event, pid), 0},
    {"code", offsetof(struct event, code), ON(COMMAND_ENDED) | ON(ENDED)},
};
#define NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

/* False: the event does not have it. */
static bool number_of(const struct event *event, size_t i, int64_t *number)
{
    memcpy(number, (const char *)event + numbers[i].member, sizeof(*number));
    return *number > 0 ||
           (*number == 0 && (numbers[i].kinds & 1U << event->kind));
}

/* How much of an event is written: less if it does not fit into one write. A
 * name that is cut says how long it is. */
enum extent { WHOLE, NOT_ALL_NAMES, ONLY_NAME, NAME_CUT, EXTENTS };

/* ------------------------------------------------------------------ writing */

static void warn_of_loss(int why)
{
    bool warned = logger.warned;

    logger.warned = true;
    if (warned)
        return;
    if (logger.args->log == LOG_TO_FILE)
        say("cannot log to '%s': %s; the run continues",
            logger.args->log_word + strlen(LOG_FILE), strerror(why));
    else
        say("cannot log to syslog at %s: %s; the run continues; without such a "
            "daemon, use --log stderr",
            logger.to.sun_path,
            why == EAGAIN ? "it does not read" : strerror(why));
    conf_mention(logger.args, VALUE_CHOICE);
}

static void write_entry(const char *entry, size_t length)
{
    outbox_write(&logger.outlet, entry, length);
}

/* The time as in RFC 3339, to the millisecond. */
static const char *utc_words(char *out, const struct timespec *time)
{
    struct tm tm;
    size_t length = 0;

    if (gmtime_r(&time->tv_sec, &tm))
        length = strftime(out, TIME_ROOM, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(
        out + length, TIME_ROOM - length, ".%03ldZ", time->tv_nsec / 1000000);
    return out;
}

/* Several processes share a file, and syslog, so each entry has its number. */
static void write_text(const struct event *event)
{
    char entry[DATAGRAM_ROOM], when[TIME_ROOM] = "";
    struct tm tm;
    int length;

    if (logger.args->log != LOG_TO_SYSLOG)
        utc_words(when, &event->time);
    else if (localtime_r(&event->time.tv_sec, &tm))
        strftime(when, sizeof(when), "%b %e %H:%M:%S", &tm);
    if (logger.args->log == LOG_TO_SYSLOG)
        length = snprintf(entry, sizeof(entry), "<%d>%s nxlock[%ld]: %s",
            LOG_USER | event_priority(event), when, (long)getpid(),
            event->sentence);
    else if (logger.args->log == LOG_TO_FILE)
        length = snprintf(entry, ENTRY_ROOM, "%s nxlock[%ld]: %s\n", when,
            (long)getpid(), event->sentence);
    else
        length = snprintf(
            entry, ENTRY_ROOM, "nxlock: %s %s\n", when, event->sentence);
    write_entry(entry, (size_t)length);
}

/* All names, each with its fencing token if the event has these. */
static void put_names(struct json *json, const struct event *event)
{
    struct json item;

    json_list_begin(json, "names");
    for (size_t i = 0; i <= event->also_count; i++) {
        json_item(json, &item, i == 0);
        json_string(&item, "name", i == 0 ? event->name : event->also[i - 1]);
        if (event->fences && event->fences[i] > 0)
            json_number(&item, "fence", (int64_t)event->fences[i]);
        json_item_end(&item);
    }
    json_list_end(json);
}

/* Those that are for people, or tell whom and why. */
static void put_words(struct json *json, const struct event *event)
{
    char why[WHY_ROOM];

    json_string(json, "label", event->label);
    json_string(json, "holder", event->holder);
    if (event->kind == EVENT_SKIPPED)
        json_string(json, "reason", event_result_word(event->result));
    if (event->kind == EVENT_ENDED)
        json_string(json, "result", event_result_word(event->result));
    if (event->why) {
        snprintf(why, sizeof(why), "%s", event->why);
        clean_text(why, strlen(why));
        json_string(json, "why", why);
    }
    json_string(json, "busy", event->busy);
}

static void put_json(
    struct json *json, const struct event *event, enum extent extent)
{
    char when[TIME_ROOM];
    int64_t number;

    json_number(json, "v", JSON_VERSION);
    json_string(json, "time", utc_words(when, &event->time));
    json_string(json, "event", event_kind_word(event->kind));
    json_number(json, "priority", event_priority(event));
    json_number(json, "pid", getpid());
    json_string(json, "name", extent == NAME_CUT ? event->shown : event->name);
    if (extent < ONLY_NAME)
        put_words(json, event);
    if (event->also_count > 0 && extent == WHOLE)
        put_names(json, event);
    for (size_t i = 0; i < NUMBERS; i++) {
        if (number_of(event, i, &number))
            json_number(json, numbers[i].json, number);
    }
    if (extent < ONLY_NAME)
        json_string(json, "message", event->sentence);
    json_end(json);
}

/* What is not UTF-8 becomes longer. */
static void write_json(const struct event *event)
{
    char entry[ENTRY_ROOM];

    for (enum extent extent = WHOLE; extent < EXTENTS; extent++) {
        struct json json;
        FILE *out = fmemopen(entry, sizeof(entry), "w");
        if (!out)
            return;
        json_begin(&json, out);
        put_json(&json, event, extent);
        bool fits = fflush(out) == 0;
        long length = ftell(out);
        fclose(out);
        if (fits && length > 0) {
            write_entry(entry, (size_t)length);
            return;
        }
    }
}

/* ------------------------------------------------------------------ opening */

static void write_event(const struct event *event)
{
    if (event->logged)
        return;
    if (logger.args->log == LOG_TO_JSON)
        write_json(event);
    else
        write_text(event);
}

/* A datagram is sent to a path and not over a connection, so that it arrives
 * after a restart of the daemon too. */
static void open_syslog(void)
{
    const char *other = getenv(LOG_VARIABLE);

    logger.to.sun_family = AF_UNIX;
    snprintf(logger.to.sun_path, sizeof(logger.to.sun_path), "%s",
        other && other[0] != '\0' ? other : SYSLOG_SOCKET);
    logger.outlet =
        (struct outlet){.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0),
            .to = &logger.to,
            .lost = warn_of_loss};
}

/* A descriptor of its own: the watchdog keeps it, CMD does not get it. */
static void open_stderr(void)
{
    logger.outlet.fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

/* Only a regular file: a pipe or a device could block. Returns an exit code. */
static int open_file(const char *path)
{
    struct stat info;
    int fd = open(path,
        O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
        0640);
    const char *why = fd < 0 || fstat(fd, &info) != 0 ? strerror(errno)
                      : S_ISREG(info.st_mode)         ? NULL
                                              : "it is not a regular file";

    logger.outlet = (struct outlet){.fd = fd, .lost = warn_of_loss};
    if (!why)
        return 0;
    say("cannot log to '%s': %s; name a file that this user may write, or "
        "another --log",
        path, why);
    conf_mention(logger.args, VALUE_CHOICE);
    return EXIT_CONFIG;
}

int event_log_open(const struct args *args)
{
    int code = 0;

    logger.args = args;
    if (args->log == LOG_NOWHERE)
        return 0;
    if (args->log == LOG_TO_SYSLOG)
        open_syslog();
    else if (args->log == LOG_TO_FILE)
        code = open_file(args->log_word + strlen(LOG_FILE));
    else
        open_stderr();
    if (code == 0)
        event_add_sink(write_event);
    return code;
}

int event_log_fd(void)
{
    return logger.outlet.fd;
}

bool event_log_forget(void)
{
    return outbox_forget(&logger.outlet);
}

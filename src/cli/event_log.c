/* SPDX-License-Identifier: MIT */
/*
 * The log: one line, datagram or JSON object for each event.
 *
 * Invariant: writing never blocks, and the run is not affected. A line that is
 * not taken at once is kept until the end, and lost if the log does not read
 * then either. Only the first loss is reported, on standard error.
 *
 * syslog(3) and sd_journal_send(3) are not used: both block while the daemon
 * does not read, and the command would not be stopped in time.
 */
#include "cli/event_log.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include <nxlock.h>

#include "cli/event.h"
#include "cli/json.h"
#include "cli/outbox.h"
#include "cli/report.h"
#include "cli/settings.h"

#define SYSLOG_SOCKET "/dev/log"
#define JOURNAL_SOCKET "/run/systemd/journal/socket"

/* A pipe takes so many bytes at once or, with O_NONBLOCK, none. */
#define LINE_ROOM PIPE_BUF
/* A datagram is never cut: the sentence is its longest part. */
#define DATAGRAM_ROOM 8192
#define NAME_MOST 4096 /* of a name in a datagram: longer ones are cut */
#define TIME_ROOM 40
#define WHY_ROOM 512

static struct {
    const struct args *args;
    struct outlet outlet;
    bool warned;
    struct sockaddr_un to; /* syslog, journal */
} logger = {.outlet.fd = -1};

/* ------------------------------------------------------------------- facts */

#define ON(kind) (1U << EVENT_##kind)

/* The numbers of an event. 0 means "not known", and is not written, unless the
 * event is one of these kinds. */
static const struct {
    const char *json, *journal;
    size_t member;
    unsigned kinds; /* bits of ON(): here 0 is a value like any other */
    bool is_int;
} numbers[] = {
    {"waited_ms", "NXLOCK_WAITED_MS", offsetof(struct event, waited_ms),
        ON(ACQUIRED) | ON(FREE) | ON(SKIPPED), false},
    {"held_ms", "NXLOCK_HELD_MS", offsetof(struct event, held_ms), 0, false},
    {"left_ms", "NXLOCK_LEFT_MS", offsetof(struct event, left_ms),
        ON(ACQUIRED) | ON(RENEWED) | ON(NOT_RENEWED) | ON(RENEWED_AGAIN) |
            ON(LEFT_HELD),
        false},
    {"ran_ms", "NXLOCK_RAN_MS", offsetof(struct event, ran_ms),
        ON(COMMAND_ENDED), false},
    {"fence", "NXLOCK_FENCE", offsetof(struct event, fence), 0, false},
    {"command_pid", "NXLOCK_COMMAND_PID", offsetof(struct event, pid), 0,
        false},
    {"code", "NXLOCK_CODE", offsetof(struct event, code),
        ON(COMMAND_ENDED) | ON(ENDED), true},
};
#define NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

/* False: the event does not have it. */
static bool number_of(const struct event *event, size_t i, int64_t *number)
{
    const char *member = (const char *)event + numbers[i].member;
    int small;

    if (numbers[i].is_int) {
        memcpy(&small, member, sizeof(small));
        *number = small;
    } else {
        memcpy(number, member, sizeof(*number));
    }
    return *number > 0 ||
           (*number == 0 && (numbers[i].kinds & 1U << event->kind));
}

/* How much of an event is written: less if it does not fit into one write. A
 * name that is cut says how long it is. */
enum extent { WHOLE, ONLY_NAME, NAME_CUT, EXTENTS };

/* The words of an event; why is a copy without control characters. */
struct word {
    const char *json, *journal, *text;
};
#define WORDS 6

static void words_of(const struct event *event, enum extent extent, char *why,
    struct word words[WORDS])
{
    bool skipped = event->kind == EVENT_SKIPPED;
    bool ended = event->kind == EVENT_ENDED;

    if (event->why) {
        snprintf(why, WHY_ROOM, "%s", event->why);
        clean_text(why, strlen(why));
    }
    words[0] = (struct word){
        "name", "NXLOCK_NAME", extent == NAME_CUT ? event->shown : event->name};
    words[1] = (struct word){"label", "NXLOCK_LABEL", event->label};
    words[2] = (struct word){"holder", "NXLOCK_HOLDER", event->holder};
    words[3] = (struct word){"reason", "NXLOCK_REASON",
        skipped ? event_skip_word(event->skip) : NULL};
    words[4] = (struct word){"result", "NXLOCK_RESULT",
        ended ? event_result_word(event->result) : NULL};
    words[5] = (struct word){"why", "NXLOCK_WHY", event->why ? why : NULL};
}

/* ------------------------------------------------------------------ writing */

static const char *name_of_log(void)
{
    return logger.args->log == LOG_TO_SYSLOG ? "syslog" : "the journal";
}

/* A datagram was lost. */
static void warn_of_loss(int why)
{
    bool warned = logger.warned;

    logger.warned = true;
    if (warned)
        return;
    say("cannot log to %s at %s: %s; the run continues; without such "
        "a daemon, use --log stderr",
        name_of_log(), logger.to.sun_path,
        why == EAGAIN ? "it does not read" : strerror(why));
    settings_mention(logger.args, VALUE_CHOICE);
}

static void write_line(const char *line, size_t length)
{
    outbox_write(&logger.outlet, line, length);
}

static void write_syslog(const struct event *event)
{
    char line[DATAGRAM_ROOM], when[TIME_ROOM] = "";
    struct tm tm;

    if (localtime_r(&event->time.tv_sec, &tm))
        strftime(when, sizeof(when), "%b %e %H:%M:%S", &tm);
    int length = snprintf(line, sizeof(line), "<%d>%s nxlock[%ld]: %s",
        LOG_USER | event_priority(event), when, (long)getpid(),
        event->sentence);
    write_line(line, (size_t)length);
}

/* Never change one: people search for them. */
static const char *const message_ids[EVENT_KINDS] = {
    [EVENT_WAITING] = "8590268a86494eafb5e1e95016a23f82",
    [EVENT_ACQUIRED] = "0aca0ff6935946c392bd6d3294c4f523",
    [EVENT_RENEWED] = "1af14ba685854ac3b9087f119a0753f6",
    [EVENT_NOT_RENEWED] = "f8779b20e63d480ea584a6877ccddab1",
    [EVENT_RENEWED_AGAIN] = "47430eab8aff4ccebc5ed04489fc7641",
    [EVENT_LOST] = "bb744c0793684521acf33cd36308a8ab",
    [EVENT_RELEASED] = "a284f7200ec84547a0c1ecb48846c9e2",
    [EVENT_LEFT_HELD] = "f51c37cb23354aee99aa9e2ed8875925",
    [EVENT_FREE] = "961c3e751fc04ed4a4aa48a72515d9ea",
    [EVENT_REMOVED] = "a7b4e4bc07c7450e999d7f7c4f34c4fd",
    [EVENT_SKIPPED] = "b419c263b4fc41bc85451056d5690265",
    [EVENT_DOUBT] = "a33a490afbb34a52ba02325159fd75c3",
    [EVENT_SERVER_DOWN] = "9b7e1c263ed94e2280355e70d839b0bb",
    [EVENT_SERVER_UP] = "f71600c2d5564c2593697790154b32a9",
    [EVENT_FAILED] = "4ce6110ff5e94f48a4b0600f9839e403",
    [EVENT_STARTED] = "8f49e4cc1f0d4d23af01f21e6ece4342",
    [EVENT_COMMAND_ENDED] = "bcfa3346c2cc4043823a376e56c1331f",
    [EVENT_ENDED] = "98a525c4824444f68ec967dc4bbf0b5f",
};

/* https://systemd.io/JOURNAL_NATIVE_PROTOCOL: a value that has a newline comes
 * after its length, which is a little-endian number of 64 bits. */
static void put_field(FILE *out, const char *name, const char *value)
{
    uint64_t length = htole64(strlen(value));

    if (!strchr(value, '\n')) {
        fprintf(out, "%s=%s\n", name, value);
        return;
    }
    fprintf(out, "%s\n", name);
    fwrite(&length, sizeof(length), 1, out);
    fprintf(out, "%s\n", value);
}

static void put_journal(FILE *out, const struct event *event, bool cut)
{
    char why[WHY_ROOM];
    struct word words[WORDS];
    int64_t number;

    fprintf(out,
        "MESSAGE=%s\nMESSAGE_ID=%s\nPRIORITY=%d\nSYSLOG_FACILITY=%d\n"
        "SYSLOG_IDENTIFIER=nxlock\nSYSLOG_PID=%ld\nNXLOCK_EVENT=%s\n",
        event->sentence, message_ids[event->kind], event_priority(event),
        LOG_FAC(LOG_USER), (long)getpid(), event_kind_word(event->kind));
    words_of(event, cut ? NAME_CUT : WHOLE, why, words);
    for (size_t i = 0; i < WORDS; i++) {
        if (words[i].text)
            put_field(out, words[i].journal, words[i].text);
    }
    for (size_t i = 0; i < NUMBERS; i++) {
        if (number_of(event, i, &number))
            fprintf(out, "%s=%lld\n", numbers[i].journal, (long long)number);
    }
}

static void write_journal(const struct event *event)
{
    char data[DATAGRAM_ROOM];
    bool cut = strlen(event->name) > NAME_MOST;
    FILE *out = fmemopen(data, sizeof(data), "w");

    if (!out)
        return;
    put_journal(out, event, cut);
    long length = ftell(out);
    if (fclose(out) == 0 && length > 0)
        write_line(data, (size_t)length);
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

static void write_words(const struct event *event)
{
    char line[LINE_ROOM], when[TIME_ROOM];
    int length = snprintf(line, sizeof(line), "nxlock: %s %s\n",
        utc_words(when, &event->time), event->sentence);

    write_line(line, (size_t)length);
}

static void put_json(
    struct json *json, const struct event *event, enum extent extent)
{
    char when[TIME_ROOM], why[WHY_ROOM];
    const char *kind = event_kind_word(event->kind);
    struct word words[WORDS];
    int64_t number;

    json_number(json, "v", JSON_VERSION);
    utc_words(when, &event->time);
    json_text(json, "time", when, strlen(when));
    json_text(json, "event", kind, strlen(kind));
    json_number(json, "priority", event_priority(event));
    json_number(json, "pid", getpid());
    words_of(event, extent, why, words);
    for (size_t i = 0; i < WORDS; i++) {
        if (words[i].text && (extent == WHOLE || i == 0))
            json_text(
                json, words[i].json, words[i].text, strlen(words[i].text));
    }
    for (size_t i = 0; i < NUMBERS; i++) {
        if (number_of(event, i, &number))
            json_number(json, numbers[i].json, number);
    }
    if (extent == WHOLE)
        json_text(json, "message", event->sentence, strlen(event->sentence));
    json_end(json);
}

/* What is not UTF-8 becomes longer. */
static void write_json(const struct event *event)
{
    char line[LINE_ROOM];

    for (enum extent extent = WHOLE; extent < EXTENTS; extent++) {
        struct json json;
        FILE *out = fmemopen(line, sizeof(line), "w");
        if (!out)
            return;
        json_begin(&json, out);
        put_json(&json, event, extent);
        bool fits = fflush(out) == 0;
        long length = ftell(out);
        fclose(out);
        if (fits && length > 0) {
            write_line(line, (size_t)length);
            return;
        }
    }
}

/* ------------------------------------------------------------------ opening */

static void write_event(const struct event *event)
{
    if (event->logged)
        return;
    switch ((enum log)logger.args->log) {
    case LOG_TO_SYSLOG:
        write_syslog(event);
        break;
    case LOG_TO_JOURNAL:
        write_journal(event);
        break;
    case LOG_TO_STDERR:
        write_words(event);
        break;
    case LOG_TO_JSON:
        write_json(event);
        break;
    case LOG_NOWHERE:
        break;
    }
}

/* A datagram is sent to a path and not over a connection, so that it arrives
 * after a restart of the daemon too. */
static void open_datagram(const char *path)
{
    const char *other = getenv(LOG_VARIABLE);

    logger.to.sun_family = AF_UNIX;
    snprintf(logger.to.sun_path, sizeof(logger.to.sun_path), "%s",
        other && other[0] != '\0' ? other : path);
    logger.outlet =
        (struct outlet){.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0),
            .kind = OUTLET_DATAGRAM,
            .to = &logger.to,
            .lost = warn_of_loss};
}

/* A descriptor of its own: the watchdog keeps it, CMD does not get it. */
static void open_stderr(void)
{
    logger.outlet.kind = OUTLET_STREAM;
    logger.outlet.fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

void event_log_open(const struct args *args)
{
    logger.args = args;
    /* config prints the setting, and has no events. */
    if (args->log == LOG_NOWHERE || args->command == CMD_CONFIG)
        return;
    if (args->log == LOG_TO_SYSLOG || args->log == LOG_TO_JOURNAL)
        open_datagram(
            args->log == LOG_TO_SYSLOG ? SYSLOG_SOCKET : JOURNAL_SOCKET);
    else
        open_stderr();
    event_add_sink(write_event);
}

int event_log_fd(void)
{
    return logger.outlet.fd;
}

bool event_log_forget(void)
{
    return outbox_forget(&logger.outlet);
}

/* SPDX-License-Identifier: MIT */
/*
 * Reports the events of a run to standard error and to the sinks.
 *
 * Invariant: reporting an event does not block (see outbox.h), and never
 * changes what the command does; and each process ends with one EVENT_ENDED,
 * whose result says what the events before it were.
 */
#include "cli/report/event.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "cli/run/label.h"
#include "cli/report/report.h"

#define SENTENCE_ROOM 2048

/* When the sentence of an event is printed to standard error. */
enum readers { READ_NEVER, READ_VERBOSE, READ_TALKS, READ_ALWAYS };

static const struct {
    const char *word;
    int priority;
    enum readers readers;
} kinds[EVENT_KINDS] = {
    [EVENT_WAITING] = {"waiting", LOG_INFO, READ_TALKS},
    [EVENT_ACQUIRED] = {"acquired", LOG_INFO, READ_VERBOSE},
    [EVENT_UNFENCED] = {"unfenced", LOG_WARNING, READ_ALWAYS},
    [EVENT_RENEWED] = {"renewed", LOG_DEBUG, READ_VERBOSE},
    [EVENT_NOT_RENEWED] = {"not-renewed", LOG_WARNING, READ_ALWAYS},
    [EVENT_RENEWED_AGAIN] = {"renewed-again", LOG_NOTICE, READ_ALWAYS},
    [EVENT_LOST] = {"lost", LOG_ERR, READ_ALWAYS},
    [EVENT_RELEASED] = {"released", LOG_INFO, READ_VERBOSE},
    [EVENT_LEFT_HELD] = {"left-held", LOG_INFO, READ_VERBOSE},
    [EVENT_FREE] = {"free", LOG_INFO, READ_VERBOSE},
    [EVENT_REMOVED] = {"removed", LOG_NOTICE, READ_TALKS},
    [EVENT_SKIPPED] = {"skipped", LOG_NOTICE, READ_TALKS},
    [EVENT_DOUBT] = {"doubt", LOG_ERR, READ_ALWAYS},
    [EVENT_SERVER_DOWN] = {"server-down", LOG_ERR, READ_ALWAYS},
    [EVENT_SERVER_UP] = {"server-up", LOG_NOTICE, READ_TALKS},
    [EVENT_FAILOVER] = {"failover", LOG_WARNING, READ_NEVER}, /* on_warning() */
    [EVENT_FAILED] = {"failed", LOG_ERR, READ_ALWAYS},
    [EVENT_STARTED] = {"started", LOG_INFO, READ_NEVER},
    [EVENT_COMMAND_ENDED] = {"command-ended", LOG_INFO, READ_NEVER},
    [EVENT_ENDED] = {"ended", LOG_INFO, READ_NEVER},
};

static const struct {
    const char *word, *sentence;
} results[RESULTS] = {
    [RESULT_DONE] = {"done", "done"},
    [RESULT_FAILED] = {"failed", "the command failed"},
    [RESULT_BUSY] = {"busy", "the lock was busy"},
    [RESULT_NOT_DUE] = {"not-due", "the run is not due"},
    [RESULT_DONE_BEFORE] = {"done-before", "it was done before"},
    [RESULT_LOST] = {"lost", "the lock was lost"},
    [RESULT_DOUBT] = {"doubt", "it is in doubt whether it was done"},
    [RESULT_DOWN] = {"down", "no server could decide"},
    [RESULT_INTERRUPTED] = {"interrupted", "interrupted by a signal"},
    [RESULT_ERROR] = {"error", "an error"},
};

static struct {
    const struct args *args;
    char label[LABEL_ROOM]; /* "": none */
    void (*sinks[EVENT_SINKS])(const struct event *event);
    size_t count;
    bool seen[EVENT_KINDS];
    bool ended;
    struct event sum; /* what EVENT_ENDED will say */
} reporter;

void event_begin(const struct args *args)
{
    reporter.args = args;
}

void event_set_label(const char *label)
{
    snprintf(reporter.label, sizeof(reporter.label), "%s", label ? label : "");
}

void event_add_sink(void (*take)(const struct event *event))
{
    if (reporter.count < EVENT_SINKS)
        reporter.sinks[reporter.count++] = take;
}

bool event_talks(void)
{
    return reporter.args->verbose || isatty(STDERR_FILENO);
}

/* Is the sentence printed? */
static bool is_printed(enum readers readers)
{
    /* Then the log is on standard error. */
    if (reporter.args->log == LOG_TO_STDERR ||
        reporter.args->log == LOG_TO_JSON)
        return false;
    switch (readers) {
    case READ_VERBOSE:
        return reporter.args->verbose;
    case READ_TALKS:
        return event_talks();
    case READ_ALWAYS:
        return true;
    default:
        return false;
    }
}

bool event_is_read(enum event_kind kind)
{
    return reporter.count > 0 || is_printed(kinds[kind].readers);
}

/* Notes what the last event will need. */
static void gather_end(const struct event *event)
{
    struct event *sum = &reporter.sum;

    reporter.seen[event->kind] = true;
    if (event->kind == EVENT_ACQUIRED || event->kind == EVENT_SKIPPED)
        sum->waited_ms = event->waited_ms;
    if (event->kind == EVENT_ACQUIRED)
        sum->fence = event->fence;
    if (event->held_ms != 0)
        sum->held_ms = event->held_ms;
    if (event->kind == EVENT_COMMAND_ENDED)
        sum->ran_ms = event->ran_ms;
    if (event->kind == EVENT_SKIPPED)
        sum->result = event->result;
}

void event_report(struct event event, const char *format, ...)
{
    char sentence[SENTENCE_ROOM];
    va_list arguments;

    va_start(arguments, format);
    if (vsnprintf(sentence, sizeof(sentence), format, arguments) < 0)
        sentence[0] = '\0';
    va_end(arguments);
    clean_text(sentence, strlen(sentence));
    event.sentence = sentence;
    event.name = reporter.args->name ? reporter.args->name : "";
    event.shown = reporter.args->shown;
    event.also = reporter.args->also;
    event.also_count = reporter.args->also_count;
    event.busy = event.also_count > 0 ? event.busy : NULL;
    event.label = reporter.label[0] != '\0' ? reporter.label : NULL;
    timespec_get(&event.time, TIME_UTC);
    gather_end(&event);
    if (is_printed(event.always ? READ_ALWAYS : kinds[event.kind].readers))
        say("%s", sentence);
    for (size_t i = 0; i < reporter.count; i++)
        reporter.sinks[i](&event);
}

enum event_kind event_of_failure(int result)
{
    return result_may_pass(result) ? EVENT_SERVER_DOWN : EVENT_FAILED;
}

static enum result result_of(int code)
{
    const bool *seen = reporter.seen;

    if (seen[EVENT_LOST])
        return RESULT_LOST;
    if (seen[EVENT_DOUBT])
        return RESULT_DOUBT;
    /* What was done before could not be printed. */
    if (seen[EVENT_SKIPPED] && seen[EVENT_FAILED] && code == EXIT_INTERNAL)
        return RESULT_ERROR;
    if (seen[EVENT_SKIPPED])
        return reporter.sum.result;
    if (seen[EVENT_COMMAND_ENDED])
        return code == EXIT_DONE ? RESULT_DONE : RESULT_FAILED;
    if (code > EXIT_SIGNAL)
        return RESULT_INTERRUPTED;
    if (code == EXIT_UNAVAILABLE && seen[EVENT_SERVER_DOWN])
        return RESULT_DOWN;
    return code == EXIT_DONE ? RESULT_DONE : RESULT_ERROR;
}

void event_end(int code)
{
    struct event *sum = &reporter.sum;

    if (reporter.ended)
        return;
    reporter.ended = true;
    sum->kind = EVENT_ENDED;
    sum->code = code;
    sum->result = result_of(code);
    event_report(*sum, "nxlock %s '%s' ended with exit code %d: %s",
        reporter.args->word, reporter.args->shown, code,
        results[sum->result].sentence);
}

const char *event_kind_word(enum event_kind kind)
{
    return kinds[kind].word;
}

const char *event_result_word(enum result result)
{
    return results[result].word;
}

int event_priority(const struct event *event)
{
    bool failed = (event->kind == EVENT_COMMAND_ENDED && event->code != 0) ||
                  (event->kind == EVENT_ENDED && event->result == RESULT_ERROR);

    return failed ? LOG_WARNING : kinds[event->kind].priority;
}

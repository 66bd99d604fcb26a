/* SPDX-License-Identifier: MIT */
/*
 * The events of a run: every notable thing that happens to the lock or to CMD
 * is one struct event, reported by one function. That prints the event's
 * sentence to standard error if it is wanted there (-v, a terminal), and
 * passes the event to the sinks: the log, and the files of metrics.
 *
 * Invariant: an event holds no secrets: no token, no password and none of
 * CMD's arguments.
 */
#ifndef NXLOCK_CLI_REPORT_EVENT_H
#define NXLOCK_CLI_REPORT_EVENT_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "cli/args.h"

/* The words are in event.c, and are those of --log json. */
enum event_kind {
    EVENT_WAITING,       /* the lock is held by another; reported once for
                          * each name; facts: holder, busy, left_ms */
    EVENT_ACQUIRED,      /* facts: waited_ms, left_ms, fence or fences */
    EVENT_UNFENCED,      /* run: the lock has no fencing token; facts: why */
    EVENT_RENEWED,       /* facts: left_ms */
    EVENT_NOT_RENEWED,   /* a renewal failed, the first one; facts: left_ms */
    EVENT_RENEWED_AGAIN, /* after EVENT_NOT_RENEWED; facts: left_ms */
    EVENT_LOST,          /* facts: held_ms, why */
    EVENT_RELEASED,      /* facts: held_ms */
    EVENT_LEFT_HELD,     /* it stays locked after the end; facts: left_ms */
    EVENT_FREE,          /* wait: the lock is free; facts: waited_ms */
    EVENT_REMOVED,       /* unlock removed it; facts: holder */
    EVENT_SKIPPED,       /* CMD is not run, or acquire and wait gave up; facts:
                          * result, waited_ms, holder, busy */
    EVENT_DOUBT,         /* once: it is unknown whether it was done */
    EVENT_SERVER_DOWN,   /* no server can decide; facts: why */
    EVENT_SERVER_UP,     /* after EVENT_SERVER_DOWN */
    EVENT_FAILOVER,      /* guard_failover: one was seen; facts: pause_ms */
    EVENT_FAILED,        /* anything else that went wrong; facts: why */
    EVENT_STARTED,       /* CMD; facts: pid */
    EVENT_COMMAND_ENDED, /* CMD; facts: code, ran_ms */
    EVENT_ENDED,         /* the last event of every process; facts: result,
                          * code, waited_ms, held_ms, ran_ms */
    EVENT_KINDS
};

/* How a command ended, or why CMD was skipped. */
enum result {
    RESULT_DONE,        /* exit code 0; run, once: CMD ran */
    RESULT_FAILED,      /* run, once: CMD ran, and its exit code is not 0 */
    RESULT_BUSY,        /* skipped: another process holds the lock */
    RESULT_NOT_DUE,     /* skipped: --every */
    RESULT_DONE_BEFORE, /* skipped: once */
    RESULT_LOST,        /* the lock was lost */
    RESULT_DOUBT,       /* once: it is in doubt */
    RESULT_DOWN,        /* no server, so CMD was not run */
    RESULT_INTERRUPTED, /* a signal ended it before CMD was started */
    RESULT_ERROR,       /* anything else; CMD was not run */
    RESULTS
};

struct event {
    enum event_kind kind;
    bool always; /* print the sentence even without -v and a terminal */
    bool logged; /* the watchdog has already written it to the log */
    /* Facts, in milliseconds; which ones an event has is said above. */
    int64_t waited_ms;      /* for the lock */
    int64_t held_ms;        /* since the lock was acquired; ENDED: in all */
    int64_t left_ms;        /* until the lease expires */
    int64_t ran_ms;         /* how long CMD ran */
    int64_t pause_ms;       /* until the server grants locks again */
    uint64_t fence;         /* the fencing token; 0: none */
    int64_t pid;            /* of CMD; 0: it was not started */
    int64_t code;           /* the exit code */
    const char *holder;     /* the label of who holds it; NULL: it has none */
    const char *busy;       /* of several names, the one that the holder has */
    const uint64_t *fences; /* ACQUIRED: of several names, one each; NULL */
    const char *why; /* the reason, from the library or the system; NULL */
    enum result result;
    /* Filled in by event_report(). */
    const char *sentence; /* for people, without a newline */
    const char *name;     /* of the lock; "": the command has none */
    const char *shown;    /* the same, as messages show it, with the others */
    const char *const *also; /* the other names that are locked with it */
    size_t also_count;
    const char *label;    /* of this process; NULL: the lock has none */
    struct timespec time; /* when, by the wall clock */
};

/* Called first, with the parsed command line, which must outlive the process's
 * events. */
void event_begin(const struct args *args);

/* The label of this process's lock, which is copied: the last event comes when
 * the command that made it has returned. NULL: it has none. */
void event_set_label(const char *label);

/* Adds a function that gets each event from now on; it must not block, and must
 * not keep pointers of the event. EVENT_SINKS at most. */
#define EVENT_SINKS 4
void event_add_sink(void (*take)(const struct event *event));

/* Reports an event with its sentence, which is a format as of printf(). Does
 * not block, and cannot fail. */
void event_report(struct event event, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The kind of event of a request that failed with that result of the library:
 * EVENT_SERVER_DOWN if trying again later may help, or EVENT_FAILED. */
enum event_kind event_of_failure(int result);

/* Reports EVENT_ENDED with this exit code, once: later calls do nothing. The
 * facts are gathered from the events before. Whatever ends the process calls
 * it: before a signal that ends it, and before _exit(). */
void event_end(int code);

/* Would the sentence of such an event be printed or logged? If not, facts that
 * cost a request are not needed. */
bool event_is_read(enum event_kind kind);

/* Are messages wanted that are not errors? Only with -v and on a terminal,
 * because cron mails whatever a job prints. */
bool event_talks(void);

/* The words of --log json: "acquired", "not-due", "done-before". */
const char *event_kind_word(enum event_kind kind);
const char *event_result_word(enum result result);

/* The priority, as of syslog(3): LOG_INFO. */
int event_priority(const struct event *event);

#endif

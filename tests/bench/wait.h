/* SPDX-License-Identifier: MIT */
/* What the files of nxlock-bench-wait share. One sample is one crowd of
 * contenders, spread over processes that are forked for it. They record what
 * they see in shared memory, with the functions contest_*().
 *
 * Invariant: floor and library are measured by the same code at the same
 * moments: contest_wait(), contest_granted() and contest_due(). */
#ifndef NXLOCK_BENCH_WAIT_H
#define NXLOCK_BENCH_WAIT_H

#include "bench.h"

#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

#define WAIT_MAX_PROCESSES 64
#define WAIT_MAX_CONTENDERS 20000
#define WAIT_FAR_US 1000.0 /* the round trip of --far */
#define WAIT_KEYS 5        /* names of keys that a sample may leave behind */

/* ---------------------------------------------------------------- contest */

/* What one contender has seen; written by its process only. */
struct seat {
    _Atomic uint64_t since_ns;   /* when its wait began; 0: it does not wait */
    _Atomic uint64_t ever;       /* grants since the start */
    _Atomic uint64_t granted;    /* grants in the window */
    _Atomic uint64_t longest_ns; /* of the waits that ended in the window */
};

struct wait_shared {
    /* The window; both 0: it is not open yet. */
    _Atomic uint64_t begin_ns, end_ns;
    atomic_bool stop;
    atomic_bool pause; /* the holder keeps the lock */
    atomic_uint ready; /* processes that are connected */
    atomic_int holders;
    _Atomic uint64_t overlaps, failures, total;
    /* When the last holder called release. This and the histogram are written
     * by the holder of the lock only. */
    _Atomic uint64_t released_ns;
    struct histogram handoff;
    atomic_bool failed; /* error is set */
    char error[200];
    char failure[160]; /* the first that was counted */
    struct seat seats[];
};

/* One process of contenders. */
struct contest {
    struct wait_shared *shared;
    struct seat *seats; /* of this process */
    unsigned count;     /* of seats */
    unsigned process;
    const char *name; /* of the lock */
    const char *url;
    int port; /* of 127.0.0.1 */
    int64_t ttl_ms;
    uint64_t hold_ns;
    /* Contenders that hold the lock, in order; more than one is a failure. */
    struct holding {
        unsigned contender;
        uint64_t due_ns;
    } * holding;
    unsigned holding_first, holding_count;
};

/* Runs this process's contenders until shared->stop; 0, or -1 after
 * contest_fail(). */
typedef int wait_runner(struct contest *contest);

wait_runner wait_floor;
wait_runner wait_library;

int contest_open(struct contest *contest);
void contest_close(struct contest *contest);
/* The contender has asked for the lock. */
void contest_wait(struct contest *contest, unsigned contender);
/* The contender has learned that it holds the lock. */
void contest_granted(struct contest *contest, unsigned contender);
/* The next contender that is to release now, or -1. */
int contest_due(struct contest *contest);
/* How long this process may sleep; most_ms < 0: the caller has no limit. */
struct timespec contest_sleep(const struct contest *contest, int most_ms);
/* Notes a call that went wrong in a way that the contest survives. */
void contest_failure(struct contest *contest, const char *words);
/* Notes why this process cannot go on; returns -1. */
int contest_fail(struct contest *contest, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* --------------------------------------------------------------- counting */

/* Requests of clients, not of scripts, to the server. */
struct wait_requests {
    uint64_t set, pttl, join, stay, script, other;
    double seconds;
    uint64_t acquisitions; /* in the same time */
};

/* Counts with MONITOR for so long. -1: the server does not allow that. */
int wait_count_requests(int port, double seconds, struct wait_shared *shared,
    struct wait_requests *requests);
/* Processor time of the server since its start, by INFO cpu; -1 unknown. */
double wait_server_seconds(int port);
/* How often it has run a script by its name, and for how long in all, by INFO
 * commandstats. */
struct wait_scripts {
    double calls, us;
};
struct wait_scripts wait_server_scripts(int port);
/* The longest line, of any subject, for the lock; -1 unknown. */
long long wait_line_length(int port, const char *name);
/* Removes what a sample has left behind. */
void wait_remove_keys(int port, const char *name);
/* Round trips of PING, one after the other, into the histogram; -1: no
 * connection. */
int wait_ping(int port, int count, struct histogram *histogram);

/* ------------------------------------------------------------------ delay */

/* A proxy in a process of its own that passes on every byte so much later. */
struct delay {
    pid_t pid; /* 0: none */
    int port;
    _Atomic uint64_t *one_way_ns;
};

/* In front of 127.0.0.1:port. -1 after a message. */
int delay_start(struct delay *delay, int port);
/* Adjusts the delay until the median PING takes rtt_us, or nearly; -1: the
 * server does not answer. */
int delay_adjust(const struct delay *delay, double rtt_us);
void delay_stop(struct delay *delay);

/* ---------------------------------------------------------------- samples */

struct wait_subject {
    const char *name;
    wait_runner *run;
    const char *query; /* of the URL */
};

#define WAIT_SUBJECTS 3
enum { SUBJECT_FLOOR, SUBJECT_LIBRARY, SUBJECT_POLL };

struct wait_sample {
    bool ok;
    double rate;               /* acquisitions per second */
    double p50_us, p99_us;     /* from the call of release to the next grant */
    double rtt_us, rtt_p99_us; /* of a PING, just before */
    struct wait_requests requests;
    double max_min;    /* most to least grants; INFINITY: somebody got none */
    double longest_ms; /* wait */
    double starved;    /* contenders without a grant */
    double server_us;  /* processor time of the server per acquisition */
    double stay_us;    /* of one STAY, while the holder keeps the lock; 0 */
    uint64_t overlaps, failures;
    char error[200], failure[160];
};

struct wait_case {
    const char *place; /* "loopback", "1 ms" */
    int port;
    unsigned contenders, processes;
    bool crowd;
    struct wait_sample *samples[WAIT_SUBJECTS]; /* one a round */
};

#define WAIT_MAX_CASES 32

struct wait_plan {
    int rounds, done;
    double seconds;
    int64_t ttl_ms;
    double hold_ms;
    struct server server;
    struct delay delay;
    struct wait_subject subjects[WAIT_SUBJECTS]; /* without a name: skipped */
    struct wait_case cases[WAIT_MAX_CASES];
    int count;
};

/* The interval at which a waiter says that it is alive. */
double wait_beat_seconds(int64_t ttl_ms);

/* One sample; false: sample->error says why not. */
bool wait_measure(const struct wait_plan *plan, const struct wait_case *where,
    const struct wait_subject *subject, struct wait_sample *sample);

/* Prints everything. Returns how many samples failed or saw two holders. */
int wait_report(const struct wait_plan *plan);

#endif

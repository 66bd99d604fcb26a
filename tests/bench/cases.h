/* SPDX-License-Identifier: MIT */
/* What the files of nxlock-bench-cases share. Each measurement prints rows of
 * one table, with the goal beside what was seen.
 *
 * Invariant: a row with a goal on time has the floor, or what it is compared
 * with, measured in the same round. */
#ifndef NXLOCK_BENCH_CASES_H
#define NXLOCK_BENCH_CASES_H

#include "bench.h"

#include <stdatomic.h>

#include <hiredis/hiredis.h>
#include <nxlock.h>

#define CASE_NAME "job"
#define CASE_LINE "{job}:nxl-l"

struct cases_run {
    int rounds;
    double seconds;      /* of readers and writers, and of many locks */
    int locks;           /* that are kept alive */
    struct redis server; /* of this case alone */
    int missed;          /* goals */
};

extern struct cases_run cases_run;

/* 0, or -1 after case_fail(). */
typedef int case_measure(void);

case_measure case_cost;     /* beside holders, against the floor */
case_measure case_memory;   /* of a holder at the server */
case_measure case_handoff;  /* from a release to the next grant */
case_measure case_readers;  /* a thousand of them behind a writer */
case_measure case_quorum;   /* readers and writers over three servers */
case_measure case_hold;     /* of many locks that are kept alive */
case_measure case_five;     /* servers, against one and a floor */
case_measure case_replicas; /* that are waited for */
case_measure case_once;     /* begin and done, against the floor */

/* A row of the table: median and extremes of the values. goal: the most that
 * the median may be; 0: none. */
void case_row(const char *what, const char *unit, const double *values,
    int count, double goal);
/* The same of ours[i] / theirs[i]. */
void case_ratio(const char *what, const double *ours, const double *theirs,
    int count, double goal);
/* The same of one value. */
void case_figure(const char *what, const char *unit, double value, double goal);
/* A remark below the rows. */
void case_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
int case_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* This process and the server on one processor, or wherever they were. */
void case_pin(bool one);

/* A connection to the server under test, or NULL after case_fail(). */
redisContext *case_connect(void);
/* An integer reply; -1: another one. */
long long case_ask(redisContext *redis, const char *format, ...);

void case_pause_us(long us);
/* Processor time of this process, in microseconds. */
double case_cpu_us(void);

/* A client and a lock; permits and shared as in the options, and NULL for an
 * exclusive lock. They end the process if that cannot be made. */
struct lock_kind {
    int64_t permits;
    int shared;
};
nxl_client *case_client(const char *url);
nxl_lock *case_lock(nxl_client *client, const char *name,
    const struct lock_kind *kind, int64_t ttl_ms);

/* One turn of the client's event loop, which waits for most_ms at most. Counts
 * the acquires and releases that have ended; -1 after case_fail(), also if one
 * of them has failed. */
struct case_ended {
    int acquires, releases;
};
int case_turn(nxl_client *client, int64_t most_ms, struct case_ended *ended);

#endif

/* SPDX-License-Identifier: MIT */
/* What the files of nxlock-bench-permits share. Each measurement prints rows of
 * one table, with the goal beside what was seen.
 *
 * Invariant: a row with a goal on time has the floor, or what it is compared
 * with, measured in the same round. */
#ifndef NXLOCK_BENCH_PERMITS_H
#define NXLOCK_BENCH_PERMITS_H

#include "bench.h"

#include <stdatomic.h>

#include <hiredis/hiredis.h>
#include <nxlock.h>

#define PERMITS_NAME "job"
#define PERMITS_LINE "{job}:nxl-l"

struct permits_run {
    const char *program; /* the server */
    int rounds;
    double seconds; /* of a crowd */
    struct server server;
    int missed; /* goals */
};

extern struct permits_run permits_run;

/* 0, or -1 after permits_fail(). */
typedef int permits_measure(void);

permits_measure permits_cost;    /* beside holders, against the floor */
permits_measure permits_memory;  /* of a holder at the server */
permits_measure permits_handoff; /* from a release to the next grant */
permits_measure permits_death;   /* of a holder, until the next grant */
permits_measure permits_readers; /* a thousand of them behind a writer */
permits_measure permits_order;   /* and fairness */
permits_measure permits_writer;  /* among readers that never pause */
permits_measure permits_outside; /* who polls beside readers */
permits_measure permits_quorum;  /* readers and writers over three servers */
permits_measure permits_litter;  /* what is left when all are killed */

/* A row of the table: median and extremes of the values. goal: the most that
 * the median may be; 0: none. */
void permits_row(const char *what, const char *unit, const double *values,
    int count, double goal);
/* The same of one value. least: the least that it may be; 0: no limit. */
void permits_figure(const char *what, const char *unit, double value,
    double least, double goal);
/* A remark below the rows. */
void permits_note(const char *format, ...)
    __attribute__((format(printf, 1, 2)));
int permits_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* This process and the server on one processor, or wherever they were. */
void permits_pin(bool one);

/* A connection to the server under test, or NULL after permits_fail(). */
redisContext *permits_connect(void);
/* Removes the lock and its line. */
void permits_remove_keys(void);
/* An integer reply; -1: another one. */
long long permits_ask(redisContext *redis, const char *format, ...);
/* Microseconds that the server took for the command, by INFO commandstats. */
double permits_command_us(redisContext *redis, const char *command);

/* A lock of a client of its own; permits and shared as in the options. Ends the
 * process if it cannot be made. */
struct permits_kind {
    const char *words;
    int64_t permits;
    int shared;
};
nxl_client *permits_client(const char *url);
nxl_lock *permits_lock(nxl_client *client, const char *name,
    const struct permits_kind *kind, int64_t ttl_ms);

/* Follows by MONITOR, for so long, who joins the line and who is granted the
 * lock. A grant to one that joined later than one that still waits, or did not
 * join, is out of order. -1 after permits_fail(). */
struct permits_grants {
    unsigned long all, out_of_order;
};
int permits_follow(double seconds, struct permits_grants *grants);

#endif

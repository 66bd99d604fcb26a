/* SPDX-License-Identifier: MIT */
/*
 * A process of the drill that contends for its lock, with a client of its own,
 * as any program would. It does what the drill orders, one thing at a time.
 */
#ifndef NXLOCK_CLI_DRILL_ACTOR_H
#define NXLOCK_CLI_DRILL_ACTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <nxlock.h>

#include "cli/args.h"

enum act {
    ACT_ACQUIRE = 1, /* wait_ms */
    ACT_ACQUIRE_CUT, /* the same, but the connection is cut when the servers
                      * have answered, before the library reads that */
    ACT_EXTEND,
    ACT_RELEASE,
    ACT_ADOPT, /* token */
    ACT_INSPECT,
    ACT_BREAK,   /* token: a compare-and-delete */
    ACT_LOOK,    /* nothing is sent: does the library count the lock as held? */
    ACT_CUT,     /* every connection is cut; the library makes new ones */
    ACT_CUT_OFF, /* the same, but the library can make no new ones */
    ACT_FREE     /* the client is freed; no order may follow */
};

#define ACTOR_TOKEN 512 /* bytes, with the zero at the end */

struct drill_order {
    enum act act;
    int64_t wait_ms;
    char token[ACTOR_TOKEN];
};

/* Times are of nxl_now_ns(), which all processes of a machine share. The
 * members from before to after are read in this order: a lock that counts as
 * held was also held at all times read before, back to its grant. */
struct drill_answer {
    enum act act;
    int result;        /* an enum nxl_result */
    uint64_t before;   /* when the order came */
    bool held_before;  /* was the lock held then? */
    uint64_t ended;    /* when the order had been carried out */
    bool held_after;   /* is the lock held now? */
    uint64_t after;    /* a time after that question */
    uint64_t deadline; /* 0: not held */
    uint64_t fence;
    uint64_t lost_at; /* when a loss was reported; 0: none was */
    int loss;         /* an enum nxl_loss */
    unsigned lost;    /* ACQUIRE_CUT: how many answers were thrown away */
    bool in_line;     /* at the first server, waiters wait in line */
    char token[ACTOR_TOKEN]; /* INSPECT: of the holder; else of the lock */
    char waiting[128];       /* how locks wait there, for people */
    char text[512];          /* why it failed */
};

struct actor_plan {
    const struct args *args;
    const char *name; /* of the lock */
    int64_t ttl_ms;
    bool renew;
    int line;     /* a SOCK_SEQPACKET socket, for orders and answers */
    pid_t parent; /* this process ends when the parent ends */
};

/* Runs in a process that the caller has just forked, and ends it when the line
 * is closed. Then a lock that is held is released. */
_Noreturn void actor_play(const struct actor_plan *plan);

#endif

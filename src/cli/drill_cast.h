/* SPDX-License-Identifier: MIT */
/*
 * The drill's side of its processes (drill_actor.h): starts, stops and kills
 * them, sends them orders, and records their answers in the ledger.
 */
#ifndef NXLOCK_CLI_DRILL_CAST_H
#define NXLOCK_CLI_DRILL_CAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/diagnostic.h"
#include "cli/drill_actor.h"
#include "cli/drill_ledger.h"
#include "cli/session.h"

/* The processes of a scene: FIRST is the one that is killed, stopped or cut
 * off; SECOND acquires the lock after it; WITNESS observes. */
enum who { FIRST, SECOND, WITNESS, ACTORS };
#define ONE(who) (1U << (who))
#define ALL_ACTORS (ONE(ACTORS) - 1)

/* One of them, as the drill sees it. */
struct player {
    pid_t pid; /* 0: there is none */
    int line;  /* orders go, answers come */
};

struct drill {
    const struct args *args;
    struct session session; /* its signals, its servers and its prefix */
    char *name;             /* of the drill's lock */
    int64_t ttl_ms;
    struct diagnostics diagnostics;
    const char *scene; /* what the next findings are about */
    struct player players[ACTORS];
    struct ledger ledger;
    uint64_t end; /* of nxl_now_ns(): no scene lasts longer */
    bool broken;  /* a promise, in any scene */
    bool bad;     /* in this scene */
    bool unshown; /* something could not be shown, in any scene */
    int code;     /* of the worst error; 0: none */
    bool over;    /* the scene cannot go on; the reason was reported */
};

/* Reports that a promise was broken; promise is its name in guarantees.md. */
void drill_broken(struct drill *d, const char *promise, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Reports that the scene shows nothing, neither good nor bad, and ends it. */
void drill_unshown(struct drill *d, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Reports an error with which the drill cannot go on. */
void drill_error(
    struct drill *d, const char *what, const struct drill_answer *answer);

/* Reports an answer with which the scene cannot continue: as an error, or as
 * "not shown" if the server or this machine may have been too slow. */
void drill_failed(
    struct drill *d, const char *what, const struct drill_answer *answer);

/* Starts the processes; those in renewing (bits of ONE()) renew their leases.
 * False: it has failed, which was reported, and the scene is over. */
bool drill_start_all(struct drill *d, unsigned renewing);

/* Ends them all; what they hold is released. Waits until they are gone. */
void drill_end_all(struct drill *d);

/* The functions below that return bool return false when the scene is over, and
 * have said why. */

bool drill_send(struct drill *d, unsigned who, enum act act, int64_t wait_ms);

/* Waits for the next answer of one of these processes (bits of ONE()), which is
 * *who; at most until that time, and then *who is ACTORS. */
bool drill_receive(struct drill *d, unsigned of, uint64_t until, unsigned *who,
    struct drill_answer *answer);

/* Sends an order and waits for its answer. */
bool drill_ask(struct drill *d, unsigned who, enum act act, int64_t wait_ms,
    struct drill_answer *answer);
bool drill_ask_token(struct drill *d, unsigned who, enum act act,
    const char *token, struct drill_answer *answer);

/* Acquires the free lock; anything but a grant ends the scene. */
bool drill_acquire(struct drill *d, unsigned who, struct drill_answer *answer);

/* Sleeps until that time of nxl_now_ns(). */
bool drill_sleep(struct drill *d, uint64_t until);

/* Each blocks until the signal has taken effect, except for drill_continue().
 */
void drill_kill(struct drill *d, unsigned who);
void drill_stop(struct drill *d, unsigned who);
void drill_continue(struct drill *d, unsigned who);

/* The time as people write it: "0.3ms", "12ms", "2.01s". out has
 * DURATION_ROOM bytes. */
const char *drill_time(char *out, uint64_t from, uint64_t until);

#endif

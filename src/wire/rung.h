/* SPDX-License-Identifier: MIT */
/*
 * A rung is one way to carry out a verb. The ways of a verb are rows of a
 * table (ladder.c), best first; which one a server takes is found by trying:
 * an error that says "unknown" or "not allowed" proves that nothing was done.
 *
 * A row's functions see an exchange at rest: encode() appends the commands of
 * x->step and returns how many replies they have; reply() takes one of these,
 * x->due being how many are still to come.
 */
#ifndef NXLOCK_WIRE_RUNG_H
#define NXLOCK_WIRE_RUNG_H

#include "wire/exchange.h"

struct rung {
    const char *name; /* for people */
    unsigned climb;   /* faults, as bits, that mean: try the next one */
    /* RELEASE: its first command alone compares and deletes. */
    bool at_once;
    bool bare; /* of timestamps: without WATCH */
    unsigned (*encode)(struct exchange *x, struct buf *out);
    enum exchange_next (*reply)(struct exchange *x, const struct reply *reply);
    const struct watched *watched; /* what its transaction is made of */
};

/* Bits of rung.climb. */
#define ON_UNSUPPORTED (1U << FAULT_UNSUPPORTED)
#define ON_REFUSED (ON_UNSUPPORTED | 1U << FAULT_DENIED)

/* Steps have numbers of the row's own, from 0 on. But from STEP_ASK on the
 * keys of a lock are not written, with the exception of STEP_EXEC; and from
 * STEP_WATCH on the connection is in a transaction (see watched.c). */
enum { STEP_ASK = 8, STEP_RIGHTS = 15, STEP_WATCH = 16, STEP_EXEC, STEP_LEAVE };

/* GRANTED, the outcome's zero, stands for "not decided yet" before the end. */
static inline bool rung_open(const struct exchange *x)
{
    return x->outcome.kind == OUTCOME_GRANTED;
}

/* -------------------------------------------------- what rows are made of */

/* scripted.c: one script, by its hash or whole */
unsigned scripted_encode(struct exchange *x, struct buf *out);
enum exchange_next scripted_extended(
    struct exchange *x, const struct reply *reply);
enum exchange_next scripted_released(
    struct exchange *x, const struct reply *reply);
enum exchange_next scripted_inspected(
    struct exchange *x, const struct reply *reply);

/* native.c: one command that does it all, where the server has one */
unsigned native_set(struct exchange *x, struct buf *out);
enum exchange_next native_acquired(
    struct exchange *x, const struct reply *reply);
unsigned native_set_ifeq(struct exchange *x, struct buf *out);
enum exchange_next native_extended(
    struct exchange *x, const struct reply *reply);
unsigned native_delex(struct exchange *x, struct buf *out);
unsigned native_delifeq(struct exchange *x, struct buf *out);
enum exchange_next native_released(
    struct exchange *x, const struct reply *reply);
unsigned native_read(struct exchange *x, struct buf *out);
enum exchange_next native_inspected(
    struct exchange *x, const struct reply *reply);

/* watched.c: read, compare here, change under WATCH */
struct watched {
    /* Returns how many replies there will be, 1 to 3; 0: no memory. */
    unsigned (*read)(struct exchange *x, struct buf *out);
    /* One of these replies, no error; x->due - 1 more are to come. What it
     * decides is the outcome, and then nothing is changed. */
    void (*judge)(struct exchange *x, const struct reply *reply);
    /* One command, and its reply out of EXEC's, which decides. */
    bool (*change)(struct exchange *x, struct buf *out);
    enum exchange_next (*changed)(
        struct exchange *x, const struct reply *reply);
};
unsigned watched_encode(struct exchange *x, struct buf *out);
enum exchange_next watched_reply(
    struct exchange *x, const struct reply *reply);
extern const struct watched watched_token; /* EXTEND, RELEASE, KEEP */

/* stamped.c: SETNX of a time, and on what stands there the same; with
 * rung.bare not under WATCH */
unsigned stamped_encode(struct exchange *x, struct buf *out);
enum exchange_next stamped_reply(
    struct exchange *x, const struct reply *reply);
extern const struct watched stamped_watched;

/* rights.c: may what is acquired be released, where ladder.doubted? */
bool rights_doubted(const struct exchange *x);
extern const struct rung rights_rung;

/* fenced.c: an acquire that draws a number, verb.counter */
extern const struct rung fenced_rung;

/* asked.c: a command of the caller's own that only reads */
extern const struct rung asked_rung;

/* takeover.c: after an acquire has met a key without an end */
extern const struct rung takeover_rung;
/* BUSY was decided: AGAIN, when it is time to look whether it is for ever. */
enum exchange_next rung_look_closer(struct exchange *x);

/* ---------------------------------------------------- what they decide with */

enum exchange_next rung_decide(
    struct exchange *x, enum outcome_kind kind, int64_t left_ms);
/* An error reply; what it means depends on its words and on the verb. */
enum exchange_next rung_refused(struct exchange *x, const struct reply *reply);
/* The connection carries something else than the answers to our commands. */
enum exchange_next rung_broken(struct exchange *x, const char *expected);
/* A value that is needed when its reply's bytes are gone. */
void rung_keep_value(struct exchange *x, struct slice value);
struct slice rung_value(const struct exchange *x);
/* INSPECT: value stands there. */
enum exchange_next rung_seen(
    struct exchange *x, struct slice value, int64_t left_ms);
/* INSPECT: nothing stands there. */
enum exchange_next rung_absent(struct exchange *x);
/* What TIME says, in ms; -1: nothing that can be understood. */
int64_t rung_time(const struct reply *reply);
/* What PTTL says. -2 is a key that went away meanwhile. */
int64_t rung_left(int64_t pttl);

#endif

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
    bool alone; /* it opens a transaction: nothing else may go meanwhile */
    /* RELEASE: its first command alone compares and deletes. */
    bool at_once;
    unsigned (*encode)(struct exchange *x, struct buf *out);
    enum exchange_next (*reply)(struct exchange *x, const struct reply *reply);
};

/* Bits of rung.climb. */
#define ON_UNSUPPORTED (1U << FAULT_UNSUPPORTED)
#define ON_REFUSED (ON_UNSUPPORTED | 1U << FAULT_DENIED)

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
unsigned watched_encode(struct exchange *x, struct buf *out);
enum exchange_next watched_reply(
    struct exchange *x, const struct reply *reply);

/* ---------------------------------------------------- what they decide with */

enum exchange_next rung_decide(
    struct exchange *x, enum outcome_kind kind, int64_t left_ms);
/* An error reply; what it means depends on its words and on the verb. */
enum exchange_next rung_refused(struct exchange *x, const struct reply *reply);
/* The connection carries something else than the answers to our commands. */
enum exchange_next rung_broken(struct exchange *x, const char *expected);
/* INSPECT: value stands there. */
enum exchange_next rung_seen(
    struct exchange *x, struct slice value, int64_t left_ms);
/* INSPECT: nothing stands there. */
enum exchange_next rung_absent(struct exchange *x);
/* What PTTL says. -2 is a key that went away meanwhile. */
int64_t rung_left(int64_t pttl);

#endif

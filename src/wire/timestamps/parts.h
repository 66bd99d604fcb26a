/* SPDX-License-Identifier: MIT */
/* What the files of this folder share: write.c acquires, extends and releases,
 * read.c learns the server's clock and inspects, takeover.c replaces. */
#ifndef NXLOCK_WIRE_TIMESTAMPS_PARTS_H
#define NXLOCK_WIRE_TIMESTAMPS_PARTS_H

#include "wire/classify.h"
#include "wire/strategy.h"
#include "wire/timestamps/format.h"
#include "wire/timestamps/server_clock.h"
#include "wire/value.h"

enum {
    STAMPED_SET,                    /* ACQUIRE: SETNX, and read the value */
    STAMPED_CHANGE,                 /* without WATCH: GETSET, DEL */
    STAMPED_LEARN = STEP_READ_ONLY, /* TIME, and try GETRANGE */
    STAMPED_PROBE,                  /* find out the clock without TIME */
    STAMPED_READ /* INSPECT; without WATCH: before a change */
};

unsigned stamped_encode(struct exchange *x, struct buf *out);
enum exchange_next stamped_reply(struct exchange *x, const struct reply *reply);
/* Reads a reply to TIME, in ms; -1: it is not one. */
int64_t stamped_time(const struct reply *reply);
bool stamped_encode_value(struct exchange *x, struct buf *out);
/* Takes the reply to TIME: sets the server's clock, and x->server_ms to its
 * time in ms, which is a lower bound for the commands that follow. */
void stamped_time_replied(struct exchange *x, const struct reply *reply);
enum exchange_next stamped_learn(struct exchange *x, const struct reply *reply);
enum exchange_next stamped_probe(struct exchange *x, const struct reply *reply);
enum exchange_next stamped_inspected(
    struct exchange *x, const struct reply *reply);

/* The earliest and the latest time that the server's clock may show now, ms. */
static inline int64_t stamped_low(const struct exchange *x)
{
    return server_clock_low(&x->dialect->stamps.clock, x->dialect->now);
}

static inline int64_t stamped_high(const struct exchange *x)
{
    return server_clock_high(&x->dialect->stamps.clock, x->dialect->now);
}

static inline int64_t stamped_left(int64_t end_s, int64_t now_ms)
{
    return end_s * 1000 > now_ms ? end_s * 1000 - now_ms : 0;
}

/* Everything needs the clock except a compare-and-delete under WATCH. */
static inline bool stamped_needs_clock(const struct exchange *x)
{
    return x->verb->kind != VERB_RELEASE || x->strategy->without_watch;
}

/* Is the reply an error of one of these faults (bits)? */
static inline bool stamped_refusal(const struct reply *reply, unsigned faults)
{
    return reply->kind == REPLY_ERROR &&
           (faults & 1U << classify_error(reply->bytes)) != 0;
}

static inline bool stamped_ours(const struct exchange *x, struct slice value)
{
    return value_is_of(value, x->verb->token);
}

static inline enum exchange_next stamped_fail(
    struct exchange *x, const char *words)
{
    struct reply error = {.kind = REPLY_ERROR, .bytes = slice_of(words)};
    return strategy_error_or_not_mine(x, &error);
}

#endif

/* SPDX-License-Identifier: MIT */
/* What the tests of acquire share: a machine started and driven by hand. */
#ifndef NXLOCK_TESTS_ACQUIRE_RIG_H
#define NXLOCK_TESTS_ACQUIRE_RIG_H

#include "core/acquire.h"
#include "unit/core_rig.h"

#define TTL_MS 1000
#define LEASE (988 * MS) /* of TTL_MS with 1 % */
#define BUDGET (100 * MS)
#define FIRST (10 * MS) /* of the delays; the first is 5 ... 10 ms */
#define MOST (80 * MS)

/* Takes all asks and writes them into words. */
static inline const char *drain(struct acquire *a, char *words)
{
    struct effect effect;
    words[0] = '\0';
    while (acquire_next(a, &effect))
        add_ask(words, &effect);
    return words;
}

#define assert_asks(a, expected)                                               \
    assert_string_equal(drain(a, (char[WORDS_MAX]){0}), expected)

static inline void begin(struct acquire *a, unsigned servers, uint64_t now,
    uint64_t wait_until, uint64_t end)
{
    static struct ballot ballots[MAX_SERVERS]; /* of one machine at a time */
    struct acquire_terms terms = {.servers = servers,
        .ballots = ballots,
        .ttl_ms = TTL_MS,
        .drift_ppm = 10000,
        .timeout_ns = 2 * NS_PER_S,
        .answer_timeout_ns = BUDGET,
        .wait_until = wait_until,
        .end = end};
    backoff_init(&a->backoff, FIRST, MOST, 7);
    acquire_start(a, &terms, now);
}

/* Begins at T0 and takes the first asks; wait and end: ns after T0 or NEVER. */
static inline void start(
    struct acquire *a, unsigned servers, uint64_t wait, uint64_t end)
{
    begin(a, servers, T0, deadline_after(T0, wait), deadline_after(T0, end));
    drain(a, (char[WORDS_MAX]){0});
}

/* One round, and two seconds for the call. */
static inline void start_try(struct acquire *a, unsigned servers)
{
    start(a, servers, 0, 2 * NS_PER_S);
}

static inline void say(
    struct acquire *a, unsigned server, struct outcome outcome, uint64_t now)
{
    acquire_outcome(a, server, &outcome, now);
}

/* All servers say it, now; then the asks are taken. */
static inline void all_say(
    struct acquire *a, struct outcome outcome, uint64_t now)
{
    for (unsigned i = 0; i < a->terms.servers; i++)
        acquire_outcome(a, i, &outcome, now);
    drain(a, (char[WORDS_MAX]){0});
}

/* What servers 0, 1, ... say, one letter each: g granted, b busy, f refused,
 * u cut; s: the round's time ends. */
static inline void play(struct acquire *a, const char *said, uint64_t now)
{
    for (unsigned i = 0; said[i] != '\0'; i++) {
        if (said[i] == 'g')
            say(a, i, granted(now), now);
        else if (said[i] == 'b')
            say(a, i, busy(LEFT_UNKNOWN), now);
        else if (said[i] == 'f')
            say(a, i, refused(FAULT_RETRY), now);
        else if (said[i] == 'u')
            say(a, i, cut(now), now);
        else
            acquire_tick(a, acquire_wake(a));
    }
}

/* Goes to the next round and returns the time it started at. */
static inline uint64_t next_round(struct acquire *a)
{
    uint64_t at = acquire_wake(a);
    assert_int_equal(acquire_verdict(a), VERDICT_OPEN);
    assert_true(at != NEVER);
    acquire_tick(a, at);
    return at;
}

#endif

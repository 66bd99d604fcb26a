/* SPDX-License-Identifier: MIT */
/* What the tests of a round share: a machine started and driven by hand. */
#ifndef NXLOCK_TESTS_ROUND_RIG_H
#define NXLOCK_TESTS_ROUND_RIG_H

#include "core/lease.h"
#include "core/round.h"
#include "unit/core_rig.h"

#define PPM 10000
#define LEASE (988 * MS) /* of 1000 ms with 1 % */
#define FIRST (10 * MS)  /* of the delays; the first is 5 ... 10 ms */
#define NOW (T0 + MS)    /* when all is said */
#define END (T0 + 2 * NS_PER_S)

/* Takes all asks and writes them into words. */
static inline const char *drain(struct round *r, char *words)
{
    struct effect effect;
    words[0] = '\0';
    while (round_next(r, &effect))
        add_ask(words, &effect);
    return words;
}

#define assert_asks(r, expected)                                               \
    assert_string_equal(drain(r, (char[WORDS_MAX]){0}), expected)

static inline void begin(
    struct round *r, enum round_kind kind, unsigned servers)
{
    static struct ballot ballots[MAX_SERVERS]; /* of one machine at a time */
    struct round_terms terms = {.kind = kind,
        .servers = servers,
        .ballots = ballots,
        .ttl_ms = 1000,
        .drift_ppm = PPM,
        .end = END};
    backoff_init(&r->backoff, FIRST, 8 * FIRST, 5);
    round_start(r, &terms, T0);
}

/* The same, and takes the first asks. */
static inline void start(
    struct round *r, enum round_kind kind, unsigned servers)
{
    begin(r, kind, servers);
    drain(r, (char[WORDS_MAX]){0});
}

static inline void say(struct round *r, unsigned server, struct outcome outcome)
{
    round_outcome(r, server, &outcome, NOW);
}

/* A fault that leaves a doubt, but is not asked again. */
static inline struct outcome doubt(void)
{
    struct outcome outcome = cut(T0);
    outcome.fault = FAULT_SERVER;
    return outcome;
}

/* What servers 0, 1, ... say: m mine, n not mine, o (occupied) seen, e
 * (empty) free, f refused, d a doubt; s: the call's time ends. */
static inline void play(struct round *r, const char *said)
{
    for (unsigned i = 0; said[i] != '\0'; i++) {
        if (said[i] == 'm')
            say(r, i, mine(T0, 1000));
        else if (said[i] == 'n')
            say(r, i, plain(OUTCOME_NOT_MINE));
        else if (said[i] == 'o')
            say(r, i, plain(OUTCOME_SEEN));
        else if (said[i] == 'e')
            say(r, i, plain(OUTCOME_FREE));
        else if (said[i] == 'f')
            say(r, i, refused(FAULT_RETRY));
        else if (said[i] == 'd')
            say(r, i, doubt());
        else
            round_tick(r, END);
    }
}

struct vote {
    const char *said; /* as play() reads it */
    unsigned servers;
    const char *asks; /* after it */
    enum verdict verdict;
};

/* A whole row, so that a failure names it. */
static inline void write_vote(
    char *line, const struct vote *vote, const char *asks, enum verdict verdict)
{
    snprintf(line, 2 * WORDS_MAX, "%s of %u: [%s] verdict %d", vote->said,
        vote->servers, asks, (int)verdict);
}

static inline void check_votes(
    enum round_kind kind, const struct vote *table, size_t rows)
{
    for (size_t i = 0; i < rows; i++) {
        struct round r;
        char asks[WORDS_MAX], got[2 * WORDS_MAX], expected[2 * WORDS_MAX];
        start(&r, kind, table[i].servers);
        play(&r, table[i].said);
        drain(&r, asks);
        write_vote(got, &table[i], asks, round_verdict(&r));
        write_vote(expected, &table[i], table[i].asks, table[i].verdict);
        assert_string_equal(got, expected);
    }
}

#endif

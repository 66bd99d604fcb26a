/* SPDX-License-Identifier: MIT */
/*
 * A strategy is one way to carry out a verb. The strategies of a verb are rows
 * of a table (strategies.c), best first; which one a server takes is found by
 * trying: an error that says "unknown" or "not allowed" proves that nothing was
 * done. This header has what a strategy is, what it sees (the exchange it
 * carries out and the dialect of the connection) and what it decides with.
 *
 * A strategy's functions see an exchange at rest: encode() appends the commands
 * of x->step and returns how many replies they have; reply() takes one of
 * these, x->due being how many are still to come.
 */
#ifndef NXLOCK_WIRE_STRATEGY_H
#define NXLOCK_WIRE_STRATEGY_H

#include "base/verb.h"
#include "wire/command.h"
#include "wire/reply.h"
#include "wire/timestamps/timestamps.h"

struct exchange;
struct strategy;

/* What has been learnt of one connection: which strategy each verb works by. It
 * begins anew with every connection, for another server may answer there. */
struct dialect {
    /* Of the client, and kept from one connection to the next. */
    bool ttl_in_values;  /* strategies whose ttl_is_in_value, and no others */
    bool interop;        /* what others left that way is taken over */
    uint32_t max_ttl_ms; /* of any lock of anybody */

    unsigned char at[VERB_KINDS];          /* the strategy that worked last */
    unsigned char at_with_end[VERB_KINDS]; /* for a value that tells its end */
    /* The exchange whose transaction is open: nothing else may go. */
    const struct exchange *in_transaction;
    unsigned connection; /* its number: steps of an exchange stay on one */

    uint64_t now; /* of the driver, before each encode and each reply */
    /* Scripts are refused: whether there is another way to end a lock is asked
     * before the next acquire. Kept until the next handshake tells. */
    bool scripts_unverified;
    bool unwatched; /* ... and WATCH is none */
    /* A proxy that closes the connection at a command without a key, and at
     * those it does not know: nothing of the kind is sent. */
    bool keyed_only;
    struct timestamps_server stamps;
};

/* Another connection begins: nothing is known. */
void dialect_begin(struct dialect *dialect);

/* What an exchange is busy with. */
enum exchange_phase {
    PHASE_VERB,
    /* A key without a TTL was found: does its value tell when the lock is
     * over? Then an acquire may replace it. */
    PHASE_CHECK_VALUE,
    /* Neither EXEC nor DISCARD was allowed: no other strategy can be tried. */
    PHASE_STUCK
};

/* In which form the token is on the server, or may be. */
enum written {
    WRITTEN_TOKEN, /* as it is; the key has the TTL */
    WRITTEN_END,   /* in a value that tells its end; the key has no TTL */
    /* Likewise, and it may have replaced another owner's value too late: it
     * must not be deleted, for that owner's lock may hang on it. */
    WRITTEN_OVER
};

struct exchange {
    const struct verb *verb;
    struct kept_commands *kept;
    struct dialect *dialect; /* of the connection it was encoded for, or NULL */
    const struct strategy *strategy;
    unsigned connection; /* the number of dialect's connection */
    unsigned char at;    /* which strategy of the verb that is */
    unsigned char tried; /* strategies given up so far, as bits */
    unsigned char step;
    unsigned char round; /* how often a transaction was begun anew */
    unsigned char due;   /* replies still to come of what was encoded */
    unsigned char reads; /* STEP_WATCH: those between WATCH's and MULTI's */
    bool whole;          /* scripts go with their text, as EVAL */
    enum exchange_phase phase : 8;
    /* Known from the acquire or an inspection, for all that follows with this
     * token. */
    enum written written : 8;
    enum written written_before : 8; /* the present step */
    /* The first refusal, while others are tried; FAULT_NONE: there was none */
    enum fault refused : 8;
    int64_t read;      /* a number that an earlier reply gave */
    uint64_t asked_at; /* the clock when the step was encoded */
    uint64_t check_at; /* ACQUIRE: no PHASE_CHECK_VALUE before that again */
    struct outcome outcome;
    /* What has to outlive its reply: words or a value that decided while other
     * replies are due. So do not copy an exchange. Both are EXCHANGE_TEXT
     * bytes, allocated when they are first needed, and freed by
     * exchange_free(). */
    char *words;
    char *first;        /* of the first refusal */
    uint16_t value_len; /* of a value in words */
    uint16_t first_len;
    struct timestamps_exchange stamps;
};

/* The longest text that is stored for later. */
#define EXCHANGE_TEXT 512

/* The most replies that one step has. */
#define EXCHANGE_REPLIES 5

enum exchange_next {
    EXCHANGE_WAIT,  /* more replies are due */
    EXCHANGE_AGAIN, /* encode the next step */
    EXCHANGE_DONE   /* exchange.outcome is final (sent_at is not filled in) */
};

struct strategy {
    const char *name;  /* for people */
    unsigned fallback; /* faults, as bits, that mean: try the next one */
    /* RELEASE: its first command alone compares and deletes. */
    bool at_once;
    bool direct; /* not where dialect.keyed_only; nor is what has watched */
    /* The value tells when the lock is over, by the server's clock; its TTL
     * cannot be shortened. */
    bool ttl_is_in_value;
    bool weak; /* its promises are weaker: people are warned */
    /* Neither compares and changes in one command nor under WATCH: taken only
     * where the client orders dialect.ttl_in_values. */
    bool without_watch;
    unsigned (*encode)(struct exchange *x, struct buf *out);
    enum exchange_next (*reply)(struct exchange *x, const struct reply *reply);
    const struct watched *watched; /* what its transaction is made of */
};

/* Bits of strategy.fallback. */
#define ON_UNSUPPORTED (1U << FAULT_UNSUPPORTED)
#define ON_REFUSED                                                             \
    (ON_UNSUPPORTED | 1U << FAULT_DENIED | 1U << FAULT_SCRIPT_DENIED)

/* Steps have numbers of the strategy's own, from 0 on. But from STEP_ASK on the
 * keys of a lock are not written, with the exception of STEP_EXEC; and from
 * STEP_WATCH on the connection is in a transaction (see watched.c). */
enum { STEP_ASK = 8, STEP_RIGHTS = 15, STEP_WATCH = 16, STEP_EXEC, STEP_LEAVE };

/* GRANTED, the outcome's zero, means "not decided yet" before the end. */
static inline bool strategy_open(const struct exchange *x)
{
    return x->outcome.kind == OUTCOME_GRANTED;
}

/* ------------------------------------------- what strategies are made of */

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
unsigned native_keep(struct exchange *x, struct buf *out);
enum exchange_next native_kept(struct exchange *x, const struct reply *reply);
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
enum exchange_next watched_reply(struct exchange *x, const struct reply *reply);
extern const struct watched watched_token; /* EXTEND, RELEASE, KEEP */

/* rights.c: before an acquire where dialect.scripts_unverified: may what is
 * acquired be released? */
bool rights_unverified(const struct exchange *x);
extern const struct strategy rights_strategy;

/* fenced.c: an acquire that draws a number, verb.counter; in
 * PHASE_CHECK_VALUE, in the place of the expired strategy_value() */
unsigned fenced_encode(struct exchange *x, struct buf *out);
enum exchange_next fenced_reply(struct exchange *x, const struct reply *reply);
extern const struct strategy fenced_strategy;

/* asked.c: a command of the caller's own that only reads */
extern const struct strategy asked_strategy;

/* ---------------------------------------------------- what they decide with */

enum exchange_next strategy_decide(
    struct exchange *x, enum outcome_kind kind, int64_t left_ms);
/* Copies as much of text as there is room for into *room. Returns how much; 0:
 * there is nothing to copy, or no memory. */
uint16_t strategy_store(char **room, struct slice text);
/* An error reply; what it means depends on its words and on the verb. */
enum exchange_next strategy_refused(
    struct exchange *x, const struct reply *reply);
/* The connection carries something else than the answers to our commands. */
enum exchange_next strategy_broken(struct exchange *x, const char *expected);
/* A value that is needed when its reply's bytes are gone. Without memory for it
 * the exchange is decided: a fault. */
void strategy_keep_value(struct exchange *x, struct slice value);
struct slice strategy_value(const struct exchange *x);
/* INSPECT: the key has this value. */
enum exchange_next strategy_seen(
    struct exchange *x, struct slice value, int64_t left_ms);
/* INSPECT: there is no such key. */
enum exchange_next strategy_absent(struct exchange *x);
/* What PTTL says. -2 is a key that went away meanwhile. */
int64_t strategy_left(int64_t pttl);

#endif

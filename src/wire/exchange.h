/* SPDX-License-Identifier: MIT */
/*
 * One verb on one connection, from its first byte to its outcome: which
 * commands go out, how many replies they have, and what the replies mean. A
 * small machine, because a verb can take more than one step (EVALSHA, then
 * EVAL after NOSCRIPT) and more than one way (see ladder.h).
 */
#ifndef NXLOCK_WIRE_EXCHANGE_H
#define NXLOCK_WIRE_EXCHANGE_H

#include "wire/command.h"
#include "wire/ladder.h"
#include "wire/reply.h"

struct exchange {
    const struct verb *verb;
    struct kept_commands *kept;
    struct ladder *ladder; /* of the connection it was encoded for, or NULL */
    unsigned connection;   /* the number of that one */
    const struct rung *rung;
    unsigned char at;    /* which rung of the verb that is */
    unsigned char tried; /* rungs given up so far, as bits */
    unsigned char step;
    unsigned char round; /* how often a transaction was begun anew */
    unsigned char due; /* replies still to come of what was encoded */
    unsigned char reads; /* STEP_WATCH: those between WATCH's and MULTI's */
    bool stuck;        /* WATCH: neither EXEC nor DISCARD was allowed */
    bool whole;        /* scripts go with their text, as EVAL */
    bool closer;       /* a key without an end is looked at: is it a time? */
    /* The token stands there as a timestamp, or may: known from the acquire
     * or an inspection, for all that follows with this token. */
    bool stamped;
    /* The token may stand in the place of another one's by a bare GETSET that
     * came too late: it must not be deleted, for another one's lock may hang
     * on it. Remembered as stamped is. */
    bool no_undo;
    int64_t read;      /* a number that an earlier reply gave */
    uint64_t asked_at; /* the clock when the step was encoded */
    bool set;          /* timestamps: SETNX has set the key */
    bool no_undo_before; /* ... no_undo, when a bare GETSET was sent */
    int64_t end_s;     /* ... the time that was written, or sent to be */
    uint64_t look_at;  /* ACQUIRE: not closer before that again */
    struct outcome outcome;
    /* What has to outlive its reply: words or a value that decided while other
     * replies are due. So do not copy an exchange. */
    char words[512];
    size_t value_len;   /* of a value in it */
    char first[512];    /* the first refusal's, while other rungs are tried */
    size_t first_len;
    enum fault refused; /* that refusal; FAULT_NONE: there was none */
};

/* The most replies that one step has. */
#define EXCHANGE_REPLIES 5

enum exchange_next {
    EXCHANGE_WAIT,  /* more replies are due */
    EXCHANGE_AGAIN, /* encode the next step */
    EXCHANGE_DONE   /* exchange.outcome is final (sent_at is not filled in) */
};

/* verb (and what it points to) and kept outlive the exchange; kept may be
 * NULL. */
void exchange_begin(struct exchange *x, const struct verb *verb,
    struct kept_commands *kept);

/* The same, where x has been used for this token before (or is all zero): in
 * what form it stands is remembered, until the next ACQUIRE. */
void exchange_go_on(struct exchange *x, const struct verb *verb,
    struct kept_commands *kept);

/* x is about the same token as from: what is known of how that stands. */
void exchange_inherit(struct exchange *x, const struct exchange *from);

/* x goes on for verb, the same one in another place, without kept commands;
 * nobody listens to from any more. */
void exchange_hand_over(struct exchange *from, struct exchange *x,
    const struct verb *verb);

/* May its present step go out on this connection now? Else another exchange's
 * transaction is open there: everything would become a part of it. */
bool exchange_may_go(const struct exchange *x, const struct ladder *ladder);

/* Appends the commands of the present step. Returns how many replies they
 * will have (exchange.due), 0: no memory, out as before. On another connection
 * than the step before it begins anew. The ladder outlives the exchange. */
unsigned exchange_encode(
    struct exchange *x, struct ladder *ladder, struct buf *out);

enum exchange_next exchange_reply(
    struct exchange *x, const struct reply *reply);

/* ACQUIRE, under way: may what was sent of its present step have written the
 * token, which of its due replies says so? -1: none does, or that one has come
 * already: then nothing is written later. */
int exchange_writes(const struct exchange *x, bool answered);

/* Its transaction had been opened before its present step. */
bool exchange_opened(const struct exchange *x);

/* Does the one command on its way compare and change by itself? */
bool exchange_compares(const struct exchange *x);

/* Nobody listens to its replies any more. True: a transaction of its own is
 * open on the connection, and has to be ended there by exchange_discard(),
 * one reply, before anything else goes. */
bool exchange_leave(struct exchange *x);
bool exchange_discard(struct buf *out);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The first commands on a new connection, sent together: AUTH, SELECT, CLIENT
 * ID, INFO, for records CONFIG GET (later, if the first record is begun over a
 * connection that is up), SCRIPT LOAD. A refused AUTH or SELECT ends
 * the connection, because a lock command after it would run as another user or
 * in database 0. The reply to INFO is still read then: a Sentinel refuses both,
 * and the caller needs to know that it is one. CLIENT ID and what follows it
 * may be refused; then less is known, and scripts are sent with their text.
 *
 * A connection that only listens to a channel has a brief handshake: PING in
 * place of CLIENT ID, INFO and SCRIPT LOAD.
 *
 * After INFO has told what the server is, it may be asked more: a node of a
 * Redis Cluster which slots it serves; a primary that was promoted, if the
 * client guards against failovers, since when it has been one; and when a
 * primary has handed over to another one, both what time it is, several times.
 */
#ifndef NXLOCK_WIRE_HANDSHAKE_H
#define NXLOCK_WIRE_HANDSHAKE_H

#include "base/buf.h"
#include "base/slice.h"
#include "model/fault.h"
#include "wire/facts.h"
#include "wire/reply.h"
#include "wire/script.h"

/* The scripts that it loads. The others are sent by EVAL, or by EVALSHA and
 * then by EVAL. */
enum { SCRIPTS_LOADED = 3 };
extern const enum script_id scripts_loaded[SCRIPTS_LOADED];

/* For how long a server has been the primary matters if it was promoted, or has
 * started from an RDB file, which look alike. */
struct age_terms {
    struct slice marker; /* the key that remembers it: see scripts/marker.lua */
    int64_t needed_s;    /* nothing is asked beyond that age */
    const struct facts *last; /* of the connection before */
    bool by_replicas;         /* the connections of its replicas are a proof */
};

struct handshake_terms {
    struct slice user;     /* empty: none */
    struct slice password; /* data NULL: no AUTH is sent */
    unsigned db;           /* 0: no SELECT is sent */
    bool needs_info;       /* fail while the server cannot answer INFO */
    bool asks_fsync;       /* for records: how often is the AOF synced? */
    bool brief;    /* PING in place of CLIENT ID, INFO and SCRIPT LOAD */
    bool sentinel; /* it must be a Sentinel, which is asked for INFO alone */
    const struct age_terms *age; /* NULL: its age as a primary is not asked */
};

struct handshake {
    const struct handshake_terms *terms;
    bool asks_fsync; /* CONFIG GET was sent, with the others or later */
    unsigned char step;
    struct facts facts;
    /* Set by the caller: when the last question was asked, before
     * handshake_ask(); and when the reply came, before handshake_reply(). */
    uint64_t asked_at, answered_at;
    unsigned char clock_readings;
    /* What was asked last beyond the first commands. */
    enum {
        QUESTION_NONE,
        QUESTION_SLOTS,
        QUESTION_CLOCK,
        QUESTION_REPLICAS,
        QUESTION_MARKER,
        QUESTION_END
    } question;
    enum fault refused; /* why AUTH or SELECT was refused; INFO is pending */
    bool login_refused; /* it was AUTH */
    /* Why, once AUTH or SELECT was refused or the handshake has failed; "" if
     * the text of the last reply says it. After DONE with a Sentinel: the
     * services that it monitors, "orders at 10.0.0.7:6379". */
    char why[160];
};

enum handshake_next {
    HANDSHAKE_WAIT,
    HANDSHAKE_ASK, /* call handshake_ask() next */
    HANDSHAKE_DONE,
    HANDSHAKE_FAILED
};

/* Appends all commands. Returns how many replies follow; 0: no memory. */
unsigned handshake_begin(
    struct handshake *h, const struct handshake_terms *terms, struct buf *out);

/* FAILED: *fault is set; h->why has the text, or the reply if it is empty. */
enum handshake_next handshake_reply(
    struct handshake *h, const struct reply *reply, enum fault *fault);

/* Appends the next question, which has one reply. False: no memory. */
bool handshake_ask(struct handshake *h, struct buf *out);

/* After DONE, once: appends the CONFIG GET that was not sent because nobody had
 * begun work yet; terms->asks_fsync is set now. It has one reply. false: no
 * memory. */
bool handshake_ask_fsync(struct handshake *h, struct buf *out);

/* Takes that reply. False: it cannot be the answer. */
bool handshake_take_fsync(struct facts *facts, const struct reply *reply);

/* An error that a server sends before it closes the connection, even if nothing
 * was sent: too many clients, or protected mode. handshake_reply() fails. */
bool handshake_is_farewell(const struct reply *reply);

/* Has nothing but AUTH and SELECT been answered? If the connection ends then,
 * the peer may be one that does not know CLIENT and INFO. */
bool handshake_unanswered(const struct handshake *h);

/* May lock commands follow without waiting for the replies? Yes without
 * credentials and in database 0: then no refusal can change what they mean. */
bool handshake_is_minimal(const struct handshake_terms *terms);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A strategy is one way to carry out a verb. The strategies of a verb are rows
 * of a table (strategies.c), best first. Which one a server accepts is found by
 * trying: an error that says "unknown" or "not allowed" proves that nothing was
 * done. This header defines a strategy, its input (the exchange that it carries
 * out and the dialect of the connection) and its ways to decide.
 *
 * encode() appends the commands of x->step and returns how many replies they
 * will have. reply() takes one of these; x->due says how many follow it.
 */
#ifndef NXLOCK_WIRE_STRATEGY_H
#define NXLOCK_WIRE_STRATEGY_H

#include "model/verb.h"
#include "wire/command.h"
#include "wire/reply.h"
#include "wire/timestamps/timestamps.h"

struct exchange;
struct strategy;

/* What is known about one connection: which strategy works for each verb. Each
 * new connection starts empty, because another server may answer there. */
struct dialect {
    /* Settings of the client, the same for all its connections. */
    bool ttl_in_values;   /* scheme=timestamp: only with ttl_is_in_value */
    bool interop;         /* take over what other programs left that way */
    bool no_line;         /* a release hands over to nobody */
    bool several_servers; /* the client has more than one */
    uint32_t max_ttl_ms;  /* the longest TTL of any client's locks */

    unsigned char preferred[VERB_KINDS]; /* the strategy that worked last */
    /* The same for a token in a timestamp: a value that contains the end of the
     * lease. */
    unsigned char preferred_with_value_end[VERB_KINDS];
    unsigned worked; /* verbs that the server has carried out, as bits */
    /* The exchange whose transaction is open: nothing else may be sent. */
    const struct exchange *in_transaction;
    unsigned connection; /* its number: steps of an exchange stay on one */

    uint64_t now; /* set by the driver before each encode and each reply */
    /* Scripts were refused: check before the next acquire whether a lock could
     * be released at all. Remembered until the next handshake. */
    bool scripts_unverified;
    bool no_watch; /* that check found WATCH refused */
    /* Which scripts that acquire a lock the server has, see
     * scripted_acquires_as_text(): [x->shared]. */
    bool acquire_loaded[2];
    /* What is known of the script that strategy_append_left() sends. */
    enum {
        HOLD_BACK_UNKNOWN,
        HOLD_BACK_LOADED,
        HOLD_BACK_REFUSED
    } hold_back : 8;
    /* Why the last JOIN or STAY was refused; FAULT_NONE: it was not. No token
     * joins before line_again: the refusal was of the command. It is 0 after a
     * refusal that may be about one name. */
    enum fault line_refused;
    uint64_t line_again;
    struct timestamps_server stamps;
};

/* Resets what is known, for a new connection. */
void dialect_begin(struct dialect *dialect);

/* How long a refusal is remembered that somebody may end while the connection
 * stays: without a memory each attempt would be an entry of the server's ACL
 * LOG. */
#define REFUSAL_NS (5 * NS_PER_S)

/* Numbers of the scripts, which are Lua's, are exact below this. */
#define EXACT_BELOW (INT64_C(1) << 53)

/* What an exchange is doing. */
enum exchange_phase {
    EXCHANGE_PHASE_VERB,
    /* A key without a TTL was found: check whether its value contains the time
     * at which the lock ends. If that is past, an acquire may replace it. */
    EXCHANGE_PHASE_CHECK_VALUE,
    /* Neither EXEC nor DISCARD is allowed: no other strategy can be tried. */
    EXCHANGE_PHASE_STUCK
};

/* In which form the token is on the server, or may be. */
enum written {
    WRITTEN_TOKEN, /* the value is the token; the key has a TTL */
    WRITTEN_END,   /* the value contains the end; the key has no TTL */
    /* Likewise, but it may have replaced another owner's valid value. Do not
     * delete it: it still keeps others away from that owner's lock. */
    WRITTEN_OVER
};

struct exchange {
    const struct verb *verb;
    struct command_cache *cache;
    struct dialect *dialect; /* of the connection it was encoded for, or NULL */
    const struct strategy *strategy;
    unsigned connection;          /* the number of dialect's connection */
    unsigned char strategy_index; /* its number among the verb's strategies */
    unsigned char tried;          /* strategies that were refused, as bits */
    unsigned char step;
    unsigned char write_tries; /* how often a write was begun again, because the
                                * key had changed: under WATCH, or by SETNX */
    unsigned char due;         /* replies still due to what was encoded */
    unsigned char reads; /* STEP_WATCH: replies between WATCH's and MULTI's */
    bool always_text;    /* always send scripts with their text, as EVAL */
    bool asks_kind;      /* strategy_append_left(): by which command */
    bool shared;         /* its token shares the lock; since it was encoded */
    enum exchange_phase phase : 8;
    /* Known from the acquire or an inspection, and used by all later verbs for
     * this token. */
    enum written written : 8;
    enum written written_before : 8; /* before the current step */
    enum fault refused : 8; /* the first refusal; FAULT_NONE: none yet */
    /* From an earlier reply of the step, for those that follow. */
    int64_t ttl;             /* in the units of the reply; < 0: none, no key */
    int64_t server_ms;       /* the time at the server */
    int64_t refusals;        /* rights.c: commands, as bits */
    unsigned char next_step; /* fenced.c */
    /* Its command may be for several names (verb.after), and is replied to with
     * how many were acquired: how many it asks for, and which is its own */
    unsigned char names, name;
    uint64_t encoded_at; /* when the current step was encoded */
    uint64_t check_at;   /* ACQUIRE: earliest next EXCHANGE_PHASE_CHECK_VALUE */
    /* The lock could not be handed over: not tried again before this time. It
     * may be this name's line that is damaged or not permitted, so the
     * connection remembers nothing of it. */
    uint64_t hand_over_again;
    struct outcome outcome;
    /* Text or a value that is needed after its reply. The outcome points into
     * it, so do not copy an exchange. Both are EXCHANGE_TEXT bytes, allocated
     * when first needed, and freed by exchange_free(). */
    char *stored;
    char *first;        /* text of the first refusal, while others are tried */
    uint16_t value_len; /* of a value in stored */
    uint16_t first_len;
    struct timestamps_exchange stamps;
};

/* The form of the token that the verb is about. That of another holder's value
 * is unknown until it is read. */
static inline enum written exchange_form(const struct exchange *x)
{
    return x->verb && x->verb->of_other_holder ? WRITTEN_TOKEN : x->written;
}

/* The longest text that is stored for later. */
#define EXCHANGE_TEXT 512

/* The largest number of replies to one step. */
#define EXCHANGE_REPLIES 5

enum exchange_next {
    EXCHANGE_WAIT,  /* more replies are due */
    EXCHANGE_AGAIN, /* encode the next step */
    EXCHANGE_DONE   /* exchange.outcome is final (sent_at is not filled in) */
};

struct strategy {
    const char *name;         /* for people */
    struct command_form form; /* of native_set() and scripted_encode() */
    /* scripted_encode(): always with the script's text. An acquire that is
     * cancelled is simpler to undo if it has only one step. */
    bool is_as_text;
    unsigned fallback; /* faults, as bits: then try the next strategy */
    /* RELEASE: one command compares, deletes, and removes the token from its
     * line. */
    bool is_script;
    /* EXTEND: a lease that is longer is not shortened, but written again. */
    bool always_writes;
    /* The value contains the time of the server's clock at which the lock ends;
     * this cannot be moved to an earlier time. */
    bool ttl_is_in_value;
    /* INSPECT: its reply is stored in verb.values, if that is set. */
    bool lists;
    /* ACQUIRE: its command may be for several names (verb.after), and its reply
     * is how many of them it has acquired. */
    bool counts_names;
    bool weak; /* its promises are weaker: users are warned */
    /* Compares and changes neither in one command nor under WATCH: used only
     * with dialect.ttl_in_values, which the user has to ask for. */
    bool without_watch;
    unsigned (*encode)(struct exchange *x, struct buf *out);
    enum exchange_next (*reply)(struct exchange *x, const struct reply *reply);
    const struct watched *watched; /* what its transaction is made of */
};

/* Bits of strategy.fallback. Not FAULT_DENIED: then the connection is refused,
 * not this command, so trying another command is pointless. */
#define ON_UNSUPPORTED (1U << FAULT_UNSUPPORTED)
#define ON_REFUSED                                                             \
    (ON_UNSUPPORTED | 1U << FAULT_NO_PERMISSION | 1U << FAULT_SCRIPT_DENIED)
/* Of an INSPECT that reads a string: see fall_back() in exchange.c. */
#define ON_REFUSED_OR_NO_STRING (ON_REFUSED | 1U << FAULT_WRONG_TYPE)
/* A reply is of one of the classes up to this one; those after it are core's.
 */
_Static_assert(FAULT_SLOTS < 32, "strategy.fallback has a bit for each");

/* Each strategy numbers its steps from 0. Steps from STEP_READ_ONLY on do not
 * write a lock's keys, except for STEP_EXEC; from STEP_WATCH on the connection
 * is in a transaction (watched.c). */
enum {
    STEP_READ_ONLY = 8,
    STEP_RIGHTS = 15,
    STEP_WATCH = 16,
    STEP_EXEC,
    STEP_DISCARD
};

static inline bool strategy_undecided(const struct exchange *x)
{
    return x->outcome.kind == OUTCOME_NONE;
}

/* Is the reply to the current step, in any form, stored in verb.values? */
static inline bool strategy_stores_reply(const struct exchange *x)
{
    const struct verb *verb = x->verb;
    return verb_traits[verb->kind].has_values ||
           (verb->values && x->strategy && x->strategy->lists);
}

/* ------------------------------------------- what strategies are made of */

/* scripted.c: one script, by its hash or with its text.
 * scripted_done_or_not_mine() is for each script that replies 1 if it did it,
 * or 0 if the key does not hold the token: CAP_TTL, and RELEASE once its other
 * replies are excluded. */
unsigned scripted_encode(struct exchange *x, struct buf *out);
enum exchange_next scripted_extended(
    struct exchange *x, const struct reply *reply);
enum exchange_next scripted_released(
    struct exchange *x, const struct reply *reply);
enum exchange_next scripted_done_or_not_mine(
    struct exchange *x, const struct reply *reply);
unsigned scripted_inspect(struct exchange *x, struct buf *out);
/* ACQUIRE with verb.after. */
unsigned scripted_after(struct exchange *x, struct buf *out);
enum exchange_next scripted_acquired_after(
    struct exchange *x, const struct reply *reply);
enum exchange_next scripted_inspected(
    struct exchange *x, const struct reply *reply);
/* How a script that gives the key up hands it over: see release.lua. */
struct hand_over_arg {
    char text[12];
};
struct hand_over_arg scripted_hand_over(const struct exchange *x);
/* The script has removed the key, but could not hand the lock over. */
void scripted_not_handed_over(struct exchange *x);
/* Is the script sent with its text in this step? */
bool scripted_as_text(const struct exchange *x);
/* Does the reply say that the server does not have the script? Then the next
 * step sends it with its text. */
bool scripted_wants_text(struct exchange *x, const struct reply *reply);
/* The same for a script that acquires a lock. Of several servers the last one
 * to answer is not waited for, and what it answers then is not read. If it did
 * not have the script, it would never be sent its text, and never hold a lock.
 * So its text is sent, unless the last answer from there has shown that it has
 * the script. */
bool scripted_acquires_as_text(struct exchange *x);
/* There was such an answer. */
void scripted_acquire_is_loaded(struct exchange *x);

/* shared.c: ACQUIRE and INSPECT of a token that shares its lock */
extern const struct strategy shared_take, shared_inspect;

/* native.c: SET NX PX, and reading. Behind the command of an acquire, with
 * verb.want_left, a second one asks about the holder. */
bool strategy_append_left(struct exchange *x, struct buf *out);
/* Its reply adds to the outcome and never decides it, unless it cannot be its
 * reply. */
enum exchange_next strategy_left_replied(
    struct exchange *x, const struct reply *reply);
unsigned native_set(struct exchange *x, struct buf *out);
enum exchange_next native_acquired(
    struct exchange *x, const struct reply *reply);
unsigned native_read(struct exchange *x, struct buf *out);
enum exchange_next native_inspected(
    struct exchange *x, const struct reply *reply);

/* watched.c: read, compare here, change under WATCH */
struct watched {
    /* Returns how many replies there will be, 1 to 3; 0: no memory. */
    unsigned (*read)(struct exchange *x, struct buf *out);
    /* Takes one of these replies, which is not an error; x->due - 1 more
     * follow. If it decides the outcome, nothing is changed. */
    void (*judge)(struct exchange *x, const struct reply *reply);
    /* The one command that changes the key, and its reply (out of EXEC's),
     * which decides the outcome. */
    bool (*change)(struct exchange *x, struct buf *out);
    enum exchange_next (*changed)(
        struct exchange *x, const struct reply *reply);
};
unsigned watched_encode(struct exchange *x, struct buf *out);
enum exchange_next watched_reply(struct exchange *x, const struct reply *reply);
extern const struct watched watched_token; /* EXTEND, RELEASE, CAP_TTL */

/* rights.c: with dialect.scripts_unverified, before an acquire: checks whether
 * the lock could be released */
bool rights_unverified(const struct exchange *x);
extern const struct strategy rights_strategy;

/* fenced.c: an acquire with a fencing token (verb.counter); in
 * EXCHANGE_PHASE_CHECK_VALUE it replaces the expired strategy_value() */
unsigned fenced_encode(struct exchange *x, struct buf *out);
enum exchange_next fenced_reply(struct exchange *x, const struct reply *reply);
extern const struct strategy fenced_strategy;
/* The shortest TTL of a counter. */
uint64_t fenced_counter_ttl_ms(const struct exchange *x);

/* line.c: JOIN and STAY */
extern const struct strategy line_strategy;

/* once.c: BEGIN and LOOK, TELL, UNDO_BEGIN, FORGET */
extern const struct strategy once_begin_strategy, once_tell_strategy,
    once_undo_begin_strategy, once_forget_strategy;

/* query.c: the command of a query */
extern const struct strategy query_strategy;

/* subscribed.c: listening to a channel */
extern const struct strategy subscribed_strategy;

/* --------------------------------------------------------- how they decide */

enum exchange_next strategy_decide(
    struct exchange *x, enum outcome_kind kind, int64_t left_ms);
/* Copies as much of text as there is room for into *room. Returns how much; 0:
 * there is nothing to copy, or no memory. */
uint16_t strategy_store(char **room, struct slice text);
/* Decides that there is no answer. unsure: the command may have been applied.
 */
enum exchange_next strategy_no_answer(
    struct exchange *x, enum fault fault, struct slice text, bool unsure);
/* Decides by an error reply that there is no answer. */
enum exchange_next strategy_error_reply(
    struct exchange *x, const struct reply *reply);
/* Likewise; but it is an answer, "not mine", if the verb asks whether the key
 * holds the token, and the key is of another type. For other verbs, such as
 * ACQUIRE, it is the same as strategy_error_reply(). */
enum exchange_next strategy_error_or_not_mine(
    struct exchange *x, const struct reply *reply);
/* Decides that the reply cannot be an answer to our command. */
enum exchange_next strategy_bad_reply(struct exchange *x, const char *expected);
/* Saves a value that is needed after its reply. Without memory for it the
 * exchange is decided: a fault. */
void strategy_save_value(struct exchange *x, struct slice value);
struct slice strategy_value(const struct exchange *x);
/* INSPECT: the key has this value. */
enum exchange_next strategy_seen(
    struct exchange *x, struct slice value, int64_t left_ms);
/* INSPECT: there is no such key. */
enum exchange_next strategy_absent(struct exchange *x);
/* Converts a reply to PTTL; -2 is a key that has expired in the meantime. */
int64_t strategy_left_ms(int64_t pttl);

#endif

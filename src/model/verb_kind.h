/* SPDX-License-Identifier: MIT */
/*
 * The kinds of verbs, and how they differ: one row of verb_traits each. What a
 * server is sent for them is in wire/strategies.c.
 *
 * Invariant: the order of the kinds means nothing, and a rule that holds for
 * some of them is a column here. Only wire names them where it writes their
 * commands and reads the replies.
 */
#ifndef NXLOCK_MODEL_VERB_KIND_H
#define NXLOCK_MODEL_VERB_KIND_H

#include <stdbool.h>

enum verb_kind {
    VERB_ACQUIRE, /* set key to token with ttl if the key is free */
    VERB_EXTEND,  /* if the key holds token: set its TTL to ttl_ms, or leave a
                   * longer one */
    VERB_RELEASE, /* if the key holds token: delete it */
    VERB_INSPECT, /* read the value and its TTL */
    VERB_CAP_TTL, /* if the key holds token: set its TTL to ttl_ms, even if that
                   * is shorter */
    VERB_RAISE,   /* raise the counter to .fence at least, if the key holds
                   * token; 0: to the next number */
    VERB_QUERY,   /* any command: .args, answered in .values */
    /* As ACQUIRE with a lease of ttl_ms, but if the key is taken the token
     * joins its line, where a release may hand the lock over to it. */
    VERB_JOIN,
    /* The token, which is in line, still waits. Grants the lock if it is free
     * and this token is the first in line that can have it. */
    VERB_STAY,
    VERB_SUBSCRIBE, /* listen to the channel .key */
    /* Work that must be done once: .once, with the lock's key. As ACQUIRE,
     * which also records that the work has begun; a key that holds the token
     * already, after a wait in line, counts as free. */
    VERB_BEGIN,
    VERB_READ_RECORD, /* what would BEGIN find? */
    /* Record the outcome of the work that the token began; delete the key if
     * it holds the token. */
    VERB_TELL,
    VERB_FORGET, /* remove the record, if it is still the one that was seen */
    /* A BEGIN that its caller never learned of: if the token began, record that
     * nothing happened; and delete the key if it holds the token. */
    VERB_UNDO_BEGIN,
    VERB_KINDS
};

/* What a request may leave at the server if it is cancelled, which has to be
 * removed (core/cleanup.h). */
enum verb_residue {
    RESIDUE_NONE,
    RESIDUE_LATE_KEY, /* the key, which it may even set later */
    RESIDUE_TOKEN,    /* the token, in the key or in line, but not later */
    RESIDUE_OWN_KEY   /* the key, which it should have deleted */
};

/* Does "the key holds our token" count, if the server has no vote? */
enum verb_mine {
    MINE_UNLESS_EXCLUDED, /* yes, unless a person has to change something
                           * first: eligibility.reason */
    MINE_IF_VOTING,       /* no: a restart may have restored a released key */
    MINE_ANYWHERE         /* yes: it only says that something is done */
};

/* Does the token's use end when the server has carried the verb out? */
enum verb_use {
    USE_GOES_ON,
    USE_ENDS,
    USE_ENDS_UNLESS_CLEAR /* it goes on if the verdict is ONCE_CLEAR */
};

/* Of which verbs a lock keeps the formatted command (wire/command.h). Those
 * that it sends again and again: each costs every handle a pointer. */
enum verb_cached {
    CACHED_NOT,
    CACHED_ACQUIRE,
    CACHED_EXTEND,
    CACHED_RELEASE,
    CACHED_INSPECT,
    CACHED_CAP_TTL,
    CACHED_VERBS
};

/* Eight bytes, because each request looks at it. */
struct verb_traits {
    enum verb_residue residue : 8;
    /* The verb that removes the residue. Rows without a residue have none (the
     * value 0 means nothing there). */
    enum verb_kind undo : 8;
    enum verb_mine mine : 8;
    enum verb_use use : 8;
    enum verb_cached cached : 8;

    /* Its answer can be a grant. So it is sent only to a server that has a
     * vote, and only when a cleaner is reserved for its cleanup. */
    bool may_grant : 1;
    bool waits_in_line : 1; /* .client and .window are used */
    bool joins_line : 1;    /* the token is not in line before */
    bool asks_after : 1;    /* .after is used */
    bool begins_work : 1;   /* it grants, and records that work has begun */
    bool uses_record : 1;   /* .once is used */
    bool has_values : 1;    /* its answer, in any form, is stored in .values */
    bool changes_no_lock : 1; /* nothing that a lock relies on */
    bool tells_left : 1;      /* .want_left is used */
    bool
        hands_over : 1; /* it gives the lock up: .gap_ms, .has_waiters_behind */
    /* With wait_replicas its effect counts only when so many replicas have it.
     * What JOIN and STAY grant is confirmed by one of these. */
    bool needs_copies : 1;
    /* Where Sentinels say which server is the primary, it is sent, and its
     * effect counts, only if a majority of them has named that server. */
    bool needs_confirmation : 1;
    /* Its effect, without a grant, is a later end of the lease. */
    bool extends_lease : 1;
    bool shortens_ttl : 1; /* impossible where the value contains the end */
    /* An error about the key's type answers that it does not hold the token.
     * Not where it may mean another key (the line, the record), or the token
     * may get the lock later, in line. */
    bool type_error_is_no : 1;
    bool may_be_late : 1; /* past .not_after it is sent nonetheless, and leaves
                           * the key alone */
    /* Of a verb that undoes another one: */
    bool undoes_for_ever : 1; /* what it removes has no TTL */
    bool undoes_refused : 1;  /* it is needed even after a refusal */
};

/* In the header, so that each use is a look-up and no call. */
static const struct verb_traits verb_traits[VERB_KINDS] = {
    [VERB_ACQUIRE] = {.cached = CACHED_ACQUIRE,
        .asks_after = true,
        .residue = RESIDUE_LATE_KEY,
        .undo = VERB_RELEASE,
        .may_grant = true,
        .needs_copies = true,
        .tells_left = true,
        .needs_confirmation = true},
    [VERB_EXTEND] = {.cached = CACHED_EXTEND,
        .extends_lease = true,
        .undo = VERB_RELEASE, /* in an acquire: verb.may_hold_token */
        .needs_copies = true,
        .type_error_is_no = true,
        .needs_confirmation = true},
    [VERB_RELEASE] = {.cached = CACHED_RELEASE,
        .residue = RESIDUE_OWN_KEY,
        .undo = VERB_RELEASE,
        .mine = MINE_ANYWHERE,
        .use = USE_ENDS,
        .hands_over = true,
        .type_error_is_no = true},
    [VERB_INSPECT] = {.cached = CACHED_INSPECT,
        .mine = MINE_IF_VOTING,
        .changes_no_lock = true,
        .type_error_is_no = true,
        .needs_confirmation = true},
    [VERB_CAP_TTL] = {.cached = CACHED_CAP_TTL,
        .mine = MINE_ANYWHERE,
        .shortens_ttl = true,
        .type_error_is_no = true},
    [VERB_RAISE] = {.needs_copies = true, .type_error_is_no = true},
    [VERB_QUERY] = {.has_values = true, .changes_no_lock = true},
    [VERB_JOIN] = {.residue = RESIDUE_LATE_KEY,
        .undo = VERB_RELEASE,
        .may_grant = true,
        .waits_in_line = true,
        .joins_line = true,
        .needs_confirmation = true},
    [VERB_STAY] = {.residue = RESIDUE_TOKEN,
        .undo = VERB_RELEASE,
        .may_grant = true,
        .waits_in_line = true,
        .needs_confirmation = true},
    [VERB_SUBSCRIBE] = {.mine = MINE_UNLESS_EXCLUDED},
    [VERB_BEGIN] = {.residue = RESIDUE_LATE_KEY,
        .undo = VERB_UNDO_BEGIN,
        .may_grant = true,
        .begins_work = true,
        .needs_copies = true,
        .uses_record = true,
        .has_values = true,
        .needs_confirmation = true},
    [VERB_READ_RECORD] = {.uses_record = true,
        .has_values = true,
        .changes_no_lock = true,
        .needs_confirmation = true},
    [VERB_TELL] = {.mine = MINE_ANYWHERE,
        .use = USE_ENDS_UNLESS_CLEAR,
        .needs_copies = true,
        .uses_record = true,
        .has_values = true,
        .hands_over = true,
        .may_be_late = true,
        .needs_confirmation = true},
    [VERB_FORGET] = {.mine = MINE_ANYWHERE, .uses_record = true},
    [VERB_UNDO_BEGIN] = {.undoes_for_ever = true, .undoes_refused = true},
};

_Static_assert(sizeof(struct verb_traits) == 8, "small");

/* May a request that was cancelled still set the key to its token? */
static inline bool verb_acquires(enum verb_kind kind)
{
    return verb_traits[kind].residue == RESIDUE_LATE_KEY;
}

static inline bool verb_may_grant(enum verb_kind kind)
{
    return verb_traits[kind].may_grant;
}

#endif

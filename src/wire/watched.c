/* SPDX-License-Identifier: MIT */
/*
 * Reads a key, compares it here, and changes it under WATCH: EXEC changes the
 * key only if nothing else has since. What is read and changed depends on the
 * strategy (struct watched). Invariant: the change is sent only after MULTI was
 * accepted. Without MULTI the server would carry it out immediately, and an
 * unconditional DEL is never sent.
 */
#include "wire/strategy.h"

#include "model/guard.h"
#include "wire/classify.h"

/* Another client may change the key between WATCH and EXEC again and again. */
#define ATTEMPTS_MAX 3

/* In STEP_EXEC: replies due after the one at hand. (STEP_DISCARD has one
 * reply.)
 */
enum { AFTER_EXEC, AFTER_QUEUED };

static bool append_watch(const struct exchange *x, struct buf *out)
{
    if (!guarded(GUARD_TAKE_OVER))
        return command_word(out, "PING"); /* has the same kind of reply */
    return command_on_key(out, "WATCH", x->verb->key);
}

unsigned watched_encode(struct exchange *x, struct buf *out)
{
    const struct watched *change = x->strategy->watched;
    size_t before = buf_len(out);
    unsigned due;
    bool ok;

    if (x->step < STEP_WATCH)
        x->step = STEP_WATCH;
    if (x->step == STEP_WATCH) {
        ok = append_watch(x, out) &&
             (x->reads = (unsigned char)change->read(x, out)) > 0 &&
             command_word(out, "MULTI");
        due = x->reads + 2U;
    } else if (x->step == STEP_EXEC) {
        ok = change->change(x, out) && command_word(out, "EXEC");
        due = 2;
    } else {
        ok = command_discard(out);
        due = 1;
    }
    if (ok)
        return due;
    buf_cut(out, before, buf_len(out) - before);
    return 0;
}

/* Takes a reply before MULTI's. The first that decides the outcome counts. */
static void read_reply(struct exchange *x, const struct reply *reply)
{
    const struct watched *change = x->strategy->watched;

    if (reply->kind == REPLY_ERROR)
        strategy_error_or_not_mine(x, reply);
    else if (x->due <= x->reads)
        change->judge(x, reply);
    else if (reply->kind != REPLY_STATUS)
        strategy_bad_reply(x, "expected OK in reply to WATCH");
}

/* Takes the reply to MULTI. If it was accepted, the transaction must be ended
 * by EXEC or DISCARD. */
static enum exchange_next multi_replied(
    struct exchange *x, const struct reply *reply)
{
    if (reply->kind == REPLY_ERROR) {
        if (strategy_undecided(x))
            strategy_error_or_not_mine(x, reply);
        return EXCHANGE_DONE; /* no transaction was opened */
    }
    if (reply->kind != REPLY_STATUS ||
        !slice_equal(reply->bytes, slice_of("OK")))
        return strategy_bad_reply(x, "expected OK in reply to MULTI");
    x->step = strategy_undecided(x) ? STEP_EXEC : STEP_DISCARD;
    return EXCHANGE_AGAIN;
}

/* EXEC was refused. Unless by EXECABORT, the transaction is still open. */
static enum exchange_next exec_refused(
    struct exchange *x, const struct reply *reply)
{
    if (slice_starts(reply->bytes, "EXECABORT"))
        return EXCHANGE_DONE;
    x->step = STEP_DISCARD;
    return EXCHANGE_AGAIN;
}

/* EXEC did nothing because the key has been changed. */
static enum exchange_next key_changed(struct exchange *x)
{
    /* Decided as if the server had said so, as it does in similar cases. */
    struct reply raced = {.kind = REPLY_ERROR,
        .bytes = slice_of("EXECABORT the key changed again and again")};

    if (x->verb->kind == VERB_ACQUIRE)
        return strategy_decide(x, OUTCOME_BUSY, LEFT_UNKNOWN);
    x->step = STEP_WATCH;
    return ++x->write_tries < ATTEMPTS_MAX
               ? EXCHANGE_AGAIN
               : strategy_error_or_not_mine(x, &raced);
}

static enum exchange_next exec_replied(
    struct exchange *x, const struct reply *reply)
{
    if (!strategy_undecided(
            x)) /* the change was not queued, so it was not done */
        return reply->kind == REPLY_ERROR ? exec_refused(x, reply)
                                          : EXCHANGE_DONE;
    if (reply->kind == REPLY_ERROR) {
        strategy_error_or_not_mine(x, reply);
        return exec_refused(x, reply);
    }
    if (reply->kind == REPLY_NIL)
        return key_changed(x);
    if (reply->kind != REPLY_ARRAY || reply->count != 1)
        return strategy_bad_reply(
            x, "expected the result of one command of EXEC");
    return reply->items[0].kind == REPLY_ERROR
               ? strategy_error_or_not_mine(x, &reply->items[0])
               : x->strategy->watched->changed(x, &reply->items[0]);
}

enum exchange_next watched_reply(struct exchange *x, const struct reply *reply)
{
    if (x->step == STEP_WATCH) {
        if (x->due == 0)
            return multi_replied(x, reply);
        if (strategy_undecided(x))
            read_reply(x, reply);
        return EXCHANGE_WAIT;
    }
    if (x->step == STEP_DISCARD) {
        /* Some errors of EXEC up to 6.0 end the transaction. */
        if (reply->kind == REPLY_ERROR && !error_ends_transaction(reply->bytes))
            x->phase = EXCHANGE_PHASE_STUCK;
        return EXCHANGE_DONE;
    }
    if (x->due == AFTER_EXEC)
        return exec_replied(x, reply);
    if (reply->kind == REPLY_ERROR)
        strategy_error_or_not_mine(x, reply);
    else if (reply->kind != REPLY_STATUS)
        strategy_bad_reply(x, "expected QUEUED in reply to what follows MULTI");
    return EXCHANGE_WAIT;
}

/* ------------------------------------------------ a value that is a token */

/* x->due at the reply to EXISTS, to PTTL and to GETRANGE. */
enum { AFTER_EXISTS = 1, AFTER_LEFT, AFTER_VALUE };

static unsigned token_read(struct exchange *x, struct buf *out)
{
    struct slice key = x->verb->key;

    return command_getrange(out, key) && command_on_key(out, "PTTL", key) &&
                   command_on_key(out, "EXISTS", key)
               ? 3
               : 0;
}

static void token_compare(struct exchange *x, const struct reply *reply)
{
    enum reply_kind expected =
        x->due == AFTER_VALUE ? REPLY_STRING : REPLY_INTEGER;

    if (reply->kind != expected) {
        strategy_bad_reply(
            x, "expected the answers to GETRANGE, PTTL and EXISTS");
    } else if (x->due == AFTER_VALUE) {
        if (!slice_equal(reply->bytes, x->verb->token))
            strategy_decide(x, OUTCOME_NOT_MINE, LEFT_UNKNOWN);
    } else if (x->due == AFTER_LEFT) {
        x->ttl = reply->integer;
    } else if (reply->integer == 0) {
        /* Before 2.8 the PTTL of a missing key is -1 too. */
        strategy_decide(x, OUTCOME_NOT_MINE, LEFT_UNKNOWN);
    } else if (x->verb->kind == VERB_EXTEND &&
               (x->ttl == -1 || x->ttl > x->verb->ttl_ms)) {
        strategy_decide(x, OUTCOME_MINE, strategy_left_ms(x->ttl));
    }
}

static bool token_change(struct exchange *x, struct buf *out)
{
    return x->verb->kind == VERB_RELEASE
               ? command_on_key(out, "DEL", x->verb->key)
               : command_pexpire(out, x->verb);
}

static enum exchange_next token_changed(
    struct exchange *x, const struct reply *reply)
{
    int64_t done = reply->kind == REPLY_INTEGER ? reply->integer : -1;

    if (done == 1)
        return strategy_decide(x, OUTCOME_MINE,
            x->verb->kind == VERB_EXTEND ? (int64_t)x->verb->ttl_ms
                                         : LEFT_UNKNOWN);
    if (done == 0)
        return strategy_decide(x, OUTCOME_NOT_MINE, LEFT_UNKNOWN);
    return strategy_bad_reply(x, "expected 1 or 0 from DEL or PEXPIRE");
}

const struct watched watched_token = {
    token_read, token_compare, token_change, token_changed};

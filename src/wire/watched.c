/* SPDX-License-Identifier: MIT */
/*
 * Reading, comparing here, and changing under WATCH: EXEC changes the key only
 * if it was not touched meanwhile. What is read and changed is a strategy's
 * (struct watched). Invariant: the change is sent only after MULTI was seen to
 * be accepted; without MULTI it would be done at once, and a DEL at once is
 * what this library never sends.
 */
#include "wire/strategy.h"

#include "base/guard.h"
#include "wire/classify.h"

/* Somebody else changes the key faster than we come to it. */
#define ROUNDS 3

/* Replies still due of STEP_EXEC; STEP_LEAVE has one. */
enum { AFTER_EXEC, AFTER_QUEUED };

static bool watch(const struct exchange *x, struct buf *out)
{
    if (!guarded(GUARD_TAKE_OVER))
        return command_word(out, "PING"); /* answered likewise */
    return command_on_key(out, "WATCH", x->verb->key);
}

unsigned watched_encode(struct exchange *x, struct buf *out)
{
    const struct watched *way = x->strategy->watched;
    size_t before = buf_len(out);
    unsigned due;
    bool ok;

    if (x->step < STEP_WATCH)
        x->step = STEP_WATCH;
    if (x->step == STEP_WATCH) {
        ok = watch(x, out) &&
             (x->reads = (unsigned char)way->read(x, out)) > 0 &&
             command_word(out, "MULTI");
        due = x->reads + 2U;
    } else if (x->step == STEP_EXEC) {
        ok = way->change(x, out) && command_word(out, "EXEC");
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

/* One reply before MULTI's; the first that decides, decides. */
static void read_reply(struct exchange *x, const struct reply *reply)
{
    const struct watched *way = x->strategy->watched;

    if (reply->kind == REPLY_ERROR)
        strategy_refused(x, reply);
    else if (x->due <= x->reads)
        way->judge(x, reply);
    else if (reply->kind != REPLY_STATUS)
        strategy_broken(x, "expected OK in reply to WATCH");
}

/* MULTI was answered: is there a transaction to be ended? */
static enum exchange_next opened(struct exchange *x, const struct reply *reply)
{
    if (reply->kind == REPLY_ERROR) {
        if (strategy_open(x))
            strategy_refused(x, reply);
        return EXCHANGE_DONE; /* there is none */
    }
    if (reply->kind != REPLY_STATUS ||
        !slice_equal(reply->bytes, slice_of("OK")))
        return strategy_broken(x, "expected OK in reply to MULTI");
    x->step = strategy_open(x) ? STEP_EXEC : STEP_LEAVE;
    return EXCHANGE_AGAIN;
}

/* EXEC was refused; but for EXECABORT the transaction is open still. */
static enum exchange_next not_executed(
    struct exchange *x, const struct reply *reply)
{
    if (slice_starts(reply->bytes, "EXECABORT"))
        return EXCHANGE_DONE;
    x->step = STEP_LEAVE;
    return EXCHANGE_AGAIN;
}

/* The key was touched meanwhile. */
static enum exchange_next raced(struct exchange *x)
{
    struct reply raced = {.kind = REPLY_ERROR,
        .bytes = slice_of("EXECABORT the key changed again and again")};

    if (x->verb->kind == VERB_ACQUIRE)
        return strategy_decide(x, OUTCOME_BUSY, LEFT_UNKNOWN);
    x->step = STEP_WATCH;
    return ++x->round < ROUNDS ? EXCHANGE_AGAIN : strategy_refused(x, &raced);
}

static enum exchange_next executed(
    struct exchange *x, const struct reply *reply)
{
    if (!strategy_open(x)) /* the change was not queued, so it was not done */
        return reply->kind == REPLY_ERROR ? not_executed(x, reply)
                                          : EXCHANGE_DONE;
    if (reply->kind == REPLY_ERROR) {
        strategy_refused(x, reply);
        return not_executed(x, reply);
    }
    if (reply->kind == REPLY_NIL)
        return raced(x);
    if (reply->kind != REPLY_ARRAY || reply->count != 1)
        return strategy_broken(x, "expected the result of one command of EXEC");
    return reply->items[0].kind == REPLY_ERROR
               ? strategy_refused(x, &reply->items[0])
               : x->strategy->watched->changed(x, &reply->items[0]);
}

enum exchange_next watched_reply(struct exchange *x, const struct reply *reply)
{
    if (x->step == STEP_WATCH) {
        if (x->due == 0)
            return opened(x, reply);
        if (strategy_open(x))
            read_reply(x, reply);
        return EXCHANGE_WAIT;
    }
    if (x->step == STEP_LEAVE) {
        /* Some errors of EXEC up to 6.0 end the transaction. */
        if (reply->kind == REPLY_ERROR && !error_leaves(reply->bytes))
            x->phase = PHASE_STUCK;
        return EXCHANGE_DONE;
    }
    if (x->due == AFTER_EXEC)
        return executed(x, reply);
    if (reply->kind == REPLY_ERROR)
        strategy_refused(x, reply);
    else if (reply->kind != REPLY_STATUS)
        strategy_broken(x, "expected QUEUED in reply to what follows MULTI");
    return EXCHANGE_WAIT;
}

/* ------------------------------------------------ a value that is a token */

/* Replies still due after ... */
enum { AFTER_EXISTS = 1, AFTER_LEFT, AFTER_VALUE };

static unsigned token_read(struct exchange *x, struct buf *out)
{
    struct slice key = x->verb->key;

    return command_getrange(out, key) && command_on_key(out, "PTTL", key) &&
                   command_on_key(out, "EXISTS", key)
               ? 3
               : 0;
}

static void token_judge(struct exchange *x, const struct reply *reply)
{
    enum reply_kind expected =
        x->due == AFTER_VALUE ? REPLY_STRING : REPLY_INTEGER;

    if (reply->kind != expected) {
        strategy_broken(x, "expected the answers to GETRANGE, PTTL and EXISTS");
    } else if (x->due == AFTER_VALUE) {
        if (!slice_equal(reply->bytes, x->verb->token))
            strategy_decide(x, OUTCOME_NOT_MINE, LEFT_UNKNOWN);
    } else if (x->due == AFTER_LEFT) {
        x->read = reply->integer;
    } else if (reply->integer == 0) {
        /* Before 2.8 a key that has gone away has a PTTL of -1, too. */
        strategy_decide(x, OUTCOME_NOT_MINE, LEFT_UNKNOWN);
    } else if (x->verb->kind == VERB_EXTEND &&
               (x->read == -1 || x->read >= x->verb->ttl_ms)) {
        strategy_decide(x, OUTCOME_MINE, strategy_left(x->read));
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
    return strategy_broken(x, "expected 1 or 0 of DEL or PEXPIRE");
}

const struct watched watched_token = {
    token_read, token_judge, token_change, token_changed};

/* SPDX-License-Identifier: MIT */
/*
 * The rung of servers that neither compare by themselves nor run scripts: the
 * value is read under WATCH and compared here, and EXEC changes the key only
 * if nobody touched it meanwhile. Keeps: the change is sent only after MULTI
 * was seen to be accepted; without MULTI it would be done at once, and a DEL
 * at once is what this library never sends.
 */
#include "wire/rung.h"

enum { READ, CHANGE, LEAVE };

/* Somebody else changes the key faster than we come to it. */
#define ROUNDS 3

/* Replies still due of READ after ... */
enum { AFTER_MULTI, AFTER_EXISTS, AFTER_LEFT, AFTER_VALUE, AFTER_WATCH };
/* ... and of CHANGE; LEAVE has one. */
enum { AFTER_EXEC, AFTER_QUEUED };

/* GRANTED is no outcome of these verbs: it stands for "not decided yet". */
static bool is_open(const struct exchange *x)
{
    return x->outcome.kind == OUTCOME_GRANTED;
}

static bool encode_read(struct buf *out, struct slice key)
{
    return command_on_key(out, "WATCH", key) && command_getrange(out, key) &&
           command_on_key(out, "PTTL", key) &&
           command_on_key(out, "EXISTS", key) && command_word(out, "MULTI");
}

static bool encode_change(struct exchange *x, struct buf *out)
{
    const struct verb *verb = x->verb;
    bool ok = verb->kind == VERB_EXTEND
                  ? command_pexpire(out, verb)
                  : command_on_key(out, "DEL", verb->key);
    return ok && command_word(out, "EXEC");
}

unsigned watched_encode(struct exchange *x, struct buf *out)
{
    size_t before = buf_len(out);
    unsigned due;
    bool ok;

    if (x->step == READ) {
        ok = encode_read(out, x->verb->key);
        due = 5;
    } else if (x->step == CHANGE) {
        ok = encode_change(x, out);
        due = 2;
    } else {
        ok = exchange_discard(out);
        due = 1;
    }
    if (ok)
        return due;
    buf_cut(out, before, buf_len(out) - before);
    return 0;
}

/* One of READ's replies but MULTI's; the first that decides, decides. */
static void read_reply(struct exchange *x, const struct reply *reply)
{
    bool number = x->due == AFTER_LEFT || x->due == AFTER_EXISTS;
    enum reply_kind expected = number ? REPLY_INTEGER
                               : x->due == AFTER_VALUE ? REPLY_STRING
                                                       : REPLY_STATUS;

    if (reply->kind == REPLY_ERROR) {
        rung_refused(x, reply);
    } else if (reply->kind != expected) {
        rung_broken(x, "expected the answers to WATCH, GETRANGE, PTTL, EXISTS");
    } else if (x->due == AFTER_VALUE) {
        if (!slice_equal(reply->bytes, x->verb->token))
            rung_decide(x, OUTCOME_NOT_MINE, LEFT_UNKNOWN);
    } else if (x->due == AFTER_LEFT) {
        x->read = reply->integer;
    } else if (x->due == AFTER_EXISTS) {
        /* Before 2.8 a key that has gone away has a PTTL of -1, too. */
        if (reply->integer == 0)
            rung_decide(x, OUTCOME_NOT_MINE, LEFT_UNKNOWN);
        else if (x->verb->kind == VERB_EXTEND &&
                 (x->read == -1 || x->read >= x->verb->ttl_ms))
            rung_decide(x, OUTCOME_MINE, rung_left(x->read));
    }
}

/* MULTI was answered: is there a transaction to be ended? */
static enum exchange_next opened(struct exchange *x, const struct reply *reply)
{
    if (reply->kind == REPLY_ERROR) {
        if (is_open(x))
            rung_refused(x, reply);
        return EXCHANGE_DONE; /* there is none */
    }
    if (reply->kind != REPLY_STATUS ||
        !slice_equal(reply->bytes, slice_of("OK")))
        return rung_broken(x, "expected OK in reply to MULTI");
    x->step = is_open(x) ? CHANGE : LEAVE;
    return EXCHANGE_AGAIN;
}

/* EXEC was refused; but for EXECABORT the transaction is open still. */
static enum exchange_next not_executed(
    struct exchange *x, const struct reply *reply)
{
    if (slice_starts(reply->bytes, "EXECABORT"))
        return EXCHANGE_DONE;
    x->step = LEAVE;
    return EXCHANGE_AGAIN;
}

static enum exchange_next executed(
    struct exchange *x, const struct reply *reply)
{
    int64_t done = -1;

    if (!is_open(x)) /* the change was not queued, so it was not done */
        return reply->kind == REPLY_ERROR ? not_executed(x, reply)
                                          : EXCHANGE_DONE;
    if (reply->kind == REPLY_ERROR) {
        rung_refused(x, reply);
        return not_executed(x, reply);
    }
    if (reply->kind == REPLY_ARRAY && reply->count == 1) {
        if (reply->items[0].kind == REPLY_ERROR)
            return rung_refused(x, &reply->items[0]);
        if (reply->items[0].kind == REPLY_INTEGER)
            done = reply->items[0].integer;
    }
    if (done == 1)
        return rung_decide(x, OUTCOME_MINE,
            x->verb->kind == VERB_EXTEND ? (int64_t)x->verb->ttl_ms
                                         : LEFT_UNKNOWN);
    if (done == 0)
        return rung_decide(x, OUTCOME_NOT_MINE, LEFT_UNKNOWN);
    if (reply->kind != REPLY_NIL)
        return rung_broken(x, "expected the result of one command of EXEC");
    x->step = READ;
    if (++x->round < ROUNDS)
        return EXCHANGE_AGAIN;
    struct reply raced = {.kind = REPLY_ERROR,
        .bytes = slice_of("EXECABORT the key changed again and again")};
    return rung_refused(x, &raced);
}

enum exchange_next watched_reply(struct exchange *x, const struct reply *reply)
{
    if (x->step == READ) {
        if (x->due == AFTER_MULTI)
            return opened(x, reply);
        if (is_open(x))
            read_reply(x, reply);
        return EXCHANGE_WAIT;
    }
    if (x->step == LEAVE) {
        x->stuck = reply->kind == REPLY_ERROR &&
                   !slice_starts(reply->bytes, "EXECABORT");
        return EXCHANGE_DONE;
    }
    if (x->due == AFTER_EXEC)
        return executed(x, reply);
    if (reply->kind == REPLY_ERROR)
        rung_refused(x, reply);
    else if (reply->kind != REPLY_STATUS)
        rung_broken(x, "expected QUEUED in reply to what follows MULTI");
    return EXCHANGE_WAIT;
}

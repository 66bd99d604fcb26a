/* SPDX-License-Identifier: MIT */
/*
 * Reads for the timestamp scheme: the server's clock, by TIME or by the TTL of
 * a key of its own; which command reads a value; who holds the lock. Invariant:
 * the clock is never assumed to be more precise than its reply proves.
 */
#include "wire/timestamps/parts.h"

/* TTL returns whole seconds, which versions round differently: what to add to
 * the time computed from it, and how far that may be wrong. */
#define PROBE_MIDDLE_MS 250
#define PROBE_ERROR_MS 1000
/* A shorter TTL is not the one that was set: another program uses that key. */
#define PROBE_LEAST_S 100000000

/* --------------------------------------------------------------- the clock */

static int64_t stamped_number(struct slice digits, size_t most)
{
    int64_t n = 0;

    if (digits.len == 0 || digits.len > most)
        return -1;
    for (size_t i = 0; i < digits.len; i++) {
        if (digits.data[i] < '0' || digits.data[i] > '9')
            return -1;
        n = n * 10 + (digits.data[i] - '0');
    }
    return n;
}

int64_t stamped_time(const struct reply *reply)
{
    if (reply->kind != REPLY_ARRAY || reply->count != 2 ||
        reply->items[0].kind != REPLY_STRING ||
        reply->items[1].kind != REPLY_STRING)
        return -1;
    int64_t seconds = stamped_number(reply->items[0].bytes, 12);
    int64_t micros = stamped_number(reply->items[1].bytes, 6);
    return seconds < 0 || micros < 0 ? -1 : seconds * 1000 + micros / 1000;
}

static enum exchange_next stamped_set_clock(
    struct exchange *x, int64_t server_ms, int64_t error_ms)
{
    if (server_ms < INT64_C(1000000000000) ||
        server_ms > INT64_C(99000000000000))
        return stamped_fail(x, "TRYAGAIN the server's clock is not set");
    server_clock_learn(&x->dialect->stamps.clock, x->encoded_at,
        x->dialect->now, server_ms, error_ms);
    return EXCHANGE_WAIT;
}

void stamped_time_replied(struct exchange *x, const struct reply *reply)
{
    int64_t server_ms = stamped_time(reply);

    x->dialect->stamps.timed = reply->kind != REPLY_ERROR;
    x->server_ms = server_ms;
    if (stamped_refusal(reply, ON_REFUSED))
        return;
    if (reply->kind == REPLY_ERROR)
        strategy_error_or_not_mine(x, reply);
    else if (server_ms < 0)
        strategy_bad_reply(
            x, "expected seconds and microseconds in reply to TIME");
    else
        stamped_set_clock(x, server_ms, 1);
}

/* STAMPED_LEARN: takes the reply to TIME, and learns whether the command that
 * reads a value is called GETRANGE or SUBSTR. */
enum exchange_next stamped_learn(struct exchange *x, const struct reply *reply)
{
    struct timestamps_server *stamps = &x->dialect->stamps;

    if (x->due == 1) {
        stamped_time_replied(x, reply);
        return EXCHANGE_WAIT;
    }
    if (!strategy_undecided(x))
        return EXCHANGE_DONE;
    if (stamped_refusal(reply, ON_UNSUPPORTED))
        stamps->substr = true;
    else if (reply->kind == REPLY_ERROR &&
             !stamped_refusal(reply, 1U << FAULT_WRONG_TYPE))
        return strategy_error_or_not_mine(x, reply);
    stamps->learnt = true;
    x->step = 0;
    return EXCHANGE_AGAIN;
}

enum exchange_next stamped_probe(struct exchange *x, const struct reply *reply)
{
    if (!strategy_undecided(x)) {
        ; /* already decided by an error; ignore the remaining replies */
    } else if (reply->kind == REPLY_ERROR) {
        strategy_error_or_not_mine(x, reply);
    } else if (x->due == 1) {
        int64_t now_s = COMMAND_FAR_S - reply->integer;
        if (reply->kind != REPLY_INTEGER)
            strategy_bad_reply(x, "expected the seconds left in reply to TTL");
        else if (reply->integer < PROBE_LEAST_S ||
                 reply->integer > COMMAND_FAR_S)
            stamped_fail(x, "TRYAGAIN the clock's key was changed meanwhile");
        else
            stamped_set_clock(
                x, now_s * 1000 + PROBE_MIDDLE_MS, PROBE_ERROR_MS);
    }
    if (x->due > 0)
        return EXCHANGE_WAIT;
    if (!strategy_undecided(x))
        return EXCHANGE_DONE;
    x->step = 0;
    return EXCHANGE_AGAIN;
}

/* --------------------------------------------------------------- inspecting */

/* Converts a reply to TTL to ms, rounded down; LEFT_FOREVER: no TTL. */
static int64_t stamped_seconds_left(int64_t ttl)
{
    return ttl < 0 ? LEFT_FOREVER : ttl > 0 ? (ttl - 1) * 1000 : 0;
}

static enum exchange_next stamped_seen(struct exchange *x)
{
    struct slice value = strategy_value(x);
    struct slice token = x->verb->token;
    int64_t left_ms = stamped_seconds_left(x->ttl);
    int64_t end_s;

    if (stamp_parse(value, &end_s) != STAMP_NONE) {
        int64_t until = stamped_left(end_s, stamped_high(x));
        left_ms = left_ms == LEFT_FOREVER || until < left_ms ? until : left_ms;
    }
    if (token.len == 0) {
        x->outcome.value = value;
        return strategy_decide(x, OUTCOME_SEEN, left_ms);
    }
    if (x->written != WRITTEN_OVER)
        x->written = stamp_is_of(value, token) ? WRITTEN_END : WRITTEN_TOKEN;
    return stamped_ours(x, value)
               ? strategy_decide(x, OUTCOME_MINE, left_ms)
               : strategy_decide(x, OUTCOME_NOT_MINE, LEFT_UNKNOWN);
}

enum exchange_next stamped_inspected(
    struct exchange *x, const struct reply *reply)
{
    bool text = reply->kind == REPLY_STRING || reply->kind == REPLY_NIL;

    if (!strategy_undecided(x))
        ; /* already decided by an error; ignore the remaining replies */
    else if (reply->kind == REPLY_ERROR)
        strategy_error_or_not_mine(x, reply);
    else if (x->due == 2 && text)
        strategy_save_value(
            x, reply->kind == REPLY_NIL ? slice_of("") : reply->bytes);
    else if (x->due == 2 || reply->kind != REPLY_INTEGER)
        strategy_bad_reply(
            x, "expected the answers to GETRANGE, TTL and EXISTS");
    else if (x->due == 1)
        x->ttl = reply->integer;
    else if (reply->integer == 0)
        strategy_absent(x);
    else
        return stamped_seen(x);
    return x->due > 0 ? EXCHANGE_WAIT : EXCHANGE_DONE;
}

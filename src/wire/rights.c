/* SPDX-License-Identifier: MIT */
/*
 * Before an acquire on a connection where scripts were refused: checks whether
 * a lock could be released at all, by a script or under WATCH. Invariant: no
 * key is written, and no key in use is watched: the commands name no key, or
 * one that is called like the fresh token, which nobody else knows. A reply
 * that is not understood does not count as a refusal.
 */
#include "wire/strategy.h"

#include "wire/classify.h"

/* The replies, numbered by how many are still due after them. */
enum { WATCH, EVAL, EVALSHA, COMMANDS };

/* x->refusals has a bit for each command that was refused, and these. */
enum { NOSCRIPT = COMMANDS, DENIED };

#define BIT(n) (INT64_C(1) << (n))

bool rights_unverified(const struct exchange *x)
{
    return x->verb->kind == VERB_ACQUIRE && x->verb->counter.len == 0 &&
           x->dialect->scripts_unverified;
}

/* EVALSHA without a key: a user whose keys are limited would be refused the
 * token as a key, and that hides NOSCRIPT. A script without its key changes
 * nothing: its first command fails. */
static bool append_script_probes(struct buf *out)
{
    struct slice evalsha[] = {slice_of("EVALSHA"),
        slice_of(scripts[SCRIPT_RELEASE].sha1), slice_of("0")};
    struct slice eval[] = {
        slice_of("EVAL"), slice_of("return 1"), slice_of("0")};

    return command_append(out, 3, evalsha) && command_append(out, 3, eval);
}

/* With scheme=timestamp only WATCH matters. */
static unsigned rights_encode(struct exchange *x, struct buf *out)
{
    struct slice token = x->verb->token;
    bool watch_only = x->dialect->ttl_in_values;
    size_t before = buf_len(out);

    x->step = STEP_RIGHTS;
    x->refusals = 0;
    if ((watch_only || append_script_probes(out)) &&
        command_on_key(out, "WATCH", token))
        return watch_only ? 1 : COMMANDS;
    buf_cut(out, before, buf_len(out) - before);
    return 0;
}

static enum exchange_next rights_decide(struct exchange *x)
{
    static const char denied[] =
        "NOPERM neither scripts (+evalsha +eval) nor transactions (+watch "
        "+multi +exec +discard) are allowed: a lock could be neither extended "
        "nor released";
    static const char unknown[] =
        "ERR unknown command: neither scripts (EVALSHA, EVAL) nor "
        "transactions (WATCH): a lock could be neither extended nor released";
    bool scripts_work =
        !(x->refusals & BIT(EVALSHA)) &&
        !(x->refusals & BIT(NOSCRIPT) && x->refusals & BIT(EVAL));

    x->dialect->no_watch = x->refusals & BIT(WATCH);
    if (scripts_work || !x->dialect->no_watch || x->dialect->ttl_in_values) {
        x->dialect->scripts_unverified = false;
        /* What was read before may be old by now. */
        x->step = x->phase == EXCHANGE_PHASE_CHECK_VALUE ? STEP_READ_ONLY : 0;
        return EXCHANGE_AGAIN;
    }
    struct reply error = {.kind = REPLY_ERROR,
        .bytes = slice_of(x->refusals & BIT(DENIED) ? denied : unknown)};
    return strategy_error_or_not_mine(x, &error);
}

static enum exchange_next rights_replied(
    struct exchange *x, const struct reply *reply)
{
    if (reply->kind == REPLY_ERROR && error_is_noscript(reply->bytes)) {
        x->refusals |= BIT(NOSCRIPT);
    } else if (reply->kind == REPLY_ERROR &&
               error_refuses_command(reply->bytes)) {
        x->refusals |= BIT(x->due);
        if (classify_error(reply->bytes) == FAULT_NO_PERMISSION)
            x->refusals |= BIT(DENIED);
    }
    return x->due > 0 ? EXCHANGE_WAIT : rights_decide(x);
}

const struct strategy rights_strategy = {
    .name = "rights", .encode = rights_encode, .reply = rights_replied};

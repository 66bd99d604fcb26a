/* SPDX-License-Identifier: MIT */
/*
 * Before an acquire on a connection where scripts were refused: is there any
 * other way to end a lock again? Keeps: nothing is written, and nothing that is
 * in use is watched: the key asked about is the fresh token, which nobody
 * knows. What is not understood is no refusal.
 */
#include "wire/rung.h"

#include "wire/classify.h"

/* The replies, counted as they are due. */
enum { WATCH, DELEX, DELIFEQ, EVAL, EVALSHA, COMMANDS };

/* Bits above those of the refusals, in x->read. */
enum { NOSCRIPT = COMMANDS, MAY_NOT };

#define BIT(n) (INT64_C(1) << (n))

bool rights_doubted(const struct exchange *x)
{
    return x->verb->kind == VERB_ACQUIRE && x->verb->counter.len == 0 &&
           x->ladder->doubted;
}

static bool scripts_and_natives(struct slice token, struct buf *out)
{
    struct slice evalsha[] = {slice_of("EVALSHA"),
        slice_of(scripts[SCRIPT_RELEASE].sha1), slice_of("1"), token, token};
    struct slice eval[] = {
        slice_of("EVAL"), slice_of("return 1"), slice_of("0")};
    struct slice delifeq[] = {slice_of("DELIFEQ"), token, token};
    struct slice delex[] = {slice_of("DELEX"), token, slice_of("IFEQ"), token};

    return command_append(out, 5, evalsha) && command_append(out, 3, eval) &&
           command_append(out, 3, delifeq) && command_append(out, 4, delex);
}

/* Timestamps by order have to do with WATCH only, and without it. */
static unsigned encode(struct exchange *x, struct buf *out)
{
    struct slice token = x->verb->token;
    bool stamps = x->ladder->stamps;
    size_t before = buf_len(out);

    x->step = STEP_RIGHTS;
    x->read = 0;
    if ((stamps || scripts_and_natives(token, out)) &&
        command_on_key(out, "WATCH", token))
        return stamps ? 1 : COMMANDS;
    buf_cut(out, before, buf_len(out) - before);
    return 0;
}

/* It says of the command, not of its key, that it may not or cannot be run. */
static bool refuses(struct slice error)
{
    static const char command[] = " to run the ";
    enum fault fault = classify_error(error);

    return fault == FAULT_UNSUPPORTED ||
           (fault == FAULT_DENIED &&
               memmem(error.data, error.len, command, sizeof command - 1));
}

static enum exchange_next judge(struct exchange *x)
{
    static const char denied[] =
        "NOPERM neither scripts (EVALSHA, EVAL) nor WATCH may be run: a lock "
        "could be neither extended nor released";
    static const char unknown[] =
        "ERR unknown command: neither scripts (EVALSHA, EVAL) nor WATCH: a "
        "lock could be neither extended nor released";
    bool scripts_do = !(x->read & BIT(EVALSHA)) &&
                      !(x->read & BIT(NOSCRIPT) && x->read & BIT(EVAL));
    bool others_do = (~x->read & (BIT(WATCH) | BIT(DELEX) | BIT(DELIFEQ))) != 0;

    x->ladder->unwatched = x->read & BIT(WATCH);
    if (scripts_do || others_do || x->ladder->stamps) {
        x->ladder->doubted = false;
        x->step = 0;
        return EXCHANGE_AGAIN;
    }
    struct reply error = {.kind = REPLY_ERROR,
        .bytes = slice_of(x->read & BIT(MAY_NOT) ? denied : unknown)};
    return rung_refused(x, &error);
}

static enum exchange_next told(struct exchange *x, const struct reply *reply)
{
    if (reply->kind == REPLY_ERROR && error_is_noscript(reply->bytes)) {
        x->read |= BIT(NOSCRIPT);
    } else if (reply->kind == REPLY_ERROR && refuses(reply->bytes)) {
        x->read |= BIT(x->due);
        if (classify_error(reply->bytes) == FAULT_DENIED)
            x->read |= BIT(MAY_NOT);
    }
    return x->due > 0 ? EXCHANGE_WAIT : judge(x);
}

const struct rung rights_rung = {
    .name = "rights", .encode = encode, .reply = told};

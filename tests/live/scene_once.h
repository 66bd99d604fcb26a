/* SPDX-License-Identifier: MIT */
/*
 * The calls of scenes for work that must be done once, and the record that a
 * handle shows.
 *
 * Invariant: what nxl_once_record() shows after an answer of the server is what
 * stands there, unless another attempt has begun since; a call after which it
 * is not is as expected in no scene.
 */
#ifndef NXLOCK_TESTS_LIVE_SCENE_ONCE_H
#define NXLOCK_TESTS_LIVE_SCENE_ONCE_H

#include "live/scene_fields.h"

/* Each state of a record, and what can be told, by its number. */
static const char *const verdicts[] = {
    "none", "begun", "doubt", "done", "failed", "clear"};
static const char *const once_modes[] = {"halt", "retry", "look"};

/* The index of the next word among these; -1: it is none of them. */
static inline int word_among(
    struct words *words, const char *const *known, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (known[i] && accept(words, known[i]))
            return (int)i;
    return -1;
}

/* "once retry fingerprint 100EUR keep 5000" */
static inline void read_begin(struct words *words, struct call *call)
{
    int mode = word_among(words, once_modes, 3);
    call->mode = mode < 0 ? NXL_ONCE_HALT : mode;
    if (accept(words, "mode")) /* one that there is not */
        call->mode = (int)number_of(take(words));
    if (accept(words, "fingerprint"))
        snprintf(call->token, sizeof(call->token), "%s", take(words)->text);
    if (accept(words, "keep"))
        call->keep_ms = number_of(take(words));
}

/* "tell done code 3 result "paid"", "tell done result not kept" */
static inline void read_tell(struct words *words, struct call *call)
{
    call->mode = word_among(words, verdicts, 6);
    if (call->mode < 0)
        call->mode = (int)number_of(take(words));
    if (accept(words, "code"))
        call->number = number_of(take(words));
    if (!accept(words, "result"))
        return;
    if (accept(words, "not") && accept(words, "kept")) {
        call->result = (struct word){NULL, NXL_ONCE_NOT_KEPT, false, false};
        return;
    }
    call->result = *take(words);
}

/* ------------------------------------------------------------------ records */

/* What stands in the key, between the blanks: {job}:once has "once1 STATE TOKEN
 * FENCE ATTEMPT DOUBTS FIRST SINCE ENDED CODE LATE KEEP =FINGERPRINT SIZE". */
static inline void record_line(
    const nxl_record *r, const char *there, char line[1024])
{
    long long keep_ms = 0;
    (void)sscanf(there, "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lld",
        &keep_ms); /* which no nxl_record has */
    snprintf(line, 1024,
        "once1 %s %s %llu %lld %lld %lld %lld %lld %d %lld %lld %s%s %lld\n",
        verdicts[r->state], r->token, (unsigned long long)r->fence,
        (long long)r->attempt, (long long)r->doubts, (long long)r->first_ms,
        (long long)r->since_ms, (long long)r->ended_ms, r->code,
        (long long)r->late, keep_ms, *r->fingerprint ? "=" : "-",
        r->fingerprint,
        r->result_length == NXL_ONCE_NOT_KEPT ? -1
                                              : (long long)r->result_length);
}

static inline bool is_same_record(const nxl_record *r, const redisReply *there)
{
    char line[1024];
    if (there->type != REDIS_REPLY_STRING)
        return r->state == NXL_ONCE_NONE;
    long long attempt = 0;
    (void)sscanf(there->str, "%*s %*s %*s %*s %lld", &attempt);
    if (attempt > r->attempt)
        return true; /* somebody who waited has begun meanwhile */
    record_line(r, there->str, line);
    size_t length = strlen(line);
    if (there->len < length || memcmp(there->str, line, length) != 0)
        return false;
    return !r->result ||
           (there->len == length + r->result_length &&
               !memcmp(there->str + length, r->result, r->result_length));
}

/* Whether an answer of the server came with the record. */
static inline bool call_shows_record(const struct thing *t)
{
    if (t->call.operation != NXL_OP_ONCE_BEGIN &&
        t->call.operation != NXL_OP_ONCE_TELL)
        return false;
    return t->result == NXL_OK || t->result == NXL_DONE ||
           t->result == NXL_DOUBT || t->result == NXL_MISMATCH ||
           t->result == NXL_FREE;
}

/* Gives what differs as the result of the call, which no scene expects. */
static inline void check_record(const struct thing *t, struct outcome *o)
{
    char key[SCENE_ROOM];
    nxl_record r = NXL_RECORD_INIT;
    if (!call_shows_record(t))
        return;
    int result = nxl_once_record(t->lock, &r);
    snprintf(key, sizeof(key), "{%s%s}:once", nxl_client_prefix(t->client),
        nxl_lock_name(t->lock, 0, NULL));
    redisReply *there = redis_command(&servers[0], "GET", key, NULL);
    bool same = is_same_record(&r, there) &&
                result == (r.state == NXL_ONCE_NONE ? NXL_FREE : NXL_OK);
    if (!same)
        o->value = word_text("with a record that is not the one at the server");
    freeReplyObject(there);
}

#endif

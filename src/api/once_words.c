/* SPDX-License-Identifier: MIT */
/* What an application sees of a record, and what errmsg says about it. */
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "api/message.h"
#include "api/once.h"

static const char *label_of(const struct record *record)
{
    const char *label = token_label(record->token);
    return label ? label : "";
}

/* "attempt 2 by db7:backup" */
static void add_attempt(const struct record *record, struct text *t)
{
    const char *label = label_of(record);
    text_addf(t, "attempt %lld", (long long)record->attempt);
    if (*label)
        text_addf(t, " by %s", label);
}

/* " at 2026-01-31 23:59:59 UTC" */
static void add_time(int64_t unix_ms, struct text *t)
{
    time_t seconds = (time_t)(unix_ms / 1000);
    char words[64];
    struct tm tm;
    if (gmtime_r(&seconds, &tm) &&
        strftime(words, sizeof(words), " at %Y-%m-%d %H:%M:%S UTC", &tm))
        text_add(t, words);
}

static void add_doubt(const struct record *record, struct text *t)
{
    bool unsure = record->state == ONCE_DOUBT;
    add_attempt(record, t);
    text_add(t, unsure ? " ended" : " began");
    add_time(unsure ? record->ended_ms : record->since_ms, t);
    text_add(t, unsure ? " without knowing whether the work was done"
                       : ", and did not report its outcome");
}

static void add_mismatch(const struct record *record, struct text *t)
{
    text_addf(t,
        "the record is about other work: its fingerprint is %s; it is "
        "%s, ",
        record->fingerprint.len ? record->fingerprint.data : "none",
        record_state_shown(record->state));
    add_attempt(record, t);
    text_add(t, "; use that fingerprint, or another name for this work");
}

static const char *lost_words(enum once_state verdict)
{
    switch (verdict) {
    case ONCE_DONE:
        return "somebody else has begun the work since, so it may be done "
               "twice; the record counts that as late";
    case ONCE_CLEAR:
        return "the lock was lost, or an earlier attempt has said meanwhile "
               "that it was done; do not go on";
    default:
        return "somebody else has begun the work since; this attempt no longer "
               "counts";
    }
}

bool once_compose(const struct nxl_lock *lock, int result, struct text *message)
{
    const struct once *once = lock->once;
    enum life_call call = lock->life.call;
    bool known = once && once->answered && once->record.state;
    text_clear(message);
    if (result == NXL_DONE && known) {
        text_add(message, "the work was done before, by ");
        add_attempt(&once->record, message);
        add_time(once->record.ended_ms, message);
    } else if (result == NXL_DOUBT && known) {
        add_doubt(&once->record, message);
        text_add(message, "; find out, then say it with nxl_once_tell()");
    } else if (result == NXL_MISMATCH && known) {
        add_mismatch(&once->record, message);
    } else if (result == NXL_LOST && call == CALL_TELL) {
        text_add(message, lost_words(once->terms.verdict));
    } else if (result == NXL_BUSY && call == CALL_FORGET) {
        text_add(message, "the work is in progress, or the lock is kept for "
                          "its minimum hold; try again when that is over");
    } else if (result == NXL_FREE && call == CALL_FORGET) {
        text_add(message, "the record has changed, or is gone; look at it "
                          "again with nxl_once_begin() and NXL_ONCE_LOOK");
    } else if (result == NXL_FREE && call == CALL_LOOK) {
        text_add(message, "no record keeps the work from being begun");
    } else {
        return false;
    }
    return true;
}

_Static_assert((int)ONCE_BEGUN == (int)NXL_ONCE_BEGUN &&
                   (int)ONCE_DOUBT == (int)NXL_ONCE_DOUBT &&
                   (int)ONCE_DONE == (int)NXL_ONCE_DONE &&
                   (int)ONCE_FAILED == (int)NXL_ONCE_FAILED &&
                   (int)ONCE_CLEAR == (int)NXL_ONCE_CLEAR,
    "both enums have the same values");

static void show(const struct once *once, nxl_record *all)
{
    const struct record *r = &once->record;
    struct slice result = leaves_at(&once->found, 3);
    all->state = (int)r->state;
    all->token = r->token.data;
    all->label = label_of(r);
    all->fence = r->fence;
    all->attempt = r->attempt;
    all->doubts = r->doubts;
    all->late = r->late;
    all->first_ms = r->first_ms;
    all->since_ms = r->since_ms;
    all->ended_ms = r->ended_ms;
    all->code = r->code;
    all->fingerprint = r->fingerprint.data;
    all->result_length = r->size < 0 ? NXL_ONCE_NOT_KEPT : (size_t)r->size;
    if (r->state != ONCE_DONE || r->size < 0 || !result.data)
        return;
    all->result = result.data;
    all->result_length = result.len;
}

int nxl_once_record(const nxl_lock *lock, nxl_record *record)
{
    nxl_record all = NXL_RECORD_INIT;
    if (!lock || !record || record->size < offsetof(nxl_record, token))
        return NXL_E_INVALID;
    if (client_forked(lock->client))
        return NXL_E_FORKED;
    const struct once *once = lock->once;
    if (!once || !once->answered)
        return NXL_E_INVALID;
    if (once->record.state)
        show(once, &all);
    size_t size = record->size < sizeof(all) ? record->size : sizeof(all);
    all.size = record->size;
    memcpy(record, &all, size);
    return once->record.state ? NXL_OK : NXL_FREE;
}

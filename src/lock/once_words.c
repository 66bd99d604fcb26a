/* SPDX-License-Identifier: MIT */
/* What errmsg says about a record. */
#include <time.h>

#include "lock/errmsg.h"
#include "lock/once.h"

const char *once_label(const struct record *record)
{
    const char *label = token_label(record->token);
    return label ? label : "";
}

/* "attempt 2 by db7:backup" */
static void add_attempt(const struct record *record, struct text *t)
{
    const char *label = once_label(record);
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
    bool reported = record->state == ONCE_DOUBT;
    add_attempt(record, t);
    text_add(t, reported ? " ended" : " began");
    add_time(reported ? record->ended_ms : record->since_ms, t);
    text_add(t, reported ? " without knowing whether the work was done"
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
        text_add(message, lost_words(once->terms.reported));
    } else if (result == NXL_BUSY && call == CALL_FORGET) {
        text_add(message, "the work is in progress, or the lock is kept for "
                          "its minimum hold; try again when that is over");
    } else if (result == NXL_FREE && call == CALL_FORGET) {
        text_add(message, "the record has changed, or is gone; look at it "
                          "again with nxl_once_begin() and NXL_ONCE_LOOK");
    } else if (result == NXL_FREE && call == CALL_READ_RECORD) {
        text_add(message, "no record keeps the work from being begun");
    } else {
        return false;
    }
    return true;
}

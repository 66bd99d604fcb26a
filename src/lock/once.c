/* SPDX-License-Identifier: MIT */
/* The record of work that must be done once: what a lock remembers of it
 * between two calls. */
#include "lock/once.h"

#include <stdlib.h>

/* ---------------------------------------------------------------- the state */

void once_free(struct nxl_lock *lock)
{
    if (!lock->once)
        return;
    reply_values_free(&lock->once->found);
    free(lock->once->result);
    free(lock->once->before);
    free(lock->once);
    lock->once = NULL;
}

static struct once_terms usual_terms(void)
{
    return (struct once_terms){
        .keep_ms = (uint64_t)limit_of("keep_ms")->default_value};
}

struct once *once_of(struct nxl_lock *lock)
{
    if (lock->once || !(lock->once = calloc(1, sizeof(*lock->once))))
        return lock->once;
    lock->once->work = lock->may_tell_adopted_work ? WORK_OWN : WORK_NONE;
    lock->once->terms = usual_terms();
    return lock->once;
}

struct slice once_token(const struct nxl_lock *lock)
{
    bool found = lock->once && lock->once->work == WORK_FOUND;
    return found ? slice_of(lock->once->token) : lock_token(lock);
}

void once_complete(struct nxl_lock *lock, struct verb *verb)
{
    verb->once = &lock->once->terms;
    if (verb_traits[verb->kind].has_values)
        verb->values = &lock->once->found;
}

/* ------------------------------------------------------ what was found */

static void copy_text(struct slice *text, char *room, size_t most)
{
    size_t len = text->len <= most ? text->len : 0;
    memcpy(room, text->len ? text->data : "", len);
    room[len] = '\0';
    *text = (struct slice){room, len};
}

struct slice once_line(const struct once *once)
{
    return reply_values_at(&once->found, 2);
}

/* Work has begun: remembers the line that was in doubt before, if one was,
 * because FAILED restores it. */
static void remember_before(struct once *once)
{
    struct slice line = reply_values_at(&once->found, 3);
    once->before = line.len ? strndup(line.data, line.len) : NULL;
}

void once_forget_work(struct once *once)
{
    once->work = WORK_NONE;
    once->answered = false;
    free(once->before);
    once->before = NULL;
}

/* Reads the record that the answer contains, if there is one. */
static void read_record(struct once *once)
{
    once->record = (struct record){0};
    once->answered = true;
    if (!record_parse(once_line(once), &once->record)) {
        once->record = (struct record){0};
        return;
    }
    copy_text(&once->record.token, once->token, TOKEN_MAX);
    copy_text(
        &once->record.fingerprint, once->found_fingerprint, FINGERPRINT_MAX);
}

static bool is_answer(int result)
{
    return result == NXL_OK || result == NXL_LOST || result == NXL_BUSY ||
           result == NXL_FREE || result == NXL_DONE || result == NXL_DOUBT ||
           result == NXL_MISMATCH;
}

void once_reset(struct nxl_lock *lock)
{
    if (!lock->once)
        return;
    once_forget_work(lock->once);
    lock->once->terms = usual_terms();
}

void once_over(struct nxl_lock *lock, int result)
{
    enum life_call call = lock->life.call;
    struct once *once = lock->once;
    if (call == CALL_ACQUIRE || call == CALL_ADOPT)
        lock->may_tell_adopted_work = call == CALL_ADOPT && result == NXL_OK;
    if (!once)
        return;
    if (call == CALL_ACQUIRE || (call == CALL_ADOPT && result == NXL_OK)) {
        once_reset(lock);
        once->work = lock->may_tell_adopted_work ? WORK_OWN : WORK_NONE;
    }
    if (call == CALL_BEGIN || call == CALL_READ_RECORD || call == CALL_TELL) {
        once->answered = false;
        if (is_answer(result) && once->found.count > 0)
            read_record(once);
    }
    if (call == CALL_BEGIN && result == NXL_OK)
        remember_before(once);
    if (result == NXL_DOUBT && once->answered)
        once->work = WORK_FOUND;
    else if (once->work == WORK_FOUND && result == NXL_LOST)
        once->work = WORK_NONE; /* the record has changed */
    if (call == CALL_TELL) {
        free(once->result);
        once->result = NULL;
    }
}

void once_seen(struct nxl_lock *lock)
{
    bool granted = lock->call.result == NXL_OK;
    if (lock->life.call == CALL_BEGIN && granted) {
        life_seen(&lock->life);
        lock->once->work = WORK_OWN;
    }
}

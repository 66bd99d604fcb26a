/* SPDX-License-Identifier: MIT */
/* Tell: the outcome of work that must be done once. */
#include "lock/once.h"

#include <stdlib.h>

#include "api/blocking.h"
#include "api/event_loop.h"
#include "lock/drive.h"
#include "lock/errmsg.h"

static const char *wrong_tell(
    const struct once *once, const struct call_args *args)
{
    bool kept = args->length <= NXL_ONCE_RESULT_MAX;
    int verdict = (int)args->number;
    if (verdict < NXL_ONCE_DOUBT || verdict > NXL_ONCE_CLEAR)
        return "the verdict must be NXL_ONCE_DONE, _FAILED, _DOUBT or _CLEAR";
    if (once->work == WORK_FOUND && verdict != NXL_ONCE_DONE &&
        verdict != NXL_ONCE_FAILED)
        return "of an earlier attempt, which is in doubt, only NXL_ONCE_DONE "
               "or _FAILED can be told";
    if (args->result && !kept)
        return "the result is longer than NXL_ONCE_RESULT_MAX bytes; pass "
               "NULL and NXL_ONCE_NOT_KEPT, and keep it elsewhere";
    if (!args->result && args->length && args->length != NXL_ONCE_NOT_KEPT)
        return "the result is NULL, but its length is not 0";
    return NULL;
}

/* Beside FAILED nothing is sent but what begin found: the script would take a
 * caller's bytes for that, and write them as the record. */
static bool copy_result(struct once *once, const struct call_args *args)
{
    char *copy = NULL;
    bool failed = args->number == NXL_ONCE_FAILED;
    size_t length = args->result && !failed ? args->length : 0;
    if (length && !(copy = malloc(length)))
        return false;
    if (length)
        memcpy(copy, args->result, length);
    free(once->result);
    once->result = copy;
    once->terms.result = failed && once->before ? slice_of(once->before)
                                                : (struct slice){copy, length};
    once->terms.result_omitted = !failed && !args->result && args->length > 0;
    return true;
}

static int start_tell(
    struct nxl_lock *lock, const struct call_args *args, uint64_t now)
{
    struct once *once =
        lock->may_tell_adopted_work ? once_of(lock) : lock->once;
    if (!once && lock->may_tell_adopted_work)
        return call_ends(
            lock, NXL_E_NOMEM, "out of memory: cannot tell of the work");
    if (!once || once->work == WORK_NONE)
        return errmsg_invalid(call_errmsg(lock),
            "there is nothing to tell of: begin with nxl_once_begin()");
    const char *wrong = wrong_tell(once, args);
    if (wrong)
        return errmsg_invalid(call_errmsg(lock), "%s", wrong);
    if (!copy_result(once, args))
        return call_ends(
            lock, NXL_E_NOMEM, "out of memory: cannot copy the result");
    once->terms.reported = (enum once_state)args->number;
    once->terms.code = args->code;
    if (!life_tell(&lock->life, once->terms.reported, once->work == WORK_OWN,
            lock_seed(lock, now), now))
        return call_ends(
            lock, NXL_LOST, "the lease is over, so the work cannot go on");
    return NXL_PENDING;
}

static const struct call_type tell_type = {.kind = NXL_OP_ONCE_TELL,
    .request = "verdict",
    .lease = LEASE_ANY,
    .start = start_tell};

int nxl_once_tell(
    nxl_lock *lock, int verdict, int code, const void *result, size_t length)
{
    struct call_args args = {
        .number = verdict, .code = code, .result = result, .length = length};
    return call_block(lock, &tell_type, &args);
}

int nxl_once_tell_start(
    nxl_lock *lock, int verdict, int code, const void *result, size_t length)
{
    struct call_args args = {
        .number = verdict, .code = code, .result = result, .length = length};
    return call_enqueue(lock, &tell_type, &args);
}

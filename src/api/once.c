/* SPDX-License-Identifier: MIT */
/* Begin, tell and forget: work that must be done once, and its record. */
#include "api/once.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/blocking.h"
#include "api/drive.h"
#include "api/event_loop.h"
#include "api/message.h"
#include "api/options.h"
#include "base/deadline.h"

#define KEEP_DEFAULT_MS INT64_C(86400000)
#define KEEP_MOST_MS (365 * KEEP_DEFAULT_MS)

/* ---------------------------------------------------------------- the state */

void once_free(struct nxl_lock *lock)
{
    if (!lock->once)
        return;
    leaves_free(&lock->once->found);
    free(lock->once->result);
    free(lock->once);
    lock->once = NULL;
}

/* Before any other call: what is known may be out of date by then. */
static struct once *once_of(struct nxl_lock *lock)
{
    if (!lock->once)
        lock->once = calloc(1, sizeof(*lock->once));
    return lock->once;
}

static int no_memory(struct nxl_lock *lock)
{
    return call_ends(lock, NXL_E_NOMEM, "out of memory: cannot begin the call");
}

struct slice once_token(const struct nxl_lock *lock)
{
    bool found = lock->once && lock->once->work == WORK_FOUND;
    return found ? slice_of(lock->once->token) : lock_token(lock);
}

void once_complete(struct nxl_lock *lock, struct verb *verb)
{
    switch (verb->kind) {
    case VERB_BEGIN:
    case VERB_LOOK:
    case VERB_TELL:
        verb->leaves = &lock->once->found;
        verb->once = &lock->once->terms;
        break;
    case VERB_FORGET: /* its line is in there */
        verb->once = &lock->once->terms;
        break;
    default:
        break;
    }
}

/* ------------------------------------------------------------- what is found
 */

static void copy_text(struct slice *text, char *room, size_t most)
{
    size_t len = text->len <= most ? text->len : 0;
    memcpy(room, text->len ? text->data : "", len);
    room[len] = '\0';
    *text = (struct slice){room, len};
}

static struct slice leaf_of(const struct leaves *l, size_t i)
{
    bool there = i < l->count && !l->list[i].nil;
    return there ? (struct slice){buf_head(&l->bytes) + l->list[i].at,
                       l->list[i].len}
                 : (struct slice){NULL, 0};
}

/* Reads the record that the answer contains, if there is one. */
static void read_record(struct once *once)
{
    once->record = (struct record){0};
    once->answered = true;
    if (!record_parse(leaf_of(&once->found, 2), &once->record)) {
        once->record = (struct record){0};
        return;
    }
    copy_text(&once->record.token, once->token, TOKEN_MAX);
    copy_text(
        &once->record.fingerprint, once->found_fingerprint, FINGERPRINT_MOST);
}

static bool is_answer(int result)
{
    return result == NXL_OK || result == NXL_LOST || result == NXL_BUSY ||
           result == NXL_FREE || result == NXL_DONE || result == NXL_DOUBT ||
           result == NXL_MISMATCH;
}

void once_over(struct nxl_lock *lock, int result)
{
    enum life_call call = lock->life.call;
    struct once *once = lock->once;
    if (call == CALL_ADOPT && result == NXL_OK)
        once = once_of(lock);
    if (!once)
        return;
    if (call == CALL_ACQUIRE || call == CALL_ADOPT) {
        once->work =
            call == CALL_ADOPT && result == NXL_OK ? WORK_OWN : WORK_NONE;
        once->terms = (struct once_terms){.keep_ms = KEEP_DEFAULT_MS};
    }
    if (call == CALL_BEGIN || call == CALL_LOOK || call == CALL_TELL) {
        once->answered = false;
        if (is_answer(result) && once->found.count > 2)
            read_record(once);
    }
    if (result == NXL_DOUBT && once->answered)
        once->work = WORK_FOUND;
    if (call == CALL_TELL && result != NXL_UNKNOWN) {
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

/* --------------------------------------------------------------------- begin
 */

static bool is_word(const char *text)
{
    size_t len = strnlen(text, FINGERPRINT_MOST + 1);
    for (size_t i = 0; i < len; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return false;
    return len > 0 && len <= FINGERPRINT_MOST;
}

static bool takes_options(
    struct nxl_lock *lock, const nxl_once_options *options, int64_t wait_ms)
{
    nxl_once_options o = NXL_ONCE_OPTIONS_INIT;
    struct text *message = call_message(lock);
    struct once *once = lock->once;
    if (options &&
        !options_read(&o, sizeof(o), options, "nxl_once_options", message))
        return false;
    int64_t keep_ms = o.keep_ms ? o.keep_ms : KEEP_DEFAULT_MS;
    if (o.mode < NXL_ONCE_HALT || o.mode > NXL_ONCE_LOOK)
        message_invalid(
            message, "mode is %d; use NXL_ONCE_HALT, _RETRY or _LOOK", o.mode);
    else if (o.mode == NXL_ONCE_LOOK && wait_ms != 0)
        message_invalid(message,
            "wait_ms is %lld; NXL_ONCE_LOOK does not wait: use 0",
            (long long)wait_ms);
    else if (o.fingerprint && !is_word(o.fingerprint))
        message_invalid(message,
            "the fingerprint must be one word of printable ASCII, at most %d "
            "bytes; use a hash of longer texts",
            FINGERPRINT_MOST);
    else if (keep_ms < lock->life.terms.ttl_ms || keep_ms > KEEP_MOST_MS)
        message_invalid(message, "keep_ms is %lld; use ttl_ms (%u) ... %lld",
            (long long)keep_ms, lock->life.terms.ttl_ms,
            (long long)KEEP_MOST_MS);
    else {
        snprintf(once->fingerprint, sizeof(once->fingerprint), "%s",
            o.fingerprint ? o.fingerprint : "");
        once->terms = (struct once_terms){
            .retries = o.mode == NXL_ONCE_RETRY,
            .fingerprint = slice_of(once->fingerprint),
            .keep_ms = (uint64_t)keep_ms,
        };
        return true;
    }
    return false;
}

static const char *unsupported(const struct nxl_client *client)
{
    if (client->server_count > 1)
        return "a record needs one server: a minority that forgets may end a "
               "lease early, but a record must be kept for days; use one of "
               "them, with appendonly yes, for this work";
    if (client->servers[0].dialect.ttl_in_values)
        return "a record needs scripts, which scheme=timestamp does not use";
    return NULL;
}

static int start_begin(
    struct nxl_lock *lock, const struct call_args *args, uint64_t now)
{
    const nxl_once_options *options = args->options;
    int64_t wait_ms = args->number;
    const char *why = unsupported(lock->client);
    uint64_t wait_ns;
    if (why)
        return call_ends(lock, NXL_E_UNSUPPORTED, why);
    if (!once_of(lock))
        return no_memory(lock);
    if (!takes_options(lock, options, wait_ms))
        return NXL_E_INVALID;
    int rc = call_wait(lock, wait_ms, &wait_ns, now);
    if (rc != NXL_OK)
        return rc;
    lock->once->work = WORK_NONE;
    lock->once->answered = false;
    lock->client->servers->who.asks_fsync = true;
    if (options && options->mode == NXL_ONCE_LOOK)
        life_query(&lock->life, CALL_LOOK, lock_seed(lock, now), now);
    else
        life_begin(&lock->life, wait_ns, lock_seed(lock, now), now);
    return NXL_PENDING;
}

static const struct call_type begin_type = {.kind = NXL_OP_ONCE_BEGIN,
    .request = "begin",
    .lease = LEASE_UNWANTED,
    .start = start_begin};

int nxl_once_begin(
    nxl_lock *lock, const nxl_once_options *options, int64_t wait_ms)
{
    struct call_args args = {.number = wait_ms, .options = options};
    return call_block(lock, &begin_type, &args);
}

int nxl_once_begin_start(
    nxl_lock *lock, const nxl_once_options *options, int64_t wait_ms)
{
    struct call_args args = {.number = wait_ms, .options = options};
    return call_enqueue(lock, &begin_type, &args);
}

/* ---------------------------------------------------------------------- tell
 */

static const char *wrong_tell(
    const struct once *once, const struct call_args *args)
{
    bool kept = args->length <= NXL_ONCE_RESULT_MOST;
    int verdict = (int)args->number;
    if (verdict < NXL_ONCE_DONE || verdict > NXL_ONCE_CLEAR)
        return "the verdict must be NXL_ONCE_DONE, _FAILED, _UNSURE or _CLEAR";
    if (once->work == WORK_FOUND && verdict != NXL_ONCE_DONE &&
        verdict != NXL_ONCE_FAILED)
        return "of another one's attempt only NXL_ONCE_DONE or _FAILED can be "
               "said";
    if (args->result && !kept)
        return "the result is longer than NXL_ONCE_RESULT_MOST bytes; pass "
               "NULL and NXL_ONCE_NOT_KEPT, and keep it elsewhere";
    if (!args->result && args->length && args->length != NXL_ONCE_NOT_KEPT)
        return "the result is NULL, but its length is not 0";
    return NULL;
}

static bool copy_result(struct once *once, const struct call_args *args)
{
    char *copy = NULL;
    size_t length = args->result ? args->length : 0;
    if (length && !(copy = malloc(length)))
        return false;
    if (length)
        memcpy(copy, args->result, length);
    free(once->result);
    once->result = copy;
    once->terms.result = (struct slice){copy, length};
    once->terms.not_kept = !args->result && args->length > 0;
    return true;
}

static int start_tell(
    struct nxl_lock *lock, const struct call_args *args, uint64_t now)
{
    struct once *once = lock->once;
    if (!once || once->work == WORK_NONE)
        return message_invalid(call_message(lock),
            "there is nothing to tell of: begin with nxl_once_begin()");
    const char *wrong = wrong_tell(once, args);
    if (wrong)
        return message_invalid(call_message(lock), "%s", wrong);
    if (!copy_result(once, args))
        return no_memory(lock);
    once->terms.verdict = (enum once_verdict)args->number;
    once->terms.code = args->code;
    if (!life_tell(&lock->life, once->terms.verdict == ONCE_CLEAR,
            once->work == WORK_OWN, lock_seed(lock, now), now))
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

/* -------------------------------------------------------------------- forget
 */

static int start_forget(
    struct nxl_lock *lock, const struct call_args *args, uint64_t now)
{
    struct once *once = lock->once;
    (void)args;
    if (!once || !once->answered || !once->record.state)
        return message_invalid(call_message(lock),
            "there is no record to remove; look with nxl_once_begin() and "
            "NXL_ONCE_LOOK first");
    once->terms.line = leaf_of(&once->found, 2);
    life_query(&lock->life, CALL_FORGET, lock_seed(lock, now), now);
    return NXL_PENDING;
}

static const struct call_type forget_type = {.kind = NXL_OP_ONCE_FORGET,
    .request = "removal",
    .lease = LEASE_ANY,
    .start = start_forget};

int nxl_once_forget(nxl_lock *lock)
{
    struct call_args args = {0};
    return call_block(lock, &forget_type, &args);
}

int nxl_once_forget_start(nxl_lock *lock)
{
    struct call_args args = {0};
    return call_enqueue(lock, &forget_type, &args);
}

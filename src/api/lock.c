/* SPDX-License-Identifier: MIT */
/*
 * Locks as handles. Keeps: a lock has at most one operation in progress; what
 * it needs during acquire and release is made with it, so that those do not
 * allocate.
 */
#include "api/lock.h"

#include <stdlib.h>

#include "api/ask.h"
#include "api/engine.h"
#include "api/hold.h"
#include "api/lease.h"
#include "api/message.h"
#include "api/operation.h"
#include "api/options.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "base/guard.h"
#include "core/lease.h"

static int invalid_state(struct nxl_lock *lock, const struct call *call)
{
    struct nxl_client *client = lock->client;
    if (client->closed)
        return message_invalid(&lock->message,
            "the client of this lock has been freed; free locks before it");
    if (!client_enter(client, call->door))
        return message_invalid(&lock->message,
            "this client serves the %s door; use one client for each",
            client->door == DOOR_LOOP ? "non-blocking" : "blocking");
    if (lock->operation.running || !list_empty(&lock->operation.node))
        return message_invalid(&lock->message,
            "an operation on this lock is in progress, or its event has not "
            "been taken");
    if ((call->kind == NXL_OP_EXTEND || call->kind == NXL_OP_RELEASE) &&
        !lock->holding)
        return message_invalid(&lock->message,
            "this lock holds nothing; acquire it first");
    return NXL_OK;
}

/* A lease that was lost without a release is let go by what comes next. */
static bool still_held(struct nxl_lock *lock, uint64_t now)
{
    if (lock->holding && now < atomic_load(&lock->deadline)) {
        message_invalid(&lock->message,
            "this lock is held already; release it, or use another handle");
        return true;
    }
    if (lock->holding)
        lock_part(lock, now);
    return false;
}

static int call_acquire(struct nxl_lock *lock, int64_t wait_ms, uint64_t now)
{
    if (wait_ms < NXL_FOREVER)
        return message_invalid(&lock->message,
            "wait_ms is %lld; write 0 or more, or NXL_FOREVER",
            (long long)wait_ms);
    if (still_held(lock, now))
        return NXL_E_INVALID;
    if (atomic_exchange(&lock->client->interrupted, false)) {
        text_clear(&lock->message);
        text_add(&lock->message, "nxl_client_interrupt() was called before");
        return NXL_CANCELLED;
    }
    operation_acquire(lock,
        wait_ms == NXL_FOREVER ? NEVER : ms_to_ns((uint64_t)wait_ms), now);
    return NXL_PENDING;
}

static int call_extend(struct nxl_lock *lock, int64_t ttl_ms, uint64_t now)
{
    if (ttl_ms == 0)
        ttl_ms = lock->ttl_ms;
    if (!options_ttl(lock->client, ttl_ms, &lock->message))
        return NXL_E_INVALID;
    if (now >= atomic_load(&lock->deadline) && guarded(GUARD_LAPSED)) {
        lease_lapse(lock, now);
        text_clear(&lock->message);
        text_add(&lock->message, "the lease had run out before it was to be "
                                 "prolonged");
        return NXL_LOST;
    }
    operation_extend(lock, (uint32_t)ttl_ms,
        deadline_after(now, lock->client->timeout_ns), now);
    return NXL_PENDING;
}

static int call_adopt(struct nxl_lock *lock, const char *token, uint64_t now)
{
    if (!token || !token_valid(slice_of(token)))
        return message_invalid(&lock->message,
            "not a token; write UUID or UUID@label as nxl_lock_token() "
            "gives it");
    if (still_held(lock, now))
        return NXL_E_INVALID;
    lock->token_len = strlen(token);
    memmove(lock->token, token, lock->token_len + 1); /* perhaps its own */
    lock->token_foreign = true;
    lock->reached = ~0U;
    operation_round(lock, NXL_OP_ADOPT, now);
    return NXL_PENDING;
}

static int call_break(
    struct nxl_lock *lock, const nxl_holder *seen, uint64_t now)
{
    if (!seen || seen->size == 0 || seen->value_length == 0)
        return message_invalid(&lock->message,
            "nothing to break; give what nxl_lock_inspect() filled in");
    if (seen->truncated || seen->value_length >= sizeof lock->target)
        return message_invalid(&lock->message,
            "the value is longer than %zu bytes: it is no lock, and cannot "
            "be compared whole",
            sizeof lock->target - 1);
    lock->target_len = seen->value_length;
    memcpy(lock->target, seen->value, lock->target_len);
    operation_round(lock, NXL_OP_BREAK, now);
    return NXL_PENDING;
}

int lock_call(struct nxl_lock *lock, const struct call *call, uint64_t now)
{
    int rc = invalid_state(lock, call);
    if (rc != NXL_OK)
        return rc;
    if (call->kind == OP_ASK)
        return ask_begin(lock, call->ask, now);
    switch (call->kind) {
    case NXL_OP_ACQUIRE:
        return call_acquire(lock, call->number, now);
    case NXL_OP_EXTEND:
        return call_extend(lock, call->number, now);
    case NXL_OP_RELEASE:
        operation_release(lock, now);
        return NXL_PENDING;
    case NXL_OP_ADOPT:
        return call_adopt(lock, call->token, now);
    case NXL_OP_INSPECT:
        operation_round(lock, NXL_OP_INSPECT, now);
        return NXL_PENDING;
    case NXL_OP_BREAK:
        return call_break(lock, call->seen, now);
    case NXL_OP_HOLD: /* nobody calls that */
        break;
    }
    return NXL_E_INVALID;
}

/* -------------------------------------------------------- making, freeing */

static void free_memory(struct nxl_lock *lock, unsigned servers)
{
    for (unsigned i = 0; i < servers; i++)
        request_free(&lock->requests[i]);
    kept_commands_free(&lock->kept);
    free(lock->notes);
    sem_destroy(&lock->operation.wake);
    free(lock->label);
    free(lock->counter);
    free(lock->key);
    free(lock);
}

/* One of the two handles that a lock may have. */
static void unmake_one(struct nxl_lock *lock)
{
    struct nxl_client *client = lock->client;
    timers_unreserve(&client->timers);
    free_memory(lock, client->server_count);
}

/* A lock and its agent, if it has one. */
static void unmake(struct nxl_lock *lock)
{
    struct nxl_lock *agent = hold_free(lock);
    if (agent)
        unmake_one(agent);
    unmake_one(lock);
}

/* The counter of a key has its hash tag, or the key as one. */
static char *counter_of(struct slice key, struct slice *counter)
{
    const char *open = memchr(key.data, '{', key.len);
    size_t rest = open ? key.len - (size_t)(open + 1 - key.data) : 0;
    const char *close = rest ? memchr(open + 1, '}', rest) : NULL;
    bool tagged = close && close > open + 1;
    struct slice before = slice_of(tagged ? "" : "{");
    struct slice behind = slice_of(tagged ? ":f" : "}:f");
    size_t len = before.len + key.len + behind.len;
    char *bytes = malloc(len);
    if (!bytes)
        return NULL;
    memcpy(bytes, before.data, before.len);
    memcpy(bytes + before.len, key.data, key.len);
    memcpy(bytes + before.len + key.len, behind.data, behind.len);
    *counter = (struct slice){bytes, len};
    return bytes;
}

/* Memory and links of a lock whose options are good. NULL: no memory. */
static struct nxl_lock *make(
    struct nxl_client *client, const struct lock_settings *set)
{
    unsigned servers = client->server_count;
    struct nxl_lock *lock =
        calloc(1, sizeof *lock + servers * sizeof lock->requests[0]);
    if (!lock)
        return NULL;
    sem_init(&lock->operation.wake, 0, 0);
    list_init(&lock->operation.node);
    list_init(&lock->node);
    lock->client = client;
    lock->user = set->user;
    lock->ttl_ms = set->ttl_ms;
    lock->retry_first_ns = set->retry_first_ns;
    lock->retry_most_ns = set->retry_most_ns;
    lock->min_hold_ms = set->min_hold_ms;
    lock->max_hold_ns = set->max_hold_ns;
    lock->ends = NEVER;
    lock->key = malloc(set->prefix.len + set->name.len);
    bool ok = lock->key != NULL;
    if (ok && set->label)
        ok = (lock->label = strdup(set->label)) != NULL;
    if (ok) {
        if (set->prefix.len)
            memcpy(lock->key, set->prefix.data, set->prefix.len);
        memcpy(lock->key + set->prefix.len, set->name.data, set->name.len);
        lock->verb.key =
            (struct slice){lock->key, set->prefix.len + set->name.len};
        lock->token_len = token_layout(lock->token, lock->label);
        lock->token[0] = '\0'; /* none drawn yet */
    }
    if (ok && servers > 1)
        ok = (lock->notes = calloc(servers, sizeof *lock->notes)) != NULL;
    if (ok && set->fence)
        ok = (lock->counter =
                     counter_of(lock->verb.key, &lock->verb.counter)) != NULL;
    for (unsigned i = 0; ok && i < servers; i++) {
        lock->requests[i].owner = &lock->operation;
        lock->requests[i].index = i;
        list_init(&lock->requests[i].node);
        ok = request_prepare(&lock->requests[i], lock->verb.key);
    }
    if (ok && timers_reserve(&client->timers))
        return lock;
    free_memory(lock, servers);
    return NULL;
}

/* ... and the handle that renews it. */
static struct nxl_lock *make_kept(
    struct nxl_client *client, const struct lock_settings *set)
{
    struct lock_settings plain = *set;
    struct nxl_lock *lock = make(client, set);
    if (!lock || !set->renew)
        return lock;
    plain.label = NULL;
    plain.fence = false;
    struct nxl_lock *agent = make(client, &plain);
    if (agent && hold_make(lock, agent))
        return lock;
    if (agent)
        unmake_one(agent);
    unmake_one(lock);
    return NULL;
}

int nxl_lock_new(nxl_lock **lock, nxl_client *client, const char *name,
    const nxl_lock_options *options)
{
    if (!lock)
        return NXL_E_INVALID;
    *lock = NULL;
    if (!client)
        return NXL_E_INVALID;
    if (client_forked(client))
        return NXL_E_FORKED;
    pthread_mutex_lock(&client->mutex);
    struct lock_settings set;
    int rc = NXL_E_INVALID;
    if (client->closed) {
        message_invalid(&client->message, "the client has been freed");
    } else if (options_lock(client, name, options, &set)) {
        *lock = make_kept(client, &set);
        rc = *lock ? NXL_OK : NXL_E_NOMEM;
        if (*lock) {
            list_append(&client->locks, &(*lock)->node);
            client->refs++;
        } else {
            text_clear(&client->message);
            text_add(&client->message, "no memory for a lock");
        }
    }
    pthread_mutex_unlock(&client->mutex);
    return rc;
}

void nxl_lock_free(nxl_lock *lock)
{
    if (!lock)
        return;
    struct nxl_client *client = lock->client;
    if (client_forked(client))
        return; /* see nxl_client_free */
    client_lock(client);
    if (!client->closed) {
        uint64_t now = clock_now();
        operation_discard(&lock->operation, now);
        if (lock->holding)
            lock_part(lock, now);
        hold_end(lock, now);
        engine_push(client, now);
        engine_hurry(client);
    }
    list_remove(&lock->operation.node);
    list_remove(&lock->node);
    unmake(lock);
    client_unref(client); /* unlocks */
}

/* ----------------------------------------------------------------- looking */

bool nxl_lock_held(const nxl_lock *lock)
{
    if (!lock)
        return false;
    uint64_t deadline =
        atomic_load_explicit(&lock->deadline, memory_order_acquire);
    return deadline && clock_now() < deadline && !client_forked(lock->client);
}

uint64_t nxl_lock_deadline(const nxl_lock *lock)
{
    if (!lock || client_forked(lock->client))
        return 0;
    uint64_t deadline =
        atomic_load_explicit(&lock->deadline, memory_order_acquire);
    return clock_now() < deadline ? deadline : 0;
}

int64_t nxl_lock_remaining_ms(const nxl_lock *lock)
{
    uint64_t left = deadline_left(nxl_lock_deadline(lock), clock_now());
    return (int64_t)(left / NS_PER_MS);
}

uint64_t nxl_now_ns(void)
{
    return clock_now();
}

const char *nxl_lock_token(const nxl_lock *lock)
{
    return lock ? lock->token : "";
}

uint64_t nxl_lock_fence(const nxl_lock *lock)
{
    return lock ? atomic_load(&lock->fence) : 0;
}

const char *nxl_lock_errmsg(const nxl_lock *lock)
{
    if (!lock)
        return "the lock is NULL";
    if (client_forked(lock->client))
        return MESSAGE_FORKED;
    return lock->message.data;
}

/* SPDX-License-Identifier: MIT */
/* Lock handles: creating and freeing them, and what they report. */
#include "lock/handle.h"

#include <stdlib.h>

#include "api/lock.h"
#include "api/options.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "client/loop.h"
#include "lock/drive.h"
#include "lock/loss.h"
#include "lock/members.h"
#include "lock/errmsg.h"
#include "lock/once.h"
#include "lock/waiting.h"

/* -------------------------------------------------------- making, freeing */

static void free_renewing(struct renewing *renewing)
{
    if (!renewing)
        return;
    list_remove(&renewing->lost);
    operation_free(&renewing->operation);
    inspection_free(renewing->inspected, renewing->lock->client->server_count);
    free(renewing);
}

/* Frees what has been made so far; does not unreserve timers. */
static void free_memory(struct nxl_lock *lock)
{
    free_renewing(lock->renewing);
    operation_free(&lock->operation);
    call_free(&lock->call);
    inspection_free(lock->inspected, lock->client->server_count);
    free(lock->target);
    free(lock->adopted_token);
    waiting_free(lock->name.waiting);
    name_free(&lock->name);
    once_free(lock);
    free(lock);
}

static bool make_renewing(struct nxl_lock *lock)
{
    struct renewing *renewing = calloc(1, sizeof(*renewing));
    lock->renewing = renewing;
    if (!renewing)
        return false;
    renewing->lock = lock;
    list_init(&renewing->lost);
    renewing->operation.cache = &lock->name.cache;
    renewing->inspected = inspection_new(lock->client->server_count);
    return renewing->inspected &&
           operation_init(&renewing->operation, &lock_renewal_type,
               lock->client, lock->name.key);
}

static void begin_life(struct nxl_lock *lock, const struct lock_settings *set)
{
    const struct nxl_client *client = lock->client;
    const struct server *server = &nodes_first(&client->nodes)->server;
    struct life_terms terms = {
        .servers = client->server_count,
        .peers = client->peers,
        .ttl_ms = set->ttl_ms,
        .min_hold_ms = set->min_hold_ms,
        .max_ttl_ms = client->max_ttl_ms,
        .drift_ppm = client->drift_ppm,
        .max_hold_ns = set->max_hold_ns,
        .timeout_ns = client->timeout_ns,
        .retry_first_ns = set->retry_first_ns,
        .retry_max_ns = set->retry_max_ns,
        .fenced = set->fence,
        .copies_ns =
            ms_to_ns(replica_wait_ms(&server->replica_wait, set->ttl_ms)),
        .renewed = set->renew,
    };
    life_init(&lock->life, &terms, lock->name.ballots,
        lock->renewing ? &lock->renewing->renewal : NULL);
}

/* All memory that a lock needs. */
static bool allocate_parts(
    struct nxl_lock *lock, const struct lock_settings *set)
{
    lock->name.ballots = lock->ballots;
    if (!name_make(&lock->name, set->prefix, set->name, set->fence))
        return false;
    lock->inspected = inspection_new(lock->client->server_count);
    if (!lock->inspected || !operation_init(&lock->operation, &lock_call_type,
                                lock->client, lock->name.key))
        return false;
    lock->operation.verb.counter = lock->name.counter;
    if (set->renew && !make_renewing(lock))
        return false;
    begin_life(lock, set);
    return true;
}

struct nxl_lock *lock_make(
    struct nxl_client *client, const struct lock_settings *set)
{
    size_t ballots = (size_t)LIFE_BALLOTS * client->server_count;
    char token[TOKEN_MAX + 1];
    size_t token_len = token_layout(token, set->share, set->label);
    struct nxl_lock *lock = calloc(
        1, sizeof(*lock) + ballots * sizeof(*lock->ballots) + token_len + 1);
    if (!lock)
        return NULL;
    lock->token = lock->own_token = (char *)(lock->ballots + ballots);
    lock->own_len = lock->token_len = (uint8_t)token_len;
    /* The first byte stays zero: nothing has been acquired yet. */
    memcpy(lock->own_token + 1, token + 1, token_len);
    call_init(&lock->call);
    list_init(&lock->node);
    lock->client = client;
    lock->user = set->user;
    if (!allocate_parts(lock, set) || !timers_reserve(&client->timers)) {
        free_memory(lock);
        return NULL;
    }
    if (!set->renew || timers_reserve(&client->renewals))
        return lock;
    timers_unreserve(&client->timers, &lock->operation.timer);
    free_memory(lock);
    return NULL;
}

void lock_unmake(struct nxl_lock *lock)
{
    struct nxl_client *client = lock->client;
    list_remove(&lock->node);
    timers_unreserve(&client->timers, &lock->operation.timer);
    if (lock->renewing)
        timers_unreserve(&client->renewals, &lock->renewing->operation.timer);
    free_memory(lock);
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
        errmsg_invalid(&client->errmsg, "the client has been freed");
    } else if (options_lock(client, name, options, &set)) {
        *lock = lock_make(client, &set);
        rc = *lock ? NXL_OK : NXL_E_NOMEM;
        if (*lock) {
            list_append(&client->locks, &(*lock)->node);
            client->refs++;
        } else {
            text_set(&client->errmsg, "out of memory: cannot create the "
                                      "lock");
        }
    } else {
        rc = set.refused;
    }
    pthread_mutex_unlock(&client->mutex);
    return rc;
}

static void unmake_members(struct nxl_lock *front)
{
    struct members *m = members_of(front);
    for (unsigned i = 0; i < m->count; i++)
        lock_unmake(m->locks[i]);
    free(m);
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
        lock_end(lock, now);
        loop_push(client, now);
        loop_hurry(client);
    }
    if (lock->group)
        unmake_members(lock);
    lock_unmake(lock);
    client_unref(client); /* unlocks */
}

/* ----------------------------------------------------------------- looking */

bool nxl_lock_held(const nxl_lock *lock)
{
    if (!lock)
        return false;
    return lease_held(&lock->life.lease, clock_now()) && !lock->life.unseen &&
           !client_forked(lock->client);
}

uint64_t nxl_lock_deadline(const nxl_lock *lock)
{
    if (!lock || client_forked(lock->client) || lock->life.unseen)
        return 0;
    uint64_t deadline = atomic_load(&lock->life.lease.deadline);
    return lease_held(&lock->life.lease, clock_now()) ? deadline : 0;
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
    return lock && !lock->life.unseen ? lock->token : "";
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
        return ERRMSG_FORKED;
    const char *words = operation_words(&lock->operation);
    if (*words || !lock->renewing)
        return words;
    pthread_mutex_lock(&lock->client->mutex);
    words = loss_words(lock);
    pthread_mutex_unlock(&lock->client->mutex);
    return words;
}

const char *nxl_lock_errmsg_at(const nxl_lock *lock, size_t server)
{
    static _Thread_local struct text copy;
    text_clear(&copy);
    if (!lock)
        return "the lock is NULL";
    struct nxl_client *client = lock->client;
    if (client_forked(client))
        return ERRMSG_FORKED;
    pthread_mutex_lock(&client->mutex);
    if (server < client->server_count) {
        if (client->server_count > 1)
            errmsg_at(members_operation(lock), (unsigned)server, &copy);
        else
            text_add(&copy, operation_words(&lock->operation));
    }
    pthread_mutex_unlock(&client->mutex);
    return copy.data;
}

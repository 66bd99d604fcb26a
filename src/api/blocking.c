/* SPDX-License-Identifier: MIT */
/*
 * The blocking door. Threads that wait share one reader: whoever finds nobody
 * reading waits and reads for all (the leader), the others sleep until their
 * operation is over or the reading is handed to them. A single-threaded
 * program is always its own leader and pays for none of this.
 *
 * Keeps: while any operation is running some thread leads or has been woken
 * to lead; the mutex is free while the leader sleeps.
 */
#include <errno.h>
#include <string.h>

#include "api/engine.h"
#include "api/keeper.h"
#include "api/lease.h"
#include "api/lock.h"
#include "api/operation.h"
#include "api/reading.h"
#include "base/clock.h"
#include "base/deadline.h"

void reading_take(struct nxl_client *client)
{
    client->led = true;
}

uint64_t reading_turn(struct nxl_client *client, uint64_t now)
{
    struct engine_events events;
    uint64_t until = engine_deadline(client);
    client->waiting = true;
    client->wait_until = until;
    pthread_mutex_unlock(&client->mutex);
    engine_wait(client, &events, until, now);
    now = clock_now();
    pthread_mutex_lock(&client->mutex);
    client->waiting = false;
    engine_process(client, &events, now);
    return now;
}

void reading_hand_on(struct nxl_client *client)
{
    client->led = false;
    struct list *node = list_pop(&client->followers);
    if (!node) {
        keeper_lead(client);
        return;
    }
    struct operation *op = list_entry(node, struct operation, node);
    client->led = true; /* it leads from now on, though it still sleeps */
    op->asleep = false;
    op->promoted = true;
    sem_post(&op->wake);
}

static void sleep_until_woken(struct operation *op)
{
    while (sem_wait(&op->wake) < 0 && errno == EINTR)
        ;
}

/* Until op is over. The mutex is held on entry and not on return. */
static void wait_for(
    struct nxl_client *client, struct operation *op, uint64_t now)
{
    if (op->running && client->led) {
        engine_hurry(client);
        op->asleep = true;
        op->promoted = false;
        list_append(&client->followers, &op->node);
        pthread_mutex_unlock(&client->mutex);
        sleep_until_woken(op);
        if (!op->promoted)
            return; /* it is over, and whoever woke us is done with it */
        pthread_mutex_lock(&client->mutex);
        now = clock_now();
    } else if (op->running) {
        reading_take(client);
    } else {
        pthread_mutex_unlock(&client->mutex);
        return;
    }
    while (op->running)
        now = reading_turn(client, now);
    reading_hand_on(client);
    pthread_mutex_unlock(&client->mutex);
}

static int finish(struct nxl_client *client, struct operation *op)
{
    if (!operation_stale(op))
        return op->result;
    pthread_mutex_lock(&client->mutex);
    uint64_t now = clock_now();
    operation_drop_stale(op, now);
    engine_push(client, now);
    engine_hurry(client);
    pthread_mutex_unlock(&client->mutex);
    return op->result;
}

/* What was just granted is to be kept alive by somebody. */
static int keep(struct nxl_lock *lock)
{
    struct nxl_client *client = lock->client;
    pthread_mutex_lock(&client->mutex);
    bool kept = keeper_start(client);
    if (!kept) {
        int error = errno;
        uint64_t now = clock_now();
        lock_let_go(lock, now);
        text_clear(&lock->message);
        text_addf(&lock->message, "no thread to renew with: %s; it has been "
                                  "released", strerror(error));
        client->message = lock->message;
        engine_push(client, now);
        engine_hurry(client);
    }
    pthread_mutex_unlock(&client->mutex);
    return kept ? NXL_OK : NXL_E_SYSTEM;
}

static int block(struct nxl_lock *lock, const struct call *call)
{
    if (!lock)
        return NXL_E_INVALID;
    struct nxl_client *client = lock->client;
    if (client_forked(client))
        return NXL_E_FORKED;
    /* A thread that is cancelled while it leads would leave the others
     * asleep for ever. */
    int cancel_state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    uint64_t now = clock_now();
    pthread_mutex_lock(&client->mutex);
    int rc = lock_call(lock, call, now);
    if (rc == NXL_PENDING) {
        engine_push(client, now);
        wait_for(client, &lock->operation, now);
        rc = finish(client, &lock->operation);
        if (lock->hold && rc == NXL_OK && nxl_lock_held(lock))
            rc = keep(lock);
    } else {
        pthread_mutex_unlock(&client->mutex);
    }
    client_warn(client);
    pthread_setcancelstate(cancel_state, NULL);
    return rc;
}

int lock_block(struct nxl_lock *lock, const struct call *call)
{
    return block(lock, call);
}

int nxl_lock_acquire(nxl_lock *lock, int64_t wait_ms)
{
    struct call call = {
        .kind = NXL_OP_ACQUIRE, .door = DOOR_BLOCKING, .number = wait_ms};
    return block(lock, &call);
}

int nxl_lock_extend(nxl_lock *lock, int64_t ttl_ms)
{
    struct call call = {
        .kind = NXL_OP_EXTEND, .door = DOOR_BLOCKING, .number = ttl_ms};
    return block(lock, &call);
}

int nxl_lock_release(nxl_lock *lock)
{
    struct call call = {.kind = NXL_OP_RELEASE, .door = DOOR_BLOCKING};
    return block(lock, &call);
}

int nxl_lock_adopt(nxl_lock *lock, const char *token)
{
    struct call call = {
        .kind = NXL_OP_ADOPT, .door = DOOR_BLOCKING, .token = token};
    return block(lock, &call);
}

int nxl_lock_inspect(nxl_lock *lock, nxl_holder *holder)
{
    struct call call = {.kind = NXL_OP_INSPECT, .door = DOOR_BLOCKING};
    int rc = block(lock, &call);
    return rc == NXL_OK && holder ? nxl_lock_holder(lock, holder) : rc;
}

int nxl_lock_break(nxl_lock *lock, const nxl_holder *seen)
{
    struct call call = {
        .kind = NXL_OP_BREAK, .door = DOOR_BLOCKING, .seen = seen};
    return block(lock, &call);
}

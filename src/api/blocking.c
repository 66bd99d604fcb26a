/* SPDX-License-Identifier: MIT */
/* The blocking API: each call from its start to its result. */
#include "api/blocking.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/deadline.h"
#include "client/poller_thread.h"
#include "client/renewal_thread.h"
#include "client/loop.h"
#include "lock/drive.h"
#include "lock/errmsg.h"
#include "lock/once.h"
#include "lock/warning.h"

static int final_result(struct nxl_lock *lock)
{
    struct nxl_client *client = lock->client;
    if (!life_grant_expired(&lock->life, clock_now()))
        return lock->call.result;
    pthread_mutex_lock(&client->mutex);
    uint64_t now = clock_now();
    lock_drop_expired(lock, now);
    loop_push(client, now);
    loop_hurry(client);
    pthread_mutex_unlock(&client->mutex);
    return lock->call.result;
}

/* The renewal thread cannot be started. A lock that was just acquired is
 * released; one that was just adopted still belongs to its former owner. */
static void release_unrenewed(struct nxl_lock *lock, int error)
{
    struct nxl_client *client = lock->client;
    struct text *message = operation_errmsg(&lock->operation);
    bool adopted = lock->kind == NXL_OP_ADOPT;
    uint64_t now = clock_now();
    if (adopted)
        life_end_keeping_key(&lock->life, now);
    else
        life_end_removing_key(&lock->life, now);
    if (lock_is_front(lock))
        lock->group->type->give_up(lock, now);
    lock_run(lock, now);
    text_clear(message);
    text_addf(message, "cannot start the renewal thread: %s; %s",
        strerror(error),
        adopted ? "the lock was not adopted and is unchanged"
                : "the lock has been released");
    client->errmsg = *message;
    loop_push(client, now);
    loop_hurry(client);
}

/* A renewed lock that was just granted needs the renewal thread, also to report
 * its loss if its lease has expired by now. */
static int need_thread(struct nxl_lock *lock)
{
    struct nxl_client *client = lock->client;
    pthread_mutex_lock(&client->mutex);
    bool on = lock->group ? client->renewed_locks > 0 : lock->renewing->on;
    bool renewed = !on || renewal_thread_start(client);
    if (!renewed)
        release_unrenewed(lock, errno);
    pthread_mutex_unlock(&client->mutex);
    return renewed ? NXL_OK : NXL_E_SYSTEM;
}

/* The caller of a BEGIN has its result. */
static void hand_out(struct nxl_lock *lock)
{
    pthread_mutex_lock(&lock->client->mutex);
    once_seen(lock);
    pthread_mutex_unlock(&lock->client->mutex);
}

int call_block(struct nxl_lock *lock, const struct call_type *type,
    const struct call_args *args)
{
    if (!lock)
        return NXL_E_INVALID;
    struct nxl_client *client = lock->client;
    if (client_forked(client))
        return NXL_E_FORKED;
    /* If the poller thread were cancelled (pthread_cancel), the other threads
     * would sleep forever. */
    int cancel_state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    pthread_mutex_lock(&client->mutex);
    uint64_t now = clock_now();
    int rc = call_start(lock, type, MODE_BLOCKING, args, now);
    loop_push(client, now); /* also what a call that is over has left */
    if (rc == NXL_PENDING) {
        poller_thread_wait(client, &lock->call, &lock->operation.timer, now);
        rc = final_result(lock);
        if (lock->renewing && rc == NXL_OK)
            rc = need_thread(lock);
        if (lock->life.unseen)
            hand_out(lock);
    } else {
        pthread_mutex_unlock(&client->mutex);
    }
    warning_deliver(client);
    pthread_setcancelstate(cancel_state, NULL);
    return rc;
}

/* SPDX-License-Identifier: MIT */
/*
 * The non-blocking door: descriptors and time-out out, process, events.
 * Keeps: nothing here waits; every operation that was started gives exactly
 * one event.
 */
#include <errno.h>
#include <poll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "api/engine.h"
#include "api/hold.h"
#include "api/lease.h"
#include "api/lock.h"
#include "api/message.h"
#include "api/operation.h"
#include "base/clock.h"
#include "base/deadline.h"

/* Enters with the mutex, or refuses. */
static int enter(struct nxl_client *client)
{
    if (!client)
        return NXL_E_INVALID;
    if (client_forked(client))
        return NXL_E_FORKED;
    client_lock(client);
    if (!client->closed && client_enter(client, DOOR_LOOP))
        return NXL_OK;
    message_invalid(&client->message,
        "this client serves the blocking door; use one client for each");
    client_unlock(client);
    return NXL_E_INVALID;
}

static bool has_events(const struct nxl_client *client)
{
    return !list_empty(&client->events) || !list_empty(&client->losses);
}

/* The timer makes the one descriptor readable when time-outs are due or
 * events wait. */
static void set_timer(struct nxl_client *client)
{
    if (client->timer_fd < 0)
        return;
    uint64_t at = has_events(client) ? 0 : engine_deadline(client);
    if (at == client->timer_at && at != 0)
        return;
    client->timer_at = at;
    uint64_t left = deadline_left(at, clock_now());
    struct itimerspec when = {0};
    if (at != NEVER) {
        left += left == 0; /* 0 would stop it */
        when.it_value.tv_sec = (time_t)(left / NS_PER_S);
        when.it_value.tv_nsec = (long)(left % NS_PER_S);
    }
    timerfd_settime(client->timer_fd, 0, &when, NULL);
}

static void make_timer(struct nxl_client *client)
{
    int fd = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (fd >= 0 && watch_add(&client->watch, fd, POLLIN, KEY_TIMER)) {
        client->timer_fd = fd;
        client->timer_at = 0;
        return;
    }
    if (fd >= 0)
        close(fd);
    text_clear(&client->message);
    text_add(&client->message, "the system gave no descriptor (timerfd)");
}

int nxl_client_fd(nxl_client *client)
{
    if (enter(client) != NXL_OK)
        return -1;
    if (client->timer_fd < 0)
        make_timer(client);
    int fd = client->timer_fd < 0 ? -1 : client->watch.fd;
    engine_push(client, clock_now());
    set_timer(client);
    client_unlock(client);
    return fd;
}

/* ----------------------------------------------------------------- driving */

size_t nxl_client_pollfds(nxl_client *client, struct pollfd *fds,
    size_t capacity, int *timeout_ms)
{
    if (timeout_ms)
        *timeout_ms = -1;
    if (enter(client) != NXL_OK)
        return 0;
    uint64_t now = clock_now();
    engine_push(client, now);
    if (fds && capacity)
        fds[0] = (struct pollfd){.fd = client->watch.fd, .events = POLLIN};
    if (timeout_ms)
        *timeout_ms = has_events(client)
                          ? 0
                          : deadline_poll_ms(engine_deadline(client), now);
    set_timer(client);
    client_unlock(client);
    return 1;
}

int nxl_client_process(nxl_client *client)
{
    int rc = enter(client);
    if (rc != NXL_OK)
        return rc;
    struct engine_events events;
    uint64_t now = clock_now();
    engine_wait(client, &events, now, now);
    engine_process(client, &events, now);
    set_timer(client);
    client_unlock(client);
    return NXL_OK;
}

static bool next_operation(struct nxl_client *client, nxl_event *event)
{
    struct list *node = list_pop(&client->events);
    if (!node)
        return false;
    struct operation *op = list_entry(node, struct operation, node);
    struct nxl_lock *lock = lock_of(op);
    if (operation_stale(op))
        operation_drop_stale(op, clock_now());
    *event = (nxl_event){
        .lock = lock,
        .user = lock->user,
        .operation = (int)op->kind,
        .result = op->result,
    };
    return true;
}

static bool next_loss(struct nxl_client *client, nxl_event *event)
{
    struct nxl_lock *lock = hold_take_loss(client);
    if (!lock)
        return false;
    *event = (nxl_event){
        .lock = lock,
        .user = lock->user,
        .operation = NXL_OP_HOLD,
        .result = NXL_LOST,
    };
    return true;
}

bool nxl_client_next_event(nxl_client *client, nxl_event *event)
{
    if (!client || !event || client_forked(client))
        return false;
    client_lock(client);
    bool loops = !client->closed && client->door == DOOR_LOOP;
    /* A grant comes before the loss of it; and one that is lost by then was
     * none, and its loss is not told. */
    bool any = (loops && next_operation(client, event)) ||
               next_loss(client, event);
    client_unlock(client);
    if (loops)
        client_warn(client);
    return any;
}

/* ---------------------------------------------------------------- starting */

static int start(struct nxl_lock *lock, const struct call *call)
{
    if (!lock)
        return NXL_E_INVALID;
    struct nxl_client *client = lock->client;
    if (client_forked(client))
        return NXL_E_FORKED;
    client_lock(client);
    int rc = lock_call(lock, call, clock_now());
    /* A loop that waits for the one descriptor has to come and send it. */
    if (rc == NXL_PENDING)
        engine_hurry(client);
    client_unlock(client);
    return rc;
}

int nxl_lock_acquire_start(nxl_lock *lock, int64_t wait_ms)
{
    struct call call = {
        .kind = NXL_OP_ACQUIRE, .door = DOOR_LOOP, .number = wait_ms};
    return start(lock, &call);
}

int nxl_lock_extend_start(nxl_lock *lock, int64_t ttl_ms)
{
    struct call call = {
        .kind = NXL_OP_EXTEND, .door = DOOR_LOOP, .number = ttl_ms};
    return start(lock, &call);
}

int nxl_lock_release_start(nxl_lock *lock)
{
    struct call call = {.kind = NXL_OP_RELEASE, .door = DOOR_LOOP};
    return start(lock, &call);
}

int nxl_lock_adopt_start(nxl_lock *lock, const char *token)
{
    struct call call = {
        .kind = NXL_OP_ADOPT, .door = DOOR_LOOP, .token = token};
    return start(lock, &call);
}

int nxl_lock_inspect_start(nxl_lock *lock)
{
    struct call call = {.kind = NXL_OP_INSPECT, .door = DOOR_LOOP};
    return start(lock, &call);
}

int nxl_lock_break_start(nxl_lock *lock, const nxl_holder *seen)
{
    struct call call = {
        .kind = NXL_OP_BREAK, .door = DOOR_LOOP, .seen = seen};
    return start(lock, &call);
}

int nxl_lock_cancel(nxl_lock *lock)
{
    if (!lock)
        return NXL_E_INVALID;
    struct nxl_client *client = lock->client;
    if (client_forked(client))
        return NXL_E_FORKED;
    client_lock(client);
    int rc = client->closed ? NXL_E_INVALID : NXL_OK;
    if (lock->operation.running && lock->operation.kind != NXL_OP_RELEASE) {
        uint64_t now = clock_now();
        operation_cancel(&lock->operation, now);
        engine_push(client, now);
        engine_wake(client);
    }
    client_unlock(client);
    return rc;
}

void nxl_client_interrupt(nxl_client *client)
{
    int error = errno; /* this may be a signal handler */
    if (client && !client_forked(client)) {
        atomic_store(&client->interrupted, true);
        engine_wake(client);
    }
    errno = error;
}

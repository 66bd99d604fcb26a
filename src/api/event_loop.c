/* SPDX-License-Identifier: MIT */
/*
 * The event-loop API: descriptor and timeout for the caller's loop, processing,
 * events.
 *
 * Invariant: nothing here waits; every call that was started gives exactly one
 * event.
 */
#include "api/event_loop.h"

#include <errno.h>
#include <poll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/deadline.h"
#include "client/loop.h"
#include "lock/drive.h"
#include "lock/loss.h"
#include "lock/errmsg.h"
#include "lock/once.h"
#include "lock/warning.h"

/* Takes the mutex and checks the mode. On failure the mutex is not held. */
static int lock_for_loop(struct nxl_client *client)
{
    if (!client)
        return NXL_E_INVALID;
    if (client_forked(client))
        return NXL_E_FORKED;
    client_lock(client);
    if (!client->closed && client_enter(client, MODE_LOOP))
        return NXL_OK;
    errmsg_invalid(&client->errmsg,
        client->closed ? "the client has been freed"
                       : "this client is in use through the blocking API; "
                         "use another client for this call");
    client_unlock(client);
    return NXL_E_INVALID;
}

static bool has_events(const struct nxl_client *client)
{
    return !list_empty(&client->events) || !list_empty(&client->losses);
}

/* Sets the timer in the poller, which makes the one descriptor readable when a
 * timer is due or an event waits. */
static void set_timer(struct nxl_client *client)
{
    if (client->timer_fd < 0)
        return;
    uint64_t at = has_events(client) ? 0 : loop_deadline(client);
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
    if (fd >= 0 && poller_add(&client->poller, fd, POLLIN, &client->timer)) {
        client->timer_fd = fd;
        client->timer_at = 0;
        return;
    }
    if (fd >= 0)
        close(fd);
    text_set(&client->errmsg, "cannot create a timerfd descriptor: out of "
                              "file descriptors?");
}

int nxl_client_fd(nxl_client *client)
{
    if (lock_for_loop(client) != NXL_OK)
        return -1;
    if (client->timer_fd < 0)
        make_timer(client);
    int fd = client->timer_fd < 0 ? -1 : client->poller.fd;
    loop_push(client, clock_now());
    set_timer(client);
    client_unlock(client);
    return fd;
}

/* ----------------------------------------------------------------- driving */

size_t nxl_client_pollfds(
    nxl_client *client, struct pollfd *fds, size_t capacity, int *timeout_ms)
{
    if (timeout_ms)
        *timeout_ms = -1;
    if (lock_for_loop(client) != NXL_OK)
        return 0;
    uint64_t now = clock_now();
    loop_push(client, now);
    if (fds && capacity)
        fds[0] = (struct pollfd){.fd = client->poller.fd, .events = POLLIN};
    if (timeout_ms)
        *timeout_ms = has_events(client)
                          ? 0
                          : deadline_poll_ms(loop_deadline(client), now);
    set_timer(client);
    client_unlock(client);
    return 1;
}

int nxl_client_process(nxl_client *client)
{
    int rc = lock_for_loop(client);
    if (rc != NXL_OK)
        return rc;
    struct loop_events events;
    uint64_t now = clock_now();
    loop_epoll(client->poller.fd, &events, now, now);
    loop_process(client, &events, now);
    set_timer(client);
    client_unlock(client);
    return NXL_OK;
}

static bool next_operation(struct nxl_client *client, nxl_event *event)
{
    struct list *node = list_pop(&client->events);
    if (!node)
        return false;
    struct nxl_lock *lock = list_entry(node, struct nxl_lock, call.node);
    if (life_grant_expired(&lock->life, clock_now()))
        lock_drop_expired(lock, clock_now());
    once_seen(lock);
    *event = (nxl_event){
        .lock = lock,
        .user = lock->user,
        .operation = (int)lock->kind,
        .result = lock->call.result,
    };
    return true;
}

static bool next_loss(struct nxl_client *client, nxl_event *event)
{
    struct nxl_lock *lock = loss_take(client);
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
    bool loops = !client->closed && client->mode == MODE_LOOP;
    /* The event of a grant is returned before that of its loss. A grant that is
     * lost before its event is returned becomes NXL_LOST, without a loss
     * event. */
    bool any =
        (loops && next_operation(client, event)) || next_loss(client, event);
    client_unlock(client);
    if (loops)
        warning_deliver(client);
    return any;
}

/* ---------------------------------------------------------------- starting */

int call_enqueue(struct nxl_lock *lock, const struct call_type *type,
    const struct call_args *args)
{
    if (!lock)
        return NXL_E_INVALID;
    struct nxl_client *client = lock->client;
    if (client_forked(client))
        return NXL_E_FORKED;
    client_lock(client);
    int rc = call_start(lock, type, MODE_LOOP, args, clock_now());
    /* A loop that sleeps on the one descriptor must wake up to send the
     * request, or what a call that is over has left. */
    loop_hurry(client);
    client_unlock(client);
    return rc;
}

/* Ends the call in progress; an interrupt ends only an acquire. If there was
 * none, or its grant was already decided, the interrupt is kept for the next
 * acquire. */
static int cancel_call(struct nxl_lock *lock, bool interrupts)
{
    if (!lock)
        return NXL_E_INVALID;
    struct nxl_client *client = lock->client;
    if (client_forked(client))
        return NXL_E_FORKED;
    client_lock(client);
    int rc = client->closed ? NXL_E_INVALID : NXL_OK;
    bool stops =
        lock->call.running && (interrupts ? lock_acquires(lock)
                                          : lock->kind != NXL_OP_RELEASE &&
                                                lock->kind != NXL_OP_ONCE_TELL);
    if (stops) {
        uint64_t now = clock_now();
        lock_cancel(lock, now);
        loop_push(client, now);
        loop_wake(client);
    }
    if (interrupts)
        lock->interrupted = !stops || lock->call.result != NXL_CANCELLED;
    client_unlock(client);
    return rc;
}

int nxl_lock_cancel(nxl_lock *lock)
{
    return cancel_call(lock, false);
}

int nxl_lock_interrupt(nxl_lock *lock)
{
    return cancel_call(lock, true);
}

void nxl_client_interrupt(nxl_client *client)
{
    int error = errno; /* this may be a signal handler */
    if (client && !client_forked(client)) {
        atomic_store(&client->interrupted, true);
        loop_wake(client);
    }
    errno = error;
}

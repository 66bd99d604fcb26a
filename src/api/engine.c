/* SPDX-License-Identifier: MIT */
/*
 * Keeps: after each turn nothing is left undone that could be done without
 * waiting: no completion untaken, no timer due, no formatted byte unsent that
 * the socket would take.
 */
#include "api/engine.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "api/hold.h"
#include "api/operation.h"
#include "api/voters.h"
#include "base/deadline.h"

uint64_t engine_deadline(const struct nxl_client *client)
{
    uint64_t at =
        earlier(timers_next(&client->timers), timers_next(&client->holds));
    for (unsigned i = 0; i < client->server_count; i++)
        at = earlier(at, server_deadline(&client->servers[i]));
    return at;
}

void engine_push(struct nxl_client *client, uint64_t now)
{
    for (unsigned i = 0; !client->closed && i < client->server_count; i++)
        server_push(&client->servers[i], now);
}

void engine_wait(const struct nxl_client *client, struct engine_events *events,
    uint64_t until, uint64_t now)
{
    events->count = epoll_wait(client->watch.fd, events->list, ENGINE_EVENTS,
        deadline_poll_ms(until, now));
}

static void take_completions(
    struct nxl_client *client, unsigned server, uint64_t now)
{
    struct completion c;
    for (int i = 0; i < 2; i++) {
        while (server_next(&client->servers[server], &c, now))
            operation_outcome(c.request->owner, &c, now);
        /* A handshake may have ended, and its end may have completions. */
        voters_judge(client, server, now);
    }
}

/* Takes back what made an eventfd or timerfd readable. */
static void drain(int fd)
{
    uint64_t times;
    while (read(fd, &times, sizeof times) < 0 && errno == EINTR)
        ;
}

static void take_event(
    struct nxl_client *client, const struct epoll_event *event, uint64_t now)
{
    short revents = (short)((event->events & EPOLLIN ? POLLIN : 0) |
                            (event->events & EPOLLOUT ? POLLOUT : 0) |
                            (event->events & EPOLLERR ? POLLERR : 0) |
                            (event->events & EPOLLHUP ? POLLHUP : 0));
    unsigned key = event->data.u32;
    if (key < client->server_count) {
        server_ready(&client->servers[key], revents, now);
    } else if (key == KEY_WAKE) {
        drain(client->wake_fd);
    } else {
        drain(client->timer_fd);
        client->timer_at = 0;
    }
}

static void take_timers(struct nxl_client *client, uint64_t now)
{
    struct timer *timer;
    while ((timer = timers_due(&client->timers, now)))
        operation_tick(list_entry(timer, struct operation, timer), now);
    while ((timer = timers_due(&client->holds, now)))
        hold_tick(list_entry(timer, struct hold, timer), now);
}

/* nxl_client_interrupt(): what waits for a lock, or else what waits next. */
static void take_interrupt(struct nxl_client *client, uint64_t now)
{
    bool any = false;
    if (!atomic_load_explicit(&client->interrupted, memory_order_relaxed))
        return;
    for (struct list *node = client->locks.next; node != &client->locks;
         node = node->next) {
        struct operation *op =
            &list_entry(node, struct nxl_lock, node)->operation;
        if (!op->running || op->kind != NXL_OP_ACQUIRE)
            continue;
        operation_cancel(op, now);
        /* One that was granted already is not what it was meant for. */
        any |= !op->running && op->result == NXL_CANCELLED;
    }
    if (any)
        atomic_store(&client->interrupted, false);
}

void engine_process(struct nxl_client *client,
    const struct engine_events *events, uint64_t now)
{
    if (client->closed)
        return; /* nothing is to be connected or sent any more */
    for (int i = 0; i < events->count; i++)
        take_event(client, &events->list[i], now);
    for (unsigned i = 0; i < client->server_count; i++) {
        server_tick(&client->servers[i], now);
        take_completions(client, i, now);
    }
    take_timers(client, now);
    take_interrupt(client, now);
    engine_push(client, now);
    /* A send that failed has completed requests; what they start anew goes
     * with the next turn, which their timers bring. */
    for (unsigned i = 0; i < client->server_count; i++)
        take_completions(client, i, now);
}

void engine_wake(struct nxl_client *client)
{
    uint64_t one = 1;
    while (write(client->wake_fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

void engine_hurry(struct nxl_client *client)
{
    if (client->timer_fd >= 0 ||
        (client->waiting && engine_deadline(client) < client->wait_until))
        engine_wake(client);
}

void engine_completed(
    struct nxl_client *client, struct operation *op, uint64_t now)
{
    timer_stop(&client->timers, &op->timer);
    op->running = false;
    if (lock_of(op)->serves) {
        hold_answered(lock_of(op)->serves, now);
    } else if (client->door == DOOR_LOOP) {
        list_append(&client->events, &op->node);
    } else if (op->asleep) {
        op->asleep = false;
        list_remove(&op->node);
        sem_post(&op->wake);
    }
}

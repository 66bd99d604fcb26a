/* SPDX-License-Identifier: MIT */
/* One turn of a client's loop: read, decide, write. */
#include "client/turn.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "base/deadline.h"
#include "client/operation.h"
#include "client/voters.h"
#include "client/watch.h"

uint64_t turn_deadline(const struct nxl_client *client)
{
    uint64_t at =
        earlier(timers_next(&client->timers), timers_next(&client->renewals));
    for (struct node *n = nodes_first(&client->nodes); n; n = n->next) {
        at = earlier(at, server_deadline(&n->server));
        if (subscriber_used(&n->subscriber))
            at = earlier(at, subscriber_deadline(&n->subscriber));
    }
    struct watch *w = client->watch;
    if (!w)
        return at;
    return earlier(at, watch_deadline(w, client_in_use(client)));
}

/* True: something has failed, so there are completions to be taken. */
static bool push(struct nxl_client *client, uint64_t now)
{
    bool failed = false;
    for (struct node *n = nodes_first(&client->nodes); n; n = n->next) {
        failed |= server_push(&n->server, now);
        if (subscriber_used(&n->subscriber))
            failed |= subscriber_push(&n->subscriber, now);
    }
    /* Whether they have to be asked is known now. */
    struct watch *w = client->watch;
    if (w && (!watch_rests(w) || now >= watch_rests_until(w, true)))
        failed |= watch_push(w, client_in_use(client), now);
    return failed;
}

void turn_push(struct nxl_client *client, uint64_t now)
{
    if (client->closed)
        return;
    /* What has failed makes turn_deadline() 0: the next turn takes it. */
    (void)push(client, now);
}

void turn_wait(
    int set, struct turn_events *events, uint64_t until, uint64_t now)
{
    events->count = epoll_wait(
        set, events->list, TURN_EVENTS, deadline_poll_ms(until, now));
}

bool turn_sleep(
    struct nxl_client *client, struct turn_events *events, uint64_t now)
{
    int set = client->poller.fd;
    uint64_t until = turn_deadline(client);
    client->waiting = true;
    client->wait_until = until;
    pthread_mutex_unlock(&client->mutex);
    turn_wait(set, events, until, now);
    pthread_mutex_lock(&client->mutex);
    if (client->poller.fd != set) {
        close(set);
        return false;
    }
    client->waiting = false;
    return true;
}

/* --------------------------------------------------- what has come, is due */

static void take_completions(struct node *n, uint64_t now)
{
    struct completion c;
    do {
        while (server_next(&n->server, &c, now)) {
            struct operation *op = c.request->owner;
            /* An answer that came together with those of the handshake counts
             * for what the handshake has found out. */
            (void)voters_judge(n, now);
            op->type->outcome(op, c.request->index, &c.outcome, now);
        }
    } while (voters_judge(n, now));
}

static void take_all(struct nxl_client *client, uint64_t now)
{
    /* What the Sentinels say comes before the answers that it is about. */
    if (client->watch && now >= client->watch->due)
        watch_turn(client->watch, now);
    for (struct node *n = nodes_first(&client->nodes); n; n = n->next) {
        take_completions(n, now);
        if (subscriber_used(&n->subscriber))
            subscriber_turn(&n->subscriber, now);
    }
}

/* Reads an eventfd or timerfd, so that it is no longer readable. */
static void drain(int fd)
{
    uint64_t times;
    while (read(fd, &times, sizeof(times)) < 0 && errno == EINTR)
        ;
}

static void take_event(
    struct nxl_client *client, const struct epoll_event *event)
{
    short revents = (short)((event->events & EPOLLIN ? POLLIN : 0) |
                            (event->events & EPOLLOUT ? POLLOUT : 0) |
                            (event->events & EPOLLERR ? POLLERR : 0) |
                            (event->events & EPOLLHUP ? POLLHUP : 0));
    struct source *source = event->data.ptr;
    switch (source->kind) {
    case SOURCE_SERVER:
        list_entry(source, struct node, connection)->server.ready |= revents;
        break;
    case SOURCE_MESSAGES:
        subscriber_ready(
            &list_entry(source, struct node, messages)->subscriber, revents);
        break;
    case SOURCE_SENTINEL:
    case SOURCE_FORMER:
        watch_ready(client->watch, source, revents);
        break;
    case SOURCE_WAKE:
        drain(client->wake_fd);
        break;
    case SOURCE_TIMER:
        drain(client->timer_fd);
        client->timer_at = 0;
        break;
    }
}

/* Nothing here runs the program's code, so no operation is freed meanwhile. */
static void serve_timers(struct timers *timers, uint64_t now)
{
    struct timer *timer;
    while ((timer = timers_due(timers, now))) {
        struct operation *due = list_entry(timer, struct operation, timer);
        due->type->tick(due, now);
    }
}

static void take_timers(struct timers *timers, uint64_t now)
{
    if (timers_next(timers) <= now)
        serve_timers(timers, now);
}

/* nxl_client_interrupt(): ends all waits for a lock; if there is none, the next
 * wait ends at once. */
static void take_interrupt(struct nxl_client *client, uint64_t now)
{
    if (client->interrupt &&
        atomic_load_explicit(&client->interrupted, memory_order_relaxed))
        client->interrupt(client, now);
}

void turn_process(
    struct nxl_client *client, const struct turn_events *events, uint64_t now)
{
    if (client->closed)
        return; /* do not connect or send from now on */
    for (int i = 0; i < events->count; i++)
        take_event(client, &events->list[i]);
    take_all(client, now);
    take_timers(&client->timers, now);
    take_timers(&client->renewals, now);
    take_interrupt(client, now);
    /* A send that failed has completed requests. What these start is sent in
     * the next turn, when their timers are due. */
    if (push(client, now))
        take_all(client, now);
}

void turn_wake(struct nxl_client *client)
{
    uint64_t one = 1;
    while (write(client->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
}

void turn_hurry(struct nxl_client *client)
{
    if (client->timer_fd >= 0 ||
        (client->waiting && turn_deadline(client) < client->wait_until))
        turn_wake(client);
}

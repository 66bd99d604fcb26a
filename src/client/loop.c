/* SPDX-License-Identifier: MIT */
/* One iteration of a client's loop: read, decide, write. */
#include "client/loop.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "base/deadline.h"
#include "client/operation.h"
#include "client/voters.h"
#include "client/sentinel_watch.h"

uint64_t loop_deadline(const struct nxl_client *client)
{
    uint64_t at =
        earlier(timers_next(&client->timers), timers_next(&client->renewals));
    for (struct node *n = nodes_first(&client->nodes); n; n = n->next) {
        at = earlier(at, server_deadline(&n->server));
        if (subscriber_used(&n->subscriber))
            at = earlier(at, subscriber_deadline(&n->subscriber));
    }
    struct sentinel_watch *w = client->sentinel_watch;
    if (!w)
        return at;
    return earlier(at, sentinel_watch_deadline(w, client_in_use(client)));
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
    struct sentinel_watch *w = client->sentinel_watch;
    if (w && !sentinel_watch_is_idle(w, now))
        failed |= sentinel_watch_push(w, client_in_use(client), now);
    return failed;
}

void loop_push(struct nxl_client *client, uint64_t now)
{
    if (client->closed)
        return;
    /* What has failed makes loop_deadline() 0: the next iteration takes it. */
    (void)push(client, now);
}

void loop_epoll(
    int set, struct loop_events *events, uint64_t until, uint64_t now)
{
    events->count = epoll_wait(
        set, events->list, LOOP_EVENTS, deadline_poll_ms(until, now));
}

bool loop_sleep(
    struct nxl_client *client, struct loop_events *events, uint64_t now)
{
    int set = client->poller.fd;
    uint64_t until = loop_deadline(client);
    client->poller_sleeps = true;
    client->poller_wakes_at = until;
    pthread_mutex_unlock(&client->mutex);
    loop_epoll(set, events, until, now);
    pthread_mutex_lock(&client->mutex);
    if (client->poller.fd != set) {
        close(set);
        return false;
    }
    client->poller_sleeps = false;
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
    if (client->sentinel_watch && now >= client->sentinel_watch->due)
        sentinel_watch_process(client->sentinel_watch, now);
    for (struct node *n = nodes_first(&client->nodes); n; n = n->next) {
        take_completions(n, now);
        if (subscriber_used(&n->subscriber))
            subscriber_process(&n->subscriber, now);
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
    case SOURCE_SUBSCRIPTION:
        subscriber_ready(
            &list_entry(source, struct node, subscription)->subscriber,
            revents);
        break;
    case SOURCE_SENTINEL:
    case SOURCE_FORMER_PRIMARY:
        sentinel_watch_ready(client->sentinel_watch, source, revents);
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

void loop_process(
    struct nxl_client *client, const struct loop_events *events, uint64_t now)
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
     * the next iteration, when their timers are due. */
    if (push(client, now))
        take_all(client, now);
}

void loop_wake(struct nxl_client *client)
{
    uint64_t one = 1;
    while (write(client->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
}

void loop_hurry(struct nxl_client *client)
{
    if (client->timer_fd >= 0 ||
        (client->poller_sleeps &&
            loop_deadline(client) < client->poller_wakes_at))
        loop_wake(client);
}

/* SPDX-License-Identifier: MIT */
/*
 * Keeps: after each turn nothing is left undone that could be done without
 * waiting: no completion untaken, no timer due, no formatted byte unsent that
 * the socket would take.
 */
#include "api/engine.h"

#include <errno.h>
#include <unistd.h>

#include "api/operation.h"
#include "base/deadline.h"

size_t engine_pollfds(
    struct nxl_client *client, struct pollfd *fds, size_t capacity)
{
    size_t count = 0;
    struct pollfd fd = {.fd = client->wake_fd, .events = POLLIN};
    if (count < capacity)
        fds[count] = fd;
    count++;
    for (unsigned i = 0; i < client->server_count; i++) {
        if (!server_poll(&client->servers[i], &fd))
            continue;
        if (count < capacity)
            fds[count] = fd;
        count++;
    }
    return count;
}

uint64_t engine_deadline(const struct nxl_client *client)
{
    uint64_t at = timers_next(&client->timers);
    for (unsigned i = 0; i < client->server_count; i++)
        at = earlier(at, server_deadline(&client->servers[i]));
    return at;
}

void engine_push(struct nxl_client *client, uint64_t now)
{
    for (unsigned i = 0; i < client->server_count; i++)
        server_push(&client->servers[i], now);
}

static short revents_of(
    const struct pollfd *fds, size_t count, const struct pollfd *wanted)
{
    for (size_t i = 0; i < count; i++)
        if (fds[i].fd == wanted->fd)
            return fds[i].revents;
    return 0;
}

static void take_completions(
    struct nxl_client *client, struct server *s, uint64_t now)
{
    struct completion c;
    (void)client;
    while (server_next(s, &c, now))
        operation_outcome(c.request->owner, &c, now);
}

void engine_process(struct nxl_client *client, const struct pollfd *fds,
    size_t count, uint64_t now)
{
    struct pollfd mine[ENGINE_FDS];
    if (!fds) {
        count = engine_pollfds(client, mine, ENGINE_FDS);
        if (poll(mine, (nfds_t)count, 0) < 0)
            count = 0;
        fds = mine;
    }
    if (count && fds[0].fd == client->wake_fd && fds[0].revents) {
        uint64_t times;
        while (read(client->wake_fd, &times, sizeof times) < 0 &&
               errno == EINTR)
            ;
    }
    for (unsigned i = 0; i < client->server_count; i++) {
        struct server *s = &client->servers[i];
        struct pollfd wanted;
        if (server_poll(s, &wanted))
            server_ready(s, revents_of(fds, count, &wanted), now);
        server_tick(s, now);
        take_completions(client, s, now);
    }
    struct timer *timer;
    while ((timer = timers_due(&client->timers, now)))
        operation_tick(list_entry(timer, struct operation, timer), now);
    engine_push(client, now);
    /* A send that failed has completed requests; what they start anew goes
     * with the next turn, which their timers bring. */
    for (unsigned i = 0; i < client->server_count; i++)
        take_completions(client, &client->servers[i], now);
}

void engine_wake(struct nxl_client *client)
{
    uint64_t one = 1;
    while (write(client->wake_fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

void engine_completed(struct nxl_client *client, struct operation *op)
{
    timer_stop(&client->timers, &op->timer);
    op->running = false;
    if (client->door == DOOR_LOOP) {
        list_append(&client->events, &op->node);
    } else if (op->asleep) {
        op->asleep = false;
        list_remove(&op->node);
        sem_post(&op->wake);
    }
}

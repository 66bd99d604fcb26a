/* SPDX-License-Identifier: MIT */
/* The library's contenders: the handles of one client, in one event loop, as
 * a program would write it. */
#include "wait.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include <nxlock.h>

/* At the end, cancelled contenders must be done within this time. */
#define LEAVE_NS 5000000000u

struct library {
    struct contest *contest;
    nxl_client *client;
    nxl_lock **locks;
    unsigned active; /* contenders with an operation, or that hold */
};

static int start_acquire(struct library *l, unsigned i)
{
    int rc;

    contest_wait(l->contest, i);
    rc = nxl_lock_acquire_start(l->locks[i], NXL_FOREVER);
    if (rc != NXL_PENDING)
        return contest_fail(l->contest, "acquire_start: %s; %s",
            nxl_strerror(rc), nxl_lock_errmsg(l->locks[i]));
    return 0;
}

static int open_all(struct library *l)
{
    nxl_client_options client_options = NXL_CLIENT_OPTIONS_INIT;
    char why[160] = "";

    client_options.errbuf = why;
    client_options.errbuf_size = sizeof(why);
    l->locks = calloc(l->contest->count, sizeof(nxl_lock *));
    if (!l->locks)
        return contest_fail(l->contest, "out of memory");
    if (nxl_client_new(&l->client, l->contest->url, &client_options) != NXL_OK)
        return contest_fail(l->contest, "client: %s", why);
    for (unsigned i = 0; i < l->contest->count; i++) {
        nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;

        options.ttl_ms = l->contest->ttl_ms;
        options.user = &l->locks[i];
        if (nxl_lock_new(&l->locks[i], l->client, l->contest->name, &options) !=
            NXL_OK)
            return contest_fail(
                l->contest, "lock: %s", nxl_client_errmsg(l->client));
    }
    return 0;
}

static int take_event(struct library *l, const nxl_event *event)
{
    unsigned i = (unsigned)((nxl_lock **)event->user - l->locks);
    bool stop = l->contest->shared->stop;

    if (event->operation == NXL_OP_ACQUIRE && event->result == NXL_OK) {
        contest_granted(l->contest, i);
        return 0;
    }
    if (event->result != NXL_OK && event->result != NXL_CANCELLED)
        contest_failure(l->contest, nxl_lock_errmsg(event->lock));
    if (!stop)
        return start_acquire(l, i);
    l->active--;
    return 0;
}

static int release_due(struct library *l)
{
    for (int i; (i = contest_due(l->contest)) >= 0;) {
        int rc = nxl_lock_release_start(l->locks[i]);

        if (rc == NXL_PENDING)
            continue;
        contest_failure(l->contest, nxl_lock_errmsg(l->locks[i]));
        if (l->contest->shared->stop)
            l->active--;
        else if (start_acquire(l, (unsigned)i))
            return -1;
    }
    return 0;
}

static int turn(struct library *l)
{
    struct pollfd fds[8];
    nxl_event event;
    int timeout_ms;
    size_t count = nxl_client_pollfds(l->client, fds, 8, &timeout_ms);
    struct timespec sleep = contest_sleep(l->contest, timeout_ms);
    int rc;

    if (count > 8)
        return contest_fail(l->contest, "%zu descriptors", count);
    ppoll(fds, (nfds_t)count, &sleep, NULL);
    rc = nxl_client_process(l->client);
    if (rc != NXL_OK)
        return contest_fail(l->contest, "process: %s", nxl_strerror(rc));
    while (nxl_client_next_event(l->client, &event)) {
        if (take_event(l, &event))
            return -1;
    }
    return release_due(l);
}

static int contend(struct library *l)
{
    for (unsigned i = 0; i < l->contest->count; i++) {
        if (start_acquire(l, i))
            return -1;
    }
    l->active = l->contest->count;
    l->contest->shared->ready++;
    while (!l->contest->shared->stop) {
        if (turn(l))
            return -1;
    }
    for (unsigned i = 0; i < l->contest->count; i++) {
        if (l->contest->seats[i].since_ns != 0)
            nxl_lock_cancel(l->locks[i]);
    }
    for (uint64_t end = bench_now_ns() + LEAVE_NS; l->active > 0;) {
        if (turn(l))
            return -1;
        if (bench_now_ns() > end)
            return contest_fail(
                l->contest, "%u contenders did not end", l->active);
    }
    return 0;
}

int wait_library(struct contest *contest)
{
    struct library l = {.contest = contest};
    int rc = open_all(&l);

    if (rc == 0)
        rc = contend(&l);
    for (unsigned i = 0; l.locks && i < contest->count; i++)
        nxl_lock_free(l.locks[i]);
    free(l.locks);
    nxl_client_free(l.client);
    return rc;
}

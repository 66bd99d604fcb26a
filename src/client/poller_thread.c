/* SPDX-License-Identifier: MIT */
/* The poller thread: one thread of a blocking client reads for all that wait.
 */
#include "client/poller_thread.h"

#include <sys/eventfd.h>

#include "base/clock.h"
#include "client/loop.h"

/* ------------------------------------------------------------------ polling */

void poller_thread_become(struct nxl_client *client, struct call *call)
{
    client->has_poller_thread = true;
    client->polling_call = call;
    client->iterations++; /* nobody is to look after it at once */
}

bool poller_thread_take_over(struct nxl_client *client, struct call *call)
{
    if (client->ready_fd < 0)
        client->ready_fd = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);
    if (client->ready_fd < 0 ||
        (client->poller_sleeps &&
            !poller_replace(&client->poller, client->ready_fd)))
        return false;
    client->poller_sleeps = false;
    poller_thread_become(client, call);
    return true;
}

uint64_t poller_thread_iterate(struct nxl_client *client, uint64_t now)
{
    struct loop_events events;
    if (!loop_sleep(client, &events, now))
        return 0;
    now = clock_now();
    client->iterations++;
    loop_process(client, &events, now);
    return now;
}

void poller_thread_hand_on(struct nxl_client *client)
{
    client->has_poller_thread = false;
    client->polling_call = NULL;
    struct list *node = list_pop(&client->sleepers);
    if (!node) {
        /* The renewal thread has to read the answers to renewals. */
        if (client->running_renewals > 0)
            alarm_by(&client->alarm, 0);
        return;
    }
    struct call *call = list_entry(node, struct call, node);
    poller_thread_become(client, call); /* from now on, even before it wakes */
    call->asleep = false;
    call->made_poller = true;
    sem_post(&call->wake);
}

/* ----------------------------------------------------------------- sleeping */

/* What a thread that sleeps knows of the poller thread. */
struct sleeper {
    unsigned iterations; /* client->iterations when it last looked */
    uint64_t pause;      /* until it looks again */
    bool woken;          /* it has done no iteration, and was woken */
};

/* How long to sleep: until soon after something is due for this call, and less
 * at first, because most answers come soon. Each goes by its own call,
 * so they do not all wake at once. */
static uint64_t next_look(
    const struct sleeper *f, const struct timer *timer, uint64_t now)
{
    if (f->woken || timer->heap_slot == 0 || timer->at == NEVER)
        return f->woken ? POLLER_THREAD_GRACE : f->pause;
    return earlier(f->pause,
        deadline_after(deadline_left(timer->at, now), POLLER_THREAD_GRACE));
}

/* A thread woke by itself. True: it is the poller thread now. */
static bool look_after_poller_thread(
    struct nxl_client *client, struct call *call, struct sleeper *f)
{
    if (client->iterations != f->iterations) {
        f->iterations = client->iterations;
        f->pause = deadline_after(f->pause, f->pause);
        f->woken = false;
    } else if (!f->woken) {
        loop_wake(client);
        f->woken = true;
    } else {
        return poller_thread_take_over(client, call);
    }
    return false;
}

/* Sleeps while another thread polls. False: the call is over; the thread that
 * woke us no longer uses it, and the mutex is not held. True: it is, and this
 * may be the poller thread now. */
static bool sleep_for_call(
    struct nxl_client *client, struct call *call, const struct timer *timer)
{
    struct sleeper self = {
        .iterations = client->iterations, .pause = POLLER_THREAD_GRACE};
    loop_hurry(client);
    call->asleep = true;
    call->made_poller = false;
    list_append(&client->sleepers, &call->node);
    do {
        /* One that is asleep no longer has just been woken. */
        uint64_t ns =
            call->asleep ? next_look(&self, timer, clock_now()) : NEVER;
        pthread_mutex_unlock(&client->mutex);
        if (call_sleep(call, ns)) {
            if (!call->made_poller)
                return false;
            pthread_mutex_lock(&client->mutex);
            return true;
        }
        pthread_mutex_lock(&client->mutex);
    } while (!call->asleep || !look_after_poller_thread(client, call, &self));
    call->asleep = false;
    list_remove(&call->node);
    return true;
}

/* Waits until the call is over, asleep or as the poller thread. The
 * mutex is held afterwards, unless it returns false. Not inlined: a program
 * with one thread never comes here. */
__attribute__((noinline)) static bool share_polling(
    struct nxl_client *client, struct call *call, const struct timer *timer)
{
    while (call->running) {
        if (!client->has_poller_thread)
            poller_thread_become(client, call);
        else if (!sleep_for_call(client, call, timer))
            return false;
        uint64_t now = clock_now();
        while (call->running && client->polling_call == call)
            now = poller_thread_iterate(client, now);
    }
    return true;
}

void poller_thread_wait(struct nxl_client *client, struct call *call,
    const struct timer *timer, uint64_t now)
{
    if (call->running && !client->has_poller_thread) {
        poller_thread_become(client, call);
        while (call->running && now != 0)
            now = poller_thread_iterate(client, now);
    }
    if (call->running && !share_polling(client, call, timer))
        return;
    if (client->polling_call == call)
        poller_thread_hand_on(client);
    pthread_mutex_unlock(&client->mutex);
}

/* SPDX-License-Identifier: MIT */
/* Leading: one thread of a blocking client reads for all that wait. */
#include "client/leader.h"

#include <sys/eventfd.h>

#include "base/clock.h"
#include "client/turn.h"

/* ------------------------------------------------------------------ leading */

void leader_take(struct nxl_client *client, struct call *call)
{
    client->led = true;
    client->leader = call;
    client->turns++; /* nobody is to look after it at once */
}

bool leader_take_over(struct nxl_client *client, struct call *call)
{
    if (client->ready_fd < 0)
        client->ready_fd = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);
    if (client->ready_fd < 0 ||
        (client->waiting && !poller_replace(&client->poller, client->ready_fd)))
        return false;
    client->waiting = false;
    leader_take(client, call);
    return true;
}

uint64_t leader_turn(struct nxl_client *client, uint64_t now)
{
    struct turn_events events;
    if (!turn_sleep(client, &events, now))
        return 0;
    now = clock_now();
    client->turns++;
    turn_process(client, &events, now);
    return now;
}

void leader_hand_on(struct nxl_client *client)
{
    client->led = false;
    client->leader = NULL;
    struct list *node = list_pop(&client->followers);
    if (!node) {
        /* The renewal thread has to read the answers to renewals. */
        if (client->running_renewals > 0)
            alarm_by(&client->alarm, 0);
        return;
    }
    struct call *call = list_entry(node, struct call, node);
    leader_take(client, call); /* from now on, even before it wakes */
    call->asleep = false;
    call->promoted = true;
    sem_post(&call->wake);
}

/* ---------------------------------------------------------------- following */

/* What a follower knows of the leader. */
struct following {
    unsigned turns; /* client->turns when it last looked */
    uint64_t pause; /* until it looks again */
    bool woken;     /* the leader has taken no turn, and was woken */
};

/* How long to sleep: until soon after something is due for this call, and less
 * at first, because most answers come soon. Each follower goes by its own call,
 * so they do not all wake at once. */
static uint64_t next_look(
    const struct following *f, const struct timer *timer, uint64_t now)
{
    if (f->woken || timer->heap_slot == 0 || timer->at == NEVER)
        return f->woken ? LEADER_GRACE : f->pause;
    return earlier(
        f->pause, deadline_after(deadline_left(timer->at, now), LEADER_GRACE));
}

/* A follower woke by itself. True: it leads now. */
static bool look_after_leader(
    struct nxl_client *client, struct call *call, struct following *f)
{
    if (client->turns != f->turns) {
        f->turns = client->turns;
        f->pause = deadline_after(f->pause, f->pause);
        f->woken = false;
    } else if (!f->woken) {
        turn_wake(client);
        f->woken = true;
    } else {
        return leader_take_over(client, call);
    }
    return false;
}

/* Sleeps while another thread leads. False: the call is over; the thread that
 * woke us no longer uses it, and the mutex is not held. True: it is, and the
 * lead may be ours. */
static bool follow(
    struct nxl_client *client, struct call *call, const struct timer *timer)
{
    struct following following = {
        .turns = client->turns, .pause = LEADER_GRACE};
    turn_hurry(client);
    call->asleep = true;
    call->promoted = false;
    list_append(&client->followers, &call->node);
    do {
        /* One that is asleep no longer has just been woken. */
        uint64_t ns =
            call->asleep ? next_look(&following, timer, clock_now()) : NEVER;
        pthread_mutex_unlock(&client->mutex);
        if (call_sleep(call, ns)) {
            if (!call->promoted)
                return false;
            pthread_mutex_lock(&client->mutex);
            return true;
        }
        pthread_mutex_lock(&client->mutex);
    } while (!call->asleep || !look_after_leader(client, call, &following));
    call->asleep = false;
    list_remove(&call->node);
    return true;
}

/* Waits until the call is over, by turns as a follower and as the leader. The
 * mutex is held afterwards, unless it returns false. Not inlined: a program
 * with one thread never comes here. */
__attribute__((noinline)) static bool share_lead(
    struct nxl_client *client, struct call *call, const struct timer *timer)
{
    while (call->running) {
        if (!client->led)
            leader_take(client, call);
        else if (!follow(client, call, timer))
            return false;
        uint64_t now = clock_now();
        while (call->running && client->leader == call)
            now = leader_turn(client, now);
    }
    return true;
}

void leader_wait(struct nxl_client *client, struct call *call,
    const struct timer *timer, uint64_t now)
{
    if (call->running && !client->led) {
        leader_take(client, call);
        while (call->running && now != 0)
            now = leader_turn(client, now);
    }
    if (call->running && !share_lead(client, call, timer))
        return;
    if (client->leader == call)
        leader_hand_on(client);
    pthread_mutex_unlock(&client->mutex);
}

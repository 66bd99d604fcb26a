/* SPDX-License-Identifier: MIT */
/* Leading: one thread of a blocking client reads for all that wait. */
#include "client/leader.h"

#include <errno.h>

#include "base/clock.h"
#include "client/turn.h"

void leader_take(struct nxl_client *client)
{
    client->led = true;
}

uint64_t leader_turn(struct nxl_client *client, uint64_t now)
{
    struct turn_events events;
    uint64_t until = turn_deadline(client);
    client->waiting = true;
    client->wait_until = until;
    pthread_mutex_unlock(&client->mutex);
    turn_wait(client, &events, until, now);
    now = clock_now();
    pthread_mutex_lock(&client->mutex);
    client->waiting = false;
    turn_process(client, &events, now);
    return now;
}

void leader_hand_on(struct nxl_client *client)
{
    client->led = false;
    struct list *node = list_pop(&client->followers);
    if (!node) {
        /* The renewal thread has to read the answers to renewals. */
        if (client->renewing > 0)
            alarm_by(&client->alarm, 0);
        return;
    }
    struct call *call = list_entry(node, struct call, node);
    client->led = true; /* it leads from now on, even before it wakes */
    call->asleep = false;
    call->promoted = true;
    sem_post(&call->wake);
}

static void sleep_until_woken(struct call *call)
{
    while (sem_wait(&call->wake) < 0 && errno == EINTR)
        ;
}

void leader_wait(struct nxl_client *client, struct call *call, uint64_t now)
{
    if (call->running && client->led) {
        turn_hurry(client);
        call->asleep = true;
        call->promoted = false;
        list_append(&client->followers, &call->node);
        pthread_mutex_unlock(&client->mutex);
        sleep_until_woken(call);
        if (!call->promoted)
            return; /* the call is over, and the thread that woke us no longer
                       uses it */
        pthread_mutex_lock(&client->mutex);
        now = clock_now();
    } else if (call->running) {
        leader_take(client);
    } else {
        pthread_mutex_unlock(&client->mutex);
        return;
    }
    while (call->running)
        now = leader_turn(client, now);
    leader_hand_on(client);
    pthread_mutex_unlock(&client->mutex);
}

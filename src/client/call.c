/* SPDX-License-Identifier: MIT */
/* A call in progress, and how its caller is woken when it is over. */
#include "client/call.h"

void call_init(struct call *call)
{
    sem_init(&call->wake, 0, 0);
    list_init(&call->node);
}

void call_free(struct call *call)
{
    list_remove(&call->node);
    sem_destroy(&call->wake);
}

void call_over(struct nxl_client *client, struct call *call, int result)
{
    call->running = false;
    call->result = result;
    if (client->mode == MODE_LOOP) {
        list_append(&client->events, &call->node);
    } else if (call->asleep) {
        call->asleep = false;
        list_remove(&call->node);
        sem_post(&call->wake);
    }
}

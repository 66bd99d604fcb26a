/* SPDX-License-Identifier: MIT */
/* Each asks again soon after it has been answered: there is often a question
 * on its way when a connection is cut. */
#include "asker.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct asker {
    pthread_t thread;
    nxl_lock *lock;
    char label[32];
    bool keeps; /* the name is its own */
} asker[2];
static atomic_bool over;
static int pause_ms;
static void (*tell)(void);

static void *run(void *argument)
{
    struct asker *a = argument;
    struct timespec pause = {0, pause_ms * 1000000L};
    while (!over) {
        nxl_holder holder = NXL_HOLDER_INIT;
        /* Without it, by whatever fault, nobody is found: that is no error. */
        int rc = a->keeps && !nxl_lock_held(a->lock)
                     ? nxl_lock_acquire(a->lock, 0)
                     : NXL_OK;
        rc = nxl_lock_inspect(a->lock, &holder);
        if (rc == NXL_OK && holder.label && strcmp(holder.label, a->label) != 0)
            tell();
        nanosleep(&pause, NULL);
    }
    nxl_lock_free(a->lock);
    return NULL;
}

static void start(struct asker *a, nxl_client *client, const char *name,
    const char *label, int ttl_ms)
{
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    snprintf(a->label, sizeof(a->label), "%s", label);
    options.ttl_ms = ttl_ms;
    options.label = a->label;
    if (nxl_lock_new(&a->lock, client, name, &options) != NXL_OK ||
        pthread_create(&a->thread, NULL, run, a) != 0)
        _Exit(7);
}

void askers_start(
    nxl_client *client, int ttl_ms, int ms, void (*mixed_up)(void))
{
    char own[32];
    tell = mixed_up;
    pause_ms = ms;
    snprintf(own, sizeof(own), "own:%d", (int)getpid());
    asker[0].keeps = true;
    start(&asker[0], client, own, own, ttl_ms);
    start(&asker[1], client, COMMON_NAME, COMMON_NAME, ttl_ms);
}

void askers_stop(void)
{
    over = true;
    for (int i = 0; i < 2; i++)
        if (asker[i].lock)
            pthread_join(asker[i].thread, NULL);
}

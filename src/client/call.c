/* SPDX-License-Identifier: MIT */
/* A call in progress, and how its caller is woken when it is over. */
#include "client/call.h"

#include <errno.h>

#include "base/clock.h"
#include "base/deadline.h"

/* The thread sanitizer knows sem_timedwait() but not sem_clockwait(), which is
 * preferred because its clock cannot be set. */
#ifdef __has_feature
#define CALL_FEATURE(name) __has_feature(name)
#else
#define CALL_FEATURE(name) 0
#endif
#if defined(__SANITIZE_THREAD__) || CALL_FEATURE(thread_sanitizer)
#define SLEEP_CLOCK CLOCK_REALTIME
#define sleep_by(sem, time) sem_timedwait(sem, time)
#else
#define SLEEP_CLOCK CLOCK_MONOTONIC
#define sleep_by(sem, time) sem_clockwait(sem, SLEEP_CLOCK, time)
#endif

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

bool call_sleep(struct call *call, uint64_t ns)
{
    struct timespec end = clock_after(SLEEP_CLOCK, ns);
    int rc;
    do {
        rc = ns == NEVER ? sem_wait(&call->wake) : sleep_by(&call->wake, &end);
    } while (rc < 0 && errno == EINTR);
    return rc == 0;
}

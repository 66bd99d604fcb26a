/* SPDX-License-Identifier: MIT */
/*
 * The timer that wakes the renewal thread. It goes on during suspend.
 */
#ifndef NXLOCK_CLIENT_ALARM_H
#define NXLOCK_CLIENT_ALARM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct alarm {
    pthread_t thread;
    bool running, joinable, stop;
    int fd;         /* timerfd; -1: not created yet */
    uint64_t armed; /* the time it is set to */
    uint64_t
        needed_until; /* the thread stays until then, even without renewals */
};

void alarm_init(struct alarm *alarm);
void alarm_set(struct alarm *alarm, uint64_t at);
/* Makes sure that the thread, if it is running, wakes at that time or
 * earlier. */
void alarm_by(struct alarm *alarm, uint64_t at);
/* No lock is renewed any longer: the thread stays for a moment, then
 * ends. */
void alarm_unneeded(struct alarm *alarm, uint64_t now);

#endif

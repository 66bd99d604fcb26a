/* SPDX-License-Identifier: MIT */
/*
 * When the renewal thread has to wake: a timer that counts suspend.
 */
#ifndef NXLOCK_CLIENT_ALARM_H
#define NXLOCK_CLIENT_ALARM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct alarm {
    pthread_t thread;
    bool running, joinable, stop;
    int fd;                /* -1: none was needed yet */
    uint64_t armed;        /* what it is set to */
    uint64_t needed_until; /* when no lock is renewed */
};

void alarm_init(struct alarm *alarm);
void alarm_set(struct alarm *alarm, uint64_t at);
/* The thread, if it is running, has to wake at that time or earlier. */
void alarm_by(struct alarm *alarm, uint64_t at);
/* The last renewed lock has ended: the thread lives on for a moment, then
 * ends. */
void alarm_unneeded(struct alarm *alarm, uint64_t now);

#endif

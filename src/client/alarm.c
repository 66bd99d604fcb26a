/* SPDX-License-Identifier: MIT */
/* Sets the timer that wakes the renewal thread. */
#include "client/alarm.h"

#include <sys/timerfd.h>

#include "base/deadline.h"

/* How long the idle thread stays, so that a program that locks repeatedly
 * does not start a thread each time. */
#define LINGER (100 * NS_PER_MS)

void alarm_init(struct alarm *alarm)
{
    *alarm = (struct alarm){.fd = -1};
}

void alarm_set(struct alarm *alarm, uint64_t at)
{
    struct itimerspec when = {0};
    alarm->armed = at;
    if (at != NEVER) {
        at += at == 0; /* 0 would stop it */
        when.it_value.tv_sec = (time_t)(at / NS_PER_S);
        when.it_value.tv_nsec = (long)(at % NS_PER_S);
    }
    timerfd_settime(alarm->fd, TFD_TIMER_ABSTIME, &when, NULL);
}

void alarm_by(struct alarm *alarm, uint64_t at)
{
    if (alarm->running && at < alarm->armed)
        alarm_set(alarm, at);
}

void alarm_unneeded(struct alarm *alarm, uint64_t now)
{
    if (!alarm->running)
        return;
    alarm->needed_until = deadline_after(now, LINGER);
    alarm_by(alarm, alarm->needed_until);
}

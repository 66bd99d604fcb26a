/* SPDX-License-Identifier: MIT */
/* In the middle of a call it is a timer that sends the signal. */
#include "once_steps.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    STOPS_OF = 4,     /* one of four is a SIGSTOP */
    WITHIN_US = 1200, /* most calls take less */
};

static struct {
    uint64_t dice;
    int one_in;
    _Atomic uint64_t *stopped;
    timer_t timer[2]; /* SIGKILL, SIGSTOP */
} me;

/* splitmix64 */
int below(int sides)
{
    uint64_t z = me.dice += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (int)((z ^ z >> 31) % (uint64_t)sides);
}

void steps_start(uint64_t seed, int one_in, _Atomic uint64_t *stopped)
{
    struct sigevent kills = {
        .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    struct sigevent stops = {
        .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGSTOP};
    me.dice = seed;
    me.one_in = one_in;
    me.stopped = stopped;
    if (timer_create(CLOCK_MONOTONIC, &kills, &me.timer[0]) != 0 ||
        timer_create(CLOCK_MONOTONIC, &stops, &me.timer[1]) != 0) {
        perror("timer_create");
        exit(6);
    }
}

/* 0: nothing, 1: SIGKILL, 2: SIGSTOP. */
static int draw(void)
{
    if (!me.one_in || below(me.one_in) > 0)
        return 0;
    return below(STOPS_OF) == 0 ? 2 : 1;
}

void step(void)
{
    int fault = draw();
    if (fault == 2)
        ++*me.stopped;
    if (fault)
        raise(fault == 1 ? SIGKILL : SIGSTOP);
}

void step_into(void)
{
    int fault = draw();
    struct itimerspec when = {
        .it_value.tv_nsec = 1000L * (1 + below(WITHIN_US))};
    if (fault == 2)
        ++*me.stopped; /* at most: the call may be over before */
    if (fault)
        timer_settime(me.timer[fault - 1], 0, &when, NULL);
}

void step_out(void)
{
    static const struct itimerspec never;
    timer_settime(me.timer[0], 0, &never, NULL);
    timer_settime(me.timer[1], 0, &never, NULL);
}

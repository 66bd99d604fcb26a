/* SPDX-License-Identifier: MIT */
/* A slow network: a proxy of tests/support in a process of its own. Its own
 * time depends on the machine, so the delay is adjusted until a PING takes as
 * long as wanted. (netem needs root and a kernel module.) */
#include "delay.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "support/proxy.h"

#define FIRST_GUESS_US 450
#define ADJUSTMENTS 5
/* A proxy that needs more than the rest of the round trip shares the machine
 * with something else; that is not made up for. */
#define LEAST 0.8
#define PINGS 100
#define GOOD_US 20

#define STOP UINT64_MAX /* an order in place of a delay */

/* Says where it listens, and then takes delays. */
static void become_proxy(uint16_t target, int orders, int answers)
{
    struct proxy *p;
    uint64_t us = 0;
    int port;

    prctl(PR_SET_TIMERSLACK, 1ul);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    p = proxy_start(NULL, target);
    port = atoi(strrchr(proxy_tcp_url(p), ':') + 1);
    while (write(answers, &port, sizeof(port)) == sizeof(port) &&
           read(orders, &us, sizeof(us)) == sizeof(us) && us != STOP) {
        proxy_delay_us(p, PROXY_UP, us);
        proxy_delay_us(p, PROXY_DOWN, us);
    }
    proxy_stop(p);
    _exit(0);
}

/* Returns when it is so. */
static int set_delay(struct delay *delay, uint64_t us)
{
    delay->one_way_us = us;
    return write(delay->orders, &us, sizeof(us)) == sizeof(us) &&
                   read(delay->answers, &delay->port, sizeof(delay->port)) ==
                       sizeof(delay->port)
               ? 0
               : -1;
}

int delay_ping(
    const struct delay *delay, int count, struct histogram *histogram)
{
    redisContext *redis = redisConnect("127.0.0.1", delay->port);
    int rc = redis && !redis->err ? 0 : -1;

    for (int i = 0; rc == 0 && i < count; i++) {
        uint64_t before = bench_now_ns();
        redisReply *reply = redisCommand(redis, "PING");

        histogram_add(histogram, bench_now_ns() - before);
        rc = reply && reply->type == REDIS_REPLY_STATUS ? 0 : -1;
        freeReplyObject(reply);
    }
    if (redis)
        redisFree(redis);
    return rc;
}

int delay_adjust(struct delay *delay, double rtt_us)
{
    for (int i = 0; i < ADJUSTMENTS; i++) {
        struct histogram histogram = {0};
        double off_us, one_way_us;

        if (delay_ping(delay, PINGS, &histogram))
            return -1;
        off_us = histogram_us(&histogram, 0.5) - rtt_us;
        if (off_us < GOOD_US && off_us > -GOOD_US)
            break;
        one_way_us = (double)delay->one_way_us - off_us / 2;
        if (one_way_us < LEAST * rtt_us / 2)
            one_way_us = LEAST * rtt_us / 2;
        if (set_delay(delay, (uint64_t)one_way_us))
            return -1;
    }
    return 0;
}

int delay_start(struct delay *delay, uint16_t port)
{
    int orders[2], answers[2];

    if (pipe2(orders, O_CLOEXEC) || pipe2(answers, O_CLOEXEC))
        return -1;
    delay->pid = fork();
    if (delay->pid == 0) {
        close(orders[1]);
        become_proxy(port, orders[0], answers[1]);
    }
    close(orders[0]);
    close(answers[1]);
    delay->orders = orders[1];
    delay->answers = answers[0];
    if (delay->pid > 0 && read(delay->answers, &delay->port,
                              sizeof(delay->port)) == sizeof(delay->port))
        return set_delay(delay, FIRST_GUESS_US);
    fprintf(stderr, "nxlock-bench-cases: the proxy does not work\n");
    return -1;
}

void delay_stop(struct delay *delay)
{
    uint64_t stop = STOP;

    if (delay->pid > 0) {
        /* Other proxies have the pipe too, so its end would not tell. */
        if (write(delay->orders, &stop, sizeof(stop)) != sizeof(stop))
            kill(delay->pid, SIGKILL);
        waitpid(delay->pid, NULL, 0);
        close(delay->orders);
        close(delay->answers);
    }
    delay->pid = 0;
}

/* SPDX-License-Identifier: MIT */
/* A network of a millisecond between the benchmark and a server. */
#ifndef NXLOCK_BENCH_DELAY_H
#define NXLOCK_BENCH_DELAY_H

#include "bench.h"

#define DELAY_FAR_US 1000.0 /* the round trip of a server that is "far" */

/* A proxy that passes on every byte so much later. */
struct delay {
    pid_t pid; /* 0: none */
    int port;
    uint64_t one_way_us;
    int orders, answers; /* pipes to and from it */
};

/* In front of 127.0.0.1:port. -1 after a message. */
int delay_start(struct delay *delay, uint16_t port);
/* Adjusts the delay until the median PING takes rtt_us, or nearly; -1: the
 * server does not answer. */
int delay_adjust(struct delay *delay, double rtt_us);
/* Round trips of PING, one after the other, into the histogram; -1: no
 * connection. */
int delay_ping(
    const struct delay *delay, int count, struct histogram *histogram);
void delay_stop(struct delay *delay);

#endif

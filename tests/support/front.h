/* SPDX-License-Identifier: MIT */
/*
 * A TLS server in front of a redis-server, in processes of its own: it passes
 * on what it is sent, or it does what no redis-server does, to connections that
 * are open or to those that are made later. It keeps what it could read.
 */
#ifndef NXLOCK_TEST_FRONT_H
#define NXLOCK_TEST_FRONT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Shared with its processes; NULL before the first front_start(). */
extern struct front {
    char certificate[64]; /* that it has from now on */
    _Atomic int version;  /* the newest that it speaks: TLS1_1_VERSION, or 0 */
    _Atomic int way;      /* how it meets connections */
    _Atomic int order, orders, obeyed; /* the last one, their number, by whom */
    _Atomic int accepted, open;
    _Atomic int goodbyes; /* connections that a close_notify ended */
    char name[256];       /* that the last client asked for (SNI), or "" */
    _Atomic size_t length;
    char heard[1 << 16];
} * front;

/* With the certificates of certs.h in that directory, in front of the server at
 * that unix socket. Its records have at most so many bytes, 512 to 16384. Ends
 * with front_stop(), or with the test. */
void front_start(
    const char *dir, const char *redis, unsigned record_most, uint16_t *port);
void front_stop(void);

/* How it meets connections from now on ("dribbling"), or what it does, once, at
 * each that is open ("new keys"); returns when that is done. False: it knows no
 * such words. */
bool front_told(const char *words);

#endif

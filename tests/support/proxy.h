/* SPDX-License-Identifier: MIT */
/*
 * A bad network between a client and a real server: one thread that passes
 * bytes on, and delays, holds, drops or cuts them as the test says. What a
 * function orders is in force when it returns, for the connections there are
 * and for later ones. Listens on a unix socket and on 127.0.0.1.
 */
#ifndef NXLOCK_TEST_PROXY_H
#define NXLOCK_TEST_PROXY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct proxy;
struct redis;

enum proxy_way {
    PROXY_UP,  /* client to server: requests */
    PROXY_DOWN /* server to client: replies */
};

/* To the server at a unix socket's path or, with path NULL, at
 * 127.0.0.1:port. Never NULL. */
struct proxy *proxy_start(const char *path, uint16_t port);
/* To a server of redis.h, over its port or its unix socket. If clients meet
 * that server over TLS, it is its port always, and both URLs say TLS. */
struct proxy *proxy_to(const struct redis *r, bool tcp);
/* Cuts everything and frees; NULL is fine. */
void proxy_stop(struct proxy *p);

const char *proxy_url(const struct proxy *p);     /* unix:///... */
const char *proxy_tcp_url(const struct proxy *p); /* redis://127.0.0.1:... */
const char *proxy_address(const struct proxy *p); /* 127.0.0.1:... */

/* Every byte that comes from now on is passed on that much later. */
void proxy_delay(struct proxy *p, enum proxy_way way, int ms);
void proxy_delay_us(struct proxy *p, enum proxy_way way, uint64_t us);
/* Nothing is passed on while held; afterwards everything is. */
void proxy_hold(struct proxy *p, enum proxy_way way, bool held);
/* The same for the clients that have the address 127.0.0.SOURCE. Of those that
 * connect while they are held the server learns only when the hold is over. */
void proxy_hold_from(
    struct proxy *p, enum proxy_way way, uint8_t source, bool held);
/* What comes is thrown away: a reply is lost after its request arrived. */
void proxy_drop(struct proxy *p, enum proxy_way way, bool dropped);
/* A connection that has passed on this many more bytes that way, counted
 * from now or from its start, is cut there (as by proxy_cut). Once. */
void proxy_cut_after(struct proxy *p, enum proxy_way way, size_t bytes);

/* Closes all connections, to both sides. reset: with a TCP reset (of unix
 * sockets only when bytes are unread). New ones are welcome. */
void proxy_cut(struct proxy *p, bool reset);
/* Closes the clients' side of all connections, while the servers' side stays
 * open and what the clients had sent is kept: proxy_deliver() passes it on. A
 * server that closes its side meanwhile never gets it. */
void proxy_strand(struct proxy *p);
void proxy_deliver(struct proxy *p);
/* Later connections lead to the server at this unix socket; those there are
 * stay where they lead. */
void proxy_lead(struct proxy *p, const char *path);
/* Shuts the listening sockets: connecting is refused; false opens them at
 * the same places again. Connections stay. */
void proxy_refuse(struct proxy *p, bool refused);

/* Bytes that came from the sender that way, over all connections; held,
 * dropped and delayed ones too. */
uint64_t proxy_bytes(struct proxy *p, enum proxy_way way);
/* Waits until that is at least so many, 30 s at most; false: it was not. */
bool proxy_await(struct proxy *p, enum proxy_way way, uint64_t bytes);
size_t proxy_connections(struct proxy *p); /* open now */
size_t proxy_accepted(struct proxy *p);    /* since the start */

#endif

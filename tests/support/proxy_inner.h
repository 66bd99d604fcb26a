/* SPDX-License-Identifier: MIT */
/* What the proxy's thread (proxy.c) and the orders to it (proxy_orders.c)
 * share. Everything in a struct proxy that changes belongs to its lock. */
#ifndef NXLOCK_TEST_PROXY_INNER_H
#define NXLOCK_TEST_PROXY_INNER_H

#include <pthread.h>

#include "support/bytes.h"
#include "support/local.h"
#include "support/proxy.h"

enum { PAIRS = 128 };

struct chunk {
    struct chunk *next;
    uint64_t due_ns;
    struct bytes bytes;
};

struct flow { /* one direction of one connection */
    struct chunk *first, **end;
    size_t passed;
    bool closed; /* the sender has closed */
};

struct joint { /* client and server; fd[w] is the sender of way w */
    bool used, cut, reset;
    bool stranded, delivers; /* by proxy_strand() and proxy_deliver() */
    bool unheard;            /* its source was held when it connected */
    uint8_t source;          /* last byte of the client's address */
    int fd[2];
    struct flow flow[2];
    void *reading; /* of the reader */
};

/* Reads what is passed on, and decides what is. Called with the lock. */
struct proxy_reader {
    /* The sender of that way has sent bytes; proxy_pass() says what the other
     * side gets. False: the connection is to be cut. */
    bool (*read)(struct proxy *p, struct joint *j, enum proxy_way way,
        const char *data, size_t len);
    /* Something that the client has sent is not answered yet: until it is, the
     * server keeps the connection of a client that has closed. */
    bool (*is_busy)(const struct joint *j);
    void (*end)(struct joint *j);
};

struct way {
    uint64_t delay_ns;
    bool held, dropped, cutting;
    bool held_from[256]; /* by the last byte of the client's address */
    size_t cut_after;
    uint64_t bytes;
};

struct proxy {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    int wake[2];
    int listeners[2];
    bool stopping, refused;
    bool shut; /* and nobody listens any more */
    char dir[LOCAL_PATH], path[LOCAL_PATH], target[LOCAL_PATH];
    uint16_t port, target_port;
    char url[LOCAL_PATH + 16], tcp_url[LOCAL_PATH];
    struct way way[2];
    struct joint joints[PAIRS];
    size_t accepted;
    uint64_t turns; /* of the thread, for those who wait for one */
    const struct proxy_reader *reader; /* NULL: all is passed on as it is */
    void *reader_data;
};

static inline bool proxy_is_held(
    const struct proxy *p, const struct joint *j, enum proxy_way way)
{
    return p->way[way].held || p->way[way].held_from[j->source];
}

void proxy_pass(struct proxy *p, struct joint *j, enum proxy_way way,
    const char *data, size_t len);

/* Lets the thread carry out what was ordered; the lock is held. */
void proxy_carry_out(struct proxy *p);

#endif

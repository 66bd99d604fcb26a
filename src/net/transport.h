/* SPDX-License-Identifier: MIT */
/*
 * The two streams of bytes of one connection, with what they need to go on.
 * A table of functions makes a kind of transport: the plain one (transport.c)
 * hands bytes to the socket as they are; TLS fits in as another one. Above it
 * are dial.c, which opens it, and conn.c, which uses it; only the transport
 * touches the descriptor of an open connection.
 *
 * Invariant: no call blocks or raises a signal.
 */
#ifndef NXLOCK_NET_TRANSPORT_H
#define NXLOCK_NET_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/text.h"

struct endpoint;
struct transport_kind;

struct transport {
    const struct transport_kind *kind;
    void *own; /* the kind's own state; a plain one has none */
    int fd;    /* to be polled, but not used, by others; -1: closed */

    /* What the kind leaves to be done. The plain one leaves nothing. */

    /* A send that took nothing, or the handshake, waits for bytes of the peer,
     * and not for room. */
    bool wants_read;
    /* Bytes that are the kind's own (of its handshake, or an answer that a
     * receive has to give) wait for room. When there is some, send is to be
     * called, with no bytes if there are none. */
    bool wants_write;
    /* The next receive gives something, though poll() may not show it. */
    bool pending;
};

#define TRANSPORT_CLOSED ((struct transport){.fd = -1})

enum transport_step {
    TRANSPORT_READY,
    TRANSPORT_WAITS, /* wants_read and wants_write say for what */
    TRANSPORT_FAILED
};

/* A connection, looked at without taking anything. */
enum transport_news {
    TRANSPORT_QUIET, /* nothing to receive; the kind may have had to do */
    TRANSPORT_TALKS, /* something to receive */
    TRANSPORT_OVER   /* the peer has closed or reset it, perhaps behind that */
};

struct transport_kind {
    /* Makes own, for a connection to that endpoint; false: with *error, and
     * nothing to close. NULL: there is nothing to make. */
    bool (*open)(
        struct transport *t, const struct endpoint *to, struct text *error);
    /* Goes on with what comes before the first byte. NULL: nothing does. */
    enum transport_step (*handshake)(struct transport *t, struct text *error);
    /* Both return the count, 0 for "not now", -1 for a lost connection with
     * errno set. What send counts has left: a kind that encrypts cannot take
     * it back, so it counts what is encrypted, and keeps it. */
    ssize_t (*send)(struct transport *t, const void *bytes, size_t len);
    /* -1 with errno 0: the peer closed the connection in order. */
    ssize_t (*receive)(struct transport *t, void *bytes, size_t room);
    enum transport_news (*news)(struct transport *t);
    /* Says goodbye, if that can be done at once, and frees own. The descriptor
     * is closed after it. NULL: nothing to say or free. */
    void (*close)(struct transport *t);
};

extern const struct transport_kind transport_plain;

/* Over a connected descriptor, which it takes over. false: with *error, and fd
 * is closed. */
bool transport_open(struct transport *t, const struct transport_kind *kind,
    int fd, const struct endpoint *to, struct text *error);

/* Before anything is sent, again and again until it does not wait any longer:
 * whenever the descriptor is ready for what it wants. FAILED: with *error. */
enum transport_step transport_handshake(
    struct transport *t, struct text *error);

enum transport_news transport_news(struct transport *t);

/* Harmless when it is closed. */
void transport_close(struct transport *t);
/* The same in a fork()ed child: not a byte may leave, for the parent goes on
 * with the connection, and memory is left alone. */
void transport_close_in_child(struct transport *t);

static inline ssize_t transport_send(
    struct transport *t, const void *bytes, size_t len)
{
    return t->kind->send(t, bytes, len);
}

static inline ssize_t transport_receive(
    struct transport *t, void *bytes, size_t room)
{
    ssize_t count = t->kind->receive(t, bytes, room);
    if (count <= 0)
        t->pending = false; /* else it would be asked without end */
    return count;
}

#endif

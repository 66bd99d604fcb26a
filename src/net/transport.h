/* SPDX-License-Identifier: MIT */
/*
 * Moves the bytes of one connection, in both directions. A kind of transport is
 * a table of functions. The plain kind (transport.c) hands bytes to the socket
 * as they are; the other kind is TLS (tls/session.c). dial.c opens a transport,
 * conn.c uses it, and only the transport touches the descriptor of an open
 * connection.
 *
 * Invariant: no call blocks or raises a signal.
 */
#ifndef NXLOCK_NET_TRANSPORT_H
#define NXLOCK_NET_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/text.h"
#include "model/fault.h"

struct target;
struct transport_kind;

struct transport {
    const struct transport_kind *kind;
    void *own; /* the kind's own state; a plain one has none */
    int fd;    /* to be polled, but not used, by others; -1: closed */

    /* Set by the kind; the plain one sets none of these. */

    /* A send that took nothing, or the handshake, waits for bytes from the
     * peer, not for room. */
    bool wants_read;
    /* Bytes of the kind's own (of its handshake, or an answer that a receive
     * must give) wait for room. When there is room, call send, with no bytes if
     * there are none. */
    bool wants_write;
    /* The next receive returns bytes, or reports the end, though poll() may not
     * show it. */
    bool pending;
    /* Why the handshake failed or the connection was lost, if the kind knows
     * better than errno; FAULT_NONE: it does not. why is static, and NULL after
     * a handshake, which explains itself. */
    enum fault fault;
    const char *why;
    const char *silence; /* static; what it means if the handshake gets no
                          * further in time; NULL: nothing in particular */
};

#define TRANSPORT_CLOSED ((struct transport){.fd = -1})

enum transport_step {
    TRANSPORT_READY,
    TRANSPORT_WAITS, /* wants_read and wants_write say for what */
    TRANSPORT_FAILED
};

/* The result of checking a connection without receiving anything. */
enum transport_news {
    TRANSPORT_QUIET, /* nothing to receive */
    TRANSPORT_TALKS, /* something to receive */
    TRANSPORT_OVER   /* the peer has closed or reset it; there may still be
                      * something to receive */
};

/* What is known about a connection, for people. */
struct transport_facts {
    bool local; /* the peer is on this machine */
    bool encrypted;
    const char *version;        /* static: "TLSv1.3"; NULL if not encrypted */
    int64_t ends_s, own_ends_s; /* when the first certificate of the peer, and
                                 * our own, expires; Unix time, 0: none */
};

struct transport_kind {
    /* Creates t->own, for a connection to that target. False: with *error,
     * and nothing to close. NULL: there is nothing to create. */
    bool (*open)(
        struct transport *t, const struct target *to, struct text *error);
    /* Goes on with the handshake before the first byte. NULL: there is none. */
    enum transport_step (*handshake)(struct transport *t, struct text *error);
    /* send and receive return the number of bytes, 0 for "not now", or -1 for a
     * lost connection with errno set. Bytes that send counts cannot be taken
     * back: a kind that encrypts counts what it has encrypted, and keeps it
     * until it is sent. */
    ssize_t (*send)(struct transport *t, const void *bytes, size_t len);
    /* -1 with errno 0: the peer closed the connection in order. */
    ssize_t (*receive)(struct transport *t, void *bytes, size_t room);
    enum transport_news (*news)(struct transport *t);
    /* Says goodbye, if that can be done at once, and frees t->own. The
     * descriptor is closed afterwards. NULL: there is nothing to do. */
    void (*close)(struct transport *t);
    /* Fills in what the kind knows. NULL: nothing. */
    void (*facts)(const struct transport *t, struct transport_facts *facts);
};

extern const struct transport_kind transport_plain;

/* Send and receive without a kind, for a kind that changes the bytes. */
ssize_t plain_send(struct transport *t, const void *bytes, size_t len);
ssize_t plain_receive(struct transport *t, void *bytes, size_t room);

/* Opens a transport on a connected descriptor, which it takes over. False: with
 * *error and t->fault, and fd is closed. */
bool transport_open(struct transport *t, const struct transport_kind *kind,
    int fd, const struct target *to, struct text *error);

/* Call it before anything is sent, and again whenever the descriptor is ready
 * for what it wants, until it no longer returns WAITS. FAILED: with *error. */
enum transport_step transport_handshake(
    struct transport *t, struct text *error);

enum transport_news transport_news(struct transport *t);

/* Of an open one. */
struct transport_facts transport_facts(const struct transport *t);

/* Harmless when it is closed. */
void transport_close(struct transport *t);
/* The same in a fork()ed child: sends no byte, because the parent goes on with
 * the connection, and leaves the memory alone. */
void transport_close_in_child(struct transport *t);

/* The class of its failure or loss. */
static inline enum fault transport_fault(const struct transport *t)
{
    return t->fault != FAULT_NONE ? t->fault : FAULT_UNREACHABLE;
}

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

/* SPDX-License-Identifier: MIT */
/*
 * One open connection as a stream of commands and replies: bytes that wait to
 * leave, and the slots of replies that are to come. It does not know what the
 * commands mean.
 */
#ifndef NXLOCK_NET_CONN_H
#define NXLOCK_NET_CONN_H

#include "base/buf.h"
#include "base/text.h"
#include "net/poller.h"
#include "net/reader.h"
#include "net/slots.h"
#include "net/transport.h"

struct conn {
    struct transport transport;
    const struct poller *poller;
    unsigned key;
    bool polled_for_room;
    struct buf out;
    struct slots slots;
    uint64_t unsent; /* number of the first slot whose command has not begun
                      * to leave */
    size_t part;     /* bytes to come of the command that is partly gone */
    size_t holes;    /* bytes in out of commands that were taken back */
    struct reader *reader; /* made with the first connection */
    size_t dropped;        /* slots without a listener */
    bool blocked; /* nothing can be sent until the descriptor is ready */
};

/* Takes the transport over. false: no memory (or the poller refuses), and the
 * transport is closed. */
bool conn_open(struct conn *c, struct transport *transport);
/* Closes the transport and forgets bytes and slots; the caller has informed the
 * slots' owners. */
void conn_close(struct conn *c);
void conn_free(struct conn *c);

/* Takes note of what poll() reported. true: there may be something to read. */
bool conn_ready(struct conn *c, short revents);

/* Is there anything that conn_flush can send now? */
bool conn_can_flush(const struct conn *c);
/* Sends what is waiting. false: the connection is lost, *why says how. */
bool conn_flush(struct conn *c, struct text *why);
/* Reads what is there, once; while transport.pending there is more. false:
 * lost, or the peer broke the protocol (then *broken). */
bool conn_read(struct conn *c, struct text *why, bool *broken);

/* How many of the newest slots belong to commands of which not a byte has
 * left, or are holes behind those. */
size_t conn_unsent_slots(const struct conn *c);

/* Takes the n slots from number on, and their bytes, back out; they are a
 * whole group, and among the unsent ones. No other slot's number changes. */
void conn_withdraw(struct conn *c, uint64_t number, size_t n);

/* Takes out the slot whose reply has come: the oldest, which has begun to
 * leave. */
struct slot conn_pop(struct conn *c);

#endif

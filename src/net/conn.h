/* SPDX-License-Identifier: MIT */
/*
 * One open connection as a stream of commands and replies: the bytes that wait
 * to be sent, and the slots of the replies that are due. It does not know what
 * the commands mean.
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
    struct source *source;
    bool polled_for_room;
    struct buf out;
    struct slots slots;
    uint64_t first_unsent; /* number of the first slot whose command has no byte
                            * sent */
    size_t rest;           /* bytes left of the command that is partly sent */
    size_t holes;          /* bytes in `out` of commands that were taken back */
    struct reader *reader; /* allocated with the first connection */
    size_t dropped;        /* unanswered commands that no request waits for */
    bool blocked;          /* nothing can be sent until the socket is ready */
};

/* Takes over the transport. False: the transport is closed, and *why says why
 * this machine refused. */
bool conn_open(struct conn *c, struct transport *transport, struct text *why);
/* Closes the transport and drops bytes and slots. Call requests_cut_off()
 * first: it informs the owners of the slots. */
void conn_close(struct conn *c);
void conn_free(struct conn *c);

/* Sends what is waiting, unless the socket takes no more. False: the connection
 * is lost, *why says how. */
bool conn_flush(struct conn *c, struct text *why);
/* Takes in what poll() reported, and reads if there may be something to read.
 * Returns what conn_read() does. */
bool conn_ready(struct conn *c, short revents, struct text *why, bool *broken);
/* Reads once; while transport.pending is set there is more. False: the
 * connection is lost, or the peer broke the protocol (then *broken is set). */
bool conn_read(struct conn *c, struct text *why, bool *broken);

/* How many of the newest slots belong to commands with no byte sent, holes
 * included. */
size_t conn_unsent_slots(const struct conn *c);

/* Takes back the n slots from number on, with their bytes. They must be a whole
 * group of unsent ones. No other slot's number changes. */
void conn_withdraw(struct conn *c, uint64_t number, size_t n);

/* Takes out the oldest slot, whose reply has come. False: no reply is due,
 * because there is no command of which a byte was sent. */
bool conn_pop(struct conn *c, struct slot *slot);

#endif

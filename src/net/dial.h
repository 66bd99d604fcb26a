/* SPDX-License-Identifier: MIT */
/*
 * Connects to a target: looks up the name, then tries its addresses in turn,
 * each for its share of the time, handshake of the transport included. Time
 * that the other addresses do not need is given back to those that were silent.
 *
 * Invariant: an attempt ends at an address of its target. A look-up that takes
 * longer than an attempt is kept for the next one, so that it can finish; but
 * if that has another host, the look-up is given up.
 */
#ifndef NXLOCK_NET_DIAL_H
#define NXLOCK_NET_DIAL_H

#include "config/url.h"
#include "net/poller.h"
#include "net/resolve.h"
#include "net/transport.h"

struct dial {
    enum { DIAL_IDLE, DIAL_LOOKING_UP, DIAL_TRYING, DIAL_SECURING } stage;
    const struct transport_kind *kind; /* of transport to open; set it first */
    const struct poller *poller;       /* outlives every start */
    struct source *source;
    struct resolve *job; /* the look-up; kept when an attempt is given up */
    int fd; /* of the look-up, the socket or the transport; to be polled, unless
             * idle */
    struct transport transport; /* SECURING: in its handshake */
    struct addresses found;
    unsigned untried; /* the addresses to try, by bits */
    unsigned
        unanswered;   /* likewise: those whose share ended without an answer */
    unsigned current; /* the one that is being tried */
    uint64_t end, address_end;
    /* Of the attempt so far: the gravest fault (see fault_worse()) of the
     * addresses that got furthest, and why, with each different cause. */
    enum fault fault;
    int reached;
    struct text why;
    size_t named; /* so many bytes of why name the address of its only cause */
};

enum dial_state { DIAL_CONNECTED, DIAL_WAIT, DIAL_FAILED };

/* Begins an attempt to that target, which must be done by end.
 * CONNECTED: the caller owns *made. FAILED: d->fault and *error say why, and
 * the dial is idle again. */
enum dial_state dial_start(struct dial *d, const struct target *to,
    uint64_t now, uint64_t end, struct transport *made, struct text *error);
/* Call it when the descriptor is ready or dial_deadline() has come. */
enum dial_state dial_step(struct dial *d, const struct target *to, uint64_t now,
    struct transport *made, struct text *error);
/* Gives up this attempt, but keeps a look-up; harmless when idle. */
void dial_cancel(struct dial *d);
/* Frees everything; gives up a look-up too. */
void dial_free(struct dial *d);
/* In a fork()ed child: only closes the descriptor, because the parent goes on
 * with it. */
void dial_close_in_child(struct dial *d);

static inline bool dial_busy(const struct dial *d)
{
    return d->stage != DIAL_IDLE;
}
/* Adds why addresses have failed so far, and what the present one has not done.
 * False: none has failed, or no attempt is being made. */
bool dial_explain(const struct dial *d, struct text *text);
uint64_t dial_deadline(const struct dial *d);
short dial_events(const struct dial *d); /* of d->fd, for poll() */

#endif

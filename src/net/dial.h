/* SPDX-License-Identifier: MIT */
/*
 * From an endpoint to a transport that is ready to carry bytes: looks the name
 * up, then tries its addresses in turn, none of them for longer than its share
 * of the time, which the transport's own handshake is part of. A look-up that
 * takes longer than an attempt is kept for the next one, so that it is finished
 * at some time, and there is never more than one.
 */
#ifndef NXLOCK_NET_DIAL_H
#define NXLOCK_NET_DIAL_H

#include "net/poller.h"
#include "net/resolve.h"
#include "net/transport.h"
#include "net/url.h"

struct dial {
    enum { DIAL_IDLE, DIAL_LOOKING_UP, DIAL_TRYING, DIAL_SECURING } stage;
    const struct transport_kind *kind; /* of what is opened; to be set first */
    const struct poller *poller;       /* outlives every start */
    unsigned key;
    struct resolve *job; /* may be there when idle: of an attempt given up */
    int fd; /* the look-up's, the socket's or the transport's; to poll, unless
             * idle */
    struct transport transport; /* SECURING: in its handshake */
    struct addresses found;
    size_t next; /* address to try after the present one */
    uint64_t end, address_end;
    bool starved; /* FAILED: for want of descriptors or memory here */
};

enum dial_state { DIAL_CONNECTED, DIAL_WAIT, DIAL_FAILED };

/* Begins, always to the same endpoint; the whole has to be done by end.
 * CONNECTED: *made is the caller's. FAILED: *error says why and the dial is
 * idle again. */
enum dial_state dial_start(struct dial *d, const struct endpoint *to,
    uint64_t now, uint64_t end, struct transport *made, struct text *error);
/* When its descriptor is ready or dial_deadline has come. */
enum dial_state dial_step(struct dial *d, const struct endpoint *to,
    uint64_t now, struct transport *made, struct text *error);
/* Gives up this attempt, but keeps a look-up; harmless when idle. */
void dial_cancel(struct dial *d);
/* The end: gives up a look-up too. Nothing is left to be freed. */
void dial_free(struct dial *d);
/* In a fork()ed child, where the parent goes on with it: closes only. */
void dial_close_in_child(struct dial *d);

static inline bool dial_busy(const struct dial *d)
{
    return d->stage != DIAL_IDLE;
}
uint64_t dial_deadline(const struct dial *d);
short dial_events(const struct dial *d); /* of d->fd, for poll() */

#endif

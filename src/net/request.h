/* SPDX-License-Identifier: MIT */
/*
 * Requests on the connection: formats what waits, hands each reply to the owner
 * of its command, and tells every owner when the connection ends.
 *
 * Invariant: each reply goes to the slot of its command and to no other.
 */
#ifndef NXLOCK_NET_REQUEST_H
#define NXLOCK_NET_REQUEST_H

#include "net/state.h"

/* Reserves a record for the cleanup of r, unless r has one; before everything
 * that may make the token ours, and before a release. false: no memory. */
bool request_prepare(struct server *s, struct request *r, struct slice key);
/* No cleanup of r can become necessary before the next request_prepare(): its
 * record is there for other requests. */
void request_unprepare(struct server *s, struct request *r);
void request_free(struct server *s, struct request *r);

/* Puts r among those that wait. kept may be NULL; verb and kept live until
 * completion. */
void request_submit(struct server *s, struct request *r,
    const struct verb *verb, struct kept_commands *kept);

/* Fails all acquires that are not formatted yet: the server has no vote. */
void requests_refuse(
    struct server *s, enum fault fault, const struct text *words);

/* Formats what waits, as far as the socket and the limits allow. */
void requests_format(struct server *s, uint64_t now);

/* Of what form is the reply that comes next, and who gathers it? */
void requests_expect(struct server *s);

/* One reply to whom it belongs. True: it has completed a request, which is *c.
 * *close: the connection has to end because of that; FAULT_NONE: it goes on. */
bool requests_reply(struct server *s, const struct reply *reply,
    struct completion *c, enum fault *close, uint64_t now);

/* The connection is about to be closed: every slot's owner is told. */
void requests_cut_off(struct server *s, enum fault fault, uint64_t now);

#endif

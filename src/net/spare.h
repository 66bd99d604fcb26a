/* SPDX-License-Identifier: MIT */
/*
 * Spares: the cleaner that a request has ready, so that a cleanup cannot fail
 * for lack of memory.
 *
 * Invariant: a client has no more spares than requests that have needed one.
 */
#ifndef NXLOCK_NET_SPARE_H
#define NXLOCK_NET_SPARE_H

#include "net/state.h"

/* Reserves a cleaner for r, unless r has one. Call it before
 * everything that may make the token ours, and before a release. False: out of
 * memory. */
bool spare_reserve(struct request *r, struct slice key);
/* No cleanup of r can become necessary before the next spare_reserve(): returns
 * its spare for other requests. */
void spare_give_back(struct request *r);
/* The request is freed, and with it a spare. */
void spare_free(struct request *r);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Spare records: the cleaner that a request holds ready, so that a cleanup
 * cannot fail for lack of memory.
 *
 * Invariant: the spare records of a client are no more than the requests that
 * have needed one.
 */
#ifndef NXLOCK_NET_SPARE_H
#define NXLOCK_NET_SPARE_H

#include "net/state.h"

/* Reserves a record for the cleanup of r, unless r has one. Call it before
 * everything that may make the token ours, and before a release. False: out of
 * memory. */
bool spare_reserve(struct request *r, struct slice key);
/* No cleanup of r can become necessary before the next spare_reserve(): returns
 * its record for other requests. */
void spare_give_back(struct request *r);
/* The request is freed, and with it a record. */
void spare_free(struct request *r);

#endif

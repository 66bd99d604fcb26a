/* SPDX-License-Identifier: MIT */
/* What is counted and told of decisions. All calls need the client's mutex. */
#ifndef NXLOCK_API_TRACE_H
#define NXLOCK_API_TRACE_H

#include "api/client.h"

void trace_attempt(struct nxl_lock *lock, uint64_t now);
/* An operation of a caller is over. */
void trace_end(struct operation *op, uint64_t now);
void trace_renewal(
    struct nxl_lock *lock, int result, const char *text, uint64_t now);
void trace_loss(struct nxl_lock *lock, enum nxl_loss loss, uint64_t now);
/* The time from a grant to now is over. */
void trace_hold_over(struct nxl_lock *lock, uint64_t now);

#endif

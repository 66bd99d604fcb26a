/* SPDX-License-Identifier: MIT */
/*
 * Decides how a wait for a lock ends that was not granted: is the lock busy, or
 * is that unknown? "Busy" needs a witness: a server has answered that the key
 * holds another client's token, and that token could stay there until now.
 *
 * Invariant: a call that has a request without an answer, which may have been
 * granted, never ends with "busy": the key may hold its own token.
 */
#ifndef NXLOCK_CORE_WITNESS_H
#define NXLOCK_CORE_WITNESS_H

#include "core/machine.h"

/* The last request of a wait is sent so long before the end of the call, or
 * earlier if answers take longer: then a server that works answers it, and the
 * result is known. */
#define LAST_REQUEST_SLACK (20 * NS_PER_MS)

/* What a call knows of the lock when its wait ends. */
struct witness {
    bool unanswered; /* a request may have been granted; nothing is known of it
                      */
    bool waits; /* its token is in line, or was, and may have been granted */
    uint64_t busy_until; /* see busy_until(); 0: no server said "busy", or one
                          * has failed after it */
};

/* VERDICT_NO, VERDICT_UNKNOWN; or VERDICT_FAULT: nothing was granted, and it is
 * not known either that the lock is busy. */
enum verdict witness_verdict(const struct witness *w, uint64_t now);

/* How long "busy" counts that was answered to a request sent at sent_at: as
 * long as the key could last then (left_ms); for timeout_ns if the server did
 * not say. */
uint64_t busy_until(uint64_t sent_at, int64_t left_ms, uint64_t timeout_ns);

#endif

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

/* The last request of a wait is sent this long before the end of the call, or
 * earlier if answers take longer, so that a server that works can answer it in
 * time. */
#define LAST_REQUEST_SLACK (20 * NS_PER_MS)

/* What a call knows of the lock when its wait ends. */
struct witness {
    bool unanswered; /* a request may have been granted; nothing is known of it
                      */
    bool line_may_have_granted; /* its token is in line, or was, and may have
                                   been granted */
    /* See busy_until(); 0: no server said "busy", or one has failed after it.
     * It outweighs line_may_have_granted: the answer came after the token had
     * joined, and said that another client had the lock. It does not outweigh
     * unanswered. */
    uint64_t busy_until;
};

/* VERDICT_NO: busy. VERDICT_UNKNOWN: it may have been granted. VERDICT_FAULT:
 * it was not granted, but nothing valid says that it is busy. */
enum verdict witness_verdict(const struct witness *w, uint64_t now);

/* Until when the answer "busy" to a request sent at sent_at is valid: for the
 * TTL that the key had left (left_ms), or for timeout_ns if the server did not
 * report it. */
uint64_t busy_until(uint64_t sent_at, int64_t left_ms, uint64_t timeout_ns);

#endif

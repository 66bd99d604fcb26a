/* SPDX-License-Identifier: MIT */
/*
 * A lease: how long a grant may be relied on, and what has become of it.
 *
 * The server counts the TTL from when it applied the command, which is after it
 * was sent, and its clock may run faster by the drift allowance. So the
 * deadline, sent_at + ttl - drift, comes before the server's own end. drift =
 * ttl * ppm + 2 ms; the 2 ms cover rounding to milliseconds. This is the
 * allowance of the Redlock description and its implementations.
 *
 * Invariant: whether the deadline of a lease has passed is decided in
 * lease_state() and lease_held(), and until when a key may be removed in
 * lease_ours_until(); nowhere else. (A grant that comes too late to begin a
 * lease is found by the machine that asked for it.)
 */
#ifndef NXLOCK_CORE_LEASE_H
#define NXLOCK_CORE_LEASE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define LEASE_USABLE_MS 10 /* what must remain of a TTL after its drift */

uint64_t lease_drift_ns(uint32_t ttl_ms, uint32_t drift_ppm);

/* The shortest TTL whose drift is not less than that. drift_ppm > 0. */
uint64_t lease_ttl_of_drift_ms(uint64_t drift_ns, uint32_t drift_ppm);

/* The deadline; 0 when nothing remains. Saturates. */
uint64_t lease_deadline(uint64_t sent_at, uint32_t ttl_ms, uint32_t drift_ppm);

/* ttl - drift >= LEASE_USABLE_MS */
bool lease_usable(uint32_t ttl_ms, uint32_t drift_ppm);

/* The smallest TTL that is usable with that allowance; UINT32_MAX, which is
 * not usable either, when none is (a million ppm or more). */
uint32_t lease_least_ttl_ms(uint32_t drift_ppm);

enum lease_state {
    LEASE_NONE,    /* never granted, or released, or given up */
    LEASE_HELD,    /* may be relied on */
    LEASE_EXPIRED, /* its deadline has passed, but it has not been ended yet */
    LEASE_LOST     /* known to be lost; the handle has not released it yet */
};

struct lease {
    /* NONE, HELD or LOST. A held lease expires with time: ask lease_state(),
     * unless it is only whether there is one. */
    enum lease_state stored;
    _Atomic uint64_t deadline; /* 0 unless held. Read without any mutex */
    /* The last deadline that was promised for the present token; 0: none was.
     * It outlives a loss and a release. Whoever gives the lock another token
     * sets it to 0. */
    uint64_t promised;
    uint64_t min_until;  /* the key stays until then (minimum hold) */
    uint64_t ends;       /* the lease is not extended beyond (maximum hold) */
    uint64_t granted_at; /* 0: counted in held_ns already */
    uint64_t held_ns;    /* of leases that have ended; the driver collects it */
};

enum lease_state lease_state(const struct lease *lease, uint64_t now);
/* state == LEASE_HELD. Needs no mutex, unlike all other functions here. */
bool lease_held(const struct lease *lease, uint64_t now);

/* Granted until deadline. min_hold_ms 0 and max_hold_ns NEVER: no limit. */
void lease_grant(struct lease *lease, uint64_t deadline, uint32_t min_hold_ms,
    uint64_t max_hold_ns, uint64_t now);
/* It ends by `ends`, which nobody has been promised to be later. */
void lease_limit(struct lease *lease, uint64_t ends);
/* A quorum has extended the key until deadline. An earlier deadline than the
 * present one changes nothing. */
void lease_extend(struct lease *lease, uint64_t deadline);
/* The lease may no longer be relied on, but a release is still due. */
void lease_lose(struct lease *lease, uint64_t now);
/* The handle is done with the lease: it was released or given up. */
void lease_end(struct lease *lease, uint64_t now);

/* May a lease in this state be extended? An expired one may not: a process
 * that was stopped must not revive a lease that others saw expire. */
bool lease_extendable(const struct lease *lease, uint64_t now);

/* Until when this handle may remove or shorten its key: until the last deadline
 * that was promised. From then on another process may have adopted the token
 * and extended the key, so the key is left to its TTL, whether the lease
 * expired, was lost, or had an extend that was never answered. NEVER if no
 * lease was promised for the token. */
uint64_t lease_ours_until(const struct lease *lease);

/* What remains of the minimum hold, rounded up; 0: nothing. */
uint32_t lease_min_left_ms(const struct lease *lease, uint64_t now);

/* What a lease is that is about to be given up. */
struct lease_rest {
    bool held;
    uint64_t held_ns;     /* for how long; 0: it is not, or the loss is known */
    uint64_t ours_until;  /* lease_ours_until() */
    uint32_t min_left_ms; /* lease_min_left_ms() */
};
struct lease_rest lease_rest(const struct lease *lease, uint64_t now);

#endif

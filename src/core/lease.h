/* SPDX-License-Identifier: MIT */
/*
 * How long a grant may be relied on. The server counts ttl from when it
 * applied the command, which is after it was sent; its clock may run faster
 * by the drift allowance. So D = sent_at + ttl - drift is before its end.
 * drift = ceil(ttl * ppm) + 2 ms (the 2 ms cover rounding to milliseconds);
 * source: the Redlock description's allowance, as its implementations use it.
 */
#ifndef NXLOCK_CORE_LEASE_H
#define NXLOCK_CORE_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#define LEASE_USABLE_MS 10 /* what must remain of a ttl after its drift */

uint64_t lease_drift_ns(uint32_t ttl_ms, uint32_t drift_ppm);

/* D; 0 when nothing remains. Saturates. */
uint64_t lease_deadline(uint64_t sent_at, uint32_t ttl_ms, uint32_t drift_ppm);

/* ttl - drift >= LEASE_USABLE_MS */
bool lease_usable(uint32_t ttl_ms, uint32_t drift_ppm);

/* The smallest ttl that is usable with that allowance; UINT32_MAX, which is
 * not usable either, when none is (a million ppm or more). */
uint32_t lease_least_ttl_ms(uint32_t drift_ppm);

#endif

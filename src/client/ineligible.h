/* SPDX-License-Identifier: MIT */
/* Says in words why a server has no vote, and what a failover means. */
#ifndef NXLOCK_CLIENT_INELIGIBLE_H
#define NXLOCK_CLIENT_INELIGIBLE_H

#include "base/text.h"
#include "core/eligibility.h"

/* Adds why it has no vote, since when, and when it will have one. */
void ineligible_explain(
    const struct eligibility *e, uint64_t now, struct text *text);
/* Adds what a failover, which was seen at seen_at, means for locks: since when
 * and until when the server grants none. */
void ineligible_failover(const struct eligibility *e, uint64_t seen_at,
    uint64_t now, struct text *text);

#endif

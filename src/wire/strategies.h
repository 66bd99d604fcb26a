/* SPDX-License-Identifier: MIT */
/*
 * The table of all strategies: which there are, which one carries out an
 * exchange, and which are in use on a connection.
 */
#ifndef NXLOCK_WIRE_STRATEGIES_H
#define NXLOCK_WIRE_STRATEGIES_H

#include "base/text.h"
#include "wire/strategy.h"

/* What carries out the present step: x->at of the verb's, unless something else
 * comes first. */
const struct strategy *strategies_for(const struct exchange *x);

/* The i-th way to carry out the verb; NULL: there are no more. */
const struct strategy *strategies_at(enum verb_kind kind, unsigned i);
/* May its commands be sent on this connection at all? */
bool strategies_allow(
    const struct dialect *dialect, enum verb_kind kind, unsigned i);

/* Which of them are open to an exchange: from first to end - 1; from with_end
 * on those whose ttl_is_in_value, which come last wherever one begins. with_end
 * asks for a token in a value that tells its end. */
struct strategies_range {
    unsigned first, with_end, end;
};
struct strategies_range strategies_range(
    const struct dialect *dialect, enum verb_kind kind, bool with_end);

/* It locks by a strategy whose promises are weaker. */
bool strategies_weak(const struct dialect *dialect);

/* They depend on dialect.now being no earlier than the reply. */
bool strategies_need_clock(const struct dialect *dialect);

/* The strategies in use, for people: "SET NX PX + scripts". */
void strategies_describe(const struct dialect *dialect, struct text *text);

#endif

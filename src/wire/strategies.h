/* SPDX-License-Identifier: MIT */
/*
 * The table of all strategies: what there is for a verb, which one an exchange
 * uses next, and which are in use on a connection.
 */
#ifndef NXLOCK_WIRE_STRATEGIES_H
#define NXLOCK_WIRE_STRATEGIES_H

#include "base/text.h"
#include "wire/strategy.h"

/* The strategy for the current step: number x->strategy_index of the verb's,
 * unless a check has to come first or the verb has only one. */
const struct strategy *strategies_for(const struct exchange *x);

/* Strategy i of the verb, from 0; NULL: there are no more. */
const struct strategy *strategies_at(enum verb_kind kind, unsigned i);

/* Does the verb replace a value whose end is past? */
bool strategies_may_replace(enum verb_kind kind);

/* Is a lock useless on a server that refuses all strategies of this verb,
 * because it could be neither extended nor released? */
bool strategies_are_vital(enum verb_kind kind);

/* Which strategies an exchange may try: first to end - 1. Those from with_end
 * on have ttl_is_in_value and are tried last. The argument with_end: the token
 * is in a value that contains its end. */
struct strategies_range {
    unsigned first, with_end, end;
};
struct strategies_range strategies_range(
    const struct dialect *dialect, enum verb_kind kind, bool with_end);
/* Of a token that shares its lock there is one for each verb, which
 * strategies_for() returns. */
#define STRATEGIES_OF_SHARED ((struct strategies_range){0, 1, 1})

/* Is the acquire strategy in use one with weaker promises? */
bool strategies_weak(const struct dialect *dialect);

/* Do the strategies in use need dialect.now to be read after the reply? */
bool strategies_need_clock(const struct dialect *dialect);

/* May a token try to join the line of a lock on this connection now? now is 0
 * to ask whether the last one was refused. If not, *why says in words why. */
bool strategies_allow_line(
    const struct dialect *dialect, uint64_t now, struct text *why);

/* Are locks released and inspected by scripts? Before a release was tried, the
 * first way to inspect must be usable, which is a script too. */
bool strategies_are_scripts(const struct dialect *dialect);

/* Has a way to acquire shown that it works on this connection? Before, it is
 * only known which would be tried first. */
bool strategies_are_known(const struct dialect *dialect);

/* The strategies in use, for people: "SET NX PX + scripts". */
void strategies_describe(const struct dialect *dialect, struct text *text);

#endif

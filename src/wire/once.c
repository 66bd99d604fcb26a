/* SPDX-License-Identifier: MIT */
/*
 * Work that must be done once: BEGIN, LOOK, TELL, FORGET and UNBEGIN, each one
 * script and one round trip. Invariant: there is no other strategy; each change
 * of a record is one compare in one script, and an error proves that nothing
 * was changed.
 */
#include "wire/strategy.h"

static unsigned once_encode(struct exchange *x, struct buf *out)
{
    (void)x;
    (void)out;
    return 0;
}

static enum exchange_next once_replied(
    struct exchange *x, const struct reply *reply)
{
    (void)reply;
    return strategy_broken(x, "expected an answer of the once scripts");
}

const struct strategy once_strategy = {
    .name = "once scripts", .encode = once_encode, .reply = once_replied};

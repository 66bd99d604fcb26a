/* SPDX-License-Identifier: MIT */
/*
 * One verb on one connection, from its first byte to its outcome: which
 * commands go out, how many replies they have, and what the replies mean. A
 * small machine, because a verb can take more than one step (EVALSHA, then
 * EVAL after NOSCRIPT).
 */
#ifndef NXLOCK_WIRE_EXCHANGE_H
#define NXLOCK_WIRE_EXCHANGE_H

#include "wire/command.h"
#include "wire/reply.h"

struct exchange {
    const struct verb *verb;
    struct kept_commands *kept;
    unsigned char step;
    unsigned char due; /* replies still to come of what was encoded */
    struct outcome outcome;
    /* The first of two replies' words, while the second is due; so do not
     * copy an exchange. */
    char words[128];
};

enum exchange_next {
    EXCHANGE_WAIT,  /* more replies are due */
    EXCHANGE_AGAIN, /* encode the next step */
    EXCHANGE_DONE   /* exchange.outcome is final (sent_at is not filled in) */
};

/* verb (and what it points to) and kept outlive the exchange; kept may be
 * NULL. */
void exchange_begin(struct exchange *x, const struct verb *verb,
    struct kept_commands *kept);

/* Appends the commands of the present step. Returns how many replies they
 * will have (exchange.due), 0: no memory, out as before. */
unsigned exchange_encode(struct exchange *x, struct buf *out);

enum exchange_next exchange_reply(
    struct exchange *x, const struct reply *reply);

#endif

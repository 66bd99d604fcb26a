/* SPDX-License-Identifier: MIT */
/*
 * What has been learnt of one connection: on which rung each verb works. It
 * begins anew with every connection, for another server may answer there.
 */
#ifndef NXLOCK_WIRE_LADDER_H
#define NXLOCK_WIRE_LADDER_H

#include "base/text.h"
#include "base/verb.h"

struct exchange;
struct rung;

struct ladder {
    unsigned char at[VERB_KINDS]; /* the rung that worked last */
    /* The exchange whose transaction is open: nothing else may go. */
    const struct exchange *alone;
    unsigned connection; /* its number: steps of an exchange stay on one */
};

/* Another connection begins: nothing is known. */
void ladder_begin(struct ladder *ladder);

/* The i-th way to carry out the verb; NULL: there are no more. */
const struct rung *ladder_rung(enum verb_kind kind, unsigned i);
unsigned ladder_rungs(enum verb_kind kind);

/* The rungs in use, for people: "SET NX PX + scripts". */
void ladder_describe(const struct ladder *ladder, struct text *text);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What has been learnt of one connection: on which rung each verb works. It
 * begins anew with every connection, for another server may answer there.
 */
#ifndef NXLOCK_WIRE_LADDER_H
#define NXLOCK_WIRE_LADDER_H

#include "base/text.h"
#include "base/verb.h"
#include "wire/servertime.h"

struct exchange;
struct rung;

struct ladder {
    /* Of the client, and kept from one connection to the next. */
    bool stamps;         /* the timestamp scheme and no other */
    bool interop;        /* what others of that scheme left is taken over */
    uint32_t max_ttl_ms; /* of any lock of anybody */

    unsigned char at[VERB_KINDS];         /* the rung that worked last */
    unsigned char stamped_at[VERB_KINDS]; /* ... for a stamped exchange */
    /* The exchange whose transaction is open: nothing else may go. */
    const struct exchange *alone;
    unsigned connection; /* its number: steps of an exchange stay on one */

    uint64_t now; /* of the driver, before each encode and each reply */
    struct server_clock clock;
    bool learnt; /* what follows, by asking */
    bool timed;  /* it has TIME */
    bool substr; /* GETRANGE is SUBSTR there, before 2.4 */
    /* Scripts are refused: whether there is another way to end a lock is asked
     * before the next acquire. Kept until the next handshake tells. */
    bool doubted;
    bool unwatched; /* ... and WATCH is none */
};

/* Another connection begins: nothing is known. */
void ladder_begin(struct ladder *ladder);

/* The i-th way to carry out the verb; NULL: there are no more. */
const struct rung *ladder_rung(enum verb_kind kind, unsigned i);
unsigned ladder_rungs(enum verb_kind kind);

/* Which of them are open to an exchange: from first to end - 1; from stamps on
 * those of timestamps, which come last wherever one begins. */
struct ladder_range {
    unsigned first, stamps, end;
};
struct ladder_range ladder_range(const struct ladder *ladder,
    enum verb_kind kind, bool stamped);

/* It locks by timestamps, whose promises are weaker. */
bool ladder_weak(const struct ladder *ladder);

/* The rungs in use, for people: "SET NX PX + scripts". */
void ladder_describe(const struct ladder *ladder, struct text *text);

#endif

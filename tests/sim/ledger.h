/* SPDX-License-Identifier: MIT */
/*
 * The judge of work that must be done once. It keeps a ledger of what was begun
 * and what was really done, whatever the records say:
 *
 *   O1  where nobody repeats in doubt, of a name's record at most one attempt
 *       is ever begun of which nobody said that nothing happened; nothing is
 *       done twice; and what was begun is never taken back after its caller
 *       was told of it
 *   O2  an attempt that was begun, and of which nothing was said, is found as
 *       busy or in doubt, never as absent
 *   O3  where attempts in doubt are repeated, whoever does is told of them
 *   O4  a done, once said, is never undone; said late it counts, unless
 *       another attempt is at work, in doubt, or done
 *   O5  what is replayed is the result of the first done, and only to those
 *       who have its fingerprint
 *
 * A record lives until it is forgotten, or the time to keep it is over: then
 * another one begins, and another page of the ledger. The checkers of these
 * worlds know whether an attempt has acted, and whether it still may.
 */
#ifndef NXLOCK_SIM_LEDGER_H
#define NXLOCK_SIM_LEDGER_H

#include "sim/record.h"

struct worker;

/* Of a token. */
struct attempt {
    uint64_t previous; /* on the same page; 0: it is the first there */
    uint64_t order;    /* in which they were begun; 0: it was not */
    unsigned page, fingerprint;
    unsigned doubts; /* that its caller was told of, and that are not cleared */
    bool excused;    /* somebody said that nothing happened, or will be done */
    bool handed;     /* its caller knows of it */
    bool put_back;   /* by the failure of a later one: the record is about it */
    bool acted;
};

struct ledger {
    unsigned page;
    uint64_t last;   /* attempt on this page; 0: none */
    uint64_t done;   /* the token that said so first; 0: none */
    unsigned late;   /* how many have said done and were refused */
    uint64_t result; /* ... */
    /* The last write that somebody was told of, in this epoch of the server. */
    uint64_t told, told_epoch;
};

/* A failover has brought back the record r, perhaps an older one: another page
 * begins with that. */
void ledger_rewound(
    struct world *w, unsigned name, const struct work_record *r);
/* The record is gone: forgotten, or not kept any longer. */
void ledger_over(struct world *w, unsigned name);

/* ------------------------------------------------ what the servers have done
 */

void ledger_began(
    struct world *w, const struct message *m, const struct work_record *r);
/* BEGIN and LOOK: nothing was begun. */
void ledger_found(struct world *w, const struct message *m,
    enum once_found found, const struct work_record *r);
/* r: as it is afterwards. */
void ledger_told(struct world *w, const struct message *m, bool accepted,
    const struct work_record *r);
void ledger_unbegun(struct world *w, const struct message *m);
void ledger_put_back(struct world *w, uint64_t token);

/* ------------------------------------------------------ what the programs do
 */

/* The caller is told that its work has begun. */
void ledger_handed(struct world *w, const struct worker *k);
void ledger_acts(struct world *w, const struct worker *k);
bool ledger_acted(const struct world *w, uint64_t token);
/* Could this attempt still act? */
bool ledger_may_act(const struct world *w, uint64_t token);
/* Has no other attempt of this page acted, nor can any? */
bool ledger_nothing_done(
    const struct world *w, unsigned name, uint64_t but_for);

/* A record that was begun, and that nobody will tell what came of it. */
void ledger_orphans(struct world *w);

#endif

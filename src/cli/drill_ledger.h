/* SPDX-License-Identifier: MIT */
/*
 * Who held the drill's lock, and when: what the processes say of themselves,
 * compared.
 */
#ifndef NXLOCK_CLI_DRILL_LEDGER_H
#define NXLOCK_CLI_DRILL_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/drill_actor.h"

#define LEDGER_ROOM 256

/* One process relied on the lock, without a gap, from the first time to the
 * last. It may have done so for longer. */
struct held {
    unsigned who;
    bool open; /* it has not been seen without the lock yet */
    uint64_t from, until;
    uint64_t sure; /* as from, a moment earlier: see struct drill_answer */
    uint64_t fence;
    char token[ACTOR_TOKEN];
};

struct ledger {
    struct held held[LEDGER_ROOM];
    size_t count;
};

/* What an answer proves together with all before it. */
enum ledger_finding {
    LEDGER_FINE,
    LEDGER_TWO,  /* two processes held the lock at once */
    LEDGER_FENCE /* a later grant has no greater fencing token */
};

/* Notes an answer of process who, and compares; *other is what it is compared
 * with if something was found, and *mine the hold that the answer is about. */
enum ledger_finding ledger_note(struct ledger *ledger, unsigned who,
    const struct drill_answer *answer, const struct held **mine,
    const struct held **other);

/* The process has ended: it holds nothing any longer. */
void ledger_close(struct ledger *ledger, unsigned who);

#endif

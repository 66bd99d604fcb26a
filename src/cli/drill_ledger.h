/* SPDX-License-Identifier: MIT */
/*
 * Compares when each process of the drill held the lock, by their own answers.
 */
#ifndef NXLOCK_CLI_DRILL_LEDGER_H
#define NXLOCK_CLI_DRILL_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/drill_actor.h"

#define LEDGER_ROOM 256

/* One hold: a process held the lock from one time until another, without a gap.
 * It may have held it for longer. */
struct held {
    unsigned who;
    bool open; /* the process has not been seen without the lock since */
    uint64_t from, until;
    uint64_t sure; /* it was held then too, and had been granted: a moment
                    * before from; see struct drill_answer */
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

/* Records an answer of process who, and compares it with all before. *mine is
 * the hold that the answer is about; NULL: there is none. If something was
 * found, *other is the hold that does not agree with it. Both belong to the
 * ledger, and are valid until the next call. */
enum ledger_finding ledger_note(struct ledger *ledger, unsigned who,
    const struct drill_answer *answer, const struct held **mine,
    const struct held **other);

/* The process has ended: it holds nothing any longer. */
void ledger_close(struct ledger *ledger, unsigned who);

#endif

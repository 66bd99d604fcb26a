/* SPDX-License-Identifier: MIT */
/*
 * Compares when each process of the drill held the lock.
 *
 * Invariant: only what is certain is recorded, so that a slow machine is never
 * taken for a broken promise. A hold begins here after the process got its
 * result, and lasts until the last time at which it asked the library, which
 * said that the lock is still held.
 */
#include "cli/drill_ledger.h"

#include <string.h>

static struct held *find_open(struct ledger *ledger, unsigned who)
{
    for (size_t i = 0; i < ledger->count; i++) {
        if (ledger->held[i].open && ledger->held[i].who == who)
            return &ledger->held[i];
    }
    return NULL;
}

void ledger_close(struct ledger *ledger, unsigned who)
{
    struct held *held = find_open(ledger, who);

    if (held)
        held->open = false;
}

static struct held *add_hold(
    struct ledger *ledger, unsigned who, const struct drill_answer *answer)
{
    if (ledger->count == LEDGER_ROOM) { /* the oldest one is forgotten */
        memmove(ledger->held, ledger->held + 1,
            --ledger->count * sizeof(ledger->held[0]));
    }
    struct held *held = &ledger->held[ledger->count++];
    *held = (struct held){.who = who,
        .open = true,
        .from = answer->after,
        .until = answer->after,
        .sure = answer->ended,
        .fence = answer->fence};
    memcpy(held->token, answer->token, sizeof(held->token));
    return held;
}

/* Adoption hands a lock over under the same token. */
static bool same_lock(const struct held *a, const struct held *b)
{
    return strcmp(a->token, b->token) == 0;
}

static enum ledger_finding compare_holds(
    const struct held *mine, const struct held *other)
{
    const struct held *first = mine->sure < other->sure ? mine : other;
    const struct held *second = first == mine ? other : mine;
    uint64_t from = mine->from > other->from ? mine->from : other->from;
    uint64_t until = mine->until < other->until ? mine->until : other->until;

    if (same_lock(mine, other))
        return LEDGER_FINE;
    if (mine->who != other->who && from < until)
        return LEDGER_TWO;
    /* The second was granted after the first: it was held when the first hold
     * had already ended. An adopted lock has no fencing token. */
    if (first->until <= second->sure && first->fence != 0 &&
        second->fence != 0 && second->fence <= first->fence)
        return LEDGER_FENCE;
    return LEDGER_FINE;
}

enum ledger_finding ledger_note(struct ledger *ledger, unsigned who,
    const struct drill_answer *answer, const struct held **mine,
    const struct held **other)
{
    struct held *held = find_open(ledger, who);

    if (held && answer->held_before)
        held->until = answer->before;
    if (held && !answer->held_after)
        held->open = false;
    if (!held && answer->held_after)
        held = add_hold(ledger, who, answer);
    *mine = held;
    for (size_t i = 0; held && i < ledger->count; i++) {
        *other = &ledger->held[i];
        enum ledger_finding finding =
            *other == held ? LEDGER_FINE : compare_holds(held, *other);
        if (finding != LEDGER_FINE)
            return finding;
    }
    return LEDGER_FINE;
}

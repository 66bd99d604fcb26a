/* SPDX-License-Identifier: MIT */
/* A ring buffer of slots.
 *
 * Invariant: slots leave at the front in the order in which they were added,
 * and their numbers have no gaps. */
#include "net/slots.h"

#include <stdlib.h>

bool slots_reserve(struct slots *s, size_t more)
{
    if (s->count + more <= s->room)
        return true;
    size_t room = s->room ? s->room : 16;
    while (room < s->count + more)
        room *= 2;
    struct slot *ring = malloc(room * sizeof(*ring));
    if (!ring)
        return false;
    for (size_t i = 0; i < s->count; i++)
        ring[i] = *slots_at(s, i);
    free(s->ring);
    s->ring = ring;
    s->first = 0;
    s->room = room;
    return true;
}

void slots_unpush(struct slots *s)
{
    s->count--;
}

struct slot slots_pop(struct slots *s)
{
    struct slot slot = *slots_at(s, 0);
    s->first = (s->first + 1) & (s->room - 1);
    s->count--;
    s->popped++;
    return slot;
}

void slots_clear(struct slots *s)
{
    s->first = s->count = 0;
    s->popped = 0;
}

void slots_free(struct slots *s)
{
    free(s->ring);
    *s = (struct slots){0};
}

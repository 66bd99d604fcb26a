/* SPDX-License-Identifier: MIT */
/* Keeps: slots leave at the front in the order in which they came. */
#include "net/slots.h"

#include <stdlib.h>

bool slots_reserve(struct slots *s, size_t more)
{
    if (s->count + more <= s->room)
        return true;
    size_t room = s->room ? s->room : 16;
    while (room < s->count + more)
        room *= 2;
    struct slot *ring = malloc(room * sizeof *ring);
    if (!ring)
        return false;
    for (size_t i = 0; i < s->count; i++)
        ring[i] = *slots_at(s, i);
    free(s->ring);
    *s = (struct slots){.ring = ring, .count = s->count, .room = room};
    return true;
}

void slots_push(struct slots *s, struct slot slot)
{
    s->count++;
    *slots_at(s, s->count - 1) = slot;
}

struct slot slots_pop(struct slots *s)
{
    struct slot slot = *slots_at(s, 0);
    s->first = (s->first + 1) & (s->room - 1);
    s->count--;
    return slot;
}

void slots_cut(struct slots *s, size_t index, size_t n)
{
    for (size_t i = index; i + n < s->count; i++)
        *slots_at(s, i) = *slots_at(s, i + n);
    s->count -= n;
}

void slots_free(struct slots *s)
{
    free(s->ring);
    *s = (struct slots){0};
}

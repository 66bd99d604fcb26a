/* SPDX-License-Identifier: MIT */
/*
 * The queue of replies that are due, in the order of their commands. A reply
 * does not name its command, so only its place in this queue shows which
 * command it answers. Every slot has a number that never changes, by which its
 * owner finds it; so a slot that is taken out of the middle leaves a hole.
 */
#ifndef NXLOCK_NET_SLOTS_H
#define NXLOCK_NET_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum slot_kind {
    SLOT_HANDSHAKE,
    SLOT_FSYNC,        /* CONFIG GET appendfsync on a connection that is up */
    SLOT_ALIVE,        /* INFO, after a silence: see requests_format() */
    SLOT_MARKER,       /* the marker key is set */
    SLOT_REPLICA_WAIT, /* WAIT or WAITAOF: see replicas.h */
    SLOT_REQUEST,      /* owner: struct request */
    SLOT_DISCARD,      /* DISCARD of a transaction that was cancelled */
    SLOT_CANCELLED,    /* of a cancelled request; owner: its cleaner, or NULL */
    SLOT_CANCELLED_QUERY, /* of a cancelled query: its reply may have any form
                           */
    SLOT_CANCELLED_READ,  /* of a cancelled command that changes nothing */
    SLOT_DELETE, /* compare-and-delete of a cleanup; owner: struct cleaner */
    SLOT_KILL,   /* CLIENT KILL of a cleanup; likewise */
    SLOT_HOLE    /* taken back: no reply follows */
};

struct slot {
    enum slot_kind kind;
    /* A command that acquires several names (acquire_after.lua) has a slot for
     * each, and one reply: how many slots follow that share it. */
    unsigned sharing;
    void *owner;
    uint64_t sent_at;
    size_t bytes; /* of the command; 0 for the rest of a group of commands */
};

struct slots {
    struct slot *ring; /* room is a power of two */
    size_t first, count, room;
    uint64_t popped; /* number of the oldest: how many have left */
};

bool slots_reserve(struct slots *s, size_t more); /* false: no memory */
void slots_unpush(struct slots *s);               /* takes back the newest */
struct slot slots_pop(struct slots *s);           /* count > 0 */
void slots_clear(struct slots *s); /* numbers begin with 0 again */
void slots_free(struct slots *s);

/* index counts from the oldest. */
static inline struct slot *slots_at(const struct slots *s, size_t index)
{
    return &s->ring[(s->first + index) & (s->room - 1)];
}

/* The number that the next one gets. */
static inline uint64_t slots_end(const struct slots *s)
{
    return s->popped + s->count;
}

/* After slots_reserve(). Returns its number. No other slot shares its reply. */
static inline uint64_t slots_push(struct slots *s, enum slot_kind kind,
    void *owner, uint64_t sent_at, size_t bytes)
{
    size_t index = s->count++;
    *slots_at(s, index) = (struct slot){
        .kind = kind, .owner = owner, .sent_at = sent_at, .bytes = bytes};
    return s->popped + index;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The locks that were found; once they are sorted, each is there once.
 */
#ifndef NXLOCK_CLI_LOOK_LOCK_LIST_H
#define NXLOCK_CLI_LOOK_LOCK_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nxlock.h>

#define LOCK_NOWHERE INT64_MIN

/* How several hold a lock. */
struct lock_share {
    size_t holders;  /* 0: it is exclusive */
    bool partial;    /* there may be more */
    int64_t used;    /* permits that they have */
    int64_t permits; /* the least limit of them; 0: none */
};

struct lock_entry {
    char *name; /* zero-ended, but may contain zero bytes */
    size_t name_length;
    char *value; /* a token, or a record's first line, zero-ended */
    struct lock_share share;
    int64_t left_ms[NXL_SERVERS_MAX]; /* -1: no TTL; or LOCK_NOWHERE */
};

struct lock_list {
    struct lock_entry **list;
    size_t count, room;
};

/* Notes that a server has the lock name, held under the token value, or a
 * record of it. Returns the entry; NULL: no memory. */
struct lock_entry *lock_list_add(struct lock_list *list, const char *name,
    size_t length, const char *value, size_t server, int64_t left_ms);

/* Sorts by name, and merges what was added more than once: by several servers,
 * or by a scan that came across a key again. */
void lock_list_sort(struct lock_list *list);

void lock_list_free(struct lock_list *list);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The locks that were found, each once, however often a server showed it.
 */
#ifndef NXLOCK_CLI_LOCK_LIST_H
#define NXLOCK_CLI_LOCK_LIST_H

#include <stddef.h>
#include <stdint.h>

#include <nxlock.h>

#define LOCK_NOWHERE INT64_MIN

struct lock_entry {
    char *name; /* zero-ended, but may contain zero bytes */
    size_t name_length;
    char *value;                      /* a token, zero-ended */
    int64_t left_ms[NXL_SERVERS_MAX]; /* by server: -1: no end, or _NOWHERE */
};

struct lock_list {
    struct lock_entry **list;
    size_t count, room;
    size_t *table; /* places in list, plus 1, by hash; of a power of two */
    size_t slots;
};

/* A server shows the name held by a token. False: no memory. */
bool lock_list_add(struct lock_list *list, const char *name, size_t length,
    const char *value, size_t server, int64_t left_ms);

/* By name. Nothing may be added afterwards. */
void lock_list_sort(struct lock_list *list);

void lock_list_free(struct lock_list *list);

#endif

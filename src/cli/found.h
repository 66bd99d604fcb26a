/* SPDX-License-Identifier: MIT */
/*
 * The locks that were found, each once, however often a server showed it.
 */
#ifndef NXLOCK_CLI_FOUND_H
#define NXLOCK_CLI_FOUND_H

#include <stddef.h>
#include <stdint.h>

#include <nxlock.h>

#define FOUND_NOWHERE INT64_MIN

struct found {
    char *name; /* zero-ended, but may contain zero bytes */
    size_t name_length;
    char *value;             /* a token, zero-ended */
    int64_t left_ms[NXL_SERVERS_MAX]; /* by server: -1: no end, or _NOWHERE */
};

struct found_list {
    struct found **list;
    size_t count, room;
    size_t *table; /* places in list, plus 1, by hash; of a power of two */
    size_t slots;
};

/* A server shows the name held by a token. False: no memory. */
bool found_add(struct found_list *list, const char *name, size_t length,
    const char *value, size_t server, int64_t left_ms);

/* By name. Nothing may be added afterwards. */
void found_sort(struct found_list *list);

void found_free(struct found_list *list);

#endif

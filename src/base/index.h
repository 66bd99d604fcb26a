/* SPDX-License-Identifier: MIT */
/*
 * Finds things by a key: a hash table whose entries are members of what is
 * found, so putting one in never fails. It does not keep the keys: who looks
 * for something compares those of a bucket, of which there are few.
 *
 * The keys must not be chosen by an attacker.
 */
#ifndef NXLOCK_BASE_INDEX_H
#define NXLOCK_BASE_INDEX_H

#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"

struct index_entry {
    struct list node;
    uint64_t hash;
};

struct index {
    struct list only;     /* while size is 0, the one bucket */
    struct list *buckets; /* size of them, a power of 2 */
    size_t size, count;
};

void index_init(struct index *x);
/* Its entries need not be removed before. */
void index_free(struct index *x);

void index_entry_init(struct index_entry *e);
/* Puts e in under that key; one that is in already is moved. Without memory for
 * more buckets those that there are become longer. */
void index_put(struct index *x, struct index_entry *e, struct slice key);
/* Harmless for one that is not in. */
void index_remove(struct index *x, struct index_entry *e);

/* A list of all entries under that key, and of a few others. */
struct list *index_bucket(struct index *x, struct slice key);

#endif

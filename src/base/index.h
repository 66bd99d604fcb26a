/* SPDX-License-Identifier: MIT */
/*
 * An intrusive hash table: an entry is a member of the object that it finds, so
 * an insertion never fails. The table does not store the keys: the caller
 * compares those of the few entries in a bucket.
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
/* The entries need not be removed first. */
void index_free(struct index *x);

void index_entry_init(struct index_entry *e);
/* Inserts e under that key; an entry that is in the table already is moved. If
 * there is no memory for more buckets, the existing ones become longer. */
void index_put(struct index *x, struct index_entry *e, struct slice key);
/* Harmless if e is not in the table. */
void index_remove(struct index *x, struct index_entry *e);

/* A list of all entries under that key, and of a few others. */
struct list *index_bucket(struct index *x, struct slice key);

#endif

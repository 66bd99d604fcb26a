/* SPDX-License-Identifier: MIT */
/*
 * A hash table.
 *
 * Invariant: there are at most as many entries as buckets, unless there was no
 * memory, or there are so few that one bucket is enough.
 */
#include "base/index.h"

#include <stdbool.h>
#include <stdlib.h>

#define FEW 8

void index_init(struct index *x)
{
    *x = (struct index){0};
    list_init(&x->only);
}

void index_free(struct index *x)
{
    free(x->buckets);
    index_init(x);
}

/* FNV-1a. */
static uint64_t hash_of(struct slice key)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < key.len; i++)
        hash = (hash ^ (unsigned char)key.data[i]) * UINT64_C(1099511628211);
    return hash;
}

static struct list *bucket_of(struct index *x, uint64_t hash)
{
    return x->size ? &x->buckets[hash & (x->size - 1)] : &x->only;
}

static void move_all(struct index *x, struct list *from)
{
    struct list *node;
    while ((node = list_pop(from))) {
        uint64_t hash = list_entry(node, struct index_entry, node)->hash;
        list_append(bucket_of(x, hash), node);
    }
}

static void grow(struct index *x)
{
    size_t size = x->size ? 2 * x->size : 2 * FEW, before = x->size;
    struct list *old = x->buckets, *buckets = calloc(size, sizeof(*buckets));
    if (!buckets)
        return;
    for (size_t i = 0; i < size; i++)
        list_init(&buckets[i]);
    x->buckets = buckets;
    x->size = size;
    move_all(x, &x->only);
    for (size_t i = 0; i < before; i++)
        move_all(x, &old[i]);
    free(old);
}

void index_entry_init(struct index_entry *e)
{
    list_init(&e->node);
}

void index_put(struct index *x, struct index_entry *e, struct slice key)
{
    index_remove(x, e);
    x->count++;
    if (x->count > (x->size ? x->size : FEW))
        grow(x);
    e->hash = hash_of(key);
    list_append(bucket_of(x, e->hash), &e->node);
}

void index_remove(struct index *x, struct index_entry *e)
{
    if (list_empty(&e->node))
        return;
    list_remove(&e->node);
    if (--x->count == 0)
        index_free(x);
}

struct list *index_bucket(struct index *x, struct slice key)
{
    return bucket_of(x, hash_of(key));
}

/* SPDX-License-Identifier: MIT */
/*
 * The locks that list has found, by name.
 *
 * Invariant: memory grows with the number of locks, not of keys.
 */
#include "cli/lock_list.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 64

static uint64_t mix(uint64_t hash, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) /* FNV-1a */
        hash = (hash ^ (unsigned char)bytes[i]) * UINT64_C(1099511628211);
    return hash;
}

/* The slot of the entry in the hash table or, if it is not there, the free slot
 * for it. */
static size_t slot_of(const struct lock_list *list, const char *name,
    size_t length, const char *value)
{
    uint64_t hash = mix(UINT64_C(14695981039346656037), name, length);
    size_t at = (size_t)mix(hash, value, strlen(value)) & (list->slots - 1);

    for (; list->table[at] != 0; at = (at + 1) & (list->slots - 1)) {
        const struct lock_entry *f = list->list[list->table[at] - 1];
        if (f->name_length == length && memcmp(f->name, name, length) == 0 &&
            strcmp(f->value, value) == 0)
            break;
    }
    return at;
}

static void free_one(struct lock_entry *f)
{
    free(f->name);
    free(f->value);
    free(f);
}

static bool entries_reserve(struct lock_list *list)
{
    size_t room = list->room == 0 ? FIRST_ROOM : 2 * list->room;

    if (list->count < list->room)
        return true;
    struct lock_entry **more =
        realloc(list->list, room * sizeof(struct lock_entry *));
    if (!more)
        return false;
    list->list = more;
    size_t *table = calloc(2 * room, sizeof(size_t));
    if (!table)
        return false;
    free(list->table);
    list->table = table;
    list->room = room;
    list->slots = 2 * room;
    for (size_t i = 0; i < list->count; i++) {
        const struct lock_entry *f = list->list[i];
        list->table[slot_of(list, f->name, f->name_length, f->value)] = i + 1;
    }
    return true;
}

static struct lock_entry *make_entry(
    const char *name, size_t length, const char *value)
{
    struct lock_entry *f = calloc(1, sizeof(*f));

    if (!f)
        return NULL;
    f->name = malloc(length + 1);
    f->value = strdup(value);
    if (!f->name || !f->value) {
        free_one(f);
        return NULL;
    }
    memcpy(f->name, name, length);
    f->name[length] = '\0';
    f->name_length = length;
    for (size_t i = 0; i < NXL_SERVERS_MAX; i++)
        f->left_ms[i] = LOCK_NOWHERE;
    return f;
}

bool lock_list_add(struct lock_list *list, const char *name, size_t length,
    const char *value, size_t server, int64_t left_ms)
{
    if (!entries_reserve(list))
        return false;
    size_t at = slot_of(list, name, length, value);
    if (list->table[at] == 0) {
        struct lock_entry *f = make_entry(name, length, value);
        if (!f)
            return false;
        list->list[list->count++] = f;
        list->table[at] = list->count;
    }
    list->list[list->table[at] - 1]->left_ms[server] = left_ms;
    return true;
}

static int by_name(const void *a, const void *b)
{
    const struct lock_entry *one = *(struct lock_entry *const *)a;
    const struct lock_entry *two = *(struct lock_entry *const *)b;
    size_t shorter = one->name_length < two->name_length ? one->name_length
                                                         : two->name_length;
    int order = memcmp(one->name, two->name, shorter);

    if (order != 0)
        return order;
    if (one->name_length != two->name_length)
        return one->name_length < two->name_length ? -1 : 1;
    return strcmp(one->value, two->value);
}

void lock_list_sort(struct lock_list *list)
{
    if (list->count > 1)
        qsort(list->list, list->count, sizeof(struct lock_entry *), by_name);
}

void lock_list_free(struct lock_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free_one(list->list[i]);
    free(list->list);
    free(list->table);
    memset(list, 0, sizeof(*list));
}

/* SPDX-License-Identifier: MIT */
/*
 * The locks that list has found, by name.
 *
 * Invariant: memory grows with the number of locks, not of keys.
 */
#include "cli/look/lock_list.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 64

static void free_one(struct lock_entry *f)
{
    free(f->name);
    free(f->value);
    free(f);
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

struct lock_entry *lock_list_add(struct lock_list *list, const char *name,
    size_t length, const char *value, size_t server, int64_t left_ms)
{
    if (list->count == list->room) {
        size_t room = list->room == 0 ? FIRST_ROOM : 2 * list->room;
        struct lock_entry **more =
            realloc(list->list, room * sizeof(struct lock_entry *));
        if (!more)
            return NULL;
        list->list = more;
        list->room = room;
    }
    struct lock_entry *f = make_entry(name, length, value);
    if (!f)
        return NULL;
    f->left_ms[server] = left_ms;
    list->list[list->count++] = f;
    return f;
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
    /* Several holders come and go, and each server may show another one. */
    if (one->share.holders > 0 && two->share.holders > 0)
        return 0;
    return strcmp(one->value, two->value);
}

void lock_list_sort(struct lock_list *list)
{
    size_t kept = 0;

    if (list->count > 1)
        qsort(list->list, list->count, sizeof(struct lock_entry *), by_name);
    for (size_t i = 0; i < list->count; i++) {
        struct lock_entry *f = list->list[i];
        if (kept == 0 || by_name(&list->list[kept - 1], &f) != 0) {
            list->list[kept++] = f;
            continue;
        }
        for (size_t k = 0; k < NXL_SERVERS_MAX; k++) {
            if (f->left_ms[k] != LOCK_NOWHERE)
                list->list[kept - 1]->left_ms[k] = f->left_ms[k];
        }
        free_one(f);
    }
    list->count = kept;
}

void lock_list_free(struct lock_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free_one(list->list[i]);
    free(list->list);
    memset(list, 0, sizeof(*list));
}

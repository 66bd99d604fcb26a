/* SPDX-License-Identifier: MIT */
/* Intrusive doubly linked ring. A node that is in no list points to itself,
 * so that removing it twice is harmless. */
#ifndef NXLOCK_BASE_LIST_H
#define NXLOCK_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *prev, *next;
};

#define LIST_INIT(name)                                                        \
    {                                                                          \
        &(name), &(name)                                                       \
    }
#define list_entry(node, type, member)                                         \
    ((type *)(void *)((char *)(node)-offsetof(type, member)))

static inline void list_init(struct list *node)
{
    node->prev = node->next = node;
}

static inline bool list_empty(const struct list *node)
{
    return node->next == node;
}

static inline void list_remove(struct list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    list_init(node);
}

static inline void list_append(struct list *head, struct list *node)
{
    node->prev = head->prev;
    node->next = head;
    head->prev->next = node;
    head->prev = node;
}

/* Takes the first node out; NULL when the list is empty. */
static inline struct list *list_pop(struct list *head)
{
    if (list_empty(head))
        return NULL;
    struct list *node = head->next;
    list_remove(node);
    return node;
}

#endif

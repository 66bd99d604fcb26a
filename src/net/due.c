/* SPDX-License-Identifier: MIT */
/* The cleanups at a server that are due. */
#include "net/due.h"

#include "base/deadline.h"

/* Finds the earliest times of the list. A server that hangs may leave many
 * cleanups, so the list is searched only after one has changed, not in every
 * turn. */
static void find_due_times(struct server *s)
{
    if (s->due_known)
        return;
    s->due_known = true;
    s->due_next = s->due_over = NEVER;
    for (struct list *n = s->due.next; n != &s->due; n = n->next) {
        const struct cleaner *k = list_entry(n, struct cleaner, due);
        s->due_next = earlier(s->due_next, k->cleanup.next_try);
        s->due_over = earlier(s->due_over, k->cleanup.until);
    }
}

void due_over(struct server *s, struct cleaner *k)
{
    s->given_up += k->cleanup.state == CLEANUP_EXPIRED;
    cleaner_free(k);
}

/* An expired cleanup must not cause further turns. None of those in this list
 * has a slot on the connection, so they can be freed. */
void due_expire(struct server *s, uint64_t now)
{
    find_due_times(s);
    if (now < s->due_over)
        return;
    s->due_known = false;
    struct list *node = s->due.next, *next;
    for (; node != &s->due; node = next) {
        next = node->next;
        struct cleaner *k = list_entry(node, struct cleaner, due);
        cleanup_tick(&k->cleanup, now);
        if (cleanup_over(&k->cleanup))
            due_over(s, k);
    }
}

void due_push(struct server *s, uint64_t now)
{
    find_due_times(s);
    if (now < s->due_next || s->conn.blocked)
        return;
    s->due_known = false;
    struct list *node = s->due.next, *next;
    for (; node != &s->due; node = next) {
        next = node->next;
        struct cleaner *k = list_entry(node, struct cleaner, due);
        if (k->cleanup.next_try <= now && !s->dialect.in_transaction)
            cleaner_send(k, &s->conn, &s->dialect, &s->facts, now);
    }
}

uint64_t due_at(struct server *s)
{
    find_due_times(s);
    return s->due_next;
}

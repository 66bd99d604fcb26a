/* SPDX-License-Identifier: MIT */
/* Counts the handles of a client that hold a lock. */
#include "lock/held_here.h"

#include "base/deadline.h"
#include "lock/handle.h"

/* Without the client's prefix. */
static struct slice name_of(const struct nxl_lock *lock)
{
    struct slice key = lock->name.key;
    size_t prefix = lock->client->prefix.len;
    return (struct slice){key.data + prefix, key.len - prefix};
}

/* Does the program hold it? A member counts once all are held. */
static bool is_held(const struct nxl_lock *lock, uint64_t now)
{
    if (lock->group && (lock_is_front(lock) ||
                           !lease_held(&lock->group->front->life.lease, now)))
        return false;
    return lease_held(&lock->life.lease, now) && !lock->life.unseen;
}

struct held_here held_here(
    const struct nxl_client *client, struct slice name, uint64_t now)
{
    struct held_here here = {.handles = 0};
    const struct list *all = &client->locks;
    for (struct list *node = all->next; node != all; node = node->next) {
        const struct nxl_lock *lock = list_entry(node, struct nxl_lock, node);
        const struct lease *lease = &lock->life.lease;
        if (!is_held(lock, now) || !slice_equal(name_of(lock), name))
            continue;
        here.handles++;
        here.alone |= !token_has_share(lock_token(lock));
        here.held_ns = later(here.held_ns, elapsed(lease->granted_at, now));
    }
    return here;
}

struct held_here held_by_others_here(const struct nxl_lock *lock, uint64_t now)
{
    return held_here(lock->client, name_of(lock), now);
}

/* SPDX-License-Identifier: MIT */
/*
 * Compares the histories of the data behind an address.
 *
 * Invariant: only a primary's own words make it the former primary, and only
 * the process that was that primary can say that it has handed over.
 */
#include "core/lineage.h"

#include <string.h>

#include "model/guard.h"

static void keep(char *to, const char *id)
{
    size_t len = strnlen(id, LINEAGE_ID - 1);
    memset(to, 0, LINEAGE_ID);
    memcpy(to, id, len);
}

static bool known(const char *id)
{
    return id && id[0];
}

/* Both are known, and they are the same. */
static bool same(const char *a, const char *b)
{
    return known(a) && known(b) && strcmp(a, b) == 0;
}

/* Both are known, and they differ. */
static bool differ(const char *a, const char *b)
{
    return known(a) && known(b) && strcmp(a, b) != 0;
}

bool server_is_replica(const struct server_info *info)
{
    return strcmp(info->role, "slave") == 0 ||
           strcmp(info->role, "replica") == 0;
}

bool server_has_second_history(const struct server_info *info)
{
    return known(info->replid2) && guarded(GUARD_SECOND_HISTORY);
}

/* Has this replica been the primary that was known, and is all that it had
 * written a part of its new primary's history? A write of its own that is not
 * would have cost it a full synchronization, after which it has no second
 * history. */
static bool cedes(const struct lineage *l, const struct server_info *info)
{
    bool itself = same(l->primary, info->run_id) || !guarded(GUARD_COORDINATED);
    return itself && same(l->replid, info->replid2) && known(info->replid);
}

static bool was_coordinated(
    const struct lineage *l, const struct server_info *info)
{
    return same(l->ceded_to, info->replid) && same(l->replid, info->replid2);
}

static enum lineage_news compare(
    const struct lineage *l, const struct server_info *info)
{
    if (server_is_replica(info))
        return LINEAGE_REPLICA;
    if (was_coordinated(l, info))
        return LINEAGE_COORDINATED;
    if (l->replica)
        return LINEAGE_PROMOTED;
    if (differ(l->run_id, info->run_id))
        return LINEAGE_REPLACED;
    bool second = server_has_second_history(info);
    if (differ(l->replid, info->replid) && second)
        return LINEAGE_UNSEEN;
    if (known(l->run_id) || known(l->replid))
        return LINEAGE_SAME;
    return second ? LINEAGE_FIRST_OLD : LINEAGE_FIRST;
}

bool lineage_goes_on(
    const char *replid, int replicas, const struct server_info *info)
{
    if (info->replicas < replicas && guarded(GUARD_REPLICAS))
        return false;
    if (!guarded(GUARD_SAME_HISTORY))
        return true;
    return strcmp(info->role, "master") == 0 && !differ(replid, info->replid) &&
           known(replid) == known(info->replid);
}

int64_t lineage_clock_lead(
    const struct lineage *l, const struct server_info *info)
{
    if (!l->clock_low_ns || !info->clock_high_ns)
        return INT64_MAX;
    return info->clock_high_ns - l->clock_low_ns;
}

void lineage_hear_former(struct lineage *l, const struct server_info *info)
{
    if (!server_is_replica(info) || !cedes(l, info))
        return;
    keep(l->ceded_to, info->replid);
    l->clock_low_ns = info->clock_low_ns;
}

void lineage_forget_former(struct lineage *l)
{
    l->ceded_to[0] = '\0';
}

enum lineage_news lineage_update(
    struct lineage *l, const struct server_info *info)
{
    enum lineage_news news = compare(l, info);
    if (known(info->run_id))
        keep(l->run_id, info->run_id);
    l->replica = news == LINEAGE_REPLICA;
    if (!l->replica) {
        if (known(info->run_id))
            keep(l->primary, info->run_id);
        if (known(info->replid))
            keep(l->replid, info->replid);
        l->ceded_to[0] = '\0';
    } else {
        lineage_hear_former(l, info);
    }
    return news;
}

/* SPDX-License-Identifier: MIT */
/*
 * Counts what the Sentinels of a service say.
 *
 * Invariant: of several views of one Sentinel only the latest counts.
 */
#include "core/confirm.h"

#include <string.h>

#include "base/deadline.h"

static bool has_answered(const struct sentinel_view *v)
{
    return v->id[0] != '\0';
}

bool confirm_is_repeated(const struct sentinel_views *c, unsigned i)
{
    const struct sentinel_view *v = &c->views[i];
    if (!has_answered(v) || !guarded(GUARD_ONE_SENTINEL))
        return false;
    for (unsigned j = 0; j < c->count; j++) {
        const struct sentinel_view *other = &c->views[j];
        if (j == i || strcmp(v->id, other->id) != 0)
            continue;
        if (other->asked_at > v->asked_at ||
            (other->asked_at == v->asked_at && j < i))
            return true;
    }
    return false;
}

static bool counts(const struct sentinel_views *c, unsigned i)
{
    return has_answered(&c->views[i]) && !confirm_is_repeated(c, i);
}

static bool names(
    const struct sentinel_views *c, unsigned i, const char *host, uint16_t port)
{
    const struct sentinel_view *v = &c->views[i];
    return counts(c, i) && v->asked_at != 0 && v->port == port &&
           strcmp(v->host, host) == 0;
}

unsigned confirm_needed(const struct sentinel_views *c)
{
    unsigned all = c->listed, answered = confirm_answered(c);
    all = answered > all ? answered : all;
    for (unsigned i = 0; guarded(GUARD_ALL_SENTINELS) && i < c->count; i++)
        if (has_answered(&c->views[i]) && c->views[i].others + 1 > all)
            all = c->views[i].others + 1;
    return all / 2 + 1;
}

unsigned confirm_answered(const struct sentinel_views *c)
{
    unsigned answered = 0;
    for (unsigned i = 0; i < c->count; i++)
        answered += counts(c, i);
    return answered;
}

unsigned confirm_count(const struct sentinel_views *c, const char *host,
    uint16_t port, uint64_t asked_from)
{
    unsigned count = 0;
    for (unsigned i = 0; i < c->count; i++)
        count += names(c, i, host, port) && c->views[i].asked_at >= asked_from;
    return count;
}

uint64_t confirm_current_from(const struct sentinel_views *c)
{
    uint64_t last = 0;
    for (unsigned i = 0; i < c->count; i++)
        last = later(last, c->views[i].asked_at);
    return deadline_before(last, ms_to_ns(CONFIRM_VALID_MS));
}

bool confirm_is_current(const struct sentinel_view *v, uint64_t current_from)
{
    return v->asked_at != 0 && v->asked_at >= current_from;
}

unsigned confirm_count_current(
    const struct sentinel_views *c, const char *host, uint16_t port)
{
    return confirm_count(c, host, port, confirm_current_from(c));
}

/* Puts value into the sorted list of count values, the smallest first. */
static void insert(uint64_t *list, unsigned count, uint64_t value)
{
    while (count > 0 && list[count - 1] > value) {
        list[count] = list[count - 1];
        count--;
    }
    list[count] = value;
}

/* When the whole majority named the address of v. */
static uint64_t latest_majority(const struct sentinel_views *c,
    const struct sentinel_view *v, unsigned needed)
{
    uint64_t asked[CONFIRM_SENTINELS] = {0};
    unsigned count = 0;
    for (unsigned i = 0; i < c->count; i++)
        if (names(c, i, v->host, v->port))
            insert(asked, count++, c->views[i].asked_at);
    return asked[count - needed];
}

/* Since when a majority has: one that was not asked lately may have named
 * another one in between. */
static uint64_t named_since(const struct sentinel_views *c,
    const struct sentinel_view *v, unsigned needed, uint64_t asked_at)
{
    uint64_t since[CONFIRM_SENTINELS] = {0};
    unsigned count = 0;
    for (unsigned i = 0; i < c->count; i++)
        if (names(c, i, v->host, v->port) && c->views[i].asked_at >= asked_at)
            insert(since, count++, c->views[i].since);
    return since[needed - 1];
}

bool confirm_primary(
    const struct sentinel_views *c, struct sentinel_view *named)
{
    unsigned needed = confirm_needed(c);
    for (unsigned i = 0; i < c->count; i++) {
        const struct sentinel_view *v = &c->views[i];
        if (!counts(c, i) || v->asked_at == 0 ||
            confirm_count(c, v->host, v->port, 0) < needed)
            continue;
        *named = *v;
        named->asked_at = latest_majority(c, v, needed);
        named->since = named_since(c, v, needed, named->asked_at);
        /* Otherwise they never named it at one and the same time. */
        return named->since <= named->asked_at;
    }
    return false;
}

void confirm_take(struct sentinel_view *v, const struct sentinel_view *seen)
{
    bool same = strcmp(v->id, seen->id) == 0 && v->port == seen->port &&
                strcmp(v->host, seen->host) == 0;
    uint64_t since = same && confirm_covers(v->asked_at, seen->asked_at)
                         ? earlier(v->since, seen->since)
                         : seen->since;
    *v = *seen;
    v->since = since;
}

uint64_t confirm_since(uint64_t heard_at, uint64_t for_ns)
{
    return later(deadline_before(heard_at, for_ns), 1);
}

bool confirm_covers(uint64_t confirmed_at, uint64_t sent_at)
{
    return confirmed_at != 0 &&
           sent_at <= deadline_after_ms(confirmed_at, CONFIRM_VALID_MS);
}

bool confirm_is_old(uint64_t confirmed_at, uint64_t now)
{
    return !confirm_covers(
        confirmed_at, deadline_after_ms(now, CONFIRM_VALID_MS / 2));
}

/* SPDX-License-Identifier: MIT */
/*
 * Keeps: no number that a server tells can make its vote come earlier than
 * its process is old; a time that cannot be told is not guessed.
 */
#include "core/standing.h"

#include "base/deadline.h"
#include "base/guard.h"
#include "base/slice.h"
#include "core/lease.h"

/* The longest lease and its drift, in whole seconds, rounded up. */
static uint64_t needed_s(const struct standing_terms *terms)
{
    uint64_t ns = ms_to_ns(terms->max_ttl_ms) +
                  lease_drift_ns(terms->max_ttl_ms, terms->drift_ppm);
    return (ns + NS_PER_S - 1) / NS_PER_S;
}

/* uptime_in_seconds is a difference of two clocks that were cut to seconds:
 * one less has passed for certain. */
static uint64_t certain_age_s(const struct told *told)
{
    return told->uptime_s > 0 ? (uint64_t)told->uptime_s - 1 : 0;
}

static void put_off(
    struct standing *s, uint64_t votes_at, uint64_t since, bool changed)
{
    if (votes_at <= s->votes_at || !guarded(GUARD_RESTARTS))
        return;
    s->votes_at = votes_at;
    s->since = since;
    s->changed = changed;
}

static void quarantine(struct standing *s, const struct told *told,
    const struct standing_terms *terms, bool changed, uint64_t now)
{
    uint64_t needed = needed_s(terms), age = certain_age_s(told);
    /* Seen so before: its age is counted from then. */
    if (told->set_back && s->set_back && told->run_id[0] && !changed)
        return;
    if (changed)
        put_off(s, deadline_after(now, needed * NS_PER_S), now, true);
    else if (told->uptime_s >= 0 && age < needed)
        put_off(s, deadline_after(now, (needed - age) * NS_PER_S),
            deadline_left(now, age * NS_PER_S), false);
}

static bool is(const char *text, const char *what)
{
    return slice_equal(slice_of(text), slice_of(what));
}

static enum standing_bar bar_of(
    const struct told *told, const struct standing_terms *terms, bool twin)
{
    if (twin)
        return STANDING_TWIN;
    if (is(told->role, "slave") || is(told->role, "replica"))
        return STANDING_REPLICA;
    if (terms->durable && told->no_aof)
        return STANDING_FORGETS;
    if (terms->guard && (told->refused || told->uptime_s < 0))
        return STANDING_UNTOLD;
    return STANDING_FREE;
}

void standing_judge(struct standing *s, const struct told *told,
    const struct standing_terms *terms, bool twin, uint64_t now)
{
    bool changed = told->run_id[0] && s->run_id[0] &&
                   !is(told->run_id, s->run_id);
    /* A replica's data are another server's: what it had granted is gone. */
    bool was_replica = s->bar == STANDING_REPLICA;
    if (told->run_id[0]) {
        struct slice id = slice_of(told->run_id);
        memset(s->run_id, 0, sizeof s->run_id);
        memcpy(s->run_id, id.data,
            id.len < STANDING_ID ? id.len : STANDING_ID - 1);
    }
    s->bar = bar_of(told, terms, twin);
    if (was_replica && s->bar != STANDING_REPLICA && terms->guard)
        quarantine(s, told, terms, true, now);
    else if (terms->guard && !terms->durable)
        quarantine(s, told, terms, changed, now);
    s->set_back = told->set_back;
}

bool standing_votes(const struct standing *s, uint64_t now)
{
    return s->bar == STANDING_FREE && now >= s->votes_at;
}

enum fault standing_fault(const struct standing *s, uint64_t now)
{
    switch (s->bar) {
    case STANDING_FREE:
        break;
    case STANDING_UNTOLD:
        return FAULT_UNTOLD;
    case STANDING_REPLICA:
        return FAULT_ELSEWHERE;
    case STANDING_FORGETS:
        return FAULT_FORGETS;
    case STANDING_TWIN:
        return FAULT_SETUP;
    }
    return now < s->votes_at ? FAULT_RESTARTED : FAULT_NONE;
}

bool standing_proves(const struct standing *s)
{
    return s->bar == STANDING_FREE;
}

static unsigned long long seconds(uint64_t from, uint64_t to)
{
    return deadline_left(to, from) / NS_PER_S;
}

void standing_words(const struct standing *s, uint64_t now, struct text *text)
{
    switch (s->bar) {
    case STANDING_FREE:
        if (now >= s->votes_at)
            return;
        text_addf(text,
            s->changed    ? "another process than before since %llu s"
            : s->set_back ? "its clock was set back since it started, so that "
                            "its age is unknown and counted from %llu s ago"
                          : "started %llu s ago",
            seconds(s->since, now));
        text_addf(text,
            " and may have forgotten locks; it votes again in %llu s",
            seconds(now, s->votes_at) + 1);
        break;
    case STANDING_UNTOLD:
        text_add(text, "INFO is refused or does not tell its uptime, so a "
                       "restart would go unseen: no vote (ACL: +info)");
        break;
    case STANDING_REPLICA:
        text_add(text, "a replica has no vote");
        break;
    case STANDING_FORGETS:
        text_add(text, "durable=1, but it keeps no AOF (aof_enabled:0): no "
                       "vote");
        break;
    case STANDING_TWIN:
        text_add(text, "the same server (run_id)");
        break;
    }
}

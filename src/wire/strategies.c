/* SPDX-License-Identifier: MIT */
/*
 * The table of all strategies. Invariant: no strategy deletes a key without
 * comparing its value, or sends a change before the reply to the previous step
 * has arrived.
 */
#include "wire/strategies.h"

static const struct strategy set = {.name = "SET NX PX",
    .fallback = ON_UNSUPPORTED,
    .encode = native_set,
    .reply = native_acquired};
static const struct strategy set_by_script = {.name = "SETNX script",
    .fallback = ON_REFUSED,
    .encode = scripted_encode,
    .reply = native_acquired};

static const struct strategy extend_by_script = {.name = "scripts",
    .fallback = ON_REFUSED,
    .encode = scripted_encode,
    .reply = scripted_extended};

static const struct strategy release_by_script = {.name = "scripts",
    .fallback = ON_REFUSED,
    .is_script = true,
    .encode = scripted_encode,
    .reply = scripted_released};

static const struct strategy keep_by_script = {.name = "scripts",
    .fallback = ON_REFUSED,
    .encode = scripted_encode,
    .reply = scripted_capped};

static const struct strategy inspect_by_script = {.name = "scripts",
    .fallback = ON_REFUSED,
    .encode = scripted_encode,
    .reply = scripted_inspected};
static const struct strategy getrange = {.name = "GETRANGE",
    .fallback = ON_REFUSED,
    .encode = native_read,
    .reply = native_inspected};

/* EXTEND, RELEASE, CAP_TTL */
static const struct strategy under_watch = {.name = "WATCH",
    .fallback = ON_REFUSED,
    .watched = &watched_token,
    .encode = watched_encode,
    .reply = watched_reply};

/* First the strategies that store the token, then those with ttl_is_in_value,
 * and last those without_watch: strategies_range() relies on this order. */
static const struct strategy *const acquire[] = {
    &set, &set_by_script, &timestamps_acquire, &timestamps_acquire_unwatched};
static const struct strategy *const extend[] = {&extend_by_script, &under_watch,
    &timestamps_change, &timestamps_change_unwatched};
static const struct strategy *const release[] = {&release_by_script,
    &under_watch, &timestamps_change, &timestamps_change_unwatched};
static const struct strategy *const inspect[] = {
    &inspect_by_script, &getrange, &timestamps_inspect};
/* For a release before min_hold_ms. Not with ttl_is_in_value: the end in such a
 * value cannot be moved to an earlier time. */
static const struct strategy *const keep[] = {&keep_by_script, &under_watch};

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static const struct {
    const struct strategy *const *row;
    unsigned char count;
    unsigned char with_end;  /* the first whose ttl_is_in_value, or count */
    unsigned char unwatched; /* the first without_watch, or count */
} tables[VERB_KINDS] = {
    [VERB_ACQUIRE] = {acquire, ROWS(acquire), 2, 3},
    [VERB_EXTEND] = {extend, ROWS(extend), 2, 3},
    [VERB_RELEASE] = {release, ROWS(release), 2, 3},
    [VERB_INSPECT] = {inspect, ROWS(inspect), 2, 3},
    [VERB_CAP_TTL] = {keep, ROWS(keep), 2, 2},
};

const struct strategy *strategies_at(enum verb_kind kind, unsigned i)
{
    return i < tables[kind].count ? tables[kind].row[i] : NULL;
}

const struct strategy *strategies_for(const struct exchange *x)
{
    bool acquires = x->verb->kind == VERB_ACQUIRE;

    if (x->verb->kind == VERB_QUERY)
        return &asked_strategy;
    if (x->verb->kind == VERB_SUBSCRIBE)
        return &subscribed_strategy;
    if (x->verb->kind == VERB_JOIN || x->verb->kind == VERB_STAY)
        return &line_strategy;
    if (x->verb->kind >= VERB_BEGIN)
        return &once_strategy;
    if (rights_unverified(x))
        return &rights_strategy;
    if (acquires && x->phase == PHASE_CHECK_VALUE)
        return &timestamps_takeover;
    if (x->verb->kind == VERB_RAISE || (acquires && x->verb->counter.len > 0))
        return &fenced_strategy;
    return strategies_at(x->verb->kind, x->at);
}

struct strategies_range strategies_range(
    const struct dialect *dialect, enum verb_kind kind, bool with_end)
{
    bool in_values = dialect->ttl_in_values;
    bool starts = kind == VERB_ACQUIRE || kind == VERB_INSPECT;
    struct strategies_range range = {0, tables[kind].with_end,
        in_values ? tables[kind].count : tables[kind].unwatched};

    if (kind == VERB_CAP_TTL)
        ;
    else if (with_end || (starts && in_values))
        range.first = range.with_end;
    else if (kind == VERB_EXTEND) /* the value is known to be the token */
        range.end = range.with_end;
    else if (kind == VERB_RELEASE) /* the value may have either form */
        range.end = tables[kind].unwatched;
    return range;
}

bool strategies_weak(const struct dialect *dialect)
{
    return strategies_at(VERB_ACQUIRE, dialect->at[VERB_ACQUIRE])->weak;
}

bool strategies_need_clock(const struct dialect *dialect)
{
    return dialect->ttl_in_values || strategies_weak(dialect);
}

/* Is WATCH known to be missing? An acquire does not show it, the other verbs
 * do. */
static bool watch_is_missing(const struct dialect *dialect)
{
    const unsigned char *at = dialect->at_with_end;

    return dialect->no_watch ||
           strategies_at(VERB_EXTEND, at[VERB_EXTEND])->without_watch ||
           strategies_at(VERB_RELEASE, at[VERB_RELEASE])->without_watch;
}

void strategies_describe(const struct dialect *dialect, struct text *text)
{
    const char *to_extend = extend[dialect->at[VERB_EXTEND]]->name;
    const char *to_release = release[dialect->at[VERB_RELEASE]]->name;

    /* A program that only inspects does not know yet how to release. */
    if (dialect->at[VERB_RELEASE] == 0 && dialect->at[VERB_INSPECT] > 0)
        to_release = to_extend = "scripts refused";

    const struct strategy *to_acquire = acquire[dialect->at[VERB_ACQUIRE]];
    if (dialect->ttl_in_values && !to_acquire->ttl_is_in_value)
        to_acquire = acquire[tables[VERB_ACQUIRE].with_end];
    if (to_acquire->ttl_is_in_value && watch_is_missing(dialect))
        to_acquire = acquire[tables[VERB_ACQUIRE].unwatched];
    text_add(text, to_acquire->name);
    if (to_acquire->ttl_is_in_value)
        return;
    text_addf(text, " + %s", to_release);
    if (strcmp(to_extend, to_release) != 0)
        text_addf(text, " + %s", to_extend);
}

bool strategies_line(
    const struct dialect *dialect, uint64_t now, struct text *why)
{
    bool refused =
        dialect->line_refused != FAULT_NONE && now <= dialect->line_again;

    if (strategies_need_clock(dialect))
        text_set(why, "the locks are timestamps");
    else if (refused && dialect->line_refused == FAULT_UNSUPPORTED)
        text_set(why, "the server cannot run the script of the line");
    else if (refused)
        text_set(why, "no permission to wait in line: see docs/acl.md");
    else
        return true;
    return false;
}

/* SPDX-License-Identifier: MIT */
/*
 * The table of all strategies. Invariant: no strategy deletes a key without
 * comparing its value, or sends a change before the reply to the previous step
 * has arrived.
 */
#include "wire/strategies.h"

static const struct strategy set = {.name = "SET NX PX",
    .form = {.is_set = true, .token = 2, .ttl = true},
    .fallback = ON_UNSUPPORTED,
    .encode = native_set,
    .reply = native_acquired};
static const struct strategy set_by_script = {.name = "SETNX script",
    .form = {.script = SCRIPT_ACQUIRE, .token = 4, .ttl = true},
    .is_as_text = true,
    .fallback = ON_REFUSED,
    .encode = scripted_encode,
    .reply = native_acquired};

/* Of one of several names: never without looking at the one before it. */
static const struct strategy set_after = {.name = "SET script",
    .counts_names = true,
    .encode = scripted_after,
    .reply = scripted_acquired_after};

static const struct strategy extend_by_script = {.name = "scripts",
    .form = {.script = SCRIPT_EXTEND, .token = 4, .ttl = true},
    .fallback = ON_REFUSED,
    .always_writes = true,
    .encode = scripted_encode,
    .reply = scripted_extended};

static const struct strategy release_by_script = {.name = "scripts",
    .form = {.script = SCRIPT_RELEASE, .token = 4},
    .fallback = ON_REFUSED,
    .is_script = true,
    .encode = scripted_encode,
    .reply = scripted_released};

static const struct strategy cap_ttl_by_script = {.name = "scripts",
    .form = {.script = SCRIPT_CAP_TTL, .token = 4, .ttl = true},
    .fallback = ON_REFUSED,
    .encode = scripted_encode,
    .reply = scripted_done_or_not_mine};

static const struct strategy inspect_by_script = {.name = "scripts",
    .form = {.script = SCRIPT_INSPECT},
    .fallback = ON_REFUSED,
    .lists = true,
    .encode = scripted_inspect,
    .reply = scripted_inspected};
static const struct strategy getrange = {.name = "GETRANGE",
    .fallback = ON_REFUSED_OR_NO_STRING,
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
/* CAP_TTL, for a release before min_hold_ms. Not with ttl_is_in_value: the end
 * in such a value cannot be moved to an earlier time. */
static const struct strategy *const cap_ttl[] = {
    &cap_ttl_by_script, &under_watch};

static const struct strategy *const raise_only[] = {&fenced_strategy};
static const struct strategy *const query_only[] = {&query_strategy};
static const struct strategy *const line_only[] = {&line_strategy};
static const struct strategy *const subscribe_only[] = {&subscribed_strategy};
static const struct strategy *const begin_only[] = {&once_begin_strategy};
static const struct strategy *const tell_only[] = {&once_tell_strategy};
static const struct strategy *const undo_begin_only[] = {
    &once_undo_begin_strategy};
static const struct strategy *const forget_only[] = {&once_forget_strategy};

/* What is there for a verb; one row each. */
static const struct ways {
    const struct strategy *const *row;
    unsigned char count;
    unsigned char with_end;  /* the first whose ttl_is_in_value, or count */
    unsigned char unwatched; /* the first without_watch, or count */
    /* What is known of the value before it is read. */
    enum {
        VALUE_OF_SCHEME, /* nothing: what the scheme says is tried first */
        VALUE_IS_TOKEN,
        VALUE_OF_EITHER_FORM
    } value : 8;
    /* For a token that shares its lock; NULL: the first one, a script that
     * reads the kind of the lock from the token. */
    const struct strategy *shared;
    bool takes_over; /* it replaces a value whose end is past */
    /* If all are refused, it is checked before the next acquire whether a lock
     * could be released at all. */
    bool vital;
} ways[VERB_KINDS] = {
#define WAYS(table, end, bare)                                                 \
    .row = (table), .count = sizeof(table) / sizeof((table)[0]),               \
    .with_end = (end), .unwatched = (bare)
    [VERB_ACQUIRE] = {WAYS(acquire, 2, 3), .shared = &shared_take,
        .takes_over = true},
    [VERB_EXTEND] = {WAYS(extend, 2, 3), .value = VALUE_IS_TOKEN,
        .vital = true},
    [VERB_RELEASE] = {WAYS(release, 2, 3), .value = VALUE_OF_EITHER_FORM,
        .vital = true},
    [VERB_INSPECT] = {WAYS(inspect, 2, 3), .shared = &shared_inspect},
    [VERB_CAP_TTL] = {WAYS(cap_ttl, 2, 2)},
    [VERB_RAISE] = {WAYS(raise_only, 1, 1)},
    [VERB_QUERY] = {WAYS(query_only, 1, 1)},
    [VERB_JOIN] = {WAYS(line_only, 1, 1)},
    [VERB_STAY] = {WAYS(line_only, 1, 1)},
    [VERB_SUBSCRIBE] = {WAYS(subscribe_only, 1, 1)},
    [VERB_BEGIN] = {WAYS(begin_only, 1, 1)},
    [VERB_READ_RECORD] = {WAYS(begin_only, 1, 1)},
    [VERB_TELL] = {WAYS(tell_only, 1, 1)},
    [VERB_FORGET] = {WAYS(forget_only, 1, 1)},
    [VERB_UNDO_BEGIN] = {WAYS(undo_begin_only, 1, 1)},
};

const struct strategy *strategies_at(enum verb_kind kind, unsigned i)
{
    return i < ways[kind].count ? ways[kind].row[i] : NULL;
}

bool strategies_may_replace(enum verb_kind kind)
{
    return ways[kind].takes_over;
}

bool strategies_are_vital(enum verb_kind kind)
{
    return ways[kind].vital;
}

const struct strategy *strategies_for(const struct exchange *x)
{
    enum verb_kind kind = x->verb->kind;

    if (x->shared)
        return ways[kind].shared ? ways[kind].shared : strategies_at(kind, 0);
    if (rights_unverified(x))
        return &rights_strategy;
    if (ways[kind].takes_over) {
        if (x->phase == EXCHANGE_PHASE_CHECK_VALUE)
            return &timestamps_takeover;
        if (x->verb->counter.len > 0)
            return &fenced_strategy;
        if (x->verb->after)
            return &set_after;
    }
    return strategies_at(kind, x->strategy_index);
}

struct strategies_range strategies_range(
    const struct dialect *dialect, enum verb_kind kind, bool with_end)
{
    const struct ways *w = &ways[kind];
    bool in_values = dialect->ttl_in_values;
    struct strategies_range range = {
        0, w->with_end, in_values ? w->count : w->unwatched};

    if (w->with_end == w->count) /* none for a value that contains its end */
        return range;
    if (with_end || (w->value == VALUE_OF_SCHEME && in_values))
        range.first = range.with_end;
    else if (w->value == VALUE_IS_TOKEN)
        range.end = range.with_end;
    else if (w->value == VALUE_OF_EITHER_FORM)
        range.end = w->unwatched;
    return range;
}

bool strategies_weak(const struct dialect *dialect)
{
    return strategies_at(VERB_ACQUIRE, dialect->preferred[VERB_ACQUIRE])->weak;
}

bool strategies_need_clock(const struct dialect *dialect)
{
    return dialect->ttl_in_values || strategies_weak(dialect);
}

/* Is WATCH known to be missing? An acquire does not show it, the other verbs
 * do. */
static bool watch_is_missing(const struct dialect *dialect)
{
    const unsigned char *at = dialect->preferred_with_value_end;

    return dialect->no_watch ||
           strategies_at(VERB_EXTEND, at[VERB_EXTEND])->without_watch ||
           strategies_at(VERB_RELEASE, at[VERB_RELEASE])->without_watch;
}

bool strategies_are_scripts(const struct dialect *dialect)
{
    return !strategies_weak(dialect) && dialect->preferred[VERB_RELEASE] == 0 &&
           dialect->preferred[VERB_INSPECT] == 0;
}

bool strategies_are_known(const struct dialect *dialect)
{
    return dialect->worked & (1U << VERB_ACQUIRE | 1U << VERB_BEGIN);
}

void strategies_describe(const struct dialect *dialect, struct text *text)
{
    const char *to_extend = extend[dialect->preferred[VERB_EXTEND]]->name;
    const char *to_release = release[dialect->preferred[VERB_RELEASE]]->name;

    /* A program that only inspects does not know yet how to release. */
    if (dialect->preferred[VERB_RELEASE] == 0 &&
        dialect->preferred[VERB_INSPECT] > 0)
        to_release = to_extend = "scripts refused";

    const struct strategy *to_acquire =
        acquire[dialect->preferred[VERB_ACQUIRE]];
    if (dialect->ttl_in_values && !to_acquire->ttl_is_in_value)
        to_acquire = acquire[ways[VERB_ACQUIRE].with_end];
    if (to_acquire->ttl_is_in_value && watch_is_missing(dialect))
        to_acquire = acquire[ways[VERB_ACQUIRE].unwatched];
    text_add(text, to_acquire->name);
    if (to_acquire->ttl_is_in_value)
        return;
    text_addf(text, " + %s", to_release);
    if (strcmp(to_extend, to_release) != 0)
        text_addf(text, " + %s", to_extend);
}

bool strategies_allow_line(
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

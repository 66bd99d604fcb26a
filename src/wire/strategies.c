/* SPDX-License-Identifier: MIT */
/*
 * The table of all strategies. Invariant: none of them deletes without
 * comparing, nor changes a key in a step whose predecessor's reply was not
 * seen.
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
static const struct strategy set_ifeq = {.name = "SET IFEQ",
    .fallback = ON_REFUSED,
    .encode = native_set_ifeq,
    .reply = native_extended};

static const struct strategy release_by_script = {.name = "scripts",
    .fallback = ON_REFUSED,
    .at_once = true,
    .encode = scripted_encode,
    .reply = scripted_released};
static const struct strategy delex = {.name = "DELEX",
    .fallback = ON_REFUSED,
    .at_once = true,
    .direct = true,
    .encode = native_delex,
    .reply = native_released};
static const struct strategy delifeq = {.name = "DELIFEQ",
    .fallback = ON_REFUSED,
    .at_once = true,
    .direct = true,
    .encode = native_delifeq,
    .reply = native_released};

static const struct strategy keep_by_script = {.name = "scripts",
    .fallback = ON_REFUSED,
    .encode = scripted_encode,
    .reply = scripted_released};
static const struct strategy keep_ifeq = {.name = "SET IFEQ",
    .fallback = ON_REFUSED,
    .encode = native_keep,
    .reply = native_kept};

static const struct strategy inspect_by_script = {.name = "scripts",
    .fallback = ON_REFUSED,
    .encode = scripted_encode,
    .reply = scripted_inspected};
static const struct strategy getrange = {.name = "GETRANGE",
    .fallback = ON_REFUSED,
    .encode = native_read,
    .reply = native_inspected};

/* EXTEND, RELEASE, KEEP */
static const struct strategy under_watch = {.name = "WATCH",
    .fallback = ON_REFUSED,
    .watched = &watched_token,
    .encode = watched_encode,
    .reply = watched_reply};

/* First those of a token, then those whose ttl_is_in_value, and of these those
 * without_watch last: see strategies_range(). */
static const struct strategy *const acquire[] = {
    &set, &set_by_script, &timestamps_acquire, &timestamps_acquire_unwatched};
static const struct strategy *const extend[] = {&extend_by_script, &under_watch,
    /* Last of a token's: it has to set max_ttl_ms, see native_set_ifeq(). */
    &set_ifeq, &timestamps_change, &timestamps_change_unwatched};
static const struct strategy *const release[] = {&release_by_script, &delex,
    &delifeq, &under_watch, &timestamps_change, &timestamps_change_unwatched};
static const struct strategy *const inspect[] = {
    &inspect_by_script, &getrange, &timestamps_inspect};
/* The end that a value tells cannot be brought forward: of such a lock nothing
 * is kept. */
static const struct strategy *const keep[] = {
    &keep_by_script, &under_watch, &keep_ifeq};

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static const struct {
    const struct strategy *const *row;
    unsigned char count;
    unsigned char with_end;  /* the first whose ttl_is_in_value, or count */
    unsigned char unwatched; /* the first without_watch, or count */
} tables[VERB_KINDS] = {
    [VERB_ACQUIRE] = {acquire, ROWS(acquire), 2, 3},
    [VERB_EXTEND] = {extend, ROWS(extend), 3, 4},
    [VERB_RELEASE] = {release, ROWS(release), 4, 5},
    [VERB_INSPECT] = {inspect, ROWS(inspect), 2, 3},
    [VERB_KEEP] = {keep, ROWS(keep), 3, 3},
};

const struct strategy *strategies_at(enum verb_kind kind, unsigned i)
{
    return i < tables[kind].count ? tables[kind].row[i] : NULL;
}

const struct strategy *strategies_for(const struct exchange *x)
{
    bool acquires = x->verb->kind == VERB_ACQUIRE;

    if (x->verb->kind == VERB_ASK)
        return &asked_strategy;
    if (rights_unverified(x))
        return &rights_strategy;
    if (acquires && x->phase == PHASE_CHECK_VALUE)
        return &timestamps_takeover;
    if (x->verb->kind == VERB_RAISE || (acquires && x->verb->counter.len > 0))
        return &fenced_strategy;
    return strategies_at(x->verb->kind, x->at);
}

bool strategies_allow(
    const struct dialect *dialect, enum verb_kind kind, unsigned i)
{
    const struct strategy *strategy = strategies_at(kind, i);

    return !dialect->keyed_only || !strategy ||
           !(strategy->direct || strategy->watched);
}

struct strategies_range strategies_range(
    const struct dialect *dialect, enum verb_kind kind, bool with_end)
{
    bool ordered = dialect->ttl_in_values;
    bool looks = kind == VERB_ACQUIRE || kind == VERB_INSPECT;
    struct strategies_range range = {0, tables[kind].with_end,
        ordered ? tables[kind].count : tables[kind].unwatched};

    if (kind == VERB_KEEP)
        ;
    else if (with_end || (looks && ordered))
        range.first = range.with_end;
    else if (kind == VERB_EXTEND) /* the token is known to be there as it is */
        range.end = range.with_end;
    else if (kind == VERB_RELEASE) /* compared with whatever is there */
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

/* Acquiring needs no WATCH; the other verbs tell that there is none. */
static bool knows_no_watch(const struct dialect *dialect)
{
    const unsigned char *at = dialect->at_with_end;

    return dialect->unwatched || dialect->keyed_only ||
           strategies_at(VERB_EXTEND, at[VERB_EXTEND])->without_watch ||
           strategies_at(VERB_RELEASE, at[VERB_RELEASE])->without_watch;
}

void strategies_describe(const struct dialect *dialect, struct text *text)
{
    const char *lengthens = extend[dialect->at[VERB_EXTEND]]->name;
    const char *ends = release[dialect->at[VERB_RELEASE]]->name;

    /* A program that only looks has not learnt how to release. */
    if (dialect->at[VERB_RELEASE] == 0 && dialect->at[VERB_INSPECT] > 0)
        ends = lengthens = "scripts refused";

    const struct strategy *sets = acquire[dialect->at[VERB_ACQUIRE]];
    if (dialect->ttl_in_values && !sets->ttl_is_in_value)
        sets = acquire[tables[VERB_ACQUIRE].with_end];
    if (sets->ttl_is_in_value && knows_no_watch(dialect))
        sets = acquire[tables[VERB_ACQUIRE].unwatched];
    text_add(text, sets->name);
    if (sets->ttl_is_in_value)
        return;
    text_addf(text, " + %s", ends);
    if (strcmp(lengthens, ends) != 0)
        text_addf(text, " + %s", lengthens);
}

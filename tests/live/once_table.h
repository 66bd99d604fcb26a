/* SPDX-License-Identifier: MIT */
/*
 * The table of work that must be done once: each record that can stand there,
 * each state of the lock, each call, and what must come of it. It is written
 * from docs/wire.md, not from the scripts.
 *
 * The caller is A; B is the other one whose work the record may be about, and C
 * holds the lock for a reason of its own.
 */
#ifndef NXLOCK_TESTS_LIVE_ONCE_TABLE_H
#define NXLOCK_TESTS_LIVE_ONCE_TABLE_H

#include "live/once_script_rig.h"

enum table_call {
    CALL_HALT,
    CALL_RETRY,
    CALL_LOOK_AT,
    CALL_SAY_DONE,
    CALL_SAY_FAILED,
    CALL_SAY_UNSURE,
    CALL_SAY_CLEAR,
    CALL_TAKE_BACK,
    CALL_FORGET_SEEN,
    CALL_FORGET_OTHER,
    TABLE_CALLS
};

struct cell {
    int state; /* enum once_state; 0: there is no record */
    bool own;  /* the record is about A's work */
    bool same; /* the fingerprint is the caller's */
    int doubts, late;
    char lock; /* the token in the key; 0: none */
    enum table_call call;
};

#define OLD_FENCE 5000
#define OLD_ATTEMPT 3
#define OLD_FIRST 111
#define OLD_SINCE 222
#define OLD_ENDED 333
#define OLD_CODE 7
#define OLD_KEEP_MS 600000
#define OLD_LEFT_MS 500000
#define OLD_RESULT "old\r\n\n"
#define NEW_RESULT "new"

static inline bool cell_open(const struct cell *c)
{
    return c->state == ONCE_BEGUN || c->state == ONCE_DOUBT;
}

static inline const char *cell_name(const struct cell *c)
{
    static const char *const calls[TABLE_CALLS] = {"begin", "begin, retry",
        "look", "done", "failed", "unsure", "clear", "unbegun", "forget",
        "forget another"};
    static const char *const states[] = {
        "no record", "begun", "doubt", "done", "failed"};
    static char name[160];

    snprintf(name, sizeof(name), "%s: %s%s%s%s%s, lock %s%c", calls[c->call],
        states[c->state],
        !c->state ? ""
        : c->own  ? " by A"
                  : " by B",
        !c->state || c->same ? "" : ", other fingerprint",
        c->doubts ? ", doubts" : "", c->late ? ", late" : "",
        c->lock ? "held by " : "free", c->lock ? c->lock : ' ');
    return name;
}

/* ------------------------------------------------------------ what must come
 */

struct want {
    enum outcome_kind kind;
    enum once_found found;
    bool released;     /* the lock, which A held */
    bool granted;      /* the lock is A's */
    bool gone;         /* the record is removed */
    bool changed;      /* the record is: */
    struct record now; /* with times 1: the time of the test */
    const char *result;
};

/* The record before, if there is one. */
static inline struct record cell_record(const struct cell *c)
{
    return (struct record){
        .state = (enum once_state)c->state,
        .token = slice_of(c->own ? "A" : "B"),
        .fence = OLD_FENCE,
        .attempt = OLD_ATTEMPT,
        .doubts = c->doubts,
        .late = c->late,
        .first_ms = OLD_FIRST,
        .since_ms = OLD_SINCE,
        .ended_ms = c->state == ONCE_BEGUN ? 0 : OLD_ENDED,
        .keep_ms = OLD_KEEP_MS,
        .code = c->state == ONCE_BEGUN ? 0 : OLD_CODE,
        .fingerprint = slice_of(c->same ? "f" : "g"),
        .size = c->state == ONCE_DONE ? (int)strlen(OLD_RESULT) : 0,
    };
}

static inline void want_begin(const struct cell *c, struct want *w)
{
    bool looks = c->call == CALL_LOOK_AT;
    bool mine = c->lock == 'A' && !looks;

    w->kind = OUTCOME_RECORDED;
    w->released = mine;
    if (c->state && c->state != ONCE_FAILED && !c->same) {
        w->found = FOUND_MISMATCH;
    } else if (c->state == ONCE_DONE) {
        w->found = FOUND_DONE;
    } else if ((c->lock && !mine) || (c->state && c->own && !looks)) {
        w->kind = looks ? OUTCOME_RECORDED : OUTCOME_BUSY;
        w->found = looks ? FOUND_BUSY : FOUND_NOTHING;
        w->released = false;
    } else if (cell_open(c) && c->call != CALL_RETRY) {
        w->found = FOUND_DOUBT;
    } else if (looks) {
        w->kind = OUTCOME_FREE;
    } else {
        w->kind = OUTCOME_GRANTED;
        w->released = false;
        w->granted = w->changed = true;
        w->now = (struct record){
            .state = ONCE_BEGUN,
            .token = slice_of("A"),
            .fence = 1,
            .attempt = c->state ? OLD_ATTEMPT + 1 : 1,
            .doubts = c->doubts + cell_open(c),
            .late = c->late,
            .first_ms = c->state ? OLD_FIRST : 1,
            .since_ms = 1,
            .keep_ms = ONCE_KEEP_MS,
            .fingerprint = slice_of("f"),
        };
        w->result = "";
    }
}

/* What the record becomes; 0: it stays; -1: lost. */
static const enum once_state told[] = {
    ONCE_DONE, ONCE_FAILED, ONCE_DOUBT, ONCE_CLEAR}; /* by CALL_SAY_DONE, ... */

static inline int told_state(const struct cell *c)
{
    bool done = c->call == CALL_SAY_DONE, unsure = c->call == CALL_SAY_UNSURE;
    int failed = c->doubts || c->late ? ONCE_DOUBT : ONCE_FAILED;

    if (!c->state)
        return done ? ONCE_DONE : unsure ? ONCE_DOUBT : 0;
    if (!c->own && c->state != ONCE_FAILED)
        return -1;
    if (!c->own)
        return done ? ONCE_DONE : unsure ? ONCE_DOUBT : -1;
    if (c->state == ONCE_DONE)
        return 0;
    if (c->state == ONCE_FAILED)
        return done ? ONCE_DONE : 0;
    return done ? ONCE_DONE : unsure ? ONCE_DOUBT : failed;
}

static inline void want_tell(const struct cell *c, struct want *w)
{
    int state = told_state(c);
    bool about_own = c->state == 0 || !c->own;

    w->kind = state < 0 ? OUTCOME_NOT_MINE : OUTCOME_MINE;
    w->released = c->lock == 'A';
    w->now = cell_record(c);
    w->result = c->state == ONCE_DONE ? OLD_RESULT : "";
    if (state < 0) { /* another one's; only what was done is noted */
        w->changed = c->call == CALL_SAY_DONE;
        w->now.late += w->changed;
        return;
    }
    if (state == 0)
        return;
    w->changed = true;
    if (!c->state)
        w->now = (struct record){.attempt = 1,
            .first_ms = 1,
            .since_ms = 1,
            .keep_ms = ONCE_KEEP_MS};
    if (about_own) {
        w->now.token = slice_of("A");
        w->now.fingerprint = slice_of("f");
    }
    w->now.state = (enum once_state)state;
    w->now.ended_ms = 1;
    w->now.code = ONCE_CODE;
    w->result = state == ONCE_DONE ? NEW_RESULT : "";
    w->now.size = (int64_t)strlen(w->result);
}

static inline void want_clear(const struct cell *c, struct want *w)
{
    bool goes_on =
        c->state == ONCE_BEGUN && c->own && c->lock == 'A' && c->late == 0;

    w->kind = goes_on ? OUTCOME_MINE : OUTCOME_NOT_MINE;
    w->changed = goes_on;
    w->now = cell_record(c);
    w->now.doubts = 0;
    w->result = "";
}

static inline void want_unbegun(const struct cell *c, struct want *w)
{
    bool began = c->state && c->own;

    w->kind = began ? OUTCOME_MINE : OUTCOME_NOT_MINE;
    w->released = c->lock == 'A';
    w->changed = began && c->state == ONCE_BEGUN;
    w->now = cell_record(c);
    w->now.state = c->doubts || c->late ? ONCE_DOUBT : ONCE_FAILED;
    w->now.ended_ms = 1;
    w->now.code = 0;
    w->result = "";
}

static inline void want_forget(const struct cell *c, struct want *w)
{
    bool there = c->state && c->call == CALL_FORGET_SEEN;
    bool in_progress = there && c->lock == (c->own ? 'A' : 'B');

    w->gone = there && !in_progress;
    w->kind = w->gone ? OUTCOME_MINE : OUTCOME_NOT_MINE;
    w->found = in_progress ? FOUND_BUSY : FOUND_NOTHING;
}

static inline struct want cell_want(const struct cell *c)
{
    struct want w = {0};

    if (c->call <= CALL_LOOK_AT)
        want_begin(c, &w);
    else if (c->call <= CALL_SAY_UNSURE)
        want_tell(c, &w);
    else if (c->call == CALL_SAY_CLEAR)
        want_clear(c, &w);
    else if (c->call == CALL_TAKE_BACK)
        want_unbegun(c, &w);
    else
        want_forget(c, &w);
    return w;
}

/* ------------------------------------------------------------------ the cells
 */

static inline void cell_line(const struct cell *c, char line[512])
{
    static const char *const states[] = {
        "", "begun", "doubt", "done", "failed"};
    struct record r = cell_record(c);

    snprintf(line, 512, "once1 %s %s %d %d %d %d %d %d %d %d %d =%s %d",
        states[c->state], r.token.data, OLD_FENCE, OLD_ATTEMPT, c->doubts,
        OLD_FIRST, OLD_SINCE, (int)r.ended_ms, r.code, c->late, OLD_KEEP_MS,
        r.fingerprint.data, (int)r.size);
}

/* Writes what stands before. */
static inline void cell_prepare(const struct cell *c)
{
    char line[512], left[32];

    redis_run(&server, "FLUSHALL", NULL);
    if (c->lock) {
        char token[2] = {c->lock, '\0'};
        redis_run(&server, "SET", "k", token, "PX", "10000", NULL);
    }
    if (!c->state)
        return;
    cell_line(c, line);
    strcat(line, "\n");
    if (c->state == ONCE_DONE)
        strcat(line, OLD_RESULT);
    redis_run(&server, "SET", "{k}:once", line, NULL);
    snprintf(left, sizeof(left), "%d", OLD_LEFT_MS);
    if (!cell_open(c))
        redis_run(&server, "PEXPIRE", "{k}:once", left, NULL);
}

/* Over this connection. What it cannot do is refused, and then nothing may have
 * changed. */
static struct peer *cell_peer = &peer;
static bool cell_may_fail;
static unsigned cells_refused;
/* Called before and after each call, if it is not NULL. */
static void (*cell_around)(bool before);

static inline struct outcome cell_call(const struct cell *c)
{
    static char line[512];
    static struct once_terms terms;
    static const enum verb_kind kinds[TABLE_CALLS] = {VERB_BEGIN, VERB_BEGIN,
        VERB_READ_RECORD, VERB_TELL, VERB_TELL, VERB_TELL, VERB_TELL,
        VERB_UNDO_BEGIN, VERB_FORGET, VERB_FORGET};
    struct verb verb = {.kind = kinds[c->call],
        .key = slice_of("k"),
        .token = slice_of("A"),
        .once = &terms};

    cell_line(c, line);
    if (c->call == CALL_FORGET_OTHER)
        strcat(line, "0");
    terms = (struct once_terms){.retries = c->call == CALL_RETRY,
        .fingerprint = slice_of("f"),
        .keep_ms = ONCE_KEEP_MS,
        .code = ONCE_CODE,
        .result = slice_of(NEW_RESULT),
        .line = slice_of(line)};
    if (verb.kind == VERB_TELL)
        terms.reported = told[c->call - CALL_SAY_DONE];
    if (verb.kind == VERB_BEGIN || verb.kind == VERB_READ_RECORD)
        verb.ttl_ms = ONCE_TTL_MS;
    if (cell_around)
        cell_around(true);
    struct outcome o = once_send(cell_peer, &verb);
    if (cell_around)
        cell_around(false);
    return o;
}

/* 0: as it must be; else what is not. */
#define CELL_NEEDS(condition)                                                  \
    do {                                                                       \
        if (!(condition))                                                      \
            return #condition;                                                 \
    } while (0)

static inline bool is_now(int64_t ms)
{
    return ms > INT64_C(1500000000000);
}

static inline const char *record_differs(
    const struct stored *s, const struct want *w)
{
    const struct record *is = &s->record, *r = &w->now;
    bool over = r->state == ONCE_DONE || r->state == ONCE_FAILED;
    bool noted = r->ended_ms == OLD_ENDED && over;
    int64_t left = noted ? OLD_LEFT_MS : r->keep_ms;

    CELL_NEEDS(s->exists);
    CELL_NEEDS(is->state == r->state);
    CELL_NEEDS(slice_equal(is->token, r->token));
    CELL_NEEDS(r->fence == 1 ? is_now((int64_t)(is->fence / 1000))
                             : is->fence == r->fence);
    CELL_NEEDS(is->attempt == r->attempt);
    CELL_NEEDS(is->doubts == r->doubts);
    CELL_NEEDS(is->late == r->late);
    CELL_NEEDS(
        r->first_ms == 1 ? is_now(is->first_ms) : is->first_ms == r->first_ms);
    CELL_NEEDS(
        r->since_ms == 1 ? is_now(is->since_ms) : is->since_ms == r->since_ms);
    CELL_NEEDS(
        r->ended_ms == 1 ? is_now(is->ended_ms) : is->ended_ms == r->ended_ms);
    CELL_NEEDS(is->code == r->code);
    CELL_NEEDS(is->keep_ms == r->keep_ms);
    CELL_NEEDS(slice_equal(is->fingerprint, r->fingerprint));
    CELL_NEEDS(is->size == r->size);
    CELL_NEEDS(s->result_len == strlen(w->result));
    CELL_NEEDS(memcmp(s->result, w->result, s->result_len) == 0);
    CELL_NEEDS(
        over ? s->pttl > left - 60000 && s->pttl <= left : s->pttl == -1);
    return NULL;
}

static inline const char *lock_differs(
    const struct cell *c, const struct want *w)
{
    char value[16];
    bool exists = redis_get(&server, "k", value, sizeof(value));
    int64_t pttl = redis_pttl(&server, "k");
    char token = w->granted ? 'A' : w->released ? 0 : c->lock;

    CELL_NEEDS((exists ? value[0] : 0) == token);
    CELL_NEEDS(!w->granted || pttl > 10000);
    CELL_NEEDS(!token || w->granted || (pttl > 0 && pttl <= 10000));
    return NULL;
}

/* The answer shows the record as it is now, and what was done, or was in doubt
 * before. */
static inline const char *answer_differs(
    const struct cell *c, const struct want *w, const struct stored *s)
{
    if (c->call > CALL_SAY_CLEAR)
        return NULL;
    CELL_NEEDS(slice_equal(once_leaf(2), slice_of(s->line)));
    bool shows = w->kind == OUTCOME_RECORDED && w->found == FOUND_DONE;
    bool earlier_token_possible = w->granted && cell_open(c);
    char line[512];
    cell_line(c, line);
    CELL_NEEDS((once_leaves.count == 4) == (shows || earlier_token_possible));
    CELL_NEEDS(!shows || slice_equal(once_leaf(3), slice_of(OLD_RESULT)));
    CELL_NEEDS(
        !earlier_token_possible || slice_equal(once_leaf(3), slice_of(line)));
    return NULL;
}

static inline const char *stands_differs(
    const struct stored *before, const struct stored *after)
{
    CELL_NEEDS(before->exists == after->exists);
    CELL_NEEDS(strcmp(before->line, after->line) == 0);
    CELL_NEEDS((before->pttl == -1) == (after->pttl == -1));
    CELL_NEEDS(before->result_len == after->result_len);
    return NULL;
}

static inline const char *outcome_differs(
    const struct cell *c, const struct want *w, const struct outcome *o)
{
    CELL_NEEDS(o->kind == w->kind);
    CELL_NEEDS(o->found == w->found);
    CELL_NEEDS((o->fence > OLD_FENCE) == (w->kind == OUTCOME_GRANTED));
    CELL_NEEDS(
        w->kind != OUTCOME_BUSY || (o->left_ms > 9000) == (c->lock != 0));
    return NULL;
}

static inline const char *cell_differs(const struct cell *c)
{
    static const struct want nothing;
    struct want w = cell_want(c);
    struct stored before, after;

    cell_prepare(c);
    stored_read(&before, "{k}:once");
    struct outcome o = cell_call(c);
    stored_read(&after, "{k}:once");
    if (cell_may_fail && o.kind == OUTCOME_FAULT) {
        cells_refused++;
        CELL_NEEDS(!o.unsure);
        const char *changed = lock_differs(c, &nothing);
        return changed ? changed : stands_differs(&before, &after);
    }
    const char *why = outcome_differs(c, &w, &o);
    if (!why)
        why = lock_differs(c, &w);
    if (!why)
        why = answer_differs(c, &w, &after);
    if (why)
        return why;
    CELL_NEEDS(w.kind != OUTCOME_GRANTED || o.fence == after.record.fence);
    if (w.changed)
        return record_differs(&after, &w);
    CELL_NEEDS(!w.gone || (before.exists && !after.exists));
    return w.gone ? NULL : stands_differs(&before, &after);
}

/* Every cell, or every so many, until one differs: then c is that one, and *why
 * says what does. Returns how many were tried. */
static inline unsigned table_differs(
    unsigned stride, struct cell *c, const char **why)
{
    static const char locks[] = {0, 'A', 'B', 'C'};
    unsigned tried = 0;

    *why = NULL;
    for (unsigned i = 0; i < 5U * 2 * 2 * 2 * 2 * 4 * TABLE_CALLS;
         i += stride) {
        unsigned n = i;
        *c = (struct cell){.call = (enum table_call)(n % TABLE_CALLS)};
        n /= TABLE_CALLS;
        c->lock = locks[n % 4];
        n /= 4;
        c->own = n & 1;
        c->same = !(n & 2);
        c->doubts = n & 4 ? 2 : 0;
        c->late = n & 8 ? 1 : 0;
        c->state = (int)(n / 16);
        bool once = c->own || !c->same || c->doubts || c->late;
        /* What failed has no doubts, and nobody was late. */
        bool possible = c->state == ONCE_FAILED ? !c->doubts && !c->late
                                                : c->state || !once;
        if (!possible)
            continue;
        tried++;
        *why = cell_differs(c);
        if (*why)
            break;
    }
    return tried;
}

#endif

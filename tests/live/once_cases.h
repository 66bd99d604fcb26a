/* SPDX-License-Identifier: MIT */
/*
 * What the table (once_table.h) does not have: numbers, results, the line, the
 * time that a key stays, and keys that hold something else. Each returns NULL,
 * or what is not as it must be.
 */
#ifndef NXLOCK_TESTS_LIVE_ONCE_CASES_H
#define NXLOCK_TESTS_LIVE_ONCE_CASES_H

#include "live/once_table.h"

static struct once_terms case_terms;

static inline struct verb case_verb(enum verb_kind kind, const char *token)
{
    case_terms.fingerprint = slice_of("f");
    case_terms.keep_ms = ONCE_KEEP_MS;
    return (struct verb){.kind = kind,
        .key = slice_of("k"),
        .token = slice_of(token),
        .ttl_ms = kind == VERB_BEGIN ? ONCE_TTL_MS : 0,
        .once = &case_terms};
}

static inline struct outcome case_send(enum verb_kind kind, const char *token)
{
    struct verb verb = case_verb(kind, token);
    return once_send(&peer, &verb);
}

static inline struct outcome case_tell(
    const char *token, enum once_state verdict, struct slice result)
{
    case_terms = (struct once_terms){.reported = verdict, .result = result};
    return case_send(VERB_TELL, token);
}

static inline void case_clean(void)
{
    redis_run(&server, "FLUSHALL", NULL);
    case_terms =
        (struct once_terms){.reported = ONCE_DONE, .keep_ms = ONCE_KEEP_MS};
}

/* A record by B, as the table writes it. */
static inline void case_record(int state, const char *fence, const char *size)
{
    char line[512];
    static const char *const states[] = {
        "", "begun", "doubt", "done", "failed"};
    snprintf(line, sizeof(line),
        "once1 %s B %s 3 0 111 222 333 7 0 600000 =f %s\n", states[state],
        fence, size);
    redis_run(&server, "SET", "{k}:once", line, NULL);
}

/* The fencing token is above the counter, the record's, and the clock. */
static inline const char *case_fences(void)
{
    static const uint64_t far = UINT64_C(4503599627370496);
    struct stored s;

    case_clean();
    CELL_NEEDS(is_now((int64_t)(case_send(VERB_BEGIN, "A").fence / 1000)));
    CELL_NEEDS(redis_pttl(&server, "{k}:f") > 86000000);
    case_clean();
    redis_run(&server, "SET", "{k}:f", "4503599627370496", NULL);
    CELL_NEEDS(case_send(VERB_BEGIN, "A").fence == far + 1);
    CELL_NEEDS(redis_pttl(&server, "{k}:f") == -1);
    CELL_NEEDS(redis_run(&server, "INCR", "{k}:f", NULL) == (int64_t)far + 2);
    case_clean();
    case_record(ONCE_FAILED, "4503599627370503", "0");
    CELL_NEEDS(case_send(VERB_BEGIN, "A").fence == far + 8);
    stored_read(&s, "{k}:once");
    CELL_NEEDS(s.record.fence == far + 8);
    CELL_NEEDS(redis_run(&server, "INCR", "{k}:f", NULL) == (int64_t)far + 9);
    /* It is of no use for the next one to be told again. */
    case_clean();
    redis_run(&server, "SET", "{k}:f", "many", NULL);
    struct outcome o = case_send(VERB_BEGIN, "A");
    CELL_NEEDS(o.kind == OUTCOME_FAULT && o.fault == FAULT_WRONG_TYPE);
    CELL_NEEDS(redis_run(&server, "DBSIZE", NULL) == 1);
    return NULL;
}

static inline const char *case_not_kept(void)
{
    struct stored s;

    case_clean();
    case_record(ONCE_DONE, "5", "-1");
    struct outcome o = case_send(VERB_BEGIN, "A");
    CELL_NEEDS(o.kind == OUTCOME_RECORDED && o.found == FOUND_DONE);
    CELL_NEEDS(once_leaves.count == 3);
    case_clean();
    case_terms.result_omitted = true;
    CELL_NEEDS(case_send(VERB_TELL, "A").kind == OUTCOME_MINE);
    stored_read(&s, "{k}:once");
    CELL_NEEDS(s.record.state == ONCE_DONE && s.record.size == -1);
    CELL_NEEDS(s.result_len == 0);
    return NULL;
}

/* The minimum hold; and a lease that is over. */
static inline const char *case_stays(void)
{
    case_clean();
    struct verb verb = case_verb(VERB_TELL, "A");
    held_by("A", 10000);
    verb.ttl_ms = 3000;
    CELL_NEEDS(once_send(&peer, &verb).kind == OUTCOME_MINE);
    CELL_NEEDS(redis_exists(&server, "k"));
    CELL_NEEDS(redis_pttl(&server, "k") <= 3000);
    case_clean();
    held_by("A", 10000);
    verb.not_after = 5;
    peer.dialect.now = 5;
    struct outcome o = once_send(&peer, &verb);
    peer.dialect.now = 0;
    CELL_NEEDS(o.kind == OUTCOME_MINE);
    CELL_NEEDS(redis_pttl(&server, "k") > 9000);
    case_clean();
    held_by("A", 10000);
    verb.ttl_ms = 0;
    CELL_NEEDS(once_send(&peer, &verb).kind == OUTCOME_MINE);
    CELL_NEEDS(!redis_exists(&server, "k"));
    return NULL;
}

/* Is the next message that? "end": there is none. */
static inline bool case_hears(const char *text)
{
    redisReply *r = NULL;
    if (strcmp(text, "end") == 0)
        redis_run(&server, "PUBLISH", CHANNEL, "end", NULL);
    assert_int_equal(redisGetReply(ears, (void **)&r), REDIS_OK);
    bool same = strcmp(r->element[2]->str, text) == 0;
    freeReplyObject(r);
    return same;
}

static inline bool case_holder(const char *token)
{
    char value[16];
    return redis_get(&server, "k", value, sizeof(value)) &&
           strcmp(value, token) == 0;
}

/* Whoever gives the lock back hands it over to the next in line. */
static inline const char *case_line(void)
{
    static const struct {
        enum verb_kind kind;
        int state; /* of B's record */
        bool gap;
    } ends[] = {
        {VERB_TELL, 0, false},
        {VERB_TELL, 0, true},
        {VERB_UNDO_BEGIN, 0, false},
        {VERB_BEGIN, ONCE_DONE, false},
        {VERB_BEGIN, ONCE_DOUBT, false},
    };

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        case_clean();
        held_by("A", 10000);
        CELL_NEEDS(join("N").kind == OUTCOME_BUSY);
        if (ends[i].state)
            case_record(ends[i].state, "5", "0");
        struct verb verb = case_verb(ends[i].kind, "A");
        verb.gap_ms = ends[i].gap ? 75 : 0;
        CELL_NEEDS(once_send(&peer, &verb).kind != OUTCOME_FAULT);
        CELL_NEEDS(
            ends[i].gap ? !redis_exists(&server, "k") : case_holder("N"));
        CELL_NEEDS(case_hears(ends[i].gap ? "?N" : "N"));
        CELL_NEEDS(case_hears("end"));
    }
    return NULL;
}

static inline struct slice case_dump(const char *key, redisReply **r)
{
    *r = redis_command(&server, "DUMP", key, NULL);
    return (struct slice){(*r)->str, (*r)->len};
}

#define X10 "0123456789"
#define X100 X10 X10 X10 X10 X10 X10 X10 X10 X10 X10
#define X1000 X100 X100 X100 X100 X100 X100 X100 X100 X100 X100

/* Something else at the record's key: an error, and nothing is changed. */
static inline const char *case_foreign(void)
{
    static const char *const values[] = {"", "hello", "once1", "once1 begun A",
        "once1 begun A 1 1 0 1 1 0 0 0 1 - 0", /* no newline */
        "once1 begun A 1 1 0 1 1 0 0 0 1 0\n", /* a word is missing */
        "once1 begun A 1 1 0 1 1 0 0 0 1 x 0\n",
        "once1 never A 1 1 0 1 1 0 0 0 1 - 0\n",
        "once1 begun A 1 1 0 1 1 0 0 0 1 - 0 0\n",
        "once2 begun A 1 1 0 1 1 0 0 0 1 - 0\n",
        /* Cut, or longer than the line says. */
        "once1 done A 1 1 0 1 1 1 0 0 9000 - 3\nab",
        "once1 done A 1 1 0 1 1 1 0 0 9000 - 3\nabcd",
        "once1 done A 1 1 0 1 1 1 0 0 9000 - 1\n",
        "once1 done A 1 1 0 1 1 1 0 0 9000 - -1\nx",
        "once1 done A 1 1 0 1 1 1 0 0 9000 - -2\n",
        "once1 begun A 1 1 0 1 1 0 0 0 9000 - 0\nx",
        "once1 doubt A 1 1 0 1 1 1 0 0 9000 - 0\n\n",
        "once1 done A 1 1 0 1 1 1 0 0 9000 - 1x\n",
        "once1 done A 1 1 0 1 1 1 0 0 9000 - 1101\n" X1000 X100,
        "once1 done A 1 1 0 1 1 1 0 0 9000 - 1099\n" X1000 X100,
        "once1 done A 1 1 0 1 1 1 0 0 9000 - 1" X100 "\n" X1000,
        "once1 done A 1 1 0 1 1 1 0 0 9000 - 9999999999999999999\n" X1000,
        NULL};
    static const enum verb_kind kinds[] = {
        VERB_BEGIN, VERB_READ_RECORD, VERB_TELL, VERB_UNDO_BEGIN, VERB_FORGET};

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        case_clean();
        held_by("A", 10000);
        if (values[i])
            redis_run(&server, "SET", "{k}:once", values[i], NULL);
        else
            redis_run(&server, "RPUSH", "{k}:once", "x", NULL);
        redisReply *r, *r2;
        struct slice before = case_dump("{k}:once", &r);
        for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
            struct outcome o = case_send(kinds[k], "A");
            CELL_NEEDS(o.kind == OUTCOME_FAULT);
            CELL_NEEDS(o.fault == FAULT_WRONG_TYPE && !o.unsure);
        }
        CELL_NEEDS(slice_equal(before, case_dump("{k}:once", &r2)));
        CELL_NEEDS(case_holder("A"));
        CELL_NEEDS(redis_run(&server, "DBSIZE", NULL) == 2);
        freeReplyObject(r);
        freeReplyObject(r2);
    }
    return NULL;
}

/* Something else at the lock's key: it is taken, and nobody's token. */
static inline const char *case_foreign_lock(void)
{
    struct stored s;

    case_clean();
    redis_run(&server, "RPUSH", "k", "x", NULL);
    struct outcome o = case_send(VERB_BEGIN, "A");
    CELL_NEEDS(o.kind == OUTCOME_BUSY && o.left_ms == LEFT_FOREVER);
    CELL_NEEDS(case_send(VERB_READ_RECORD, "A").found == FOUND_BUSY);
    CELL_NEEDS(case_send(VERB_TELL, "A").kind == OUTCOME_MINE);
    stored_read(&s, "{k}:once");
    CELL_NEEDS(s.record.state == ONCE_DONE);
    case_terms.line = slice_of(s.line);
    CELL_NEEDS(case_send(VERB_FORGET, "A").kind == OUTCOME_MINE);
    CELL_NEEDS(redis_run(&server, "DBSIZE", NULL) == 1);
    /* Nor is an empty value a token, or a longer one. */
    redis_run(&server, "DEL", "k", NULL);
    redis_run(&server, "SET", "k", "", NULL);
    CELL_NEEDS(case_send(VERB_BEGIN, "A").kind == OUTCOME_BUSY);
    redis_run(&server, "SET", "k", "AA", NULL);
    CELL_NEEDS(case_send(VERB_BEGIN, "A").kind == OUTCOME_BUSY);
    CELL_NEEDS(case_send(VERB_READ_RECORD, "").found == FOUND_BUSY);
    return NULL;
}

#define DOUBTED "once1 doubt B 5 3 0 111 222 333 7 0 600000 =f 0"

/* A begins although B's work is in doubt, or whatever this is. */
static inline bool begins_in_doubt(int state, struct slice *before)
{
    static char line[512];

    case_clean();
    case_record(state, "5", "0");
    case_terms.retries = true;
    bool begun = case_send(VERB_BEGIN, "A").kind == OUTCOME_GRANTED;
    snprintf(line, sizeof(line), "%.*s", (int)once_leaf(3).len,
        once_leaf(3).len ? once_leaf(3).data : "");
    *before = slice_of(line);
    return begun;
}

/* Is the record about A's work, and in this state? */
static inline bool is_about_a(enum once_state state, struct stored *s)
{
    stored_read(s, "{k}:once");
    return s->record.state == state &&
           slice_equal(s->record.token, slice_of("A"));
}

static inline bool is_as_before(struct stored *s)
{
    stored_read(s, "{k}:once");
    return strcmp(s->line, DOUBTED) == 0 && s->result_len == 0 &&
           redis_pttl(&server, "{k}:once") == -1 && !redis_exists(&server, "k");
}

/* Who says that nothing happened leaves the doubt as it was. */
static inline const char *case_before(void)
{
    static const struct slice done = {"done", 4};
    struct slice before;
    struct stored s;

    CELL_NEEDS(begins_in_doubt(ONCE_FAILED, &before) && before.len == 0);
    for (int i = 0; i < 2; i++) { /* UNSURE comes before FAILED, or not */
        CELL_NEEDS(begins_in_doubt(ONCE_DOUBT, &before));
        CELL_NEEDS(slice_equal(before, slice_of(DOUBTED)));
        if (i == 1)
            (void)case_tell("A", ONCE_DOUBT, before);
        CELL_NEEDS(i == 0 || is_about_a(ONCE_DOUBT, &s));
        struct outcome o = case_tell("A", ONCE_FAILED, before);
        CELL_NEEDS(o.kind == OUTCOME_MINE && is_as_before(&s));
    }
    /* It is said again; another verdict comes too late. */
    CELL_NEEDS(case_tell("A", ONCE_FAILED, before).kind == OUTCOME_MINE);
    CELL_NEEDS(is_as_before(&s));
    CELL_NEEDS(case_tell("A", ONCE_DOUBT, before).kind == OUTCOME_NOT_MINE);
    CELL_NEEDS(is_as_before(&s));
    CELL_NEEDS(case_tell("A", ONCE_DONE, before).kind == OUTCOME_NOT_MINE);
    stored_read(&s, "{k}:once");
    CELL_NEEDS(s.record.state == ONCE_DOUBT && s.record.late == 1);
    CELL_NEEDS(case_tell("A", ONCE_FAILED, before).kind == OUTCOME_NOT_MINE);
    /* What B has said meanwhile is not lost. */
    CELL_NEEDS(begins_in_doubt(ONCE_DOUBT, &before));
    CELL_NEEDS(case_tell("B", ONCE_DONE, done).kind == OUTCOME_NOT_MINE);
    CELL_NEEDS(case_tell("A", ONCE_FAILED, before).kind == OUTCOME_MINE);
    CELL_NEEDS(is_about_a(ONCE_DOUBT, &s) && s.record.late == 1);
    /* Nor what A has found out; and a doubt cannot become anything else. */
    CELL_NEEDS(begins_in_doubt(ONCE_DOUBT, &before));
    CELL_NEEDS(case_tell("A", ONCE_CLEAR, before).kind == OUTCOME_MINE);
    CELL_NEEDS(case_tell("A", ONCE_FAILED, before).kind == OUTCOME_MINE);
    CELL_NEEDS(is_about_a(ONCE_FAILED, &s));
    CELL_NEEDS(begins_in_doubt(ONCE_DOUBT, &before));
    before = slice_of("once1 failed B 5 3 0 111 222 333 7 0 600000 =f 0");
    CELL_NEEDS(case_tell("A", ONCE_FAILED, before).kind == OUTCOME_MINE);
    CELL_NEEDS(is_about_a(ONCE_DOUBT, &s));
    return NULL;
}

static const struct {
    const char *name;
    const char *(*run)(void);
} once_cases[] = {
    {"the doubt before", case_before},
    {"fences", case_fences},
    {"not kept", case_not_kept},
    {"how long the key stays", case_stays},
    {"the line", case_line},
    {"a record's key that holds something else", case_foreign},
    {"a lock's key that holds something else", case_foreign_lock},
};
#define ONCE_CASES (sizeof(once_cases) / sizeof(once_cases[0]))

#endif

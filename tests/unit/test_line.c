/* SPDX-License-Identifier: MIT */
/*
 * Waiting in line: what each answer leads to, how a wait ends in each of its
 * states, and when the machine wakes.
 */
#include "support/test.h"

#include "unit/line_rig.h"

static int set_up(void **state)
{
    (void)state;
    messages = (struct messages){MESSAGES_UP, 1};
    unsent = false;
    return 0;
}

/* ----------------------------------------------------- answers and messages */

/* What is done after "T J", or "T J Y", by each answer: without a message, with
 * one before, and with one after it. A message with a STAY under way grants. */
static const struct answer_row {
    const char *answer;
    const char *join[3], *stay[3];
} answer_rows[] = {
    {"g", {" =yes:J", " =yes:J", " =yes:J"},
        {" =yes:Y", " L =yes:J", " =yes:Y"}},
    {"w", {"", " =yes:J", " =yes:J"}, {"", " L =yes:J", " =yes:Y"}},
    {"f", {"", " =yes:J", " =yes:J"}, {"", " L =yes:J", " =yes:Y"}},
    {"x", {" U =poll", " U =poll", " U =poll"}, {" T J", " L =yes:J", " T J"}},
    {"z", {"", " U", ""}, {"", " L =yes:J", " =yes:J"}},
    {"u", {" U", " U", " U"}, {"", " L =yes:J", " =yes:J"}},
    {"D", {" =poll", " U =poll", " =poll"},
        {" U =poll", " L =yes:J", " U =poll"}},
    {"E", {" U =poll", " U =poll", " U =poll"},
        {" U =poll", " L =yes:J", " U =poll"}},
    {"?", {" U =poll", " U =poll", " U =poll"},
        {" U =poll", " L =yes:J", " U =poll"}},
    {"silence", {" U", " U", " U"}, {" L", " L =yes:J", " L =yes:J"}},
};

static bool answer_does(const struct answer_row *row, bool stays, unsigned when)
{
    char steps[WORDS_MAX], wanted[WORDS_MAX];
    bool silent = !strcmp(row->answer, "silence");
    snprintf(steps, sizeof(steps), "%s%s%s%s", stays ? "w wake" : "",
        when == 1 ? " told " : " ",
        /* nothing is waited for after a grant */
        silent && stays && when == 1 ? "" : row->answer,
        when == 2 ? " told" : "");
    snprintf(wanted, sizeof(wanted), "%s%s", stays ? "T J Y" : "T J",
        (stays ? row->stay : row->join)[when]);
    start(false, NEVER, NEVER);
    line_play(steps);
    return line_did(steps, wanted);
}

static void each_answer_with_each_message(void **state)
{
    (void)state;
    unsigned wrong = 0;
    for (size_t i = 0; i < sizeof(answer_rows) / sizeof(*answer_rows); i++) {
        for (unsigned when = 0; when < 3; when++) {
            wrong += !answer_does(&answer_rows[i], false, when);
            wrong += !answer_does(&answer_rows[i], true, when);
        }
    }
    assert_int_equal(wrong, 0);
}

/* What the acquire is told when it has to go on without the line. */
static void why_it_cannot_be_used(void **state)
{
    static const struct {
        const char *steps;
        enum fault fault;
        bool doubt;
    } rows[] = {
        {"D", FAULT_NO_PERMISSION, false},
        {"E", FAULT_SERVER, true},
        {"?", FAULT_NOT_REDIS, true},
        {"x", FAULT_NOT_REDIS, true},
        {"u wake D", FAULT_NO_PERMISSION, true},
        {"silence wake D", FAULT_NO_PERMISSION, true},
        {"u wake w wake D", FAULT_NO_PERMISSION, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        start(false, NEVER, NEVER);
        line_play(rows[i].steps);
        assert_int_equal(line_verdict(&line), LINE_UNUSABLE);
        assert_int_equal(line.fault, rows[i].fault);
        assert_int_equal(line.late_grant_possible, rows[i].doubt);
    }
}

/* ------------------------------------------------------- the end of the wait
 */

enum how { WAIT_OVER, CALL_OVER, CANCELLED, HOWS };

/* A state, by the steps that lead to it, and what follows 4 ms later, when
 * nothing more is answered; that is too late for a last look if the call ends
 * then. busy: the lock itself was asked for before, with this token, and was
 * taken. A request that is under way is waited for until
 * the end of the call. */
static const struct end_row {
    const char *name, *steps, *did;
    const char *fresh[HOWS], *busy[HOWS];
} end_rows[] = {
    {"JOIN unanswered", "", "J", {"U =unknown", "U =unknown", "U =cancelled"},
        {"U =unknown", "U =unknown", "U =cancelled"}},
    {"in line", "w", "J", {"Y L U =unknown", "U =no", "U =cancelled"},
        {"Y L U =unknown", "U =no", "U =cancelled"}},
    {"STAY unanswered", "w wake", "J Y",
        {"L U =unknown", "U =unknown", "U =cancelled"},
        {"L U =unknown", "U =unknown", "U =cancelled"}},
    {"STAY failed", "w wake z", "J Y",
        {"U =unknown", "Y U =unknown", "U =cancelled"},
        {"U =unknown", "Y U =unknown", "U =cancelled"}},
    {"STAY given up", "w wake silence", "J Y L",
        {"U =unknown", "U =unknown", "U =cancelled"},
        {"U =unknown", "U =unknown", "U =cancelled"}},
    {"JOIN failed", "z", "J", {"=fault", "=fault", "=cancelled"},
        {"=fault", "=fault", "=cancelled"}},
    {"JOIN failed, unsure", "u", "J U", {"=unknown", "=unknown", "=cancelled"},
        {"=unknown", "=unknown", "=cancelled"}},
    {"JOIN given up", "silence", "J U", {"=unknown", "=unknown", "=cancelled"},
        {"=unknown", "=unknown", "=cancelled"}},
    {"its place lost", "w wake x", "J Y T J",
        {"U =unknown", "U =unknown", "U =cancelled"},
        {"U =unknown", "U =unknown", "U =cancelled"}},
    {"in line after a fault", "u wake w", "J U T J",
        {"Y L U =unknown", "U =no", "U =cancelled"},
        {"Y L U =unknown", "U =no", "U =cancelled"}},
    {"told, but the JOIN is older than a lease", "w @1078 told", "J Y",
        {"L U =unknown", "U =unknown", "U =cancelled"},
        {"L U =unknown", "U =unknown", "U =cancelled"}},
    {"granted too late", "w wake @1300 g", "J Y U T J",
        {"U =unknown", "U =late", "U =cancelled"},
        {"U =unknown", "U =late", "U =cancelled"}},
    {"granted too late, then in line", "w wake @1300 g w", "J Y U T J",
        {"Y L U =unknown", "U =no", "U =cancelled"},
        {"Y L U =unknown", "U =no", "U =cancelled"}},
};

static bool ends_as(const struct end_row *row, bool busy, enum how how)
{
    char name[WORDS_MAX], wanted[WORDS_MAX];
    start(busy, NEVER, NEVER);
    line_play(row->steps);
    uint64_t wait = now + 4 * MS - T0;
    start(busy, wait, how == CALL_OVER ? wait : wait + 2 * NS_PER_S);
    line_play(row->steps);
    if (how == CANCELLED)
        line_step("cancel");
    line_run();
    snprintf(wanted, sizeof(wanted), "%s%s %s", busy ? "" : "T ", row->did,
        (busy ? row->busy : row->fresh)[how]);
    snprintf(name, sizeof(name), "%s, %s, %s", row->name,
        busy ? "busy before" : "fresh",
        how == WAIT_OVER   ? "wait over"
        : how == CALL_OVER ? "call over"
                           : "cancelled");
    return line_did(name, wanted);
}

static void each_end_in_each_state(void **state)
{
    (void)state;
    unsigned wrong = 0;
    for (size_t i = 0; i < sizeof(end_rows) / sizeof(*end_rows); i++) {
        for (unsigned how = 0; how < HOWS; how++) {
            wrong += !ends_as(&end_rows[i], false, (enum how)how);
            wrong += !ends_as(&end_rows[i], true, (enum how)how);
        }
    }
    assert_int_equal(wrong, 0);
}

/* A JOIN that never left is no doubt; a token that had joined before is. */
static void what_never_left(void **state)
{
    static const struct {
        const char *steps, *does;
        bool doubt;
    } rows[] = {
        {"", "T J U =fault", false},
        {"silence", "T J U =fault", false},
        {"w wake", "T J Y L U =unknown", false},
        {"w wake z", "T J Y U =unknown", false},
    };
    (void)state;
    unsent = true;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        start(false, NEVER, NEVER);
        line_play(rows[i].steps);
        uint64_t wait = now + MS - T0;
        start(false, wait, wait + 2 * NS_PER_S);
        line_play(rows[i].steps);
        line_run();
        assert_true(line_did(rows[i].steps, rows[i].does));
        assert_int_equal(line.late_grant_possible, rows[i].doubt);
    }
    start(false, NEVER, NEVER);
    unsent = false;
    line_play("u"); /* this one may have joined, the next has not left */
    unsent = true;
    line_play("wake silence");
    assert_true(line.late_grant_possible);
}

/* No token joins when the wait is over, but for the first. */
static void a_wait_that_is_over_joins_no_more(void **state)
{
    static const struct {
        const char *steps, *does;
        unsigned wait_ms;
    } rows[] = {
        {"w tick", "T J U =no", 0},
        {"g", "T J =yes:J", 0},
        {"w wake @110 x tick", "T J Y =no", 105},
        {"w wake @1300 g tick", "T J Y U =late", 1000},
        {"@5 z tick", "T J =fault", 3},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        start(false, rows[i].wait_ms * MS, 2 * NS_PER_S);
        line_play(rows[i].steps);
        assert_true(line_did(rows[i].steps, rows[i].does));
    }
}

/* The lock may have become free without a message. */
static void it_asks_once_more_at_the_end(void **state)
{
    static const struct {
        const char *steps, *does;
        unsigned wait_ms, end_ms;
    } rows[] = {
        {"w wake g", "T J Y =yes:Y", 40, 2000},
        {"f wake g", "T J Y =yes:Y", 40, 2000},
        {"w wake w tick", "T J Y U =no", 40, 2000},
        {"w wake x tick", "T J Y =no", 40, 2000},
        {"w @45 tick g", "T J Y =yes:Y", 40, 2000}, /* the tick is late */
        {"w @45 tick", "T J U =no", 40, 45},
        {"w wake w wake", "T J Y U =no", 40, 40},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        uint64_t end = rows[i].end_ms * MS;
        start(false, rows[i].wait_ms * MS, end);
        line_play(rows[i].steps);
        assert_true(line_did(rows[i].steps, rows[i].does));
    }
    /* Early enough for an answer that takes twice as long as the last one, and
     * for a process that wakes up late. */
    start(false, 80 * MS, 80 * MS);
    line_play("@12 w");
    assert_true(line_wake(&line) == T0 + 56 * MS);
    start(false, 80 * MS, 80 * MS);
    line_play("w");
    assert_true(line_wake(&line) == T0 + 60 * MS);
}

static void nothing_follows_the_end(void **state)
{
    (void)state;
    start(false, NEVER, NEVER);
    line_play("cancel g w told up none tick cancel");
    assert_true(line_did("after the end", "T J U =cancelled"));
    assert_int_equal(line_verdict(&line), LINE_CANCELLED);
}

/* An answer that comes after its request was given up is none. */
static void an_answer_that_nobody_waits_for(void **state)
{
    (void)state;
    start(false, NEVER, NEVER);
    line_play("silence g");
    assert_int_equal(line_verdict(&line), LINE_OPEN);
    line_play("wake w g");
    assert_true(line_did("late answers", "T J U T J"));
}

/* --------------------------------------------------------------- the numbers
 */

static void lease_and_window(void **state)
{
    static const struct {
        uint32_t ttl_ms, max_ttl_ms, lease_ms, window;
    } rows[] = {
        {20, 60000, 120, 11},
        {1000, 60000, 1100, 11},
        {1010, 60000, 1111, 11},
        {2000, 60000, 2200, 21},
        {29990, 60000, 32989, 289},
        {30000, 60000, 33000, 290},
        {57000, 60000, 60000, 290},
        {59000, 60000, 60000, 290},
        {60000, 60000, 60000, 290},
        {100, 50, 100, 11},
        {UINT32_MAX, UINT32_MAX, UINT32_MAX, 290},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct line_terms terms = {
            .ttl_ms = rows[i].ttl_ms, .max_ttl_ms = rows[i].max_ttl_ms};
        assert_int_equal(line_lease_ms(&terms), rows[i].lease_ms);
        assert_int_equal(line_window(&terms), rows[i].window);
    }
}

/* When the token shows next that it waits, after that answer. */
static void assert_next(const struct line_terms *terms, struct outcome outcome,
    uint64_t least, uint64_t most)
{
    uint64_t lowest = NEVER, highest = 0;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        line = (struct line){0};
        now = joined_at = T0;
        trace[0] = '\0';
        line_start(&line, terms, true, seed, now);
        drain();
        say(outcome);
        assert_between(line_wake(&line) - T0, least, most);
        lowest = earlier(lowest, line_wake(&line) - T0);
        highest = later(highest, line_wake(&line) - T0);
    }
    /* ... and it is spread over all of that time. */
    assert_true(lowest - least <= (most - least) / 10);
    assert_true(most - highest <= (most - least) / 10);
}

static void when_it_shows_that_it_waits(void **state)
{
    static const struct {
        uint32_t ttl_ms, ahead;
        uint64_t beat_ms, look_ms;
    } rows[] = {
        {20, 1, 101, 100},
        {1000, 64, 200, 100},
        {2000, 64, 400, 200},
        {2000, 640, 2200, 200},
        {2000, 10000, 5000, 200},
        {2000, UINT32_MAX, 5000, 200},
        {30000, 1, 3046, 101},
        {30000, 64, 5000, 200},
        {30000, 640, 5000, 1100},
        {60000, 10000, 5000, 3000},
    };
    struct line_terms terms = line_terms(NEVER, NEVER);
    struct outcome waits = busy(0), first = busy(LEFT_UNKNOWN);
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        uint64_t beat = rows[i].beat_ms * MS, look = rows[i].look_ms * MS;
        terms.ttl_ms = rows[i].ttl_ms;
        waits.ahead = rows[i].ahead;
        waits.left_ms = 0;
        messages.state = MESSAGES_UP;
        assert_next(&terms, waits, beat - beat / 10, beat + MS);
        messages.state = MESSAGES_COMING;
        assert_next(&terms, waits, beat - beat / 10, beat + MS);
        assert_next(&terms, first, 50 * MS, 100 * MS);
        messages.state = MESSAGES_NONE;
        waits.left_ms = INT64_MAX;
        assert_next(&terms, waits, look / 2, look + MS);
    }
    messages.state = MESSAGES_UP;
    first.left_ms = 0;
    assert_next(&terms, first, MS, MS);
    first.left_ms = 20;
    assert_next(&terms, first, 21 * MS, 21 * MS);
    first.left_ms = LEFT_UNKNOWN;
    assert_next(&terms, first, 50 * MS, 100 * MS);
    first.left_ms = INT64_MAX;
    assert_next(&terms, first, 50 * MS, 100 * MS);
}

static void delays_after_faults_grow(void **state)
{
    (void)state;
    uint64_t most = 10 * MS;
    start(false, NEVER, NEVER);
    for (int i = 0; i < 20; i++) {
        line_step("z");
        assert_between(line_wake(&line) - now, most / 2, most);
        most = earlier(2 * most, 500 * MS);
        line_step("wake");
    }
    line_play("w wake z");
    assert_between(line_wake(&line) - now, 5 * MS, 10 * MS);
}

/* A hint that comes while a STAY is under way makes its answer that of the
 * first in line. If that STAY fails, the next answer says who is the first. */
static void a_hint_is_about_the_request_under_way(void **state)
{
    static const char *const fails[] = {"z", "u", "silence"};
    (void)state;
    start(true, NEVER, NEVER);
    line_play("w wake");
    line_on_first(&line, now);
    line_step("w");
    assert_int_equal(line.ahead, 0);
    for (size_t i = 0; i < sizeof(fails) / sizeof(*fails); i++) {
        start(true, NEVER, NEVER);
        line_play("w wake");
        line_on_first(&line, now);
        line_step(fails[i]);
        line_play("wake w");
        assert_int_equal(line.ahead, 1);
    }
}

static void patience_ends_with_the_call(void **state)
{
    (void)state;
    start(false, NEVER, NEVER);
    assert_true(line_wake(&line) == T0 + PATIENCE);
    start(false, 100 * MS, 200 * MS);
    assert_true(line_wake(&line) == T0 + 200 * MS);
    line_step("w");
    assert_true(line_wake(&line) <= T0 + 100 * MS);
    line_tick(&line, line_wake(&line) - 1);
    drain();
    assert_true(line_did("too early", "T J"));
}

/* ------------------------------------------------------ a key without an end
 */

static void a_key_without_an_end_is_looked_into(void **state)
{
    (void)state;
    struct line_terms terms = line_terms(NEVER, NEVER);
    struct outcome forever = busy(LEFT_FOREVER);
    forever.ahead = 1;
    start(true, NEVER, NEVER);
    say(forever); /* somebody else is the first */
    assert_true(line_did("not first", "J"));
    forever.ahead = 0;
    for (unsigned i = 0; i < 5; i++) { /* the same struct line, each time */
        line_step("wake");
        say(forever);
        assert_int_equal(line_verdict(&line), LINE_UNUSABLE);
        assert_int_equal(line.fault, FAULT_NONE);
        uint64_t looked = now;
        line_start(&line, &terms, false, LINE_SEED, now);
        trace[0] = '\0';
        drain();
        say(forever);
        while (line_wake(&line) < looked + NS_PER_S) {
            line_step("wake");
            say(forever);
            assert_int_equal(line_verdict(&line), LINE_OPEN);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(each_answer_with_each_message, set_up),
        cmocka_unit_test_setup(why_it_cannot_be_used, set_up),
        cmocka_unit_test_setup(each_end_in_each_state, set_up),
        cmocka_unit_test_setup(what_never_left, set_up),
        cmocka_unit_test_setup(a_wait_that_is_over_joins_no_more, set_up),
        cmocka_unit_test_setup(it_asks_once_more_at_the_end, set_up),
        cmocka_unit_test_setup(nothing_follows_the_end, set_up),
        cmocka_unit_test_setup(an_answer_that_nobody_waits_for, set_up),
        cmocka_unit_test_setup(lease_and_window, set_up),
        cmocka_unit_test_setup(when_it_shows_that_it_waits, set_up),
        cmocka_unit_test_setup(delays_after_faults_grow, set_up),
        cmocka_unit_test_setup(a_hint_is_about_the_request_under_way, set_up),
        cmocka_unit_test_setup(patience_ends_with_the_call, set_up),
        cmocka_unit_test_setup(a_key_without_an_end_is_looked_into, set_up),
    };
    return cmocka_run_group_tests_name("line", tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * Waiting in line: how a wait ends in each of its states, and when the machine
 * wakes. Single cases are in unit/scenes/line.scenes and line_messages.scenes.
 */
#include "unit/scene_parts.h"

/* ------------------------------------------------------- the end of the wait
 */

enum how { WAIT_OVER, CALL_OVER, CANCELLED, HOWS };
static const char *const hows[] = {"wait over", "call over", "cancelled"};

/* A state, by the steps that lead to it, and what follows 4 ms later, when
 * nothing more is answered; that is too late for a last look if the call ends
 * then. A request that is under way is waited for until the end of the call. */
static const struct end_row {
    const char *name, *steps, *did, *ends[HOWS];
} end_rows[] = {
    {"JOIN unanswered", "", "Sj", {"U =unknown", "U =unknown", "U =cancelled"}},
    {"in line", "w", "Sj", {"Ss L U =unknown", "U =no", "U =cancelled"}},
    {"STAY unanswered", "w wake", "Sj Ss",
        {"L U =unknown", "U =unknown", "U =cancelled"}},
    {"STAY failed", "w wake f", "Sj Ss",
        {"U =unknown", "Ss U =unknown", "U =cancelled"}},
    {"STAY given up", "w wake wake", "Sj Ss L",
        {"U =unknown", "U =unknown", "U =cancelled"}},
    {"JOIN failed", "f", "Sj", {"=fault", "=fault", "=cancelled"}},
    {"JOIN failed, unsure", "u", "Sj U",
        {"=unknown", "=unknown", "=cancelled"}},
    {"JOIN given up", "wake", "Sj U", {"=unknown", "=unknown", "=cancelled"}},
    {"its place lost", "w wake n", "Sj Ss T Sj",
        {"U =unknown", "U =unknown", "U =cancelled"}},
    {"in line after a fault", "u wake w", "Sj U T Sj",
        {"Ss L U =unknown", "U =no", "U =cancelled"}},
    {"told, but the JOIN is older than a lease", "w @1078 message", "Sj Ss",
        {"L U =unknown", "U =unknown", "U =cancelled"}},
    {"granted too late", "w wake @1300 g", "Sj Ss U T Sj",
        {"U =unknown", "U =late", "U =cancelled"}},
    {"granted too late, then in line", "w wake @1300 g w", "Sj Ss U T Sj",
        {"Ss L U =unknown", "U =no", "U =cancelled"}},
};

/* asked: the lock itself was asked for before, with this token. */
static unsigned ends_otherwise(
    const struct end_row *row, bool asked, enum how how)
{
    char with[128], wanted[128];
    const char *first = asked ? "asked" : "";
    scene_begin(&line_machine, first);
    scene_play(row->steps);
    double over = (double)(scene.now - T0) / (double)MS + 4;
    snprintf(with, sizeof(with), "%s wait=%.6f end=%.6f", first, over,
        how == CALL_OVER ? over : over + 2000);
    scene_begin(&line_machine, with);
    scene_play(row->steps);
    scene_play(how == CANCELLED ? "cancel silence" : "silence");
    snprintf(wanted, sizeof(wanted), "%s%s %s", asked ? "" : "T ", row->did,
        row->ends[how]);
    if (!strcmp(scene.trace, wanted))
        return 0;
    print_error("%s%s, %s:\n  seen      %s\n  expected  %s\n", row->name,
        asked ? ", asked before" : "", hows[how], scene.trace, wanted);
    return 1;
}

static void each_end_in_each_state(void **state)
{
    (void)state;
    unsigned wrong = 0;
    for (size_t i = 0; i < sizeof(end_rows) / sizeof(*end_rows); i++) {
        for (unsigned how = 0; how < HOWS; how++) {
            wrong += ends_otherwise(&end_rows[i], false, (enum how)how);
            wrong += ends_otherwise(&end_rows[i], true, (enum how)how);
        }
    }
    assert_int_equal(wrong, 0);
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

/* When the token shows next that it waits, after that answer, with each seed.
 */
static void assert_next(
    uint32_t ttl_ms, struct outcome outcome, uint64_t least, uint64_t most)
{
    uint64_t lowest = NEVER, highest = 0;
    struct line_terms terms = line_terms();
    terms.ttl_ms = ttl_ms;
    outcome.sent_at = T0;
    outcome.connection = 1;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        line = (struct line){0};
        line_start(&line, &terms, true, seed, T0);
        drain();
        line_outcome(&line, &outcome, T0);
        drain();
        assert_between(line_wake(&line) - T0, least, most);
        lowest = earlier(lowest, line_wake(&line) - T0);
        highest = later(highest, line_wake(&line) - T0);
        scene.trace[0] = '\0';
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
    struct outcome waits = {.kind = OUTCOME_BUSY};
    struct outcome first = {.kind = OUTCOME_BUSY, .left_ms = LEFT_UNKNOWN};
    (void)state;
    scene_begin(&line_machine, "");
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        uint64_t beat = rows[i].beat_ms * MS, look = rows[i].look_ms * MS;
        uint32_t ttl_ms = rows[i].ttl_ms;
        waits.ahead = rows[i].ahead;
        waits.left_ms = 0;
        messages.state = MESSAGES_UP;
        assert_next(ttl_ms, waits, beat - beat / 10, beat + MS);
        messages.state = MESSAGES_COMING;
        assert_next(ttl_ms, waits, beat - beat / 10, beat + MS);
        assert_next(ttl_ms, first, 50 * MS, 100 * MS);
        messages.state = MESSAGES_NONE;
        waits.left_ms = INT64_MAX;
        assert_next(ttl_ms, waits, look / 2, look + MS);
    }
    messages.state = MESSAGES_UP;
    first.left_ms = 0;
    assert_next(TTL_MS, first, MS, MS);
    first.left_ms = 20;
    assert_next(TTL_MS, first, 21 * MS, 21 * MS);
    first.left_ms = LEFT_UNKNOWN;
    assert_next(TTL_MS, first, 50 * MS, 100 * MS);
    first.left_ms = INT64_MAX;
    assert_next(TTL_MS, first, 50 * MS, 100 * MS);
}

static void delays_after_faults_grow(void **state)
{
    (void)state;
    uint64_t most = 10 * MS;
    scene_begin(&line_machine, "");
    for (int i = 0; i < 20; i++) {
        scene_play("f");
        assert_between(line_wake(&line) - scene.now, most / 2, most);
        most = earlier(2 * most, 500 * MS);
        scene_play("wake");
    }
    scene_play("w wake f");
    assert_between(line_wake(&line) - scene.now, 5 * MS, 10 * MS);
}

/* A key without an end that the first in line meets ends the wait; but then not
 * again for a second. */
static void a_key_without_an_end_is_looked_into(void **state)
{
    (void)state;
    scene_begin(&line_machine, "asked");
    struct line_terms terms = line_terms();
    struct outcome forever = {
        .kind = OUTCOME_BUSY, .left_ms = LEFT_FOREVER, .ahead = 1};
    place_answer(TRACK_CALL, 0, &forever); /* another one is the first */
    drain();
    assert_string_equal(scene.trace, "Sj");
    forever.ahead = 0;
    for (unsigned i = 0; i < 5; i++) { /* the same struct line, each time */
        scene_play("wake");
        place_answer(TRACK_CALL, 0, &forever);
        drain();
        assert_int_equal(line_verdict(&line), LINE_UNUSABLE);
        assert_int_equal(line.fault, FAULT_NONE);
        uint64_t looked = scene.now;
        line_start(&line, &terms, false, SCENE_SEED, scene.now);
        scene.trace[0] = '\0';
        drain();
        place_answer(TRACK_CALL, 0, &forever);
        while (line_wake(&line) < looked + NS_PER_S) {
            scene_play("wake");
            place_answer(TRACK_CALL, 0, &forever);
            drain();
            assert_int_equal(line_verdict(&line), LINE_OPEN);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_end_in_each_state),
        cmocka_unit_test(lease_and_window),
        cmocka_unit_test(when_it_shows_that_it_waits),
        cmocka_unit_test(delays_after_faults_grow),
        cmocka_unit_test(a_key_without_an_end_is_looked_into),
    };
    return cmocka_run_group_tests_name("line", tests, NULL, NULL);
}

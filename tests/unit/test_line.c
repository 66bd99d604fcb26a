/* SPDX-License-Identifier: MIT */
/*
 * Waiting in line: when the machine wakes. What each answer leads to, and how
 * a wait ends, is in unit/scenes/line.scenes and line_messages.scenes.
 */
#include "unit/scene_parts.h"

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
        cmocka_unit_test(lease_and_window),
        cmocka_unit_test(when_it_shows_that_it_waits),
        cmocka_unit_test(a_key_without_an_end_is_looked_into),
    };
    return cmocka_run_group_tests_name("line", tests, NULL, NULL);
}

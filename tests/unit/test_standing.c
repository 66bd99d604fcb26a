/* SPDX-License-Identifier: MIT */
/*
 * May a server vote, and if not, why and until when. Times are of a clock
 * that began long before the servers.
 */
#include "support/test.h"

#include "base/deadline.h"
#include "core/standing.h"

#define S NS_PER_S
#define T0 (UINT64_C(1000000) * S)
/* The longest lease of 60 s, its drift of 602 ms, in whole seconds. */
#define NEEDED 61

static struct standing s;
static struct standing_terms terms;
static struct told told;

static int set_up(void **state)
{
    (void)state;
    s = (struct standing){0};
    terms = (struct standing_terms){
        .max_ttl_ms = 60000, .drift_ppm = 10000, .guard = true};
    told = (struct told){.run_id = "aaaa", .role = "master", .uptime_s = 5000};
    return 0;
}

static void judge(uint64_t now)
{
    standing_judge(&s, &told, &terms, false, now);
}

static const char *words(uint64_t now)
{
    static struct text text;
    text_clear(&text);
    standing_words(&s, now, &text);
    return text.data;
}

static void votes_from(uint64_t at)
{
    assert_int_equal(s.votes_at, at);
    assert_false(standing_votes(&s, at - 1));
    assert_int_equal(standing_fault(&s, at - 1), FAULT_RESTARTED);
    assert_true(standing_votes(&s, at));
    assert_int_equal(standing_fault(&s, at), FAULT_NONE);
    assert_string_equal(words(at), "");
}

/* What it had granted before is gone, whether it keeps its data or not. */
static void a_replica_that_is_promoted_waits(void **state)
{
    (void)state;
    for (int durable = 0; durable <= 1; durable++) {
        set_up(NULL);
        terms.durable = durable;
        judge(T0);
        assert_true(standing_votes(&s, T0));
        told.role = "slave";
        judge(T0 + S);
        assert_false(standing_votes(&s, T0 + S));
        told.role = "master";
        judge(T0 + 2 * S);
        votes_from(T0 + (2 + NEEDED) * S);
        judge(T0 + 3 * S); /* and is not put off again */
        votes_from(T0 + (2 + NEEDED) * S);
    }
}

static void old_one_votes(void **state)
{
    (void)state;
    judge(T0);
    assert_true(standing_votes(&s, T0));
    assert_string_equal(words(T0), "");
}

/* uptime - 1 >= ceil(max_ttl + drift), to the second. */
static void by_uptime(void **state)
{
    (void)state;
    for (int64_t uptime = 0; uptime < 80; uptime++) {
        set_up(NULL);
        told.uptime_s = uptime;
        judge(T0);
        uint64_t age = uptime > 0 ? (uint64_t)uptime - 1 : 0;
        if (age >= NEEDED)
            assert_true(standing_votes(&s, T0));
        else
            votes_from(T0 + (NEEDED - age) * S);
    }
}

static void by_max_ttl(void **state)
{
    (void)state;
    static const struct {
        uint32_t max_ttl_ms, drift_ppm;
        uint64_t needed;
    } rows[] = {{1000, 10000, 2}, {3000, 10000, 4}, {990, 1, 1}, {20, 1, 1},
        {2147483647, 500000, 3221226}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        set_up(NULL);
        terms.max_ttl_ms = rows[i].max_ttl_ms;
        terms.drift_ppm = rows[i].drift_ppm;
        told.uptime_s = 0;
        judge(T0);
        votes_from(T0 + rows[i].needed * S);
    }
}

/* The same process again never votes sooner than was said before. */
static void a_stepped_clock_brings_nothing_forward(void **state)
{
    (void)state;
    told.uptime_s = 1;
    judge(T0);
    votes_from(T0 + NEEDED * S);
    told.uptime_s = 100000;
    judge(T0 + 2 * S);
    votes_from(T0 + NEEDED * S);
}

static void another_process(void **state)
{
    (void)state;
    judge(T0);
    told.run_id = "bbbb";
    told.uptime_s = 1000000; /* whatever that says */
    judge(T0 + 100 * S);
    votes_from(T0 + (100 + NEEDED) * S);
    assert_contains(words(T0 + 110 * S), "another process than before since "
                                         "10 s");
    assert_contains(words(T0 + 110 * S), "votes again in 52 s");
    /* A third one, in the meantime, begins anew. */
    told.run_id = "cccc";
    judge(T0 + 120 * S);
    votes_from(T0 + (120 + NEEDED) * S);
    /* It stays in quarantine, with the same process, until then. */
    judge(T0 + 121 * S);
    votes_from(T0 + (120 + NEEDED) * S);
}

static void seconds_are_told(void **state)
{
    (void)state;
    told.uptime_s = 11;
    judge(T0);
    assert_contains(words(T0 + 2 * S), "started 12 s ago");
    assert_contains(words(T0 + 2 * S), "it votes again in 50 s");
}

/* 2.2 tells no run_id, and one that does may be asked later. */
static void no_run_id(void **state)
{
    (void)state;
    told.run_id = "";
    judge(T0);
    assert_true(standing_votes(&s, T0));
    told.run_id = "aaaa";
    judge(T0 + S);
    assert_true(standing_votes(&s, T0 + S));
    told.run_id = "";
    judge(T0 + 2 * S);
    told.run_id = "bbbb";
    judge(T0 + 3 * S);
    votes_from(T0 + (3 + NEEDED) * S);
}

static void bars(void **state)
{
    (void)state;
    static const struct {
        struct told told;
        bool durable, twin;
        enum fault fault;
        const char *words;
    } rows[] = {
        {{"a", "", -1, true, false, false}, false, false, FAULT_UNTOLD,
            "+info"},
        {{"a", "master", -1, false, false, false}, false, false, FAULT_UNTOLD,
            "uptime"},
        {{"a", "slave", 5000, false, false, false}, false, false,
            FAULT_ELSEWHERE, "replica"},
        {{"a", "replica", 5000, false, false, false}, false, false,
            FAULT_ELSEWHERE, "replica"},
        {{"a", "master", 5000, false, true, false}, true, false, FAULT_FORGETS,
            "aof_enabled:0"},
        {{"a", "master", 5000, false, false, false}, false, true, FAULT_SETUP,
            "same server"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        set_up(NULL);
        terms.durable = rows[i].durable;
        standing_judge(&s, &rows[i].told, &terms, rows[i].twin, T0);
        assert_false(standing_votes(&s, NEVER));
        assert_false(standing_proves(&s));
        assert_int_equal(standing_fault(&s, T0), rows[i].fault);
        assert_contains(words(T0), rows[i].words);
        told.run_id = "a";
        terms.durable = false;
        judge(T0 + S); /* mended; a replica has its time to wait */
        bool waits = rows[i].fault == FAULT_ELSEWHERE;
        assert_int_equal(standing_votes(&s, T0 + S), !waits);
        assert_true(standing_votes(&s, T0 + (1 + NEEDED) * S));
    }
}

/* What bars it for a while does not end its quarantine. */
static void quarantine_outlasts_a_bar(void **state)
{
    (void)state;
    told.uptime_s = 1;
    judge(T0);
    told.uptime_s = 2;
    standing_judge(&s, &told, &terms, true, T0 + S);
    assert_int_equal(standing_fault(&s, T0 + S), FAULT_SETUP);
    told.refused = true;
    told.uptime_s = -1;
    judge(T0 + 2 * S);
    assert_int_equal(standing_fault(&s, T0 + 2 * S), FAULT_UNTOLD);
    told.refused = false;
    told.uptime_s = 100000;
    judge(T0 + 3 * S);
    votes_from(T0 + NEEDED * S);
    assert_true(standing_proves(&s));
}

/* Its age is then only what was seen of it. */
static void a_clock_that_was_set_back(void **state)
{
    (void)state;
    told.uptime_s = 0;
    told.set_back = true;
    judge(T0);
    assert_contains(words(T0 + 3 * S), "its clock was set back");
    assert_contains(words(T0 + 3 * S), "3 s ago");
    assert_contains(words(T0 + 3 * S), "votes again in 59 s");
    judge(T0 + 30 * S); /* a new connection to the same process */
    votes_from(T0 + NEEDED * S);
    judge(T0 + 2 * NEEDED * S);
    assert_true(standing_votes(&s, T0 + 2 * NEEDED * S));
    told.run_id = "bbbb";
    judge(T0 + 3 * NEEDED * S);
    votes_from(T0 + 4 * NEEDED * S);
    told.run_id = "";
    judge(T0 + 5 * NEEDED * S);
    votes_from(T0 + 6 * NEEDED * S);
    set_up(NULL); /* while it is set back, under a client that knows its age */
    judge(T0);
    told.uptime_s = 0;
    told.set_back = true;
    judge(T0 + S);
    votes_from(T0 + (1 + NEEDED) * S);
}

static void a_durable_one_is_exempt(void **state)
{
    (void)state;
    terms.durable = true;
    told.uptime_s = 0;
    judge(T0);
    assert_true(standing_votes(&s, T0));
    told.run_id = "bbbb";
    judge(T0 + S);
    assert_true(standing_votes(&s, T0 + S));
}

static void without_the_guard(void **state)
{
    (void)state;
    terms.guard = false;
    told.uptime_s = 0;
    judge(T0);
    told.run_id = "bbbb";
    judge(T0);
    assert_true(standing_votes(&s, T0));
    told.refused = true;
    told.uptime_s = -1;
    judge(T0);
    assert_true(standing_votes(&s, T0));
    told.role = "slave"; /* that it is never */
    judge(T0);
    assert_false(standing_votes(&s, T0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(old_one_votes, set_up),
        cmocka_unit_test_setup(a_replica_that_is_promoted_waits, set_up),
        cmocka_unit_test_setup(by_uptime, set_up),
        cmocka_unit_test_setup(by_max_ttl, set_up),
        cmocka_unit_test_setup(a_stepped_clock_brings_nothing_forward, set_up),
        cmocka_unit_test_setup(another_process, set_up),
        cmocka_unit_test_setup(seconds_are_told, set_up),
        cmocka_unit_test_setup(no_run_id, set_up),
        cmocka_unit_test_setup(bars, set_up),
        cmocka_unit_test_setup(quarantine_outlasts_a_bar, set_up),
        cmocka_unit_test_setup(a_clock_that_was_set_back, set_up),
        cmocka_unit_test_setup(a_durable_one_is_exempt, set_up),
        cmocka_unit_test_setup(without_the_guard, set_up),
    };
    return cmocka_run_group_tests_name("standing", tests, NULL, NULL);
}

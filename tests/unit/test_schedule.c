/* SPDX-License-Identifier: MIT */
/*
 * When a lease is prolonged and when it is lost, over made-up time: the loss
 * comes before the deadline whatever was or was not answered, and from nothing
 * but the deadline.
 */
#include "support/test.h"

#include "base/deadline.h"
#include "core/schedule.h"

#define TTL_MS 3000
#define START (100 * NS_PER_S)
#define DRIFT (32 * NS_PER_MS)
#define LEASE (TTL_MS * NS_PER_MS - DRIFT)
#define LEAD (TTL_MS / 20 * NS_PER_MS)
#define PERIOD (TTL_MS / 3 * NS_PER_MS)
#define GRID (TTL_MS * NS_PER_MS / 1000)

static struct schedule h;

static void begin(uint64_t ends, uint64_t seed)
{
    struct schedule_terms terms = {.ttl_ms = TTL_MS,
        .deadline = START + LEASE,
        .ends = ends,
        .seed = seed};
    schedule_start(&h, &terms, START);
}

static void the_first_ones_are_spread(void **state)
{
    (void)state;
    unsigned parts[8] = {0};
    for (uint64_t seed = 0; seed < 1000; seed++) {
        begin(NEVER, seed);
        uint64_t wake = schedule_wake(&h) - START;
        assert_true(wake > PERIOD / 5 - GRID && wake <= PERIOD);
        parts[wake < PERIOD / 5
                  ? 0
                  : (wake - PERIOD / 5) * 8 / (PERIOD - PERIOD / 5 + 1)]++;
    }
    for (int i = 0; i < 8; i++)
        assert_in_range(parts[i], 90, 160);
}

/* Spread, but not one by one: what is due soon after another goes with it. */
static void many_go_together(void **state)
{
    (void)state;
    enum { LOCKS = 20000 };
    static unsigned at[PERIOD / GRID + 2];
    unsigned most = 0;
    for (uint64_t seed = 0; seed < LOCKS; seed++) {
        begin(NEVER, seed);
        assert_int_equal(schedule_wake(&h) % GRID, 0);
        at[(schedule_wake(&h) - START) / GRID]++;
    }
    for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++)
        most = at[i] > most ? at[i] : most;
    assert_in_range(most, LOCKS / (PERIOD / GRID), LOCKS / 100);
}

/* Of a grant that came late, or of a lock that was taken over. */
static void little_is_left_at_first(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct schedule_terms terms = {.ttl_ms = TTL_MS,
            .deadline = START + 400 * NS_PER_MS,
            .ends = NEVER,
            .seed = seed};
        schedule_start(&h, &terms, START);
        uint64_t at = schedule_wake(&h);
        assert_true(at >= START && at <= START + 200 * NS_PER_MS);
        assert_int_equal(schedule_due(&h, at), SCHEDULE_RENEW);
    }
}

static void each_third_of_the_lease(void **state)
{
    (void)state;
    begin(NEVER, 1);
    for (int i = 0; i < 100; i++) {
        uint64_t at = schedule_wake(&h);
        assert_int_equal(schedule_due(&h, at - 1), SCHEDULE_WAIT);
        assert_int_equal(schedule_due(&h, at), SCHEDULE_RENEW);
        assert_int_equal(schedule_ttl_ms(&h, at), TTL_MS);
        schedule_renewal_begun(&h, at);
        assert_int_equal(schedule_due(&h, at), SCHEDULE_WAIT); /* not twice */
        /* The answer comes late: that does not move the next one. */
        schedule_renewed(&h, at + LEASE, at + 200 * NS_PER_MS);
        uint64_t pause = schedule_wake(&h) - at;
        assert_true(pause > PERIOD * 9 / 10 - GRID && pause <= PERIOD);
    }
}

/* What the loss is told by, and when. */
static void the_deadline_ends_it(void **state)
{
    (void)state;
    uint64_t lost_at = START + LEASE - LEAD;
    begin(NEVER, 1);
    uint64_t at = schedule_wake(&h);
    schedule_renewal_begun(&h, at); /* and no answer */
    assert_int_equal(schedule_wake(&h), lost_at);
    assert_int_equal(schedule_due(&h, lost_at - 1), SCHEDULE_WAIT);
    assert_int_equal(schedule_due(&h, lost_at), SCHEDULE_LOST);
    assert_int_equal(schedule_due(&h, lost_at + 9 * NS_PER_S), SCHEDULE_LOST);
    /* A stop in front of a renewal that was due. */
    begin(NEVER, 2);
    assert_int_equal(schedule_due(&h, lost_at), SCHEDULE_LOST);
}

static void failures_are_tried_again_soon(void **state)
{
    (void)state;
    begin(NEVER, 1);
    uint64_t at = schedule_wake(&h), first = at, lost_at = START + LEASE - LEAD;
    unsigned tries = 0;
    while (schedule_due(&h, at) == SCHEDULE_RENEW) {
        tries++;
        schedule_renewal_begun(&h, at);
        assert_true(schedule_answer_by(&h, 2 * NS_PER_S, at) <= lost_at);
        schedule_failed(&h, at + 10 * NS_PER_MS);
        assert_int_equal(h.failing_since, first);
        uint64_t next = schedule_wake(&h);
        assert_true(next - at <= 310 * NS_PER_MS);
        at = next;
    }
    assert_int_equal(schedule_due(&h, at), SCHEDULE_LOST);
    assert_int_equal(at, lost_at);
    assert_true(tries >= 6);
}

static void an_outage_is_forgotten(void **state)
{
    (void)state;
    begin(NEVER, 1);
    uint64_t at = schedule_wake(&h);
    schedule_renewal_begun(&h, at);
    schedule_failed(&h, at + 5);
    at = schedule_wake(&h);
    schedule_renewal_begun(&h, at);
    schedule_renewed(&h, at + LEASE, at + 5);
    assert_int_equal(h.failing_since, 0);
    assert_true(schedule_wake(&h) - at > PERIOD * 9 / 10 - GRID);
    /* A deadline never comes nearer. */
    schedule_renewed(&h, at, at + 6);
    assert_int_equal(h.deadline, at + LEASE);
}

/* The owner prolongs it, too. */
static void an_extend_beside_it(void **state)
{
    (void)state;
    begin(NEVER, 1);
    uint64_t at = START + PERIOD / 10;
    schedule_extended(&h, at + LEASE, at);
    assert_int_equal(h.deadline, at + LEASE);
    assert_true(schedule_wake(&h) - at > PERIOD * 9 / 10 - GRID);
    /* While one is under way there is no second one. */
    at = schedule_wake(&h);
    schedule_renewal_begun(&h, at);
    schedule_extended(&h, at + 1 + LEASE, at + 1);
    assert_int_equal(schedule_wake(&h), at + 1 + LEASE - LEAD);
    assert_int_equal(schedule_due(&h, at + PERIOD + 1), SCHEDULE_WAIT);
    schedule_renewed(&h, at + LEASE, at + 2);
    assert_int_equal(h.deadline, at + 1 + LEASE);
    assert_true(schedule_wake(&h) <= at + PERIOD);
}

/* max_hold_ms: the last renewal asks for what is left of it. */
static void it_ends_with_the_most(void **state)
{
    (void)state;
    for (uint64_t most = TTL_MS; most < 30000; most += 137) {
        uint64_t ends = START + most * NS_PER_MS, at, deadline = START + LEASE;
        begin(ends, most);
        while (schedule_due(&h, at = schedule_wake(&h)) == SCHEDULE_RENEW) {
            uint32_t ttl_ms = schedule_ttl_ms(&h, at);
            assert_true(at + ttl_ms * NS_PER_MS <= ends);
            assert_true(at + ttl_ms * NS_PER_MS > deadline);
            schedule_renewal_begun(&h, at);
            deadline = at + ttl_ms * NS_PER_MS - DRIFT;
            schedule_renewed(&h, deadline, at + 1);
        }
        assert_true(h.deadline <= ends && ends - h.deadline <= PERIOD / 4);
    }
}

static void one_answer_is_waited_for_a_tenth(void **state)
{
    (void)state;
    begin(NEVER, 1);
    assert_int_equal(schedule_answer_by(&h, 2 * NS_PER_S, START),
        START + TTL_MS / 10 * NS_PER_MS);
    assert_int_equal(
        schedule_answer_by(&h, 20 * NS_PER_MS, START), START + 20 * NS_PER_MS);
    /* And for two WAITs: the one before it, and its own. */
    h.terms.copies_ns = 600 * NS_PER_MS;
    assert_int_equal(schedule_answer_by(&h, 2 * NS_PER_S, START),
        START + 1200 * NS_PER_MS + TTL_MS / 10 * NS_PER_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_ones_are_spread),
        cmocka_unit_test(many_go_together),
        cmocka_unit_test(little_is_left_at_first),
        cmocka_unit_test(each_third_of_the_lease),
        cmocka_unit_test(the_deadline_ends_it),
        cmocka_unit_test(failures_are_tried_again_soon),
        cmocka_unit_test(an_outage_is_forgotten),
        cmocka_unit_test(an_extend_beside_it),
        cmocka_unit_test(it_ends_with_the_most),
        cmocka_unit_test(one_answer_is_waited_for_a_tenth),
    };
    return cmocka_run_group_tests_name("holding", tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * When a lease is renewed, over made-up time: how renewals are spread, how long
 * an answer is waited for, and how long before the deadline a loss is reported.
 * What leads to a loss is in unit/scenes/life.scenes.
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

static void a_deadline_never_comes_nearer(void **state)
{
    (void)state;
    begin(NEVER, 1);
    schedule_renewed(&h, START, START + 1);
    assert_int_equal(h.deadline, START + LEASE);
}

/* A twentieth of the lease, at least 2 ms and at most 500 ms. */
static void a_loss_comes_before_the_deadline(void **state)
{
    (void)state;
    static const unsigned rows[][2] = {
        {13, 2}, {40, 2}, {60, 3}, {3000, 150}, {10000, 500}, {60000, 500}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t deadline = START + rows[i][0] * NS_PER_MS;
        uint64_t lost_at = deadline - rows[i][1] * NS_PER_MS;
        struct schedule_terms terms = {
            .ttl_ms = rows[i][0], .deadline = deadline, .ends = NEVER};
        schedule_start(&h, &terms, START);
        assert_int_not_equal(schedule_due(&h, lost_at - 1), SCHEDULE_LOST);
        assert_int_equal(schedule_due(&h, lost_at), SCHEDULE_LOST);
        assert_int_equal(schedule_answer_by(&h, NEVER, lost_at - 1), lost_at);
        schedule_renewal_begun(&h, START); /* then the loss is next */
        assert_int_equal(schedule_wake(&h), lost_at);
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
        cmocka_unit_test(it_ends_with_the_most),
        cmocka_unit_test(a_deadline_never_comes_nearer),
        cmocka_unit_test(a_loss_comes_before_the_deadline),
        cmocka_unit_test(one_answer_is_waited_for_a_tenth),
    };
    return cmocka_run_group_tests_name("holding", tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* The earliest timer is at hand, after any order of sets and stops; none is
 * early, and none is forgotten. */
#include "support/test.h"

#include "base/deadline.h"
#include "base/timer.h"

#define TIMERS 100
#define CHILDREN 2 /* of a parent, as in timer.c */

static void assert_heap(const struct timers *t)
{
    assert_true(t->count <= t->owners && t->owners <= t->room);
    size_t set = 0;
    for (size_t i = 0; i < t->count; i++) {
        const struct timer *timer = t->heap[i].timer;
        set += timer->at != NEVER;
        assert_int_equal(timer->heap_slot, i + 1);
        assert_true(t->heap[i].key <= timer->at);
        if (i > 0)
            assert_true(t->heap[(i - 1) / CHILDREN].key <= t->heap[i].key);
    }
    assert_int_equal(t->armed, set);
}

/* Whatever was left of it in the heap goes with its owner. */
static void test_an_owner_ends(void **state)
{
    struct timers t = {0};
    struct timer a = {0}, b = {0};

    (void)state;
    assert_true(timers_reserve(&t));
    assert_true(timers_reserve(&t));
    timer_set(&t, &a, 10);
    timer_set(&t, &b, 20);
    timer_stop(&t, &a);
    assert_int_equal(t.count, 2);
    timers_unreserve(&t, &a);
    assert_heap(&t);
    assert_int_equal(t.count, 1);
    timers_unreserve(&t, &b); /* it was set */
    assert_int_equal(t.count, 0);
    assert_true(timers_next(&t) == NEVER);
    timers_free(&t);
}

static void test_room_follows_owners(void **state)
{
    struct timers t = {0};
    struct timer none = {0};

    (void)state;
    for (int i = 0; i < 1000; i++) {
        assert_true(timers_reserve(&t));
        assert_true(t.room >= t.owners);
    }
    size_t room = t.room;
    for (int i = 0; i < 1000; i++)
        timers_unreserve(&t, &none);
    for (int i = 0; i < 1000; i++)
        assert_true(timers_reserve(&t));
    assert_int_equal(t.room, room);
    timers_free(&t);
    assert_int_equal(t.owners, 0);
}

static uint64_t earliest(const struct timer *timers)
{
    uint64_t at = NEVER;
    for (int i = 0; i < TIMERS; i++)
        if (timers[i].heap_slot != 0 && timers[i].at < at)
            at = timers[i].at;
    return at;
}

static void count_down(struct timers *t, struct timer *timers, uint64_t most)
{
    for (uint64_t at = 0; at < most; at++) {
        assert_true(earliest(timers) >= at);
        while (timers_due(t, at))
            assert_heap(t);
    }
    assert_true(earliest(timers) == NEVER);
}

/* Timers of few different times, however they come and go. */
static void test_equal_times(void **state)
{
    struct timers t = {0};
    struct timer timers[TIMERS];
    unsigned seed = 7;

    (void)state;
    memset(timers, 0, sizeof(timers));
    for (int i = 0; i < TIMERS; i++)
        assert_true(timers_reserve(&t));
    for (int i = 0; i < TIMERS; i++)
        timer_set(&t, &timers[i], 5);
    assert_heap(&t);
    for (int i = 0; i < 40000; i++) {
        seed = seed * 1103515245u + 12345u;
        struct timer *timer = &timers[(seed >> 8) % TIMERS];
        uint64_t at = (seed >> 16) % 20;
        if (seed >> 29 == 0) {
            timer_stop(&t, timer);
        } else if (seed >> 29 == 2) {
            timers_unreserve(&t, timer);
            memset(timer, 0, sizeof(*timer));
            assert_true(timers_reserve(&t));
        } else {
            timer_set(&t, timer, at > 18 ? NEVER : at);
            assert_true(at > 18 ? timer->at == NEVER : timer->at == at);
        }
        if (seed >> 26 == 60)
            timers_due(&t, at);
        assert_true(timers_next(&t) <= earliest(timers));
        assert_true((timers_next(&t) == NEVER) == (earliest(timers) == NEVER));
        assert_heap(&t);
    }
    count_down(&t, timers, 20);
    timers_free(&t);
}

#define MANY 1000000

/* Each comes once, at its time: none early, none late, the earliest first.
 * Every third one was moved to a later time, and every seventh was stopped. */
static void test_a_million(void **state)
{
    struct timers t = {0};
    struct timer *timers = calloc(MANY, sizeof(*timers));
    uint64_t last = 0;
    size_t set = 0, came = 0;

    (void)state;
    assert_non_null(timers);
    for (uint64_t i = 0; i < MANY; i++)
        assert_true(timers_reserve(&t));
    for (uint64_t i = 0; i < MANY; i++) {
        uint64_t at = i * UINT64_C(0x9e3779b97f4a7c15) >> 44;
        timer_set(&t, &timers[i], at);
        if (i % 3 == 0)
            timer_set(&t, &timers[i], at + 1000);
        if (i % 7 == 0)
            timer_stop(&t, &timers[i]);
        set += i % 7 != 0;
    }
    assert_int_equal(t.armed, set);
    while (timers_next(&t) != NEVER) {
        uint64_t now = timers_next(&t);
        assert_true(now >= last);
        last = now;
        for (struct timer *due; (due = timers_due(&t, now)); came++) {
            uint64_t i = (uint64_t)(due - timers);
            uint64_t at = (i * UINT64_C(0x9e3779b97f4a7c15) >> 44) +
                          (i % 3 == 0 ? 1000 : 0);
            assert_true(i % 7 != 0);
            assert_int_equal(at, now);
            assert_int_equal(due->heap_slot, 0);
        }
    }
    assert_int_equal(came, set);
    timers_free(&t);
    free(timers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_owner_ends),
        cmocka_unit_test(test_room_follows_owners),
        cmocka_unit_test(test_equal_times),
        cmocka_unit_test(test_a_million),
    };
    return cmocka_run_group_tests_name("timer", tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * The fence over N servers: who is raised to what, whose word counts, and
 * when it is decided. That the numbers grow is the simulator's to show.
 */
#include "support/test.h"

#include "core/fence.h"
#include "unit/core_rig.h"

#define END (T0 + 100 * MS)

/* Starts with what each server granted (0: it did not), and takes the asks. */
static const char *start(
    struct fence *f, char *words, unsigned servers, const uint64_t *numbers)
{
    static struct ballot ballots[MAX_SERVERS]; /* of one machine at a time */
    struct fence_terms terms = {
        .servers = servers, .ballots = ballots, .end = END};
    struct effect effect;
    for (unsigned i = 0; i < servers; i++)
        ballots[i].fence = numbers[i];
    fence_start(f, &terms);
    words[0] = '\0';
    while (fence_next(f, &effect))
        add_ask(words, &effect);
    return words;
}

static const char *drain(struct fence *f, char *words)
{
    struct effect effect;
    words[0] = '\0';
    while (fence_next(f, &effect))
        add_ask(words, &effect);
    return words;
}

#define WORDS ((char[WORDS_MAX]){0})
#define NUMBERS(...) ((const uint64_t[]){__VA_ARGS__})
#define assert_start(f, servers, numbers, expected)                            \
    assert_string_equal(start(f, WORDS, servers, numbers), expected)
#define assert_asks(f, expected) assert_string_equal(drain(f, WORDS), expected)

static void raised(struct fence *f, unsigned server, uint64_t number)
{
    struct outcome outcome = mine(T0, 1000);
    outcome.fence = number;
    fence_outcome(f, server, &outcome);
}

static void says(struct fence *f, unsigned server, struct outcome outcome)
{
    fence_outcome(f, server, &outcome);
}

/* A lock that was handed over has no number, so the server draws one. */
static void test_drawn_after_a_hand_over(void **state)
{
    (void)state;
    struct fence f;
    assert_start(&f, 1, NUMBERS(0), "S0");
    assert_true(f.value == 0);
    raised(&f, 0, 7);
    assert_int_equal(fence_verdict(&f), VERDICT_YES);
    assert_true(f.value == 7);
    assert_start(&f, 1, NUMBERS(0), "S0");
    raised(&f, 0, 0); /* no number */
    assert_int_equal(fence_verdict(&f), VERDICT_UNKNOWN);
    assert_start(&f, 1, NUMBERS(0), "S0");
    says(&f, 0, plain(OUTCOME_NOT_MINE));
    assert_int_equal(fence_verdict(&f), VERDICT_NO);
    assert_start(&f, 1, NUMBERS(0), "S0");
    says(&f, 0, refused(FAULT_NO_PERMISSION));
    assert_int_equal(fence_verdict(&f), VERDICT_UNKNOWN);
    assert_int_equal(f.fault, FAULT_NO_PERMISSION);
    assert_start(&f, 1, NUMBERS(0), "S0");
    fence_tick(&f, END);
    assert_asks(&f, "L0");
    assert_int_equal(fence_verdict(&f), VERDICT_UNKNOWN);
}

static void test_nothing_to_raise(void **state)
{
    (void)state;
    struct fence f;
    assert_start(&f, 1, NUMBERS(7), "");
    assert_int_equal(fence_verdict(&f), VERDICT_YES);
    assert_int_equal(f.value, 7);
    assert_true(fence_wake(&f) == NEVER);
    assert_start(&f, 3, NUMBERS(9, 0, 9), "");
    assert_int_equal(fence_verdict(&f), VERDICT_YES);
    assert_int_equal(f.value, 9);
}

static void test_quorum_is_raised(void **state)
{
    (void)state;
    struct fence f;
    assert_start(&f, 5, NUMBERS(3, 8, 5, 0, 0), "S0 S2 S3 S4");
    assert_int_equal(f.value, 8);
    assert_true(fence_wake(&f) == END);
    raised(&f, 0, 8);
    assert_int_equal(fence_verdict(&f), VERDICT_OPEN);
    raised(&f, 0, 8); /* heard twice, counted once */
    assert_int_equal(fence_verdict(&f), VERDICT_OPEN);
    raised(&f, 3, 8); /* its grant came late */
    assert_asks(&f, "L2 L4");
    assert_int_equal(fence_verdict(&f), VERDICT_YES);
    says(&f, 2, plain(OUTCOME_NOT_MINE)); /* too late to matter */
    assert_int_equal(fence_verdict(&f), VERDICT_YES);
}

/* Its own number was higher: it may have been given to a later one, too. */
static void test_higher_does_not_count(void **state)
{
    (void)state;
    struct fence f;
    assert_start(&f, 3, NUMBERS(4, 6, 0), "S0 S2");
    raised(&f, 2, 11);
    assert_int_equal(fence_verdict(&f), VERDICT_OPEN);
    raised(&f, 0, 6);
    assert_int_equal(fence_verdict(&f), VERDICT_YES);
    assert_start(&f, 3, NUMBERS(4, 6, 0), "S0 S2");
    raised(&f, 2, 11);
    raised(&f, 0, 5); /* not what was asked for */
    assert_int_equal(fence_verdict(&f), VERDICT_UNKNOWN);
}

static void test_lost(void **state)
{
    (void)state;
    struct fence f;
    assert_start(&f, 3, NUMBERS(4, 6, 0), "S0 S2");
    says(&f, 0, plain(OUTCOME_NOT_MINE));
    assert_int_equal(fence_verdict(&f), VERDICT_OPEN);
    says(&f, 2, plain(OUTCOME_NOT_MINE));
    assert_int_equal(fence_verdict(&f), VERDICT_NO);
}

static void test_faults(void **state)
{
    (void)state;
    struct fence f;
    assert_start(&f, 5, NUMBERS(1, 2, 3, 0, 0), "S0 S1 S3 S4");
    says(&f, 0, refused(FAULT_RETRY));
    says(&f, 3, plain(OUTCOME_GRANTED)); /* no answer to that */
    assert_int_equal(fence_verdict(&f), VERDICT_OPEN);
    says(&f, 4, cut(T0));
    assert_asks(&f, "L1");
    assert_int_equal(fence_verdict(&f), VERDICT_UNKNOWN);
    assert_int_equal(f.fault, FAULT_NOT_REDIS);
    assert_int_equal(f.permanent, 1); /* what passes is no reason to give up */
    assert_int_equal(f.unanswered, 0);
}

static void test_time_is_over(void **state)
{
    (void)state;
    struct fence f;
    assert_start(&f, 3, NUMBERS(4, 6, 0), "S0 S2");
    fence_tick(&f, END - 1);
    assert_asks(&f, "");
    assert_int_equal(fence_verdict(&f), VERDICT_OPEN);
    fence_tick(&f, END);
    assert_int_equal(fence_verdict(&f), VERDICT_OPEN); /* asks are left */
    assert_asks(&f, "L0 L2");
    assert_int_equal(fence_verdict(&f), VERDICT_UNKNOWN);
    assert_int_equal(f.fault, FAULT_TIMEOUT);
    assert_int_equal(f.unanswered, 2);
    fence_tick(&f, END + 1);
    assert_int_equal(fence_verdict(&f), VERDICT_UNKNOWN);
}

static void test_cancel(void **state)
{
    (void)state;
    struct fence f;
    assert_start(&f, 3, NUMBERS(4, 6, 0), "S0 S2");
    fence_cancel(&f);
    assert_asks(&f, "L0 L2");
    assert_int_equal(fence_verdict(&f), VERDICT_CANCELLED);
    assert_start(&f, 1, NUMBERS(4), "");
    fence_cancel(&f); /* it is over */
    assert_int_equal(fence_verdict(&f), VERDICT_YES);
}

/* Every split of every vote over up to five servers: a yes means a quorum. */
static void test_every_vote(void **state)
{
    (void)state;
    for (unsigned servers = 1; servers <= 5; servers++) {
        unsigned ways = 1;
        for (unsigned i = 0; i < servers; i++)
            ways *= 4;
        for (unsigned way = 0; way < ways; way++) {
            struct fence f;
            uint64_t numbers[MAX_SERVERS] = {5};
            unsigned have = 1, gone = 0;
            start(&f, WORDS, servers, numbers);
            for (unsigned i = 1, rest = way; i < servers; i++, rest /= 4) {
                have += rest % 4 == 0;
                gone += rest % 4 == 1;
                if (rest % 4 == 0)
                    raised(&f, i, 5);
                else if (rest % 4 == 1)
                    says(&f, i, plain(OUTCOME_NOT_MINE));
                else if (rest % 4 == 2)
                    raised(&f, i, 6);
                else
                    says(&f, i, cut(T0));
            }
            drain(&f, WORDS);
            unsigned quorum = quorum_of(servers);
            assert_int_equal(fence_verdict(&f) == VERDICT_YES, have >= quorum);
            assert_true(fence_verdict(&f) != VERDICT_OPEN);
            if (fence_verdict(&f) == VERDICT_NO)
                assert_true(gone > servers - quorum);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drawn_after_a_hand_over),
        cmocka_unit_test(test_nothing_to_raise),
        cmocka_unit_test(test_quorum_is_raised),
        cmocka_unit_test(test_higher_does_not_count),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_time_is_over),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_every_vote),
    };
    return cmocka_run_group_tests_name("fence", tests, NULL, NULL);
}

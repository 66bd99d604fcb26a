/* SPDX-License-Identifier: MIT */
/* Acquire after a grant whose fence did not reach a quorum: it waits like after
 * a round that was lost, takes a fresh token, or ends with what is true. */
#include "support/test.h"

#include "unit/acquire_rig.h"

/* What the fence of a grant came to. */
static struct fence fence_of(enum verdict verdict, enum fault fault)
{
    return (struct fence){.decision = verdict, .fault = fault};
}

/* Three servers grant at once; returns when. */
static uint64_t grant(struct acquire *a, uint64_t wait)
{
    uint64_t now = T0 + MS;
    start(a, 3, wait, deadline_after(wait, NS_PER_S));
    for (unsigned i = 0; i < 2; i++)
        say(a, i, granted(T0), now);
    assert_asks(a, "L2");
    assert_int_equal(acquire_verdict(a), VERDICT_YES);
    return now;
}

static void goes_on_with_a_fresh_token(void **state)
{
    (void)state;
    struct acquire a;
    struct fence f = fence_of(VERDICT_UNKNOWN, FAULT_TIMEOUT);
    uint64_t now = grant(&a, NS_PER_S) + 50 * MS;
    acquire_again(&a, &f, now);
    assert_int_equal(acquire_verdict(&a), VERDICT_OPEN);
    assert_asks(&a, "");
    assert_between(acquire_wake(&a), now + FIRST / 2, now + FIRST);
    now = next_round(&a);
    assert_asks(&a, "T S0 S1 S2");
    say(&a, 1, granted(now), now + MS);
    say(&a, 2, granted(now), now + MS);
    assert_asks(&a, "L0");
    assert_int_equal(acquire_verdict(&a), VERDICT_YES);
    assert_int_equal(a.deadline, now + LEASE);
}

static void delays_grow(void **state)
{
    (void)state;
    struct acquire a;
    struct fence f = fence_of(VERDICT_NO, FAULT_NONE);
    uint64_t now = grant(&a, NEVER), delay = 0;
    for (int i = 0; i < 20; i++) {
        acquire_again(&a, &f, now);
        delay = acquire_wake(&a) - now;
        assert_in_range(delay, FIRST / 2, MOST);
        now = next_round(&a);
        assert_asks(&a, "T S0 S1 S2");
        say(&a, 0, granted(now), now);
        say(&a, 1, granted(now), now);
        assert_asks(&a, "L2");
    }
    assert_in_range(delay, MOST / 2, MOST);
}

/* Without a wait, and at the end of one. */
static void ends_with_the_wait(void **state)
{
    (void)state;
    struct acquire a;
    struct fence unknown = fence_of(VERDICT_UNKNOWN, FAULT_RETRY);
    struct fence gone = fence_of(VERDICT_NO, FAULT_NONE);
    acquire_again(&a, &unknown, grant(&a, 0));
    assert_int_equal(acquire_verdict(&a), VERDICT_UNKNOWN);
    assert_int_equal(a.fault, FAULT_RETRY);
    assert_int_equal(a.deadline, 0);
    assert_true(acquire_wake(&a) == NEVER);
    acquire_again(&a, &gone, grant(&a, 0));
    assert_int_equal(acquire_verdict(&a), VERDICT_EXPIRED);
    grant(&a, NS_PER_S);
    acquire_again(&a, &unknown, T0 + NS_PER_S);
    assert_int_equal(acquire_verdict(&a), VERDICT_UNKNOWN);
}

/* What was granted may stand at a quorum until another round is heard of. */
static void what_follows_decides(void **state)
{
    (void)state;
    struct acquire a;
    struct fence f = fence_of(VERDICT_UNKNOWN, FAULT_TIMEOUT);
    acquire_again(&a, &f, grant(&a, NS_PER_S));
    next_round(&a);
    drain(&a, (char[WORDS_MAX]){0});
    all_say(&a, refused(FAULT_UNREACHABLE), T0 + NS_PER_S);
    acquire_tick(&a, acquire_wake(&a));
    assert_int_equal(acquire_verdict(&a), VERDICT_UNKNOWN);
    acquire_again(&a, &f, grant(&a, NS_PER_S));
    next_round(&a);
    drain(&a, (char[WORDS_MAX]){0});
    all_say(&a, busy(LEFT_UNKNOWN), T0 + NS_PER_S);
    assert_int_equal(acquire_verdict(&a), VERDICT_NO);
}

/* So many may never raise a counter that no other round would fare better. */
static void no_wait_for_what_never_comes(void **state)
{
    (void)state;
    struct acquire a;
    struct fence f = fence_of(VERDICT_UNKNOWN, FAULT_DENIED);
    f.permanent = 1;
    acquire_again(&a, &f, grant(&a, NEVER));
    assert_int_equal(acquire_verdict(&a), VERDICT_OPEN);
    f.permanent = 2;
    acquire_again(&a, &f, grant(&a, NEVER));
    assert_int_equal(acquire_verdict(&a), VERDICT_UNKNOWN);
    assert_int_equal(a.fault, FAULT_DENIED);
}

static void is_cancelled(void **state)
{
    (void)state;
    struct acquire a;
    struct fence f = fence_of(VERDICT_CANCELLED, FAULT_NONE);
    acquire_again(&a, &f, grant(&a, NEVER));
    assert_int_equal(acquire_verdict(&a), VERDICT_CANCELLED);
    f.decision = VERDICT_UNKNOWN;
    acquire_again(&a, &f, grant(&a, NEVER));
    assert_int_equal(acquire_verdict(&a), VERDICT_OPEN);
    acquire_cancel(&a);
    assert_asks(&a, "");
    assert_int_equal(acquire_verdict(&a), VERDICT_CANCELLED);
}

/* Too few replicas have it. */
static struct outcome void_grant(void)
{
    return (struct outcome){.kind = OUTCOME_FAULT,
        .fault = FAULT_COPIES,
        .unsure = true,
        .applied = true,
        .sent_at = T0};
}

/* What deletes the key might come when the lock has been extended there. */
static void a_void_grant_beside_a_quorum_stays(void **state)
{
    (void)state;
    struct acquire a;
    start_try(&a, 3);
    say(&a, 2, void_grant(), T0 + MS);
    assert_asks(&a, "");
    say(&a, 0, granted(T0), T0 + MS);
    say(&a, 1, granted(T0), T0 + MS);
    assert_asks(&a, "");
    assert_int_equal(acquire_verdict(&a), VERDICT_YES);
}

/* It is refused, and nothing is unknown; but nobody else has the lock while
 * what undoes it may be under way. */
static void a_void_grant_may_be_what_is_busy(void **state)
{
    (void)state;
    struct acquire a;
    start_try(&a, 1);
    say(&a, 0, void_grant(), T0 + MS);
    assert_asks(&a, "U0");
    assert_int_equal(acquire_verdict(&a), VERDICT_FAULT);
    start_try(&a, 3);
    say(&a, 0, void_grant(), T0 + MS);
    say(&a, 1, granted(T0), T0 + MS);
    say(&a, 2, busy(LEFT_UNKNOWN), T0 + MS);
    assert_asks(&a, "U0 U1");
    assert_int_equal(acquire_verdict(&a), VERDICT_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goes_on_with_a_fresh_token),
        cmocka_unit_test(delays_grow),
        cmocka_unit_test(ends_with_the_wait),
        cmocka_unit_test(what_follows_decides),
        cmocka_unit_test(no_wait_for_what_never_comes),
        cmocka_unit_test(is_cancelled),
        cmocka_unit_test(a_void_grant_beside_a_quorum_stays),
        cmocka_unit_test(a_void_grant_may_be_what_is_busy),
    };
    return cmocka_run_group_tests_name("acquire_again", tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Two quorums share a server; what there is to take; and a vote counts only its
 * servers. How the parts are counted is seen by every scene of several servers.
 */
#include "support/test.h"

#include "base/deadline.h"
#include "core/life.h"
#include "core/machine.h"
#include "core/vote.h"

#define MS NS_PER_MS
#define T0 (UINT64_C(5000) * MS)

#define IS(name) ((struct ballot){.part = PART_##name})

static void quorum_is_more_than_half(void **state)
{
    (void)state;
    static const unsigned expected[] = {1, 2, 2, 3, 3, 4, 4, 5};
    for (unsigned n = 1; n <= 8; n++)
        assert_int_equal(quorum_of(n), expected[n - 1]);
    for (unsigned n = 1; n <= MAX_SERVERS; n++) {
        assert_true(2 * quorum_of(n) > n);
        assert_true(2 * (quorum_of(n) - 1) <= n);
    }
}

static void asking_means_something_to_take(void **state)
{
    (void)state;
    const struct ballot asking[] = {IS(TO_SEND), IS(TO_UNDO), IS(TO_ABANDON)};
    const struct ballot rest[] = {
        IS(IDLE), IS(SENT), IS(YES), IS(NO), IS(FAULT), IS(UNSURE)};
    for (unsigned i = 0; i < 3; i++)
        assert_true(parts_pending(&asking[i], 1));
    assert_false(parts_pending(rest, 6));
    assert_false(parts_pending(asking, 0));
}

/* Raising a counter needs no undoing, and a server that there is not does not
 * count. */
static void a_vote_that_raises(void **state)
{
    static struct ballot ballots[3 * LIFE_BALLOTS];
    struct acquire_terms terms = {.servers = 3,
        .ballots = ballots,
        .ttl_ms = 2000,
        .drift_ppm = 10000,
        .answer_timeout_ns = 50 * MS,
        .wait_until = T0 + NS_PER_S,
        .end = T0 + NS_PER_S};
    const struct outcome first = {
        .kind = OUTCOME_GRANTED, .sent_at = T0, .fence = 8};
    const struct outcome second = {
        .kind = OUTCOME_GRANTED, .sent_at = T0, .fence = 5};
    const struct outcome raised = {.kind = OUTCOME_MINE, .fence = 8};
    static struct vote vote;
    struct effect effect;
    (void)state;
    memset(ballots, 0, sizeof(ballots));
    vote = (struct vote){.ballots = ballots};
    vote_acquire(&vote, &terms, 1U << CONDITION_FENCE, 10 * MS, 80 * MS, 5, T0);
    while (vote_next(&vote, &effect))
        ;
    vote_outcome(&vote, 3, &first, T0);
    vote_outcome(&vote, 0, &first, T0);
    vote_outcome(&vote, 2, &second, T0);
    while (vote_next(&vote, &effect))
        ;
    vote_step(&vote, effect.verdict, T0 + MS);
    while (vote_next(&vote, &effect))
        ;
    vote_outcome(&vote, 3, &raised, T0 + MS);
    vote_withdrawn(&vote, 2);
    assert_false(vote_next(&vote, &effect));
    assert_int_equal(effect.verdict, VERDICT_OPEN);
    vote_outcome(&vote, 2, &raised, T0 + MS);
    while (vote_next(&vote, &effect))
        ;
    assert_int_equal(effect.verdict, VERDICT_YES);
    assert_true(vote.fence.value == 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quorum_is_more_than_half),
        cmocka_unit_test(asking_means_something_to_take),
        cmocka_unit_test(a_vote_that_raises),
    };
    return cmocka_run_group_tests_name("machine", tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Two quorums share a server; a tally misses nobody; and a vote counts only its
 * servers. */
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

static void tally_counts_each_part(void **state)
{
    (void)state;
    const struct ballot ballots[] = {IS(YES), IS(NO), IS(NO), IS(FAULT),
        IS(UNSURE), IS(TO_SEND), IS(SENT), IS(IDLE), IS(TO_UNDO),
        IS(TO_ABANDON)};
    struct tally t = tally_of(ballots, 10);
    assert_int_equal(t.servers, 10);
    assert_int_equal(t.quorum, 6);
    assert_int_equal(t.yes, 1);
    assert_int_equal(t.no, 2);
    assert_int_equal(t.fault, 1);
    assert_int_equal(t.unsure, 1);
    assert_int_equal(t.open, 2);
}

static void tally_looks_at_its_servers_only(void **state)
{
    (void)state;
    const struct ballot ballots[] = {IS(YES), IS(NO), IS(YES)};
    struct tally t = tally_of(ballots, 2);
    assert_int_equal(t.yes, 1);
    assert_int_equal(t.no, 1);
}

static void find_gives_the_first(void **state)
{
    (void)state;
    const struct ballot ballots[] = {IS(YES), IS(NO), IS(SENT), IS(NO)};
    unsigned server = 99;
    assert_true(part_find(ballots, 4, PART_NO, &server));
    assert_int_equal(server, 1);
    assert_false(part_find(ballots, 2, PART_SENT, &server));
    assert_false(part_find(ballots, 4, PART_FAULT, &server));
    assert_int_equal(server, 1);
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
        cmocka_unit_test(tally_counts_each_part),
        cmocka_unit_test(tally_looks_at_its_servers_only),
        cmocka_unit_test(find_gives_the_first),
        cmocka_unit_test(asking_means_something_to_take),
        cmocka_unit_test(a_vote_that_raises),
    };
    return cmocka_run_group_tests_name("machine", tests, NULL, NULL);
}

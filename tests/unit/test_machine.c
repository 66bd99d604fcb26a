/* SPDX-License-Identifier: MIT */
/* Two quorums share a server; a tally misses nobody. */
#include "support/test.h"

#include "core/machine.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quorum_is_more_than_half),
        cmocka_unit_test(tally_counts_each_part),
        cmocka_unit_test(tally_looks_at_its_servers_only),
        cmocka_unit_test(find_gives_the_first),
        cmocka_unit_test(asking_means_something_to_take),
    };
    return cmocka_run_group_tests_name("machine", tests, NULL, NULL);
}

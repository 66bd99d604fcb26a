/* SPDX-License-Identifier: MIT */
/*
 * What a server says about itself: how long that counts, and what it says of
 * its clock. What has become of the data behind an address is concluded in
 * unit/scenes/eligibility.scenes, by what it means for the vote.
 */
#include "support/test.h"

#include "core/lineage.h"

static void a_longer_id_is_cut(void **state)
{
    (void)state;
    struct lineage l = {.run_id = ""};
    const struct server_info info = {
        .run_id = "0123456789abcdef0123456789abcdef01234567 and more",
        .role = "master"};
    lineage_update(&l, &info);
    assert_string_equal(l.run_id, "0123456789abcdef0123456789abcdef01234567");
}

/* How far the new one's clock may be ahead: its latest, less the former's
 * earliest. */
static void the_lead_of_a_clock(void **state)
{
    (void)state;
    struct lineage l = {.run_id = ""};
    struct server_info a = {.run_id = "A",
        .role = "master",
        .replid = "1",
        .replid2 = "",
        .clock_low_ns = 1000,
        .clock_high_ns = 1100};
    struct server_info b = {.run_id = "B",
        .role = "master",
        .replid = "2",
        .replid2 = "1",
        .clock_low_ns = 1400,
        .clock_high_ns = 1500};
    lineage_update(&l, &a);
    assert_true(lineage_clock_lead(&l, &b) == INT64_MAX);
    a.role = "slave";
    a.replid = "2";
    a.replid2 = "1";
    lineage_update(&l, &a);
    assert_int_equal(lineage_update(&l, &b), LINEAGE_COORDINATED);
    assert_int_equal(lineage_clock_lead(&l, &b), 500);
    b.clock_high_ns = 0; /* it does not tell the time */
    assert_true(lineage_clock_lead(&l, &b) == INT64_MAX);
}

static void a_connection_is_current_for_a_second(void **state)
{
    (void)state;
    uint64_t at = 5 * NS_PER_S;
    assert_true(lineage_is_current(at, at));
    assert_true(lineage_is_current(at, at + NS_PER_S - 1));
    assert_false(lineage_is_current(at, at + NS_PER_S));
    assert_false(lineage_is_current(0, at));
}

/* It may have been stopped between the answer before and the question. */
static void a_sign_is_as_old_as_the_answer_before(void **state)
{
    (void)state;
    assert_int_equal(lineage_alive_at(3, 5), 3);
    assert_int_equal(lineage_alive_at(5, 5), 5);
}

static void a_sign_of_the_same_primary(void **state)
{
    (void)state;
    static const struct {
        const char *replid, *role;
        int replicas;
        bool goes_on; /* where the history was "1", with two replicas */
    } signs[] = {
        {"1", "master", 2, true}, {"1", "master", 3, true},
        {"1", "master", 1, false}, {"2", "master", 2, false},
        {"1", "slave", 2, false}, {"", "master", 2, false},
        {"", "", 0, false}, /* INFO is refused */
    };
    for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
        const struct server_info info = {.role = signs[i].role,
            .replid = signs[i].replid,
            .replicas = signs[i].replicas};
        if (lineage_goes_on("1", 2, &info) != signs[i].goes_on)
            fail_msg("sign %zu", i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_longer_id_is_cut),
        cmocka_unit_test(the_lead_of_a_clock),
        cmocka_unit_test(a_connection_is_current_for_a_second),
        cmocka_unit_test(a_sign_is_as_old_as_the_answer_before),
        cmocka_unit_test(a_sign_of_the_same_primary),
    };
    return cmocka_run_group_tests_name("lineage", tests, NULL, NULL);
}

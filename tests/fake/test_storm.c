/* SPDX-License-Identifier: MIT */
/*
 * A server that takes every connection in and answers its handshake, and
 * then ends it: at each command, or at each EVAL. It is asked again, but not
 * in a storm.
 */
#include "rig.h"

#define TURNS_MS 1000
/* By growing delays there are about ten; in a storm there are thousands. */
#define AT_MOST 30

static void turn_for(nxl_client *client, int64_t ms)
{
    int64_t end = test_now_ms() + ms;
    while (test_now_ms() < end)
        turn(client, 20);
}

/* The connections that one debt takes within a second, with a server that
 * plays first, then rest on every further connection. */
static size_t connections_of_a_debt(const char *first, const char *rest)
{
    struct script s = {0};
    add(&s, SHAKE "EXPECT SET k **\n" OK "%s", first);
    add(&s, "ACCEPT *\n%s", rest);
    struct rig r = rig_open(s.text, 'u', "timeout_ms=1000");
    assert_int_equal(acquire_by_loop(r.client, r.lock, 0), NXL_OK);
    nxl_lock_free(r.lock);
    r.lock = NULL;
    turn_for(r.client, TURNS_MS);
    size_t count = fake_connections(r.fake);
    nxl_client_free(r.client);
    fake_free(r.fake); /* a play that has no end */
    return count;
}

static void closed_at_each_eval(void **state)
{
    (void)state;
    size_t count = connections_of_a_debt(
        "EXPECT EVAL **\nCLOSE\n", SHAKE "EXPECT EVAL **\nCLOSE\n");
    assert_between(count, 3, AT_MOST);
}

static void closed_behind_the_handshake(void **state)
{
    (void)state;
    size_t count = connections_of_a_debt("EXPECT EVAL **\nCLOSE\n",
        FLIGHT "SEND :8\\r\\n\nBULK " INFO_TEXT
               "\\r\\n\nBULK a\nBULK b\nBULK c\nCLOSE\n");
    assert_between(count, 3, AT_MOST);
}

/* Requests that are tried over and over again storm no more than debts. */
static void closed_at_each_acquire(void **state)
{
    (void)state;
    struct rig r = rig_open(SHAKE "EXPECT SET **\nCLOSE\n"
                                  "ACCEPT *\n" SHAKE "EXPECT **\nCLOSE\n",
        'u', "timeout_ms=1000");
    assert_int_equal(nxl_lock_acquire_start(r.lock, TURNS_MS), NXL_PENDING);
    turn_for(r.client, TURNS_MS);
    assert_between(fake_connections(r.fake), 1, AT_MOST);
    nxl_lock_free(r.lock);
    nxl_client_free(r.client);
    fake_free(r.fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closed_at_each_eval),
        cmocka_unit_test(closed_behind_the_handshake),
        cmocka_unit_test(closed_at_each_acquire),
    };
    return cmocka_run_group_tests_name("storm", tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * What the end of a handle or of a client leaves behind, or a server that reads
 * or answers nothing: nothing, once the server answers; and nobody waits for
 * longer than they may.
 */
#include "rig.h"

#define PARAMS "timeout_ms=1000"
#define KILL_7 "EXPECT CLIENT KILL ID 7\n"

static int64_t free_client(struct rig *r)
{
    int64_t start = test_now_ms();
    nxl_client_free(r->client);
    r->client = NULL;
    return test_now_ms() - start;
}

static void join(struct rig *r)
{
    assert_no_text(fake_join(r->fake));
    nxl_lock_free(r->lock);
    fake_free(r->fake);
}

/* ------------------------------------------------------ the client's end */

/* It waits for as long as the undoing is unanswered, up to its budget. */
static void client_free_waits_within_its_budget(void **state)
{
    (void)state;
    static const struct {
        const char *params;
        int64_t timeout, budget;
    } cases[] = {{"timeout_ms=80", 80, 80}, {"timeout_ms=600", 600, 500}};
    for (int i = 0; i < 4; i++) {
        struct rig r = rig_ready(READY SET_T UNDO_T "SILENCE\n",
            i % 2 ? 't' : 'u', cases[i / 2].params, false);
        assert_ends(
            nxl_lock_acquire(r.lock, 0), NXL_UNKNOWN, cases[i / 2].timeout);
        int64_t took = free_client(&r);
        assert_between(
            took, cases[i / 2].budget - 5, cases[i / 2].budget + slack_ms());
        join(&r);
    }
}

static void client_free_goes_on_with_the_answer(void **state)
{
    (void)state;
    struct rig r = rig_ready(
        READY SET_T UNDO_T "DELAY 60\n" OK ONE, 'u', "timeout_ms=60", false);
    nxl_lock *lock = r.lock;
    assert_ends(nxl_lock_acquire(lock, 0), NXL_UNKNOWN, 60);
    assert_between(free_client(&r), 0, 60 + slack_ms());
    join(&r);
    r = rig_open(SHAKE WORKS, 'u', PARAMS); /* owes nothing */
    assert_works(r.lock);
    assert_between(free_client(&r), 0, slack_ms());
    join(&r);
    r = rig_open("SERVE\n", 'u', PARAMS); /* was never used */
    nxl_lock_free(r.lock);
    nxl_client_free(r.client);
    fake_free(r.fake);
}

/* What the lost connection left is paid on one of its own. */
static void client_free_pays_on_a_new_connection(void **state)
{
    (void)state;
    for (size_t i = 0; i < CUTS; i++) {
        struct script s = {0};
        add(&s, SHAKE SET_T);
        add_cut(&s, &cuts[i], "+");
        add(&s, NEXT SHAKE KILL_7 UNDO_T "SEND :1\\r\\n:0\\r\\n\n");
        struct rig r = rig_open(s.text, cuts[i].reset ? 't' : 'u', PARAMS);
        assert_ends(nxl_lock_acquire(r.lock, 0), NXL_UNKNOWN, 200);
        assert_between(free_client(&r), 0, 500 + slack_ms());
        join(&r);
    }
}

/* ... and when there is none to be had, it ends by its budget all the same. */
static void client_free_gives_up_in_time(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        bool small = i / 2;
        struct rig r = rig_open(SHAKE SET_T "REFUSE\nCLOSE\n",
            i % 2 ? 't' : 'u', small ? "timeout_ms=200" : PARAMS);
        assert_ends(nxl_lock_acquire(r.lock, 0), NXL_UNKNOWN, 200);
        assert_between(free_client(&r), 0, (small ? 200 : 500) + slack_ms());
        join(&r);
    }
}

static void client_free_in_the_handshake(void **state)
{
    (void)state;
    struct rig r = rig_open(FLIGHT "EXPECT-CLOSE\n", 'u', "timeout_ms=80");
    assert_ends(nxl_lock_acquire(r.lock, 0), NXL_E_UNREACHABLE, 80);
    assert_between(free_client(&r), 0, 80 + slack_ms());
    join(&r);
}

/* A client is freed before its locks: they are let go, and are no use. */
static void client_free_releases_its_locks(void **state)
{
    (void)state;
    struct rig r = rig_open(SHAKE GRANT
        "EXPECT SET other $o NX PX 20000\n" OK
        "EXPECT EVAL * 1 $x $y\nEXPECT EVAL * 1 * *\nSEND :1\\r\\n:1\\r\\n\n",
        'u', PARAMS);
    nxl_lock *other = lock_of_name(r.client, "other", 20000);
    assert_ends(nxl_lock_acquire(r.lock, 0), NXL_OK, 200);
    assert_ends(nxl_lock_acquire(other, 0), NXL_OK, 200);
    assert_between(free_client(&r), 0, 200 + slack_ms());
    assert_not_held(r.lock);
    assert_not_held(other);
    assert_int_equal(nxl_lock_acquire(other, 0), NXL_E_INVALID);
    nxl_lock_free(other);
    join(&r);
}

/* -------------------------------------------------------- the lock's end */

static void lock_free_releases_without_waiting(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct rig r =
            rig_open(SHAKE GRANT UNDO_T "TELL released\nWAIT-FOR answer\n" ONE
                                        "EXPECT SET other $z NX PX 20000\n" OK
                                        "EXPECT EVALSHA * 1 other $z\n" ONE,
                i ? 't' : 'u', PARAMS);
        assert_ends(nxl_lock_acquire(r.lock, 0), NXL_OK, 200);
        int64_t start = test_now_ms();
        nxl_lock_free(r.lock);
        assert_between(test_now_ms() - start, 0, slack_ms());
        assert_true(fake_await(r.fake, "released"));
        fake_signal(r.fake, "answer");
        r.lock = lock_of_name(r.client, "other", 20000);
        assert_works(r.lock);
        rig_close(&r);
    }
}

/* The connection is gone: owed, and paid before the next one's first SET. */
static void lock_free_on_a_dead_connection(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct rig r = rig_open(SHAKE GRANT
            "WAIT-FOR close\nCLOSE\n" NEXT SHAKE UNDO_T ONE
            "EXPECT SET k $z NX PX 20000\n" OK "EXPECT EVALSHA * 1 k $z\n" ONE,
            i ? 't' : 'u', PARAMS);
        assert_ends(nxl_lock_acquire(r.lock, 0), NXL_OK, 200);
        rig_hang_up(&r, "close");
        rig_idle();
        nxl_lock_free(r.lock);
        r.lock = lock_of_name(r.client, "k", 20000);
        assert_works(r.lock);
        rig_close(&r);
    }
}

/* Under way in a loop: a sent acquire is undone, a release let go, and no
 * event speaks of a lock that is no more. */
static void lock_free_in_the_midst(void **state)
{
    (void)state;
    nxl_event event;
    struct rig r =
        rig_open(SHAKE SET_T UNDO_T OK ONE "TELL paid\n", 'u', PARAMS);
    assert_int_equal(nxl_lock_acquire_start(r.lock, 0), NXL_PENDING);
    turn_until(r.client, fake_count(r.fake, 0, "SET") == 1);
    nxl_lock_free(r.lock);
    r.lock = NULL;
    assert_true(fake_await(r.fake, "paid"));
    assert_idle(r.client);
    assert_false(nxl_client_next_event(r.client, &event));
    rig_close(&r);

    r = rig_open(SHAKE GRANT DROP_T "WAIT-FOR freed\n" ONE, 'u', PARAMS);
    assert_int_equal(acquire_by_loop(r.client, r.lock, 0), NXL_OK);
    assert_int_equal(nxl_lock_release_start(r.lock), NXL_PENDING);
    turn_until(r.client, fake_count(r.fake, 0, "EVALSHA") == 1);
    nxl_lock_free(r.lock);
    r.lock = NULL;
    fake_signal(r.fake, "freed");
    assert_idle(r.client);
    assert_false(nxl_client_next_event(r.client, &event));
    rig_close(&r);
}

static void lock_free_before_anything_left(void **state)
{
    (void)state;
    struct rig r =
        rig_open(FLIGHT "TELL came\nWAIT-FOR go\nSEND :7\\r\\n\nBULK " INFO_TEXT
                        "\nBULK a\nBULK b\nBULK c\n",
            'u', PARAMS);
    assert_int_equal(nxl_lock_acquire_start(r.lock, 0), NXL_PENDING);
    turn(r.client, 0);
    assert_true(fake_await(r.fake, "came"));
    nxl_lock_free(r.lock);
    r.lock = NULL;
    fake_signal(r.fake, "go");
    assert_idle(r.client);
    rig_close(&r);
}

/* ------------------------------- a server that reads, or answers, nothing
 * How many may be unanswered, and for how long, is in unit/test_request.c and
 * unit/scenes. */

#define BIG 65536
#define MANY 12

static char *big_name(int which)
{
    static char name[BIG + 1];
    memset(name, 'a' + which, BIG);
    return name;
}

/* All of them are formatted in one turn, and the socket takes but some: a
 * command in the middle is then gone in part. */
static void what_did_not_leave_is_taken_back(void **state)
{
    (void)state;
    struct rig r = rig_open(
        SHAKE "WAIT-FOR read\nSERVE\n", 'u', "timeout_ms=150&prefix=x");
    nxl_lock *locks[MANY], *small = lock_of_name(r.client, "small", 30000);
    size_t unknown = 0, unreachable = 0;
    for (int i = 0; i < MANY; i++) {
        nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
        options.name_length = BIG - 1;
        assert_int_equal(
            nxl_lock_new(&locks[i], r.client, big_name(i), &options), NXL_OK);
    }
    assert_int_equal(nxl_lock_inspect_start(small), NXL_PENDING);
    assert_int_equal(event_result(r.client, small), NXL_E_UNREACHABLE);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(nxl_lock_acquire_start(locks[i], 0), NXL_PENDING);
    for (int i = 0; i < MANY; i++) {
        int rc = event_result(r.client, NULL);
        unknown += rc == NXL_UNKNOWN;
        unreachable += rc == NXL_E_UNREACHABLE;
    }
    assert_int_equal(unknown + unreachable, MANY);
    assert_true(unknown > 0 && unreachable > 1);
    fake_signal(r.fake, "read");
    assert_idle(r.client);
    /* What left in whole or in part is done and undone; the rest is unheard
     * of; and the stream is in step. */
    assert_int_equal(fake_count(r.fake, 0, "SET"), unknown);
    assert_int_equal(fake_count(r.fake, 0, "EVAL"), unknown);
    assert_int_equal(acquire_by_loop(r.client, locks[MANY - 1], 0), NXL_OK);
    assert_int_equal(nxl_lock_release_start(locks[MANY - 1]), NXL_PENDING);
    assert_int_equal(event_result(r.client, NULL), NXL_OK);
    for (int i = 0; i < MANY; i++)
        nxl_lock_free(locks[i]);
    nxl_lock_free(small);
    rig_close(&r);
}

/* Too old: the connection is replaced while a call waits, and what it left is
 * undone on the new one. */
static void an_old_connection_is_replaced_during_a_call(void **state)
{
    (void)state;
    char set[256];
    struct rig r =
        rig_open(SHAKE "SILENCE\n" NEXT "SERVE\n", 'u', "timeout_ms=900");
    assert_takes(nxl_lock_acquire(r.lock, 8000), NXL_OK, 1995, 3000);
    snprintf(set, sizeof(set), "\n1 SET k %s ", nxl_lock_token(r.lock));
    assert_contains(fake_log(r.fake), set);
    assert_between(fake_count(r.fake, 0, "SET"), 2, 3);
    assert_true(fake_count(r.fake, 1, "EVAL") >= 2);
    assert_ends(nxl_lock_release(r.lock), NXL_OK, 200);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(client_free_waits_within_its_budget),
        cmocka_unit_test(client_free_goes_on_with_the_answer),
        cmocka_unit_test(client_free_pays_on_a_new_connection),
        cmocka_unit_test(client_free_gives_up_in_time),
        cmocka_unit_test(client_free_in_the_handshake),
        cmocka_unit_test(client_free_releases_its_locks),
        cmocka_unit_test(lock_free_releases_without_waiting),
        cmocka_unit_test(lock_free_on_a_dead_connection),
        cmocka_unit_test(lock_free_in_the_midst),
        cmocka_unit_test(lock_free_before_anything_left),
        cmocka_unit_test(what_did_not_leave_is_taken_back),
        cmocka_unit_test(an_old_connection_is_replaced_during_a_call),
    };
    return cmocka_run_group_tests_name("cleanup", tests, NULL, NULL);
}

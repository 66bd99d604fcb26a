/* SPDX-License-Identifier: MIT */
/* What is given up on a connection that stays: an acquire is undone behind
 * itself on that connection, exactly and once; a release is let go. */
#include "rig.h"

#define LATE "timeout_ms=200"
#define LATER "timeout_ms=500&poll=1"
#define REFUSED "SEND -NOPERM not you\\r\\n\n"

/* ------------------------------------------------------- an acquire late */

/* The undoing leaves with the end of the call; no other call is needed. */
static void late_grant_is_undone(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct rig r = rig_open(SHAKE SET_T UNDO_T "TELL undone\n" OK ONE WORKS,
            i ? 't' : 'u', LATE);
        assert_takes(nxl_lock_acquire(r.lock, 0), NXL_UNKNOWN, 195, 200);
        assert_true(fake_await(r.fake, "undone"));
        assert_not_held(r.lock);
        assert_works(r.lock);
        assert_string_not_equal(
            fake_taken(r.fake, "t"), fake_taken(r.fake, "z"));
        rig_close(&r);
    }
}

/* Of each token one, right behind its SET, whoever calls next. */
static void every_late_grant_is_undone(void **state)
{
    (void)state;
    struct rig r = rig_open(SHAKE SET_T UNDO_T
        "EXPECT SET other $o NX PX 20000\nEXPECT EVAL * 1 other $o\n"
        "EXPECT SET k $u NX PX 30000\nEXPECT EVAL * 1 k $u\n"
        "SEND +OK\\r\\n:1\\r\\n+OK\\r\\n:1\\r\\n+OK\\r\\n:1\\r\\n\n" WORKS,
        'u', LATE);
    nxl_lock *other = lock_of_name(r.client, "other", 20000);
    assert_ends(nxl_lock_acquire(r.lock, 0), NXL_UNKNOWN, 200);
    assert_ends(nxl_lock_acquire(other, 0), NXL_UNKNOWN, 200);
    assert_ends(nxl_lock_acquire(r.lock, 0), NXL_UNKNOWN, 200);
    assert_string_not_equal(fake_taken(r.fake, "t"), fake_taken(r.fake, "u"));
    assert_works(r.lock);
    nxl_lock_free(other);
    rig_close(&r);
}

/* The answers of the abandoned come in front of the next call's own. */
static void a_late_undoing_does_not_disturb(void **state)
{
    (void)state;
    struct rig r =
        rig_open(SHAKE SET_T UNDO_T "EXPECT SET k $z NX PX 30000\n"
                                    "SEND +OK\\r\\n:1\\r\\n+OK\\r\\n\n"
                                    "EXPECT EVALSHA * 1 k $z\n" ONE,
            'u', LATE);
    assert_ends(nxl_lock_acquire(r.lock, 0), NXL_UNKNOWN, 200);
    assert_works(r.lock);
    rig_close(&r);
}

static void both_commands_of_a_round_are_given_up(void **state)
{
    (void)state;
    struct rig r = rig_open(SHAKE "EXPECT SET k $x NX PX 30000\n" NIL SET_T
                                  "EXPECT PTTL k\n" UNDO_T
                                  "SEND +OK\\r\\n:30000\\r\\n:1\\r\\n\n" WORKS,
        'u', LATER);
    assert_ends(nxl_lock_acquire(r.lock, 300), NXL_UNKNOWN, 500);
    assert_works(r.lock);
    rig_close(&r);
}

/* Granted, but the second reply did not come: the grant must go as well. */
static void a_grant_without_the_second_reply_is_undone(void **state)
{
    (void)state;
    struct rig r = rig_open(SHAKE "EXPECT SET k $x NX PX 30000\n" NIL SET_T
                                  "EXPECT PTTL k\n" OK UNDO_T
                                  "SEND :30000\\r\\n:1\\r\\n\n" WORKS,
        'u', LATER);
    assert_ends(nxl_lock_acquire(r.lock, 300), NXL_UNKNOWN, 500);
    assert_not_held(r.lock);
    assert_works(r.lock);
    rig_close(&r);
}

/* ------------------------------------------------ what the undoing is told */

/* A refused script is tried again, on the same connection, until it is done;
 * the acquire itself has been answered, so that nothing has to be killed. */
static void a_refused_undoing_is_repeated(void **state)
{
    (void)state;
    struct rig r = rig_open(SHAKE SET_T UNDO_T OK
        "SEND -BUSY Redis is busy running a script\\r\\n\n" UNDO_T
        "SEND -LOADING Redis is loading\\r\\n\n" UNDO_T
        "SEND -MISCONF no writes\\r\\n\n" UNDO_T ONE "TELL paid\n",
        'u', LATE);
    int64_t start = test_now_ms();
    assert_int_equal(acquire_by_loop(r.client, r.lock, 0), NXL_UNKNOWN);
    turn_until(r.client, fake_count(r.fake, 0, "EVAL") == 4);
    assert_between(test_now_ms() - start, 60 + 20 + 40 + 80 - 5, 3000);
    assert_true(fake_await(r.fake, "paid"));
    assert_idle(r.client);
    rig_close(&r);
}

/* Refused for good, in every way: it ends when the lease of that token must
 * have. */
static void a_refused_undoing_ends_with_the_ttl(void **state)
{
    (void)state;
    struct script s = {0};
    add(&s, SHAKE "EXPECT SET k $t NX PX 200\n" UNDO_T OK);
    for (int i = 0; i < 12; i++)
        add(&s, REFUSED
            "EXPECT WATCH k\nEXPECT GETRANGE k 0 511\n"
            "EXPECT PTTL k\nEXPECT EXISTS k\nEXPECT MULTI\n" REFUSED REFUSED
                REFUSED REFUSED REFUSED
            "EXPECT TIME\nEXPECT GETRANGE k 0 511\n" REFUSED REFUSED UNDO_T);
    struct rig r = rig_open(s.text, 'u', LATE);
    nxl_lock *lock = lock_of_name(r.client, "k", 200);
    int64_t start = test_now_ms();
    assert_int_equal(acquire_by_loop(r.client, lock, 0), NXL_UNKNOWN);
    assert_idle(r.client);
    assert_between(test_now_ms() - start, 200, 60 + 200 + 320 + slack_ms());
    assert_between(fake_count(r.fake, 0, "EVAL"), 3, 8);
    assert_int_equal(
        fake_count(r.fake, 0, "EVAL"), fake_count(r.fake, 0, "MULTI"));
    assert_int_equal(fake_count(r.fake, -1, "DEL"), 0);
    assert_int_equal(fake_connections(r.fake), 1);
    nxl_lock_free(lock);
    nxl_lock_free(r.lock);
    nxl_client_free(r.client);
    fake_free(r.fake);
}

/* Nil and errors say that the token was not set: when the connection is lost
 * before the undoing was answered, nothing is left to delete. */
static void nothing_is_owed_for_what_was_refused(void **state)
{
    (void)state;
    static const char *const replies[] = {
        NIL, "SEND -LOADING Redis is loading the dataset in memory\\r\\n\n"};
    for (int i = 0; i < 4; i++) {
        struct script s = {0};
        add(&s, SHAKE SET_T UNDO_T "%sWAIT-FOR close\nCLOSE\n" NEXT SHAKE WORKS,
            replies[i % 2]);
        struct rig r = rig_open(s.text, i < 2 ? 'u' : 't', LATE);
        assert_ends(nxl_lock_acquire(r.lock, 0), NXL_UNKNOWN, 200);
        rig_hang_up(&r, "close");
        rig_idle();
        assert_works(r.lock);
        assert_int_equal(fake_count(r.fake, 1, "EVAL"), 0);
        assert_int_equal(fake_count(r.fake, 1, "CLIENT"), 1); /* ID */
        rig_close(&r);
    }
}

/* ------------------------------------------------------------- a release */

static void a_late_release_is_not_repeated(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct script s = {0};
        add(&s, SHAKE GRANT DROP_T "WAIT-FOR late\n%sTELL sent\n",
            i ? ONE : ZERO);
        struct rig r = rig_open(s.text, 'u', LATE);
        assert_int_equal(acquire_by_loop(r.client, r.lock, 0), NXL_OK);
        assert_int_equal(nxl_lock_release_start(r.lock), NXL_PENDING);
        assert_int_equal(event_result(r.client, r.lock), NXL_UNKNOWN);
        fake_signal(r.fake, "late");
        assert_true(fake_await(r.fake, "sent"));
        assert_idle(r.client);
        assert_int_equal(fake_count(r.fake, -1, "EVAL"), 0);
        rig_close(&r);
    }
}

/* Nobody is there to answer a NOSCRIPT, or to try again after an error: what
 * is owed does. */
static void a_late_refusal_of_a_release_is_completed(void **state)
{
    (void)state;
    static const char *const replies[] = {
        "-NOSCRIPT No matching script. Please use EVAL.",
        "-BUSY Redis is busy running a script",
    };
    for (int i = 0; i < 2; i++) {
        struct script s = {0};
        add(&s,
            SHAKE GRANT DROP_T "WAIT-FOR late\nSEND %s\\r\\n\n" UNDO_T ONE
                               "TELL paid\n",
            replies[i]);
        struct rig r = rig_open(s.text, 'u', LATE);
        assert_int_equal(acquire_by_loop(r.client, r.lock, 0), NXL_OK);
        assert_int_equal(nxl_lock_release_start(r.lock), NXL_PENDING);
        assert_int_equal(event_result(r.client, r.lock), NXL_UNKNOWN);
        fake_signal(r.fake, "late");
        turn_until(r.client, fake_count(r.fake, 0, "EVAL") == 1);
        assert_true(fake_await(r.fake, "paid"));
        assert_idle(r.client);
        rig_close(&r);
    }
}

/* An answered refusal: the caller hears it at once, the rest is owed. */
static void a_refused_release_is_completed(void **state)
{
    (void)state;
    struct rig r = rig_open(SHAKE GRANT DROP_T
        "SEND -MISCONF Redis is configured to\\r\\n\n" UNDO_T
        "SEND -MISCONF Redis is configured to\\r\\n\n" UNDO_T ONE "TELL paid\n",
        'u', LATE);
    assert_int_equal(acquire_by_loop(r.client, r.lock, 0), NXL_OK);
    assert_int_equal(nxl_lock_release_start(r.lock), NXL_PENDING);
    assert_int_equal(event_result(r.client, r.lock), NXL_E_REFUSED);
    assert_contains(nxl_lock_errmsg(r.lock), "MISCONF Redis is configured");
    assert_not_held(r.lock);
    turn_until(r.client, fake_count(r.fake, 0, "EVAL") == 2);
    assert_true(fake_await(r.fake, "paid"));
    assert_idle(r.client);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(late_grant_is_undone),
        cmocka_unit_test(every_late_grant_is_undone),
        cmocka_unit_test(a_late_undoing_does_not_disturb),
        cmocka_unit_test(both_commands_of_a_round_are_given_up),
        cmocka_unit_test(a_grant_without_the_second_reply_is_undone),
        cmocka_unit_test(a_refused_undoing_is_repeated),
        cmocka_unit_test(a_refused_undoing_ends_with_the_ttl),
        cmocka_unit_test(nothing_is_owed_for_what_was_refused),
        cmocka_unit_test(a_late_release_is_not_repeated),
        cmocka_unit_test(a_late_refusal_of_a_release_is_completed),
        cmocka_unit_test(a_refused_release_is_completed),
    };
    return cmocka_run_group_tests_name("cleanup", tests, NULL, NULL);
}

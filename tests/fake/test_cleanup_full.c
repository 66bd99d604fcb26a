/* SPDX-License-Identifier: MIT */
/* A server that reads nothing, or answers nothing: what did not leave is
 * taken back, what is unanswered is bounded in number and in age. */
#include "rig.h"

#include "support/local.h"

#include <sys/socket.h>

/* ------------------------------------------------------ the socket is full */

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
    nxl_holder holder = NXL_HOLDER_INIT;
    for (int i = 0; i < MANY; i++) {
        nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
        options.name_length = BIG - 1;
        assert_int_equal(
            nxl_lock_new(&locks[i], r.client, big_name(i), &options), NXL_OK);
    }
    assert_int_equal(nxl_lock_inspect_start(small), NXL_PENDING);
    assert_int_equal(event_result(r.client, small), NXL_E_UNREACHABLE);
    (void)holder;
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

/* One after the other through the blocking door: the first ones leave, the
 * later ones are not even formatted. */
static void nothing_is_formatted_for_a_full_socket(void **state)
{
    (void)state;
    struct rig r =
        rig_open(SHAKE WORKS "WAIT-FOR read\nSERVE\n", 'u', "timeout_ms=60");
    nxl_lock *locks[6];
    size_t unknown = 0;
    assert_works(r.lock);
    for (int i = 0; i < 6; i++) {
        nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
        options.name_length = BIG;
        assert_int_equal(
            nxl_lock_new(&locks[i], r.client, big_name(i), &options), NXL_OK);
        int64_t start = test_now_ms();
        int rc = nxl_lock_acquire(locks[i], 0);
        assert_between(test_now_ms() - start, 55, 60 + slack_ms());
        assert_true(rc == NXL_UNKNOWN || rc == NXL_E_UNREACHABLE);
        assert_not_held(locks[i]);
        unknown += rc == NXL_UNKNOWN;
    }
    assert_between(unknown, 1, 5);
    fake_signal(r.fake, "read");
    assert_ends(nxl_lock_acquire(r.lock, 2000), NXL_OK, 2000);
    assert_ends(nxl_lock_release(r.lock), NXL_OK, 60);
    assert_int_equal(fake_count(r.fake, 0, "EVAL"), unknown);
    for (int i = 0; i < 6; i++) {
        assert_ends(nxl_lock_acquire(locks[i], 0), NXL_OK, 60);
        assert_ends(nxl_lock_release(locks[i]), NXL_OK, 60);
        nxl_lock_free(locks[i]);
    }
    rig_close(&r);
}

/* The socket is full and then the connection is lost: what never left is not
 * undone on the next one, what left is. */
static void lost_while_full(void **state)
{
    (void)state;
    struct rig r = rig_open(
        SHAKE "WAIT-FOR close\nCLOSE\n" NEXT "SERVE\n", 'u', "timeout_ms=150");
    nxl_lock *locks[MANY];
    size_t unknown = 0;
    for (int i = 0; i < MANY; i++) {
        nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
        options.name_length = BIG;
        assert_int_equal(
            nxl_lock_new(&locks[i], r.client, big_name(i), &options), NXL_OK);
        assert_int_equal(nxl_lock_acquire_start(locks[i], 0), NXL_PENDING);
    }
    for (int i = 0; i < MANY; i++)
        unknown += event_result(r.client, NULL) == NXL_UNKNOWN;
    assert_true(unknown > 0 && unknown < MANY - 1);
    fake_signal(r.fake, "close");
    assert_idle(r.client);
    assert_int_equal(fake_count(r.fake, 1, "SET"), 0);
    assert_int_equal(fake_count(r.fake, 1, "EVAL"), unknown);
    for (int i = 0; i < MANY; i++)
        nxl_lock_free(locks[i]);
    rig_close(&r);
}

/* -------------------------------------------------- how much, and how old */

static void at_most_eight_are_unanswered(void **state)
{
    (void)state;
    struct script s = {0};
    add(&s, SHAKE);
    for (char c = 'a'; c < 'a' + 8; c++)
        add(&s, "EXPECT SET k $%c NX PX 30000\nEXPECT EVAL * 1 k $%c\n", c, c);
    add(&s, "TELL eight\nWAIT-FOR answers\n");
    for (int i = 0; i < 8; i++)
        add(&s, "SEND $-1\\r\\n:0\\r\\n\n");
    add(&s, "TELL answered\n" WORKS);
    struct rig r = rig_open(s.text, 'u', "timeout_ms=30");
    assert_first_takes(nxl_lock_acquire(r.lock, 0), NXL_UNKNOWN, 25, 30);
    for (int i = 1; i < 8; i++)
        assert_takes(nxl_lock_acquire(r.lock, 0), NXL_UNKNOWN, 25, 30);
    assert_true(fake_await(r.fake, "eight"));
    /* The oldest has been so for longer than the time-out. Nothing more is
     * sent, and nobody waits in vain. */
    for (int i = 0; i < 3; i++) {
        assert_ends(nxl_lock_acquire(r.lock, 0), NXL_E_UNREACHABLE, 0);
        assert_contains(nxl_lock_errmsg(r.lock), "unanswered");
    }
    assert_takes(nxl_lock_acquire(r.lock, 60), NXL_E_UNREACHABLE, 30, 60);
    nxl_holder holder = NXL_HOLDER_INIT;
    assert_ends(nxl_lock_inspect(r.lock, &holder), NXL_E_UNREACHABLE, 30);
    fake_signal(r.fake, "answers");
    assert_true(fake_await(r.fake, "answered"));
    assert_works(r.lock); /* reads them first */
    rig_close(&r);
}

/* Too old: the connection is replaced while a call waits, and what it left is
 * undone on the new one. */
static void an_old_connection_is_replaced_during_a_call(void **state)
{
    (void)state;
    struct rig r =
        rig_open(SHAKE "SILENCE\n" NEXT "SERVE\n", 'u', "timeout_ms=900");
    assert_takes(nxl_lock_acquire(r.lock, 8000), NXL_OK, 1995, 3000);
    assert_string_equal(fake_value(r.fake, "k"), nxl_lock_token(r.lock));
    assert_between(fake_count(r.fake, 0, "SET"), 2, 3);
    assert_true(fake_count(r.fake, 1, "EVAL") >= 2);
    assert_ends(nxl_lock_release(r.lock), NXL_OK, 200);
    rig_close(&r);
}

/* max(2 s, 2 x timeout_ms), counted from its oldest unanswered command. */
static void a_connection_is_closed_at_its_age(void **state)
{
    (void)state;
    static const struct {
        const char *params;
        int64_t age;
    } cases[] = {{"timeout_ms=60", 2000}, {"timeout_ms=1200", 2400}};
    for (int i = 0; i < 2; i++) {
        struct rig r = rig_open(SHAKE SET_T
            "TELL sent\n" UNDO_T "EXPECT-CLOSE\nTELL closed\n" NEXT "SERVE\n",
            'u', cases[i].params);
        int64_t began, arrived, ended;
        int rc;
        do { /* again if the handshake took too long on a busy machine */
            began = test_now_ms();
            rc = acquire_by_loop(r.client, r.lock, 0);
            arrived = test_now_ms();
        } while (rc == NXL_E_UNREACHABLE);
        assert_int_equal(rc, NXL_UNKNOWN);
        turn_until(r.client, fake_connections(r.fake) == 2);
        ended = test_now_ms();
        /* The command left at some time between the two. */
        assert_true(ended - began >= cases[i].age);
        assert_true(ended - arrived <= cases[i].age + 20 + slack_ms());
        assert_true(fake_await(r.fake, "closed"));
        assert_idle(r.client); /* paid */
        assert_int_equal(fake_count(r.fake, 1, "EVAL"), 1);
        rig_close(&r);
    }
}

/* Nobody drives the client meanwhile: the next call finds it too old, and
 * does not spend its time on it. */
static void an_old_connection_is_replaced_before_use(void **state)
{
    (void)state;
    struct rig r = rig_open(SHAKE SET_T UNDO_T
        "EXPECT-CLOSE\n" NEXT SHAKE "EXPECT CLIENT KILL ID 7\n" UNDO_T
        "SEND :1\\r\\n:1\\r\\n\n" WORKS,
        'u', "timeout_ms=300");
    assert_first_takes(nxl_lock_acquire(r.lock, 0), NXL_UNKNOWN, 0, 300);
    int64_t old = test_now_ms() + 2000;
    assert_eventually(test_now_ms() > old);
    assert_ends(nxl_lock_acquire(r.lock, 0), NXL_OK, 300);
    assert_ends(nxl_lock_release(r.lock), NXL_OK, 300);
    rig_close(&r);
}

/* A handshake that is never answered is given up by its age as well. */
static void a_mute_server_is_left(void **state)
{
    (void)state;
    struct rig r =
        rig_open(FLIGHT "EXPECT-CLOSE\n" NEXT SHAKE GRANT_AGAIN DROP_T ONE, 't',
            "timeout_ms=300");
    assert_takes(nxl_lock_acquire(r.lock, 6000), NXL_OK, 1995, 2600);
    assert_ends(nxl_lock_release(r.lock), NXL_OK, 100);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_did_not_leave_is_taken_back),
        cmocka_unit_test(nothing_is_formatted_for_a_full_socket),
        cmocka_unit_test(lost_while_full),
        cmocka_unit_test(at_most_eight_are_unanswered),
        cmocka_unit_test(an_old_connection_is_replaced_during_a_call),
        cmocka_unit_test(a_connection_is_closed_at_its_age),
        cmocka_unit_test(an_old_connection_is_replaced_before_use),
        cmocka_unit_test(a_mute_server_is_left),
    };
    return cmocka_run_group_tests_name("cleanup_full", tests, NULL, NULL);
}

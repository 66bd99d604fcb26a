/* SPDX-License-Identifier: MIT */
/* What a handle's end, a client's end and a cancel leave behind: nothing, if
 * the server answers; and they never wait for longer than they may. */
#include "rig.h"

#include <pthread.h>

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
        assert_between(free_client(&r), 0, 400);
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
            i % 2 ? 't' : 'u', small ? "timeout_ms=80" : PARAMS);
        assert_ends(nxl_lock_acquire(r.lock, 0), NXL_UNKNOWN, 80);
        assert_between(free_client(&r), 0, (small ? 80 : 500) + slack_ms());
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
    assert_between(free_client(&r), 0, 200);
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

/* ---------------------------------------------------------------- cancel */

struct canceller {
    struct fake *fake;
    nxl_lock *lock;
    const char *sign;
    bool came;
    int rc;
};

static void *cancel(void *data)
{
    struct canceller *c = data;
    c->came = fake_await(c->fake, c->sign);
    c->rc = nxl_lock_cancel(c->lock);
    return NULL;
}

/* Runs the call, and cancels it when the fake gives the sign. */
static void assert_cancelled(
    struct rig *r, int (*call)(nxl_lock *), const char *sign)
{
    struct canceller c = {.fake = r->fake, .lock = r->lock, .sign = sign};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, cancel, &c), 0);
    int64_t start = test_now_ms();
    int rc = call(r->lock);
    int64_t took = test_now_ms() - start;
    pthread_join(thread, NULL);
    assert_true(c.came);
    assert_int_equal(c.rc, NXL_OK);
    assert_int_equal(rc, NXL_CANCELLED);
    assert_between(took, 0, 500);
}

static int acquire_for_ever(nxl_lock *lock)
{
    return nxl_lock_acquire(lock, NXL_FOREVER);
}

static int extend(nxl_lock *lock)
{
    return nxl_lock_extend(lock, 0);
}

static void a_cancelled_acquire_is_undone(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct rig r = rig_open(SHAKE SET_T "TELL sent\n" UNDO_T
                                            "TELL undone\n" OK ONE WORKS,
            i ? 't' : 'u', PARAMS);
        assert_cancelled(&r, acquire_for_ever, "sent");
        assert_not_held(r.lock);
        assert_true(fake_await(r.fake, "undone"));
        assert_works(r.lock);
        rig_close(&r);
    }
}

static void cancelled_before_anything_left(void **state)
{
    (void)state;
    struct rig r =
        rig_open(FLIGHT "TELL came\nWAIT-FOR go\nSEND :7\\r\\n\nBULK " INFO_TEXT
                        "\nBULK a\nBULK b\nBULK c\n" WORKS,
            'u', PARAMS);
    assert_cancelled(&r, acquire_for_ever, "came");
    fake_signal(r.fake, "go");
    assert_works(r.lock);
    rig_close(&r);
}

/* The delay, of 30 s at least, is all that it waits for. */
static void cancelled_between_two_rounds(void **state)
{
    (void)state;
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    nxl_lock *lock;
    struct rig r = rig_open(SHAKE SET_T
        "EXPECT PTTL k\nSEND $-1\\r\\n:90000\\r\\n\n" WORKS,
        'u', PARAMS "&poll=1");
    options.retry_min_ms = options.retry_max_ms = 60000;
    assert_int_equal(nxl_lock_new(&lock, r.client, "k", &options), NXL_OK);
    assert_int_equal(nxl_lock_acquire_start(lock, NXL_FOREVER), NXL_PENDING);
    turn_until(r.client, turn(r.client, 1) > 5000);
    assert_int_equal(nxl_lock_cancel(lock), NXL_OK);
    assert_int_equal(event_result(r.client, lock), NXL_CANCELLED);
    assert_not_held(lock);
    assert_idle(r.client);
    assert_int_equal(acquire_by_loop(r.client, lock, 0), NXL_OK);
    assert_int_equal(nxl_lock_release_start(lock), NXL_PENDING);
    assert_int_equal(event_result(r.client, lock), NXL_OK);
    nxl_lock_free(lock);
    rig_close(&r);
}

static void a_cancelled_extension_changes_nothing(void **state)
{
    (void)state;
    struct rig r = rig_open(SHAKE GRANT EXTEND_T
        "TELL sent\nWAIT-FOR late\nSEND :30000\\r\\n\n" DROP_T ONE,
        'u', PARAMS);
    assert_ends(nxl_lock_acquire(r.lock, 0), NXL_OK, 200);
    uint64_t deadline = nxl_lock_deadline(r.lock);
    assert_cancelled(&r, extend, "sent");
    assert_true(nxl_lock_held(r.lock));
    assert_true(nxl_lock_deadline(r.lock) == deadline);
    fake_signal(r.fake, "late");
    assert_ends(nxl_lock_release(r.lock), NXL_OK, 200);
    rig_close(&r);
}

static void a_release_is_not_cancelled(void **state)
{
    (void)state;
    struct rig r =
        rig_open(SHAKE GRANT DROP_T "TELL sent\nDELAY 50\n" ONE, 'u', PARAMS);
    assert_ends(nxl_lock_acquire(r.lock, 0), NXL_OK, 200);
    struct canceller c = {.fake = r.fake, .lock = r.lock, .sign = "sent"};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, cancel, &c), 0);
    assert_takes(nxl_lock_release(r.lock), NXL_OK, 45, 200);
    pthread_join(thread, NULL);
    assert_int_equal(c.rc, NXL_OK);
    assert_int_equal(nxl_lock_cancel(r.lock), NXL_OK); /* nothing to cancel */
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
        cmocka_unit_test(a_cancelled_acquire_is_undone),
        cmocka_unit_test(cancelled_before_anything_left),
        cmocka_unit_test(cancelled_between_two_rounds),
        cmocka_unit_test(a_cancelled_extension_changes_nothing),
        cmocka_unit_test(a_release_is_not_cancelled),
    };
    return cmocka_run_group_tests_name("cleanup_end", tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * Whose reply is it? Each goes to its command; one that cannot be an answer
 * ends the connection, and nothing behind it is believed. Connections that are
 * lost while nobody uses them, and late replies, are in
 * unit/scenes/server.scenes and request.scenes.
 */
#include "rig.h"

#define PARAMS "timeout_ms=1000"

/* ------------------------------------------------------ nobody asked for it */

static const char *const extras[] = {
    "+OK\\r\\n",
    "+OK\\r",
    "+",
    "$-1\\r\\n",
    ":1\\r\\n",
    "-ERR server is going down\\r\\n",
    "*2\\r\\n",
    "*2\\r\\n:1\\r\\n",
    ">2\\r\\n+invalidate\\r\\n*0\\r\\n",
};
#define EXTRAS (sizeof(extras) / sizeof(extras[0]))

/* Behind the last reply that was due, in the same packet. What was answered
 * before it stands; then the connection is done with. */
static void an_extra_reply_behind_another(void **state)
{
    (void)state;
    for (size_t i = 0; i < EXTRAS; i++) {
        struct script s = {0};
        add(&s,
            SHAKE SET_T
            "SEND +OK\\r\\n%s\nEXPECT-CLOSE\n" NEXT SHAKE DROP_T ONE WORKS,
            extras[i]);
        struct rig r = rig_open(s.text, i % 2 ? 't' : 'u', PARAMS);
        assert_ends(nxl_lock_acquire(r.lock, 0), NXL_OK, 200);
        assert_true(nxl_lock_held(r.lock));
        rig_idle();
        assert_ends(nxl_lock_release(r.lock), NXL_OK, 200);
        assert_works(r.lock);
        rig_close(&r);
    }
}

/* While nothing was due. It must not be what the next command is told. */
static void an_extra_reply_while_idle(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * EXTRAS; i++) {
        struct script s = {0};
        add(&s,
            SHAKE WORKS "WAIT-FOR extra\nSEND %s\nTELL sent\n"
                        "EXPECT-CLOSE\n" NEXT SHAKE SET_T NIL,
            extras[i / 2]);
        struct rig r = rig_open(s.text, i % 2 ? 't' : 'u', PARAMS);
        assert_works(r.lock);
        fake_signal(r.fake, "extra");
        assert_true(fake_await(r.fake, "sent"));
        rig_idle();
        assert_ends(nxl_lock_acquire(r.lock, 0), NXL_BUSY, 200);
        assert_not_held(r.lock);
        rig_close(&r);
    }
}

/* ------------------------------------------------- several under way */

struct three {
    nxl_lock *a, *b, *c;
};

static struct three start_three(struct rig *r)
{
    struct three t = {lock_of_name(r->client, "a", 30000),
        lock_of_name(r->client, "b", 30000),
        lock_of_name(r->client, "c", 30000)};
    assert_int_equal(nxl_lock_acquire_start(t.a, 0), NXL_PENDING);
    assert_int_equal(nxl_lock_acquire_start(t.b, 0), NXL_PENDING);
    assert_int_equal(nxl_lock_acquire_start(t.c, 0), NXL_PENDING);
    return t;
}

static void free_three(struct three *t)
{
    nxl_lock_free(t->a);
    nxl_lock_free(t->b);
    nxl_lock_free(t->c);
}

/* The results of a, b and c, in whatever order they come. */
static void results(nxl_client *client, const struct three *t, int rc[3])
{
    nxl_event event;
    for (int i = 0; i < 3; i++) {
        turn_until(client, nxl_client_next_event(client, &event));
        rc[event.lock == t->a ? 0 : event.lock == t->b ? 1 : 2] = event.result;
    }
}

#define SET_THREE                                                              \
    "EXPECT SET a $a NX PX 30000\nEXPECT SET b $b NX PX 30000\n"               \
    "EXPECT SET c $c NX PX 30000\n"

static void each_gets_its_own(void **state)
{
    (void)state;
    static const char *const replies[] = {
        "SEND $-1\\r\\n+OK\\r\\n-MISCONF no\\r\\n\n",
        "SEND $-1\\r\\n\nDELAY 10\nSEND +O\nDELAY 10\nSEND K\\r\\n-MISCONF\n"
        "DELAY 10\nSEND \\x20no\\r\\n\n",
    };
    for (int i = 0; i < 4; i++) {
        struct script s = {0};
        add(&s, SHAKE SET_THREE "%sEXPECT EVAL * 1 b $b\n" ONE, replies[i / 2]);
        struct rig r = rig_open(s.text, i % 2 ? 't' : 'u', PARAMS);
        struct three t = start_three(&r);
        int rc[3];
        results(r.client, &t, rc);
        assert_int_equal(rc[0], NXL_BUSY);
        assert_int_equal(rc[1], NXL_OK);
        assert_int_equal(rc[2], NXL_E_REFUSED);
        assert_false(nxl_lock_held(t.a));
        assert_true(nxl_lock_held(t.b));
        assert_false(nxl_lock_held(t.c));
        free_three(&t);
        rig_close(&r);
    }
}

/* Out of step from the first reply on: the others may be anybody's. */
static void nothing_behind_nonsense_is_believed(void **state)
{
    (void)state;
    struct rig r = rig_open(SHAKE SET_THREE
        "SEND :5\\r\\n+OK\\r\\n$-1\\r\\n\nEXPECT-CLOSE\n" NEXT "SERVE\n",
        'u', PARAMS);
    struct three t = start_three(&r);
    int rc[3];
    results(r.client, &t, rc);
    for (int i = 0; i < 3; i++)
        assert_int_equal(rc[i], NXL_UNKNOWN);
    assert_not_held(t.b);
    turn_until(r.client, fake_count(r.fake, 1, "EVAL") == 3);
    free_three(&t);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_extra_reply_behind_another),
        cmocka_unit_test(an_extra_reply_while_idle),
        cmocka_unit_test(each_gets_its_own),
        cmocka_unit_test(nothing_behind_nonsense_is_believed),
    };
    return cmocka_run_group_tests_name("conn", tests, NULL, NULL);
}

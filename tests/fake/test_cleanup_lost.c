/* SPDX-License-Identifier: MIT */
/* What is given up on a connection that is lost: paid on the next one before
 * anything new, and for as long as it may still stand. */
#include "rig.h"

#define PARAMS "timeout_ms=500"
#define REFUSED "SEND -NOPERM not now\\r\\n\n"
#define KILL_7 "EXPECT CLIENT KILL ID 7\n"

/* An acquire by the loop that ends unknown with its connection. With a short
 * timeout_ms it may end in the handshake, on a busy machine: then nothing was
 * sent, and it is repeated. */
static void lose(struct rig *r)
{
    int rc = NXL_E_UNREACHABLE;
    for (int i = 0; i < 100 && rc == NXL_E_UNREACHABLE; i++)
        rc = acquire_by_loop(r->client, r->lock, 0);
    assert_int_equal(rc, NXL_UNKNOWN);
    assert_not_held(r->lock);
}

/* ------------------------------------------------- the old one is killed */

/* Both numbers that CLIENT KILL gives say that it is gone. */
static void killed_and_then_undone(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct script s = {0};
        add(&s,
            SHAKE SET_T "CLOSE\n" NEXT SHAKE KILL_7 UNDO_T
                        "SEND :%d\\r\\n:%d\\r\\n\n",
            i % 2, i / 2);
        struct rig r = rig_open(s.text, 'u', PARAMS);
        lose(&r);
        turn_until(r.client, fake_count(r.fake, 1, "EVAL") == 1);
        assert_idle(r.client);
        rig_close(&r);
    }
}

/* The call of another lock pays too, before its own command. */
static void any_call_on_the_client_pays(void **state)
{
    (void)state;
    struct rig r = rig_open(SHAKE SET_T "RESET\n" NEXT SHAKE KILL_7 UNDO_T
                                        "EXPECT EVALSHA * 1 other *\n"
                                        "SEND :1\\r\\n:1\\r\\n*0\\r\\n\n",
        't', PARAMS);
    nxl_lock *other = lock_of_name(r.client, "other", 20000);
    nxl_holder holder = NXL_HOLDER_INIT;
    assert_ends(nxl_lock_acquire(r.lock, 0), NXL_UNKNOWN, 500);
    assert_ends(nxl_lock_inspect(other, &holder), NXL_FREE, 500);
    nxl_lock_free(other);
    rig_close(&r);
}

/* The connection on which it is paid is lost as well: it is the first one
 * that has to be killed, still. */
static void lost_again_and_again(void **state)
{
    (void)state;
    for (size_t i = 0; i < CUTS; i++) {
        struct script s = {0};
        add(&s, SHAKE SET_T "CLOSE\n" NEXT);
        for (int j = 0; j < 3; j++) {
            add(&s, SHAKE KILL_7 UNDO_T);
            add_cut(&s, &cuts[i], ":");
            add(&s, NEXT);
        }
        add(&s, SHAKE KILL_7 UNDO_T "SEND :0\\r\\n:0\\r\\n\n");
        struct rig r = rig_open(s.text, cuts[i].reset ? 't' : 'u', PARAMS);
        lose(&r);
        turn_until(r.client, fake_count(r.fake, 4, "EVAL") == 1);
        assert_idle(r.client);
        rig_close(&r);
    }
}

/* Once killed is enough. */
static void lost_after_the_kill(void **state)
{
    (void)state;
    for (size_t i = 0; i < CUTS; i++) {
        struct script s = {0};
        add(&s, SHAKE SET_T "CLOSE\n" NEXT SHAKE KILL_7 UNDO_T ONE);
        add_cut(&s, &cuts[i], ":0");
        add(&s, NEXT SHAKE UNDO_T ZERO);
        struct rig r = rig_open(s.text, cuts[i].reset ? 't' : 'u', PARAMS);
        lose(&r);
        turn_until(r.client, fake_count(r.fake, 2, "EVAL") == 1);
        assert_int_equal(fake_count(r.fake, 2, "CLIENT"), 1); /* ID */
        assert_idle(r.client);
        rig_close(&r);
    }
}

/* The grant came late but the undoing's answer did not: nothing can come any
 * more, so nothing is killed and one answer is enough. */
static void lost_after_the_late_grant(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * CUTS; i++) {
        struct script s = {0};
        add(&s, SHAKE SET_T UNDO_T OK "TELL granted\nWAIT-FOR cut\n");
        add_cut(&s, &cuts[i / 2], ":");
        add(&s, NEXT SHAKE UNDO_T "%s", i % 2 ? ONE : ZERO);
        struct rig r =
            rig_open(s.text, cuts[i / 2].reset ? 't' : 'u', "timeout_ms=60");
        lose(&r);
        assert_true(fake_await(r.fake, "granted"));
        int64_t read = test_now_ms() + 20;
        turn_until(r.client, test_now_ms() > read);
        fake_signal(r.fake, "cut");
        turn_until(r.client, fake_count(r.fake, 1, "EVAL") == 1);
        assert_idle(r.client);
        rig_close(&r);
    }
}

/* Given up first, then lost without an answer or inside one. */
static void lost_without_the_late_grant(void **state)
{
    (void)state;
    for (size_t i = 0; i < CUTS; i++) {
        struct script s = {0};
        add(&s, SHAKE SET_T UNDO_T);
        add_cut(&s, &cuts[i], "+OK");
        add(&s, NEXT SHAKE KILL_7 UNDO_T "SEND :1\\r\\n:0\\r\\n\n");
        struct rig r =
            rig_open(s.text, cuts[i].reset ? 't' : 'u', "timeout_ms=60");
        lose(&r);
        turn_until(r.client, fake_count(r.fake, 1, "EVAL") == 1);
        assert_idle(r.client);
        rig_close(&r);
    }
}

/* ------------------------------------------- it cannot be killed for sure */

#define OTHER_INFO                                                             \
    "INFO # Server\\r\\nredis_version:7.0.15\\r\\n"                            \
    "run_id:ffffffffffffffffffffffffffffffffffffffff\\r\\n\n"
#define NO_ID                                                                  \
    FLIGHT "SEND -ERR unknown command 'CLIENT'\\r\\n\n"                        \
           "BULK " INFO_TEXT "\\r\\n\nBULK a\nBULK b\nBULK c\n"
#define NO_INFO                                                                \
    FLIGHT "SEND :7\\r\\n-NOPERM no permissions to run 'info'\\r\\n\n"         \
           "BULK a\nBULK b\nBULK c\n"

/* What the two connections begin with, and what comes before each undoing. */
static const struct unsure {
    const char *name, *first, *second, *kill, *killed;
} unsures[] = {
    {"no client id", NO_ID, SHAKE, "", ""},
    {"no run id", NO_INFO, SHAKE, "", ""},
    {"no run id now", SHAKE, NO_INFO, "", ""},
    {"another process", SHAKE, OTHER_INFO SHAKE, "", ""},
    {"not permitted", SHAKE, SHAKE, KILL_7,
        "SEND -NOPERM no permissions to run 'client|kill'\\r\\n\n"},
    {"not supported", SHAKE, SHAKE, KILL_7, "SEND -ERR syntax error\\r\\n\n"},
};
#define UNSURES (sizeof(unsures) / sizeof(unsures[0]))

/* Deleting nothing proves nothing then: it is repeated, ever less often,
 * until something was deleted. */
static void unsure_is_repeated_until_it_deleted(void **state)
{
    (void)state;
    enum { TIMES = 5 };
    for (size_t i = 0; i < UNSURES; i++) {
        const struct unsure *u = &unsures[i];
        print_message("%s\n", u->name);
        struct script s = {0};
        add(&s, "%s" SET_T "CLOSE\n" NEXT "%s", u->first, u->second);
        for (int j = 1; j <= TIMES; j++)
            add(&s, "%s" UNDO_T "%s%s", u->kill, u->killed,
                j < TIMES ? ZERO : ONE);
        struct rig r = rig_open(s.text, 'u', PARAMS);
        int64_t at[TIMES];
        lose(&r);
        for (size_t j = 0; j < TIMES; j++) {
            turn_until(r.client, fake_count(r.fake, 1, "EVAL") == j + 1);
            at[j] = test_now_ms();
            if (j > 0)
                assert_between(at[j] - at[j - 1], (20 << (j - 1)) - 10, 2000);
        }
        assert_between(at[TIMES - 1] - at[0], 20 + 40 + 80 + 160 - 10, 4000);
        assert_idle(r.client);
        rig_close(&r);
    }
}

/* ... or nothing of it can stand any more. */
static void unsure_is_repeated_for_the_ttl(void **state)
{
    (void)state;
    for (size_t i = 0; i < UNSURES; i++) {
        const struct unsure *u = &unsures[i];
        print_message("%s\n", u->name);
        struct script s = {0};
        add(&s, "%sEXPECT SET k $t NX PX 300\nCLOSE\n" NEXT "%s", u->first,
            u->second);
        for (int j = 0; j < 12; j++)
            add(&s, "%s" UNDO_T "%s" ZERO, u->kill, u->killed);
        struct rig r = rig_open(s.text, 'u', PARAMS);
        nxl_lock *lock = lock_of_name(r.client, "k", 300);
        int64_t start = test_now_ms();
        assert_int_equal(acquire_by_loop(r.client, lock, 0), NXL_UNKNOWN);
        assert_idle(r.client);
        assert_between(test_now_ms() - start, 300, 300 + 640 + slack_ms());
        /* Fewer than 4 if this machine was late for a delay that doubles. */
        assert_between(fake_count(r.fake, 1, "EVAL"), 2, 6);
        nxl_lock_free(lock);
        nxl_lock_free(r.lock);
        nxl_client_free(r.client);
        fake_free(r.fake);
    }
}

/* ------------------------------------------------------------- adoption */

#define WAYS_REFUSED                                                           \
    REFUSED "EXPECT WATCH k\nEXPECT GETRANGE k 0 511\nEXPECT PTTL k\n"         \
            "EXPECT EXISTS k\nEXPECT MULTI\n" REFUSED REFUSED REFUSED REFUSED  \
                REFUSED                                                        \
            "EXPECT TIME\nEXPECT GETRANGE k 0 511\n" REFUSED REFUSED

/* The acquire had been applied, and its token is adopted: what is owed for it
 * must not delete what is held now. */
static void an_adopted_token_is_forgiven(void **state)
{
    (void)state;
    enum { TIMES = 4 };
    struct script s = {0};
    add(&s, NO_INFO SET_T "CLOSE\n" NEXT SHAKE);
    for (int i = 0; i < TIMES; i++)
        add(&s, UNDO_T WAYS_REFUSED);
    add(&s, "TELL refused\nEXPECT EVALSHA * 1 k\n"
            "SEND *2\\r\\n$36\\r\\n$t\\r\\n:30000\\r\\n\n"
            "WAIT-FOR later\n" EXTEND_T "SEND :30000\\r\\n\n" DROP_T ONE);
    struct rig r = rig_open(s.text, 'u', PARAMS);
    char token[64];
    lose(&r);
    snprintf(token, sizeof(token), "%s", nxl_lock_token(r.lock));
    turn_until(r.client, fake_count(r.fake, 1, "TIME") == TIMES);
    assert_true(fake_await(r.fake, "refused"));
    assert_int_equal(nxl_lock_adopt_start(r.lock, token), NXL_PENDING);
    assert_int_equal(event_result(r.client, r.lock), NXL_OK);
    int64_t adopted = test_now_ms(); /* it would be undone 160 ms later */
    turn_until(r.client, test_now_ms() > adopted + 250);
    assert_int_equal(fake_count(r.fake, 1, "EVAL"), TIMES);
    fake_signal(r.fake, "later");
    assert_int_equal(nxl_lock_extend_start(r.lock, 0), NXL_PENDING);
    assert_int_equal(event_result(r.client, r.lock), NXL_OK);
    assert_int_equal(nxl_lock_release_start(r.lock), NXL_PENDING);
    assert_int_equal(event_result(r.client, r.lock), NXL_OK);
    assert_int_equal(fake_count(r.fake, 1, "EVAL"), TIMES);
    rig_close(&r);
}

/* ------------------------------------------------------ nobody to pay it to */

/* The server is away for longer than the lease: then nothing is owed, and
 * nothing wakes the loop for it. */
static void a_debt_ends_with_the_ttl_when_nobody_listens(void **state)
{
    (void)state;
    struct rig r = rig_open(
        SHAKE "EXPECT SET k $t NX PX 200\nREFUSE\nCLOSE\n", 'u', PARAMS);
    nxl_lock *lock = lock_of_name(r.client, "k", 200);
    int64_t start = test_now_ms();
    assert_int_equal(acquire_by_loop(r.client, lock, 0), NXL_UNKNOWN);
    unsigned turns = 0;
    for (; turn(r.client, 50) >= 0; turns++)
        assert_true(test_now_ms() - start < 3000);
    assert_between(test_now_ms() - start, 190, 200 + 500 + slack_ms());
    assert_between(turns, 1, 60);
    int64_t freed = test_now_ms();
    nxl_lock_free(lock);
    nxl_lock_free(r.lock);
    nxl_client_free(r.client);
    assert_between(test_now_ms() - freed, 0, slack_ms());
    assert_no_text(fake_join(r.fake));
    fake_free(r.fake);
}

/* ------------------------------------------------------------- a release */

/* Held, by a client with a short time-out. A busy machine may need several
 * tries for that. */
static struct rig open_held(const char *script, char way)
{
    for (int tries = 1;; tries++) {
        struct rig r = rig_open(script, way, "timeout_ms=60");
        int rc = acquire_by_loop(r.client, r.lock, 0);
        if (rc == NXL_OK)
            return r;
        rig_drop(&r);
        assert_true(tries < 100);
    }
}

/* Given up, then lost: completed on the next connection, and one answer is
 * enough, for nothing of it can set the name. */
static void an_abandoned_release_is_completed(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * CUTS; i++) {
        struct script s = {0};
        add(&s, SHAKE GRANT DROP_T "WAIT-FOR cut\n");
        add_cut(&s, &cuts[i / 2], ":");
        add(&s, NEXT SHAKE UNDO_T "%s", i % 2 ? ONE : ZERO);
        struct rig r = open_held(s.text, cuts[i / 2].reset ? 't' : 'u');
        assert_int_equal(nxl_lock_release_start(r.lock), NXL_PENDING);
        assert_int_equal(event_result(r.client, r.lock), NXL_UNKNOWN);
        assert_int_equal(fake_count(r.fake, 0, "EVAL"), 0);
        fake_signal(r.fake, "cut");
        turn_until(r.client, fake_count(r.fake, 1, "EVAL") == 1);
        assert_idle(r.client);
        rig_close(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_and_then_undone),
        cmocka_unit_test(any_call_on_the_client_pays),
        cmocka_unit_test(lost_again_and_again),
        cmocka_unit_test(lost_after_the_kill),
        cmocka_unit_test(lost_after_the_late_grant),
        cmocka_unit_test(lost_without_the_late_grant),
        cmocka_unit_test(unsure_is_repeated_until_it_deleted),
        cmocka_unit_test(unsure_is_repeated_for_the_ttl),
        cmocka_unit_test(an_adopted_token_is_forgiven),
        cmocka_unit_test(a_debt_ends_with_the_ttl_when_nobody_listens),
        cmocka_unit_test(an_abandoned_release_is_completed),
    };
    return cmocka_run_group_tests_name("cleanup_lost", tests, NULL, NULL);
}

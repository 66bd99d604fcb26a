/* SPDX-License-Identifier: MIT */
/*
 * The brief handshake for proxies that close the connection at commands without
 * a key. Two connections were closed; the third asks for CLIENT ID behind PING,
 * and no lock command is sent before that has shown what the peer is.
 */
#include "rig.h"

#define HANGS_UP FLIGHT "CLOSE\n" NEXT
#define PONG "EXPECT PING\nSEND +PONG\\r\\n\n"
#define PROBE PONG "EXPECT CLIENT ID\n"
/* What assert_works() does, with a token that is called name. */
#define CYCLE(name)                                                            \
    "EXPECT SET k $" name " NX PX 30000\n" OK "EXPECT EVALSHA * 1 k $" name    \
    "\n" ONE
#define TWICE HANGS_UP HANGS_UP

/* It hangs up at CLIENT ID: later brief handshakes go without it. */
static void a_proxy_is_confirmed_once(void **state)
{
    (void)state;
    static const char script[] =
        TWICE PROBE "CLOSE\n" NEXT PONG WORKS
                    "WAIT-FOR close\nCLOSE\n" NEXT TWICE PONG CYCLE("y");
    struct rig r = rig_open(script, 'u', "timeout_ms=2000");
    assert_works(r.lock);
    rig_hang_up(&r, "close");
    rig_idle();
    assert_works(r.lock);
    rig_close(&r);
}

/* Until a full handshake succeeds: then it has to be confirmed anew. */
static void a_full_handshake_ends_the_confirmation(void **state)
{
    (void)state;
    static const char script[] = TWICE PROBE
        "CLOSE\n" NEXT PONG WORKS "WAIT-FOR one\nCLOSE\n" NEXT SHAKE CYCLE(
            "y") "WAIT-FOR two\nCLOSE\n" NEXT FLIGHT
                 "EXPECT SET k * NX PX 30000\n"
                 "CLOSE\n" NEXT FLIGHT "CLOSE\n" NEXT PROBE
                 "SEND :7\\r\\n\nEXPECT-CLOSE\n" NEXT SHAKE
                 "EXPECT EVAL * 1 k *\n" ONE CYCLE("x");
    struct rig r = rig_open(script, 'u', "timeout_ms=2000");
    assert_works(r.lock);
    rig_hang_up(&r, "one");
    rig_idle();
    assert_works(r.lock);
    rig_hang_up(&r, "two");
    rig_idle();
    assert_ends(nxl_lock_acquire(r.lock, 0), NXL_UNKNOWN, 2000);
    assert_works(r.lock);
    rig_close(&r);
}

/* An integer or an error: a server, which gets the full handshake at once. */
static void a_server_gets_the_full_handshake(void **state)
{
    (void)state;
    static const char *const answers[] = {":7", "-NOPERM no", "-ERR unknown"};
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        struct script s = {0};
        add(&s, TWICE PROBE "SEND %s\\r\\n\nEXPECT-CLOSE\n" NEXT SHAKE WORKS,
            answers[i]);
        struct rig r = rig_open(s.text, 'u', "timeout_ms=2000");
        assert_works(r.lock);
        rig_close(&r);
    }
}

/* It answers CLIENT ID and yet closes every full handshake: each try ends, and
 * the next one waits its time. */
static void it_does_not_go_round_in_circles(void **state)
{
    (void)state;
    struct script s = {0};
    for (int i = 0; i < 2; i++)
        add(&s, TWICE PROBE "SEND -ERR no\\r\\n\nEXPECT-CLOSE\n" NEXT);
    add(&s, SHAKE WORKS);
    struct rig r = rig_open(s.text, 'u', "timeout_ms=2000");
    assert_ends(nxl_lock_acquire(r.lock, 0), NXL_E_UNREACHABLE, 2000);
    assert_contains(nxl_lock_errmsg(r.lock), "CLIENT ID");
    assert_works(r.lock);
    rig_close(&r);
}

/* Anything else is no answer of a server. */
static void an_impossible_answer(void **state)
{
    (void)state;
    struct rig r =
        rig_open(TWICE PROBE "SEND +OK\\r\\n\nEXPECT-CLOSE\n" NEXT SHAKE WORKS,
            'u', "timeout_ms=2000");
    assert_ends(nxl_lock_acquire(r.lock, 0), NXL_E_NOT_REDIS, 2000);
    assert_works(r.lock);
    rig_close(&r);
}

/* Without the login or the database a lock would be another one's. */
static void a_refused_login_ends_it(void **state)
{
    (void)state;
    struct rig r = rig_open("EXPECT SELECT 3\n" FLIGHT "CLOSE\n" NEXT
                            "EXPECT SELECT 3\n" FLIGHT "CLOSE\n" NEXT
                            "EXPECT SELECT 3\nEXPECT PING\n"
                            "SEND -NOPERM no\\r\\n+PONG\\r\\n\nEXPECT-CLOSE\n",
        'u', "timeout_ms=2000&db=3");
    assert_ends(nxl_lock_acquire(r.lock, 0), NXL_E_DENIED, 2000);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_proxy_is_confirmed_once),
        cmocka_unit_test(a_full_handshake_ends_the_confirmation),
        cmocka_unit_test(a_server_gets_the_full_handshake),
        cmocka_unit_test(it_does_not_go_round_in_circles),
        cmocka_unit_test(an_impossible_answer),
        cmocka_unit_test(a_refused_login_ends_it),
    };
    return cmocka_run_group_tests_name("brief", tests, NULL, NULL);
}

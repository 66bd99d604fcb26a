/* SPDX-License-Identifier: MIT */
/*
 * What a connection says first: no lock command leaves before its answers, and
 * what is known without some of them. Logins that are refused, strangers'
 * answers and farewells are in unit/test_handshake.c and
 * unit/scenes/server.scenes.
 */
#include "rig.h"

#define LOGIN "EXPECT AUTH s3kr1t-pw\nEXPECT SELECT 3\n"

/* The answers of a flight; the first two are the login's. */
static const char *const answers[] = {
    OK,
    OK,
    "SEND :7\\r\\n\n",
    "BULK " INFO_TEXT "\\r\\n\n",
    "BULK a\n",
    "BULK b\n",
    "BULK c\n",
};
#define ANSWERS (sizeof(answers) / sizeof(answers[0]))
#define NO_LOGIN 2

static const char *params(bool login)
{
    return login ? "timeout_ms=60&password=s3kr1t-pw&db=3" : "timeout_ms=60";
}

/* The flight, and its answers from the first one that there is to end. */
static void add_flight(struct script *s, bool login, size_t end)
{
    add(s, "%s" FLIGHT, login ? LOGIN : "");
    for (size_t i = login ? 0 : NO_LOGIN; i < end; i++)
        add(s, "%s", answers[i]);
}

/* EXPECT-CLOSE would tell of any command in that flight or after it. */
static void nothing_leaves_before_the_last_answer(void **state)
{
    (void)state;
    for (size_t i = 0; i < ANSWERS + ANSWERS - NO_LOGIN; i++) {
        bool login = i < ANSWERS;
        struct script s = {0};
        add_flight(&s, login, login ? i : i - ANSWERS + NO_LOGIN);
        add(&s, "EXPECT-CLOSE\n");
        struct rig r = rig_open(s.text, 'u', params(login));
        assert_takes(nxl_lock_acquire(r.lock, 0), NXL_E_UNREACHABLE, 55, 60);
        assert_contains(nxl_lock_errmsg(r.lock), "fake.sock");
        assert_contains(nxl_lock_errmsg(r.lock), "no answer");
        assert_not_held(r.lock);
        rig_close(&r);
    }
}

/* Facts that are refused, one after the other and all of them. */
static void works_without_the_facts(void **state)
{
    (void)state;
    static const char *const errors[] = {
        "-NOPERM this user has no permissions to run this command",
        "-ERR unknown command 'CLIENT'",
        "-ERR unknown subcommand or wrong number of arguments for 'ID'",
        "-LOADING Redis is loading the dataset in memory",
    };
    for (size_t i = 0; i < 4 * (ANSWERS - NO_LOGIN + 1); i++) {
        size_t refused = NO_LOGIN + i / 4;
        struct script s = {0};
        add(&s, FLIGHT);
        for (size_t j = NO_LOGIN; j < ANSWERS; j++) {
            if (j == refused || refused == ANSWERS)
                add(&s, "SEND %s\\r\\n\n", errors[i % 4]);
            else
                add(&s, "%s", answers[j]);
        }
        /* SCRIPT LOAD, for good: may a lock be ended at all? */
        bool scripts = refused >= NO_LOGIN + 2 && i % 4 != 3;
        add(&s,
            "%s" GRANT DROP_T
            "SEND -NOSCRIPT No matching script. Please use EVAL.\\r\\n\n" UNDO_T
                ONE,
            scripts ? RIGHTS("$t") : "");
        struct rig r = rig_open(s.text, 'u', "timeout_ms=2000");
        assert_ends(nxl_lock_acquire(r.lock, 0), NXL_OK, 2000);
        assert_ends(nxl_lock_release(r.lock), NXL_OK, 2000);
        rig_close(&r);
    }
}

/* It has answered INFO, and said what its clock has come to. */
static void a_clock_that_was_set_back(void **state)
{
    (void)state;
    char text[512];
    struct script s = {0};
    add(&s,
        FLIGHT "%s"
               "BULK " INFO_TEXT
               "\\r\\nrole:master\\r\\nuptime_in_seconds:-7203\n"
               "%s%s%s"
               "EXPECT-CLOSE\n",
        answers[NO_LOGIN], answers[NO_LOGIN + 2], answers[NO_LOGIN + 3],
        answers[NO_LOGIN + 4]);
    struct rig r = rig_open(s.text, 'u', "timeout_ms=2000&guard_restarts=on");
    assert_ends(nxl_lock_acquire(r.lock, 0), NXL_E_REFUSED, 2000);
    assert_contains(nxl_lock_errmsg(r.lock), "its clock was set back");
    assert_null(strstr(nxl_lock_errmsg(r.lock), "INFO"));
    nxl_client_describe(r.client, text, sizeof(text));
    assert_contains(text, "no vote: its clock was set back");
    rig_close(&r);
}

/* What INFO says is shown in the library's words, as a program reads it in the
 * facts: a role or software that it does not know is not repeated. */
static void the_line_prints_the_facts(void **state)
{
    (void)state;
    static const struct {
        const char *info;
        int software, role;
        const char *line;
    } rows[] = {
        {"redis_version:7.0.15\\r\\nrole:master", NXL_SOFTWARE_REDIS,
            NXL_ROLE_PRIMARY, ", connected, redis 7.0.15, role primary, lock"},
        {"redis_version:8.0.0-rc1\\r\\nrole:primary", NXL_SOFTWARE_REDIS,
            NXL_ROLE_PRIMARY, ", connected, redis 8.0.0, role primary, lock"},
        {"valkey_version:8.1.0\\r\\nrole:other", NXL_SOFTWARE_VALKEY,
            NXL_ROLE_UNKNOWN, ", connected, valkey 8.1.0, lock"},
        {"redis_version:6.3.4\\r\\nmvcc_depth:0\\r\\nrole:slave",
            NXL_SOFTWARE_KEYDB, NXL_ROLE_REPLICA,
            ", connected, keydb 6.3.4, role replica, lock"},
        {"server_name:kvs\\r\\nredis_version:1.2.3", NXL_SOFTWARE_UNKNOWN,
            NXL_ROLE_UNKNOWN, ", connected, other software 1.2.3, lock"},
        {"uptime_in_seconds:9", NXL_SOFTWARE_UNKNOWN, NXL_ROLE_UNKNOWN,
            ", connected, lock"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct script s = {0};
        nxl_server_facts facts = NXL_SERVER_FACTS_INIT;
        char text[512], expected[2048];
        add(&s, "INFO %s\nSERVE\n", rows[i].info);
        struct rig r = rig_open(s.text, 'u', "timeout_ms=2000");
        assert_int_equal(nxl_lock_acquire(r.lock, 0), NXL_OK);
        assert_int_equal(nxl_client_server_facts(r.client, 0, &facts), NXL_OK);
        assert_int_equal(facts.software, rows[i].software);
        assert_int_equal(facts.role, rows[i].role);
        nxl_client_describe(r.client, text, sizeof(text));
        snprintf(expected, sizeof(expected), "%s%s commands %s, waits %s",
            facts.url, rows[i].line, facts.strategy, facts.waiting);
        assert_string_equal(text, expected);
        rig_close(&r);
    }
}

/* ------------------------------------------------------------ reconnecting */

#define FIRST_LIFE SHAKE WORKS "WAIT-FOR close\nCLOSE\n" NEXT

static void first_life(struct rig *r)
{
    assert_works(r->lock);
    rig_hang_up(r, "close");
    rig_idle();
}

static void a_plain_reconnect_is_one_flight(void **state)
{
    (void)state;
    struct script s = {0};
    add(&s, FIRST_LIFE FLIGHT SET_T);
    for (size_t i = NO_LOGIN; i < ANSWERS; i++)
        add(&s, "%s", answers[i]);
    add(&s, OK);
    add(&s, DROP_T ONE);
    struct rig r = rig_open(s.text, 'u', "timeout_ms=1000");
    first_life(&r);
    assert_ends(nxl_lock_acquire(r.lock, 0), NXL_OK, 1000);
    assert_ends(nxl_lock_release(r.lock), NXL_OK, 1000);
    rig_close(&r);
}

static void a_grant_behind_a_failed_handshake_is_none(void **state)
{
    (void)state;
    static const char *const failures[] = {
        "SEND -DENIED Redis is running in protected mode\\r\\n\n",
        "SEND +OK\\r\\n\n", /* not an id */
    };
    for (size_t i = 0; i < 2; i++) {
        struct script s = {0};
        add(&s, FIRST_LIFE FLIGHT SET_T "%s", failures[i]);
        for (size_t j = NO_LOGIN + 1; j < ANSWERS; j++)
            add(&s, "%s", answers[j]);
        add(&s, OK "EXPECT-CLOSE\n" NEXT SHAKE UNDO_T ONE);
        struct rig r = rig_open(s.text, 'u', "timeout_ms=1000");
        first_life(&r);
        assert_ends(nxl_lock_acquire(r.lock, 0), NXL_UNKNOWN, 1000);
        assert_not_held(r.lock);
        rig_close(&r); /* pays */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_leaves_before_the_last_answer),
        cmocka_unit_test(works_without_the_facts),
        cmocka_unit_test(a_clock_that_was_set_back),
        cmocka_unit_test(the_line_prints_the_facts),
        cmocka_unit_test(a_plain_reconnect_is_one_flight),
        cmocka_unit_test(a_grant_behind_a_failed_handshake_is_none),
    };
    return cmocka_run_group_tests_name("handshake", tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * The aged server's connections: transactions, order, another age in the
 * middle, refusals, the log; and the words that depend on the server's state.
 */
#include "unit/aged_rig.h"

#define KIND "Operation against a key holding the wrong kind of value"
#define WRAP "-ERR Error running script (call to f_<sha1>): "
#define ABORTED "-EXECABORT Transaction discarded because of previous errors."
#define E1 "-ERR wrong number of arguments for 'set' command"

static int start(void **state)
{
    (void)state;
    return redis_start(&r, NULL);
}

static int start_locked(void **state)
{
    (void)state;
    return redis_start(&r, "--requirepass", "sekret", NULL);
}

static void test_before_auth(void **state)
{
    (void)state;
    static const struct {
        enum aged_profile profile;
        const char *set, *eval, *ping, *wrong, *user;
    } ages[] = {
#define OLD_WORDS                                                              \
    "-ERR operation not permitted", "-ERR invalid password",                   \
        "-ERR wrong number of arguments for 'auth' command"
#define NOAUTH "-NOAUTH Authentication required."
#define NEW_WORDS                                                              \
    NOAUTH, "-WRONGPASS invalid username-password pair or user is disabled.",  \
        "+OK"
        {AGED_2_2, E1, "-ERR unknown command 'EVAL'", OLD_WORDS},
        {AGED_2_4, E1, "-ERR unknown command 'EVAL'", OLD_WORDS},
        {AGED_2_6, E1, "-ERR operation not permitted", OLD_WORDS},
        {AGED_6_2, NOAUTH, NOAUTH, NEW_WORDS},
        {AGED_PLAIN, NOAUTH, NOAUTH, NEW_WORDS},
    };

    for (size_t i = 0; i < sizeof(ages) / sizeof(ages[0]); i++) {
        rig_age(ages[i].profile);
        struct rig_client *c = rig_dial();
        ask(c, "SET k v NX PX 60000", ages[i].set);
        ask(c, "EVAL {return 1} 0", ages[i].eval);
        ask(c, "PING", ages[i].ping);
        ask(c, "AUTH no", ages[i].wrong);
        ask(c, "AUTH default sekret", ages[i].user);
        ask(c, "AUTH sekret", "+OK");
        ask(c, "PING", "+PONG");
        aged_refuse(a, "GET", AGED_NOPERM);
        ask(c, "GET k", "-NOPERM ~");
        ask(rig_dial(), "GET k", ages[i].ping);
    }
}

static void test_transactions_of_the_old(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        rig_age((enum aged_profile)(AGED_2_2 + i));
        struct rig_client *c = rig_dial();
        bool aborts = i == 2;
        redis_run(&r, "FLUSHALL", NULL);
        ask(c, "MULTI", "+OK");
        ask(c, "SET k v NX PX 60000", E1);
        ask(c, "SETNX k v", "+QUEUED");
        ask(c, "NO x", "-ERR unknown command 'NO'");
        ask(c, "TTL no", "+QUEUED");
        ask(c, "LPUSH k x", "+QUEUED");
        ask(c, "EXEC", aborts ? ABORTED : "*3|:1|:-1|-ERR " KIND);
        ask(c, "EXEC", "-ERR EXEC without MULTI");
        ask(c, "MULTI", "+OK");
        ask(c, "SETEX k 60 v", "+QUEUED");
        ask(c, "DISCARD", "+OK");
        ask(c, "TTL no", ":-1");
        ask(c, "WATCH k", "+OK");
        redis_run(&r, "SETEX", "k", "60", "v", NULL);
        ask(c, "MULTI", "+OK");
        ask(c, "DEL k", "+QUEUED");
        ask(c, "EXEC", "*-1");
        ask(c, "MULTI", "+OK");
        ask(c, "DEL k", "+QUEUED");
        ask(c, "EXEC", "*1|:1");
    }
}

static void test_transactions_of_2_6(void **state)
{
    (void)state;
    rig_age(AGED_2_6);
    struct rig_client *c = rig_dial();

    ask(c, "MULTI", "+OK");
    ask(c, "EVAL {return redis.call('PTTL','no')} 0", "+QUEUED");
    ask(c, "SCRIPT LOAD {return 7}", "+QUEUED");
    ask(c, "EVALSHA <sha1> 0", "+QUEUED");
    ask(c, "SCRIPT LOAD {return redis.call('NO')}", "+QUEUED");
    ask(c, "EVALSHA <sha1> 0", "+QUEUED");
    ask(c, "PTTL no", "+QUEUED");
    ask(c, "INFO server", "+QUEUED");
    rig_say(c, "EXEC");
    const char *got = rig_hear(c);
    char expected[256], seven[41];
    sha1_hex("return 7", 8, seven);
    snprintf(expected, sizeof(expected),
        "*7|:-1|$40|%s|:7|$40|%s|-ERR Error running script (call to f_%s): "
        "Unknown Redis command called from Lua script |:-1|$",
        seven, rig_sha, rig_sha);
    assert_memory_equal(got, expected, strlen(expected));
    assert_contains(got, "|redis_version:2.6.9|");
}

static void test_refusals(void **state)
{
    (void)state;
    rig_age(AGED_PLAIN);
    struct rig_client *c = rig_dial();

    aged_refuse(a, "EVAL EVALSHA script|load", AGED_NOPERM);
    aged_refuse(a, "WATCH", AGED_UNKNOWN);
    aged_refuse(a, "MULTI", "-NOPERM no");
    ask(c, "eval x 0",
        "-NOPERM this user has no permissions to run the "
        "'eval' command");
    ask(c, "SCRIPT LOAD x",
        "-NOPERM this user has no permissions to run the "
        "'script|load' command");
    ask(c, "SCRIPT EXISTS x", "*1|:0");
    ask(c, "WATCH k l",
        "-ERR unknown command 'WATCH', with args beginning "
        "with: 'k' 'l' ");
    ask(c, "MULTI", "-NOPERM no");
    aged_allow(a);
    ask(c, "MULTI", "+OK");
    aged_refuse(a, "SET", "-NOPERM no");
    ask(c, "SET k v", "-NOPERM no");
    ask(c, "EXEC", ABORTED);
    ask(c, "MULTI", "+OK");
    aged_refuse(a, "EXEC", "-NOPERM not that");
    ask(c, "GET k", "+QUEUED");
    ask(c, "EXEC", "-NOPERM not that");
    ask(c, "GET k", "$-1");
    aged_profile_now(a, AGED_6_2, false);
    aged_refuse(a, "GET", AGED_NOPERM);
    aged_refuse(a, "TTL", AGED_UNKNOWN);
    ask(c, "GET k",
        "-NOPERM this user has no permissions to run the 'get' "
        "command or its subcommand");
    ask(c, "TTL k",
        "-ERR unknown command `TTL`, with args beginning with: "
        "`k`, ");
    redis_run(&r, "ACL", "SETUSER", "default", "-del", NULL);
    ask(c, "DEL k",
        "-NOPERM this user has no permissions to run the 'del' "
        "command or its subcommand");
}

static void test_another_age(void **state)
{
    (void)state;
    rig_age(AGED_2_6);
    struct rig_client *c = rig_dial();

    ask(c, "SCRIPT LOAD {return 1}",
        "$40|e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
    ask(c, "MULTI", "+OK");
    ask(c, "PTTL no", "+QUEUED");
    aged_profile_now(a, AGED_PLAIN, false);
    ask(c, "PTTL no", "+QUEUED");
    ask(c, "EXEC", "*2|:-1|:-2");
    ask(c, "EVALSHA <sha1> 0", "-NOSCRIPT ~");
    ask(c, "EVAL {return 1} 0", ":1");
    ask(c, "EVALSHA <sha1> 0", ":1");
    aged_profile_now(a, AGED_2_6, false);
    ask(c, "EVALSHA <sha1> 0", "-NOSCRIPT ~");
    ask(c, "SET k v NX PX 9000", E1);
    assert_int_equal(aged_connections(a), 1);
    aged_profile_now(a, AGED_2_2, true);
    assert_int_equal(aged_connections(a), 0);
    assert_true(rig_is_closed(c));
    ask(rig_dial(), "EVALSHA x 0", "-ERR unknown command 'EVALSHA'");
    assert_int_equal(aged_accepted(a), 2);
}

/* What the server behind is made to say, and in which words it comes. */
static void test_refused_by_the_server(void **state)
{
    (void)state;
    static const char write[] = "EVAL {return redis.call('SETNX','k','v')} 0";
    static const struct {
        enum aged_profile profile;
        const char *oom, *oom_script, *replica, *replica_script;
    } ages[] = {
#define OOM "OOM command not allowed when used memory > 'maxmemory'."
#define REPLICA "-READONLY You can't write against a read only replica."
#define SLAVE "-READONLY You can't write against a read only slave."
#define MID WRAP "@user_script:1: @user_script: 1: -"
#define AT " script: <sha1>, on @user_script:1."
        {AGED_2_4, "-ERR command not allowed when used memory > 'maxmemory'",
            "-ERR unknown command 'EVAL'", SLAVE,
            "-ERR unknown command 'EVAL'"},
        {AGED_2_6, "-" OOM, WRAP "-" OOM "   ", SLAVE, WRAP SLAVE "   "},
        {AGED_6_2, "-" OOM, MID OOM, REPLICA,
            WRAP "@user_script:1: @user_script: 1: " REPLICA},
        {AGED_PLAIN, "-" OOM, "-" OOM AT, REPLICA, REPLICA AT},
    };

    for (size_t i = 0; i < sizeof(ages) / sizeof(ages[0]); i++) {
        rig_age(ages[i].profile);
        struct rig_client *c = rig_dial();
        redis_run(&r, "CONFIG", "SET", "maxmemory", "1", NULL);
        ask(c, "SETNX k v", ages[i].oom);
        ask(c, write, ages[i].oom_script);
        redis_run(&r, "CONFIG", "SET", "maxmemory", "0", NULL);
        redis_run(&r, "REPLICAOF", "127.0.0.1", "1", NULL);
        ask(c, "SETNX k v", ages[i].replica);
        ask(c, write, ages[i].replica_script);
        redis_run(&r, "REPLICAOF", "NO", "ONE", NULL);
    }
}

static const char *info(enum aged_profile profile)
{
    rig_age(profile);
    struct rig_client *c = rig_dial();
    rig_say(c, "INFO");
    return rig_hear(c);
}

static void test_info(void **state)
{
    (void)state;
    const char *got = info(AGED_2_2);
    assert_non_null(strstr(got, "|redis_version:2.2.15|"));
    assert_non_null(strstr(got, "|uptime_in_seconds:"));
    assert_non_null(strstr(got, "|role:master|"));
    assert_null(strstr(got, "run_id"));
    assert_null(strstr(got, "redis_mode"));
    assert_null(strchr(got, '#'));
    got = info(AGED_2_4);
    assert_non_null(strstr(got, "|redis_version:2.4.18|"));
    assert_non_null(strstr(got, "|run_id:"));
    assert_null(strstr(got, "maxmemory"));
    got = info(AGED_2_6);
    assert_non_null(strstr(got, "|# Server|redis_version:2.6.9|"));
    assert_non_null(strstr(got, "|redis_mode:standalone|"));
    assert_null(strstr(got, "server_time_usec"));
    got = info(AGED_6_2);
    assert_non_null(strstr(got, "|redis_version:6.2.16|"));
    assert_non_null(strstr(got, "|server_time_usec:"));
}

static void test_command_info(void **state)
{
    (void)state;
    rig_age(AGED_PLAIN);
    ask(rig_dial(), "COMMAND INFO delex", "*1|$-1");
    rig_age(AGED_6_2);
    struct rig_client *c = rig_dial();
    rig_say(c, "COMMAND INFO get fcall expiretime");
    const char *got = rig_hear(c);
    assert_memory_equal(got, "*3|*10|$3|get|:2|", 17);
    assert_string_equal(got + strlen(got) - 8, "|$-1|$-1");
    ask(c, "PING", "+PONG"); /* as many parts as there should be */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_before_auth, start_locked, rig_stop),
        cmocka_unit_test_setup_teardown(
            test_transactions_of_the_old, start, rig_stop),
        cmocka_unit_test_setup_teardown(
            test_transactions_of_2_6, start, rig_stop),
        cmocka_unit_test_setup_teardown(test_refusals, start, rig_stop),
        cmocka_unit_test_setup_teardown(test_another_age, start, rig_stop),
        cmocka_unit_test_setup_teardown(
            test_refused_by_the_server, start, rig_stop),
        cmocka_unit_test_setup_teardown(test_info, start, rig_stop),
        cmocka_unit_test_setup_teardown(test_command_info, start, rig_stop),
    };
    return cmocka_run_group_tests_name("support_aged_link", tests, NULL, NULL);
}

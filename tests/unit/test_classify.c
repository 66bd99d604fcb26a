/* SPDX-License-Identifier: MIT */
/* Error replies of real servers, Redis 2.2 ... 8.6 and Valkey 8.0 ... 9.1,
 * byte for byte, and what each means for a lock. */
#include "support/test.h"

#include "unit/fault_names.h"
#include "wire/classify.h"

#define SHA "0123456789abcdef0123456789abcdef01234567"
#define OLD "ERR Error running script (call to f_" SHA "): "
#define MID OLD "@user_script:1: @user_script: 1: "
/* A script before 7.0 has got it from redis.pcall(), and returns it. */
#define RETURNED "@user_script: 59: "
#define NEW " script: " SHA ", on @user_script:1."

static const struct {
    enum fault fault;
    const char *error;
} cases[] = {
    /* unknown commands and options */
    {FAULT_UNSUPPORTED, "ERR unknown command 'EVAL'"},
    {FAULT_UNSUPPORTED,
        "ERR unknown command `EVAL`, with args beginning with: `k`, `v`, "},
    {FAULT_UNSUPPORTED,
        "ERR unknown command 'EVAL', with args beginning with: 'k' 'v' "},
    {FAULT_UNSUPPORTED, "ERR wrong number of arguments for 'set' command"},
    {FAULT_UNSUPPORTED, "ERR wrong number of arguments for 'auth' command"},
    {FAULT_UNSUPPORTED, "ERR wrong number of arguments for 'info' command"},
    {FAULT_UNSUPPORTED, "ERR syntax error"},
    {FAULT_UNSUPPORTED, "ERR Syntax error, try CLIENT (LIST | KILL ip:port)"},
    {FAULT_UNSUPPORTED,
        "ERR Syntax error, try CLIENT (LIST | KILL ip:port | GETNAME | "
        "SETNAME connection-name)"},
    {FAULT_UNSUPPORTED,
        "ERR Syntax error, try CLIENT (LIST | KILL | GETNAME | SETNAME | "
        "PAUSE | REPLY)"},
    {FAULT_UNSUPPORTED,
        "ERR Unknown subcommand or wrong number of arguments for 'SETINFO'. "
        "Try CLIENT HELP"},
    {FAULT_UNSUPPORTED,
        "ERR Unknown subcommand or wrong number of arguments for 'SETINFO'. "
        "Try CLIENT HELP."},
    {FAULT_UNSUPPORTED, "ERR unknown subcommand 'SETINFO'. Try CLIENT HELP."},
    {FAULT_UNSUPPORTED, "ERR Function not found"},
    {FAULT_UNSUPPORTED, "ERR Could not find scripting engine 'lua'"},
    {FAULT_UNSUPPORTED, OLD "Unknown Redis command called from Lua script "},
    {FAULT_UNSUPPORTED, MID "Unknown Redis command called from Lua script "},
    {FAULT_UNSUPPORTED, "ERR Unknown Redis command called from script" NEW},
    {FAULT_UNSUPPORTED, "ERR Unknown command called from script" NEW},
    {FAULT_UNSUPPORTED,
        "ERR Unknown command called from script script: on @user_script:1."},
    {FAULT_UNSUPPORTED,
        OLD "Wrong number of args calling Redis command From Lua script "},
    {FAULT_UNSUPPORTED,
        OLD "Write commands not allowed after non deterministic commands "},
    {FAULT_UNSUPPORTED,
        MID "Write commands not allowed after non deterministic commands "},
    {FAULT_UNSUPPORTED,
        MID "Write commands not allowed after non deterministic commands. "
            "Call redis.replicate_commands() at the start of your script in "
            "order to switch to single commands replication mode. "},
    /* rights */
    {FAULT_DENIED, "ERR Client sent AUTH, but no password is set"},
    {FAULT_DENIED,
        "ERR AUTH <password> called without any password configured for the "
        "default user. Are you sure your configuration is correct?"},
    {FAULT_DENIED, "WRONGPASS invalid username-password pair"},
    {FAULT_DENIED,
        "WRONGPASS invalid username-password pair or user is disabled."},
    {FAULT_DENIED, "ERR operation not permitted"},
    {FAULT_DENIED, "ERR invalid password"},
    {FAULT_DENIED, "NOAUTH Authentication required."},
    {FAULT_DENIED, "ERR Protocol error: unauthenticated multibulk length"},
    {FAULT_DENIED, "ERR Protocol error: unauthenticated bulk length"},
    {FAULT_DENIED,
        "NOAUTH HELLO must be called with the client already authenticated, "
        "otherwise the HELLO AUTH <user> <pass> option can be used to "
        "authenticate the client and select the RESP protocol version at "
        "the same time"},
    {FAULT_NO_PERMISSION,
        "NOPERM this user has no permissions to run the 'eval' command"},
    {FAULT_NO_PERMISSION,
        "NOPERM this user has no permissions to run the 'script|load' "
        "command"},
    {FAULT_SCRIPT_DENIED,
        "ERR The user executing the script can't run this command or "
        "subcommand" NEW},
    {FAULT_SCRIPT_DENIED,
        MID "The user executing the script can't run this command or "
            "subcommand"},
    {FAULT_SCRIPT_DENIED,
        MID "The user executing the script can't access at least one of the "
            "keys mentioned in the command arguments"},
    {FAULT_SCRIPT_DENIED,
        RETURNED "The user executing the script can't run this command or "
                 "subcommand"},
    {FAULT_DENIED,
        "DENIED Redis is running in protected mode because protected mode "
        "is enabled"},
    {FAULT_NO_PERMISSION,
        "EXECABORT Transaction discarded because of: NOPERM this user has no "
        "permissions to run the 'exec' command"},
    /* keys of another type */
    {FAULT_WRONG_TYPE,
        "WRONGTYPE Operation against a key holding the wrong kind of value"},
    {FAULT_WRONG_TYPE,
        "ERR Operation against a key holding the wrong kind of value"},
    {FAULT_WRONG_TYPE,
        OLD "ERR Operation against a key holding the wrong kind of value "},
    {FAULT_WRONG_TYPE,
        MID "-WRONGTYPE Operation against a key holding the wrong kind of "
            "value"},
    {FAULT_WRONG_TYPE,
        "WRONGTYPE Operation against a key holding the wrong kind of "
        "value" NEW},
    {FAULT_FULL,
        RETURNED "-OOM command not allowed when used memory > 'maxmemory'."},
    {FAULT_SERVER, RETURNED "OOM is no code without its mark"},
    /* not the primary */
    {FAULT_NOT_PRIMARY, "READONLY You can't write against a read only slave."},
    {FAULT_NOT_PRIMARY,
        "READONLY You can't write against a read only replica."},
    {FAULT_NOT_PRIMARY,
        "READONLY You can't write against a read only replica." NEW},
    {FAULT_NOT_PRIMARY,
        "READONLY You can't write against a read only replica. script: on "
        "@user_script:1."},
    {FAULT_NOT_PRIMARY,
        OLD "-READONLY You can't write against a read only slave.   "},
    {FAULT_NOT_PRIMARY,
        MID "-READONLY You can't write against a read only slave.   "},
    {FAULT_NOT_PRIMARY,
        MID "-READONLY You can't write against a read only replica."},
    {FAULT_NOT_PRIMARY,
        "MASTERDOWN Link with MASTER is down and replica-serve-stale-data "
        "is set to 'no'."},
    {FAULT_NOT_PRIMARY,
        "ERR link with MASTER is down and slave-serve-stale-data is set to "
        "no"},
    {FAULT_NOT_PRIMARY, "REDIRECT 127.0.0.1:6381"},
    /* a node of a cluster */
    {FAULT_CLUSTER, "MOVED 3999 127.0.0.1:6381"},
    {FAULT_CLUSTER, "ASK 3999 127.0.0.1:6381"},
    {FAULT_CLUSTER, "ERR SELECT is not allowed in cluster mode"},
    {FAULT_SLOTS, "CROSSSLOT Keys in request don't hash to the same slot"},
    {FAULT_CLUSTER_DOWN, "CLUSTERDOWN The cluster is down"},
    {FAULT_CLUSTER_DOWN, "CLUSTERDOWN Hash slot not served"},
    /* no room */
    {FAULT_FULL, "OOM command not allowed when used memory > 'maxmemory'."},
    {FAULT_FULL, "OOM command not allowed when used memory > 'maxmemory'." NEW},
    {FAULT_FULL, "ERR command not allowed when used memory > 'maxmemory'"},
    {FAULT_FULL,
        OLD "-OOM command not allowed when used memory > 'maxmemory'.   "},
    {FAULT_FULL,
        MID "-OOM command not allowed when used memory > 'maxmemory'."},
    /* no writes now */
    {FAULT_REFUSING,
        "MISCONF Redis is configured to save RDB snapshots, but is currently "
        "not able to persist on disk."},
    {FAULT_REFUSING, "NOREPLICAS Not enough good slaves to write."},
    {FAULT_REFUSING, "NOREPLICAS Not enough good replicas to write."},
    {FAULT_REFUSING, MID "-NOREPLICAS Not enough good replicas to write."},
    {FAULT_REFUSING, MID "-MISCONF Errors writing to the AOF file"},
    /* passes */
    {FAULT_RETRY, "NOSCRIPT No matching script. Please use EVAL."},
    {FAULT_RETRY, "NOSCRIPT No matching script."},
    {FAULT_RETRY, "LOADING Redis is loading the dataset in memory"},
    {FAULT_RETRY,
        "BUSY Redis is busy running a script. You can only call SCRIPT KILL "
        "or SHUTDOWN NOSAVE."},
    {FAULT_RETRY,
        "BUSY Valkey is busy running a script. You can only call SCRIPT "
        "KILL or SHUTDOWN NOSAVE."},
    {FAULT_RETRY,
        "EXECABORT Transaction discarded because of previous errors."},
    {FAULT_RETRY,
        "EXECABORT Transaction discarded because of previous errors. NOPERM"},
    {FAULT_RETRY, "EXECABORT Transaction discarded because of:NOPERM x"},
    {FAULT_RETRY, "EXECABORT Transaction discarded because of: BUSY x"},
    {FAULT_RETRY, "TRYAGAIN Multiple keys request during rehashing of slot"},
    {FAULT_RETRY, "ERR max number of clients reached"},
    {FAULT_RETRY, "ERR max number of clients + cluster connections reached"},
    /* the words say it all */
    {FAULT_SERVER, "ERR timeout is not an integer or out of range"},
    {FAULT_SERVER, "ERR value is not an integer or out of range"},
    {FAULT_SERVER, "ERR invalid expire time in 'set' command"},
    {FAULT_SERVER, "ERR invalid DB index"},
    {FAULT_SERVER, "ERR DB index is out of range"},
    {FAULT_SERVER, "MYERR x"},
    {FAULT_SERVER, OLD "Script killed by user with SCRIPT KILL... "},
    {FAULT_SERVER, ""},
    {FAULT_SERVER, "ERR"},
    {FAULT_SERVER, "ERR "},
    /* looks alike, is not */
    {FAULT_SERVER, "BUSYKEY Target key name already exists."},
    {FAULT_SERVER, "BUSYGROUP Consumer Group name already exists"},
    {FAULT_SERVER, "ASKING"},
    {FAULT_SERVER, "readonly"},
    {FAULT_SERVER, "ERR READONLY is not what this is about"},
    {FAULT_SERVER, MID "not READONLY but worse"},
    {FAULT_SERVER, MID "-READONLYX"},
    {FAULT_NOT_PRIMARY, MID "-READONLYX -READONLY y"},
    {FAULT_SERVER, "EXECABORT Transaction discarded because of: "},
    {FAULT_SERVER, "EXECABORT Transaction discarded because of: x NOPERM"},
    {FAULT_NOT_PRIMARY, "READONLY"},
    {FAULT_FULL, MID "-OOM"},
};

static void test_every_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        enum fault fault = classify_error(slice_of(cases[i].error));
        if (fault != cases[i].fault)
            fail_msg("%s: %s, expected %s", cases[i].error, fault_name(fault),
                fault_name(cases[i].fault));
    }
}

/* A cut text is another text; it must be read no further than it goes. The
 * copy has just its size, so that a memory checker sees a step too far. */
static void test_reads_within_the_slice(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (size_t len = 0; len < strlen(cases[i].error); len++) {
            char *copy = malloc(len + (len == 0));
            assert_non_null(copy);
            memcpy(copy, cases[i].error, len);
            enum fault fault = classify_error((struct slice){copy, len});
            assert_true(fault > FAULT_NONE && fault < FAULT_CLASSES);
            free(copy);
        }
    }
    assert_int_equal(
        classify_error((struct slice){"READONLY", 4}), FAULT_SERVER);
}

static void test_noscript(void **state)
{
    (void)state;
    assert_true(error_is_noscript(
        slice_of("NOSCRIPT No matching script. Please use EVAL.")));
    assert_true(error_is_noscript(slice_of("NOSCRIPT")));
    assert_false(error_is_noscript(slice_of("NOSCRIPTS")));
    assert_false(error_is_noscript(slice_of("ERR NOSCRIPT")));
    assert_false(error_is_noscript(slice_of("")));
}

/* How much of a text is shown whatever the passwords are. */
static void test_known(void **state)
{
    (void)state;
    static const struct {
        const char *text, *known;
    } rows[] = {
        {"WRONGPASS invalid username", "WRONGPASS"},
        {"NOAUTH", "NOAUTH"},
        {"ERR invalid password s3cret", "ERR invalid password"},
        {"ERR s3cret", ""},
        {"NOAUTHs3cret", ""},
        {"s3cret NOAUTH", ""},
        {"EXECABORT Transaction discarded because of: OOM s3cret",
            "EXECABORT Transaction discarded because of: OOM"},
        {"EXECABORT Transaction discarded because of: s3cret",
            "EXECABORT Transaction discarded because of: "},
        {"ERR Error running script (call to f_1): @user_script:1: -OOM s3cret",
            "ERR "},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t length = classify_known(slice_of(rows[i].text));
        assert_int_equal(length, strlen(rows[i].known));
        assert_memory_equal(rows[i].text, rows[i].known, length);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_text),
        cmocka_unit_test(test_reads_within_the_slice),
        cmocka_unit_test(test_noscript),
        cmocka_unit_test(test_known),
    };
    return cmocka_run_group_tests_name("classify", tests, NULL, NULL);
}

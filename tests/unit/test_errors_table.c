/* SPDX-License-Identifier: MIT */
/*
 * Every error that a server from Redis 2.2 to 8.6 and Valkey 8.0 to 9.1 was
 * seen to answer to what a lock client may send, with the versions that say
 * it, and the class it must have: what to do about it is chosen by that.
 */
#include "support/test.h"

#include "unit/fault_names.h"
#include "wire/classify.h"

enum version {
    R2_2,
    R2_4,
    R2_6_9,
    R2_6_12,
    R2_8,
    R3_2,
    R4_0,
    R5_0,
    R6_0,
    R6_2,
    R7_0,
    R7_2,
    R7_4,
    R8_0,
    R8_6,
    V8_0,
    V8_1,
    V9_1,
    VERSIONS
};

static const char *const names[VERSIONS] = {"2.2.15", "2.4.18", "2.6.9",
    "2.6.12", "2.8.24", "3.2.13", "4.0.14", "5.0.14", "6.0", "6.2.16", "7.0.15",
    "7.2.6", "7.4.1", "8.0.2", "8.6.3", "valkey 8.0.1", "valkey 8.1.1",
    "valkey 9.1.2"};

#define SHA "0123456789abcdef0123456789abcdef01234567"
/* The three formats of an unknown command. */
#define U1(name) "ERR unknown command '" name "'"
#define U2(name, args)                                                         \
    "ERR unknown command `" name "`, with args beginning with: " args
#define U3(name, args)                                                         \
    "ERR unknown command '" name "', with args beginning with: " args
#define ARITY(name) "ERR wrong number of arguments for '" name "' command"
#define SETINFO                                                                \
    "ERR Unknown subcommand or wrong number of arguments for 'SETINFO'. Try "  \
    "CLIENT HELP"
#define CLIENT_TRY "ERR Syntax error, try CLIENT "
#define USED " command not allowed when used memory > 'maxmemory'"
#define HELLO(how)                                                             \
    "NOAUTH HELLO must be called with the client already authenticated, "      \
    "otherwise the HELLO " how "AUTH <user> <pass> option can be used to "     \
    "authenticate the client and select the RESP protocol version at the "     \
    "same time"
#define WRONG "Operation against a key holding the wrong kind of value"
#define SLAVE "READONLY You can't write against a read only slave."
#define REPLICA "READONLY You can't write against a read only replica."
#define SCRIPT_KILL                                                            \
    " is busy running a script. You can only call SCRIPT KILL or SHUTDOWN "    \
    "NOSAVE."
#define DUMP                                                                   \
    " is configured to save RDB snapshots, but it's currently unable to "      \
    "persist to disk."
/* How an error of a script is wrapped: 2.6, 2.8 ... 6.2, 7.0 ... 8.1, 9.1. */
#define IN_2_6 "ERR Error running script (call to f_" SHA "): "
#define KILLED_2_8 IN_2_6 "@user_script:1: "
#define IN_2_8 KILLED_2_8 "@user_script: 1: "
#define IN_7_0 " script: " SHA ", on @user_script:1."
#define IN_9_1 " script: on @user_script:1."
#define NOT_AFTER "Write commands not allowed after non deterministic commands"
#define KILLED "Script killed by user with SCRIPT KILL"
#define ACL "ERR ACL failure in script: "

#define DENIED FAULT_DENIED
#define NO_PERMISSION FAULT_NO_PERMISSION
#define SCRIPT_DENIED FAULT_SCRIPT_DENIED
#define ELSEWHERE FAULT_NOT_PRIMARY
#define FULL FAULT_FULL
#define REFUSING FAULT_REFUSING
#define RETRY FAULT_RETRY
#define SERVER FAULT_SERVER
#define TYPE FAULT_WRONG_TYPE
#define UNSUPPORTED FAULT_UNSUPPORTED

/* Rows of one probe stand together. mark: counted by test_complete(). */
struct row {
    const char *mark;
    const char *probe;
    enum version first, last;
    enum fault fault;
    const char *error;
};

static const struct row rows[] = {
    /* commands that are not there */
    {"U1", "unknown", R2_2, R3_2, UNSUPPORTED, U1("FOOBAR")},
    {"U2", "unknown", R4_0, R6_2, UNSUPPORTED, U2("FOOBAR", "`x`, `y`, ")},
    {"U3", "unknown", R7_0, V9_1, UNSUPPORTED, U3("FOOBAR", "'x' 'y' ")},
    {"", "EVAL", R2_2, R2_4, UNSUPPORTED, U1("EVAL")},
    {"", "SCRIPT", R2_2, R2_4, UNSUPPORTED, U1("SCRIPT")},
    {"", "PSETEX", R2_2, R2_4, UNSUPPORTED, U1("PSETEX")},
    {"", "PTTL", R2_2, R2_4, UNSUPPORTED, U1("PTTL")},
    {"", "TIME", R2_2, R2_4, UNSUPPORTED, U1("TIME")},
    {"", "WAIT", R2_2, R2_8, UNSUPPORTED, U1("WAIT")},
    {"", "ROLE", R2_2, R2_6_12, UNSUPPORTED, U1("ROLE")},
    {"", "COMMAND INFO", R2_2, R2_6_12, UNSUPPORTED, U1("COMMAND")},
    {"", "UNLINK", R2_2, R3_2, UNSUPPORTED, U1("UNLINK")},
    {"", "HELLO", R2_2, R3_2, UNSUPPORTED, U1("HELLO")},
    {"", "HELLO", R4_0, R5_0, UNSUPPORTED, U2("HELLO", "`3`, ")},
    {"", "RESET", R2_2, R3_2, UNSUPPORTED, U1("RESET")},
    {"", "RESET", R4_0, R6_0, UNSUPPORTED, U2("RESET", "")},
    {"", "GETDEL", R2_2, R3_2, UNSUPPORTED, U1("GETDEL")},
    {"", "GETDEL", R4_0, R6_0, UNSUPPORTED, U2("GETDEL", "`k`, ")},
    {"", "PEXPIRETIME", R2_2, R3_2, UNSUPPORTED, U1("PEXPIRETIME")},
    {"", "PEXPIRETIME", R4_0, R6_2, UNSUPPORTED, U2("PEXPIRETIME", "`k`, ")},
    {"", "SPUBLISH", R2_2, R3_2, UNSUPPORTED, U1("SPUBLISH")},
    {"", "SPUBLISH", R4_0, R6_2, UNSUPPORTED, U2("SPUBLISH", "`ch`, `m`, ")},
    {"", "FCALL", R2_2, R3_2, UNSUPPORTED, U1("FCALL")},
    {"", "FCALL", R4_0, R6_2, UNSUPPORTED, U2("FCALL", "`nosuch`, `0`, ")},
    {"E31", "FCALL", R7_0, V9_1, UNSUPPORTED, "ERR Function not found"},
    {"", "WAITAOF", R2_2, R3_2, UNSUPPORTED, U1("WAITAOF")},
    {"", "WAITAOF", R4_0, R6_2, UNSUPPORTED, U2("WAITAOF", "`0`, `0`, `10`, ")},
    {"", "WAITAOF", R7_0, R7_0, UNSUPPORTED, U3("WAITAOF", "'0' '0' '10' ")},
    /* reading and setting only what is known */
    {"E21", "GET on a list", R2_2, R2_6_12, TYPE, "ERR " WRONG},
    {"E28", "GET on a list", R2_8, V9_1, TYPE, "WRONGTYPE " WRONG},
    /* options and arguments */
    {"E1", "SET NX PX", R2_2, R2_6_9, UNSUPPORTED, ARITY("set")},
    {"E3", "SET NX GET PX", R2_6_12, R6_2, UNSUPPORTED, "ERR syntax error"},
    {"", "SET FOO", R2_6_12, V9_1, UNSUPPORTED, "ERR syntax error"},
    {"", "SET alone", R2_2, V9_1, UNSUPPORTED, ARITY("set")},
    {"", "GET alone", R2_2, V9_1, UNSUPPORTED, ARITY("get")},
    {"E20", "INFO server", R2_2, R2_4, UNSUPPORTED, ARITY("info")},
    {"", "PEXPIRE GT", R2_2, R2_4, UNSUPPORTED, U1("PEXPIRE")},
    {"", "PEXPIRE GT", R2_6_9, R6_2, UNSUPPORTED, ARITY("pexpire")},
    {"", "SET PX 0", R2_2, R2_6_9, UNSUPPORTED, ARITY("set")},
    {"", "SET PX 0", R2_6_12, R2_6_12, SERVER,
        "ERR invalid expire time in SETEX"},
    {"", "SET PX 0", R2_8, R6_2, SERVER, "ERR invalid expire time in set"},
    {"", "SET PX 0", R7_0, V9_1, SERVER,
        "ERR invalid expire time in 'set' command"},
    {"", "SET PX abc", R2_6_12, V9_1, SERVER,
        "ERR value is not an integer or out of range"},
    {"E16", "BLPOP 0.05", R2_2, R5_0, SERVER,
        "ERR timeout is not an integer or out of range"},
    {"", "SELECT 99", R2_2, R3_2, SERVER, "ERR invalid DB index"},
    {"", "SELECT 99", R4_0, V9_1, SERVER, "ERR DB index is out of range"},
    {"", "CLIENT SETNAME", R2_2, R2_2, UNSUPPORTED, U1("CLIENT")},
    {"E6", "CLIENT SETNAME", R2_4, R2_4, UNSUPPORTED,
        CLIENT_TRY "(LIST | KILL ip:port)"},
    {"", "CLIENT SETINFO", R2_4, R2_6_9, UNSUPPORTED,
        CLIENT_TRY "(LIST | KILL ip:port)"},
    {"E8", "CLIENT SETINFO", R2_6_12, R2_8, UNSUPPORTED,
        CLIENT_TRY "(LIST | KILL ip:port | GETNAME | SETNAME "
                   "connection-name)"},
    {"E9", "CLIENT SETINFO", R3_2, R4_0, UNSUPPORTED,
        CLIENT_TRY "(LIST | KILL | GETNAME | SETNAME | PAUSE | REPLY)"},
    {"E10", "CLIENT SETINFO", R5_0, R6_0, UNSUPPORTED, SETINFO},
    {"E13", "CLIENT SETINFO", R6_2, R6_2, UNSUPPORTED, SETINFO "."},
    {"E15", "CLIENT SETINFO", R7_0, R7_0, UNSUPPORTED,
        "ERR unknown subcommand 'SETINFO'. Try CLIENT HELP."},
    {"", "CLIENT TRACKING", R5_0, R5_0, UNSUPPORTED,
        "ERR Unknown subcommand or wrong number of arguments for "
        "'TRACKING'. Try CLIENT HELP"},
    {"E22", "EXEC after an error", R2_6_9, V9_1, RETRY,
        "EXECABORT Transaction discarded because of previous errors."},
    /* scripts */
    {"", "EVALSHA", R2_2, R2_4, UNSUPPORTED, U1("EVALSHA")},
    {"E2", "EVALSHA", R2_6_9, R8_6, RETRY,
        "NOSCRIPT No matching script. Please use EVAL."},
    {"E4", "EVALSHA", V8_0, V9_1, RETRY, "NOSCRIPT No matching script."},
    {"", "EVAL of an error_reply", R2_6_9, V9_1, SERVER, "MYERR x"},
    {"", "EVAL unknown", R2_6_9, R2_6_12, UNSUPPORTED,
        IN_2_6 "Unknown Redis command called from Lua script "},
    {"", "EVAL unknown", R2_8, R5_0, UNSUPPORTED,
        IN_2_8 "Unknown Redis command called from Lua script "},
    {"", "EVAL unknown", R6_0, R6_2, UNSUPPORTED,
        IN_2_8 "Unknown Redis command called from Lua script"},
    {"", "EVAL unknown", R7_0, R8_6, UNSUPPORTED,
        "ERR Unknown Redis command called from script" IN_7_0},
    {"", "EVAL unknown", V8_0, V8_1, UNSUPPORTED,
        "ERR Unknown command called from script" IN_7_0},
    {"", "EVAL unknown", V9_1, V9_1, UNSUPPORTED,
        "ERR Unknown command called from script" IN_9_1},
    {"", "EVAL SET NX PX", R2_6_9, R2_6_9, UNSUPPORTED,
        IN_2_6 "Wrong number of args calling Redis command From Lua script "},
    {"E25", "EVAL TIME, SET", R2_6_9, R2_6_12, UNSUPPORTED,
        IN_2_6 NOT_AFTER " "},
    {"E27", "EVAL TIME, SET", R2_8, R2_8, UNSUPPORTED, IN_2_8 NOT_AFTER " "},
    {"E29", "EVAL TIME, SET", R3_2, R4_0, UNSUPPORTED,
        IN_2_8 NOT_AFTER ". Call redis.replicate_commands() at the start of "
                         "your script in order to switch to single commands "
                         "replication mode. "},
    {"", "EVAL WATCH", R6_0, R6_0, UNSUPPORTED,
        IN_2_8 "This Redis command is not allowed from scripts"},
    {"", "EVAL WATCH", R7_0, R7_0, UNSUPPORTED,
        "ERR This Redis command is not allowed from script" IN_7_0},
    {"", "EVAL WATCH", R8_0, V8_1, UNSUPPORTED,
        "ERR This Redis command is not allowed from script" IN_7_0},
    {"", "EVAL WATCH", V9_1, V9_1, UNSUPPORTED,
        "ERR This Valkey command is not allowed from script" IN_9_1},
    {"", "BUSY", R2_6_9, R8_6, RETRY, "BUSY Redis" SCRIPT_KILL},
    {"", "BUSY", V8_0, V9_1, RETRY, "BUSY Valkey" SCRIPT_KILL},
    {"", "EVAL killed", R2_6_9, R2_6_12, SERVER, IN_2_6 KILLED "... "},
    {"", "EVAL killed", R2_8, R5_0, SERVER, KILLED_2_8 KILLED "... "},
    {"", "EVAL killed", R6_0, R6_2, SERVER, KILLED_2_8 KILLED "..."},
    {"", "EVAL killed", R7_0, V8_0, SERVER, "ERR " KILLED "..." IN_7_0},
    {"", "EVAL killed", V8_1, V8_1, SERVER, "ERR " KILLED "." IN_7_0},
    {"", "EVAL killed", V9_1, V9_1, SERVER, "ERR " KILLED "." IN_9_1},
    /* rights */
    {"E17", "PING before AUTH", R2_2, R2_6_12, DENIED,
        "ERR operation not permitted"},
    {"E26", "PING before AUTH", R2_8, V9_1, DENIED,
        "NOAUTH Authentication required."},
    {"", "SET before AUTH", R2_2, R2_6_9, UNSUPPORTED, ARITY("set")},
    {"", "SET before AUTH", R2_6_12, R2_6_12, DENIED,
        "ERR operation not permitted"},
    {"", "HELLO before AUTH", R6_0, R7_0, DENIED, HELLO("")},
    {"", "HELLO before AUTH", R7_2, V9_1, DENIED, HELLO("<proto> ")},
    {"E5", "AUTH user", R2_2, R5_0, UNSUPPORTED, ARITY("auth")},
    {"E11", "AUTH user", R6_0, R6_0, DENIED,
        "WRONGPASS invalid username-password pair"},
    {"E14", "AUTH user", R6_2, V9_1, DENIED,
        "WRONGPASS invalid username-password pair or user is disabled."},
    {"E18", "AUTH wrong", R2_2, R5_0, DENIED, "ERR invalid password"},
    {"", "AUTH wrong", R6_0, R6_0, DENIED,
        "WRONGPASS invalid username-password pair"},
    {"", "AUTH wrong", R6_2, V9_1, DENIED,
        "WRONGPASS invalid username-password pair or user is disabled."},
    {"E7", "AUTH of none", R2_4, R5_0, DENIED,
        "ERR Client sent AUTH, but no password is set"},
    {"E12", "AUTH of none", R6_0, V9_1, DENIED,
        "ERR AUTH <password> called without any password configured for the "
        "default user. Are you sure your configuration is correct?"},
    {"", "ACL: EVAL", R6_0, R6_0, NO_PERMISSION,
        "NOPERM this user has no permissions to run the 'eval' command or its "
        "subcommand"},
    {"", "ACL: EVAL", R7_0, R7_0, NO_PERMISSION,
        "NOPERM this user has no permissions to run the 'eval' command"},
    {"", "ACL: EVAL", R8_0, V9_1, NO_PERMISSION,
        "NOPERM User u has no permissions to run the 'eval' command"},
    {"", "ACL: SCRIPT LOAD", R7_0, R7_0, NO_PERMISSION,
        "NOPERM this user has no permissions to run the 'script|load' "
        "command"},
    {"", "ACL: SCRIPT LOAD", R8_0, V9_1, NO_PERMISSION,
        "NOPERM User u has no permissions to run the 'script|load' command"},
    {"", "ACL: key", R6_0, R6_0, NO_PERMISSION,
        "NOPERM this user has no permissions to access one of the keys used "
        "as arguments"},
    {"", "ACL: key", R7_0, R7_0, NO_PERMISSION,
        "NOPERM this user has no permissions to access one of the keys used "
        "as arguments"},
    {"", "ACL: key", R8_0, V9_1, NO_PERMISSION,
        "NOPERM No permissions to access a key"},
    {"", "ACL: EXEC", R7_0, R7_0, NO_PERMISSION,
        "EXECABORT Transaction discarded because of: NOPERM this user has no "
        "permissions to run the 'exec' command"},
    {"", "ACL: EVAL DEL", R6_0, R6_0, SCRIPT_DENIED,
        IN_2_8 "The user executing the script can't run this command or "
               "subcommand"},
    {"", "ACL: EVAL DEL", R7_0, R7_0, SCRIPT_DENIED,
        "ERR The user executing the script can't run this command or "
        "subcommand" IN_7_0},
    {"", "ACL: EVAL DEL", R8_0, V8_1, SCRIPT_DENIED,
        ACL "User u has no permissions to run the 'del' command" IN_7_0},
    {"", "ACL: EVAL DEL", V9_1, V9_1, SCRIPT_DENIED,
        ACL "User u has no permissions to run the 'del' command" IN_9_1},
    {"", "ACL: EVAL key", R6_0, R6_0, SCRIPT_DENIED,
        IN_2_8 "The user executing the script can't access at least one of "
               "the keys mentioned in the command arguments"},
    {"", "ACL: EVAL key", R7_0, R7_0, SCRIPT_DENIED,
        "ERR The user executing the script can't access at least one of the "
        "keys mentioned in the command arguments" IN_7_0},
    {"", "ACL: EVAL key", R8_0, V8_1, SCRIPT_DENIED,
        ACL "No permissions to access a key" IN_7_0},
    {"", "ACL: EVAL key", V9_1, V9_1, SCRIPT_DENIED,
        ACL "No permissions to access a key" IN_9_1},
    /* not the primary */
    {"E23", "replica: SETNX", R2_6_9, R4_0, ELSEWHERE, SLAVE},
    {"E30", "replica: SETNX", R5_0, V9_1, ELSEWHERE, REPLICA},
    {"", "replica: EVAL", R2_6_9, R2_6_12, ELSEWHERE, IN_2_6 "-" SLAVE "   "},
    {"", "replica: EVAL", R2_8, R4_0, ELSEWHERE, IN_2_8 "-" SLAVE "   "},
    {"", "replica: EVAL", R5_0, R5_0, ELSEWHERE, IN_2_8 "-" REPLICA "   "},
    {"", "replica: EVAL", R6_0, R6_2, ELSEWHERE, IN_2_8 "-" REPLICA},
    {"", "replica: EVAL", R7_0, V8_1, ELSEWHERE, REPLICA IN_7_0},
    {"", "replica: EVAL", V9_1, V9_1, ELSEWHERE, REPLICA IN_9_1},
    {"", "stale: GET", R2_2, R2_4, ELSEWHERE,
        "ERR link with MASTER is down and slave-serve-stale-data is set to "
        "no"},
    {"", "stale: GET", R2_6_9, R4_0, ELSEWHERE,
        "MASTERDOWN Link with MASTER is down and slave-serve-stale-data is "
        "set to 'no'."},
    {"", "stale: GET", R5_0, V9_1, ELSEWHERE,
        "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is "
        "set to 'no'."},
    /* no room, no disk, no replicas */
    {"E19", "full: SETNX", R2_2, R2_4, FULL, "ERR" USED},
    {"E24", "full: SETNX", R2_6_9, V9_1, FULL, "OOM" USED "."},
    {"", "full: EVAL", R2_6_9, R2_6_12, FULL, IN_2_6 "-OOM" USED ".   "},
    {"", "full: EVAL", R2_8, R5_0, FULL, IN_2_8 "-OOM" USED ".   "},
    {"", "full: EVAL", R6_0, R6_2, FULL, IN_2_8 "-OOM" USED "."},
    {"", "full: EVAL", R7_0, V8_1, FULL, "OOM" USED "." IN_7_0},
    {"", "full: EVAL", V9_1, V9_1, FULL, "OOM" USED "." IN_9_1},
    {"", "replicas: SET", R2_8, R4_0, REFUSING,
        "NOREPLICAS Not enough good slaves to write."},
    {"", "replicas: SET", R5_0, V9_1, REFUSING,
        "NOREPLICAS Not enough good replicas to write."},
    {"", "replicas: EVAL", R8_0, R8_0, REFUSING,
        "NOREPLICAS Not enough good replicas to write." IN_7_0},
    {"", "replicas: EVAL", V9_1, V9_1, REFUSING,
        "NOREPLICAS Not enough good replicas to write." IN_9_1},
    {"", "disk: EVAL", R6_0, R6_0, REFUSING,
        IN_2_8 "-MISCONF Redis is configured to save RDB snapshots, but it is "
               "currently not able to persist on disk."},
    {"", "disk: EVAL", R8_0, R8_0, REFUSING, "MISCONF Redis" DUMP IN_7_0},
    {"", "disk: EVAL", V9_1, V9_1, REFUSING, "MISCONF Valkey" DUMP IN_9_1},
};

/* A test for each row would hide the others behind the first failure. */
static void test_every_row(void **state)
{
    (void)state;
    size_t wrong = 0;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *row = &rows[i];
        enum fault fault = classify_error(slice_of(row->error));
        if (fault == row->fault)
            continue;
        print_error("%s ... %s, %s: \"%s\" is %s, expected %s\n",
            names[row->first], names[row->last], row->probe, row->error,
            fault_name(fault), fault_name(row->fault));
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

/* That a script is not there is the one error that is answered at once. */
static void test_noscript_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bool expected = strncmp(rows[i].error, "NOSCRIPT ", 9) == 0;
        if (error_is_noscript(slice_of(rows[i].error)) != expected)
            fail_msg("%s", rows[i].error);
    }
}

static bool covers(const char *probe, enum version version)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(rows[i].probe, probe) == 0 && rows[i].first <= version &&
            version <= rows[i].last)
            return true;
    return false;
}

/* The table itself: no version answers a probe twice, none is left out where
 * all answer with an error, and no mark is missing or there twice. */
static void test_complete(void **state)
{
    (void)state;
    static const char *const everywhere[] = {"unknown", "GET on a list",
        "PING before AUTH", "AUTH user", "AUTH wrong", "SELECT 99", "GET alone",
        "SET alone", "full: SETNX", "stale: GET"};
    const size_t count = sizeof(rows) / sizeof(rows[0]);

    for (size_t i = 0; i < count; i++) {
        assert_true(rows[i].first <= rows[i].last && rows[i].last < VERSIONS);
        if (i > 0 && strcmp(rows[i - 1].probe, rows[i].probe) == 0)
            assert_true(rows[i - 1].last < rows[i].first);
    }
    for (size_t i = 0; i < sizeof(everywhere) / sizeof(everywhere[0]); i++)
        for (enum version v = R2_2; v < VERSIONS; v++)
            if (!covers(everywhere[i], v))
                fail_msg("%s is without %s", everywhere[i], names[v]);
    for (int number = -2; number <= 31; number++) {
        char mark[8];
        size_t seen = 0;
        snprintf(mark, sizeof(mark), "%c%d", number < 1 ? 'U' : 'E',
            number < 1 ? number + 3 : number);
        for (size_t i = 0; i < count; i++)
            seen += strcmp(rows[i].mark, mark) == 0;
        if (seen != 1)
            fail_msg("%s is there %zu times", mark, seen);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_row),
        cmocka_unit_test(test_noscript_alone),
        cmocka_unit_test(test_complete),
    };
    return cmocka_run_group_tests_name("errors table", tests, NULL, NULL);
}

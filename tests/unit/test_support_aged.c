/* SPDX-License-Identifier: MIT */
/*
 * The aged server before a real one, word by word: what servers of 2.2 to
 * 7.0 were measured to answer, and what the profile of each answers here.
 */
#include "unit/aged_rig.h"

/* Names of the ages, for the table: 2.2 and so on. */
enum {
    A = AGE_2_2,
    B = AGE_2_4,
    C = AGE_2_6,
    OLD = A | B | C,
    S = AGE_6_2,
    PLAIN = 1, /* 7.0.15 itself */
    ALL = OLD | S | PLAIN,
    LUA = C | S | PLAIN
};

#define U1(name) "-ERR unknown command '" name "'"
#define U2 "-ERR unknown command `"
#define U3 "-ERR unknown command '"
#define ARGS ", with args beginning with: "
#define WRAP "-ERR Error running script (call to f_<sha1>): "
#define WRAP2 WRAP "@user_script:1: @user_script: 1: "
#define E1 "-ERR wrong number of arguments for 'set' command"
#define E2 "-NOSCRIPT No matching script. Please use EVAL."
#define E3 "-ERR syntax error"
#define E6 "-ERR Syntax error, try CLIENT (LIST | KILL ip:port)"
#define KIND "Operation against a key holding the wrong kind of value"
#define E20 "-ERR wrong number of arguments for 'info' command"
#define AT " script: <sha1>, on @user_script:1."
#define CALL(words) "EVAL {return redis.call(" words ")} 1 k"

struct said {
    unsigned ages;
    const char *reply;
};

/* In this order. Reply NULL: it is not asked. */
static const struct probe {
    const char *command;
    struct said said[5];
} probes[] = {
    {"SET k v NX PX 60000", {{OLD, E1}, {S | PLAIN, "+OK"}}},
    {"SET k v NX PX 60000", {{OLD, E1}, {S | PLAIN, "$-1"}}},
    {"SET k w PX 60000 NX", {{OLD, E1}, {S | PLAIN, "$-1"}}},
    {"SET k w NX GET PX 60000", {{OLD, E1}, {S, E3}, {PLAIN, "$1|v"}}},
    {"SET k w XX GET PX 60000", {{OLD, E1}, {S | PLAIN, "$1|v"}}},
    {"SET no v XX PX 60000", {{OLD, E1}, {S | PLAIN, "$-1"}}},
    {"SET k v PX 0", {{OLD, E1}, {S, "-ERR invalid expire time in set"},
                         {PLAIN, "-ERR invalid expire time in 'set' command"}}},
    {"SET k v NX PX abc",
        {{OLD, E1},
            {S | PLAIN, "-ERR value is not an integer or out of range"}}},
    {"SET k v FOO", {{OLD, E1}, {S | PLAIN, E3}}},
    {"SET k", {{ALL, E1}}},
    {"GET", {{ALL, "-ERR wrong number of arguments for 'get' command"}}},
    {"DEL k no", {{OLD, ":0"}, {S | PLAIN, ":1"}}},
    {"SETNX k a", {{ALL, ":1"}}},
    {"setnx k b", {{ALL, ":0"}}},
    {"GETSET no2 v", {{ALL, "$-1"}}},
    {"GETSET k b", {{ALL, "$1|a"}}},
    {"TTL k", {{ALL, ":-1"}}},
    {"TTL missing", {{OLD, ":-1"}, {S | PLAIN, ":-2"}}},
    {"PTTL k", {{A | B, U1("PTTL")}, {C | S | PLAIN, ":-1"}}},
    {"PTTL missing", {{A | B, U1("PTTL")}, {C, ":-1"}, {S | PLAIN, ":-2"}}},
    {"SETEX k 60 v", {{ALL, "+OK"}}},
    {"SETEX k 0 v",
        {{OLD, "-ERR invalid expire time in SETEX"},
            {S, "-ERR invalid expire time in setex"},
            {PLAIN, "-ERR invalid expire time in 'setex' command"}}},
    {"PSETEX k 60000 v", {{A | B, U1("PSETEX")}, {C | S | PLAIN, "+OK"}}},
    {"PEXPIRE missing 60000", {{A | B, U1("PEXPIRE")}, {C | S | PLAIN, ":0"}}},
    {"pexpire k 60000", {{A | B, U1("pexpire")}, {C | S | PLAIN, ":1"}}},
    {"PEXPIRE k 50000 GT",
        {{A | B, U1("PEXPIRE")},
            {C | S, "-ERR wrong number of arguments for 'pexpire' command"},
            {PLAIN, ":0"}}},
    {"EXPIRE k 69", {{ALL, ":1"}}},
    {"TTL k", {{ALL, ":6~"}}},
    {"PEXPIRETIME missing",
        {{OLD, U1("PEXPIRETIME")}, {S, U2 "PEXPIRETIME`" ARGS "`missing`, "},
            {PLAIN, ":-2"}}},
    {"GETRANGE k 0 511", {{ALL, "$1|v"}}},
    {"SUBSTR k 0 511", {{ALL, "$1|v"}}},
    {"EVAL {return 1} 0", {{A | B, U1("EVAL")}, {LUA, ":1"}}},
    {"EVAL {return redis.error_reply('MYERR x')} 0",
        {{A | B, U1("EVAL")}, {LUA, "-MYERR x"}}},
    {"EVAL {return redis.call('NO')} 0",
        {{A | B, U1("EVAL")},
            {C, WRAP "Unknown Redis command called from Lua script "},
            {S, WRAP2 "Unknown Redis command called from Lua script"},
            {PLAIN, "-ERR Unknown Redis command called from script" AT}}},
    {CALL("'SET',KEYS[1],'v','NX','PX',9"),
        {{A | B, U1("EVAL")},
            {C, WRAP "Wrong number of args calling Redis command From Lua "
                     "script "},
            {S | PLAIN, "$-1"}}},
    {CALL("'SET',KEYS[1]"),
        {{A | B, U1("EVAL")},
            {C, WRAP "Wrong number of args calling Redis command From Lua "
                     "script "},
            {S, WRAP2 "Wrong number of args calling Redis command From Lua "
                      "script"},
            {PLAIN, "-ERR Wrong number of args calling Redis command from "
                    "script" AT}}},
    {"EVAL {redis.call('TIME') redis.call('SET','t','v') return 'ok'} 0",
        {{A | B, U1("EVAL")},
            {C, WRAP "Write commands not allowed after non deterministic "
                     "commands "},
            {S | PLAIN, "$2|ok"}}},
    {"EVAL {return redis.replicate_commands and 1 or 0} 0",
        {{A | B, U1("EVAL")}, {C, ":0"}, {S | PLAIN, ":1"}}},
    {"EVAL {return redis.call('PTTL',KEYS[1])} 1 missing",
        {{A | B, U1("EVAL")}, {C, ":-1"}, {S | PLAIN, ":-2"}}},
    {"EVAL {return redis.pcall('SPUBLISH','c','m')} 0",
        {{A | B, U1("EVAL")},
            {C, "-Unknown Redis command called from Lua script"},
            {S | PLAIN, ":0"}}},
    {"EVAL {(redis.call)('SET','t','v') return redis.sha1hex('')} 0",
        {{A | B, U1("EVAL")},
            {LUA, "$40|da39a3ee5e6b4b0d3255bfef95601890afd80709"}}},
    {"EVALSHA 0000000000000000000000000000000000000000 0",
        {{A | B, U1("EVALSHA")}, {LUA, E2}}},
    {"EVALSHA x 0", {{A | B, U1("EVALSHA")}, {LUA, E2}}},
    {"SCRIPT LOAD {return 1}",
        {{A | B, U1("SCRIPT")},
            {LUA, "$40|e0e1f9fabfc9d4800c877a703b823ac0578ff8db"}}},
    {"SCRIPT EXISTS e0e1f9fabfc9d4800c877a703b823ac0578ff8db x",
        {{A | B, U1("SCRIPT")}, {LUA, "*2|:1|:0"}}},
    {"EVALSHA E0E1F9FABFC9D4800C877A703B823AC0578FF8DB 0",
        {{A | B, U1("EVALSHA")}, {LUA, ":1"}}},
    {"SCRIPT LOAD {return redis.call('NO')}",
        {{A | B, U1("SCRIPT")}, {LUA, "$40|<sha1>"}}},
    {"EVALSHA <sha1> 0",
        {{A | B, U1("EVALSHA")},
            {C, WRAP "Unknown Redis command called from Lua script "},
            {S, WRAP2 "Unknown Redis command called from Lua script"},
            {PLAIN, "-ERR Unknown Redis command called from script" AT}}},
    {"FCALL nosuch 0",
        {{OLD, U1("FCALL")}, {S, U2 "FCALL`" ARGS "`nosuch`, `0`, "},
            {PLAIN, "-ERR Function not found"}}},
    {"SPUBLISH ch m",
        {{OLD, U1("SPUBLISH")}, {S, U2 "SPUBLISH`" ARGS "`ch`, `m`, "},
            {PLAIN, ":0"}}},
    {"PUBLISH ch m", {{ALL, ":0"}}},
    {"FOOBAR x y", {{OLD, U1("FOOBAR")}, {S, U2 "FOOBAR`" ARGS "`x`, `y`, "},
                       {PLAIN, U3 "FOOBAR'" ARGS "'x' 'y' "}}},
    {"SETEX k 69 v", {{ALL, "+OK"}}},
    {"TTL k", {{ALL, ":6~"}}},
    {"RPUSH l a", {{ALL, ":1"}}},
    {"GET l", {{OLD, "-ERR " KIND}, {S | PLAIN, "-WRONGTYPE " KIND}}},
    {"SET l v NX PX 60000", {{OLD, E1}, {S | PLAIN, "$-1"}}},
    {"TYPE l", {{ALL, "+list"}}},
    {"EVAL {return redis.call('GET','l')} 0",
        {{A | B, U1("EVAL")}, {C, WRAP "ERR " KIND " "},
            {S, WRAP "@user_script:1: WRONGTYPE " KIND},
            {PLAIN, "-WRONGTYPE " KIND AT}}},
    {"EVAL {return redis.pcall('GET','l')} 0",
        {{A | B, U1("EVAL")}, {C, "-ERR " KIND},
            {S | PLAIN, "-WRONGTYPE " KIND}}},
    {"AUTH u x", {{OLD, "-ERR wrong number of arguments for 'auth' command"},
                     {S | PLAIN, "-WRONGPASS invalid username-password pair or "
                                 "user is disabled."}}},
    {"AUTH pass",
        {{A, "+OK"}, {B | C, "-ERR Client sent AUTH, but no password is set"},
            {S | PLAIN,
                "-ERR AUTH <password> called without any password configured "
                "for the default user. Are you sure your configuration is "
                "correct?"}}},
    {"TIME", {{A | B, U1("TIME")}, {C | S | PLAIN, "*2|~"}}},
    {"HELLO 3", {{OLD, U1("HELLO")},
                    {S, "%7|$6|server|$5|redis|$7|version|$6|6.2.16|~"},
                    {PLAIN, "%7|$6|server|$5|redis|$7|version|$6|7.0.15|~"}}},
    {"HELLO 2", {{OLD, U1("HELLO")},
                    {S, "*14|$6|server|$5|redis|$7|version|$6|6.2.16|~"},
                    {PLAIN, "*14|$6|server|$5|redis|$7|version|$6|7.0.15|~"}}},
    {"CLIENT ID", {{A, U1("CLIENT")}, {B | C, E6}, {S | PLAIN, ":~"}}},
    {"CLIENT SETNAME x", {{A, U1("CLIENT")}, {B, E6}, {C | S | PLAIN, "+OK"}}},
    {"CLIENT SETINFO LIB-NAME x",
        {{A, U1("CLIENT")}, {B | C, E6},
            {S, "-ERR Unknown subcommand or wrong number of arguments for "
                "'SETINFO'. Try CLIENT HELP."},
            {PLAIN, "-ERR unknown subcommand 'SETINFO'. Try CLIENT HELP."}}},
    {"COMMAND INFO foo bar", {{OLD, U1("COMMAND")}, {S | PLAIN, "*2|~"}}},
    {"INFO server", {{A | B, E20}, {C | S | PLAIN, "$~"}}},
    {"WAIT 1 50", {{OLD, U1("WAIT")}, {S | PLAIN, ":0"}}},
    {"WAITAOF 0 0 10",
        {{OLD, U1("WAITAOF")}, {S, U2 "WAITAOF`" ARGS "`0`, `0`, `10`, "},
            {PLAIN, U3 "WAITAOF'" ARGS "'0' '0' '10' "}}},
    {"BLPOP q 0.05", {{OLD, "-ERR timeout is not an integer or out of range"},
                         {S | PLAIN, "*-1"}}},
    {"SELECT 99", {{OLD, "-ERR invalid DB index"},
                      {S | PLAIN, "-ERR DB index is out of range"}}},
    {"UNLINK missing", {{OLD, U1("UNLINK")}, {S | PLAIN, ":0"}}},
    {"ROLE", {{OLD, U1("ROLE")}, {S | PLAIN, "*3|$6|master|:0|*0"}}},
    {"RESET", {{OLD, U1("RESET")}, {S | PLAIN, "+RESET"}}},
    {"QUIT", {{ALL, "+OK"}}},
};

static int start(void **state)
{
    (void)state;
    return redis_start(&r, NULL);
}

static const char *wanted(const struct probe *p, unsigned age)
{
    for (size_t i = 0; i < 5; i++)
        if (p->said[i].ages & age)
            return p->said[i].reply;
    fail_msg("%s: no reply is named for %u", p->command, age);
    return NULL;
}

static void ask_all(enum aged_profile profile)
{
    rig_age(profile);
    struct rig_client *c = rig_dial();

    for (size_t i = 0; i < sizeof(probes) / sizeof(probes[0]); i++) {
        const char *expected = wanted(&probes[i], 1U << profile);
        if (expected)
            ask(c, probes[i].command, expected);
    }
    assert_true(rig_is_closed(c));
}

#define EACH(name, profile)                                                    \
    static void test_words_of_##name(void **state)                             \
    {                                                                          \
        (void)state;                                                           \
        ask_all(profile);                                                      \
    }

EACH(plain, AGED_PLAIN)
EACH(2_2, AGED_2_2)
EACH(2_4, AGED_2_4)
EACH(2_6, AGED_2_6)
EACH(6_2, AGED_6_2)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_words_of_plain, start, rig_stop),
        cmocka_unit_test_setup_teardown(test_words_of_2_2, start, rig_stop),
        cmocka_unit_test_setup_teardown(test_words_of_2_4, start, rig_stop),
        cmocka_unit_test_setup_teardown(test_words_of_2_6, start, rig_stop),
        cmocka_unit_test_setup_teardown(test_words_of_6_2, start, rig_stop),
    };
    return cmocka_run_group_tests_name("support_aged", tests, NULL, NULL);
}

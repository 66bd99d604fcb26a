/* SPDX-License-Identifier: MIT */
/*
 * The aged server with much at once: order in a pipeline and among many
 * connections, any bytes, clients and servers that go away, the log.
 */
#include "unit/aged_rig.h"

enum { PIPELINE = 3000, ROUNDS = 60 };

static int start(void **state)
{
    (void)state;
    return redis_start(&r, NULL);
}

/* The command of that number and what it is answered: by the proxy alone, by
 * the server, by a script in place of the client's, in other words. */
static const char *numbered(size_t i, char command[64], char reply[64])
{
    static const char *const fixed[][2] = {
        {"WAIT 0 0", "-ERR unknown command 'WAIT'"},
        {"EVAL {return redis.call('PTTL','no')} 0", ":-1"},
        {"PTTL no", ":-1"},
        {"LRANGE l 0 -1", "*2|$1|a|$1|b"},
        {"SETEX k 0 v", "-ERR invalid expire time in SETEX"},
    };

    if (i % 2 == 0) {
        snprintf(command, 64, "ECHO %zu", 10000 + i);
        snprintf(reply, 64, "$5|%zu", 10000 + i);
    } else {
        snprintf(command, 64, "%s", fixed[i / 2 % 5][0]);
        snprintf(reply, 64, "%s", fixed[i / 2 % 5][1]);
    }
    return command;
}

static void test_order_in_a_pipeline(void **state)
{
    (void)state;
    struct bytes out = {NULL, 0, 0};
    char command[64], reply[64];

    redis_run(&r, "RPUSH", "l", "a", "b", NULL);
    rig_age(AGED_2_6);
    struct rig_client *c = rig_dial();
    for (size_t i = 0; i < PIPELINE; i++)
        rig_put(&out, numbered(i, command, reply));
    for (size_t at = 0; at < out.len; at += 777)
        assert_true(local_send(
            c->fd, out.data + at, out.len - at < 777 ? out.len - at : 777));
    bytes_free(&out);
    for (size_t i = 0; i < PIPELINE; i++) {
        numbered(i, command, reply);
        heard(c, reply);
    }
    assert_int_equal(aged_count(a, ""), PIPELINE);
    assert_int_equal(aged_count(a, "echo"), PIPELINE / 2);
    assert_int_equal(aged_count(a, "SETEX * * v"), PIPELINE / 10);
    assert_int_equal(aged_count(a, "SETEX * * w"), 0);
    aged_forget(a);
    assert_int_equal(aged_count(a, ""), 0);
}

static void test_order_among_many(void **state)
{
    (void)state;
    char command[64], reply[64];

    redis_run(&r, "RPUSH", "l", "a", "b", NULL);
    rig_age(AGED_2_6);
    for (size_t i = 0; i < RIG_CLIENTS; i++)
        rig_dial();
    for (size_t k = 0; k < ROUNDS; k++)
        for (size_t i = 0; i < RIG_CLIENTS; i++)
            rig_say(&rig_clients[i], numbered(7 * i + k, command, reply));
    for (size_t i = RIG_CLIENTS; i-- > 0;)
        for (size_t k = 0; k < ROUNDS; k++) {
            numbered(7 * i + k, command, reply);
            heard(&rig_clients[i], reply);
        }
    assert_int_equal(aged_connections(a), RIG_CLIENTS);
    assert_int_equal(aged_count(a, ""), RIG_CLIENTS * ROUNDS);
}

static void put_bytes(struct bytes *out, size_t count, const struct bytes *b)
{
    bytes_addf(out, "*%zu\r\n", count);
    for (size_t i = 0; i < count; i++)
        resp_bulk(out, b[i].data, b[i].len);
}

static void exchange_bytes(struct rig_client *c, size_t count,
    const struct bytes *command, const char *reply, size_t len)
{
    struct bytes out = {NULL, 0, 0};
    char *got = calloc(1, len);

    put_bytes(&out, count, command);
    assert_true(local_send(c->fd, out.data, out.len));
    assert_int_equal(recv(c->fd, got, len, MSG_WAITALL), len);
    assert_memory_equal(got, reply, len);
    bytes_free(&out);
    free(got);
}

#define WORD(text)                                                             \
    {                                                                          \
        (char *)(text), sizeof(text) - 1, 0                                    \
    }
#define REPLY(text) (text), sizeof(text) - 1

static void test_any_bytes(void **state)
{
    (void)state;
    static const struct bytes set[] = {WORD("SET"), WORD("k\r\n\0\xff"),
        WORD("\0\r\n$5\r\n{}'`"), WORD("PX"), WORD("60000")};
    static const struct bytes get[] = {WORD("GET"), WORD("k\r\n\0\xff")};
    static const struct bytes delete[] = {WORD("DEL"), WORD("k\r\n\0\xff")};
    static const struct bytes unknown[] = {
        WORD("FCALL"), WORD("a\r\nb\0c"), WORD("\xff'\x01"), WORD("")};

    rig_age(AGED_6_2);
    struct rig_client *c = rig_dial();
    exchange_bytes(c, 5, set, REPLY("+OK\r\n"));
    exchange_bytes(c, 2, get, REPLY("$11\r\n\0\r\n$5\r\n{}'`\r\n"));
    exchange_bytes(c, 2, delete, REPLY(":1\r\n"));
    exchange_bytes(c, 2, delete, REPLY(":0\r\n"));
    exchange_bytes(c, 4, unknown,
        REPLY("-ERR unknown command `FCALL`, with args beginning with: "
              "`a  b`, `\xff'\x01`, ``, \r\n"));
    assert_contains(
        aged_log(a), "0 FCALL a\\x0d\\x0ab\\x00c \\xff'\\x01 \"\"\n");
    aged_profile_now(a, AGED_2_4, false);
    exchange_bytes(c, 4, unknown, REPLY("-ERR unknown command 'FCALL'\r\n"));
    aged_profile_now(a, AGED_6_2, false);
    static const struct bytes none[] = {WORD("N\r\n\0x"), WORD("a\nb\0c")};
    exchange_bytes(c, 2, none,
        REPLY("-ERR unknown command `N  `, with args beginning with: "
              "`a b`, \r\n"));
}

/* An unknown command is shown as the server itself would show it. */
static void test_long_arguments(void **state)
{
    (void)state;
    char one[80], two[80], words[200];

    rig_age(AGED_PLAIN);
    aged_refuse(a, "SCRIPT", AGED_UNKNOWN);
    struct rig_client *c = rig_dial();
    for (int len = 50; len < 75; len++) {
        snprintf(one, sizeof(one), "%0*d", len, 1);
        snprintf(two, sizeof(two), "%0*d", len, 2);
        snprintf(words, sizeof(words), "SCRIPT %s %s abc", one, two);
        redisReply *reply = redis_command(&r, "NOSUCH", one, two, "abc", NULL);
        rig_say(c, words);
        assert_string_equal(strchr(rig_hear(c), ','), strchr(reply->str, ','));
        freeReplyObject(reply);
    }
}

static void test_big_replies(void **state)
{
    (void)state;
    char script[128];

    rig_age(AGED_6_2);
    struct rig_client *c = rig_dial();
    snprintf(
        script, sizeof(script), "EVAL {return string.rep('x', %d)} 0", 3000000);
    rig_say(c, script);
    rig_say(c, "PING");
    assert_int_equal(strlen(rig_hear(c)), 3000000 + strlen("$3000000|"));
    heard(c, "+PONG");
    ask(c,
        "EVAL {local t=2 for i=1,20 do local u=t t=redis.pcall('ECHO',u) "
        "end return t} 0",
        "$1|2");
    ask(c, "COMMAND COUNT", ":~");
    rig_say(c, "COMMAND");
    assert_true(strlen(rig_hear(c)) > 20000);
    ask(c, "PING", "+PONG");
}

static void test_messages_pass(void **state)
{
    (void)state;
    rig_age(AGED_2_4);
    struct rig_client *c = rig_dial();

    ask(c, "SUBSCRIBE one two", "*3|$9|subscribe|$3|one|:1");
    heard(c, "*3|$9|subscribe|$3|two|:2");
    redis_run(&r, "PUBLISH", "two", "hello", NULL);
    heard(c, "*3|$7|message|$3|two|$5|hello");
    ask(c, "UNSUBSCRIBE one", "*3|$11|unsubscribe|$3|one|:1");
}

static void test_a_client_goes_away(void **state)
{
    (void)state;
    rig_age(AGED_6_2);
    struct rig_client *c = rig_dial();

    for (int i = 0; i < 100; i++)
        rig_say(c, "INCR n");
    rig_say(c, "BLPOP q 0");
    /* Who hangs up with replies unread may take back what is on its way. */
    assert_eventually(aged_count(a, "BLPOP q 0") == 1);
    rig_hang_up(c);
    assert_eventually(aged_connections(a) == 0);
    assert_eventually(redis_clients(&r) == 0);
    assert_int_equal(redis_run(&r, "INCR", "n", NULL), 101);
    c = rig_dial();
    assert_true(local_send(c->fd, "PING\r\n", 6));
    assert_true(rig_is_closed(c)); /* not what a client of ours sends */
}

static void test_the_server_goes_away(void **state)
{
    (void)state;
    rig_age(AGED_2_2);
    struct rig_client *c = rig_dial();

    ask(c, "PING", "+PONG");
    redis_freeze(&r);
    rig_say(c, "SETNX k v");
    redis_thaw(&r);
    heard(c, ":1");
    redis_kill(&r);
    assert_true(rig_is_closed(c));
    assert_true(rig_is_closed(rig_dial()));
    redis_restart(&r);
    ask(rig_dial(), "SETNX k v", ":1");
    aged_cut(a);
    assert_int_equal(aged_connections(a), 0);
    int fd = local_connect(NULL, aged_port(a));
    assert_true(fd >= 0);
    close(fd);
}

static void test_the_log(void **state)
{
    (void)state;
    rig_age(AGED_6_2);
    struct rig_client *c = rig_dial(), *other = rig_dial();

    ask(c, "SET k v NX PX 60000", "+OK");
    ask(other, "get k", "$1|v");
    ask(other, "del k", ":1");
    ask(c, "SET k v XX", "$-1");
    assert_int_equal(aged_count(a, "SET"), 2);
    assert_int_equal(aged_count(a, "SET * * NX"), 1);
    assert_int_equal(aged_count(a, "SET k * NX PX 60000"), 1);
    assert_int_equal(aged_count(a, "SET k * NX PX 60000 x"), 0);
    assert_string_equal(aged_names(a, 0), "SET SET");
    assert_string_equal(aged_names(a, 1), "get del");
    assert_string_equal(aged_names(a, 2), "");
    assert_string_equal(
        aged_log(a), "0 SET k v NX PX 60000\n1 get k\n1 del k\n0 SET k v XX\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_order_in_a_pipeline, start, rig_stop),
        cmocka_unit_test_setup_teardown(test_order_among_many, start, rig_stop),
        cmocka_unit_test_setup_teardown(test_any_bytes, start, rig_stop),
        cmocka_unit_test_setup_teardown(test_long_arguments, start, rig_stop),
        cmocka_unit_test_setup_teardown(test_big_replies, start, rig_stop),
        cmocka_unit_test_setup_teardown(test_messages_pass, start, rig_stop),
        cmocka_unit_test_setup_teardown(
            test_a_client_goes_away, start, rig_stop),
        cmocka_unit_test_setup_teardown(
            test_the_server_goes_away, start, rig_stop),
        cmocka_unit_test_setup_teardown(test_the_log, start, rig_stop),
    };
    return cmocka_run_group_tests_name("support_aged_load", tests, NULL, NULL);
}

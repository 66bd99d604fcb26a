/* SPDX-License-Identifier: MIT */
/* The brief handshake: its bytes, and what the answer to its probe shows. */
#include "handshake_rig.h"

/* For a proxy that closes the connection at commands without a key. */
static void test_brief(void **state)
{
    static const struct credentials brief = {
        .password = {"pw", 2}, .brief = true};
    struct handshake h;
    struct buf out = {0};
    enum fault fault = FAULT_NONE;
    struct reply ok = words(REPLY_STATUS, "OK");
    struct reply pong = words(REPLY_STATUS, "PONG");

    (void)state;
    assert_int_equal(handshake_begin(&h, &brief, &out), 2);
    static const char flight[] =
        "*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n*1\r\n$4\r\nPING\r\n";
    assert_int_equal(buf_len(&out), sizeof(flight) - 1);
    assert_memory_equal(buf_head(&out), flight, sizeof(flight) - 1);
    buf_free(&out);
    assert_true(h.facts.info_refused);
    assert_waits(&h, ok);
    assert_int_equal(handshake_reply(&h, &pong, &fault), HANDSHAKE_DONE);
    assert_int_equal(h.facts.client_id, 0);
}

/* CLIENT ID goes after PING's answer, not with it; any answer to it is one of
 * a server. */
static void test_probe(void **state)
{
    static const struct credentials brief = {.brief = true, .probe = true};
    struct reply pong = words(REPLY_STATUS, "PONG");
    struct reply error = words(REPLY_ERROR, "NOPERM x");
    const struct {
        struct reply reply;
        enum handshake_next next;
        enum fault fault;
    } rows[] = {
        {integer(7), HANDSHAKE_FULL, FAULT_NONE},
        {error, HANDSHAKE_FULL, FAULT_NONE},
        {words(REPLY_ERROR, "LOADING x"), HANDSHAKE_FULL, FAULT_NONE},
        {words(REPLY_ERROR, "ERR max number of clients reached"),
            HANDSHAKE_FAILED, FAULT_RETRY},
        {pong, HANDSHAKE_FAILED, FAULT_NOT_REDIS},
        {{.kind = REPLY_NIL}, HANDSHAKE_FAILED, FAULT_NOT_REDIS},
    };
    static const char command[] = "*2\r\n$6\r\nCLIENT\r\n$2\r\nID\r\n";

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct handshake h;
        struct buf out = {0};
        enum fault fault = FAULT_NONE;
        assert_int_equal(handshake_begin(&h, &brief, &out), 1);
        buf_free(&out);
        assert_int_equal(h.probe, PROBE_UNSENT);
        assert_int_equal(
            handshake_reply(&h, i % 2 ? &error : &pong, &fault), HANDSHAKE_ASK);
        assert_true(handshake_ask(&h, &out));
        assert_int_equal(h.probe, PROBE_SENT);
        assert_int_equal(buf_len(&out), sizeof(command) - 1);
        assert_memory_equal(buf_head(&out), command, sizeof(command) - 1);
        buf_free(&out);
        assert_int_equal(
            handshake_reply(&h, &rows[i].reply, &fault), rows[i].next);
        assert_int_equal(fault, rows[i].fault);
        assert_int_equal(h.probe,
            rows[i].next == HANDSHAKE_FULL ? PROBE_ANSWERED : PROBE_SENT);
    }
}

/* A refused login ends a brief handshake too, though there is no INFO. */
static void test_brief_login_refused(void **state)
{
    static const struct credentials brief = {
        .db = 3, .brief = true, .probe = true};
    struct handshake h;
    struct buf out = {0};
    enum fault fault = FAULT_NONE;
    struct reply pong = words(REPLY_STATUS, "PONG");

    (void)state;
    assert_int_equal(handshake_begin(&h, &brief, &out), 2);
    buf_free(&out);
    assert_waits(&h, words(REPLY_ERROR, "NOPERM x"));
    assert_int_equal(handshake_reply(&h, &pong, &fault), HANDSHAKE_FAILED);
    assert_int_equal(fault, FAULT_NO_PERMISSION);
    assert_string_equal(h.why, "NOPERM x");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_brief),
        cmocka_unit_test(test_probe),
        cmocka_unit_test(test_brief_login_refused),
    };
    return cmocka_run_group_tests_name("brief handshake", tests, NULL, NULL);
}

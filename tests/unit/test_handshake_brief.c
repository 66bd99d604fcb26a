/* SPDX-License-Identifier: MIT */
/* The brief handshake of a connection that only listens to a channel. */
#include "handshake_rig.h"

static void test_brief(void **state)
{
    static const struct handshake_terms brief = {
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

/* A refused login ends a brief handshake too, though there is no INFO. */
static void test_brief_login_refused(void **state)
{
    static const struct handshake_terms brief = {.db = 3, .brief = true};
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
        cmocka_unit_test(test_brief_login_refused),
    };
    return cmocka_run_group_tests_name("brief handshake", tests, NULL, NULL);
}

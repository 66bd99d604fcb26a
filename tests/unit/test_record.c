/* SPDX-License-Identifier: MIT */
/*
 * Records as they stand on a server. What only looks like one is in
 * tests/fuzz/record.c.
 */
#include "support/test.h"

#include "wire/record.h"

#define LINE "once1 done A@db7 17 3 1 111 222 333 -7 2 600000 =abc 12"

static bool parses(const char *line, struct record *r)
{
    /* Behind the line there is nothing. */
    size_t len = strlen(line);
    char *exact = malloc(len ? len : 1);

    assert_non_null(exact);
    memcpy(exact, line, len);
    bool ok = record_parse((struct slice){exact, len}, r);
    if (ok) { /* what it points to is in the line, which is kept for the test */
        r->token.data = line + (r->token.data - exact);
        if (r->fingerprint.len > 0)
            r->fingerprint.data = line + (r->fingerprint.data - exact);
    }
    free(exact);
    return ok;
}

static void every_field(void **state)
{
    struct record r;

    (void)state;
    assert_true(parses(LINE, &r));
    assert_int_equal(r.state, ONCE_DONE);
    assert_true(slice_equal(r.token, slice_of("A@db7")));
    assert_int_equal(r.fence, 17);
    assert_int_equal(r.attempt, 3);
    assert_int_equal(r.doubts, 1);
    assert_int_equal(r.first_ms, 111);
    assert_int_equal(r.since_ms, 222);
    assert_int_equal(r.ended_ms, 333);
    assert_int_equal(r.code, -7);
    assert_int_equal(r.late, 2);
    assert_int_equal(r.keep_ms, 600000);
    assert_true(slice_equal(r.fingerprint, slice_of("abc")));
    assert_int_equal(r.size, 12);
}

static void every_state(void **state)
{
    static const char *const states[] = {
        [ONCE_BEGUN] = "begun",
        [ONCE_DOUBT] = "doubt",
        [ONCE_DONE] = "done",
        [ONCE_FAILED] = "failed",
    };

    (void)state;
    for (int i = ONCE_BEGUN; i <= ONCE_FAILED; i++) {
        char line[128];
        struct record r;
        snprintf(
            line, sizeof(line), "once1 %s T 0 1 0 0 0 0 0 0 0 - 0", states[i]);
        assert_true(parses(line, &r));
        assert_int_equal(r.state, i);
        assert_string_equal(record_state_word((enum once_state)i), states[i]);
        assert_int_equal(r.fingerprint.len, 0);
    }
}

static void numbers_beyond_64_bits(void **state)
{
    struct record r;

    (void)state;
    assert_true(
        parses("once1 done T 922337203685477580 1 0 0 0 0 0 0 0 - 0", &r));
    assert_false(
        parses("once1 done T 9223372036854775808 1 0 0 0 0 0 0 0 - 0", &r));
    assert_false(
        parses("once1 done T 99999999999999999999999 1 0 0 0 0 0 0 0 - 0", &r));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field),
        cmocka_unit_test(every_state),
        cmocka_unit_test(numbers_beyond_64_bits),
    };
    return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}

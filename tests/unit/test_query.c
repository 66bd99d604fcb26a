/* SPDX-License-Identifier: MIT */
/* How a query is sent; replies of any form out of the reader, and that it is
 * strict again behind them. */
#include "support/test.h"

#include "net/reader.h"
#include "wire/exchange.h"

static void it_goes_out_as_it_is(void **state)
{
    (void)state;
    const struct slice words[] = {slice_of("TYPE"), {"a\0\r\n", 4}, {"", 0}};
    struct reply_values leaves = {.list = NULL};
    struct verb verb = {
        .kind = VERB_QUERY, .args = words, .arg_count = 3, .values = &leaves};
    struct exchange x = {.verb = NULL};
    struct dialect dialect = {.connection = 1};
    struct buf out = {.data = NULL};
    static const char wanted[] =
        "*3\r\n$4\r\nTYPE\r\n$4\r\na\0\r\n\r\n$0\r\n\r\n";
    exchange_begin(&x, &verb, NULL);
    assert_int_equal(exchange_encode(&x, &dialect, &out), 1);
    assert_int_equal(buf_len(&out), sizeof(wanted) - 1);
    assert_memory_equal(buf_head(&out), wanted, sizeof(wanted) - 1);
    struct reply no = {.kind = REPLY_ERROR,
        .bytes = slice_of("NOPERM this user has no permissions")};
    assert_int_equal(exchange_reply(&x, &no), EXCHANGE_DONE);
    assert_int_equal(x.outcome.kind, OUTCOME_FAULT);
    assert_int_equal(x.outcome.fault, FAULT_NO_PERMISSION);
    buf_free(&out);
}

/* Of a command that changes something, only 1 and 0 are answers. */
static void a_change_is_answered_by_a_number(void **state)
{
    static const struct {
        struct reply reply;
        bool changes;
        enum outcome_kind kind;
    } rows[] = {
        {{.kind = REPLY_INTEGER, .integer = 1}, true, OUTCOME_MINE},
        {{.kind = REPLY_INTEGER, .integer = 0}, true, OUTCOME_NOT_MINE},
        {{.kind = REPLY_INTEGER, .integer = 2}, true, OUTCOME_FAULT},
        {{.kind = REPLY_INTEGER, .integer = -1}, true, OUTCOME_FAULT},
        {{.kind = REPLY_STATUS, .bytes = {"OK", 2}}, true, OUTCOME_FAULT},
        {{.kind = REPLY_NIL}, true, OUTCOME_FAULT},
        {{.kind = REPLY_ARRAY}, true, OUTCOME_FAULT},
        {{.kind = REPLY_STATUS, .bytes = {"OK", 2}}, false, OUTCOME_MINE},
        {{.kind = REPLY_NIL}, false, OUTCOME_MINE},
    };
    const struct slice words[] = {slice_of("DEL"), slice_of("k")};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct reply_values values = {.list = NULL};
        struct verb verb = {.kind = VERB_QUERY,
            .args = words,
            .arg_count = 2,
            .values = &values,
            .changes = rows[i].changes};
        struct exchange x = {.verb = NULL};
        struct dialect dialect = {.connection = 1};
        struct buf out = {.data = NULL};
        exchange_begin(&x, &verb, NULL);
        assert_int_equal(exchange_encode(&x, &dialect, &out), 1);
        assert_int_equal(exchange_reply(&x, &rows[i].reply), EXCHANGE_DONE);
        assert_int_equal(x.outcome.kind, rows[i].kind);
        assert_int_equal(x.outcome.unsure, rows[i].kind == OUTCOME_FAULT);
        buf_free(&out);
    }
}

/* ------------------------------------------------------------- the reader */

static struct reader *reader;
static struct reply_values leaves;

static int set_up(void **state)
{
    (void)state;
    reader = reader_new();
    return reader ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    reader_free(reader);
    reply_values_free(&leaves);
    return 0;
}

/* Byte by byte. */
static const struct reply *read_loose(
    const char *bytes, struct reply_values *to)
{
    const struct reply *reply = NULL;
    for (size_t i = 0; bytes[i]; i++) {
        assert_null(reply);
        assert_true(reader_feed(reader, bytes + i, 1));
        struct expected expected = {true, to};
        assert_true(reader_next(reader, expected, &reply) >= 0);
    }
    assert_non_null(reply);
    return reply;
}

static const char *leaf(size_t i)
{
    return leaves.list[i].nil ? NULL
                              : buf_head(&leaves.bytes) + leaves.list[i].at;
}

static void any_form_is_read(void **state)
{
    (void)state;
    assert_int_equal(read_loose("*3\r\n$1\r\n0\r\n*12\r\n:1\r\n:2\r\n:3\r\n"
                                ":4\r\n:5\r\n:6\r\n:7\r\n:8\r\n:9\r\n:10\r\n"
                                ":11\r\n*2\r\n+a\r\n-no\r\n$-1\r\n",
                         &leaves)
                         ->kind,
        REPLY_ARRAY);
    assert_int_equal(leaves.count, 15);
    assert_string_equal(leaf(0), "0");
    assert_string_equal(leaf(1), "1");
    assert_string_equal(leaf(11), "11");
    assert_string_equal(leaf(12), "a");
    assert_string_equal(leaf(13), "no");
    assert_null(leaf(14));
    reply_values_clear(&leaves);
    assert_int_equal(
        read_loose("$5\r\nab\r\nc\r\n", &leaves)->kind, REPLY_STRING);
    assert_string_equal(leaf(0), "ab\r\nc");
    reply_values_clear(&leaves);
    const struct reply *no = read_loose("-NOPERM no\r\n", &leaves);
    assert_int_equal(no->kind, REPLY_ERROR);
    assert_true(slice_equal(no->bytes, slice_of("NOPERM no")));
    assert_int_equal(leaves.count, 0);
    assert_int_equal(read_loose("*0\r\n", &leaves)->kind, REPLY_ARRAY);
    assert_int_equal(read_loose("*-1\r\n", &leaves)->kind, REPLY_NIL);
    assert_int_equal(leaves.count, 1);
    /* Nobody wants it any more: it is read all the same. */
    read_loose("*2\r\n*1\r\n*1\r\n*1\r\n:1\r\n$2\r\nab\r\n", NULL);
}

static void it_is_strict_behind_it(void **state)
{
    (void)state;
    const struct reply *reply;
    read_loose("*1\r\n*1\r\n:1\r\n", &leaves);
    struct expected expected = {false, NULL};
    assert_true(reader_feed(reader, "*1\r\n*1\r\n:1\r\n", 12));
    assert_int_equal(reader_next(reader, expected, &reply), -1);
    assert_contains(reader_error(reader), "array inside an array");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_goes_out_as_it_is),
        cmocka_unit_test(a_change_is_answered_by_a_number),
        cmocka_unit_test_setup_teardown(any_form_is_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            it_is_strict_behind_it, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("asked", tests, NULL, NULL);
}

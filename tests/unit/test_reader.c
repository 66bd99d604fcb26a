/* SPDX-License-Identifier: MIT */
/*
 * Replies out of bytes: long ones, and that nothing a peer can send is kept
 * without a limit. Every kind of reply, cut anywhere, is compared with a second
 * reader by tests/fuzz/reply.c.
 */
#include "support/test.h"

#include "base/text.h"
#include "net/reader.h"

static struct reader *reader;
static struct reply_values leaves; /* of a reply of any form */

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
    reader = NULL;
    reply_values_free(&leaves);
    return 0;
}

static void feed(const char *bytes)
{
    assert_true(reader_feed(reader, bytes, strlen(bytes)));
}

static const struct reply *next(void)
{
    const struct reply *reply = NULL;

    int result = reader_next(reader, (struct expected){0}, &reply);
    if (result != 1)
        print_error("%d %s\n", result, reader_error(reader));
    assert_int_equal(result, 1);
    assert_non_null(reply);
    return reply;
}

static void none(void)
{
    const struct reply *reply;
    assert_int_equal(reader_next(reader, (struct expected){0}, &reply), 0);
    assert_string_equal(reader_error(reader), "");
}

static void check(const struct reply *r, enum reply_kind kind, const char *text)
{
    assert_int_equal(r->kind, kind);
    assert_int_equal(r->bytes.len, strlen(text));
    assert_memory_equal(r->bytes.data, text, strlen(text));
}

/* The peer's bytes break the protocol; what says it has all the words. */
static void check_broken(
    const char *bytes, size_t len, const char *words, const char *more)
{
    const struct reply *reply = NULL;
    struct text said = {0};
    assert_true(reader_reset(reader) && reader_feed(reader, bytes, len));
    assert_int_equal(reader_next(reader, (struct expected){0}, &reply), -1);
    assert_null(reply);
    text_add(&said, reader_error(reader));
    assert_null(strchr(said.data, '"')); /* hiredis quotes a byte there */
    text_add(&said, ", in: ");
    text_add_foreign_raw(&said, reader_head(reader), 32);
    assert_contains(said.data, words);
    assert_contains(said.data, more);
    assert_false(reader_feed(reader, "+OK\r\n", 5)); /* and stays so */
    assert_int_equal(reader_next(reader, (struct expected){0}, &reply), -1);
}

static void bytes_fed_may_be_overwritten(void **state)
{
    char bytes[] = "*2\r\n$3\r\nabc\r\n$3\r\n";

    (void)state;
    feed(bytes);
    none();
    memset(bytes, '!', sizeof(bytes) - 1);
    strcpy(bytes, "def\r\n+more\r\n");
    feed(bytes);
    memset(bytes, '!', sizeof(bytes) - 1);
    const struct reply *reply = next();
    check(&reply->items[0], REPLY_STRING, "abc");
    check(&reply->items[1], REPLY_STRING, "def");
    check(next(), REPLY_STATUS, "more");
}

static void a_long_text_fits_exactly(void **state)
{
    static char text[READER_TEXT + 1];
    char head[32];
    size_t half = READER_TEXT / 2;

    (void)state;
    memset(text, 'i', sizeof(text));
    for (int twice = 0; twice < 2; twice++) {
        snprintf(head, sizeof(head), "$%d\r\n", READER_TEXT);
        feed(head);
        assert_true(reader_feed(reader, text, READER_TEXT));
        none();
        feed("\r\n");
        const struct reply *reply = next();
        assert_int_equal(reply->bytes.len, READER_TEXT);
        assert_false(reply->truncated);
        assert_memory_equal(reply->bytes.data, text, READER_TEXT);

        snprintf(head, sizeof(head), "*2\r\n$%zu\r\n", half);
        feed(head);
        assert_true(reader_feed(reader, text, half));
        snprintf(head, sizeof(head), "\r\n$%zu\r\n", half);
        feed(head);
        assert_true(reader_feed(reader, text, half));
        feed("\r\n");
        assert_int_equal(next()->items[1].bytes.len, half);
    }

    /* Two items that fit one by one, but not together. */
    const struct reply *reply;
    snprintf(head, sizeof(head), "*2\r\n$%zu\r\n", half);
    feed(head);
    assert_true(reader_feed(reader, text, half));
    snprintf(head, sizeof(head), "\r\n$%zu\r\n", half + 1);
    feed(head);
    none();
    assert_true(reader_feed(reader, text, half + 1));
    feed("\r\n");
    assert_int_equal(reader_next(reader, (struct expected){0}, &reply), -1);
    assert_contains(reader_error(reader), "longer than any this library");
}

/* INFO of a server with many databases, or error codes. */
static void a_longer_text_is_cut(void **state)
{
    static const size_t sizes[] = {READER_TEXT + 1, 102400, 1048576};
    static char text[1048576];
    char head[32];

    (void)state;
    memset(text, 'i', sizeof(text));
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        snprintf(head, sizeof(head), "+OK\r\n$%zu\r\n", sizes[i]);
        feed(head);
        check(next(), REPLY_STATUS, "OK");
        for (size_t at = 0, now; at < sizes[i]; at += now) {
            none();
            now = sizes[i] - at < 16384 ? sizes[i] - at : 16384;
            assert_true(reader_feed(reader, text + at, now));
        }
        feed("\r\n$3\r\nabc\r\n");
        const struct reply *reply = next();
        assert_int_equal(reply->kind, REPLY_STRING);
        assert_true(reply->truncated);
        assert_int_equal(reply->bytes.len, READER_TEXT);
        assert_memory_equal(reply->bytes.data, text, READER_TEXT);
        reply = next();
        check(reply, REPLY_STRING, "abc");
        assert_false(reply->truncated);
    }
}

static void what_breaks_the_protocol_is_shown(void **state)
{
    static const struct {
        const char *bytes, *words, *more;
    } broken[] = {
        {"HTTP/1.1 400 Bad Request\r\n", "rotocol error", "HTTP/1.1 400 Bad"},
        {"\x15\x03\x03\x02", "rotocol error", ", in: \\x15\\x03\\x03\\x02"},
        {"SSH-2.0-OpenSSH_9\r\n", "rotocol error", "SSH-2.0-OpenSSH_9\\x0d"},
        {"\r\n", "rotocol error", ", in: \\x0d\\x0a"},
        {":abc\r\n", "nteger", ":abc"},
        {":99999999999999999999\r\n", "nteger", ":9999"},
        {"$-2\r\n", "ulk string length", "$-2"},
        {"$x\r\n", "ulk string length", "$x"},
        {"*-2\r\n", "ulti-bulk length", "*-2"},
        {"*9\r\n", "array longer than any", "*9"},
        {"*2147483647\r\n", "array longer than any", "*2147483647"},
        {"*1\r\n*1\r\n", "array inside an array", "*1\\x0d\\x0a*1"},
        {"*1\r\n*0\r\n", "array inside an array", "*1\\x0d\\x0a*0"},
        {"*2\r\n+OK\r\n?", "rotocol error", "+OK\\x0d\\x0a?"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++)
        check_broken(broken[i].bytes, strlen(broken[i].bytes), broken[i].words,
            broken[i].more);
    /* Refused by 0.14 for the number, later for the count. */
    check_broken("*4294967295\r\n", 13, ", in: *4294967295", "");
    check_broken("*9223372036854775807\r\n", 22, ", in: *9223372036854", "");
}

static void nothing_waits_for_ever(void **state)
{
    static char much[READER_BACKLOG];
    static const char *const heads[] = {"$99999999999\r\n",
        "$9223372036854775807\r\n", "+", "*1\r\n$500000\r\n", "$1048577\r\n"};

    (void)state;
    memset(much, 'x', sizeof(much));
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        const struct reply *reply;
        size_t fed = strlen(heads[i]);
        assert_true(reader_reset(reader));
        feed(heads[i]);
        none();
        while (reader_feed(reader, much, 16384)) {
            none();
            fed += 16384;
            assert_true(fed <= READER_BACKLOG + 64);
        }
        assert_true(fed > READER_BACKLOG - 16384);
        assert_contains(reader_error(reader), "more than 262144 bytes");
        assert_int_equal(reader_next(reader, (struct expected){0}, &reply), -1);
        assert_false(reader_feed(reader, "x", 1));
    }
    /* Exactly as much as is allowed; what was taken does not count. */
    assert_true(reader_reset(reader));
    feed("+OK\r\n");
    check(next(), REPLY_STATUS, "OK");
    assert_true(reader_feed(reader, much, 0));
    assert_true(reader_feed(reader, much, sizeof(much)));
    assert_true(reader_feed(reader, much, 0));
    assert_false(reader_feed(reader, much, 1));
}

static void reset_forgets(void **state)
{
    (void)state;
    feed("*2\r\n+half\r\n$10\r\nabc");
    none();
    assert_true(reader_reset(reader));
    none();
    feed("+OK\r\n");
    check(next(), REPLY_STATUS, "OK");

    check_broken("HTTP", 4, "HTTP", "");
    assert_true(reader_reset(reader));
    assert_string_equal(reader_error(reader), "");
    feed(":1\r\n");
    assert_int_equal(next()->integer, 1);
    reader_free(NULL);
}

/* Every byte that is not part of a reply taken is something, also one that
 * the parser has put aside. */
static void idle_is_when_all_was_taken(void **state)
{
    (void)state;
    static const char *const parts[] = {"+", "+OK", "+OK\r", "$", "$2\r\n",
        "$2\r\nab", "*", "*1\r\n", "*2\r\n:1\r\n", "+OK\r\n"};

    assert_true(reader_idle(reader));
    none();
    assert_true(reader_idle(reader));
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        feed(":1\r\n");
        assert_false(reader_idle(reader));
        next();
        assert_true(reader_idle(reader));
        none();
        assert_true(reader_idle(reader));
        feed(":2\r\n");
        feed(parts[i]);
        next();
        assert_false(reader_idle(reader));
        if (i + 1 < sizeof(parts) / sizeof(parts[0]))
            none();
        assert_false(reader_idle(reader));
        assert_true(reader_reset(reader));
        assert_true(reader_idle(reader));
    }
}

/* ------------------------------------------------- replies of any form */

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

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(bytes_fed_may_be_overwritten),
        TEST(a_long_text_fits_exactly),
        TEST(a_longer_text_is_cut),
        TEST(what_breaks_the_protocol_is_shown),
        TEST(nothing_waits_for_ever),
        TEST(reset_forgets),
        TEST(idle_is_when_all_was_taken),
        TEST(any_form_is_read),
        TEST(it_is_strict_behind_it),
    };
    return cmocka_run_group_tests_name("reader", tests, NULL, NULL);
}

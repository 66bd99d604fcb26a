/* SPDX-License-Identifier: MIT */
/*
 * What the reader takes from malloc: nothing in the long run, and when there
 * is nothing to be had, a clean error. This program's own malloc counts; it
 * is a program of its own because sanitizers bring theirs.
 */
#include "support/test.h"

#include "net/reader.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||     \
    __has_feature(memory_sanitizer)
#define FOREIGN_MALLOC 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||           \
    !defined(__GLIBC__)
#define FOREIGN_MALLOC 1
#endif

#ifdef FOREIGN_MALLOC

int main(void)
{
    fprintf(stderr, "SKIP: malloc is not ours to replace here\n");
    return 77;
}

#else

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void __libc_free(void *old);

static unsigned calls;
static int calls_left = -1; /* -1: no end */

static bool may(void)
{
    calls++;
    if (calls_left == 0)
        return false;
    if (calls_left > 0)
        calls_left--;
    return true;
}

void *malloc(size_t size)
{
    return may() ? __libc_malloc(size) : NULL;
}

void *calloc(size_t count, size_t size)
{
    return may() ? __libc_calloc(count, size) : NULL;
}

void *realloc(void *old, size_t size)
{
    return may() ? __libc_realloc(old, size) : NULL;
}

void free(void *old)
{
    __libc_free(old);
}

static const char replies[] =
    "+OK\r\n$-1\r\n:1\r\n*2\r\n$36\r\n0123456789abcdef0123456789abcdef0123\r\n"
    ":9\r\n-ERR a wrong word\r\n$5\r\nhello\r\n*-1\r\n";

#define REPLIES 7

/* Returns the replies read, or -1. */
static int read_all(struct reader *reader, size_t piece)
{
    const struct reply *reply;
    size_t len = sizeof(replies) - 1;
    int result, count = 0;

    for (size_t at = 0; at < len; at += piece) {
        size_t now = len - at < piece ? len - at : piece;
        if (!reader_feed(reader, replies + at, now))
            return -1;
        while (
            (result = reader_next(reader, (struct expected){0}, &reply)) == 1)
            count++;
        if (result < 0)
            return -1;
    }
    return count;
}

static void no_reply_allocates(void **state)
{
    struct reader *reader = reader_new();
    unsigned before, counted;

    (void)state;
    assert_non_null(reader);
    /* hiredis moves its buffer's content back after each 1024 bytes taken;
     * until then the buffer grows. */
    for (int i = 0; i < 100; i++)
        assert_int_equal(read_all(reader, sizeof(replies)), REPLIES);
    before = calls;
    for (int i = 0; i < 10000; i++)
        if (read_all(reader, sizeof(replies)) != REPLIES ||
            read_all(reader, 7) != REPLIES)
            fail();
    counted = calls - before;
    reader_free(reader);
    assert_int_equal(counted, 0);
    assert_true(calls > 0);
}

/* INFO and the like make the buffer grow; it may shrink once afterwards. */
static void a_long_reply_costs_little(void **state)
{
    static char text[30000 + 8];
    struct reader *reader = reader_new();
    const struct reply *reply;

    (void)state;
    assert_non_null(reader);
    snprintf(text, sizeof(text), "$30000\r\n%029999d", 0);
    unsigned before = calls;
    if (!reader_feed(reader, text, strlen(text)) ||
        !reader_feed(reader, "0\r\n", 3) ||
        reader_next(reader, (struct expected){0}, &reply) != 1)
        fail();
    unsigned grown = calls - before;
    for (int i = 0; i < 1000; i++)
        if (read_all(reader, sizeof(replies)) != REPLIES)
            fail();
    unsigned counted = calls - before;
    reader_free(reader);
    assert_between(grown, 1, 4);
    assert_between(counted, grown, 8);
}

static void running_out_is_a_clean_error(void **state)
{
    bool refused = true;

    (void)state;
    for (int n = 0; refused; n++) {
        const char *error = "out of memory";
        bool good = true;
        calls_left = n;
        struct reader *reader = reader_new();
        refused = !reader;
        if (reader &&
            (read_all(reader, sizeof(replies)) < 0 || !reader_reset(reader) ||
                read_all(reader, sizeof(replies)) < 0)) {
            refused = true;
            error = reader_error(reader);
            good = !reader_feed(reader, "+OK\r\n", 5);
        }
        calls_left = -1;
        assert_true(good);
        if (refused)
            assert_contains(error, "out of memory");
        /* With memory again the same reader serves again. */
        if (reader) {
            assert_true(reader_reset(reader));
            assert_int_equal(read_all(reader, 3), REPLIES);
        }
        reader_free(reader);
        assert_true(n < 30);
        assert_true(n > 4 || refused);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_reply_allocates),
        cmocka_unit_test(a_long_reply_costs_little),
        cmocka_unit_test(running_out_is_a_clean_error),
    };
    return cmocka_run_group_tests_name("reader_memory", tests, NULL, NULL);
}

#endif

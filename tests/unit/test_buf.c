/* SPDX-License-Identifier: MIT */
/* The queue against a plain model, and what it promises on its edges. */
#include "support/test.h"

#include <stdlib.h>

#include "base/buf.h"

static void assert_content(const struct buf *b, const char *text)
{
    assert_int_equal(buf_len(b), strlen(text));
    assert_memory_equal(buf_head(b), text, strlen(text));
}

static void test_cut(void **state)
{
    struct buf b = {0};

    (void)state;
    assert_true(buf_append(&b, "xxabcdef", 8));
    buf_consume(&b, 2);
    buf_cut(&b, 2, 2);
    assert_content(&b, "abef");
    buf_cut(&b, 3, 1);
    assert_content(&b, "abe");
    buf_cut(&b, 0, 1);
    assert_content(&b, "be");
    buf_cut(&b, 1, 0);
    assert_content(&b, "be");
    buf_cut(&b, 0, 2);
    assert_int_equal(buf_len(&b), 0);
    buf_free(&b);
}

/* The cut's last byte is the last of the memory: a step too far shows. */
static void test_cut_at_full_room(void **state)
{
    struct buf b = {0};

    (void)state;
    assert_true(buf_append(&b, "ab", 2));
    while (b.end < b.room)
        assert_true(buf_append(&b, "c", 1));
    size_t len = buf_len(&b);
    buf_cut(&b, 1, len - 2);
    assert_content(&b, "ac");
    buf_free(&b);
}

static void test_reserve_then_write(void **state)
{
    struct buf b = {0};

    (void)state;
    assert_true(buf_append(&b, "ab", 2));
    assert_true(buf_reserve(&b, 5000));
    assert_true(b.room - b.end >= 5000);
    assert_content(&b, "ab");
    char *data = b.data;
    for (int i = 0; i < 5000; i++)
        assert_true(buf_append(&b, "c", 1));
    assert_ptr_equal(b.data, data);
    buf_clear(&b);
    assert_int_equal(buf_len(&b), 0);
    assert_ptr_equal(b.data, data);
    buf_free(&b);
}

static void test_impossible_size_changes_nothing(void **state)
{
    struct buf b = {0};

    (void)state;
    assert_true(buf_append(&b, "abc", 3));
    struct buf before = b;
    assert_false(buf_reserve(&b, SIZE_MAX));
    assert_false(buf_reserve(&b, SIZE_MAX - 3));
    assert_false(buf_reserve(&b, SIZE_MAX / 2));
    assert_memory_equal(&b, &before, sizeof(b));
    assert_content(&b, "abc");
    buf_free(&b);
}

/* A queue in steady use must neither grow for ever nor move at each step. */
static void test_steady_use_keeps_its_room(void **state)
{
    struct buf b = {0};
    char bytes[100] = {0};

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_true(buf_append(&b, bytes, sizeof(bytes)));
    for (int i = 0; i < 100000; i++) {
        assert_true(buf_append(&b, bytes, sizeof(bytes)));
        buf_consume(&b, sizeof(bytes));
    }
    assert_in_range(b.room, 1, 4096);
    buf_free(&b);
}

static void test_nibbled_queue_is_rarely_moved(void **state)
{
    struct buf b = {0};
    int moves = 0;

    (void)state;
    assert_true(buf_append(&b, "a", 1));
    while (b.end < b.room - 10)
        assert_true(buf_append(&b, "a", 1));
    for (int i = 0; i < 2000; i++) {
        buf_consume(&b, 1);
        const char *before = b.data + b.end;
        assert_true(buf_append(&b, "a", 1));
        moves += b.data + b.end != before + 1;
    }
    assert_in_range(moves, 1, 10);
    buf_free(&b);
}

static void test_against_a_model(void **state)
{
    struct buf b = {0};
    unsigned char in = 0, out = 0;
    size_t len = 0;
    unsigned seed = 1;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        seed = seed * 1103515245u + 12345u;
        unsigned char chunk[64];
        size_t n = (seed >> 16) % sizeof(chunk);
        if ((seed >> 24) % 2 == 0 || len < n) {
            for (size_t k = 0; k < n; k++)
                chunk[k] = in++;
            assert_true(buf_append(&b, chunk, n));
            len += n;
        } else {
            for (size_t k = 0; k < n; k++)
                assert_int_equal((unsigned char)buf_head(&b)[k], out++);
            buf_consume(&b, n);
            len -= n;
        }
        assert_int_equal(buf_len(&b), len);
        assert_true(b.start <= b.end && b.end <= b.room);
    }
    buf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_cut_at_full_room),
        cmocka_unit_test(test_reserve_then_write),
        cmocka_unit_test(test_impossible_size_changes_nothing),
        cmocka_unit_test(test_steady_use_keeps_its_room),
        cmocka_unit_test(test_nibbled_queue_is_rarely_moved),
        cmocka_unit_test(test_against_a_model),
    };
    return cmocka_run_group_tests_name("buf", tests, NULL, NULL);
}

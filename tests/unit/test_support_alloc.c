/* SPDX-License-Identifier: MIT */
/* Memory runs out exactly where it was told to, on the asking thread only. */
#include "support/test.h"

#include <errno.h>
#include <pthread.h>

#include "support/alloc.h"

/* Not calls the compiler may remove, nor pointers it may follow. */
static void *volatile kept, *volatile before;

static bool gets_memory(void)
{
    kept = malloc(8);
    bool got = kept != NULL;
    free(kept);
    return got;
}

static void test_fails_once(void **state)
{
    (void)state;
    alloc_fail_at(2);
    bool first = gets_memory();
    errno = 0;
    bool second = gets_memory();
    int error = errno;
    bool third = gets_memory();
    bool had = alloc_stop();
    assert_true(first && !second && third && had);
    assert_int_equal(error, ENOMEM);
    assert_true(gets_memory());
    assert_false(alloc_stop());
}

static void test_fails_for_ever(void **state)
{
    (void)state;
    alloc_fail_from(1);
    bool first = gets_memory(), second = gets_memory();
    kept = calloc(1, 1);
    bool third = kept != NULL;
    free(kept);
    alloc_stop();
    assert_false(first || second || third);
}

static void test_a_failed_realloc_keeps(void **state)
{
    (void)state;
    before = strdup("abc");
    alloc_fail_at(1);
    kept = realloc(before, 100000);
    alloc_stop();
    assert_null(kept);
    assert_string_equal((char *)before, "abc");
    free(before);
}

static void test_library_calls_count(void **state)
{
    (void)state;
    if (!alloc_counts())
        test_skip("a sanitizer has the allocator");
    unsigned long count = alloc_count();
    free(strdup("abc"));
    assert_int_equal(alloc_count() - count, 1);
}

static void test_blocks_in_use(void **state)
{
    (void)state;
    if (!alloc_counts())
        test_skip("a sanitizer has the allocator");
    long blocks = alloc_blocks();
    before = malloc(8);
    kept = calloc(1, 8);
    assert_int_equal(alloc_blocks(), blocks + 2);
    before = realloc(before, 100000);
    assert_int_equal(alloc_blocks(), blocks + 2);
    free(kept);
    free(NULL);
    assert_int_equal(alloc_blocks(), blocks + 1);
    alloc_fail_at(1);
    bool got = gets_memory();
    alloc_stop();
    assert_false(got);
    assert_int_equal(alloc_blocks(), blocks + 1);
    kept = realloc(before, 0);
    assert_null(kept);
    kept = realloc(NULL, 8);
    assert_int_equal(alloc_blocks(), blocks + 1);
    free(kept);
    assert_int_equal(alloc_blocks(), blocks);
}

static void *ask(void *got)
{
    *(bool *)got = gets_memory();
    return NULL;
}

static void test_other_threads_go_on(void **state)
{
    (void)state;
    pthread_t thread;
    bool got = false;

    /* The thread's own memory is taken before the order. */
    assert_int_equal(pthread_create(&thread, NULL, ask, &got), 0);
    alloc_fail_from(1);
    pthread_join(thread, NULL);
    alloc_stop();
    assert_true(got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fails_once),
        cmocka_unit_test(test_fails_for_ever),
        cmocka_unit_test(test_a_failed_realloc_keeps),
        cmocka_unit_test(test_library_calls_count),
        cmocka_unit_test(test_blocks_in_use),
        cmocka_unit_test(test_other_threads_go_on),
    };
    return cmocka_run_group_tests_name("support_alloc", tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * A program that was built with an older nxlock.h passes smaller structures.
 * Every size from that of the first release on is tried, with rubbish behind
 * it: the library must not read or write what the program does not have.
 */
#include "support/test.h"

#include <nxlock.h>

#define RUBBISH 0xee
#define FIRST_CLIENT_OPTIONS                                                   \
    (offsetof(nxl_client_options, errbuf_size) + sizeof(size_t))
#define FIRST_LOCK_OPTIONS                                                     \
    (offsetof(nxl_lock_options, retry_max_ms) + sizeof(int64_t))
#define FIRST_STATS (offsetof(nxl_stats, cleanups) + sizeof(uint64_t))
#define FIRST_HOLDER offsetof(nxl_holder, label)
#define URL "redis://localhost:1"

/* The least size is listed here and not computed: it must never grow. */
static void test_the_first_sizes_are_what_they_were(void **state)
{
    (void)state;
    if (sizeof(void *) != 8)
        skip();
    assert_int_equal(FIRST_CLIENT_OPTIONS, 64);
    assert_int_equal(FIRST_LOCK_OPTIONS, 56);
    assert_int_equal(FIRST_STATS, 592);
    assert_int_equal(FIRST_HOLDER, 536);
}

static nxl_client *new_client(const nxl_client_options *options)
{
    nxl_client *client = NULL;

    assert_int_equal(nxl_client_new(&client, URL, options), NXL_OK);
    assert_non_null(client);
    return client;
}

static void test_client_options_of_every_older_size(void **state)
{
    (void)state;
    for (size_t size = FIRST_CLIENT_OPTIONS; size <= sizeof(nxl_client_options);
         size += sizeof(int)) {
        nxl_client_options full = NXL_CLIENT_OPTIONS_INIT, older;
        full.size = size;
        full.max_ttl_ms = 12345;
        full.prefix = "older:";
        memset(&older, RUBBISH, sizeof(older));
        memcpy(&older, &full, size);
        nxl_client *client = new_client(&older);
        assert_int_equal(nxl_client_max_ttl_ms(client), 12345);
        assert_string_equal(nxl_client_prefix(client), "older:");
        nxl_client_free(client);
    }
}

static void test_lock_options_of_every_older_size(void **state)
{
    (void)state;
    nxl_client *client = new_client(NULL);

    for (size_t size = FIRST_LOCK_OPTIONS; size <= sizeof(nxl_lock_options);
         size += sizeof(int)) {
        nxl_lock_options full = NXL_LOCK_OPTIONS_INIT, older;
        nxl_lock *lock = NULL;
        full.size = size;
        full.ttl_ms = 12345;
        memset(&older, RUBBISH, sizeof(older));
        memcpy(&older, &full, size);
        assert_int_equal(nxl_lock_new(&lock, client, "name", &older), NXL_OK);
        nxl_lock_free(lock);
        /* Its members are read, not only its size. */
        older.ttl_ms = -1;
        assert_int_equal(
            nxl_lock_new(&lock, client, "name", &older), NXL_E_INVALID);
    }
    nxl_client_free(client);
}

static void test_stats_are_cut_to_every_size(void **state)
{
    (void)state;
    nxl_client *client = new_client(NULL);

    for (size_t size = sizeof(uint64_t); size <= sizeof(nxl_stats);
         size += sizeof(uint64_t)) {
        _Alignas(nxl_stats) unsigned char stats[sizeof(nxl_stats) + 8];
        memset(stats, RUBBISH, sizeof(stats));
        assert_int_equal(
            nxl_client_stats(client, (nxl_stats *)(void *)stats, size), NXL_OK);
        for (size_t i = 0; i < sizeof(stats); i++)
            assert_int_equal(stats[i], i < size ? 0 : RUBBISH);
    }
    nxl_client_free(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_sizes_are_what_they_were),
        cmocka_unit_test(test_client_options_of_every_older_size),
        cmocka_unit_test(test_lock_options_of_every_older_size),
        cmocka_unit_test(test_stats_are_cut_to_every_size),
    };
    return cmocka_run_group_tests_name("sizes", tests, NULL, NULL);
}

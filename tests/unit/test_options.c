/* SPDX-License-Identifier: MIT */
/*
 * Option structures of any age and their members' bounds: what is out of
 * range is refused by its name, and nothing behind the caller's size is read.
 */
#include "support/test.h"

#include "api/options.h"
#include "base/deadline.h"

static struct nxl_client client;
static struct lock_settings set;

static int set_up(void **state)
{
    (void)state;
    client = (struct nxl_client){.max_ttl_ms = 60000, .drift_ppm = 10000};
    return 0;
}

#define options_test(function) cmocka_unit_test_setup(function, set_up)

static bool accepts(const nxl_lock_options *options)
{
    text_clear(&client.errmsg);
    return options_lock(&client, "job", options, &set);
}

static void assert_refused(const nxl_lock_options *options, const char *words)
{
    assert_false(accepts(options));
    assert_contains(client.errmsg.data, words);
}

/* -------------------------------------------------------------------- sizes */

static void init_functions_are_the_macros(void **state)
{
    (void)state;
    nxl_lock_options lock = NXL_LOCK_OPTIONS_INIT, lock2;
    nxl_client_options of_client = NXL_CLIENT_OPTIONS_INIT, of_client2;
    memset(&lock2, 'x', sizeof(lock2));
    memset(&of_client2, 'x', sizeof(of_client2));
    nxl_lock_options_init(&lock2);
    nxl_client_options_init(&of_client2);
    assert_int_equal(lock.size, sizeof(lock));
    assert_int_equal(of_client.size, sizeof(of_client));
    assert_memory_equal(&lock, &lock2, sizeof(lock));
    assert_memory_equal(&of_client, &of_client2, sizeof(of_client));
    nxl_lock_options_init(NULL);
    nxl_client_options_init(NULL);
}

static void defaults(void **state)
{
    (void)state;
    nxl_lock_options zero = NXL_LOCK_OPTIONS_INIT;
    for (int i = 0; i < 2; i++) {
        assert_true(accepts(i == 0 ? NULL : &zero));
        assert_int_equal(set.ttl_ms, 30000);
        assert_null(set.label);
        assert_null(set.user);
        assert_int_equal(set.name.len, 3);
        assert_int_equal(set.prefix.len, 0);
        assert_true(set.retry_first_ns == 10 * NS_PER_MS);
        assert_true(set.retry_max_ns == 250 * NS_PER_MS);
    }
}

static void sizes_too_small_are_refused(void **state)
{
    (void)state;
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    for (size_t size = 0; size < 2 * sizeof(size_t); size++) {
        options.size = size;
        assert_refused(&options, "nxl_lock_options.size is ");
        assert_contains(client.errmsg.data, "_INIT");
    }
    options.size = SIZE_MAX;
    assert_refused(&options, "nxl_lock_options.size is ");
}

/* A program built for a younger library: what it does not have is default,
 * whatever lies behind its structure. */
static void smaller_structures_are_read_as_far_as_they_go(void **state)
{
    (void)state;
    nxl_lock_options options;
    memset(&options, 0xee, sizeof(options));
    options.size = offsetof(nxl_lock_options, label);
    options.ttl_ms = 4321;
    assert_true(accepts(&options));
    assert_int_equal(set.ttl_ms, 4321);
    assert_null(set.label);
    assert_null(set.user);
    assert_true(set.retry_first_ns == 10 * NS_PER_MS);
}

static void larger_structures_need_a_zero_tail(void **state)
{
    (void)state;
    static union {
        nxl_lock_options options;
        unsigned char bytes[4097];
    } large;
    size_t known = sizeof(large.options);
    memset(&large, 0, sizeof(large));
    large.options.ttl_ms = 4321;
    static const size_t more[] = {1, 8, 100};
    for (size_t i = 0; i < 3; i++) {
        large.options.size = known + more[i];
        assert_true(accepts(&large.options));
        assert_int_equal(set.ttl_ms, 4321);
        large.bytes[known + more[i]] = 1; /* is not looked at */
        assert_true(accepts(&large.options));
        large.bytes[known + more[i]] = 0;
        large.bytes[known + more[i] - 1] = 1;
        assert_refused(&large.options, "does not know");
        large.bytes[known + more[i] - 1] = 0;
        large.bytes[known] = 0x80;
        assert_refused(&large.options, NXLOCK_VERSION);
        large.bytes[known] = 0;
    }
    large.options.size = 4096;
    assert_true(accepts(&large.options));
    large.options.size = 4097;
    assert_refused(&large.options, "size is 4097");
}

/* ------------------------------------------------------------------- locks */

static void ttl_bounds(void **state)
{
    (void)state;
    static const int64_t bad[] = {
        -1, 1, 12, 60001, INT64_MAX, INT64_MIN, INT64_C(4294967296) + 30000};
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        options.ttl_ms = bad[i];
        assert_refused(&options, "ttl_ms is ");
        assert_false(options_ttl(&client, bad[i], &client.errmsg));
    }
    assert_false(options_ttl(&client, 0, &client.errmsg));
    options.ttl_ms = 13;
    assert_true(accepts(&options));
    options.ttl_ms = 60000;
    assert_true(accepts(&options));
    assert_int_equal(set.ttl_ms, 60000);
    client.drift_ppm = 500000;
    options.ttl_ms = 23;
    assert_refused(&options, "from 24 to 60000");
    options.ttl_ms = 24;
    assert_true(accepts(&options));
    client.max_ttl_ms = 20000;
    assert_true(accepts(NULL));
    assert_int_equal(set.ttl_ms, 20000);
}

static void retry_delays(void **state)
{
    (void)state;
    static const struct {
        int64_t min, max;     /* as given */
        uint64_t first, most; /* as they become; 0: refused */
    } rows[] = {
        {0, 0, 10, 250},
        {1, 0, 1, 250},
        {250, 0, 250, 250},
        {251, 0, 251, 251},
        {0, 5, 5, 5},
        {0, 10, 10, 10},
        {0, 11, 10, 11},
        {7, 7, 7, 7},
        {3600000, 3600000, 3600000, 3600000},
        {8, 7, 0, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
        options.retry_min_ms = rows[i].min;
        options.retry_max_ms = rows[i].max;
        if (rows[i].first == 0) {
            assert_refused(&options, "retry_m");
            continue;
        }
        assert_true(accepts(&options));
        assert_true(set.retry_first_ns == rows[i].first * NS_PER_MS);
        assert_true(set.retry_max_ns == rows[i].most * NS_PER_MS);
    }
}

static void names_and_labels(void **state)
{
    (void)state;
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    assert_false(options_lock(&client, NULL, NULL, &set));
    assert_false(options_lock(&client, "", NULL, &set));
    options.name_length = NXL_NAME_MAX;
    assert_true(options_lock(&client, "x", &options, &set));
    assert_int_equal(set.name.len, NXL_NAME_MAX);
    client.prefix = slice_of("app:");
    assert_false(options_lock(&client, "x", &options, &set));
    options.name_length = NXL_NAME_MAX - 4;
    assert_true(options_lock(&client, "x", &options, &set));
    assert_int_equal(set.prefix.len, 4);
    options.name_length = SIZE_MAX;
    assert_false(options_lock(&client, "x", &options, &set));
    options.name_length = 0;
    options.label = "db7";
    options.user = &set;
    assert_true(accepts(&options));
    assert_string_equal(set.label, "db7");
    assert_ptr_equal(set.user, &set);
}

/* ----------------------------------------------------------------- clients */

static bool client_accepts(const nxl_client_options *options)
{
    struct settings settings;
    text_clear(&client.errmsg);
    return options_client(options, &settings, &client.errmsg);
}

static void client_sizes(void **state)
{
    (void)state;
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    options.size = 0;
    assert_false(client_accepts(&options));
    assert_contains(client.errmsg.data, "nxl_client_options.size is 0");
}

/* The structure of an older program ends before prefix and errbuf; what lies
 * behind it is not ours to look at. */
static void client_of_a_smaller_structure(void **state)
{
    (void)state;
    nxl_client *made = NULL;
    nxl_client_options options;
    memset(&options, 0xee, sizeof(options));
    options.size = offsetof(nxl_client_options, max_ttl_ms);
    options.timeout_ms = 77;
    assert_int_equal(nxl_client_new(&made, "redis://h", &options), NXL_OK);
    assert_int_equal(made->prefix.len, 0);
    nxl_client_free(made);
    options.timeout_ms = 9;
    assert_int_equal(
        nxl_client_new(&made, "redis://h", &options), NXL_E_INVALID);
    options.size = SIZE_MAX; /* never initialised */
    assert_int_equal(
        nxl_client_new(&made, "redis://h", &options), NXL_E_INVALID);
}

/* What the structure asks for reaches the client, and the URL wins. */
static void client_of_options_and_url(void **state)
{
    (void)state;
    char error[64], one[1] = "x";
    nxl_client *made = NULL;
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    options.timeout_ms = 77;
    options.max_ttl_ms = 5000;
    options.prefix = "opt:";
    options.errbuf = error;
    options.errbuf_size = sizeof(error);
    assert_int_equal(
        nxl_client_new(&made, "redis://h?max_ttl_ms=4000", &options), NXL_OK);
    assert_true(made->timeout_ns == 77 * NS_PER_MS);
    assert_int_equal(made->max_ttl_ms, 4000);
    assert_int_equal(made->prefix.len, 4);
    nxl_client_free(made);
    assert_int_equal(
        nxl_client_new(&made, "redis://h?prefix=url", &options), NXL_OK);
    assert_memory_equal(made->prefix.data, "url", 3);
    nxl_client_free(made);

    options.timeout_ms = 9;
    assert_int_equal(
        nxl_client_new(&made, "redis://h", &options), NXL_E_INVALID);
    assert_null(made);
    assert_contains(error, "is 9; it must be a number from 10 to 600000");
    options.errbuf_size = 8;
    memset(error, '#', sizeof(error));
    assert_int_equal(
        nxl_client_new(&made, "redis://h", &options), NXL_E_INVALID);
    assert_string_equal(error, "timeout");
    assert_int_equal(error[8], '#');
    options.errbuf = one;
    options.errbuf_size = 1;
    assert_int_equal(
        nxl_client_new(&made, "redis://h", &options), NXL_E_INVALID);
    assert_int_equal(one[0], 0);
    options.errbuf = NULL;
    assert_int_equal(
        nxl_client_new(&made, "redis://h", &options), NXL_E_INVALID);
    assert_int_equal(nxl_client_new(NULL, "redis://h", NULL), NXL_E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        options_test(init_functions_are_the_macros),
        options_test(defaults),
        options_test(sizes_too_small_are_refused),
        options_test(smaller_structures_are_read_as_far_as_they_go),
        options_test(larger_structures_need_a_zero_tail),
        options_test(ttl_bounds),
        options_test(retry_delays),
        options_test(names_and_labels),
        options_test(client_sizes),
        options_test(client_of_a_smaller_structure),
        options_test(client_of_options_and_url),
    };
    return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}

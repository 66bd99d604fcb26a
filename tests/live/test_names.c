/* SPDX-License-Identifier: MIT */
/*
 * Names, labels and numbers at their limits: accepted or refused as
 * documented, never cut or rounded; the key at the server is the name, byte
 * for byte. What each option refuses is tested by tests/unit/test_limits.c.
 */
#include "live/live_rig.h"

static char long_name[NXL_NAME_MAX + 2];

/* The only key there is, compared with what it should be. */
static void assert_only_key(const void *bytes, size_t len)
{
    assert_int_equal(redis_run(&server, "DBSIZE", NULL), 1);
    redisReply *reply = redis_commandf(&server, "EXISTS %b", bytes, len);
    assert_int_equal(reply->integer, 1);
    freeReplyObject(reply);
    reply = redis_command(&server, "RANDOMKEY", NULL);
    assert_int_equal(reply->len, len);
    assert_memory_equal(reply->str, bytes, len);
    freeReplyObject(reply);
}

/* A whole cycle on a name of these bytes; key is what should stand there. */
static void assert_works(nxl_client *client, const void *name, size_t len,
    const void *key, size_t key_len)
{
    nxl_lock *lock = lock_with(client, name, .name_length = len);
    nxl_holder seen = NXL_HOLDER_INIT;
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_only_key(key, key_len);
    assert_result(nxl_lock_extend(lock, 40000), NXL_OK, lock);
    assert_only_key(key, key_len);
    assert_result(nxl_lock_inspect(lock, &seen), NXL_OK, lock);
    assert_true(seen.ours);
    assert_true(seen.left_ms > 30000);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_int_equal(redis_run(&server, "DBSIZE", NULL), 0);
    nxl_lock_free(lock);
}

static void assert_refused(nxl_client *client, const char *name,
    const nxl_lock_options *options, const char *words)
{
    nxl_lock *lock = (nxl_lock *)&lock;
    assert_int_equal(nxl_lock_new(&lock, client, name, options), NXL_E_INVALID);
    assert_null(lock);
    assert_contains(nxl_client_errmsg(client), words);
}

static void no_name_is_refused(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock;
    assert_refused(client, NULL, NULL, "the name is NULL");
    assert_refused(client, "", NULL, "the name is empty");
    assert_refused(
        client, NULL, &OPTIONS(.name_length = 3), "the name is NULL");
    assert_int_equal(nxl_lock_new(NULL, client, "x", NULL), NXL_E_INVALID);
    assert_int_equal(nxl_lock_new(&lock, NULL, "x", NULL), NXL_E_INVALID);
    assert_null(lock);
    nxl_client_free(client);
}

static void longest_name(void **state)
{
    nxl_client *client = new_client("");
    memset(long_name, 'n', NXL_NAME_MAX);
    long_name[NXL_NAME_MAX] = '\0';
    assert_works(client, long_name, 0, long_name, NXL_NAME_MAX);
    assert_works(client, long_name, 65536, long_name, 65536);
    long_name[NXL_NAME_MAX] = 'n';
    long_name[NXL_NAME_MAX + 1] = '\0';
    assert_refused(client, long_name, NULL, "65537");
    assert_refused(
        client, long_name, &OPTIONS(.name_length = 65537), "at most 65536");
    assert_refused(
        client, long_name, &OPTIONS(.name_length = SIZE_MAX), "at most 65536");
    nxl_client_free(client);
}

static void prefix_counts_as_name(void **state)
{
    nxl_client *client = new_client("prefix=app%3a");
    assert_works(client, "job", 0, "app:job", 7);
    assert_works(client, "\0x", 2, "app:\0x", 6);
    memset(long_name, 'n', NXL_NAME_MAX);
    memcpy(long_name, "app:", 4);
    assert_works(
        client, long_name + 4, NXL_NAME_MAX - 4, long_name, NXL_NAME_MAX);
    assert_refused(client, long_name, &OPTIONS(.name_length = NXL_NAME_MAX - 3),
        "the prefix 4");
    assert_refused(client, "", NULL, "empty");
    nxl_client_free(client);

    nxl_client_options more = NXL_CLIENT_OPTIONS_INIT;
    more.prefix = "two words ";
    assert_int_equal(nxl_client_new(&client, server_url, &more), NXL_OK);
    assert_works(client, "x", 0, "two words x", 11);
    nxl_client_free(client);
}

/* -------------------------------------------------------------------- ttls */

static int64_t pttl_with(nxl_client *client, int64_t ttl_ms)
{
    nxl_lock *lock = new_lock(client, "job", ttl_ms);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    int64_t left = redis_pttl(&server, "job");
    int64_t here = nxl_lock_remaining_ms(lock);
    assert_true(here <= left + 1);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    nxl_lock_free(lock);
    return left;
}

static void ttl_at_its_limits(void **state)
{
    static const int64_t bad[] = {-1, 1, 12, 60001, INT64_C(2147483647),
        INT64_C(2147483648), INT64_C(4294967296) + 5000, INT64_MAX, INT64_MIN};
    nxl_client *client = new_client("");
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    nxl_lock *lock;
    assert_between(pttl_with(client, 0), 25000, 30000);
    assert_between(pttl_with(client, 60000), 55000, 60000);
    options.ttl_ms = 13; /* 13 - 0.13 - 2 is above 10 */
    assert_int_equal(nxl_lock_new(&lock, client, "job", &options), NXL_OK);
    int rc = nxl_lock_acquire(lock, 0);
    assert_true(rc == NXL_OK || (rc == NXL_LOST && !nxl_lock_held(lock)));
    assert_between(redis_pttl(&server, "job"), -2, 13);

    nxl_lock *other = new_lock(client, "other", 5000);
    assert_result(nxl_lock_acquire(other, 0), NXL_OK, other);
    uint64_t deadline = nxl_lock_deadline(other);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_result(nxl_lock_extend(other, bad[i]), NXL_E_INVALID, other);
    assert_contains(nxl_lock_errmsg(other), "ttl_ms is");
    assert_int_equal(nxl_lock_deadline(other), deadline);
    assert_true(nxl_lock_held(other));
    nxl_lock_free(other);
    end(lock, client);
}

static void ttl_of_another_limit(void **state)
{
    nxl_client *client = new_client("max_ttl_ms=2147483647");
    assert_between(pttl_with(client, INT64_C(2147483647)), INT64_C(2147482647),
        INT64_C(2147483647));
    assert_refused(
        client, "job", &OPTIONS(.ttl_ms = INT64_C(2147483648)), "2147483648");
    nxl_client_free(client);
    /* The default is cut to the client's limit. */
    client = new_client("max_ttl_ms=7000");
    assert_between(pttl_with(client, 0), 6000, 7000);
    assert_refused(client, "job", &OPTIONS(.ttl_ms = 7001), "7000");
    nxl_client_free(client);
}

static void wait_at_its_limits(void **state)
{
    static const int64_t bad[] = {-2, -1000, INT64_MIN};
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "job", 5000);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_result(nxl_lock_acquire(lock, bad[i]), NXL_E_INVALID, lock);
        assert_contains(nxl_lock_errmsg(lock), "NXL_FOREVER");
    }
    assert_int_equal(redis_calls(&server, "set"), 0);
    /* So long that it is for ever; no sum may wrap round. */
    static struct waiter waiter;
    stranger_sets("job", "somebody", 0);
    waiter_start(&waiter, lock, INT64_MAX);
    assert_eventually(redis_calls(&server, "set") >= 6);
    assert_int_equal(redis_run(&server, "DEL", "job", NULL), 1);
    assert_result(waiter_join(&waiter), NXL_OK, lock);
    end(lock, client);
}

/* ------------------------------------------------------------------ labels */

static void labels_are_shown_to_others(void **state)
{
    char label[130];
    nxl_client *client = new_client("");
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    nxl_lock *lock;
    nxl_holder seen = NXL_HOLDER_INIT;
    memset(label, '~', sizeof(label));
    options.label = label;
    label[128] = '\0';
    assert_int_equal(nxl_lock_new(&lock, client, "job", &options), NXL_OK);
    label[0] = 'x'; /* it was copied */
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_value("job", nxl_lock_token(lock));
    assert_int_equal(strlen(nxl_lock_token(lock)), 36 + 1 + 128);
    assert_result(nxl_lock_inspect(lock, &seen), NXL_OK, lock);
    label[0] = '~';
    assert_string_equal(seen.label, label);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    nxl_lock_free(lock);
    options.label = "a@b@c";
    assert_int_equal(nxl_lock_new(&lock, client, "job", &options), NXL_OK);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_inspect(lock, &seen), NXL_OK, lock);
    assert_string_equal(seen.label, "a@b@c");
    end(lock, client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        live_test(no_name_is_refused),
        live_test(longest_name),
        live_test(prefix_counts_as_name),
        live_test(ttl_at_its_limits),
        live_test(ttl_of_another_limit),
        live_test(wait_at_its_limits),
        live_test(labels_are_shown_to_others),
    };
    return live_run("names");
}

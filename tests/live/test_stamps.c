/* SPDX-License-Identifier: MIT */
/*
 * Locks of servers that cannot end a key in time: SETNX of a unix time. Here
 * by order (scheme=timestamp) on whatever server there is.
 */
#include "live/stamp_rig.h"

static void one_cycle(void **state)
{
    nxl_client *client = new_client(STAMPS);
    nxl_lock *lock = new_lock(client, "job", 5000);
    int64_t before = server_now_s();
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_true(nxl_lock_held(lock));
    /* Rounded up, one more, and the doubt about the clock. */
    assert_between(stamp_at("job"), before + 6, before + 9);
    assert_int_equal(redis_pttl(&server, "job"), -1);
    assert_between(nxl_lock_remaining_ms(lock), 4700, 4950);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_false(redis_exists(&server, "job"));
    assert_int_equal(redis_run(&server, "DBSIZE", NULL), 0);
    assert_int_equal(redis_calls(&server, "set"), 0);
    assert_int_equal(redis_calls(&server, "eval"), 0);
    assert_int_equal(redis_calls(&server, "evalsha"), 0);
    end(lock, client);
}

static void it_says_so(void **state)
{
    char text[512];
    nxl_client *client = new_client(STAMPS);
    nxl_lock *lock = new_lock(client, "job", 5000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    nxl_client_describe(client, text, sizeof(text));
    assert_contains(
        text, "lock commands SETNX + GETSET timestamps (weaker promises)");
    end(lock, client);
}

static void held_by_one_of_us(void **state)
{
    nxl_client *client = new_client(STAMPS);
    nxl_lock *first = new_lock(client, "job", 5000);
    nxl_lock *second = new_lock(client, "job", 5000);
    for (int i = 0; i < 20; i++) {
        assert_result(nxl_lock_acquire(first, 0), NXL_OK, first);
        assert_result(nxl_lock_acquire(second, 0), NXL_BUSY, second);
        assert_result(nxl_lock_acquire(second, 30), NXL_BUSY, second);
        assert_result(nxl_lock_release(first), NXL_OK, first);
        assert_result(nxl_lock_acquire(second, 0), NXL_OK, second);
        assert_result(nxl_lock_release(second), NXL_OK, second);
    }
    nxl_lock_free(first);
    end(second, client);
}

/* A busy answer takes one round trip and no transaction. */
static void busy_is_cheap(void **state)
{
    nxl_client *client = new_client(STAMPS);
    nxl_lock *lock = new_lock(client, "job", 5000);
    time_stands("job", 60);
    assert_result(nxl_lock_acquire(lock, 0), NXL_BUSY, lock);
    /* It was asked about WATCH, and no more. */
    assert_int_equal(redis_calls(&server, "watch"), 1);
    assert_int_equal(redis_calls(&server, "multi"), 0);
    assert_int_equal(redis_calls(&server, "setnx"), 1);
    end(lock, client);
}

static void extending(void **state)
{
    nxl_client *client = new_client(STAMPS);
    nxl_lock *lock = new_lock(client, "job", 1000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    int64_t first = stamp_at("job");
    assert_result(nxl_lock_extend(lock, 30000), NXL_OK, lock);
    assert_between(nxl_lock_remaining_ms(lock), 25000, 30000);
    assert_between(stamp_at("job"), first + 28, first + 31);
    int64_t longer = stamp_at("job");
    assert_result(nxl_lock_extend(lock, 1000), NXL_OK, lock); /* no shorter */
    assert_int_equal(stamp_at("job"), longer);
    assert_between(nxl_lock_remaining_ms(lock), 25000, 30000);
    redis_run(&server, "DEL", "job", NULL);
    assert_result(nxl_lock_extend(lock, 30000), NXL_LOST, lock);
    assert_false(redis_exists(&server, "job"));
    end(lock, client);
}

static void another_one_stands_there(void **state)
{
    nxl_client *client = new_client(STAMPS);
    nxl_lock *lock = new_lock(client, "job", 5000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    time_stands("job", 60);
    assert_result(nxl_lock_extend(lock, 5000), NXL_LOST, lock);
    assert_false(nxl_lock_held(lock));
    assert_result(nxl_lock_acquire(lock, 0), NXL_BUSY, lock);
    redis_run(&server, "DEL", "job", NULL);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    time_stands("job", 60);
    assert_result(nxl_lock_release(lock), NXL_LOST, lock);
    assert_true(redis_exists(&server, "job"));
    end(lock, client);
}

/* Nobody releases it; the next one waits for its time, and no less. */
static void a_dead_holder_is_followed(void **state)
{
    nxl_client *client = new_client(STAMPS);
    nxl_lock *dead = new_lock(client, "job", 500);
    nxl_lock *lock = new_lock(client, "job", 5000);
    assert_result(nxl_lock_acquire(dead, 0), NXL_OK, dead);
    int64_t began = test_now_ms();
    uint64_t lease = nxl_lock_deadline(dead);
    assert_result(nxl_lock_acquire(lock, 10000), NXL_OK, lock);
    assert_true(nxl_now_ns() > lease);
    assert_between(test_now_ms() - began, 500, 4000);
    assert_result(nxl_lock_extend(dead, 0), NXL_LOST, dead);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_false(redis_exists(&server, "job"));
    nxl_lock_free(dead);
    end(lock, client);
}

/* It overslept, and another one holds it: its release takes nothing away. */
static void a_late_owner_removes_nothing(void **state)
{
    nxl_client *client = new_client(STAMPS);
    nxl_lock *late = new_lock(client, "job", 300);
    nxl_lock *lock = new_lock(client, "job", 5000);
    assert_result(nxl_lock_acquire(late, 0), NXL_OK, late);
    assert_result(nxl_lock_acquire(lock, 10000), NXL_OK, lock);
    assert_result(nxl_lock_release(late), NXL_LOST, late);
    assert_true(redis_exists(&server, "job"));
    assert_result(nxl_lock_extend(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    nxl_lock_free(late);
    end(lock, client);
}

/* Values of others: only a time that is past is taken over. */
static void foreign_values(void **state)
{
    static const char *const for_ever[] = {
        "123e4567-e89b-42d3-a456-426614174000", "x", "0", "1", "-1",
        "999999999", "1600000000123", " 1600000000", "1600000000 ",
        "1600000000x", "+1600000000", "1600000000.", "1,6e9", "01600000000",
        "1600000000123456"};
    static const char *const past[] = {"1600000000", "1600000000.5",
        "1600000000.123456", "1000000000",
        "1600000000.123456789012345678901234567890123456789"};
    nxl_client *client = new_client(STAMPS);
    nxl_lock *lock = new_lock(client, "job", 5000);
    for (size_t i = 0; i < sizeof(for_ever) / sizeof(for_ever[0]); i++) {
        stranger_sets("job", for_ever[i], 0);
        assert_result(nxl_lock_acquire(lock, 0), NXL_BUSY, lock);
        assert_value("job", for_ever[i]);
    }
    for (size_t i = 0; i < sizeof(past) / sizeof(past[0]); i++) {
        stranger_sets("job", past[i], 0);
        assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
        assert_true(stamp_at("job") > 0);
        assert_result(nxl_lock_release(lock), NXL_OK, lock);
        assert_false(redis_exists(&server, "job"));
    }
    redis_run(&server, "RPUSH", "job", "1600000000", NULL);
    assert_result(nxl_lock_acquire(lock, 0), NXL_BUSY, lock);
    redis_run(&server, "DEL", "job", NULL);
    stranger_sets("job", "", 0);
    assert_result(nxl_lock_acquire(lock, 0), NXL_BUSY, lock);
    assert_value("job", "");
    end(lock, client);
}

/* Half a megabyte is not read to find that out. */
static void a_large_value_is_not_read(void **state)
{
    nxl_client *client = new_client(STAMPS);
    nxl_lock *lock = new_lock(client, "job", 5000);
    redis_run(&server, "SETRANGE", "job", "500000", "x", NULL);
    static const char bytes[] = "total_net_output_bytes";
    long long before = server_number(&server, "stats", bytes);
    assert_result(nxl_lock_acquire(lock, 0), NXL_BUSY, lock);
    long long after = server_number(&server, "stats", bytes);
    assert_true(after - before < 100000);
    end(lock, client);
}

static void inspecting(void **state)
{
    nxl_holder holder = NXL_HOLDER_INIT;
    nxl_client *client = new_client(STAMPS);
    nxl_lock *lock = new_lock(client, "job", 5000);
    assert_result(nxl_lock_inspect(lock, &holder), NXL_FREE, lock);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_inspect(lock, &holder), NXL_OK, lock);
    assert_true(holder.ours);
    assert_between(holder.left_ms, 5000, 8000);
    assert_int_equal(strlen(holder.value), 10 + 128);
    nxl_lock *other = new_lock(client, "job", 5000);
    assert_result(nxl_lock_inspect(other, &holder), NXL_OK, other);
    assert_false(holder.ours);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    time_stands("job", -10);
    assert_result(nxl_lock_inspect(lock, &holder), NXL_OK, lock);
    assert_int_equal(holder.left_ms, 0);
    stranger_sets("job", "somebody", 0);
    assert_result(nxl_lock_inspect(lock, &holder), NXL_OK, lock);
    assert_int_equal(holder.left_ms, -1);
    stranger_sets("job", "somebody", 10000);
    assert_result(nxl_lock_inspect(lock, &holder), NXL_OK, lock);
    assert_between(holder.left_ms, 8000, 10000);
    nxl_lock_free(other);
    end(lock, client);
}

/* The token of the API is the same word as on other servers, and takes over
 * what stands as a time; also by a client that was not told the scheme. */
static void adopting(void **state)
{
    static const char *const parameters[] = {STAMPS, ""};
    for (int i = 0; i < 2; i++) {
        nxl_client *client = new_client(STAMPS);
        nxl_client *child = new_client(parameters[i]);
        nxl_lock *lock = new_lock(client, "job", 5000);
        nxl_lock *heir = new_lock(child, "job", 5000);
        assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
        assert_result(nxl_lock_adopt(heir, nxl_lock_token(lock)), NXL_OK, heir);
        assert_between(nxl_lock_remaining_ms(heir), 4800, 8000);
        assert_result(nxl_lock_extend(heir, 20000), NXL_OK, heir);
        assert_true(stamp_at("job") >= server_now_s() + 20);
        assert_result(nxl_lock_release(heir), NXL_OK, heir);
        assert_false(redis_exists(&server, "job"));
        assert_result(nxl_lock_release(lock), NXL_LOST, lock);
        assert_result(
            nxl_lock_adopt(heir, nxl_lock_token(lock)), NXL_LOST, heir);
        end(lock, client);
        end(heir, child);
    }
}

static void breaking(void **state)
{
    nxl_holder holder = NXL_HOLDER_INIT;
    nxl_client *client = new_client(STAMPS);
    nxl_lock *lock = new_lock(client, "job", 5000);
    nxl_lock *other = new_lock(client, "job", 5000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_inspect(other, &holder), NXL_OK, other);
    assert_result(nxl_lock_break(other, &holder), NXL_OK, other);
    assert_false(redis_exists(&server, "job"));
    assert_result(nxl_lock_break(other, &holder), NXL_FREE, other);
    assert_result(nxl_lock_extend(lock, 0), NXL_LOST, lock);
    /* Its own one: then it knows. */
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_inspect(lock, &holder), NXL_OK, lock);
    assert_true(holder.ours);
    assert_result(nxl_lock_break(lock, &holder), NXL_OK, lock);
    assert_false(nxl_lock_held(lock));
    nxl_lock_free(other);
    end(lock, client);
}

/* A program that locks by SET k <unix time> PX holds it until its ttl. */
static void a_time_with_an_end_is_held(void **state)
{
    nxl_client *client = new_client(STAMPS);
    nxl_lock *lock = new_lock(client, "job", 5000);
    stranger_sets("job", "1600000000", 60000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_BUSY, lock);
    assert_result(nxl_lock_acquire(lock, 100), NXL_BUSY, lock);
    assert_value("job", "1600000000");
    stranger_sets("job", "1600000000", 300);
    assert_result(nxl_lock_acquire(lock, 10000), NXL_OK, lock);
    end(lock, client);
}

/* Both schemes on one name: each sees the other one's value as held. */
static void beside_the_other_scheme(void **state)
{
    nxl_client *old = new_client(STAMPS), *new = new_client("");
    nxl_lock *a = new_lock(old, "job", 5000), *b = new_lock(new, "job", 5000);
    assert_result(nxl_lock_acquire(a, 0), NXL_OK, a);
    assert_result(nxl_lock_acquire(b, 50), NXL_BUSY, b);
    assert_result(nxl_lock_release(a), NXL_OK, a);
    assert_result(nxl_lock_acquire(b, 0), NXL_OK, b);
    assert_result(nxl_lock_acquire(a, 50), NXL_BUSY, a);
    assert_value("job", nxl_lock_token(b));
    assert_result(nxl_lock_release(b), NXL_OK, b);
    end(a, old);
    end(b, new);
}

/* The connection that freed handles leave their locks to. */
static void freeing_releases(void **state)
{
    nxl_client *client = new_client(STAMPS);
    nxl_lock *lock = new_lock(client, "job", 5000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    nxl_lock_free(lock);
    nxl_client_free(client);
    assert_false(redis_exists(&server, "job"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        live_test(one_cycle),
        live_test(it_says_so),
        live_test(held_by_one_of_us),
        live_test(busy_is_cheap),
        live_test(extending),
        live_test(another_one_stands_there),
        live_test(a_dead_holder_is_followed),
        live_test(a_late_owner_removes_nothing),
        live_test(foreign_values),
        live_test(a_large_value_is_not_read),
        live_test(inspecting),
        live_test(adopting),
        live_test(breaking),
        live_test(a_time_with_an_end_is_held),
        live_test(beside_the_other_scheme),
        live_test(freeing_releases),
    };
    return live_run("timestamps");
}

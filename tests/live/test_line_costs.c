/* SPDX-License-Identifier: MIT */
/*
 * What waiting in line costs: nothing, as long as no lock waits; and what it
 * cost is given back in the end.
 */
#include "live/in_line_rig.h"

#include <malloc.h>

#define NAME "job"

static long connections_made(void)
{
    return (long)server_number(servers, "stats", "total_connections_received");
}

/* Not one command of the line, no key, no second connection. */
static void client_that_never_waits_pays_nothing(void **state)
{
    static const char *const commands[] = {"zadd", "zrem", "zrange", "zscore",
        "zcard", "publish", "pubsub|numsub", "pubsub", "subscribe", "time"};
    nxl_client *client = client_on(NO_GUARD);
    nxl_lock *lock = new_lock(client, NAME, 5000);
    long before = connections_made();
    for (int i = 0; i < 50; i++) {
        assert_result(CALL(client, acquire, lock, 5000), NXL_OK, lock);
        assert_int_equal(redis_run(servers, "DBSIZE", NULL), 1);
        assert_result(CALL(client, release, lock), NXL_OK, lock);
    }
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        assert_int_equal(redis_calls(servers, commands[i]), 0);
    assert_int_equal(redis_calls(servers, "set"), 50);
    assert_between(redis_calls(servers, "evalsha"), 49, 51);
    assert_int_equal(connections_made(), before + 1);
    assert_int_equal(redis_clients(servers), 1);
    assert_int_equal(redis_run(servers, "DBSIZE", NULL), 0);
    end(lock, client);
}

/* Nor one that only looks whether the lock is free; it does not join. */
static void try_without_wait_does_not_join(void **state)
{
    nxl_client *client = client_on(NO_GUARD);
    nxl_lock *lock = new_lock(client, NAME, 5000);
    redis_run(servers, "SET", NAME, "somebody", NULL);
    for (int i = 0; i < 20; i++)
        assert_result(CALL(client, acquire, lock, 0), NXL_BUSY, lock);
    assert_int_equal(redis_calls(servers, "zadd"), 0);
    assert_int_equal(redis_calls(servers, "subscribe"), 0);
    assert_int_equal(redis_calls(servers, "set"), 21);
    assert_int_equal(redis_clients(servers), 1);
    assert_int_equal(redis_run(servers, "DBSIZE", NULL), 1);
    end(lock, client);
}

/* poll=1 is without all of it, however long it waits. After two attempts it
 * asks by a script how long the holder has left, and whether several hold the
 * lock.
 */
static void client_without_queue_never_joins(void **state)
{
    nxl_client *client = client_on(NO_GUARD "&poll=1");
    nxl_lock *lock = new_lock(client, NAME, 5000);
    char words[1024];
    redis_run(servers, "SET", NAME, "somebody", NULL);
    assert_result(CALL(client, acquire, lock, 200), NXL_BUSY, lock);
    assert_int_equal(redis_calls(servers, "zadd"), 0);
    assert_int_equal(redis_calls(servers, "subscribe"), 0);
    assert_int_equal(redis_clients(servers), 1);
    nxl_client_describe(client, words, sizeof(words));
    assert_contains(words, "poll=1");
    end(lock, client);
}

/* A request each for the grant and for the release, and nothing else, as long
 * as the lock comes from the line; and a SET again when it was free. */
static void handle_that_waited_joins_at_once(void **state)
{
    nxl_client *client = client_on(NO_GUARD), *own = client_on(NO_GUARD);
    nxl_lock *holder = new_lock(client, NAME, 5000);
    nxl_lock *lock = new_lock(own, NAME, 5000);
    win(own, lock, holder, NAME, true);
    assert_result(CALL(own, release, lock), NXL_OK, lock);
    redis_run(servers, "CONFIG", "RESETSTAT", NULL);
    assert_result(CALL(own, acquire, lock, 5000), NXL_OK, lock);
    assert_int_equal(redis_calls(servers, "zadd"), 1);
    assert_result(CALL(own, release, lock), NXL_OK, lock);
    assert_result(CALL(own, acquire, lock, 5000), NXL_OK, lock);
    assert_int_equal(redis_calls(servers, "zadd"), 1);
    assert_result(CALL(own, release, lock), NXL_OK, lock);
    assert_true(is_free(NAME));
    end(holder, client);
    end(lock, own);
}

static int by_number(const void *a, const void *b)
{
    int64_t one = *(const int64_t *)a, two = *(const int64_t *)b;
    return (one > two) - (one < two);
}

/* Told by a message: who only asks, every 50 to 100 ms, needs 37 ms for half of
 * the hand-overs. */
static void hand_over_is_quick(void **state)
{
    enum { MANY = 15 };
    int64_t took_ms[MANY];
    nxl_client *client = client_on(NO_GUARD), *own = client_on(NO_GUARD);
    nxl_lock *holder = new_lock(client, NAME, 30000);
    nxl_lock *lock = new_lock(own, NAME, 30000);
    for (int i = 0; i < MANY; i++) {
        assert_result(nxl_lock_acquire(holder, 1000), NXL_OK, holder);
        begin_wait(&subject_waiter, own, lock, 20000);
        await_with(own, line_listens(NAME, 1));
        int64_t since = test_now_ms();
        assert_result(nxl_lock_release(holder), NXL_OK, holder);
        assert_result(end_wait(&subject_waiter, own), NXL_OK, lock);
        took_ms[i] = test_now_ms() - since;
        assert_result(CALL(own, release, lock), NXL_OK, lock);
    }
    qsort(took_ms, MANY, sizeof(took_ms[0]), by_number);
    assert_between(took_ms[MANY / 2], 0, LIVE_INSTRUMENTED ? 200 : 15);
    end(holder, client);
    end(lock, own);
}

/* One second connection for all locks of a client, kept for the next wait. */
static void second_connection_is_made_once(void **state)
{
    int descriptors = count_fds();
    nxl_client *client = client_on(NO_GUARD), *own = client_on(NO_GUARD);
    nxl_lock *holder = new_lock(client, NAME, 5000);
    nxl_lock *lock = new_lock(own, NAME, 5000);
    long before = connections_made();
    for (int i = 0; i < 10; i++) {
        win(own, lock, holder, NAME, true);
        assert_result(CALL(own, release, lock), NXL_OK, lock);
    }
    assert_int_equal(connections_made(), before + 3);
    assert_int_equal(redis_clients(servers), 3);
    assert_between(redis_calls(servers, "subscribe"), 1, 1);
    end(holder, client);
    end(lock, own);
    assert_eventually(redis_clients(servers) == 0);
    assert_eventually(count_fds() <= descriptors);
}

/* While it waits, a client asks once a beat; only the first in line more
 * often. */
static void waiters_ask_seldom(void **state)
{
    nxl_client *client = client_on(NO_GUARD), *one = client_on(NO_GUARD),
               *two = client_on(NO_GUARD);
    nxl_lock *holder = new_lock(client, NAME, 30000);
    nxl_lock *first = new_lock(one, NAME, 30000);
    nxl_lock *second = new_lock(two, NAME, 30000);
    static struct waiter ahead, behind;
    assert_result(nxl_lock_acquire(holder, 0), NXL_OK, holder);
    waiter_start(&ahead, first, 60000);
    assert_eventually(line_listens(NAME, 1));
    waiter_start(&behind, second, 60000);
    assert_eventually(line_listens(NAME, 2));
    long before = redis_calls(servers, "zadd");
    int64_t since = test_now_ms();
    assert_eventually(test_now_ms() >= since + 2000);
    /* Every 50 to 100 ms, and of the other one no beat of 3 s or one, besides
     * what it asks when it has subscribed. */
    assert_between(redis_calls(servers, "zadd") - before, 5, 45);
    assert_result(nxl_lock_release(holder), NXL_OK, holder);
    assert_result(waiter_join(&ahead), NXL_OK, first);
    assert_result(nxl_lock_release(first), NXL_OK, first);
    assert_result(waiter_join(&behind), NXL_OK, second);
    end(holder, client);
    end(first, one);
    end(second, two);
    assert_eventually(is_free(NAME));
}

/* A handle that has waited is larger, but its line is allocated once. */
static void memory_of_a_handle_that_waited(void **state)
{
    enum { MANY = 64 };
    static nxl_lock *locks[MANY];
    char name[48];
    nxl_client *client = client_on(NO_GUARD), *own = client_on(NO_GUARD);
    size_t used[3];
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "name-of-two-and-thirty-bytes-%03d", i);
        locks[i] = new_lock(own, name, 5000);
        assert_result(CALL(own, acquire, locks[i], 0), NXL_OK, locks[i]);
        assert_result(CALL(own, release, locks[i]), NXL_OK, locks[i]);
    }
    nxl_lock *holder = new_lock(client, NAME, 5000);
    nxl_lock *lock = new_lock(own, NAME, 5000);
    win(own, lock, holder, NAME, true); /* for the second connection */
    assert_result(CALL(own, release, lock), NXL_OK, lock);
    used[0] = mallinfo2().uordblks;
    for (int round = 1; round <= 2; round++) {
        for (int i = 0; i < MANY; i++) {
            snprintf(
                name, sizeof(name), "name-of-two-and-thirty-bytes-%03d", i);
            nxl_lock *other = new_lock(client, name, 5000);
            win(own, locks[i], other, name, true);
            assert_result(CALL(own, release, locks[i]), NXL_OK, locks[i]);
            nxl_lock_free(other);
        }
        used[round] = mallinfo2().uordblks;
    }
    size_t each = (used[1] - used[0]) / MANY;
    print_message("           %zu bytes a handle for its line\n", each);
    if (!LIVE_INSTRUMENTED) {
        assert_between(each, 1, 1408); /* its channel, above all */
        assert_between((int64_t)used[2] - (int64_t)used[1], -100000, MANY * 16);
    }
    for (int i = 0; i < MANY; i++)
        nxl_lock_free(locks[i]);
    end(lock, own);
    end(holder, client);
}

static size_t comparisons;

int __wrap_memcmp(const void *a, const void *b, size_t size);
int __real_memcmp(const void *a, const void *b, size_t size);

int __wrap_memcmp(const void *a, const void *b, size_t size)
{
    comparisons++;
    return __real_memcmp(a, b, size);
}

/* So many locks of one client wait for as many names, which are released from
 * the last to the first. Returns how often the library has compared
 * something. */
static size_t compare_while_handing_over(size_t count)
{
    nxl_client *client = client_on(NO_GUARD), *others = client_on(NO_GUARD);
    nxl_lock **locks = calloc(2 * count, sizeof(locks[0]));
    assert_non_null(locks);
    for (size_t i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof(name), NAME ":%zu", i);
        locks[i] = new_lock(others, name, 20000);
        locks[count + i] = new_lock(client, name, 20000);
        assert_result(CALL(others, acquire, locks[i], 0), NXL_OK, locks[i]);
        assert_int_equal(
            nxl_lock_acquire_start(locks[count + i], 60000), NXL_PENDING);
        while (!line_listens(name, 1))
            turn(client, 5);
    }
    comparisons = 0;
    for (size_t i = count; i-- > 0;) {
        assert_result(CALL(others, release, locks[i]), NXL_OK, locks[i]);
        assert_ptr_equal(next_event(client).lock, locks[count + i]);
    }
    size_t made = comparisons;
    for (size_t i = 0; i < 2 * count; i++)
        nxl_lock_free(locks[i]);
    free(locks);
    nxl_client_free(client);
    nxl_client_free(others);
    return made;
}

/* It finds the lock that a message is about without looking at all: four times
 * as many waiters cost four times as much, and not sixteen times. */
static void messages_of_many_waiters(void **state)
{
    size_t few = compare_while_handing_over(50);
    size_t many = compare_while_handing_over(200);
    print_message("50 waiters: %zu comparisons, 200: %zu\n", few, many);
    assert_true(many < 6 * few);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        api_test(client_that_never_waits_pays_nothing),
        api_test(try_without_wait_does_not_join),
        api_test(client_without_queue_never_joins),
        api_test(handle_that_waited_joins_at_once),
        api_test(hand_over_is_quick),
        api_test(second_connection_is_made_once),
        api_blocking_test(waiters_ask_seldom),
        api_test(memory_of_a_handle_that_waited),
        api_loop_test(messages_of_many_waiters),
    };
    return on_run(one_unix, "line costs", tests);
}

/* SPDX-License-Identifier: MIT */
/*
 * Other programs that lock by SETNX and GETSET of a unix time in whole
 * seconds, as the scheme was published: they and we exclude each other, in its
 * own stories and in a race. And what it does not promise.
 * NXLOCK_FULL=1 races with more of them where there is no WATCH.
 */
#include "live/timestamps_rig.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { CLASSICS = 2, OURS = 3, SHARE = 120, RACES = 3 };

/* ------------------------------------------------------------- one by one */

static void each_excludes_the_other(void **state)
{
    struct classic they = classic_new();
    nxl_client *client = new_client(STAMPS);
    nxl_lock *lock = new_lock(client, "k", 5000);
    assert_true(classic_try(&they));
    assert_result(nxl_lock_acquire(lock, 100), NXL_BUSY, lock);
    classic_release(&they);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_false(classic_try(&they));
    assert_result(nxl_lock_extend(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_true(classic_try(&they));
    classic_release(&they);
    end(lock, client);
    redisFree(they.c);
}

static void each_follows_the_other_one_s_death(void **state)
{
    struct classic they = classic_new();
    nxl_client *client = new_client(STAMPS);
    nxl_lock *lock = new_lock(client, "k", 300);
    time_stands("k", 1); /* one of theirs, which has died */
    assert_result(nxl_lock_acquire(lock, 5000), NXL_OK, lock);
    uint64_t until = nxl_lock_deadline(lock);
    nxl_holder holder = NXL_HOLDER_INIT;
    assert_result(nxl_lock_inspect(lock, &holder), NXL_OK, lock);
    int64_t began = test_now_ms();
    while (!classic_try(&they)) {
        assert_true(test_now_ms() - began < 6000);
        test_pause_ms(20);
    }
    assert_true(nxl_now_ns() > until);
    assert_result(nxl_lock_release(lock), NXL_LOST, lock);
    assert_int_equal(classic_send(&they, "GET", 0), they.end_s);
    end(lock, client);
    redisFree(they.c);
}

/* ------------------------------------------------- the published stories */

/* C3 has got the lock, and has died. The others see its time pass. */
static void c3_died(struct classic *c1, struct classic *c2)
{
    struct classic c3 = classic_new();
    c3.ttl_s = 0;
    assert_true(classic_try(&c3));
    redisFree(c3.c);
    int64_t there = classic_send(c1, "GET", 0);
    assert_int_equal(there, c3.end_s);
    assert_int_equal(classic_send(c1, "SETNX", classic_now(c1) + 60), 0);
    assert_int_equal(classic_send(c2, "SETNX", classic_now(c2) + 60), 0);
    assert_eventually(classic_is_past(c1));
    assert_true(classic_is_past(c2));
    assert_int_equal(classic_send(c2, "GET", 0), there);
}

/* C4 and C5 have both read it. C5 is faster and has the lock; C4 has not, and
 * that it wrote its own time over that, somewhat later, does no harm: nobody
 * else gets in, and the name is free when C5 has done. */
static void two_that_take_over(void **state)
{
    struct classic c4 = classic_new(), c5 = classic_new();
    nxl_client *client = new_client(STAMPS);
    nxl_lock *c6 = new_lock(client, "k", 2000);
    c3_died(&c4, &c5);
    assert_true(classic_take_over(&c5));
    assert_false(classic_take_over(&c4));
    assert_true(classic_send(&c4, "GET", 0) >= c5.end_s);
    assert_false(classic_try(&c4));
    assert_false(classic_try(&c5));
    assert_result(nxl_lock_acquire(c6, 100), NXL_BUSY, c6);
    assert_true(classic_now(&c5) < c5.end_s);
    assert_int_equal(classic_send(&c5, "DEL", 0), 1); /* inside its time */
    assert_result(nxl_lock_acquire(c6, 0), NXL_OK, c6);
    end(c6, client);
    redisFree(c4.c);
    redisFree(c5.c);
}

static struct waiter waiter;

/* The replies to the step that is on its way, so many bytes, have come; what
 * is sent upon them is held. */
static void one_step(struct proxy *proxy, uint64_t down)
{
    assert_true(proxy_await(proxy, PROXY_DOWN, down));
    proxy_hold(proxy, PROXY_UP, true);
    uint64_t up = proxy_bytes(proxy, PROXY_UP);
    proxy_hold(proxy, PROXY_DOWN, false);
    assert_true(proxy_await(proxy, PROXY_UP, up + 1));
}

/* An acquire of ours that has read the time in the past, and MULTI was
 * accepted; what it sent next is held. */
static struct proxy *ours_has_read(nxl_client **client, nxl_lock **lock)
{
    struct proxy *proxy = proxy_to_server();
    *client = via(proxy, STAMPS "&timeout_ms=10000");
    *lock = new_lock(*client, "k", 5000);
    assert_result(nxl_lock_acquire(*lock, 0), NXL_OK, *lock);
    assert_result(nxl_lock_release(*lock), NXL_OK, *lock);
    time_stands("k", -10);
    uint64_t down = proxy_bytes(proxy, PROXY_DOWN);
    proxy_hold(proxy, PROXY_DOWN, true);
    waiter_start(&waiter, *lock, 0);
    one_step(proxy, down + strlen(":0\r\n$10\r\n1234567890\r\n"));
    down = proxy_bytes(proxy, PROXY_DOWN);
    proxy_hold(proxy, PROXY_DOWN, true);
    proxy_hold(proxy, PROXY_UP, false);
    one_step(proxy, down + strlen("+OK\r\n$10\r\n1234567890\r\n+OK\r\n"));
    return proxy;
}

/* C4 is ours, C5 another program that is faster: C4 has not got it, and has
 * not touched C5's time. */
static void c5_is_faster_than_ours(void **state)
{
    nxl_client *client;
    nxl_lock *lock;
    struct classic c5 = classic_new();
    struct proxy *proxy = ours_has_read(&client, &lock);
    assert_true(classic_try(&c5));
    proxy_hold(proxy, PROXY_UP, false);
    assert_int_equal(waiter_join(&waiter), NXL_BUSY);
    assert_int_equal(classic_send(&c5, "GET", 0), c5.end_s);
    classic_release(&c5);
    end(lock, client);
    proxy_stop(proxy);
    redisFree(c5.c);
}

/* C5 is ours and faster than C4, another program: C4 has not got it, and has
 * written a later time over ours. The lock is good until its own deadline; it
 * only cannot be prolonged, nor ended before C4's time is over. */
static void ours_is_faster_than_c4(void **state)
{
    struct classic c4 = classic_new(), c6 = classic_new();
    nxl_client *client = new_client(STAMPS);
    nxl_lock *lock = new_lock(client, "k", 2000);
    time_stands("k", -10);
    assert_int_equal(classic_send(&c4, "SETNX", classic_now(&c4) + 6), 0);
    assert_true(classic_send(&c4, "GET", 0) < classic_now(&c4));
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    int64_t later_s = classic_now(&c4) + 6;
    assert_true(classic_send(&c4, "GETSET", later_s) > classic_now(&c4));
    assert_true(nxl_lock_held(lock));
    assert_false(classic_try(&c6));
    assert_result(nxl_lock_extend(lock, 0), NXL_LOST, lock);
    assert_result(nxl_lock_acquire(lock, 0), NXL_BUSY, lock);
    assert_int_equal(classic_send(&c4, "GET", 0), later_s);
    end(lock, client);
    redisFree(c4.c);
    redisFree(c6.c);
}

/* C3 died, and came back late: it removes nobody else's by ours. */
static void c3_was_only_asleep(void **state)
{
    struct classic c4 = classic_new();
    nxl_client *client = new_client(STAMPS);
    nxl_lock *c3 = new_lock(client, "k", 100);
    assert_result(nxl_lock_acquire(c3, 0), NXL_OK, c3);
    int64_t began = test_now_ms();
    while (!classic_try(&c4)) {
        assert_true(test_now_ms() - began < 6000);
        test_pause_ms(20);
    }
    assert_false(nxl_lock_held(c3));
    assert_result(nxl_lock_release(c3), NXL_LOST, c3);
    assert_int_equal(classic_send(&c4, "GET", 0), c4.end_s);
    end(c3, client);
    redisFree(c4.c);
}

/* C3 is another program, comes back late, and knows better than to delete. */
static void their_c3_was_only_asleep(void **state)
{
    struct classic c3 = classic_new();
    nxl_client *client = new_client(STAMPS);
    nxl_lock *lock = new_lock(client, "k", 5000);
    c3.ttl_s = 0;
    assert_true(classic_try(&c3));
    assert_result(nxl_lock_acquire(lock, 5000), NXL_OK, lock);
    classic_release(&c3);
    assert_true(stamp_at("k") > 0);
    assert_result(nxl_lock_extend(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    end(lock, client);
    redisFree(c3.c);
}

/* ---------------------------------------------------- what is not promised */

/* The clocks of all who write times have to agree. A program whose clock goes
 * wrong by more than its lease takes a live lock, or loses its own. */
static void clocks_that_differ(void **state)
{
    struct classic fast = classic_new(), slow = classic_new();
    nxl_client *client = new_client(STAMPS);
    nxl_lock *lock = new_lock(client, "k", 5000);
    fast.ahead_s = 60;
    slow.ahead_s = -60;
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_true(classic_try(&fast));
    assert_true(nxl_lock_held(lock)); /* two of them */
    assert_result(nxl_lock_release(lock), NXL_LOST, lock);
    redis_run(&server, "DEL", "k", NULL);
    assert_true(classic_try(&slow));
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock); /* likewise */
    end(lock, client);
    redisFree(fast.c);
    redisFree(slow.c);
}

/* ----------------------------------------------------------------- a race */

/* Exclusion is all that makes this right. */
static void increment(int file)
{
    char text[24] = "";
    if (pread(file, text, sizeof(text) - 1, 0) <= 0)
        _exit(2);
    sched_yield();
    int len =
        snprintf(text, sizeof(text), "%-20ld", strtol(text, NULL, 10) + 1);
    if (pwrite(file, text, (size_t)len, 0) != len)
        _exit(3);
}

static void pause_us(long us)
{
    struct timespec t = {0, us * 1000};
    nanosleep(&t, NULL);
}

/* One of each kind dies with the lock once. */
static bool dies(int who, int round)
{
    return (who == 0 || who == CLASSICS) && round == SHARE / 2;
}

/* A process wrote after its lease had ended, because the machine had paused it:
 * an update lost then proves nothing. */
static atomic_bool *overslept; /* shared */

static void run_classic(int file, int who)
{
    struct classic c = {.c = redisConnectUnix(server.path), .ttl_s = CLASSIC_S};
    for (int round = 0; round < SHARE;) {
        if (!classic_try(&c)) {
            pause_us(3000);
            continue;
        }
        increment(file);
        if (classic_now(&c) >= c.end_s)
            *overslept = true;
        if (!dies(who, round))
            classic_release(&c);
        round++;
        pause_us(300);
    }
    _exit(0);
}

static void run_ours(int file, int who, const char *parameters)
{
    nxl_client *client = new_client(parameters);
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    nxl_lock *lock;
    options.ttl_ms = 2000;
    options.retry_min_ms = 1;
    options.retry_max_ms = 8;
    if (nxl_lock_new(&lock, client, "k", &options) != NXL_OK)
        _exit(5);
    for (int round = 0; round < SHARE;) {
        if (nxl_lock_acquire(lock, NXL_FOREVER) != NXL_OK)
            continue;
        if (nxl_lock_remaining_ms(lock) < 500) { /* too late to write */
            if (nxl_lock_release(lock) < NXL_OK)
                _exit(7);
            continue;
        }
        increment(file);
        if (!nxl_lock_held(lock))
            *overslept = true;
        round++;
        if (dies(who, round)) {
            nxl_client *next = new_client(parameters);
            if (nxl_lock_new(&lock, next, "k", &options) != NXL_OK)
                _exit(5);
        } else if (nxl_lock_release(lock) < NXL_OK) {
            _exit(7);
        }
        pause_us(300);
    }
    _exit(0);
}

/* Races this many processes of each kind. True: no update was lost. */
static bool one_race(int classics, int ours, const char *parameters)
{
    char path[LOCAL_PATH], text[24] = "";
    pid_t pid[CLASSICS + OURS];
    int count = 0;
    local_path(path, server.dir, "number");
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_int_equal(pwrite(file, "0", 1, 0), 1);
    for (int i = 0; i < CLASSICS + OURS; i++) {
        if (i < CLASSICS ? i >= classics : i >= CLASSICS + ours)
            continue;
        pid[count] = test_fork();
        if (pid[count] == 0 && i < CLASSICS)
            run_classic(file, i);
        if (pid[count] == 0)
            run_ours(file, i, parameters);
        count++;
    }
    for (int i = 0; i < count; i++) {
        int status = -1;
        assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
        assert_int_equal(status, 0);
    }
    assert_true(pread(file, text, sizeof(text) - 1, 0) > 0);
    close(file);
    return strtol(text, NULL, 10) == count * SHARE;
}

static void a_race(int classics, int ours, const char *parameters)
{
    overslept = mmap(NULL, sizeof(*overslept), PROT_READ | PROT_WRITE,
        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(overslept != MAP_FAILED);
    for (int i = 0; !one_race(classics, ours, parameters); i++) {
        if (!*overslept || i == RACES)
            fail_msg("an update was lost");
        redis_run(&server, "DEL", "k", NULL);
        *overslept = false;
    }
    munmap(overslept, sizeof(*overslept));
}

static void a_race_of_all(void **state)
{
    a_race(CLASSICS, OURS, STAMPS);
}

/* Here ours take over for max_ttl_ms, and what the loser wrote stays: the more
 * of them find a time past, the more often all wait for the next one. */
static void a_race_without_watch(void **state)
{
    const char *full = getenv("NXLOCK_FULL");
    bool all = full && strcmp(full, "1") == 0;
    redis_run(&server, "ACL", "SETUSER", "default", "-watch", "-multi", NULL);
    a_race(all ? CLASSICS : 1, all ? OURS : 2, STAMPS "&max_ttl_ms=2000");
    redis_run(&server, "ACL", "SETUSER", "default", "+@all", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        live_test(each_excludes_the_other),
        live_test(each_follows_the_other_one_s_death),
        live_test(two_that_take_over),
        live_test(c5_is_faster_than_ours),
        live_test(ours_is_faster_than_c4),
        live_test(c3_was_only_asleep),
        live_test(their_c3_was_only_asleep),
        live_test(clocks_that_differ),
        live_test(a_race_of_all),
        live_test(a_race_without_watch),
    };
    return live_run_long("the published scheme");
}

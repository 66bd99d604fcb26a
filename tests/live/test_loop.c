/* SPDX-License-Identifier: MIT */
/*
 * The event-loop interface as a program uses it that no scene can be
 * (live/scenes/event_loop.scenes): with too little room or no descriptor
 * left, with hundreds of locks, and by the wrong calls.
 */
#include "loop_rig.h"

#include <fcntl.h>
#include <sys/resource.h>

#define MANY 1000

static void any_capacity_will_do(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "name", 5000);
    struct pollfd fds[8];
    int timeout = 77;

    size_t count = nxl_client_pollfds(client, NULL, 0, &timeout);
    assert_between(count, 1, 8);
    assert_int_equal(timeout, -1);
    memset(fds, 0x55, sizeof(fds));
    struct pollfd untouched = fds[0];
    for (size_t room = 0; room <= count; room++) {
        assert_int_equal(nxl_client_pollfds(client, fds, room, NULL), count);
        assert_memory_equal(&fds[room], &untouched, sizeof(untouched));
    }
    assert_result(nxl_lock_acquire_start(lock, 0), NXL_PENDING, lock);
    count = nxl_client_pollfds(client, fds, 0, &timeout);
    assert_true(timeout >= 0);
    assert_true(nxl_client_pollfds(client, fds, count, &timeout) <= 8);
    loop_until(client, 1);
    assert_int_equal(loop.event[0].result, NXL_OK);
    end(lock, client);
}

static void many_locks_in_flight(void **state)
{
    static nxl_lock *lock[MANY];
    static bool seen[MANY];
    nxl_client *client = new_client("");

    memset(seen, 0, sizeof(seen));
    for (size_t i = 0; i < MANY; i++) {
        char name[16];
        snprintf(name, sizeof(name), "many:%zu", i);
        lock[i] = lock_with(client, name, .user = &seen[i]);
        assert_result(nxl_lock_acquire_start(lock[i], 0), NXL_PENDING, lock[i]);
    }
    loop_until(client, MANY);
    for (size_t i = 0; i < MANY; i++) {
        loop_check(&loop.event[i], loop.event[i].lock, NXL_OP_ACQUIRE, NXL_OK);
        bool *mine = loop.event[i].user;
        assert_ptr_equal(loop.event[i].lock, lock[mine - seen]);
        assert_false(*mine);
        *mine = true;
        assert_result(nxl_lock_release_start(lock[mine - seen]), NXL_PENDING,
            lock[mine - seen]);
    }
    assert_int_equal(redis_run(&server, "DBSIZE", NULL), MANY);
    assert_int_equal(redis_clients(&server), 1);
    loop_until(client, 2 * MANY);
    for (size_t i = MANY; i < 2 * MANY; i++)
        loop_check(&loop.event[i], loop.event[i].lock, NXL_OP_RELEASE, NXL_OK);
    assert_int_equal(redis_run(&server, "DBSIZE", NULL), 0);
    for (size_t i = 0; i < MANY; i++)
        nxl_lock_free(lock[i]);
    nxl_client_free(client);
}

static void one_at_a_time(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "name", 5000);

    assert_result(nxl_lock_extend_start(lock, 0), NXL_E_INVALID, lock);
    assert_result(nxl_lock_release_start(lock), NXL_E_INVALID, lock);
    assert_result(nxl_lock_adopt_start(lock, "word"), NXL_E_INVALID, lock);
    assert_result(nxl_lock_acquire_start(lock, 0), NXL_PENDING, lock);
    assert_result(nxl_lock_release_start(lock), NXL_E_INVALID, lock);
    assert_result(nxl_lock_adopt_start(lock, "word"), NXL_E_INVALID, lock);
    assert_result(nxl_lock_acquire_start(lock, 0), NXL_E_INVALID, lock);
    assert_contains(nxl_lock_errmsg(lock), "in progress");
    while (!nxl_lock_held(lock))
        loop_wait(client, 1000);
    /* Granted, and its event is not taken. */
    assert_result(nxl_lock_release_start(lock), NXL_E_INVALID, lock);
    assert_contains(nxl_lock_errmsg(lock), "event");
    assert_event(client, lock, NXL_OP_ACQUIRE, NXL_OK);
    assert_result(nxl_lock_acquire_start(lock, 0), NXL_E_INVALID, lock);
    loop_for(client, 30);
    assert_int_equal(loop.count, 1); /* what was refused has no event */
    end(lock, client);
}

/* --------------------------------------------------------- the wrong door */

static void a_loop_client_does_not_block(void **state)
{
    nxl_holder holder = {
        .size = sizeof(holder), .value = "x", .value_length = 1};
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "name", 5000);

    assert_int_equal(nxl_client_process(client), NXL_OK);
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_INVALID, lock);
    assert_contains(nxl_lock_errmsg(lock), "event-loop API");
    assert_result(nxl_lock_extend(lock, 0), NXL_E_INVALID, lock);
    assert_result(nxl_lock_release(lock), NXL_E_INVALID, lock);
    assert_result(nxl_lock_adopt(lock, "6f1d7c1e-0000-4000-8000-0123456789ab"),
        NXL_E_INVALID, lock);
    assert_result(nxl_lock_inspect(lock, &holder), NXL_E_INVALID, lock);
    assert_result(nxl_lock_break(lock, &holder), NXL_E_INVALID, lock);
    assert_result(nxl_lock_acquire_start(lock, 0), NXL_PENDING, lock);
    assert_event(client, lock, NXL_OP_ACQUIRE, NXL_OK);
    end(lock, client);
}

static void a_blocking_client_does_not_loop(void **state)
{
    nxl_event event;
    struct pollfd fds[4];
    int timeout = 5;
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "name", 5000);

    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_int_equal(nxl_client_pollfds(client, fds, 4, &timeout), 0);
    assert_contains(nxl_client_errmsg(client), "the blocking API");
    assert_int_equal(nxl_client_fd(client), -1);
    assert_int_equal(nxl_client_process(client), NXL_E_INVALID);
    assert_false(nxl_client_next_event(client, &event));
    assert_result(nxl_lock_release_start(lock), NXL_E_INVALID, lock);
    assert_contains(nxl_lock_errmsg(lock), "blocking");
    assert_result(nxl_lock_extend_start(lock, 0), NXL_E_INVALID, lock);
    assert_true(nxl_lock_held(lock));
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    end(lock, client);
}

/* All have the replies to what they sent when they joined the line: only the
 * first in line looks every now and then. */
static void loop_until_only_the_first_asks(nxl_client *client)
{
    long before;
    do {
        before = redis_calls(&server, "evalsha");
        loop_for(client, 100);
    } while (redis_calls(&server, "evalsha") > before + 3);
}

/* A script grants the lock to 128 of them; then only the one that is next asks,
 * although all of them listen to the same channel. */
static void readers_behind_a_writer_do_not_all_ask(void **state)
{
    enum { READERS = 300, SCRIPTS_OF_READERS = 3 };
    static nxl_lock *reader[READERS];
    nxl_client *other = new_client(""), *client = new_client("");
    nxl_lock *writer = new_lock(other, "k", 30000);

    (void)state;
    assert_result(nxl_lock_acquire(writer, 0), NXL_OK, writer);
    int64_t began = test_now_ms();
    for (int i = 0; i < READERS; i++) {
        reader[i] = lock_with(client, "k", .ttl_ms = 30000, .shared = 1);
        assert_result(nxl_lock_acquire_start(reader[i], NXL_FOREVER),
            NXL_PENDING, reader[i]);
    }
    loop_until_true(
        client, redis_run(&server, "ZCARD", "{k}:nxl-l", NULL) == READERS &&
                    server_number(&server, "stats", "pubsub_channels") == 1);
    loop_until_only_the_first_asks(client);
    long asked = redis_calls(&server, "evalsha");
    assert_result(nxl_lock_release(writer), NXL_OK, writer);
    loop_until(client, READERS);
    asked = redis_calls(&server, "evalsha") - asked;
    for (int i = 0; i < READERS; i++)
        assert_true(nxl_lock_held(reader[i]));
    /* A waiter shows every 3 s that it is alive, which takes a script too. */
    if (test_now_ms() - began < 3000)
        assert_between(asked, SCRIPTS_OF_READERS, 60);
    end(writer, other);
    for (int i = 0; i < READERS; i++)
        nxl_lock_free(reader[i]);
    nxl_client_free(client);
}

static bool is_readable(int fd)
{
    struct pollfd waiting = {fd, POLLIN, 0};
    return poll(&waiting, 1, 0) == 1;
}

/* ----------------------------------------------------- the one descriptor */

static void it_stays_readable_while_events_wait(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock[3];
    nxl_event event;
    int fd = nxl_client_fd(client);

    for (int i = 0; i < 3; i++) {
        char name[2] = {(char)('a' + i), '\0'};
        lock[i] = new_lock(client, name, 5000);
        assert_result(nxl_lock_acquire_start(lock[i], 0), NXL_PENDING, lock[i]);
    }
    for (int i = 0; i < 3; i++)
        loop_until_true(client, nxl_lock_held(lock[i]));
    for (int i = 0; i < 3; i++) {
        /* A loop that takes one event a turn. */
        struct pollfd waiting = {fd, POLLIN, 0};
        assert_int_equal(poll(&waiting, 1, 5000), 1);
        assert_int_equal(nxl_client_process(client), NXL_OK);
        assert_true(nxl_client_next_event(client, &event));
    }
    assert_false(nxl_client_next_event(client, &event));
    assert_int_equal(nxl_client_fd(client), fd); /* for life */
    /* One turn too many is fine. */
    assert_int_equal(nxl_client_process(client), NXL_OK);
    assert_false(is_readable(fd));
    for (int i = 0; i < 3; i++)
        nxl_lock_free(lock[i]);
    nxl_client_free(client);
}

static void no_descriptor_left(void **state)
{
    int taken[64], count = 0, fd;
    struct rlimit before, few;
    nxl_client *client = new_client("");

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = 64;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    while (count < 64 && (fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        taken[count++] = fd;
    int refused = nxl_client_fd(client);
    while (count > 0)
        close(taken[--count]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(refused, -1);
    assert_contains(nxl_client_errmsg(client), "descriptor");
    assert_true(nxl_client_fd(client) >= 0);
    nxl_client_free(client);
}

/* -------------------------------------------------------------- spuriously */

static void process_may_come_at_any_time(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "name", 5000);

    for (int i = 0; i < 100; i++)
        assert_int_equal(nxl_client_process(client), NXL_OK);
    stranger_sets("name", "somebody", 200);
    assert_result(nxl_lock_acquire_start(lock, 5000), NXL_PENDING, lock);
    int64_t end_ms = test_now_ms() + 5000;
    while (loop.count == 0 && test_now_ms() < end_ms) {
        assert_int_equal(nxl_client_process(client), NXL_OK);
        loop_take(client);
    }
    assert_int_equal(loop.count, 1);
    loop_check(&loop.event[0], lock, NXL_OP_ACQUIRE, NXL_OK);
    for (int i = 0; i < 100; i++)
        assert_int_equal(nxl_client_process(client), NXL_OK);
    assert_true(nxl_lock_held(lock));
    /* It has asked as often as its delays say, not as often as it could. */
    assert_between(redis_calls(&server, "set"), 3, 30);
    end(lock, client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        loop_test_poll(any_capacity_will_do),
        loop_test(many_locks_in_flight),
        loop_test(one_at_a_time),
        loop_test_poll(a_loop_client_does_not_block),
        loop_test_poll(a_blocking_client_does_not_loop),
        loop_test_poll(readers_behind_a_writer_do_not_all_ask),
        loop_test_fd(it_stays_readable_while_events_wait),
        loop_test_fd(no_descriptor_left),
        loop_test_fd(process_may_come_at_any_time),
    };
    return live_run("loop");
}

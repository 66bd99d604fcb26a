/* SPDX-License-Identifier: MIT */
/*
 * A loop that comes when it is called for and not otherwise: whatever there is
 * to do makes the descriptor readable, or the time-out short, and nothing else
 * does. Handles are freed and servers lost in the midst of it.
 */
#include "loop_rig.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include "support/proxy.h"

/* Turns that a loop with something to wait for may take in a second. */
#define TURNS_MAX 300

static nxl_client *client_of(const struct proxy *p, const char *parameters)
{
    char url[512];
    snprintf(url, sizeof(url), "%s?%s", proxy_url(p), parameters);
    return client_at(url);
}

static void acquire(nxl_client *client, nxl_lock *lock)
{
    assert_result(nxl_lock_acquire_start(lock, 1000), NXL_PENDING, lock);
    assert_event(client, lock, NXL_OP_ACQUIRE, NXL_OK);
}

static bool is_readable(int fd)
{
    struct pollfd waiting = {fd, POLLIN, 0};
    return poll(&waiting, 1, 0) == 1;
}

/* ----------------------------------------------------- the one descriptor */

static void in_a_loop_of_the_programs_own(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "name", 5000);
    struct epoll_event event = {.events = EPOLLIN};
    int set = epoll_create1(EPOLL_CLOEXEC), fd = nxl_client_fd(client);

    assert_true(fd >= 0);
    assert_int_equal(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event), 0);
    assert_int_equal(epoll_wait(set, &event, 1, 20), 0);
    for (int i = 0; i < 20; i++) {
        nxl_event done;
        assert_result(i % 2 ? nxl_lock_release_start(lock)
                            : nxl_lock_acquire_start(lock, 0),
            NXL_PENDING, lock);
        assert_int_equal(nxl_client_fd(client), fd); /* for life */
        do {
            assert_int_equal(epoll_wait(set, &event, 1, 5000), 1);
            assert_int_equal(nxl_client_process(client), NXL_OK);
        } while (!nxl_client_next_event(client, &done));
        assert_int_equal(done.result, NXL_OK);
    }
    /* One turn too many is fine, calling for ever is not. */
    assert_int_equal(nxl_client_process(client), NXL_OK);
    assert_int_equal(epoll_wait(set, &event, 1, 50), 0);
    close(set);
    end(lock, client);
}

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

/* ---------------------------------------------------------- no busy loop */

static void idle_takes_no_turns(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "name", 5000);
    acquire(client, lock);
    loop_for(client, 20);
    loop.turns = 0;
    loop_for(client, 500);
    assert_between(loop.turns, 0, 2);
    end(lock, client);
}

static void a_busy_lock_takes_few_turns(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "name", 5000);
    stranger_sets("name", "somebody", 0);
    assert_result(nxl_lock_acquire_start(lock, NXL_FOREVER), NXL_PENDING, lock);
    loop_for(client, 1000);
    assert_between(loop.turns, 4, TURNS_MAX);
    assert_int_equal(loop.count, 0);
    end(lock, client);
}

static void a_dead_server_takes_few_turns(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "name", 5000);
    nxl_lock *held = new_lock(client, "held", 5000);
    acquire(client, held);
    redis_kill(&server);
    assert_result(nxl_lock_acquire_start(lock, NXL_FOREVER), NXL_PENDING, lock);
    loop.turns = 0;
    loop_for(client, 1000);
    assert_between(loop.turns, 2, TURNS_MAX);
    assert_int_equal(loop.count, 1);
    redis_restart(&server);
    assert_event(client, lock, NXL_OP_ACQUIRE, NXL_OK);
    nxl_lock_free(held);
    end(lock, client);
}

/* What is owed to a dead server ends with its ttl; then there is nothing to
 * come for. */
static void a_debt_takes_few_turns(void **state)
{
    nxl_client *client = new_client("max_ttl_ms=300");
    nxl_lock *lock = new_lock(client, "name", 300);
    acquire(client, lock);
    redis_kill(&server);
    nxl_lock_free(lock);
    loop.turns = 0;
    loop_for(client, 1300);
    assert_between(loop.turns, 1, TURNS_MAX);
    loop.turns = 0;
    loop_for(client, 300);
    assert_between(loop.turns, 0, 2);
    redis_restart(&server);
    int64_t began = test_now_ms();
    nxl_client_free(client);
    assert_between(test_now_ms() - began, 0, LATE_MS); /* it owes nothing */
}

/* ------------------------------------------------------------------ freeing */

static void freed_with_an_operation_in_progress(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *held = new_lock(client, "held", 5000);
    acquire(client, held); /* so that the next one goes out at once */

    nxl_lock *lock = new_lock(client, "name", 5000);
    assert_result(nxl_lock_acquire_start(lock, 0), NXL_PENDING, lock);
    nxl_lock_free(lock); /* not sent */

    redis_freeze(&server);
    lock = new_lock(client, "name", 5000);
    assert_result(nxl_lock_acquire_start(lock, 0), NXL_PENDING, lock);
    loop_wait(client, 0);
    loop_wait(client, 0);
    nxl_lock_free(lock); /* sent, not answered */
    redis_thaw(&server);

    lock = new_lock(client, "waits", 5000);
    stranger_sets("waits", "somebody", 0);
    assert_result(nxl_lock_acquire_start(lock, 5000), NXL_PENDING, lock);
    loop_until_true(client, redis_calls(&server, "pttl") > 0);
    nxl_lock_free(lock); /* between two attempts */

    assert_result(nxl_lock_release_start(held), NXL_PENDING, held);
    nxl_lock_free(held); /* a release that is not sent */
    loop_until_true(client, !redis_exists(&server, "held"));
    loop_until_true(client, !redis_exists(&server, "name"));
    loop_for(client, 50);
    assert_int_equal(loop.count, 1); /* the first one's only */
    nxl_client_free(client);
    assert_value("waits", "somebody");
    assert_int_equal(redis_run(&server, "DBSIZE", NULL), 1);
}

static void freed_with_its_event_untaken(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "name", 5000);
    assert_result(nxl_lock_acquire_start(lock, 0), NXL_PENDING, lock);
    loop_until_true(client, nxl_lock_held(lock));
    nxl_lock_free(lock);
    loop_take(client);
    assert_int_equal(loop.count, 0);
    loop_until_true(client, !redis_exists(&server, "name"));
    loop_for(client, 30);
    assert_int_equal(loop.count, 0);
    nxl_client_free(client);
}

static void the_client_freed_first(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *held = new_lock(client, "held", 5000);
    nxl_lock *running = new_lock(client, "name", 5000);
    acquire(client, held);
    assert_result(nxl_lock_acquire_start(running, 0), NXL_PENDING, running);
    nxl_client_free(client);
    assert_int_equal(redis_run(&server, "DBSIZE", NULL), 0);
    assert_false(nxl_lock_held(held));
    assert_result(nxl_lock_acquire_start(held, 0), NXL_E_INVALID, held);
    assert_contains(nxl_lock_errmsg(held), "freed");
    assert_int_equal(nxl_lock_cancel(running), NXL_E_INVALID);
    nxl_lock_free(running);
    nxl_lock_free(held);
}

/* A lock is freed while its server cannot be reached. Its key is removed as
 * soon as it can, for the loop is called for it. */
static void freed_while_there_is_no_connection(void **state)
{
    struct proxy *p = proxy_to(&server, false);
    nxl_client *client = client_of(p, "");
    nxl_lock *lock = new_lock(client, "name", 30000);
    acquire(client, lock);
    proxy_refuse(p, true);
    proxy_cut(p, false);
    loop_for(client, 100); /* it has seen the end of the connection */
    assert_true(nxl_lock_held(lock));
    nxl_lock_free(lock);
    loop_for(client, 50);
    assert_true(redis_exists(&server, "name"));
    proxy_refuse(p, false);
    loop_until_true(client, !redis_exists(&server, "name"));
    nxl_client_free(client);
    proxy_stop(p);
}

/* --------------------------------------------------------- server restarts */

static void the_server_restarts_while_looping(void **state)
{
    nxl_client *client = new_client("timeout_ms=500");
    nxl_lock *lock = new_lock(client, "name", 5000);
    nxl_lock *waits = new_lock(client, "waits", 5000);

    for (int i = 0; i < 3; i++) {
        acquire(client, lock);
        stranger_sets("waits", "somebody", 0);
        assert_result(
            nxl_lock_acquire_start(waits, NXL_FOREVER), NXL_PENDING, waits);
        loop_for(client, 30);
        redis_kill(&server);
        int64_t began = test_now_ms();
        assert_result(nxl_lock_release_start(lock), NXL_PENDING, lock);
        loop_until(client, loop.count + 1);
        int rc = loop.event[loop.count - 1].result;
        assert_true(rc == NXL_E_UNREACHABLE || rc == NXL_UNKNOWN);
        assert_between(test_now_ms() - began, 0, 500 + LATE_MS);
        redis_restart(&server); /* and it has forgotten everything */
        assert_event(client, waits, NXL_OP_ACQUIRE, NXL_OK);
        assert_result(nxl_lock_release_start(waits), NXL_PENDING, waits);
        assert_event(client, waits, NXL_OP_RELEASE, NXL_OK);
    }
    nxl_lock_free(waits);
    end(lock, client);
    assert_int_equal(redis_run(&server, "DBSIZE", NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        loop_test_fd(in_a_loop_of_the_programs_own),
        loop_test_fd(it_stays_readable_while_events_wait),
        loop_test_fd(no_descriptor_left),
        loop_test_fd(process_may_come_at_any_time),
        loop_test(idle_takes_no_turns),
        loop_test(a_busy_lock_takes_few_turns),
        loop_test(a_dead_server_takes_few_turns),
        loop_test(a_debt_takes_few_turns),
        loop_test(freed_with_an_operation_in_progress),
        loop_test(freed_with_its_event_untaken),
        loop_test(the_client_freed_first),
        loop_test(freed_while_there_is_no_connection),
        loop_test(the_server_restarts_while_looping),
    };
    return live_run("loop_fd");
}

/* SPDX-License-Identifier: MIT */
/*
 * Traps of TLS that other clients fell into, each on a real server: data left
 * inside OpenSSL, session tickets and new keys taken for a reply, names for
 * addresses, a child that ends its parent's session. Each test was seen to fail
 * with its trap built into src/net/tls.
 */
#include "api/private.h"
#include "live/tls_front.h"

#include <openssl/err.h>

#include "live/fork_rig.h"
#include "live/loop_rig.h"
#include "live/renew_rig.h"

/* A connection that was used this long ago is looked at before it is used. */
#define LOOKED_AT_MS 3
#define SMALL_RECORDS 512
#define LARGE_RECORDS 16384

static void cycle(nxl_lock *lock)
{
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
}

/* ------------------------------------------------------ data left in OpenSSL
 */

/* INFO becomes longer than 40 KB: it has a line for each database. */
static void fill_databases(struct redis *r)
{
    char number[8];
    for (int i = 0; i < 1200; i++) {
        snprintf(number, sizeof(number), "%d", i);
        redis_run(r, "SELECT", number, NULL);
        redis_run(r, "SET", "k", "v", NULL);
    }
    redis_run(r, "SELECT", "0", NULL);
}

static void expect_long_info(nxl_client *client, size_t least)
{
    static const char *const info[] = {"INFO"};
    struct answer *answer;
    size_t len;
    int64_t began = test_now_ms();
    int rc = client_ask(client, 0, 1, info, NULL, &answer);
    live_assert_result(
        rc, NXL_OK, nxl_client_errmsg(client), __FILE__, __LINE__);
    assert_between(test_now_ms() - began, 0, 2 * LATE_MS);
    assert_non_null(answer_item(answer, 0, &len));
    assert_true(len >= least);
    answer_free(answer);
}

/* The handshake asks for INFO, too, because of guard_restarts. */
static void long_replies(void **state)
{
    struct redis r;
    struct redis first = server;
    assert_int_equal(
        redis_start_tls(&r, &(struct redis_tls){.certificate = NULL},
            "--databases", "1200", NULL),
        0);
    fill_databases(&r);
    server = r; /* whose certificates, and which the front is for */
    for (int i = 0; i < 3; i++) {
        struct front front;
        nxl_client *client;
        front_start(&front, i == 1 ? SMALL_RECORDS : LARGE_RECORDS);
        client = i == 0 ? tls_client(TRUST) : front_client(&front, TRUST);
        nxl_lock *lock = new_lock(client, "job", 30000);
        for (int j = 0; j < 3; j++) {
            expect_long_info(client, 40000);
            cycle(lock);
        }
        assert_int_equal(stats_of(client).connections, 1);
        end(lock, client);
        front_stop(&front);
    }
    r = server; /* its own connection may be another by now */
    server = first;
    redis_stop(&r);
}

#define FLIGHT 200

/* All are answered as fast as they come, though poll() shows only the first. */
static void many_replies_in_a_flight(void **state)
{
    struct front front;
    nxl_lock *locks[FLIGHT];
    front_start(&front, SMALL_RECORDS);
    nxl_client *client = front_client(&front, TRUST);
    loop_reset(false);
    for (int i = 0; i < FLIGHT; i++) {
        char name[16];
        snprintf(name, sizeof(name), "job:%d", i);
        locks[i] = new_lock(client, name, 30000);
    }
    for (int round = 0; round < 3; round++) {
        int64_t began = test_now_ms();
        loop.count = 0;
        for (int i = 0; i < FLIGHT; i++)
            assert_int_equal(nxl_lock_acquire_start(locks[i], 0), NXL_PENDING);
        loop_until(client, FLIGHT);
        for (int i = 0; i < FLIGHT; i++)
            assert_true(nxl_lock_held(locks[i]));
        for (int i = 0; i < FLIGHT; i++)
            assert_int_equal(nxl_lock_release_start(locks[i]), NXL_PENDING);
        loop_until(client, 2 * FLIGHT);
        assert_between(test_now_ms() - began, 0, 2 * LATE_MS);
    }
    for (int i = 0; i < FLIGHT; i++)
        nxl_lock_free(locks[i]);
    assert_int_equal(stats_of(client).connections, 1);
    nxl_client_free(client);
    front_stop(&front);
}

/* -------------------------------------------------- what is no reply at all */

/* Two session tickets follow each handshake of redis-server. */
static void idle_after_connecting(void **state)
{
    nxl_client *client = tls_client(TRUST);
    nxl_lock *lock = new_lock(client, "job", 30000);
    for (int i = 0; i < 5; i++) {
        cycle(lock);
        test_pause_ms(i < 4 ? LOOKED_AT_MS : 50);
    }
    cycle(lock);
    assert_int_equal(stats_of(client).connections, 1);
    end(lock, client);
}

static void new_keys_while_idle(void **state)
{
    struct front front;
    front_start(&front, LARGE_RECORDS);
    nxl_client *client = front_client(&front, TRUST);
    nxl_lock *lock = new_lock(client, "job", 30000);
    cycle(lock);
    for (int i = 0; i < 20; i++) {
        front_order(&front, i % 2 ? FRONT_TICKETS : FRONT_NEW_KEYS);
        test_pause_ms(LOOKED_AT_MS);
        /* The program's own error is none of the connection's. */
        ERR_raise(ERR_LIB_USER, ERR_R_INTERNAL_ERROR);
        cycle(lock);
    }
    ERR_clear_error();
    assert_int_equal(stats_of(client).connections, 1);
    end(lock, client);
    front_stop(&front);
}

/* Nor does an event loop turn for ever because of them. */
static void new_keys_in_a_loop(void **state)
{
    struct front front;
    front_start(&front, LARGE_RECORDS);
    nxl_client *client = front_client(&front, TRUST);
    nxl_lock *lock = new_lock(client, "job", 30000);
    loop_reset(true);
    assert_int_equal(nxl_lock_acquire_start(lock, 0), NXL_PENDING);
    assert_event(client, lock, NXL_OP_ACQUIRE, NXL_OK);
    for (int i = 0; i < 6; i++) {
        front_order(&front, i % 2 ? FRONT_TICKETS : FRONT_NEW_KEYS);
        loop.turns = 0;
        loop_for(client, 20);
        assert_between(loop.turns, 1, 4);
        assert_int_equal(nxl_lock_extend_start(lock, 0), NXL_PENDING);
        assert_event(client, lock, NXL_OP_EXTEND, NXL_OK);
    }
    assert_int_equal(nxl_lock_release_start(lock), NXL_PENDING);
    assert_event(client, lock, NXL_OP_RELEASE, NXL_OK);
    assert_int_equal(stats_of(client).connections, 1);
    end(lock, client);
    front_stop(&front);
}

/* An unsolicited reply is still found, and never taken for the next one. */
static void an_unsolicited_reply(void **state)
{
    struct front front;
    front_start(&front, LARGE_RECORDS);
    nxl_client *client = front_client(&front, TRUST);
    nxl_lock *lock = new_lock(client, "job", 30000);
    nxl_lock *other = new_lock(client, "job", 30000);
    assert_result(nxl_lock_acquire(other, 0), NXL_OK, other);
    front_order(&front, FRONT_UNASKED);
    test_pause_ms(LOOKED_AT_MS);
    assert_result(nxl_lock_acquire(lock, 0), NXL_BUSY, lock);
    assert_int_equal(stats_of(client).connections, 2);
    assert_result(nxl_lock_release(other), NXL_OK, other);
    nxl_lock_free(other);
    end(lock, client);
    front_stop(&front);
}

/* ------------------------------------------------------- a connection's end */

/* The end is found before a command is sent into it. */
static void ended_while_idle(void **state)
{
    static const enum front_order orders[] = {
        FRONT_GOODBYE, FRONT_CLOSE, FRONT_RESET};
    struct front front;
    front_start(&front, LARGE_RECORDS);
    for (size_t i = 0; i < 3; i++) {
        nxl_client *client = front_client(&front, TRUST);
        nxl_lock *lock = new_lock(client, "job", 30000);
        for (uint64_t n = 1; n <= 3; n++) {
            cycle(lock);
            assert_int_equal(stats_of(client).connections, n);
            front_order(&front, orders[i]);
            test_pause_ms(LOOKED_AT_MS);
        }
        end(lock, client);
        assert_eventually(front.shared->open == 0);
    }
    front_stop(&front);
}

/* In the midst of a command: it is a lost connection like any other, which a
 * wait outlasts. */
static void garbage_under_a_command(void **state)
{
    static struct waiter waiter;
    struct front front;
    front_start(&front, LARGE_RECORDS);
    nxl_client *client = front_client(&front, TRUST);
    nxl_lock *lock = new_lock(client, "job", 30000);
    cycle(lock);
    for (int i = 0; i < 2; i++) {
        redis_freeze(&server);
        uint64_t attempts = stats_of(client).attempts;
        waiter_start(&waiter, lock, i ? 20000 : 0);
        assert_eventually(stats_of(client).attempts > attempts);
        front_order(&front, FRONT_GARBAGE);
        redis_thaw(&server);
        int rc = waiter_join(&waiter);
        if (i == 0)
            assert_result(rc, NXL_UNKNOWN, lock);
        else
            assert_result(rc, NXL_OK, lock);
        assert_null(strstr(nxl_lock_errmsg(lock), "write redis://"));
    }
    end(lock, client);
    front_stop(&front);
}

/* The server sees the end of a client at once, and in order. */
static void a_goodbye(void **state)
{
    struct front front;
    front_start(&front, LARGE_RECORDS);
    for (int i = 1; i <= 3; i++) {
        nxl_client *client = front_client(&front, TRUST);
        nxl_lock *lock = new_lock(client, "job", 30000);
        cycle(lock);
        assert_int_equal(redis_clients(&server), 1);
        end(lock, client);
        assert_eventually(redis_clients(&server) == 0);
        assert_eventually(front.shared->goodbyes == i);
    }
    front_stop(&front);
}

/* ------------------------------------------------------------------ SIGPIPE */

/* The peer hangs up in the midst of the handshake. */
static void hung_up_on(int listener, uint16_t port, bool reset)
{
    char url[TLS_URL], hello[2048];
    tls_url(url, "127.0.0.1", port, TRUST "&timeout_ms=200");
    nxl_client *client = client_at(url);
    nxl_lock *lock = new_lock(client, "job", 300);
    loop_reset(false);
    expect(nxl_lock_acquire_start(lock, 0) == NXL_PENDING);
    loop_wait(client, 0); /* it connects */
    int fd = accept(listener, NULL, NULL);
    while (recv(fd, hello, sizeof(hello), MSG_DONTWAIT) <= 0)
        loop_wait(client, 10);
    expect(local_send(fd, "\x16\x03\x03\x00\x01\x63", 6));
    if (reset)
        local_make_reset(fd);
    close(fd);
    loop_until(client, 1);
    expect(loop.event[0].result == NXL_E_UNREACHABLE);
    end(lock, client);
}

static void ended_under(struct front *front, enum front_order order, int ms)
{
    nxl_client *client = front_client(front, TRUST);
    nxl_lock *lock = new_lock(client, "job", 300);
    loop_reset(false);
    expect(nxl_lock_acquire_start(lock, 0) == NXL_PENDING);
    loop_until(client, 1);
    front_order(front, order);
    test_pause_ms(ms);
    (void)!nxl_lock_release_start(lock);
    loop_until(client, 2);
    end(lock, client);
}

/* In a child with the default of SIGPIPE, which kills. */
static void write_into_closed_connections(void *argument)
{
    uint16_t port = 0;
    int listener = local_listen_tcp(&port);
    signal(SIGPIPE, SIG_DFL);
    for (int i = 0; i < 4; i++) {
        hung_up_on(listener, port, i % 2);
        ended_under(argument, FRONT_CLOSE, i);
        ended_under(argument, FRONT_RESET, i);
    }
}

static void no_sigpipe(void **state)
{
    struct front front;
    front_start(&front, LARGE_RECORDS);
    run_child(write_into_closed_connections, &front);
    front_stop(&front);
    assert_eventually(!redis_exists(&server, "job"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        tls_test(long_replies),
        tls_test(many_replies_in_a_flight),
        tls_test(idle_after_connecting),
        tls_test(new_keys_while_idle),
        tls_test(new_keys_in_a_loop),
        tls_test(an_unsolicited_reply),
        tls_test(ended_while_idle),
        tls_test(garbage_under_a_command),
        tls_test(a_goodbye),
        tls_test(no_sigpipe),
    };
    return tls_run("TLS hazards");
}

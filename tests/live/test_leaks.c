/* SPDX-License-Identifier: MIT */
/*
 * Handles made, used and freed again and again, with every kind of trouble in
 * between: neither a descriptor nor memory stays. Also run under valgrind,
 * with fewer cycles.
 */
#include "leaks_rig.h"
#include "loop_rig.h"

#include "support/proxy.h"

/* ---------------------------------------------------------- all is well */

static void healthy(unsigned n)
{
    nxl_holder holder = {.size = sizeof holder};
    nxl_client *client = new_client("prefix=p:");
    nxl_lock *lock = labelled(client, "name"),
             *other = labelled(client, "name");

    if (n % 4)
        assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    if (n % 4 == 2) {
        assert_result(nxl_lock_acquire(other, 0), NXL_BUSY, other);
        assert_result(nxl_lock_inspect(other, &holder), NXL_OK, other);
        assert_result(nxl_lock_extend(lock, 50000), NXL_OK, lock);
    }
    if (n % 4 == 3)
        assert_result(nxl_lock_release(lock), NXL_OK, lock);
    nxl_lock_free(lock); /* held or not, used or not */
    nxl_lock_free(other);
    nxl_client_free(client);
}

static void while_all_is_well(void **state)
{
    (void)state;
    assert_steady(slow() ? 460 : 1000, healthy); /* and over both transports */
    assert_int_equal(redis_run(&server, "DBSIZE", NULL), 0);
}

static void looping(unsigned n)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = labelled(client, "name");

    memset(&loop, 0, sizeof loop);
    loop.by_fd = n % 2;
    assert_result(nxl_lock_acquire_start(lock, 0), NXL_PENDING, lock);
    if (n % 5 == 1)
        loop_until_true(client, nxl_lock_held(lock)); /* its event stays */
    if (n % 5 == 2)
        assert_event(client, lock, NXL_OP_ACQUIRE, NXL_OK);
    if (n % 5 == 3)
        assert_int_equal(nxl_lock_cancel(lock), NXL_OK);
    if (n % 5 == 4)
        loop_wait(client, 0);
    if (n % 10 < 5)
        nxl_lock_free(lock);
    nxl_client_free(client);
    if (n % 10 >= 5)
        nxl_lock_free(lock);
}

static void while_looping(void **state)
{
    (void)state;
    assert_steady(slow() ? 40 : 200, looping);
    assert_int_equal(redis_run(&server, "DBSIZE", NULL), 0);
}

/* ------------------------------------------------------------ it goes wrong */

static void nowhere(unsigned n)
{
    static const char *const urls[] = {"redis://127.0.0.1:%u?timeout_ms=50",
        "redis://localhost:%u?timeout_ms=50", "unix:///nowhere/%u.sock"};
    char url[64];
    uint16_t port = 0;
    int listener = local_listen_tcp(&port);
    close(listener); /* nobody listens there any more */
    snprintf(url, sizeof url, urls[n % 3], port);
    nxl_client *client = client_at(url);
    nxl_lock *lock = labelled(client, "name");
    assert_result(nxl_lock_acquire(lock, 30), NXL_E_UNREACHABLE, lock);
    end(lock, client);
}

static void at_an_unreachable_port(void **state)
{
    (void)state;
    assert_steady(slow() ? 20 : 60, nowhere);
}

static void not_let_in(unsigned n)
{
    nxl_client *client = new_client("password=wrong");
    nxl_lock *lock = labelled(client, "name");
    for (unsigned i = 0; i <= n % 2; i++)
        assert_result(nxl_lock_acquire(lock, 0), NXL_E_DENIED, lock);
    end(lock, client);
}

static void with_a_wrong_password(void **state)
{
    (void)state;
    redis_run(&server, "CONFIG", "SET", "requirepass", "right", NULL);
    assert_steady(slow() ? 30 : 200, not_let_in);
    redis_run(&server, "CONFIG", "SET", "requirepass", "", NULL);
}

static void wrong_urls(unsigned n)
{
    static const char *const urls[] = {"", "http://a", "redis://a:99999",
        "redis://:p%zz@a", "redis://u@a", "unix://", "redis://a?what=1",
        "redis://user:secret@a/1?timeout_ms=5&prefix=x"};
    char why[200];
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    nxl_client *client;
    options.errbuf = why;
    options.errbuf_size = sizeof why;
    assert_true(nxl_client_new(&client, urls[n % 8], &options) < 0);
    assert_null(client);
    assert_true(why[0] != '\0');
}

static void with_a_wrong_url(void **state)
{
    (void)state;
    assert_steady(slow() ? 40 : 400, wrong_urls);
}

static void killed(unsigned n)
{
    nxl_client *client = new_client("timeout_ms=100");
    nxl_lock *lock = labelled(client, "name"), *waits = labelled(client, "w");
    assert_result(nxl_lock_acquire(lock, 5000), NXL_OK, lock);
    redis_kill(&server);
    if (n % 3)
        assert_true(nxl_lock_release(lock) != NXL_OK);
    if (n % 3 == 2)
        assert_true(nxl_lock_acquire(waits, 30) < 0);
    redis_restart(&server);
    if (n % 2)
        assert_result(nxl_lock_acquire(waits, 2000), NXL_OK, waits);
    nxl_lock_free(waits);
    end(lock, client);
}

static void with_a_server_that_restarts(void **state)
{
    (void)state;
    assert_steady(slow() ? 3 : 12, killed);
}

static void frozen(unsigned n)
{
    nxl_client *client = new_client("timeout_ms=20");
    nxl_lock *lock = labelled(client, "name"), *other = labelled(client, "o");
    if (n % 2)
        assert_result(nxl_lock_acquire(other, 5000), NXL_OK, other);
    redis_freeze(&server);
    int rc = nxl_lock_acquire(lock, 0);
    assert_true(rc == NXL_UNKNOWN || rc == NXL_E_UNREACHABLE);
    if (n % 2)
        assert_result(nxl_lock_release(other), NXL_UNKNOWN, other);
    if (n % 4 < 2) /* freed with all of it open, or answered at last */
        redis_thaw(&server);
    nxl_lock_free(lock);
    nxl_lock_free(other);
    nxl_client_free(client);
    redis_thaw(&server);
}

static void with_a_frozen_server(void **state)
{
    (void)state;
    assert_steady(slow() ? 6 : 40, frozen);
    assert_int_equal(redis_run(&server, "DBSIZE", NULL), 0);
}

/* One client and one lock through it all. */
static struct {
    struct proxy *proxy;
    nxl_client *client;
    nxl_lock *lock;
} kept;

static void cut(unsigned n)
{
    /* No number of bytes divides the commands' lengths. */
    proxy_cut_after(
        kept.proxy, n % 2 ? PROXY_UP : PROXY_DOWN, 1 + 37 * n % 997);
    int rc = nxl_lock_acquire(kept.lock, 0);
    if (rc == NXL_OK)
        rc = nxl_lock_release(kept.lock);
    assert_true(rc == NXL_OK || rc == NXL_UNKNOWN || rc == NXL_BUSY ||
                rc == NXL_LOST || rc == NXL_E_UNREACHABLE);
    proxy_cut(kept.proxy, n % 3);
    /* Nobody knows when the last one's end has come through. */
    assert_result(nxl_lock_acquire(kept.lock, 5000), NXL_OK, kept.lock);
    assert_result(nxl_lock_release(kept.lock), NXL_OK, kept.lock);
    assert_eventually(proxy_connections(kept.proxy) == 1);
}

static void with_connections_that_are_cut(void **state)
{
    (void)state;
    kept.proxy = proxy_start(server.path, 0);
    kept.client = client_at(proxy_tcp_url(kept.proxy));
    kept.lock = labelled(kept.client, "name");
    assert_steady(slow() ? 20 : 150, cut);
    end(kept.lock, kept.client);
    proxy_stop(kept.proxy);
    assert_int_equal(redis_run(&server, "DBSIZE", NULL), 0);
}

int main(int argc, char **argv)
{
    (void)argc;
    count_exactly(argv);
    const struct CMUnitTest tests[] = {
        live_test(while_all_is_well),
        live_test(while_looping),
        live_test(at_an_unreachable_port),
        live_test(with_a_wrong_password),
        live_test(with_a_wrong_url),
        live_test(with_a_server_that_restarts),
        live_test(with_a_frozen_server),
        live_test(with_connections_that_are_cut),
    };
    return live_run("leaks");
}

/* SPDX-License-Identifier: MIT */
/*
 * Handles of one server and of three made, used and freed again and again,
 * with every kind of trouble in between: neither a descriptor nor memory
 * stays, nor a key. Also run under valgrind, with fewer cycles.
 */
#define QUORUM_MAX 3
#include "live/quorum_rig.h"

#include "live/leaks_rig.h"
#include "live/loop_rig.h"

#define HASTY NO_GUARD "&timeout_ms=100"

static bool all_free(void)
{
    long long keys = 0;
    for (size_t i = 0; i < on.servers; i++)
        keys += redis_run(&servers[i], "DBSIZE", NULL);
    return keys == 0;
}

/* A connection over TLS takes valgrind long: fewer of them, but each kind. */
static unsigned at_least(unsigned watched)
{
    return live_tls() && watched > 10 ? watched / 4 + 8 : watched;
}

/* Runs so many cycles on one server, on three, or under valgrind. */
static void stays_free(
    unsigned one, unsigned three, unsigned watched, void (*cycle)(unsigned))
{
    assert_steady(slow()           ? at_least(watched)
                  : on.servers > 1 ? three
                                   : one,
        cycle);
    assert_eventually(all_free());
}

static struct pair {
    nxl_client *client;
    nxl_lock *lock, *other;
} pair_of(nxl_client *client, const char *other)
{
    return (struct pair){
        client, labelled(client, "name"), labelled(client, other)};
}

static void end_pair(struct pair p)
{
    nxl_lock_free(p.lock); /* held or not, used or not */
    nxl_lock_free(p.other);
    nxl_client_free(p.client);
}

/* ---------------------------------------------------------- all is well */

static void healthy(unsigned n)
{
    nxl_holder holder = NXL_HOLDER_INIT;
    nxl_client *client = client_on(NO_GUARD "&prefix=p:");
    bool several_hold = on.servers == 1 && n % 8 <= 3 && n % 3 == 0;
    nxl_lock *lock =
        lock_with(client, "name", .label = "host:1234:job", .fence = n % 8 > 3,
            .renew = n % 16 > 7, .permits = several_hold ? 3 : 0);
    nxl_lock *other = labelled(client, "name");

    if (n % 4)
        assert_result(nxl_lock_acquire(lock, 5000), NXL_OK, lock);
    if (n % 4 == 2) {
        assert_result(nxl_lock_acquire(other, 0), NXL_BUSY, other);
        assert_result(nxl_lock_inspect(other, &holder), NXL_OK, other);
        assert_result(nxl_lock_extend(lock, 50000), NXL_OK, lock);
    }
    if (n % 4 == 3)
        assert_result(nxl_lock_release(lock), NXL_OK, lock);
    end_pair((struct pair){client, lock, other});
}

static bool only_counters(void)
{
    for (size_t i = 0; i < on.servers; i++)
        redis_run(&servers[i], "DEL", "{p:name}:f", NULL);
    return all_free();
}

static void while_all_is_well(void **state)
{
    unsigned cycles = on.servers > 1 ? 320 : 1000;
    unsigned watched = on.servers > 1 ? 48 : 460; /* over both transports */
    assert_steady(slow() ? at_least(watched) : cycles, healthy);
    assert_eventually(only_counters());
}

static void looping(unsigned n)
{
    nxl_client *client = client_on(NO_GUARD);
    nxl_lock *lock = labelled(client, "name");

    loop_reset(n % 2);
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
    stays_free(200, 100, 40, looping);
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
    snprintf(url, sizeof(url), urls[n % 3], port);
    nxl_client *client = client_at(url);
    nxl_lock *lock = labelled(client, "name");
    assert_result(nxl_lock_acquire(lock, 30), NXL_E_UNREACHABLE, lock);
    end(lock, client);
}

static void at_an_unreachable_port(void **state)
{
    assert_steady(slow() ? 20 : 60, nowhere);
}

static void not_let_in(unsigned n)
{
    nxl_client *client = client_on("password=wrong");
    nxl_lock *lock = labelled(client, "name");
    for (unsigned i = 0; i <= n % 2; i++)
        assert_result(nxl_lock_acquire(lock, 0), NXL_E_DENIED, lock);
    end(lock, client);
}

static void require_password(const char *password)
{
    for (size_t i = 0; i < on.servers; i++)
        redis_run(&servers[i], "CONFIG", "SET", "requirepass", password, NULL);
}

static void with_a_wrong_password(void **state)
{
    require_password("right");
    assert_steady(slow() ? 30 : 200, not_let_in);
    require_password("");
}

static void wrong_urls(unsigned n)
{
    static const char *const urls[] = {"", "http://a", "redis://a:99999",
        "redis://:p%zz@a", "redis://u@a", "unix://", "redis://a?what=1",
        "redis://user:secret@a/1?timeout_ms=5&prefix=x",
        "redis://a,redis://b,redis://a",
        "redis://a,redis://b?timeout_ms=50,redis://c?timeout_ms=60",
        "redis://a,redis://:p%zz@b", "redis://a,redis://b,c",
        "redis://u:secret@a,redis://b,redis://c?what=1", "redis://a,",
        "redis://a,redis://b?scheme=timestamp"};
    char why[200];
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    nxl_client *client;
    options.errbuf = why;
    options.errbuf_size = sizeof(why);
    assert_true(nxl_client_new(&client, urls[n % 15], &options) < 0);
    assert_null(client);
    assert_true(why[0] != '\0');
}

static void with_a_wrong_url(void **state)
{
    assert_steady(slow() ? 75 : 750, wrong_urls);
}

/* Of three, two do it. */
static void without_one(unsigned n)
{
    struct pair p = pair_of(client_on(NO_GUARD), "o");
    assert_result(nxl_lock_acquire(p.lock, 5000), NXL_OK, p.lock);
    assert_result(nxl_lock_extend(p.lock, 0), NXL_OK, p.lock);
    assert_result(nxl_lock_release(p.lock), NXL_OK, p.lock);
    if (n % 2)
        assert_result(nxl_lock_acquire(p.other, 5000), NXL_OK, p.other);
    end_pair(p);
}

static void with_one_that_is_down(void **state)
{
    redis_kill(&servers[1]);
    assert_steady(slow() ? 20 : 100, without_one);
    redis_restart(&servers[1]);
    assert_eventually(all_free());
}

/* The only server, which forgets everything. */
static void killed(unsigned n)
{
    struct pair p = pair_of(client_on(HASTY), "w");
    assert_result(nxl_lock_acquire(p.lock, 5000), NXL_OK, p.lock);
    redis_kill(&servers[0]);
    if (n % 3)
        assert_true(nxl_lock_release(p.lock) != NXL_OK);
    if (n % 3 == 2)
        assert_true(nxl_lock_acquire(p.other, 30) < 0);
    redis_restart(&servers[0]);
    if (n % 2)
        assert_result(nxl_lock_acquire(p.other, 2000), NXL_OK, p.other);
    end_pair(p);
}

static void one_killed(unsigned n)
{
    struct pair p = pair_of(client_on(HASTY), "o");
    struct redis *one = &servers[n % on.servers];
    assert_result(nxl_lock_acquire(p.lock, 5000), NXL_OK, p.lock);
    redis_kill(one);
    if (n % 2)
        assert_result(nxl_lock_acquire(p.other, 5000), NXL_OK, p.other);
    if (n % 4 > 1) /* what a majority of two has is lost with one of them */
        assert_true(nxl_lock_extend(p.lock, 0) != NXL_E_INVALID);
    redis_restart(one);
    if (n % 8 > 3) /* ... and so it may be here */
        assert_true(nxl_lock_release(p.lock) != NXL_E_INVALID);
    end_pair(p);
}

static void with_a_server_that_restarts(void **state)
{
    bool one = on.servers == 1;
    unsigned cycles = one ? 12 : 16, watched = one ? 3 : 4;
    assert_steady(
        slow() ? at_least(watched) : cycles, one ? killed : one_killed);
    assert_eventually(all_free());
}

/* Over TLS a server takes in one command at a time. When it cannot send the
 * reply, for the client is gone, what was sent behind it is never done: a key
 * stays for the rest of its TTL. */
static void clear_rest(struct redis *r)
{
    if (!live_tls())
        return;
    assert_eventually(redis_clients(r) == 0);
    redis_run(r, "DEL", "name", "o", NULL);
}

/* One of them, and in every fifth cycle two of three. */
static void frozen(unsigned n)
{
    struct pair p = pair_of(
        client_on(on.servers > 1 ? HASTY : NO_GUARD "&timeout_ms=20"), "o");
    struct redis *one = &servers[n % on.servers];
    struct redis *two = &servers[(n + 1) % on.servers];
    bool too_few = on.servers == 1 || n % 5 == 0;
    if (n % 2)
        assert_result(nxl_lock_acquire(p.other, 5000), NXL_OK, p.other);
    redis_freeze(one);
    if (too_few) {
        redis_freeze(two);
        int rc = nxl_lock_acquire(p.lock, 0);
        assert_true(rc == NXL_UNKNOWN || rc == NXL_E_UNREACHABLE);
    } else {
        assert_result(nxl_lock_acquire(p.lock, 5000), NXL_OK, p.lock);
    }
    int released = n % 2 ? nxl_lock_release(p.other) : NXL_UNKNOWN;
    assert_true(released != NXL_E_INVALID);
    assert_true(released == NXL_UNKNOWN || on.servers > 1);
    if (n % 4 < 2) /* freed with all of it open, or answered at last */
        redis_thaw(one);
    end_pair(p);
    redis_thaw(one);
    redis_thaw(two);
    clear_rest(one);
    clear_rest(two);
}

static void with_a_server_that_hangs(void **state)
{
    stays_free(40, 40, on.servers > 1 ? 10 : 6, frozen);
}

/* One client and one lock through it all. */
static struct {
    nxl_client *client;
    nxl_lock *lock;
} kept;

/* No number of bytes divides the commands' lengths; of three servers one goes
 * on. */
static void cut(unsigned n)
{
    for (unsigned i = 0; i < on.servers; i++)
        if (on.servers == 1 || i != n / 2 % on.servers)
            proxy_cut_after(proxies[i], n % 2 ? PROXY_UP : PROXY_DOWN,
                1 + (37 * n + 411 * i) % 997);
    int rc = nxl_lock_acquire(kept.lock, 0);
    if (rc == NXL_OK)
        rc = nxl_lock_release(kept.lock);
    assert_true(rc == NXL_OK || rc == NXL_UNKNOWN || rc == NXL_BUSY ||
                rc == NXL_LOST || rc == NXL_E_UNREACHABLE);
    for (unsigned i = 0; i < on.servers; i++)
        proxy_cut(proxies[i], n % 3);
    /* Nobody knows when the last one's end has come through. */
    assert_result(nxl_lock_acquire(kept.lock, 5000), NXL_OK, kept.lock);
    assert_result(nxl_lock_release(kept.lock), NXL_OK, kept.lock);
    connect_all(kept.client);
    for (unsigned i = 0; i < on.servers; i++)
        assert_eventually(proxy_connections(proxies[i]) == 1);
}

static void with_connections_that_are_cut(void **state)
{
    kept.client = proxied_client(on.servers, NO_GUARD);
    kept.lock = labelled(kept.client, "name");
    assert_steady(slow() ? 20 : on.servers > 1 ? 100 : 150, cut);
    end(kept.lock, kept.client);
    assert_eventually(all_free());
}

int main(int argc, char **argv)
{
    (void)argc;
    count_exactly(argv);
    const struct CMUnitTest one[] = {
        quorum_test(while_all_is_well),
        quorum_test(while_looping),
        quorum_test(at_an_unreachable_port),
        quorum_test(with_a_wrong_password),
        quorum_test(with_a_wrong_url),
        quorum_test(with_a_server_that_restarts),
        quorum_test(with_a_server_that_hangs),
        quorum_test(with_connections_that_are_cut),
    };
    const struct CMUnitTest three[] = {
        quorum_test(while_all_is_well),
        quorum_test(while_looping),
        quorum_test(with_one_that_is_down),
        quorum_test(with_a_server_that_restarts),
        quorum_test(with_a_server_that_hangs),
        quorum_test(with_connections_that_are_cut),
    };
    return on_run(one_tcp, "leaks (one server, TCP)", one) +
           on_run(one_unix, "leaks (one server)", one) +
           on_run(three, "leaks (three servers)", three);
}

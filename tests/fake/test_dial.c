/* SPDX-License-Identifier: MIT */
/* Connecting: refused at once, swallowed until the deadline, and a host name
 * that stands for two addresses. */
#include "rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "support/local.h"

static nxl_lock *lock_at(nxl_client **client, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static nxl_lock *lock_at(nxl_client **client, const char *format, ...)
{
    char url[256];
    va_list args;
    va_start(args, format);
    vsnprintf(url, sizeof(url), format, args);
    va_end(args);
    *client = client_of(url);
    return lock_of_name(*client, "k", 30000);
}

static void end(nxl_client *client, nxl_lock *lock)
{
    nxl_lock_free(lock);
    nxl_client_free(client);
}

static uint16_t free_port(void)
{
    uint16_t port = 0;
    int fd = local_listen_tcp(&port);
    assert_true(fd >= 0);
    close(fd);
    return port;
}

/* ---------------------------------------------------------------- refused */

static void check_refused(nxl_client *client, nxl_lock *lock, const char *why)
{
    nxl_holder holder = NXL_HOLDER_INIT;
    assert_ends(nxl_lock_acquire(lock, 0), NXL_E_UNREACHABLE, 20);
    assert_contains(nxl_lock_errmsg(lock), why);
    assert_not_held(lock);
    assert_ends(nxl_lock_inspect(lock, &holder), NXL_E_UNREACHABLE, 50);
    assert_contains(nxl_lock_errmsg(lock), why);
    assert_takes(nxl_lock_acquire(lock, 250), NXL_E_UNREACHABLE, 100, 250);
    end(client, lock);
}

static void a_port_without_a_listener(void **state)
{
    (void)state;
    nxl_client *client;
    nxl_lock *lock =
        lock_at(&client, "redis://127.0.0.1:%u?timeout_ms=200", free_port());
    check_refused(client, lock, "refused");
}

static void a_path_without_a_listener(void **state)
{
    (void)state;
    char dir[LOCAL_PATH], path[LOCAL_PATH];
    nxl_client *client;
    local_dir_make(dir);
    local_path(path, dir, "none.sock");
    nxl_lock *lock = lock_at(&client, "unix://%s?timeout_ms=200", path);
    check_refused(client, lock, "No such file");
    close(local_listen_unix(path)); /* left by a server that crashed */
    lock = lock_at(&client, "unix://%s?timeout_ms=200", path);
    check_refused(client, lock, "refused");
    local_dir_remove(dir);
}

static void a_name_without_an_address(void **state)
{
    (void)state;
    nxl_client *client;
    test_ignore_fds(); /* the look-up ends by itself, perhaps later */
    nxl_lock *lock =
        lock_at(&client, "redis://no.such.host.invalid?timeout_ms=200");
    assert_ends(nxl_lock_acquire(lock, 0), NXL_E_UNREACHABLE, 200);
    assert_true(strlen(nxl_lock_errmsg(lock)) > 20);
    assert_ends(nxl_lock_acquire(lock, 300), NXL_E_UNREACHABLE, 300);
    end(client, lock);
}

/* ------------------------------------------------------------- swallowed */

#define FILL_MAX 16

/* A listener whose queue is full: it takes no more and refuses none. */
struct hole {
    int listener, count, fd[FILL_MAX];
    uint16_t port;
};

static void hole_fill(struct hole *h)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(h->port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(listen(h->listener, 0), 0);
    for (h->count = 0; h->count < FILL_MAX;) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        assert_true(fd >= 0);
        h->fd[h->count++] = fd;
        if (connect(fd, (const void *)&to, sizeof(to)) == 0)
            continue;
        assert_int_equal(errno, EINPROGRESS);
        struct pollfd ready = {fd, POLLOUT, 0};
        if (poll(&ready, 1, 30) == 0)
            return;
    }
    fail_msg("the queue took %d connections", FILL_MAX);
}

static struct hole hole_open(void)
{
    struct hole h = {.port = 0};
    h.listener = local_listen_tcp(&h.port);
    assert_true(h.listener >= 0);
    hole_fill(&h);
    return h;
}

/* Takes what is queued, so that there is room. */
static void hole_drain(struct hole *h)
{
    fcntl(h->listener, F_SETFL, O_NONBLOCK);
    for (int fd; (fd = accept(h->listener, NULL, NULL)) >= 0;)
        close(fd);
    for (int i = 0; i < h->count; i++)
        close(h->fd[i]);
    h->count = 0;
}

static void hole_close(struct hole *h)
{
    hole_drain(h);
    close(h->listener);
}

static void a_black_hole_ends_by_the_deadline(void **state)
{
    (void)state;
    struct hole h = hole_open();
    nxl_client *client;
    nxl_lock *lock =
        lock_at(&client, "redis://127.0.0.1:%u?timeout_ms=150", h.port);
    nxl_holder holder = NXL_HOLDER_INIT;
    assert_takes(nxl_lock_acquire(lock, 0), NXL_E_UNREACHABLE, 145, 150);
    assert_contains(nxl_lock_errmsg(lock), "connect");
    assert_takes(nxl_lock_inspect(lock, &holder), NXL_E_UNREACHABLE, 145, 150);
    assert_takes(nxl_lock_acquire(lock, 400), NXL_E_UNREACHABLE, 250, 400);
    assert_not_held(lock);
    end(client, lock);
    hole_close(&h);
}

/* It takes connections again: the next call does not wait for the old try. */
static void a_black_hole_that_opens(void **state)
{
    (void)state;
    struct hole h = hole_open();
    nxl_client *client;
    nxl_lock *lock =
        lock_at(&client, "redis://127.0.0.1:%u?timeout_ms=100", h.port);
    assert_takes(nxl_lock_acquire(lock, 0), NXL_E_UNREACHABLE, 95, 100);
    hole_drain(&h);
    assert_takes(nxl_lock_acquire(lock, 0), NXL_E_UNREACHABLE, 95, 100);
    assert_contains(nxl_lock_errmsg(lock), "no answer to the first commands");
    int fd = accept(h.listener, NULL, NULL);
    assert_true(fd >= 0);
    char said[64] = "";
    assert_true(recv(fd, said, sizeof(said) - 1, 0) > 0);
    assert_contains(said, "CLIENT");
    close(fd);
    end(client, lock);
    hole_close(&h);
}

/* A full queue of a unix socket is told at once; waiting tries it again. */
static void a_full_unix_queue(void **state)
{
    (void)state;
    char dir[LOCAL_PATH], path[LOCAL_PATH];
    int fds[FILL_MAX], count = 0;
    local_dir_make(dir);
    local_path(path, dir, "full.sock");
    int listener = local_listen_unix(path);
    assert_int_equal(listen(listener, 0), 0);
    fcntl(listener, F_SETFL, O_NONBLOCK);
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
    do {
        assert_true(count < FILL_MAX);
        fds[count] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    } while (connect(fds[count++], (const void *)&to, sizeof(to)) == 0);
    nxl_client *client;
    nxl_lock *lock = lock_at(&client, "unix://%s?timeout_ms=300", path);
    assert_int_equal(acquire_by_loop(client, lock, 0), NXL_E_UNREACHABLE);
    assert_contains(nxl_lock_errmsg(lock), "queue");
    assert_int_equal(nxl_lock_acquire_start(lock, 3000), NXL_PENDING);
    for (int i = 0; i < 20; i++)
        turn(client, 5);
    for (int fd; (fd = accept(listener, NULL, NULL)) >= 0;)
        close(fd);
    int fd = -1;
    turn_until(client, (fd = accept(listener, NULL, NULL)) >= 0);
    char said[64] = "";
    turn_until(client, recv(fd, said, sizeof(said) - 1, MSG_DONTWAIT) > 0);
    assert_contains(said, "CLIENT");
    end(client, lock);
    close(fd);
    close(listener);
    for (int i = 0; i < count; i++)
        close(fds[i]);
    local_dir_remove(dir);
}

/* ----------------------------------------------------------- two addresses */

static void localhost_is_127_0_0_1_first(void **state)
{
    (void)state;
    struct fake *f = fake_start("SERVE\n");
    nxl_client *client;
    nxl_lock *lock = lock_at(&client, "redis://localhost:%u", fake_port(f));
    assert_works(lock);
    end(client, lock);
    assert_no_text(fake_join(f));
    fake_free(f);
}

/* At ::1 only, on a port that nobody has at 127.0.0.1. */
static int listen_v6(uint16_t port)
{
    struct sockaddr_in6 at = {.sin6_family = AF_INET6,
        .sin6_port = htons(port),
        .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1;
    if (fd >= 0 &&
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) == 0 &&
        bind(fd, (const void *)&at, sizeof(at)) == 0 && listen(fd, 8) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* The first address does not answer for low to high ms; then the second one
 * gets the handshake. */
static void check_second(uint16_t port, int64_t low, int64_t high)
{
    int listener = listen_v6(port), fd = -1;
    if (listener < 0)
        test_skip("no IPv6 on the loopback");
    nxl_client *client;
    nxl_lock *lock =
        lock_at(&client, "redis://localhost:%u?timeout_ms=600", port);
    int64_t start = test_now_ms();
    assert_int_equal(nxl_lock_acquire_start(lock, 0), NXL_PENDING);
    turn_until(client, (fd = accept(listener, NULL, NULL)) >= 0);
    assert_between(test_now_ms() - start, low, high + slack_ms());
    char said[64] = "";
    turn_until(client, recv(fd, said, sizeof(said) - 1, MSG_DONTWAIT) > 0);
    assert_contains(said, "CLIENT");
    end(client, lock);
    close(fd);
    close(listener);
}

static void the_second_address_when_the_first_refuses(void **state)
{
    (void)state;
    check_second(free_port(), 0, 50);
}

/* It gets its share of the time and no more. */
static void the_second_address_when_the_first_is_a_hole(void **state)
{
    (void)state;
    struct hole h = hole_open();
    check_second(h.port, 290, 310);
    hole_close(&h);
}

static void both_addresses_refuse(void **state)
{
    (void)state;
    nxl_client *client;
    nxl_lock *lock =
        lock_at(&client, "redis://localhost:%u?timeout_ms=200", free_port());
    check_refused(client, lock, "refused");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_port_without_a_listener),
        cmocka_unit_test(a_path_without_a_listener),
        cmocka_unit_test(a_name_without_an_address),
        cmocka_unit_test(a_black_hole_ends_by_the_deadline),
        cmocka_unit_test(a_black_hole_that_opens),
        cmocka_unit_test(a_full_unix_queue),
        cmocka_unit_test(localhost_is_127_0_0_1_first),
        cmocka_unit_test(the_second_address_when_the_first_refuses),
        cmocka_unit_test(the_second_address_when_the_first_is_a_hole),
        cmocka_unit_test(both_addresses_refuse),
    };
    return cmocka_run_group_tests_name("dial", tests, NULL, NULL);
}

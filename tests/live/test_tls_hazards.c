/* SPDX-License-Identifier: MIT */
/*
 * Traps of TLS that other clients fell into, each on a real server: data left
 * inside OpenSSL, session tickets and new keys taken for a reply, names for
 * addresses, a child that ends its parent's session. Each test was seen to fail
 * with its trap built into src/net/tls.
 */
#include "api/private.h"
#include "live/tls_rig.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "live/fork_rig.h"
#include "live/loop_rig.h"
#include "live/renew_rig.h"

/* ------------------------------------------------------- a server in front */

/* A process that speaks TLS in front of the real server and does on order what
 * no redis-server does: new keys, more session tickets, small records, an end
 * without a goodbye. */

enum front_order {
    FRONT_NONE,
    FRONT_NEW_KEYS, /* asks for the peer's too */
    FRONT_TICKETS,
    FRONT_GARBAGE, /* bytes that are no record */
    FRONT_UNASKED, /* a reply that nobody asked for */
    FRONT_GOODBYE, /* close_notify; the connection stays open */
    FRONT_CLOSE,   /* without a close_notify */
    FRONT_RESET,
};

#define FRONT_LINKS 8

struct front {
    pid_t pid;
    uint16_t port;
    struct front_shared {
        _Atomic int order; /* FRONT_NONE: it has been carried out */
        _Atomic int accepted, open;
        _Atomic int goodbyes; /* connections that a close_notify ended */
    } * shared;
};

/* --------------------------------------------------------- in the process */

struct front_link {
    SSL *ssl; /* NULL: none */
    int fd, server;
};

static struct {
    struct front_shared *shared;
    struct front_link links[FRONT_LINKS];
    SSL_CTX *context;
    int listener;
} in_front;

static void front_end(struct front_link *l)
{
    if (SSL_get_shutdown(l->ssl) & SSL_RECEIVED_SHUTDOWN)
        in_front.shared->goodbyes++;
    SSL_free(l->ssl);
    close(l->fd);
    close(l->server);
    *l = (struct front_link){.ssl = NULL};
    in_front.shared->open--;
}

static void front_accept(void)
{
    struct front_link *l = in_front.links;
    while (l->ssl)
        l++;
    l->fd = accept4(in_front.listener, NULL, NULL, SOCK_CLOEXEC);
    l->server = local_connect(server.path, 0);
    l->ssl = SSL_new(in_front.context);
    SSL_set_fd(l->ssl, l->fd);
    in_front.shared->accepted++;
    in_front.shared->open++;
    local_no_delay(l->fd);
    if (SSL_accept(l->ssl) != 1)
        front_end(l);
}

/* From one side to the other. False: the connection has ended. */
static bool front_pass(struct front_link *l, bool up)
{
    char bytes[65536];
    if (up) {
        int n = SSL_read(l->ssl, bytes, sizeof(bytes));
        return n > 0 ? local_send(l->server, bytes, (size_t)n)
                     : SSL_get_error(l->ssl, n) == SSL_ERROR_WANT_READ;
    }
    ssize_t n = recv(l->server, bytes, sizeof(bytes), 0);
    return n > 0 && SSL_write(l->ssl, bytes, (int)n) == n;
}

static void front_obey_at(struct front_link *l, enum front_order order)
{
    bool ends = order == FRONT_CLOSE || order == FRONT_RESET;
    if (order == FRONT_NEW_KEYS)
        SSL_key_update(l->ssl, SSL_KEY_UPDATE_REQUESTED);
    if (order == FRONT_TICKETS)
        SSL_new_session_ticket(l->ssl);
    if (order == FRONT_NEW_KEYS || order == FRONT_TICKETS)
        SSL_do_handshake(l->ssl);
    if (order == FRONT_GARBAGE)
        (void)local_send(l->fd, "-ERR no record\r\n", 16);
    if (order == FRONT_UNASKED)
        SSL_write(l->ssl, "+OK\r\n", 5);
    if (order == FRONT_GOODBYE)
        SSL_shutdown(l->ssl);
    if (order == FRONT_RESET)
        local_make_reset(l->fd);
    if (ends)
        front_end(l);
}

static void front_obey(void)
{
    enum front_order order = (enum front_order)in_front.shared->order;
    if (order == FRONT_NONE)
        return;
    for (size_t i = 0; i < FRONT_LINKS; i++)
        if (in_front.links[i].ssl)
            front_obey_at(&in_front.links[i], order);
    in_front.shared->order = FRONT_NONE;
}

static void front_turn(void)
{
    struct pollfd fds[1 + 2 * FRONT_LINKS] = {
        {.fd = in_front.listener, .events = POLLIN}};
    for (size_t i = 0; i < FRONT_LINKS; i++) {
        struct front_link *l = &in_front.links[i];
        fds[1 + 2 * i].fd = l->ssl ? l->fd : -1;
        fds[2 + 2 * i].fd = l->ssl ? l->server : -1;
        fds[1 + 2 * i].events = fds[2 + 2 * i].events = POLLIN;
    }
    if (poll(fds, 1 + 2 * FRONT_LINKS, 2) < 0)
        _exit(1);
    for (size_t i = 0; i < 2 * FRONT_LINKS; i++) {
        struct front_link *l = &in_front.links[i / 2];
        if (fds[1 + i].revents && l->ssl && !front_pass(l, i % 2 == 0))
            front_end(l);
    }
    if (fds[0].revents)
        front_accept();
    front_obey();
}

static void front_run(unsigned record_most)
{
    char certificate[2 * LOCAL_PATH], key[2 * LOCAL_PATH];
    tls_expand(certificate, sizeof(certificate), "@/server.pem");
    tls_expand(key, sizeof(key), "@/server.key");
    signal(SIGPIPE, SIG_IGN);
    in_front.context = SSL_CTX_new(TLS_server_method());
    if (SSL_CTX_use_certificate_chain_file(in_front.context, certificate) !=
            1 ||
        SSL_CTX_use_PrivateKey_file(in_front.context, key, SSL_FILETYPE_PEM) !=
            1)
        _exit(1);
    SSL_CTX_clear_mode(in_front.context, SSL_MODE_AUTO_RETRY);
    SSL_CTX_set_max_send_fragment(in_front.context, record_most);
    for (;;)
        front_turn();
}

/* ------------------------------------------------------------ in the test */

/* Its records have at most so many bytes, 512 to 16384. */
static void front_start(struct front *f, unsigned record_most)
{
    *f = (struct front){.pid = 0};
    f->shared = mmap(NULL, sizeof(*f->shared), PROT_READ | PROT_WRITE,
        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(f->shared != MAP_FAILED);
    in_front.listener = local_listen_tcp(&f->port);
    in_front.shared = f->shared;
    assert_true(in_front.listener >= 0);
    f->pid = test_fork();
    if (f->pid == 0)
        front_run(record_most);
    close(in_front.listener);
}

static void front_stop(struct front *f)
{
    kill(f->pid, SIGKILL);
    waitpid(f->pid, NULL, 0);
    munmap(f->shared, sizeof(*f->shared));
}

/* At all connections; returns when it has been carried out. */
static void front_order(struct front *f, enum front_order order)
{
    f->shared->order = order;
    assert_eventually(f->shared->order == FRONT_NONE);
}

static nxl_client *front_client(const struct front *f, const char *parameters)
{
    char url[TLS_URL];
    tls_url(url, "127.0.0.1", f->port, parameters);
    return client_at(url);
}

/* ------------------------------------------------------------------ traps */

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

/* SPDX-License-Identifier: MIT */
/*
 * A peer that is no TLS server, or not now: a plain Redis port, which says
 * nothing at all; other services; one that stops in the middle of a handshake;
 * one of two addresses. Each is explained, and none outlasts the deadline.
 */
#include "live/tls_rig.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define SHORT_MS 200
#define SHORT "&timeout_ms=200"

/* Long enough for two attempts, even on a slow machine. */
#define WAIT_MS 600

#define SILENT                                                                 \
    "no answer to the TLS handshake (as from a plain Redis port: if it is "    \
    "one, write redis://)"
#define NO_TLS "the peer does not speak TLS on this port; if it is a plain "
#define WRITE_REDIS "port, write redis:// instead of rediss://"
#define UNFINISHED "the TLS handshake was not completed"
#define CUT_OFF "the TLS handshake was cut off: "
#define CHECK_SERVER "check that the server is running"

/* ------------------------------------------------------------------- peers */

struct peer {
    pid_t pid;
    uint16_t port;
    char url[TLS_URL], name[64]; /* as messages show it */
};

/* Says the same to each that connects, after its first bytes or at once. */
struct speech {
    const char *name, *bytes;
    size_t len;
    bool first;  /* does not await the client's hello */
    bool closes; /* behind it */
    bool lasts;  /* a person has to repair it: it ends a wait */
    const char *words, *remedy;
};

static void speak(int listener, const struct speech *s)
{
    for (;;) {
        char hello[4096];
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            _exit(1);
        if (!s->first && recv(fd, hello, sizeof(hello), 0) < 0)
            _exit(1);
        if (s->len > 0)
            (void)local_send(fd, s->bytes, s->len);
        if (s->closes) {
            shutdown(fd, SHUT_WR);
            while (recv(fd, hello, sizeof(hello), 0) > 0)
                ;
            close(fd);
        }
    }
}

static void peer_start(struct peer *p, const struct speech *s)
{
    p->port = 0;
    int listener = local_listen_tcp(&p->port);
    assert_true(listener >= 0);
    p->pid = test_fork();
    if (p->pid == 0)
        speak(listener, s);
    close(listener);
    tls_url(p->url, "127.0.0.1", p->port, TRUST SHORT);
    snprintf(p->name, sizeof(p->name), "rediss://127.0.0.1:%u/0: ", p->port);
}

static void peer_stop(struct peer *p)
{
    kill(p->pid, SIGKILL);
    waitpid(p->pid, NULL, 0);
}

/* ------------------------------------------------------------ what is told */

static void expect_call_refused(nxl_client *client, nxl_lock *lock,
    int64_t wait_ms, bool lasts, const char *words, const char *remedy)
{
    int64_t began = test_now_ms();
    assert_result(
        CALL(client, acquire, lock, wait_ms), NXL_E_UNREACHABLE, lock);
    int64_t took = test_now_ms() - began;
    if (wait_ms == 0 || lasts)
        assert_between(took, 0, SHORT_MS + LATE_MS);
    else /* an attempt for which there is no time is not begun */
        assert_between(took, wait_ms / 2, wait_ms + SHORT_MS + LATE_MS);
    if (wait_ms == 0 || lasts)
        assert_told(lock, "rediss://", words, remedy);
    else /* the last attempt may have been cut off by the end of the wait */
        assert_told(lock, "rediss://", "the TLS handshake", "");
    assert_false(nxl_lock_held(lock));
}

/* Refused without a wait and with one, through one API each. */
static void expect_refused(const char *url, bool wait_by_loop, bool lasts,
    const char *words, const char *remedy)
{
    for (int waits = 0; waits < 2; waits++) {
        nxl_client *client = client_at(url);
        nxl_lock *lock = new_lock(client, "job", 30000);
        by_loop = waits == wait_by_loop;
        expect_call_refused(
            client, lock, waits ? WAIT_MS : 0, lasts, words, remedy);
        end(lock, client);
    }
}

static void plain_redis_port(void **state)
{
    char url[TLS_URL];
    tls_url(url, "127.0.0.1", server.port, TRUST SHORT);
    expect_refused(url, false, false, SILENT, "write redis://");
    expect_refused(url, true, false, SILENT, "write redis://");
    /* It was tried again within the wait. */
    assert_true(
        server_number(&server, "stats", "total_connections_received") >= 6);
    assert_eventually(redis_clients(&server) == 0);
}

#define SAYS(text) .bytes = text, .len = sizeof(text) - 1

static const struct speech speeches[] = {
    {.name = "silence", .words = SILENT, .remedy = "write redis://"},
    {.name = "SSH",
        SAYS("SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"),
        .first = true,
        .lasts = true,
        .words = NO_TLS,
        .remedy = WRITE_REDIS},
    {.name = "HTTP",
        .closes = true,
        .lasts = true,
        SAYS("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"),
        .words = NO_TLS,
        .remedy = WRITE_REDIS},
    {.name = "mail",
        SAYS("220 mail.example ESMTP Postfix\r\n"),
        .first = true,
        .lasts = true,
        .words = NO_TLS,
        .remedy = WRITE_REDIS},
    {.name = "a Redis that talks",
        SAYS("-ERR unknown command\r\n"),
        .lasts = true,
        .words = NO_TLS,
        .remedy = WRITE_REDIS},
    {.name = "a short word", SAYS("-"), .words = UNFINISHED, .remedy = "port"},
    {.name = "half a record",
        .words = UNFINISHED,
        .remedy = "port",
        SAYS("\x16\x03\x03\x00\x7a\x02\x00\x00\x76\x03\x03")},
    {.name = "a record too long",
        .lasts = true,
        .words = NO_TLS,
        .remedy = WRITE_REDIS,
        SAYS("\x16\x03\x03\xff\xff\x02\x00\x00\x76")},
    {.name = "a record of nonsense",
        .lasts = true,
        SAYS("\x16\x03\x03\x00\x08\x63\x00\x00\x04\x01\x02\x03\x04"),
        .words = "the TLS handshake failed: ",
        .remedy = "unexpected message"},
    {.name = "an alert of its own",
        .lasts = true,
        SAYS("\x15\x03\x03\x00\x02\x02\x50"),
        .words = "the TLS handshake failed: ",
        .remedy = "internal error"},
    {.name = "an unknown name",
        .lasts = true,
        SAYS("\x15\x03\x03\x00\x02\x02\x70"),
        .words = "the server does not know the name that it was asked for",
        .remedy = "set it with sni="},
    {.name = "closes at once",
        .first = true,
        .closes = true,
        .words = CUT_OFF "the server closed the connection",
        .remedy = CHECK_SERVER},
    {.name = "closes after the hello",
        .closes = true,
        .words = CUT_OFF "the server closed the connection",
        .remedy = CHECK_SERVER},
    {.name = "closes in the midst of a record",
        .closes = true,
        SAYS("\x16\x03\x03\x00\x7a\x02\x00\x00\x76\x03\x03"),
        .words = CUT_OFF "the server closed the connection",
        .remedy = CHECK_SERVER},
};

#define SPEECHES (sizeof(speeches) / sizeof(speeches[0]))

static void a_speech(void **state)
{
    const struct speech *s = *state;
    struct peer peer;
    peer_start(&peer, s);
    expect_refused(peer.url, true, s->lasts, s->words, s->remedy);
    peer_stop(&peer);
}

static void plain_client_on_a_tls_port(void **state)
{
    char url[64];
    snprintf(url, sizeof(url), "redis://127.0.0.1:%u", server.tls_port);
    nxl_client *client = client_at(url);
    nxl_lock *lock = new_lock(client, "job", 30000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_UNREACHABLE, lock);
    assert_told(
        lock, url, "(a TLS port? write rediss://; a proxy for", CHECK_SERVER);
    end(lock, client);
}

/* Over TLS a server that is full cannot say so: it just closes. */
static void a_full_server(void **state)
{
    tls_set("maxclients", "1"); /* the test's own */
    nxl_client *client = tls_client(TRUST);
    nxl_lock *lock = new_lock(client, "job", 30000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_UNREACHABLE, lock);
    assert_told(lock, "rediss://", CUT_OFF, CHECK_SERVER);
    static struct waiter waiter;
    waiter_start(&waiter, lock, 20000);
    tls_set("maxclients", "10000");
    assert_result(waiter_join(&waiter), NXL_OK, lock);
    end(lock, client);
}

/* -------------------------------------------------------------- two addresses
 */

#define NAMED TRUST "&sni=localhost"

int __real_getaddrinfo(const char *host, const char *service,
    const struct addrinfo *hints, struct addrinfo **list);
int __wrap_getaddrinfo(const char *host, const char *service,
    const struct addrinfo *hints, struct addrinfo **list);

/* "two.test" is 127.0.0.2, then 127.0.0.1. */
int __wrap_getaddrinfo(const char *host, const char *service,
    const struct addrinfo *hints, struct addrinfo **list)
{
    struct addrinfo *more = NULL;
    if (strcmp(host, "two.test") != 0)
        return __real_getaddrinfo(host, service, hints, list);
    int rc = __real_getaddrinfo("127.0.0.2", service, hints, list);
    if (rc == 0)
        rc = __real_getaddrinfo("127.0.0.1", service, hints, &more);
    if (rc == 0)
        (*list)->ai_next = more;
    return rc;
}

/* Listens at 127.0.0.2, with the server's own port. */
static int listen_beside(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
        .sin_port = htons(server.tls_port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (void *)&at, sizeof(at)), 0);
    assert_int_equal(listen(fd, 8), 0);
    return fd;
}

static nxl_client *two_addresses(const char *parameters)
{
    char url[TLS_URL];
    tls_url(url, "two.test", server.tls_port, parameters);
    return client_at(url);
}

static void the_first_refuses(void **state)
{
    nxl_client *client = two_addresses(NAMED);
    nxl_lock *lock = new_lock(client, "job", 30000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    end(lock, client);
}

/* It has half of the time, handshake included. */
static void the_first_is_silent(void **state)
{
    int silent = listen_beside();
    nxl_client *client = two_addresses(NAMED "&timeout_ms=1000");
    nxl_lock *lock = new_lock(client, "job", 30000);
    int64_t began = test_now_ms();
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_between(test_now_ms() - began, 500, 1000 + LATE_MS);
    end(lock, client);
    close(silent);
}

/* What a person has to repair is told, whatever the other address does. */
static void the_second_has_expired(void **state)
{
    tls_present("expired");
    int silent = listen_beside();
    nxl_client *client = two_addresses(NAMED "&timeout_ms=1000");
    nxl_lock *lock = new_lock(client, "job", 30000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_UNREACHABLE, lock);
    assert_told(lock, "rediss://two.test", "expired on", "renew it");
    close(silent);
    assert_result(nxl_lock_acquire(lock, 20000), NXL_E_UNREACHABLE, lock);
    assert_told(lock, "rediss://two.test", "expired on", "renew it");
    end(lock, client);
}

/* ------------------------------------------------------------ three servers */

#define OTHERS 2

/* The lock is held. A call waits for its quorum and little longer, so the first
 * server's fault may be known only after another one. */
static void await_told_at_first(
    nxl_client *client, nxl_lock *lock, const char *words)
{
    bool told = false;
    for (int calls = 0; calls < 100 && !told; calls++) {
        if (calls > 0)
            assert_result(CALL(client, acquire, lock, 1000), NXL_OK, lock);
        told = strstr(nxl_lock_errmsg_at(lock, 0), words);
        assert_result(CALL(client, release, lock), NXL_OK, lock);
    }
    assert_true(told);
}

/* The server with a fault, and two others without TLS. */
static void of_three(
    const char *faulty_url, bool two_faulty, int64_t most_ms, const char *words)
{
    struct redis others[OTHERS];
    char list[4 * TLS_URL];
    struct peer none = {.port = 0};
    if (two_faulty)
        peer_start(&none, &(struct speech){.closes = true});
    for (int i = 0; i < OTHERS; i++)
        assert_int_equal(redis_start(&others[i], NULL), 0);
    snprintf(list, sizeof(list), "%s%sguard_restarts=off,%s,%s", faulty_url,
        strchr(faulty_url, '?') ? "&" : "?", others[0].unix_url,
        two_faulty ? none.url : others[1].url);
    for (int api = 0; api < 2; api++) {
        nxl_client *client = client_at(list);
        nxl_lock *lock = new_lock(client, "job", 30000);
        by_loop = api;
        int64_t began = test_now_ms();
        int rc = CALL(client, acquire, lock, two_faulty ? WAIT_MS : 0);
        assert_result(rc, two_faulty ? NXL_E_UNREACHABLE : NXL_OK, lock);
        assert_between(test_now_ms() - began, 0, most_ms);
        if (two_faulty)
            assert_told(lock, words, "2 of 3 servers are needed", none.name);
        if (!two_faulty)
            await_told_at_first(client, lock, words);
        end(lock, client);
    }
    if (two_faulty)
        peer_stop(&none);
    for (int i = 0; i < OTHERS; i++) {
        assert_false(redis_exists(&others[i], "job"));
        redis_stop(&others[i]);
    }
}

static void one_of_three_has_expired(void **state)
{
    char url[TLS_URL];
    tls_present("expired");
    tls_url(url, "127.0.0.1", server.tls_port, TRUST);
    of_three(url, false, LATE_MS, "' expired on ");
}

static void one_of_three_is_silent(void **state)
{
    char url[TLS_URL];
    tls_url(url, "127.0.0.1", server.port, TRUST SHORT);
    of_three(url, false, SHORT_MS + LATE_MS, "");
}

static void two_of_three_are_in_trouble(void **state)
{
    char url[TLS_URL];
    tls_present("wrong-host");
    tls_url(url, "127.0.0.1", server.tls_port, TRUST SHORT);
    of_three(url, true, WAIT_MS + SHORT_MS + LATE_MS,
        "the certificate is for elsewhere.example, not for 127.0.0.1");
}

int main(void)
{
    struct CMUnitTest each[SPEECHES];
    const struct CMUnitTest tests[] = {
        tls_test(plain_redis_port),
        tls_test(plain_client_on_a_tls_port),
        tls_test(a_full_server),
        tls_test(the_first_refuses),
        tls_test(the_first_is_silent),
        tls_test(the_second_has_expired),
        tls_test(one_of_three_has_expired),
        tls_test(one_of_three_is_silent),
        tls_test(two_of_three_are_in_trouble),
    };
    for (size_t i = 0; i < SPEECHES; i++)
        each[i] = (struct CMUnitTest){
            speeches[i].name, a_speech, tls_clean, NULL, (void *)&speeches[i]};
    return cmocka_run_group_tests_name("not TLS", each, tls_start, live_stop) +
           tls_run("TLS peers");
}

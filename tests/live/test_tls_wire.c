/* SPDX-License-Identifier: MIT */
/*
 * What a TLS client does with commands that are cancelled while a record waits
 * for room, and with the refusal of a client certificate, whoever finds it; and
 * which of two addresses of a name it takes.
 */
#include "live/tls_rig.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "live/loop_rig.h"
#include "live/renew_rig.h"

/* ----------------------------------------------------------- a stopped server
 */

#define LOCKS 1200

int __real_socket(int family, int type, int protocol);
int __wrap_socket(int family, int type, int protocol);

/* A connection takes in little, so that commands have to wait for room. */
int __wrap_socket(int family, int type, int protocol)
{
    int little = 4096, fd = __real_socket(family, type, protocol);
    if (fd >= 0 && family == AF_INET)
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &little, sizeof(little));
    return fd;
}

static nxl_lock *locks[LOCKS];

/* Names of 150 bytes, so that all commands together are far more than fits. */
static void name_of(char name[160], int i)
{
    snprintf(name, 160, "%0145d:%d", 0, i);
}

static bool is_cancelled(int pattern, int i)
{
    return pattern == 0   ? i % 2
           : pattern == 1 ? i >= LOCKS / 2
           : pattern == 2 ? i < LOCKS / 2
                          : i % 100 != 99;
}

/* Until nothing more can be sent. Then it does not poll for room in vain. */
static void fill_the_connection(nxl_client *client)
{
    assert_eventually((loop.turns = 0, loop_for(client, 20), loop.turns <= 2));
}

/* Those that were not cancelled are held, each under its own token. */
static void check_locks(int pattern)
{
    char name[160], value[64];
    for (int i = 0; i < LOCKS; i++) {
        name_of(name, i);
        bool cancelled = is_cancelled(pattern, i);
        assert_int_equal(nxl_lock_held(locks[i]), !cancelled);
        if (cancelled)
            continue;
        assert_true(redis_get(&server, name, value, sizeof(value)));
        assert_string_equal(value, nxl_lock_token(locks[i]));
    }
}

static void cancelled_while_it_is_stopped(void **state)
{
    nxl_client *client = tls_client(TRUST "&timeout_ms=60000");
    char name[160];
    loop_reset(false);
    for (int i = 0; i < LOCKS; i++) {
        name_of(name, i);
        locks[i] = new_lock(client, name, 60000);
    }
    for (int pattern = 0; pattern < 4; pattern++) {
        loop.count = 0;
        redis_freeze(&server);
        for (int i = 0; i < LOCKS; i++)
            assert_int_equal(nxl_lock_acquire_start(locks[i], 0), NXL_PENDING);
        fill_the_connection(client);
        size_t kept = LOCKS;
        for (int i = 0; i < LOCKS; i++)
            if (is_cancelled(pattern, i)) {
                assert_int_equal(nxl_lock_cancel(locks[i]), NXL_OK);
                kept--;
            }
        loop_for(client, 5);
        redis_thaw(&server);
        loop_until(client, LOCKS);
        check_locks(pattern);
        assert_eventually((loop_wait(client, 1),
            redis_run(&server, "DBSIZE", NULL) == (long long)kept));
        loop.count = 0;
        for (int i = 0; i < LOCKS; i++)
            if (!is_cancelled(pattern, i))
                assert_int_equal(nxl_lock_release_start(locks[i]), NXL_PENDING);
        loop_until(client, kept);
        for (size_t i = 0; i < kept; i++)
            assert_int_equal(loop.event[i].result, NXL_OK);
        assert_int_equal(redis_run(&server, "DBSIZE", NULL), 0);
        assert_int_equal(stats_of(client).connections, 1);
    }
    for (int i = 0; i < LOCKS; i++)
        nxl_lock_free(locks[i]);
    nxl_client_free(client);
}

/* ---------------------------------------------- a refusal of TLS 1.3, which
 * comes after its handshake */

/* A second call may find the refusal before the first one has read it. */
static void refused_under_another_call(void **state)
{
    tls_set("tls-auth-clients", "yes");
    tls_set("tls-protocols", "TLSv1.3");
    for (int turns = 1; turns <= 6; turns++) {
        nxl_client *client = tls_client(TRUST);
        nxl_lock *first = new_lock(client, "a", 30000);
        nxl_lock *second = new_lock(client, "b", 30000);
        loop_reset(false);
        assert_int_equal(nxl_lock_acquire_start(first, 0), NXL_PENDING);
        for (int i = 0; i < turns; i++)
            loop_wait(client, 30);
        test_pause_ms(10);
        assert_int_equal(nxl_lock_acquire_start(second, 0), NXL_PENDING);
        loop_until(client, 2);
        for (int i = 0; i < 2; i++) {
            nxl_lock *lock = loop.event[i].lock;
            live_assert_result(loop.event[i].result, NXL_E_DENIED,
                nxl_lock_errmsg(lock), __FILE__, __LINE__);
            assert_told(lock, "rediss://", "requires a client certificate",
                "add cert= and key=");
        }
        nxl_lock_free(first);
        end(second, client);
    }
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        tls_test(cancelled_while_it_is_stopped),
        tls_test(refused_under_another_call),
        tls_test(the_first_refuses),
        tls_test(the_first_is_silent),
        tls_test(the_second_has_expired),
    };
    return tls_run("TLS on the wire");
}

/* SPDX-License-Identifier: MIT */
/* The server fixture with TLS, met by OpenSSL's own client. */
#include "support/test.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "support/certs.h"
#include "support/redis_tls.h"

static struct redis r;

static int stop(void **state)
{
    (void)state;
    redis_stop(&r);
    return 0;
}

struct client {
    SSL_CTX *context;
    SSL *ssl;
    int fd;
};

static void path_of(char path[LOCAL_PATH * 2], const char *name)
{
    snprintf(path, LOCAL_PATH * 2, "%s/%s", r.dir, name);
}

/* Connects and trusts "ca"; a name is that of its own certificate, or NULL. */
static struct client dial(const char *name)
{
    struct client c = {.context = SSL_CTX_new(TLS_client_method())};
    char path[LOCAL_PATH * 2], file[64];

    path_of(path, "ca.pem");
    assert_int_equal(SSL_CTX_load_verify_file(c.context, path), 1);
    SSL_CTX_set_verify(c.context, SSL_VERIFY_PEER, NULL);
    if (name) {
        snprintf(file, sizeof(file), "%s.pem", name);
        path_of(path, file);
        SSL_CTX_use_certificate_chain_file(c.context, path);
        snprintf(file, sizeof(file), "%s.key", name);
        path_of(path, file);
        assert_int_equal(
            SSL_CTX_use_PrivateKey_file(c.context, path, SSL_FILETYPE_PEM), 1);
    }
    c.ssl = SSL_new(c.context);
    c.fd = local_connect(NULL, r.tls_port);
    assert_true(c.fd >= 0);
    SSL_set_fd(c.ssl, c.fd);
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(c.ssl), "127.0.0.1");
    return c;
}

static void hang_up(struct client *c)
{
    SSL_free(c->ssl);
    SSL_CTX_free(c->context);
    close(c->fd);
}

/* True: PONG. In TLS 1.3 a server that refuses the client's certificate says
 * so only now. */
static bool pings(struct client *c)
{
    char answer[8] = "";

    return SSL_connect(c->ssl) == 1 && SSL_write(c->ssl, "PING\r\n", 6) == 6 &&
           SSL_read(c->ssl, answer, 7) == 7 &&
           strncmp(answer, "+PONG\r\n", 7) == 0;
}

static bool answers(const char *name)
{
    struct client c = dial(name);
    bool good = pings(&c);

    hang_up(&c);
    return good;
}

static long verdict(void)
{
    struct client c = dial(NULL);

    ERR_clear_error();
    (void)SSL_connect(c.ssl);
    long found = SSL_get_verify_result(c.ssl);
    hang_up(&c);
    return found;
}

static void test_speaks_tls(void **state)
{
    (void)state;
    char expected[4 * LOCAL_PATH];

    assert_int_equal(redis_start_tls(&r, &(struct redis_tls){0}, NULL), 0);
    assert_true(answers(NULL));
    assert_true(answers("client"));
    snprintf(expected, sizeof(expected),
        "rediss://127.0.0.1:%u?cacert=%s/ca.pem", (unsigned)r.tls_port, r.dir);
    assert_string_equal(r.tls_url, expected);
    int fd = local_connect(NULL, r.port);
    char answer[8] = "";
    assert_true(local_send(fd, "PING\r\n", 6));
    assert_int_equal(read(fd, answer, 7), 7);
    assert_string_equal(answer, "+PONG\r\n");
    close(fd);
    redis_run(&r, "SET", "k", "v", NULL);
    assert_true(redis_exists(&r, "k"));
}

static void test_requires_a_certificate(void **state)
{
    (void)state;
    redis_start_tls(&r, &(struct redis_tls){.clients = "yes"}, NULL);
    certs_make(r.dir, "foreign-client", NULL);
    assert_false(answers(NULL));
    assert_false(answers("foreign-client"));
    assert_true(answers("client"));
    assert_contains(r.tls_url, "/client.pem&key=");
}

static void test_takes_a_certificate(void **state)
{
    (void)state;
    redis_start_tls(&r, &(struct redis_tls){.clients = "optional"}, NULL);
    certs_make(r.dir, "foreign-client", NULL);
    assert_true(answers(NULL));
    assert_false(answers("foreign-client"));
    assert_true(answers("client"));
}

static void test_plain_port_closed(void **state)
{
    (void)state;
    redis_start_tls(&r, &(struct redis_tls){.only = true}, NULL);
    assert_true(answers(NULL));
    assert_int_equal(r.port, 0);
    assert_string_equal(r.url, "");
    assert_false(redis_exists(&r, "k"));
}

static void test_other_certificates(void **state)
{
    (void)state;
    redis_start_tls(&r, &(struct redis_tls){.certificate = "wrong-host"}, NULL);
    assert_int_equal(verdict(), X509_V_ERR_IP_ADDRESS_MISMATCH);
    redis_present(&r, "server");
    struct client stays = dial(NULL);
    assert_true(pings(&stays));
    redis_present(&r, "expired");
    assert_int_equal(verdict(), X509_V_ERR_CERT_HAS_EXPIRED);
    char answer[8];
    assert_int_equal(SSL_write(stays.ssl, "PING\r\n", 6), 6);
    assert_int_equal(SSL_read(stays.ssl, answer, 7), 7);
    hang_up(&stays);
}

static void test_restarts(void **state)
{
    (void)state;
    redis_start_tls(&r, &(struct redis_tls){.clients = "yes"}, "--requirepass",
        "sesame", NULL);
    uint16_t port = r.tls_port;
    redis_restart(&r);
    assert_int_equal(r.tls_port, port);
    struct client c = dial("client");
    assert_int_equal(SSL_connect(c.ssl), 1);
    char answer[8] = "";
    assert_int_equal(SSL_write(c.ssl, "PING\r\n", 6), 6);
    assert_int_equal(SSL_read(c.ssl, answer, 7), 7);
    assert_memory_equal(answer, "-NOAUTH", 7);
    hang_up(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_speaks_tls, stop),
        cmocka_unit_test_teardown(test_requires_a_certificate, stop),
        cmocka_unit_test_teardown(test_takes_a_certificate, stop),
        cmocka_unit_test_teardown(test_plain_port_closed, stop),
        cmocka_unit_test_teardown(test_other_certificates, stop),
        cmocka_unit_test_teardown(test_restarts, stop),
    };
    return cmocka_run_group_tests_name("support_redis_tls", tests, NULL, NULL);
}

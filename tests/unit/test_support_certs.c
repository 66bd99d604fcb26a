/* SPDX-License-Identifier: MIT */
/* The certificates of the tests: each has the fault that its name says, and no
 * other, by OpenSSL's own judgement in a handshake. */
#include "support/test.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include "support/certs.h"
#include "support/local.h"

static char dir[LOCAL_PATH];

static int start(void **state)
{
    (void)state;
    local_dir_make(dir);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    local_dir_remove(dir);
    return 0;
}

static const char *file(const char *name, const char *kind)
{
    static char path[LOCAL_PATH * 2];

    snprintf(path, sizeof(path), "%s/%s.%s", dir, name, kind);
    return path;
}

static SSL *end_of(SSL_CTX *context, BIO *bio)
{
    SSL *end = SSL_new(context);

    assert_non_null(end);
    SSL_set_bio(end, bio, bio);
    return end;
}

static SSL_CTX *context_with(const SSL_METHOD *method, const char *name)
{
    SSL_CTX *context = SSL_CTX_new(method);

    assert_non_null(context);
    if (!name)
        return context;
    assert_int_equal(
        SSL_CTX_use_certificate_chain_file(context, file(name, "pem")), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey_file(
                         context, file(name, "key"), SSL_FILETYPE_PEM),
        1);
    assert_int_equal(SSL_CTX_check_private_key(context), 1);
    return context;
}

/* The handshake of two ends in memory, until both have ended it or one gave
 * up. */
static void shake(SSL *client, SSL *server)
{
    for (int i = 0; i < 20 && !(SSL_is_init_finished(client) &&
                                  SSL_is_init_finished(server));
         i++) {
        SSL_do_handshake(client);
        SSL_do_handshake(server);
    }
}

/* What a client that trusts "ca" and means this host finds about a server, or
 * a server that trusts it about a client. */
static long verdict(const char *server_name, const char *client_name,
    const char *ca, const char *host)
{
    SSL_CTX *server_context = context_with(TLS_server_method(), server_name);
    SSL_CTX *client_context = context_with(TLS_client_method(), client_name);
    SSL_CTX *judging = client_name ? server_context : client_context;
    BIO *near, *far;

    assert_int_equal(BIO_new_bio_pair(&near, 65536, &far, 65536), 1);
    SSL_CTX_set_verify(judging, SSL_VERIFY_PEER, NULL);
    assert_int_equal(SSL_CTX_load_verify_file(judging, file(ca, "pem")), 1);
    SSL *client = end_of(client_context, near);
    SSL *server = end_of(server_context, far);
    SSL_set_connect_state(client);
    SSL_set_accept_state(server);
    X509_VERIFY_PARAM *means = SSL_get0_param(client);
    if (host && X509_VERIFY_PARAM_set1_ip_asc(means, host) != 1)
        assert_int_equal(X509_VERIFY_PARAM_set1_host(means, host, 0), 1);
    shake(client, server);
    long found = SSL_get_verify_result(client_name ? server : client);
    ERR_clear_error();
    SSL_free(client);
    SSL_free(server);
    SSL_CTX_free(client_context);
    SSL_CTX_free(server_context);
    return found;
}

static void test_servers(void **state)
{
    (void)state;
    static const struct {
        const char *name, *host, *ca;
        long found;
    } cases[] = {
        {"server", "localhost", "ca", X509_V_OK},
        {"server", "127.0.0.1", "ca", X509_V_OK},
        {"server", "::1", "ca", X509_V_OK},
        {"server", "elsewhere.example", "ca", X509_V_ERR_HOSTNAME_MISMATCH},
        {"server", "localhost", "other-ca",
            X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY},
        {"expired", "localhost", "ca", X509_V_ERR_CERT_HAS_EXPIRED},
        {"expiring", "localhost", "ca", X509_V_OK},
        {"not-yet-valid", "localhost", "ca", X509_V_ERR_CERT_NOT_YET_VALID},
        {"wrong-host", "localhost", "ca", X509_V_ERR_HOSTNAME_MISMATCH},
        {"wrong-host", "elsewhere.example", "ca", X509_V_OK},
        {"name-only", "localhost", "ca", X509_V_OK},
        {"name-only", "127.0.0.1", "ca", X509_V_ERR_IP_ADDRESS_MISMATCH},
        {"cn-only", "localhost", "ca", X509_V_OK},
        {"cn-only", "127.0.0.1", "ca", X509_V_ERR_IP_ADDRESS_MISMATCH},
        {"self-signed", "localhost", "ca",
            X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT},
        {"self-signed", "localhost", "self-signed", X509_V_OK},
        {"foreign", "localhost", "ca",
            X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY},
        {"foreign", "localhost", "other-ca", X509_V_OK},
        {"chained", "localhost", "ca", X509_V_OK},
        {"unchained", "localhost", "ca",
            X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY},
        {"client", "localhost", "ca", X509_V_ERR_INVALID_PURPOSE},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        certs_make(dir, cases[i].name, NULL);
        if (access(file(cases[i].ca, "pem"), F_OK) != 0)
            certs_make(dir, cases[i].ca, NULL);
        long found = verdict(cases[i].name, NULL, cases[i].ca, cases[i].host);
        if (found != cases[i].found && found != X509_V_OK)
            print_error("%s: %s\n", cases[i].name,
                X509_verify_cert_error_string(found));
        assert_int_equal(found, cases[i].found);
    }
}

static void test_clients(void **state)
{
    (void)state;
    certs_make(dir, "server", "client", "foreign-client", NULL);
    assert_int_equal(verdict("server", "client", "ca", NULL), X509_V_OK);
    assert_int_equal(verdict("server", "foreign-client", "ca", NULL),
        X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY);
    assert_int_equal(
        verdict("server", "server", "ca", NULL), X509_V_ERR_INVALID_PURPOSE);
}

static EVP_PKEY *key_with(const char *name, const char *password)
{
    FILE *in = fopen(file(name, "key"), "re");

    assert_non_null(in);
    EVP_PKEY *key =
        PEM_read_PrivateKey(in, NULL, NULL, (void *)(password ? password : ""));
    fclose(in);
    return key;
}

static void test_a_key_with_a_password(void **state)
{
    (void)state;
    certs_make(dir, "locked-client", NULL);
    assert_null(key_with("locked-client", NULL));
    assert_null(key_with("locked-client", "sesame"));
    EVP_PKEY *key = key_with("locked-client", CERTS_PASSWORD);
    assert_non_null(key);
    EVP_PKEY_free(key);
}

static X509 *read_certificate(const char *name)
{
    FILE *in = fopen(file(name, "pem"), "re");

    assert_non_null(in);
    X509 *certificate = PEM_read_X509(in, NULL, NULL, NULL);
    assert_non_null(certificate);
    fclose(in);
    return certificate;
}

/* A directory of authorities knows "ca" by its hashed name. */
static void test_a_directory_of_authorities(void **state)
{
    (void)state;
    char cas[LOCAL_PATH * 2];
    X509_STORE *store = X509_STORE_new();
    X509_STORE_CTX *judge = X509_STORE_CTX_new();

    certs_make(dir, "server", NULL);
    snprintf(cas, sizeof(cas), "%s/cas", dir);
    X509 *certificate = read_certificate("server");
    assert_int_equal(X509_STORE_load_path(store, cas), 1);
    assert_int_equal(X509_STORE_CTX_init(judge, store, certificate, NULL), 1);
    assert_int_equal(X509_verify_cert(judge), 1);
    X509_STORE_CTX_free(judge);
    X509_STORE_free(store);
    X509_free(certificate);
}

static void test_made_anew(void **state)
{
    (void)state;
    certs_make(dir, "server", NULL);
    X509 *authority = read_certificate("ca");
    X509 *before = read_certificate("server");
    certs_make(dir, "server", NULL);
    X509 *same = read_certificate("ca"), *after = read_certificate("server");
    assert_int_equal(X509_cmp(authority, same), 0);
    assert_int_not_equal(X509_cmp(before, after), 0);
    assert_int_equal(verdict("server", NULL, "ca", "localhost"), X509_V_OK);
    assert_int_not_equal(access(file("server", "pem.part"), F_OK), 0);
    certs_make(dir, "ca", NULL);
    assert_int_not_equal(verdict("server", NULL, "ca", "localhost"), X509_V_OK);
    X509_free(authority);
    X509_free(before);
    X509_free(same);
    X509_free(after);
}

/* Those of a list, as of a program's arguments; others are not made. */
static void test_a_list(void **state)
{
    (void)state;
    static const char *const names[] = {"foreign", "client", NULL};

    assert_int_equal(certs_make_all(dir, names), 0);
    assert_int_equal(access(file("foreign", "key"), R_OK), 0);
    assert_int_equal(access(file("client", "key"), R_OK), 0);
    assert_int_equal(access(file("ca", "key"), R_OK), 0);
    assert_int_not_equal(access(file("server", "pem"), F_OK), 0);
}

int main(void)
{
#define in_a_directory(test) cmocka_unit_test_setup_teardown(test, start, stop)
    const struct CMUnitTest tests[] = {
        in_a_directory(test_servers),
        in_a_directory(test_clients),
        in_a_directory(test_a_key_with_a_password),
        in_a_directory(test_a_directory_of_authorities),
        in_a_directory(test_made_anew),
        in_a_directory(test_a_list),
    };
    return cmocka_run_group_tests_name("support_certs", tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * OpenSSL's contexts: a client has one for all servers with the same settings
 * of TLS, shares it with no other client, and makes it anew when a file has
 * changed. A context that was seen before has a mark.
 */
#include "support/test.h"

#include <nxlock.h>
#include <openssl/ssl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/tls/parts.h"
#include "support/certs.h"
#include "support/local.h"
#include "support/tls_contexts.h"

static char dir[LOCAL_PATH];
static char ca[LOCAL_PATH], cert[LOCAL_PATH], key[LOCAL_PATH];
static int mark;

static int start(void **state)
{
    (void)state;
    local_dir_make(dir);
    local_path(ca, dir, "ca.pem");
    local_path(cert, dir, "client.pem");
    local_path(key, dir, "client.key");
    int rc = certs_make(dir, "ca", "other-ca", "client", NULL);
    if (rc == 0)
        tls_contexts_watch();
    return rc;
}

static int stop(void **state)
{
    (void)state;
    local_dir_remove(dir);
    return 0;
}

/* ------------------------------------------------------ which client has one
 */

/* A client of five servers, each with these parameters of TLS. None of them is
 * there: a context is made with the client. */
static nxl_client *client_of_five(const char *const parameters[5])
{
    char urls[5][2 * LOCAL_PATH + 128], why[512];
    const char *list[5];
    nxl_client *client = NULL;
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    options.errbuf = why;
    options.errbuf_size = sizeof(why);
    for (int i = 0; i < 5; i++) {
        snprintf(urls[i], sizeof(urls[i]), "rediss://127.0.0.%d?cacert=%s%s",
            i + 1, ca, parameters[i]);
        list[i] = urls[i];
    }
    if (nxl_client_new_urls(&client, list, 5, &options) != NXL_OK)
        fail_msg("%s", why);
    return client;
}

static const char *const alike[5] = {"", "", "", "", ""};

/* Parameters that are not of TLS do not count. */
static void servers_with_the_same_parameters_share_one(void **state)
{
    static const char suites[] = "&tls_ciphersuites=TLS_AES_128_GCM_SHA256";
    char directory[LOCAL_PATH + 16], own[2 * LOCAL_PATH + 16];
    (void)state;
    snprintf(directory, sizeof(directory), "&cacertdir=%s", dir);
    snprintf(own, sizeof(own), "&cert=%s&key=%s", cert, key);
    const struct {
        const char *parameters[5];
        int contexts;
    } rows[] = {
        {{"", "", "", "", ""}, 1},
        {{"", "&verify=ca", "&password=a", "&verify=ca&password=b", ""}, 2},
        {{"", "&tls_min=1.3", suites, directory, own}, 5},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        nxl_client *client = client_of_five(rows[i].parameters);
        if (tls_contexts != rows[i].contexts)
            fail_msg("row %zu: %d contexts", i, (int)tls_contexts);
        nxl_client_free(client);
        assert_int_equal(tls_contexts, 0);
    }
}

static void two_clients_have_two(void **state)
{
    (void)state;
    nxl_client *first = client_of_five(alike), *second = client_of_five(alike);
    assert_int_equal(tls_contexts, 2);
    nxl_client_free(first);
    assert_int_equal(tls_contexts, 1);
    nxl_client_free(second);
    assert_int_equal(tls_contexts, 0);
}

/* -------------------------------------------------------- when it is made anew
 */

static struct tls *tls_of(struct settings set)
{
    struct text error = {.len = 0};
    struct tls *tls = tls_new(&set, &error);
    if (!tls)
        fail_msg("%s", error.data);
    return tls;
}

#define tls_with(...) tls_of((struct settings){__VA_ARGS__})
#define trusting() tls_with(.cacert = ca)
#define known_by_key() tls_with(.cacert = ca, .cert = cert, .key = key)

static SSL_CTX *context_of(struct tls *tls)
{
    struct text error = {.len = 0};
    SSL_CTX *ctx = tls_context(tls, &error);
    if (!ctx)
        fail_msg("%s", error.data);
    return ctx;
}

static void put_mark(struct tls *tls)
{
    assert_int_equal(SSL_CTX_set_app_data(context_of(tls), &mark), 1);
}

static bool has_mark(struct tls *tls)
{
    return SSL_CTX_get_app_data(context_of(tls)) == &mark;
}

/* The contents, or only the mode. */
static void a_file_that_changes(void **state)
{
    (void)state;
    struct tls *first = trusting(), *second = known_by_key();
    put_mark(first);
    put_mark(second);
    assert_true(has_mark(first));
    assert_true(has_mark(second));
    assert_int_equal(chmod(key, 0400), 0);
    assert_false(has_mark(second));
    put_mark(second);
    assert_int_equal(certs_make(dir, "client", NULL), 0);
    assert_false(has_mark(second));
    assert_true(has_mark(first));
    assert_int_equal(chmod(ca, 0644), 0);
    assert_false(has_mark(first));
    assert_int_equal(tls_contexts, 2);
    tls_free(first);
    tls_free(second);
    assert_int_equal(tls_contexts, 0);
}

static void read_again(void **state)
{
    (void)state;
    struct tls *tls = trusting();
    put_mark(tls);
    tls_read_again(tls);
    assert_int_equal(tls_contexts, 0);
    assert_false(has_mark(tls));
    tls_free(tls);
    assert_int_equal(tls_contexts, 0);
}

/* Its files are not compared. It is made for the first connection. */
static void the_systems_trust(void **state)
{
    (void)state;
    struct tls *tls = tls_with(.tls_min = TLS_VERSION_1_3);
    assert_int_equal(tls_contexts, 0);
    put_mark(tls);
    assert_true(has_mark(tls));
    tls_free(tls);
    assert_int_equal(tls_contexts, 0);
}

/* A program may give up its rights once it has read the key. */
static void another_user(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(chmod(dir, 0711), 0);
    struct tls *tls = known_by_key();
    put_mark(tls);
    assert_int_equal(seteuid(65534), 0);
    bool marked = has_mark(tls);
    assert_int_equal(seteuid(0), 0);
    assert_true(marked);
    assert_int_equal(chmod(dir, 0700), 0);
    tls_free(tls);
}

/* A connection that is open keeps the context with which it was made, even if
 * that has been replaced, or its owner is gone. */
static void open_connections(void **state)
{
    (void)state;
    struct tls *tls = trusting();
    SSL *oldest = SSL_new(context_of(tls));
    assert_int_equal(chmod(ca, 0600), 0);
    SSL *old = SSL_new(context_of(tls));
    assert_int_equal(tls_contexts, 2);
    tls_read_again(tls);
    SSL *last = SSL_new(context_of(tls));
    assert_int_equal(tls_contexts, 3);
    SSL_free(oldest);
    assert_int_equal(tls_contexts, 2);
    tls_free(tls);
    assert_int_equal(tls_contexts, 2);
    SSL_free(old);
    SSL_free(last);
    assert_int_equal(tls_contexts, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(servers_with_the_same_parameters_share_one),
        cmocka_unit_test(two_clients_have_two),
        cmocka_unit_test(a_file_that_changes),
        cmocka_unit_test(read_again),
        cmocka_unit_test(the_systems_trust),
        cmocka_unit_test(another_user),
        cmocka_unit_test(open_connections),
    };
    return cmocka_run_group_tests_name("tls_context", tests, start, stop);
}

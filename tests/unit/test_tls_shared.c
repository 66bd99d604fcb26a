/* SPDX-License-Identifier: MIT */
/*
 * Who shares OpenSSL's contexts, and who must not: other parameters, a file
 * that has changed, a child of fork(), and nobody after the last client if
 * there is a private key. A context that was seen before has a mark.
 */
#include "support/test.h"

#include <openssl/ssl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "net/tls/parts.h"
#include "support/certs.h"
#include "support/local.h"

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
    return certs_make(dir, "ca", "other-ca", "client", NULL);
}

static int stop(void **state)
{
    (void)state;
    local_dir_remove(dir);
    return 0;
}

static struct tls *client_of(struct settings set)
{
    struct text error = {.len = 0};
    struct tls *tls = tls_new(&set, &error);
    if (!tls)
        fail_msg("%s", error.data);
    return tls;
}

#define client_with(...) client_of((struct settings){__VA_ARGS__})
#define trusting() client_with(.cacert = ca)
#define known_by_key() client_with(.cacert = ca, .cert = cert, .key = key)

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

/* Ends a client that was made for this question alone. */
static bool shares(struct tls *tls)
{
    bool marked = has_mark(tls);
    tls_free(tls);
    return marked;
}

/* No context of an earlier test is kept. */
static int forget(void **state)
{
    struct tls *tls = trusting();
    (void)state;
    tls_read_again(tls);
    tls_free(tls);
    tls = client_with(.verify = TLS_VERIFY_NONE, .tls_min = TLS_VERSION_1_3);
    (void)context_of(tls);
    tls_free(tls);
    return 0;
}

static void the_same_parameters(void **state)
{
    (void)state;
    struct tls *first = trusting(), *second = trusting();
    put_mark(first);
    assert_true(has_mark(second));
    tls_free(first);
    assert_true(has_mark(second));
    assert_true(shares(trusting()));
    tls_free(second);
}

static void other_parameters(void **state)
{
    (void)state;
    char other[LOCAL_PATH];
    local_path(other, dir, "other-ca.pem");
    struct tls *first = trusting();
    put_mark(first);
    assert_false(shares(client_with(.cacert = other)));
    assert_false(shares(client_with(.cacert = ca, .cacertdir = dir)));
    assert_false(shares(client_with(.cacert = ca, .verify = TLS_VERIFY_CA)));
    assert_false(shares(client_with(.cacert = ca, .tls_min = TLS_VERSION_1_3)));
    assert_false(shares(client_with(.cacert = ca,
        .tls_ciphersuites = (char[]){"TLS_AES_128_GCM_SHA256"})));
    assert_false(shares(known_by_key()));
    assert_true(shares(trusting()));
    tls_free(first);
}

/* Its files are not compared. */
static void the_systems_trust(void **state)
{
    (void)state;
    struct tls *first = client_with(.tls_min = TLS_VERSION_1_3);
    put_mark(first);
    assert_false(shares(client_with(.tls_min = TLS_VERSION_1_3)));
    assert_true(has_mark(first));
    tls_free(first);
}

/* The one that was used last. */
static void one_is_kept(void **state)
{
    (void)state;
    struct tls *first = trusting();
    put_mark(first);
    tls_free(first);
    assert_true(shares(trusting()));
    first = client_with(.cacert = ca, .verify = TLS_VERIFY_CA);
    put_mark(first);
    tls_free(first);
    assert_false(shares(trusting()));
}

static void a_key_is_not_kept(void **state)
{
    (void)state;
    struct tls *first = known_by_key();
    put_mark(first);
    assert_true(shares(known_by_key()));
    tls_free(first);
    assert_false(shares(known_by_key()));
}

/* Whoever may no longer read the key gets no context with it. */
static void a_file_that_changes(void **state)
{
    (void)state;
    struct tls *first = trusting(), *second = known_by_key();
    put_mark(first);
    put_mark(second);
    assert_int_equal(chmod(key, 0400), 0);
    assert_false(shares(known_by_key()));
    assert_false(has_mark(second));
    assert_true(has_mark(first));
    assert_int_equal(certs_make(dir, "client", NULL), 0);
    assert_true(shares(trusting()));
    assert_int_equal(chmod(ca, 0644), 0);
    assert_false(shares(trusting()));
    assert_false(has_mark(first));
    tls_free(first);
    tls_free(second);
}

static void a_spoiled_one(void **state)
{
    (void)state;
    struct tls *first = trusting(), *second = trusting();
    put_mark(first);
    tls_read_again(second);
    assert_false(shares(trusting()));
    assert_false(has_mark(first));
    put_mark(first);
    assert_true(has_mark(second));
    tls_free(first);
    tls_free(second);
}

/* Neither its parent's, nor one of its own. */
static void a_child_of_fork(void **state)
{
    (void)state;
    struct tls *first = trusting();
    put_mark(first);
    pid_t pid = test_fork();
    if (pid == 0) {
        struct tls *own = trusting();
        bool shared = has_mark(own);
        put_mark(own);
        shared = shares(trusting()) || shared;
        tls_free(own);
        _exit(shared ? 1 : 0);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_true(shares(trusting()));
    tls_free(first);
}

#define THREADS 4
#define TURNS 60

static void *come_and_go(void *arg)
{
    int number = *(int *)arg;
    struct text error = {.len = 0};
    for (int i = 0; i < TURNS; i++) {
        struct settings set = {
            .cacert = ca, .tls_min = (unsigned)(i + number) % 2};
        struct tls *tls = tls_new(&set, &error);
        if (!tls || !tls_context(tls, &error))
            return &mark;
        if (i % 7 == number)
            tls_read_again(tls);
        tls_free(tls);
    }
    return NULL;
}

static void threads(void **state)
{
    (void)state;
    pthread_t thread[THREADS];
    int number[THREADS];
    for (int i = 0; i < THREADS; i++) {
        number[i] = i;
        assert_int_equal(
            pthread_create(&thread[i], NULL, come_and_go, &number[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *failed = NULL;
        assert_int_equal(pthread_join(thread[i], &failed), 0);
        assert_null(failed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_same_parameters, forget),
        cmocka_unit_test_setup(other_parameters, forget),
        cmocka_unit_test_setup(the_systems_trust, forget),
        cmocka_unit_test_setup(one_is_kept, forget),
        cmocka_unit_test_setup(a_key_is_not_kept, forget),
        cmocka_unit_test_setup(a_file_that_changes, forget),
        cmocka_unit_test_setup(a_spoiled_one, forget),
        cmocka_unit_test_setup(a_child_of_fork, forget),
        cmocka_unit_test_setup(threads, forget),
    };
    return cmocka_run_group_tests_name("tls_shared", tests, start, stop);
}

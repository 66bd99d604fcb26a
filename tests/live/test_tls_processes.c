/* SPDX-License-Identifier: MIT */
/*
 * A program and OpenSSL: it may end while its locks are renewed, a client has
 * one context of OpenSSL, and OpenSSL's queue of errors is the program's, too.
 * That a child of fork() leaves its parent's session alone: test_fork.c.
 */
#include "live/tls_rig.h"

#include <openssl/err.h>
#include <sys/wait.h>

#include "live/renew_rig.h"
#include "support/tls_contexts.h"

#define TERMS TRUST "&timeout_ms=5000"

/* --------------------------------------------------------------------- exit
 */

#define HELD 40
#define EXITS 6

static nxl_lock *held[HELD];

/* Makes connections without end. One that fails ends the program with 9. */
static void *connect_for_ever(void *url)
{
    for (;;) {
        nxl_client *client;
        nxl_lock *lock;
        if (nxl_client_new(&client, url, NULL) != NXL_OK ||
            nxl_lock_new(&lock, client, "in use", NULL) != NXL_OK ||
            nxl_lock_acquire(lock, 5000) != NXL_OK ||
            nxl_lock_release(lock) != NXL_OK)
            _exit(9);
        nxl_lock_free(lock);
        nxl_client_free(client);
    }
    return NULL;
}

/* Runs after all that was registered later, as OpenSSL's own handler would be.
 * Meanwhile the threads go on. */
static void last_handler(void)
{
    test_pause_ms(60);
}

/* The program that ends: it renews locks all the time, and another thread makes
 * connections. It is executed anew, so that nothing has used OpenSSL before. */
static int exit_while_renewing(char *url, int ms)
{
    nxl_client *client;
    nxl_stats stats;
    pthread_t thread;
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    options.ttl_ms = 600;
    atexit(last_handler);
    options.renew = 1;
    if (nxl_client_new(&client, url, NULL) != NXL_OK)
        return 2;
    for (int i = 0; i < HELD; i++) {
        char name[32];
        snprintf(name, sizeof(name), "%d:%d", (int)getpid(), i);
        if (nxl_lock_new(&held[i], client, name, &options) != NXL_OK ||
            nxl_lock_acquire(held[i], 5000) != NXL_OK)
            return 3;
    }
    if (pthread_create(&thread, NULL, connect_for_ever, url) != 0)
        return 4;
    do
        test_pause_ms(1);
    while (nxl_client_stats(client, &stats, sizeof(stats)) == NXL_OK &&
           stats.renewals < HELD);
    test_pause_ms(ms);
    exit(0);
}

static void exits_while_renewing(void **state)
{
    for (int i = 0; i < EXITS; i++) {
        char ms[8], url[TLS_URL];
        int status = -1;
        tls_url(url, "127.0.0.1", server.tls_port, TERMS);
        snprintf(ms, sizeof(ms), "%d", i);
        pid_t pid = test_fork();
        if (pid == 0) {
            alarm(60);
            execl("/proc/self/exe", "test", "exit", url, ms, NULL);
            _exit(1);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
}

/* ----------------------------------------------------- OpenSSL's contexts
 */

static long long clients_of_server(void)
{
    return server_number(&server, "clients", "connected_clients");
}

/* Both clients are connected, and the one that waits listens: a SUBSCRIBE that
 * is cut off twice is not tried again for a while. */
static bool all_is_up(long long others)
{
    return clients_of_server() == others + 3 &&
           server_number(&server, "stats", "pubsub_channels") == 1;
}

/* All connections of a client share its context, a listener's and later ones
 * too; other clients have their own. It ends with the client, even if a
 * release was not answered. */
static void one_context_for_each_client(void **state)
{
    static struct waiter waiter;
    tls_contexts_watch();
    long long others = clients_of_server();
    nxl_client *first = tls_client(TRUST), *second = tls_client(TRUST);
    nxl_lock *holder = new_lock(first, "job", 30000);
    nxl_lock *next = new_lock(second, "job", 30000);
    assert_result(nxl_lock_acquire(holder, 0), NXL_OK, holder);
    waiter_start(&waiter, next, 30000);
    assert_eventually(all_is_up(others));
    assert_int_equal(tls_contexts, 2);
    for (int i = 0; i < 3; i++) {
        tls_hang_up();
        assert_result(nxl_lock_extend(holder, 30000), NXL_OK, holder);
        assert_eventually(all_is_up(others));
        assert_int_equal(tls_contexts, 2);
    }
    assert_result(nxl_lock_release(holder), NXL_OK, holder);
    assert_result(waiter_join(&waiter), NXL_OK, next);
    end(holder, first);
    assert_int_equal(tls_contexts, 1);
    redis_freeze(&server);
    end(next, second);
    redis_thaw(&server);
    assert_int_equal(tls_contexts, 0);
}

/* ----------------------------------------------------- OpenSSL's error queue
 */

static void leave_errors(void)
{
    for (int i = 0; i < 3; i++)
        ERR_raise(ERR_LIB_USER, ERR_R_INTERNAL_ERROR);
}

/* Entries that the program left are not taken for errors of a connection. */
static void errors_of_the_program(void **state)
{
    leave_errors();
    nxl_client *client = tls_client(TERMS);
    nxl_lock *lock = new_lock(client, "job", 30000);
    for (int i = 0; i < 3; i++) {
        leave_errors();
        assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
        leave_errors();
        test_pause_ms(3);
        assert_result(nxl_lock_release(lock), NXL_OK, lock);
    }
    assert_int_equal(stats_of(client).connections, 1);
    tls_hang_up();
    leave_errors();
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock); /* a handshake */
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_int_equal(stats_of(client).connections, 2);
    tls_present("expired");
    tls_hang_up();
    leave_errors();
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_UNREACHABLE, lock);
    assert_contains(nxl_lock_errmsg(lock), "expired on");
    end(lock, client);
    ERR_clear_error();
}

/* Nor does the library leave entries for the program to stumble over. */
static void errors_of_the_library(void **state)
{
    static const char *const parameters[] = {"cacert=@/none.pem",
        "cacert=@/client.key", TRUST "&cert=@/client.pem&key=@/ca.key",
        TRUST "&cert=@/locked-client.pem&key=@/locked-client.key",
        TRUST "&tls_ciphers=NONE"};
    char url[TLS_URL];
    nxl_client *client;
    ERR_clear_error();
    for (size_t i = 0; i < 5; i++) {
        tls_url(url, "127.0.0.1", server.tls_port, parameters[i]);
        assert_int_equal(nxl_client_new(&client, url, NULL), NXL_E_URL);
        assert_int_equal(ERR_peek_error(), 0);
    }
    tls_set("tls-auth-clients", "yes");
    for (int i = 0; i < 3; i++) {
        client = tls_client(i == 0 ? "verify=none" : TRUST);
        nxl_lock *lock = new_lock(client, "job", 30000);
        tls_set("tls-protocols", i == 1 ? "TLSv1.2" : "TLSv1.3");
        if (i == 2)
            tls_present("expired");
        assert_true(nxl_lock_acquire(lock, 0) < 0);
        assert_int_equal(ERR_peek_error(), 0);
        end(lock, client);
        assert_int_equal(ERR_peek_error(), 0);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        tls_test(exits_while_renewing),
        tls_test(errors_of_the_program),
        tls_test(errors_of_the_library),
        tls_test(one_context_for_each_client),
    };
    if (argc == 4 && strcmp(argv[1], "exit") == 0)
        return exit_while_renewing(argv[2], (int)strtol(argv[3], NULL, 10));
    return tls_run("TLS and processes");
}

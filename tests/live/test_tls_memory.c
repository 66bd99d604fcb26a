/* SPDX-License-Identifier: MIT */
/*
 * Memory that runs out in OpenSSL too, at one place after the other, once or
 * for good: making a client, connecting, acquiring and releasing over TLS end
 * in time with an error or manage without, and the same handle works
 * afterwards. Not at every place, unless NXLOCK_FULL is set: a handshake has
 * thousands.
 */
#include "live/live_rig.h"

#include "support/alloc.h"
#include "support/redis_tls.h"

enum { STEP = 61, STEP_FULL = 1, WAIT_MS = 200, TIMEOUT_MS = 500 };
#define PLACES_MAX 100000
#define ROUNDS 4

static unsigned step_size(void)
{
    return getenv("NXLOCK_FULL") ? STEP_FULL : STEP;
}

static int tls_start(void **state)
{
    if (!alloc_counts())
        return test_skip("a sanitizer has the allocator");
    return redis_start_tls(
        &server, &(struct redis_tls){.certificate = NULL}, NULL);
}

static nxl_client *tls_client(void)
{
    char url[sizeof(server.tls_url) + 32];
    snprintf(url, sizeof(url), "%s&timeout_ms=%d", server.tls_url, TIMEOUT_MS);
    return client_at(url);
}

/* If OpenSSL has no memory when it prepares itself, at its first use, it is
 * unusable for good in that process. So there has been a use. */
static int use_openssl(void **state)
{
    nxl_client *client = tls_client();
    nxl_lock *lock = new_lock(client, "k", 30000);
    int rc = nxl_lock_acquire(lock, 10000);
    end(lock, client);
    return rc == NXL_OK ? live_clean(state) : -1;
}

static void fail_places(unsigned n, bool for_good)
{
    assert_true(n < PLACES_MAX);
    if (for_good)
        alloc_fail_from(n);
    else
        alloc_fail_at(n);
}

static void assert_clean(int rc, const char *message)
{
    bool known = rc == NXL_OK || rc == NXL_E_NOMEM || rc == NXL_E_SYSTEM ||
                 rc == NXL_E_UNREACHABLE || rc == NXL_UNKNOWN ||
                 rc == NXL_E_URL;
    if (!known)
        print_error("%s: %s\n", nxl_strerror(rc), message);
    assert_true(known);
}

static void make_clients(bool for_good)
{
    bool failed = true;
    char why[512];
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    options.errbuf = why;
    options.errbuf_size = sizeof(why);
    for (unsigned n = 1; failed; n += step_size()) {
        nxl_client *client = NULL;
        strcpy(why, "");
        fail_places(n, for_good);
        int rc = nxl_client_new(&client, server.tls_url, &options);
        failed = alloc_stop();
        assert_clean(rc, why);
        assert_true((client != NULL) == (rc == NXL_OK));
        assert_true((why[0] != '\0') == (rc != NXL_OK));
        nxl_client_free(client);
    }
}

static void acquire(bool for_good)
{
    bool failed = true;
    for (unsigned n = 1; failed; n += step_size()) {
        nxl_client *client = tls_client();
        nxl_lock *lock = new_lock(client, "k", 30000);
        int64_t began = test_now_ms();
        fail_places(n, for_good);
        int rc = nxl_lock_acquire(lock, WAIT_MS);
        failed = alloc_stop();
        assert_between(
            test_now_ms() - began, 0, WAIT_MS + TIMEOUT_MS + 4 * LATE_MS);
        assert_clean(rc, nxl_lock_errmsg(lock));
        assert_true(failed || rc == NXL_OK);
        assert_true(nxl_lock_held(lock) == (rc == NXL_OK));
        if (rc != NXL_OK)
            assert_result(nxl_lock_acquire(lock, 10000), NXL_OK, lock);
        assert_result(nxl_lock_release(lock), NXL_OK, lock);
        end(lock, client);
    }
}

static void release(bool for_good)
{
    bool failed = true;
    nxl_client *client = tls_client();
    for (unsigned n = 1; failed; n++) {
        nxl_lock *lock = new_lock(client, "k", 30000);
        assert_result(nxl_lock_acquire(lock, 10000), NXL_OK, lock);
        fail_places(n, for_good);
        int rc = nxl_lock_release(lock);
        failed = alloc_stop();
        assert_clean(rc, nxl_lock_errmsg(lock));
        nxl_lock_free(lock); /* long before its end the next one has it */
    }
    nxl_client_free(client);
}

/* OpenSSL allocates some things once, and some a second time if that failed. A
 * leak is what grows with each round. */
static void without_a_leak(void (*play)(bool))
{
    for (int for_good = 0; for_good < 2; for_good++) {
        long blocks;
        int rounds = 0, fds = 0;
        play(for_good);
        do {
            assert_true(rounds++ < ROUNDS);
            blocks = alloc_blocks();
            fds = count_fds();
            play(for_good);
            assert_int_equal(count_fds(), fds);
        } while (alloc_blocks() > blocks);
    }
}

static void making_clients(void **state)
{
    without_a_leak(make_clients);
}

static void acquiring(void **state)
{
    without_a_leak(acquire);
}

static void releasing(void **state)
{
    without_a_leak(release);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(making_clients, use_openssl),
        cmocka_unit_test_setup(acquiring, use_openssl),
        cmocka_unit_test_setup(releasing, use_openssl),
    };
    return cmocka_run_group_tests_name(
        "tls_memory", tests, tls_start, live_stop);
}

/* SPDX-License-Identifier: MIT */
/*
 * A real server that is cut off in each step and then cannot be reached, for
 * a while or until the lease is over; and a server that comes back as another
 * process.
 */
#include "wire.h"

/* Connected over unix or TCP, and the name is free. */
static struct wire wire_open(int tcp, const char *params, int64_t ttl_ms)
{
    struct wire w = {.proxy = proxy_to(&server, tcp != 0)};
    char url[256];
    snprintf(url, sizeof(url), "%s?%s",
        tcp ? proxy_tcp_url(w.proxy) : proxy_url(w.proxy), params);
    w.client = client_of(url);
    w.lock = lock_of_name(w.client, "k", ttl_ms);
    redis_run(&server, "FLUSHALL", NULL);
    return w;
}

static void wire_close(struct wire *w)
{
    nxl_lock_free(w->lock);
    nxl_client_free(w->client);
    proxy_stop(w->proxy);
    assert_false(redis_exists(&server, "k"));
}

/* From now on nobody is let in, and the connection that there is ends after
 * so many bytes of replies. */
static void cut_off(struct wire *w, size_t bytes)
{
    proxy_refuse(w->proxy, true);
    proxy_cut_after(w->proxy, PROXY_DOWN, bytes);
}

static void assert_cycle(const struct wire *w)
{
    assert_ends(nxl_lock_acquire(w->lock, 0), NXL_OK, 1000);
    assert_true(nxl_lock_held(w->lock));
    assert_ends(nxl_lock_release(w->lock), NXL_OK, 1000);
    assert_false(redis_exists(&server, "k"));
}

/* For each of two places of the cut, over both transports. */
#define EACH_CUT(i, bytes)                                                     \
    for (int i = 0, bytes = 0; i < 4; i++, bytes = i / 2 * 2)

#define PARAMS "timeout_ms=200"

/* A first call is in doubt; a second one has sent nothing, and says so. */
static void a_try_cut_off(void **state)
{
    (void)state;
    EACH_CUT(i, bytes)
    {
        struct wire w = wire_open(i % 2, PARAMS, 30000);
        assert_cycle(&w);
        cut_off(&w, (size_t)bytes);
        assert_ends(nxl_lock_acquire(w.lock, 0), NXL_UNKNOWN, 50);
        assert_not_held(w.lock);
        assert_ends(nxl_lock_acquire(w.lock, 0), NXL_E_UNREACHABLE, 200);
        assert_contains(nxl_lock_errmsg(w.lock), "connect");
        assert_true(redis_exists(&server, "k"));
        proxy_refuse(w.proxy, false);
        assert_cycle(&w);
        wire_close(&w);
    }
}

/* The wait ends without a word about the first round: that stays in doubt,
 * although the later rounds have sent nothing. */
static void a_wait_cut_off(void **state)
{
    (void)state;
    EACH_CUT(i, bytes)
    {
        struct wire w = wire_open(i % 2, "timeout_ms=250", 30000);
        assert_recovers_in_time(&w);
        cut_off(&w, (size_t)bytes);
        assert_takes(nxl_lock_acquire(w.lock, 500), NXL_UNKNOWN, 250, 500);
        assert_true(redis_exists(&server, "k")); /* indeed */
        assert_takes(
            nxl_lock_acquire(w.lock, 500), NXL_E_UNREACHABLE, 250, 500);
        proxy_refuse(w.proxy, false);
        assert_recovers_in_time(&w);
        wire_close(&w);
    }
}

/* The server is back before the wait ends. */
static void a_wait_outlasts_it(void **state)
{
    (void)state;
    EACH_CUT(i, bytes)
    {
        struct wire w = wire_open(i % 2, PARAMS, 30000);
        assert_int_equal(acquire_by_loop(w.client, w.lock, 0), NXL_OK);
        assert_int_equal(nxl_lock_release_start(w.lock), NXL_PENDING);
        assert_int_equal(event_result(w.client, w.lock), NXL_OK);
        cut_off(&w, (size_t)bytes);
        assert_int_equal(nxl_lock_acquire_start(w.lock, 5000), NXL_PENDING);
        turn_until(w.client, redis_exists(&server, "k"));
        turn_until(w.client, proxy_connections(w.proxy) == 0);
        for (int j = 0; j < 20; j++)
            turn(w.client, 2);
        proxy_refuse(w.proxy, false);
        assert_int_equal(event_result(w.client, w.lock), NXL_OK);
        char value[256];
        assert_true(redis_get(&server, "k", value, sizeof(value)));
        assert_string_equal(value, nxl_lock_token(w.lock));
        wire_close(&w);
    }
}

static void an_extension_cut_off(void **state)
{
    (void)state;
    EACH_CUT(i, bytes)
    {
        struct wire w = wire_open(i % 2, PARAMS, 30000);
        assert_ends(nxl_lock_acquire(w.lock, 0), NXL_OK, 200);
        uint64_t deadline = nxl_lock_deadline(w.lock);
        cut_off(&w, (size_t)bytes);
        assert_ends(nxl_lock_extend(w.lock, 60000), NXL_UNKNOWN, 200);
        assert_ends(nxl_lock_extend(w.lock, 60000), NXL_E_UNREACHABLE, 200);
        assert_true(nxl_lock_held(w.lock));
        assert_true(nxl_lock_deadline(w.lock) == deadline);
        assert_true(redis_pttl(&server, "k") > 31000); /* it was done */
        proxy_refuse(w.proxy, false);
        assert_ends(nxl_lock_extend(w.lock, 60000), NXL_OK, 200);
        assert_between(nxl_lock_remaining_ms(w.lock), 58000, 59398);
        assert_ends(nxl_lock_release(w.lock), NXL_OK, 200);
        wire_close(&w);
    }
}

/* It was done, but nobody can know; and where it was not, it is completed. */
static void a_release_cut_off(void **state)
{
    (void)state;
    EACH_CUT(i, bytes)
    {
        struct wire w = wire_open(i % 2, PARAMS, 30000);
        assert_ends(nxl_lock_acquire(w.lock, 0), NXL_OK, 200);
        cut_off(&w, (size_t)bytes);
        assert_ends(nxl_lock_release(w.lock), NXL_UNKNOWN, 200);
        assert_not_held(w.lock);
        proxy_refuse(w.proxy, false);
        assert_cycle(&w);
        wire_close(&w);
    }
    for (int tcp = 0; tcp < 2; tcp++) {
        struct wire w = wire_open(tcp, PARAMS, 30000);
        assert_ends(nxl_lock_acquire(w.lock, 0), NXL_OK, 200);
        proxy_refuse(w.proxy, true);
        proxy_cut(w.proxy, tcp);
        rig_idle();
        assert_ends(nxl_lock_release(w.lock), NXL_E_UNREACHABLE, 200);
        assert_not_held(w.lock);
        assert_true(redis_exists(&server, "k"));
        proxy_refuse(w.proxy, false);
        nxl_lock *other = lock_of_name(w.client, "other", 20000);
        assert_ends(nxl_lock_acquire(other, 0), NXL_OK, 200);
        assert_false(redis_exists(&server, "k")); /* the debt came first */
        nxl_lock_free(other);
        wire_close(&w);
    }
}

static void an_inspection_cut_off(void **state)
{
    (void)state;
    EACH_CUT(i, bytes)
    {
        struct wire w = wire_open(i % 2, PARAMS, 30000);
        nxl_holder holder = NXL_HOLDER_INIT;
        assert_ends(nxl_lock_acquire(w.lock, 0), NXL_OK, 200);
        cut_off(&w, (size_t)bytes);
        assert_ends(nxl_lock_inspect(w.lock, &holder), NXL_E_UNREACHABLE, 200);
        assert_true(nxl_lock_held(w.lock));
        proxy_refuse(w.proxy, false);
        assert_ends(nxl_lock_inspect(w.lock, &holder), NXL_OK, 200);
        assert_true(holder.ours);
        assert_ends(nxl_lock_release(w.lock), NXL_OK, 200);
        wire_close(&w);
    }
}

/* Nothing can be sent: every call says so at once, and nothing is in doubt. */
static void cut_off_while_idle(void **state)
{
    (void)state;
    for (int tcp = 0; tcp < 2; tcp++) {
        struct wire w = wire_open(tcp, PARAMS, 30000);
        nxl_holder holder = NXL_HOLDER_INIT;
        assert_ends(nxl_lock_acquire(w.lock, 0), NXL_OK, 200);
        proxy_refuse(w.proxy, true);
        proxy_cut(w.proxy, tcp);
        rig_idle();
        uint64_t deadline = nxl_lock_deadline(w.lock);
        assert_ends(nxl_lock_extend(w.lock, 0), NXL_E_UNREACHABLE, 200);
        assert_ends(nxl_lock_inspect(w.lock, &holder), NXL_E_UNREACHABLE, 200);
        assert_true(nxl_lock_held(w.lock));
        assert_true(nxl_lock_deadline(w.lock) == deadline);
        nxl_lock *other = lock_of_name(w.client, "other", 20000);
        assert_ends(nxl_lock_acquire(other, 0), NXL_E_UNREACHABLE, 200);
        proxy_refuse(w.proxy, false);
        assert_ends(nxl_lock_acquire(other, 0), NXL_OK, 200);
        assert_ends(nxl_lock_release(other), NXL_OK, 200);
        nxl_lock_free(other);
        assert_ends(nxl_lock_release(w.lock), NXL_OK, 200);
        wire_close(&w);
    }
}

/* Nobody is left to undo it: the lease ends it. */
static void undone_by_its_ttl(void **state)
{
    (void)state;
    struct wire w = wire_open(0, PARAMS, 700);
    assert_cycle(&w);
    cut_off(&w, 0);
    assert_ends(nxl_lock_acquire(w.lock, 0), NXL_UNKNOWN, 50);
    int64_t start = test_now_ms();
    nxl_lock_free(w.lock);
    nxl_client_free(w.client);
    assert_between(test_now_ms() - start, 0, 200 + slack_ms());
    assert_true(redis_exists(&server, "k"));
    assert_eventually(!redis_exists(&server, "k"));
    assert_between(test_now_ms() - start, 0, 900 + slack_ms());
    proxy_stop(w.proxy);
}

/* Another process answers at the same place: ids mean nothing there. */
static void it_comes_back_as_another_process(void **state)
{
    (void)state;
    for (int tcp = 0; tcp < 2; tcp++) {
        struct wire w = wire_open(tcp, "timeout_ms=1000", 30000);
        assert_cycle(&w);
        cut_off(&w, 0);
        assert_ends(nxl_lock_acquire(w.lock, 0), NXL_UNKNOWN, 50);
        redis_kill(&server);
        proxy_refuse(w.proxy, false);
        assert_ends(nxl_lock_acquire(w.lock, 0), NXL_E_UNREACHABLE, 1000);
        redis_restart(&server);
        assert_cycle(&w);
        assert_int_equal(redis_calls(&server, "client|kill"), 0);
        wire_close(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_try_cut_off),
        cmocka_unit_test(a_wait_cut_off),
        cmocka_unit_test(a_wait_outlasts_it),
        cmocka_unit_test(an_extension_cut_off),
        cmocka_unit_test(a_release_cut_off),
        cmocka_unit_test(an_inspection_cut_off),
        cmocka_unit_test(cut_off_while_idle),
        cmocka_unit_test(undone_by_its_ttl),
        cmocka_unit_test(it_comes_back_as_another_process),
    };
    return cmocka_run_group_tests_name(
        "cut_refused", tests, start_server, stop_server);
}

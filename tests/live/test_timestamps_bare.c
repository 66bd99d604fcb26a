/* SPDX-License-Identifier: MIT */
/*
 * Locks by time where WATCH is refused: GETSET takes over, and what it may
 * have written over another one's time is never deleted.
 */
#include "live/orphan_rig.h"
#include "live/timestamps_rig.h"
#include "wire/timestamps/timestamps.h"

static int refuse_watch(void **state)
{
    live_clean(state);
    without_watch();
    return 0;
}

#define bare_test(function) cmocka_unit_test_setup(function, refuse_watch)

static void takeover_lasts_as_long_as_the_longest_lock(void **state)
{
    char text[512];
    nxl_client *client = new_client(STAMPS);
    nxl_lock *lock = new_lock(client, "job", 5000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_extend(lock, 20000), NXL_OK, lock);
    assert_true(stamp_at("job") >= server_now_s() + 20);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_false(redis_exists(&server, "job"));
    redis_run(&server, "SET", "job", "1600000000", NULL);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_int_equal(redis_calls(&server, "getset"), 2);
    /* So long that whoever comes too late cannot shorten it. */
    assert_true(stamp_at("job") >= server_now_s() + 60);
    assert_result(nxl_lock_extend(lock, 20000), NXL_OK, lock);
    assert_between(nxl_lock_remaining_ms(lock), 15000, 20000);
    assert_int_equal(redis_calls(&server, "getset"), 2);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_false(redis_exists(&server, "job"));
    nxl_client_describe(client, text, sizeof(text));
    assert_contains(text, "without WATCH (weakest promises)");
    end(lock, client);
}

static void listen_to(void *arg, const char *text)
{
    snprintf(arg, 512, "%s", text);
}

/* Before anything was to be changed: at the first grant. */
static void weakness_is_warned_of_at_the_first_grant(void **state)
{
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    nxl_client *client;
    char told[512] = "", url[512];
    options.warning = listen_to;
    options.warning_arg = told;
    snprintf(url, sizeof(url), "%s?" STAMPS, server_url);
    assert_int_equal(nxl_client_new(&client, url, &options), NXL_OK);
    nxl_lock *lock = new_lock(client, "job", 5000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_contains(told, "without WATCH (weakest promises)");
    assert_int_equal(redis_calls(&server, "evalsha"), 0);
    end(lock, client);
}

static void *prolong(void *argument)
{
    struct waiter *w = argument;
    w->result = nxl_lock_extend(w->lock, w->wait_ms);
    return NULL;
}

static void waiter_prolong(struct waiter *w, nxl_lock *lock, int64_t ttl_ms)
{
    *w = (struct waiter){.lock = lock, .wait_ms = ttl_ms};
    assert_int_equal(pthread_create(&w->thread, NULL, prolong, w), 0);
}

/* Two clients read a time that is past. The winner takes over while the loser's
 * GETSET is held up, which then replaces the winner's value. */
struct contest {
    struct stalled loser;
    nxl_client *client;
    nxl_lock *winner;
};

static void contest_start(
    struct contest *c, const char *parameters, int64_t wait_ms)
{
    stall(&c->loser, parameters, wait_ms);
    c->client = new_client(STAMPS);
    c->winner = new_lock(c->client, "k", 40000);
    assert_result(nxl_lock_acquire(c->winner, 0), NXL_OK, c->winner);
}

static void contest_loses(struct contest *c)
{
    proxy_hold(c->loser.proxy, PROXY_UP, false);
    assert_int_equal(waiter_join(c->loser.waiter), NXL_BUSY);
}

static void contest_end(struct contest *c)
{
    stall_end(&c->loser);
    end(c->winner, c->client);
}

/* The winner keeps the name for as long as it asked for, although its value is
 * gone. The loser's token is not used again. */
static void loser_shortens_nothing(void **state)
{
    struct contest c;
    char token[64];
    contest_start(&c, STAMPS "&timeout_ms=2000", 0);
    nxl_lock *loser = c.loser.lock;
    int64_t end_s = stamp_at("k");
    contest_loses(&c);
    snprintf(token, sizeof(token), "%s", nxl_lock_token(loser));
    assert_true(stamp_at("k") + 2 >= end_s);
    assert_true(stamp_at("k") >= server_now_s() + 40);
    assert_result(nxl_lock_acquire(loser, 0), NXL_BUSY, loser);
    assert_result(nxl_lock_acquire(loser, 50), NXL_BUSY, loser);
    assert_string_not_equal(token, nxl_lock_token(loser));
    assert_true(nxl_lock_held(c.winner));
    /* The winner cannot know that nobody took it over meanwhile. */
    assert_result(nxl_lock_release(c.winner), NXL_LOST, c.winner);
    contest_end(&c);
    assert_true(redis_exists(&server, "k"));
}

/* In the same call: under another token, for the first one protects the
 * winner's lock. */
static void loser_tries_again_with_another_token(void **state)
{
    struct contest c;
    char value[STAMP_VALUE];
    contest_start(&c, STAMPS "&timeout_ms=2000", 300);
    contest_loses(&c);
    assert_true(redis_get(&server, "k", value, sizeof(value)));
    struct slice there = slice_of(value);
    assert_false(stamp_is_of(there, slice_of(nxl_lock_token(c.winner))));
    assert_false(stamp_is_of(there, slice_of(nxl_lock_token(c.loser.lock))));
    contest_end(&c);
    assert_value("k", value);
}

/* What the handle knows of its own token does not count for another's. */
static void loser_adopts_another_token(void **state)
{
    struct contest c;
    contest_start(&c, STAMPS "&timeout_ms=2000", 0);
    nxl_lock *owner = new_lock(c.client, "k", 40000), *loser = c.loser.lock;
    contest_loses(&c);
    redis_run(&server, "DEL", "k", NULL);
    assert_result(nxl_lock_acquire(owner, 0), NXL_OK, owner);
    assert_result(nxl_lock_adopt(loser, nxl_lock_token(owner)), NXL_OK, loser);
    assert_result(nxl_lock_extend(loser, 0), NXL_OK, loser);
    assert_result(nxl_lock_release(loser), NXL_OK, loser);
    assert_false(redis_exists(&server, "k"));
    nxl_lock_free(owner);
    contest_end(&c);
}

/* Its owner slept between reading and prolonging: what GETSET brings back is
 * another one's. */
static void extend_that_comes_too_late_is_lost(void **state)
{
    static struct waiter waiter;
    struct proxy *proxy = proxy_to_server();
    nxl_client *client = via(proxy, STAMPS "&timeout_ms=2000");
    nxl_lock *lock = new_lock(client, "k", 20000);
    nxl_client *other = new_client(STAMPS);
    nxl_lock *heir = new_lock(other, "k", 20000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(
        nxl_lock_extend(lock, 0), NXL_OK, lock); /* by which strategy */
    uint64_t up = proxy_bytes(proxy, PROXY_UP);
    uint64_t down = proxy_bytes(proxy, PROXY_DOWN);
    proxy_hold(proxy, PROXY_DOWN, true);
    waiter_prolong(&waiter, lock, 60000);
    assert_true(proxy_await(proxy, PROXY_DOWN, down + 50));
    proxy_hold(proxy, PROXY_UP, true);
    up = proxy_bytes(proxy, PROXY_UP);
    proxy_hold(proxy, PROXY_DOWN, false);
    assert_true(proxy_await(proxy, PROXY_UP, up + 80));
    redis_run(&server, "SET", "k", "1600000000", NULL); /* as if it were over */
    assert_result(nxl_lock_acquire(heir, 0), NXL_OK, heir);
    proxy_hold(proxy, PROXY_UP, false);
    assert_int_equal(waiter_join(&waiter), NXL_LOST);
    assert_false(nxl_lock_held(lock));
    assert_true(nxl_lock_held(heir));
    end(lock, client);
    end(heir, other);
    proxy_stop(proxy);
}

/* The same with its connection cut while the answer was awaited. */
static void getset_whose_answer_is_cut_is_not_undone(void **state)
{
    struct stalled s;
    stall(&s, STAMPS "&timeout_ms=500", 0);
    int64_t deleted = redis_calls(&server, "del");
    proxy_drop(s.proxy, PROXY_DOWN, true);
    proxy_hold(s.proxy, PROXY_UP, false);
    assert_eventually(stamp_at("k") > 0);
    proxy_cut(s.proxy, false);
    proxy_drop(s.proxy, PROXY_DOWN, false);
    assert_int_equal(waiter_join(s.waiter), NXL_UNKNOWN);
    assert_eventually(call(s.lock) == NXL_OK);
    assert_result(nxl_lock_acquire(s.lock, 0), NXL_BUSY, s.lock);
    stall_end(&s);
    assert_true(redis_exists(&server, "k"));
    assert_int_equal(redis_calls(&server, "del"), deleted);
}

/* What is over cannot be removed safely by anybody who did not read it in a
 * transaction. */
static void past_time_is_not_broken(void **state)
{
    nxl_holder holder = NXL_HOLDER_INIT;
    nxl_client *client = new_client(STAMPS);
    nxl_lock *lock = new_lock(client, "job", 5000);
    redis_run(&server, "ACL", "SETUSER", "default", "-@scripting", NULL);
    redis_run(&server, "SET", "job", "1600000000", NULL);
    assert_result(nxl_lock_inspect(lock, &holder), NXL_OK, lock);
    assert_true(nxl_lock_break(lock, &holder) < NXL_OK);
    assert_value("job", "1600000000");
    end(lock, client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        bare_test(takeover_lasts_as_long_as_the_longest_lock),
        bare_test(weakness_is_warned_of_at_the_first_grant),
        bare_test(loser_shortens_nothing),
        bare_test(loser_tries_again_with_another_token),
        bare_test(loser_adopts_another_token),
        bare_test(extend_that_comes_too_late_is_lost),
        bare_test(getset_whose_answer_is_cut_is_not_undone),
        bare_test(past_time_is_not_broken),
    };
    return live_run("timestamps without WATCH");
}

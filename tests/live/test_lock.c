/* SPDX-License-Identifier: MIT */
/*
 * Acquire, extend and release on a real server: what stands at the server and
 * what the handle says agree, and nobody else's key is ever touched.
 */
#include "live/live_rig.h"

#include "support/proxy.h"

#define SHORT_MS 200 /* runs out soon, but not before the next command */

static void free_name_is_taken(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "job", 5000);
    assert_string_equal(nxl_lock_token(lock), "");
    assert_false(nxl_lock_held(lock));
    assert_int_equal(nxl_lock_remaining_ms(lock), 0);
    assert_int_equal(nxl_lock_deadline(lock), 0);

    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_true(nxl_lock_held(lock));
    assert_value("job", nxl_lock_token(lock));
    assert_between(redis_pttl(&server, "job"), 2500, 5000);
    assert_between(nxl_lock_remaining_ms(lock), 3900, 4948);
    assert_string_equal(nxl_lock_errmsg(lock), "");

    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_false(redis_exists(&server, "job"));
    assert_false(nxl_lock_held(lock));
    assert_int_equal(nxl_lock_remaining_ms(lock), 0);
    assert_int_equal(nxl_lock_deadline(lock), 0);
    end(lock, client);
}

static void held_name_is_busy(void **state)
{
    nxl_client *one = new_client(""), *two = new_client("");
    nxl_lock *mine = new_lock(one, "job", 5000);
    nxl_lock *theirs = new_lock(two, "job", 5000);
    nxl_lock *sister = new_lock(one, "job", 5000);

    assert_result(nxl_lock_acquire(mine, 0), NXL_OK, mine);
    assert_result(nxl_lock_acquire(theirs, 0), NXL_BUSY, theirs);
    assert_contains(nxl_lock_errmsg(theirs), "another client holds the lock");
    assert_false(nxl_lock_held(theirs));
    assert_result(nxl_lock_acquire(sister, 0), NXL_BUSY, sister);
    assert_value("job", nxl_lock_token(mine));

    assert_result(nxl_lock_release(mine), NXL_OK, mine);
    assert_result(nxl_lock_acquire(theirs, 0), NXL_OK, theirs);
    assert_value("job", nxl_lock_token(theirs));
    nxl_lock_free(sister);
    end(mine, one);
    end(theirs, two);
    assert_false(redis_exists(&server, "job"));
}

static size_t holds(nxl_client *client, const char *name)
{
    return nxl_client_holds(client, name, strlen(name));
}

/* By another handle: a second one would wait for the first. */
static void the_client_itself_holds_it(void **state)
{
    nxl_client *client = new_client("prefix=p:"), *other = new_client("");
    nxl_lock *mine = new_lock(client, "job", 5000);
    nxl_lock *second = new_lock(client, "job", 5000);
    nxl_lock *theirs = new_lock(other, "p:job", 5000);
    assert_int_equal(holds(client, "job"), 0);
    assert_result(nxl_lock_acquire(mine, 0), NXL_OK, mine);
    assert_int_equal(holds(client, "job"), 1);
    assert_int_equal(holds(client, "p:job"), 0);
    assert_int_equal(holds(client, "jo"), 0);
    assert_int_equal(holds(client, ""), 0);
    assert_int_equal(holds(other, "p:job"), 0);
    assert_int_equal(nxl_client_holds(NULL, "job", 3), 0);
    assert_int_equal(nxl_client_holds(client, NULL, 3), 0);

    assert_result(nxl_lock_acquire(second, 0), NXL_BUSY, second);
    assert_contains(nxl_lock_errmsg(second), "held by this client itself for ");
    assert_contains(nxl_lock_errmsg(second), "s, by another handle; release");
    assert_result(nxl_lock_acquire(theirs, 0), NXL_BUSY, theirs);
    assert_contains(nxl_lock_errmsg(theirs), "another client holds the lock");

    assert_result(nxl_lock_release(mine), NXL_OK, mine);
    assert_int_equal(holds(client, "job"), 0);
    assert_result(nxl_lock_acquire(theirs, 0), NXL_OK, theirs);
    assert_int_equal(holds(client, "job"), 0);
    assert_result(nxl_lock_acquire(second, 0), NXL_BUSY, second);
    assert_contains(nxl_lock_errmsg(second), "another client holds the lock");
    assert_result(nxl_lock_release(theirs), NXL_OK, theirs);

    /* A lease that is over, though the key was not looked at. */
    nxl_lock *brief = new_lock(client, "job", SHORT_MS);
    assert_result(nxl_lock_acquire(brief, 0), NXL_OK, brief);
    assert_int_equal(holds(client, "job"), 1);
    assert_eventually(!nxl_lock_held(brief));
    assert_int_equal(holds(client, "job"), 0);
    nxl_lock_free(brief);
    nxl_lock_free(second);
    end(mine, client);
    end(theirs, other);
}

static void own_name_is_not_taken_twice(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "job", 5000);
    char token[200];

    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    uint64_t deadline = nxl_lock_deadline(lock);
    snprintf(token, sizeof(token), "%s", nxl_lock_token(lock));
    assert_result(nxl_lock_acquire(lock, 100), NXL_E_INVALID, lock);
    assert_contains(nxl_lock_errmsg(lock), "already held");
    assert_value("job", token);
    assert_string_equal(nxl_lock_token(lock), token);
    assert_int_equal(nxl_lock_deadline(lock), deadline);
    assert_true(nxl_lock_held(lock));
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    end(lock, client);
}

static void try_sends_one_set(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "job", 5000);

    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_int_equal(redis_calls(&server, "set"), 1);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    stranger_sets("job", "somebody", 5000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_BUSY, lock);
    assert_int_equal(redis_calls(&server, "set"), 3); /* one is a stranger's */
    assert_int_equal(redis_calls(&server, "pttl"), 0);
    assert_int_equal(redis_calls(&server, "get"), 0);
    assert_int_equal(redis_calls(&server, "del"), 1);
    end(lock, client);
    assert_value("job", "somebody");
}

/* ------------------------------------------------------------------ tokens */

static void assert_uuid4(const char *text)
{
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < 36; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash)
            assert_int_equal(text[i], '-');
        else
            assert_true(text[i] != '\0' && strchr(digits, text[i]));
    }
    assert_int_equal(text[14], '4');
    assert_true(text[19] != '\0' && strchr("89ab", text[19]));
}

static void token_is_a_fresh_uuid(void **state)
{
    enum { CYCLES = 20 };
    static char seen[CYCLES][40];
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "job", 5000);

    for (int i = 0; i < CYCLES; i++) {
        assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
        assert_int_equal(strlen(nxl_lock_token(lock)), 36);
        assert_uuid4(nxl_lock_token(lock));
        assert_value("job", nxl_lock_token(lock));
        for (int j = 0; j < i; j++)
            assert_string_not_equal(seen[j], nxl_lock_token(lock));
        memcpy(seen[i], nxl_lock_token(lock), 37);
        assert_result(nxl_lock_release(lock), NXL_OK, lock);
    }
    assert_int_equal(redis_clients(&server), 1);
    end(lock, client);
}

static void token_carries_the_label(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = lock_with(client, "job", .label = "db7:41233:backup");
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_uuid4(nxl_lock_token(lock));
    assert_string_equal(nxl_lock_token(lock) + 36, "@db7:41233:backup");
    assert_value("job", nxl_lock_token(lock));
    assert_result(nxl_lock_extend(lock, 40000), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_false(redis_exists(&server, "job"));
    end(lock, client);
}

/* ------------------------------------------------------------------ extend */

static void extend_prolongs(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "job", 2000);

    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    uint64_t before = nxl_now_ns();
    assert_result(nxl_lock_extend(lock, 10000), NXL_OK, lock);
    uint64_t after = nxl_now_ns();
    assert_between(redis_pttl(&server, "job"), 7500, 10000);
    assert_true(nxl_lock_deadline(lock) >= before + LEASE_NS(10000));
    assert_true(nxl_lock_deadline(lock) <= after + LEASE_NS(10000));
    assert_value("job", nxl_lock_token(lock));

    /* 0: the lock's own, which is shorter than what stands */
    uint64_t deadline = nxl_lock_deadline(lock);
    assert_result(nxl_lock_extend(lock, 0), NXL_OK, lock);
    assert_int_equal(nxl_lock_deadline(lock), deadline);
    assert_between(redis_pttl(&server, "job"), 8900, 10000);
    assert_result(nxl_lock_extend(lock, 20000), NXL_OK, lock);
    assert_between(redis_pttl(&server, "job"), 15000, 20000);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    end(lock, client);
}

static void extend_by_the_own_ttl(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "job", 5000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    uint64_t first = nxl_lock_deadline(lock);
    /* Most of it is over, as the server sees it. */
    assert_int_equal(redis_run(&server, "PEXPIRE", "job", "300", NULL), 1);
    uint64_t before = nxl_now_ns();
    assert_result(nxl_lock_extend(lock, 0), NXL_OK, lock);
    assert_between(redis_pttl(&server, "job"), 2500, 5000);
    assert_true(nxl_lock_deadline(lock) > first);
    assert_true(nxl_lock_deadline(lock) >= before + LEASE_NS(5000));
    end(lock, client);
}

static void extend_never_shortens(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "job", 10000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    uint64_t deadline = nxl_lock_deadline(lock);
    assert_result(nxl_lock_extend(lock, 1000), NXL_OK, lock);
    assert_between(redis_pttl(&server, "job"), 7500, 10000);
    assert_int_equal(nxl_lock_deadline(lock), deadline);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    end(lock, client);
}

static void extend_of_a_removed_lock(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "job", 5000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_int_equal(redis_run(&server, "DEL", "job", NULL), 1);
    assert_result(nxl_lock_extend(lock, 5000), NXL_LOST, lock);
    assert_false(nxl_lock_held(lock));
    assert_int_equal(nxl_lock_deadline(lock), 0);
    assert_false(redis_exists(&server, "job"));
    assert_result(nxl_lock_release(lock), NXL_LOST, lock);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    end(lock, client);
}

static void extend_of_a_lock_taken_over(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "job", 5000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    stranger_sets("job", "somebody", 3000);
    assert_result(nxl_lock_extend(lock, 60000), NXL_LOST, lock);
    assert_false(nxl_lock_held(lock));
    assert_result(nxl_lock_extend(lock, 60000), NXL_LOST, lock);
    assert_contains(nxl_lock_errmsg(lock), "removed or taken");
    assert_value("job", "somebody");
    assert_between(redis_pttl(&server, "job"), 1, 3000);

    /* Nor does a value that begins with the token pass for it. */
    char longer[200];
    assert_result(nxl_lock_release(lock), NXL_LOST, lock);
    assert_int_equal(redis_run(&server, "DEL", "job", NULL), 1);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    snprintf(longer, sizeof(longer), "%s@x", nxl_lock_token(lock));
    stranger_sets("job", longer, 3000);
    assert_result(nxl_lock_extend(lock, 60000), NXL_LOST, lock);
    assert_result(nxl_lock_release(lock), NXL_LOST, lock);
    assert_value("job", longer);
    end(lock, client);
    assert_value("job", longer);
}

/* A process that was stopped over the end of its lease must not revive it. */
static void extend_after_the_deadline(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "job", SHORT_MS);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_int_equal(redis_run(&server, "PERSIST", "job", NULL), 1);
    assert_eventually(nxl_now_ns() >= nxl_lock_deadline(lock));
    assert_result(nxl_lock_extend(lock, 5000), NXL_LOST, lock);
    assert_false(nxl_lock_held(lock));
    assert_int_equal(redis_calls(&server, "pexpire"), 0);
    assert_int_equal(redis_pttl(&server, "job"), -1);
    assert_result(nxl_lock_extend(lock, 5000), NXL_LOST, lock);
    assert_result(nxl_lock_release(lock), NXL_LOST, lock);
    assert_contains(nxl_lock_errmsg(lock), "expired before the release");
    end(lock, client);
    assert_int_equal(redis_pttl(&server, "job"), -1); /* somebody else's */
}

/* ----------------------------------------------------------------- release */

static void release_needs_a_held_lock(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "job", 5000);
    assert_result(nxl_lock_release(lock), NXL_E_INVALID, lock);
    assert_result(nxl_lock_extend(lock, 0), NXL_E_INVALID, lock);
    assert_contains(nxl_lock_errmsg(lock), "is not held");
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_E_INVALID, lock);
    assert_contains(nxl_lock_errmsg(lock), "is not held");
    assert_result(nxl_lock_extend(lock, 0), NXL_E_INVALID, lock);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    end(lock, client);
}

static void release_of_a_lock_that_ran_out(void **state)
{
    nxl_client *client = new_client(""), *other = new_client("");
    nxl_lock *lock = new_lock(client, "job", SHORT_MS);
    nxl_lock *next = new_lock(other, "job", 5000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_eventually(!redis_exists(&server, "job"));
    assert_result(nxl_lock_release(lock), NXL_LOST, lock);

    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_acquire(next, 2000), NXL_OK, next);
    assert_false(nxl_lock_held(lock));
    assert_result(nxl_lock_release(lock), NXL_LOST, lock);
    assert_value("job", nxl_lock_token(next));
    assert_true(nxl_lock_held(next));
    end(lock, client);
    assert_value("job", nxl_lock_token(next));
    assert_result(nxl_lock_release(next), NXL_OK, next);
    end(next, other);
}

static void freeing_a_held_lock_releases_it(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "job", 60000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    nxl_lock_free(lock);
    assert_eventually(!redis_exists(&server, "job"));

    lock = new_lock(client, "job", 60000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    stranger_sets("job", "somebody", 5000);
    end(lock, client);
    assert_value("job", "somebody");
}

/* ---------------------------------------------------------------- deadline */

/* The reply comes 200 ms late. The server counts from when it was asked, and
 * so must the deadline. */
static void deadline_counts_from_the_request(void **state)
{
    bool tcp = server_url == server.url;
    struct proxy *proxy = proxy_to(&server, tcp);
    nxl_client *client =
        client_at(tcp ? proxy_tcp_url(proxy) : proxy_url(proxy));
    nxl_lock *lock = new_lock(client, "job", 5000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);

    proxy_delay(proxy, PROXY_DOWN, 200);
    uint64_t before = nxl_now_ns(), late = UINT64_C(200000000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    uint64_t after = nxl_now_ns();
    assert_true(after - before >= late);
    assert_true(nxl_lock_deadline(lock) >= before + LEASE_NS(5000));
    assert_true(nxl_lock_deadline(lock) <= after - late + LEASE_NS(5000));
    /* Never behind the server's own end. */
    uint64_t there = (uint64_t)redis_pttl(&server, "job") * 1000000;
    assert_true(nxl_lock_deadline(lock) < nxl_now_ns() + there);

    before = nxl_now_ns();
    assert_result(nxl_lock_extend(lock, 8000), NXL_OK, lock);
    after = nxl_now_ns();
    assert_true(nxl_lock_deadline(lock) >= before + LEASE_NS(8000));
    assert_true(nxl_lock_deadline(lock) <= after - late + LEASE_NS(8000));
    proxy_delay(proxy, PROXY_DOWN, 0);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    end(lock, client);
    proxy_stop(proxy);
}

/* held, remaining and deadline are three views of one number. */
static void held_ends_with_the_deadline(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "job", SHORT_MS);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    uint64_t deadline = nxl_lock_deadline(lock), before, after;
    bool held;
    do {
        before = nxl_now_ns();
        held = nxl_lock_held(lock);
        int64_t left = nxl_lock_remaining_ms(lock);
        after = nxl_now_ns();
        assert_true(held ? before < deadline : after >= deadline);
        assert_true(left <= (int64_t)(deadline - before) / 1000000 ||
                    (left == 0 && before >= deadline));
        uint64_t told = nxl_lock_deadline(lock);
        assert_true(
            told == deadline || (told == 0 && nxl_now_ns() >= deadline));
    } while (held);
    int rc = nxl_lock_release(lock); /* the server's end comes a bit later */
    assert_true(rc == NXL_OK || rc == NXL_LOST);
    end(lock, client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        live_test(free_name_is_taken),
        live_test(held_name_is_busy),
        live_test(the_client_itself_holds_it),
        live_test(own_name_is_not_taken_twice),
        live_test(try_sends_one_set),
        live_test(token_is_a_fresh_uuid),
        live_test(token_carries_the_label),
        live_test(extend_prolongs),
        live_test(extend_by_the_own_ttl),
        live_test(extend_never_shortens),
        live_test(extend_of_a_removed_lock),
        live_test(extend_of_a_lock_taken_over),
        live_test(extend_after_the_deadline),
        live_test(release_needs_a_held_lock),
        live_test(release_of_a_lock_that_ran_out),
        live_test(freeing_a_held_lock_releases_it),
        live_test(deadline_counts_from_the_request),
        live_test(held_ends_with_the_deadline),
    };
    return live_run("lock");
}

/* SPDX-License-Identifier: MIT */
/* The guards that leave no key behind, and take none away from others. */
#include "guards/guards_rig.h"

static bool appears(const char *key, int within_ms)
{
    int64_t until = test_now_ms() + within_ms;
    while (test_now_ms() < until) {
        if (redis_exists(&server, key))
            return true;
        test_pause_ms(5);
    }
    return false;
}

/* ------------------------------------------------------------ fresh tokens */

/* The first SET is cut on its way, so there is nothing to undo; but where
 * CLIENT KILL is not allowed the undoing must be repeated, for all that the
 * client knows the SET may still come. Meanwhile the second one is granted. */
static bool undoing_frees_a_held_lock(void)
{
    struct proxy *proxy = proxy_to_server();
    redis_run(&server, "ACL", "SETUSER", "default", "-client", NULL);
    nxl_client *client = via(proxy, "timeout_ms=2000");
    nxl_lock *lock = new_lock(client, "k", 10000);
    assert_result(call(lock), NXL_FREE, lock);
    proxy_cut_after(proxy, PROXY_UP, 20);
    assert_result(nxl_lock_acquire(lock, 5000), NXL_OK, lock);
    long undone = redis_calls(&server, "eval");
    bool harm = false;
    while (!harm && redis_calls(&server, "eval") < undone + 3) {
        assert_true(call(lock) >= NXL_OK);
        harm = !token_stands("k", lock);
    }
    assert_true(nxl_lock_held(lock));
    if (harm)
        other_gets_it(0);
    end(lock, client);
    redis_run(&server, "ACL", "SETUSER", "default", "+client", NULL);
    proxy_stop(proxy);
    return harm;
}

static void test_fresh_token(void **state)
{
    (void)state;
    redisReply *user = redis_command(&server, "ACL", "WHOAMI", NULL);
    bool rights = user->type != REDIS_REPLY_ERROR;
    freeReplyObject(user);
    if (!rights)
        test_skip("this server cannot refuse CLIENT KILL: it has no ACL");
    assert_needed(FRESH_TOKEN,
        "the undoing of an earlier request frees a held lock; two hold",
        undoing_frees_a_held_lock);
}

/* ----------------------------------------------------------- the handshake */

/* The server has no db 99, and does what comes next in db 0. */
static bool lock_lands_in_another_db(void)
{
    char url[LOCAL_PATH + 64];
    bool tcp = server_url == server.url;
    snprintf(url, sizeof(url), "%s%s", server_url, tcp ? "/99" : "?db=99");
    nxl_client *client = client_at(url);
    nxl_lock *lock = new_lock(client, "k", ORPHAN_TTL_MS);
    assert_true(nxl_lock_acquire(lock, 0) != NXL_OK);
    end(lock, client);
    return redis_exists(&server, "k");
}

/* The server refuses the user, and does what comes next as its default. */
static bool lock_by_another_user(void)
{
    char url[LOCAL_PATH + 64];
    snprintf(url, sizeof(url), "redis://nobody:wrong@127.0.0.1:%u",
        (unsigned)server.port);
    nxl_client *client = client_at(url);
    nxl_lock *lock = new_lock(client, "k", ORPHAN_TTL_MS);
    assert_true(nxl_lock_acquire(lock, 0) != NXL_OK);
    end(lock, client);
    return redis_exists(&server, "k");
}

static void test_handshake(void **state)
{
    (void)state;
    assert_needed(HANDSHAKE,
        "the key is set in another database than the URL's",
        lock_lands_in_another_db);
    assert_needed(HANDSHAKE, "the key is set by another user than the URL's",
        lock_by_another_user);
}

/* ------------------------------------------------------------- the orphans */

static bool orphan_on_the_same_connection(void)
{
    nxl_client *client = new_client(TIMEOUT);
    nxl_lock *lock = new_lock(client, "k", ORPHAN_TTL_MS);
    assert_result(call(lock), NXL_FREE, lock);
    redis_freeze(&server);
    assert_result(nxl_lock_acquire(lock, 0), NXL_UNKNOWN, lock);
    redis_thaw(&server);
    assert_eventually(call(lock) >= NXL_OK); /* answered behind the undoing */
    bool harm = token_stands("k", lock);
    end(lock, client);
    return harm;
}

static void test_late_undo(void **state)
{
    (void)state;
    assert_needed(LATE_UNDO,
        "a request that was given up keeps the name taken for its ttl",
        orphan_on_the_same_connection);
}

static bool orphan_of_a_lost_connection(enum lost when)
{
    struct proxy *proxy = proxy_to_server();
    nxl_client *client = via(proxy, TIMEOUT);
    nxl_lock *lock = new_lock(client, "k", ORPHAN_TTL_MS);
    size_t size = size_of_acquire(proxy, lock);
    orphan(proxy, "k", lock, size, when);
    assert_true(call(lock) >= NXL_OK); /* the undoing may follow it */
    assert_true(call(lock) >= NXL_OK);
    end(lock, client);
    proxy_stop(proxy);
    return redis_exists(&server, "k");
}

static bool orphan_lost_while_waiting(void)
{
    return orphan_of_a_lost_connection(WHILE_WAITING);
}

static bool orphan_lost_after_giving_up(void)
{
    return orphan_of_a_lost_connection(AFTER_GIVING_UP);
}

static void test_lost_acquire(void **state)
{
    (void)state;
    assert_needed(LOST_ACQUIRE,
        "a request whose connection was lost keeps the name taken",
        orphan_lost_while_waiting);
    assert_needed(LOST_ACQUIRE,
        "an undoing that was lost with its connection keeps the name taken",
        orphan_lost_after_giving_up);
}

/* The SET is held up on the way, and what follows it is lost, until the client
 * has dialled anew, undone what it found, which was nothing, and gone. */
static bool orphan_held_up_on_the_way(void)
{
    struct proxy *proxy = proxy_on_road();
    nxl_client *client = client_on_road();
    nxl_lock *lock = new_lock(client, "k", ORPHAN_TTL_MS);
    size_t size = size_of_acquire(proxy, lock);
    proxy_hold(proxy, PROXY_UP, true);
    assert_result(nxl_lock_acquire(lock, 0), NXL_UNKNOWN, lock);
    lead_to(server.path);
    assert_eventually(call(lock) == NXL_FREE);
    end(lock, client);
    proxy_cut_after(proxy, PROXY_UP, size);
    proxy_hold(proxy, PROXY_UP, false);
    bool harm = appears("k", 1500);
    unlink(road);
    proxy_stop(proxy);
    return harm;
}

static void test_kill(void **state)
{
    (void)state;
    assert_needed(KILL,
        "a request that was held up on the way comes after its undoing",
        orphan_held_up_on_the_way);
}

/* ------------------------------------------------------- compare and delete */

/* A holder that overslept releases what is another one's by now. */
static bool third_holder(bool plainly)
{
    nxl_client *client = new_client("");
    nxl_lock *first = new_lock(client, "k", 100);
    nxl_lock *second = new_lock(client, "k", 10000);
    assert_result(nxl_lock_acquire(first, 0), NXL_OK, first);
    assert_result(nxl_lock_acquire(second, 2000), NXL_OK, second);
    if (plainly)
        redis_run(&server, "DEL", "k", NULL);
    else
        assert_result(nxl_lock_release(first), NXL_LOST, first);
    assert_true(nxl_lock_held(second));
    bool harm = !token_stands("k", second);
    if (harm)
        other_gets_it(0);
    nxl_lock_free(first);
    end(second, client);
    return harm;
}

static void test_compare_and_delete(void **state)
{
    (void)state;
    assert_false(third_holder(false));
    int64_t began_ms = test_now_ms();
    assert_true(third_holder(true));
    tell_harm("COMPARE", "who overslept deletes another one's key; two hold",
        test_now_ms() - began_ms);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        guard_test(test_fresh_token),
        guard_test(test_handshake),
        guard_test(test_late_undo),
        guard_test(test_lost_acquire),
        guard_test(test_compare_and_delete),
    };
    const struct CMUnitTest by_path[] = {
        guard_test(test_kill),
    };
    return live_run("guards of keys") +
           cmocka_run_group_tests_name(
               "guards of keys (path)", by_path, live_unix, live_stop);
}

/* SPDX-License-Identifier: MIT */
/*
 * A list of servers in which one is wrong: it is named with its reason, the
 * others go on as long as they are a quorum, and nothing counts twice.
 */
#include "support/test.h"

#include <poll.h>
#include <sys/socket.h>

#include "live/quorum_rig.h"
#include "support/local.h"

#define NAME_ROOM (LOCAL_PATH + 32)

/* Servers 0 ... good - 1, then one at url. */
static nxl_client *with_one(size_t good, const char *url)
{
    char list[URLS_ROOM] = "";
    for (size_t i = 0; i < good; i++)
        add_url(list, servers[i].unix_url, NO_GUARD "&timeout_ms=500");
    add_url(list, url, "");
    return client_at(list);
}

/* What there is to say of that server is known once it has been asked. */
static bool names(nxl_lock *lock, const char *name)
{
    nxl_holder holder = NXL_HOLDER_INIT;
    int rc = nxl_lock_inspect(lock, &holder);
    (void)rc;
    return strstr(nxl_lock_errmsg(lock), name) != NULL;
}

/* Two good ones of three go on, and the third is named. */
static void goes_on(const char *url, const char *name, const char *words)
{
    nxl_client *client = with_one(2, url);
    nxl_lock *lock = new_lock(client, "k", 10000);
    nxl_holder holder = NXL_HOLDER_INIT;
    assert_eventually(names(lock, name));
    for (int i = 0; i < 3; i++) {
        assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
        assert_result(nxl_lock_extend(lock, 0), NXL_OK, lock);
        assert_result(nxl_lock_inspect(lock, &holder), NXL_OK, lock);
        assert_true(holder.ours);
        assert_contains(nxl_lock_errmsg(lock), name);
        assert_contains(nxl_lock_errmsg(lock), words);
        assert_null(strstr(nxl_lock_errmsg(lock), servers[1].url));
        assert_result(nxl_lock_release(lock), NXL_OK, lock);
    }
    end(lock, client);
}

/* What the good one granted goes at the next occasion, long before its ttl. */
static bool is_gone(nxl_lock *lock)
{
    nxl_holder holder = NXL_HOLDER_INIT;
    int rc = nxl_lock_inspect(lock, &holder);
    (void)rc;
    return !redis_exists(&servers[0], "k");
}

/* One good one of two does not, and says why. */
static void ends(
    const char *url, const char *name, int result, const char *words)
{
    nxl_client *client = with_one(1, url);
    nxl_lock *lock = new_lock(client, "k", 60000);
    for (int i = 0; i < 3; i++) {
        assert_result(nxl_lock_acquire(lock, 0), result, lock);
        assert_contains(nxl_lock_errmsg(lock), "2 of 2 servers are needed");
        assert_contains(nxl_lock_errmsg(lock), name);
        assert_contains(nxl_lock_errmsg(lock), words);
        assert_eventually(is_gone(lock));
    }
    char text[1024];
    size_t len = nxl_client_describe(client, text, sizeof(text));
    assert_int_equal(len, strlen(text));
    assert_non_null(strchr(text, '\n'));
    assert_contains(text, name);
    end(lock, client);
}

static void is_named(
    const char *url, const char *name, int result, const char *words)
{
    goes_on(url, name, words);
    ends(url, name, result, words);
}

/* -------------------------------------------------------------- not let in */

static void test_wrong_password(void **state)
{
    char url[NAME_ROOM];
    redis_run(&servers[6], "ACL", "SETUSER", "alice", "reset", "on", ">right",
        "~*", "&*", "+@all", NULL);
    snprintf(url, sizeof(url), "%s://alice:wrong@127.0.0.1:%u",
        servers[6].scheme, (unsigned)servers[6].port);
    is_named(url, servers[6].url, NXL_E_DENIED, "WRONGPASS");
}

/* DISCARD he may: who gives up sends it, and its refusal would be told. */
static void test_no_rights(void **state)
{
    char url[NAME_ROOM];
    redis_run(&servers[6], "ACL", "SETUSER", "bob", "reset", "on", ">Zqx7",
        "~*", "+info", "+client", "+discard", NULL);
    snprintf(url, sizeof(url), "%s://bob:Zqx7@127.0.0.1:%u", servers[6].scheme,
        (unsigned)servers[6].port);
    is_named(url, servers[6].url, NXL_E_DENIED, "NOPERM");
}

static void test_nobody_there(void **state)
{
    redis_kill(&servers[6]);
    is_named(servers[6].url, servers[6].url, NXL_E_UNREACHABLE, "refused");
}

/* What a TLS server answers to plain text. */
static void *alert(void *argument)
{
    int listener = *(int *)argument, fd;
    char bytes[1024];
    while ((fd = accept(listener, NULL, NULL)) >= 0) {
        if (recv(fd, bytes, sizeof(bytes), 0) > 0)
            local_send(fd, "\x15\x03\x03\x01\x02\x02\x46", 7);
        close(fd);
    }
    return NULL;
}

static void test_tls_port(void **state)
{
    uint16_t port = 0; /* any */
    static int listener;
    pthread_t thread;
    char url[NAME_ROOM];
    listener = local_listen_tcp(&port);
    assert_true(listener >= 0);
    assert_int_equal(pthread_create(&thread, NULL, alert, &listener), 0);
    snprintf(url, sizeof(url), "redis://127.0.0.1:%u", (unsigned)port);
    is_named(url, url, NXL_E_NOT_REDIS, "\\x15\\x03\\x03");
    shutdown(listener, SHUT_RDWR);
    pthread_join(thread, NULL);
    close(listener);
}

/* --------------------------------------------------- cannot tell at present */

static void *run_long_script(void *argument)
{
    struct redis *r = argument;
    redisContext *context = redisConnectUnix(r->path);
    redisReply *reply = NULL;
    if (context && !context->err)
        reply = redisCommand(context, "EVAL %s 0", "while true do end");
    freeReplyObject(reply);
    redisFree(context);
    return NULL;
}

static bool is_busy(struct redis *r)
{
    redisReply *reply = redis_command(r, "GET", "k", NULL);
    bool busy = reply->type == REDIS_REPLY_ERROR;
    freeReplyObject(reply);
    return busy;
}

/* A server that is busy with a script answers nothing, not even INFO: that is
 * no refusal, and passes. */
static void test_busy_script(void **state)
{
    pthread_t thread;
    static struct waiter w;
    char list[URLS_ROOM] = "";
    for (size_t i = 0; i < 2; i++) /* old enough for max_ttl_ms below */
        assert_eventually(
            server_number(&servers[i], "server", "uptime_in_seconds") > 3);
    redis_run(&servers[0], "CONFIG", "SET", "lua-time-limit", "10", NULL);
    assert_int_equal(
        pthread_create(&thread, NULL, run_long_script, &servers[0]), 0);
    assert_eventually(is_busy(&servers[0]));
    for (size_t i = 0; i < 2; i++)
        add_url(list, servers[i].unix_url, "max_ttl_ms=1000");
    nxl_client *client = client_at(list);
    nxl_lock *lock = new_lock(client, "k", 900);
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_REFUSED, lock);
    assert_contains(nxl_lock_errmsg(lock), "BUSY");
    waiter_start(&w, lock, 20000);
    redis_run(&servers[0], "SCRIPT", "KILL", NULL);
    pthread_join(thread, NULL);
    assert_result(waiter_join(&w), NXL_OK, lock);
    end(lock, client);
    redis_run(&servers[0], "CONFIG", "SET", "lua-time-limit", "5000", NULL);
}

/* ----------------------------------------------------- no server of its own */

/* Of the first one; it would accept writes. */
static void test_replica(void **state)
{
    char port[8];
    snprintf(port, sizeof(port), "%u", (unsigned)servers[0].plain_port);
    redis_run(&servers[6], "CONFIG", "SET", "replica-read-only", "no", NULL);
    redis_follow(&servers[6], port);
    is_named(servers[6].url, servers[6].url, NXL_E_REFUSED, "a replica");
    redis_promote(&servers[6]);
    redis_run(&servers[6], "CONFIG", "SET", "replica-read-only", "yes", NULL);
}

/* A token that a replica shows is its primary's, and counts once. */
static void test_replica_proves_nothing(void **state)
{
    char port[8];
    nxl_client *client = with_one(2, servers[6].url);
    nxl_lock *lock = new_lock(client, "k", 10000);
    snprintf(port, sizeof(port), "%u", (unsigned)servers[0].plain_port);
    redis_follow(&servers[6], port);
    connect_most(client);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_eventually(redis_exists(&servers[6], "k"));
    redis_run(&servers[1], "DEL", "k", NULL);
    nxl_lock *heir = new_lock(client, "k", 10000);
    nxl_holder holder = NXL_HOLDER_INIT;
    int rc = nxl_lock_adopt(heir, nxl_lock_token(lock));
    assert_true(rc != NXL_OK);
    assert_false(nxl_lock_held(heir));
    assert_result(nxl_lock_extend(lock, 0), NXL_LOST, lock);
    rc = nxl_lock_inspect(lock, &holder);
    assert_int_equal(nxl_lock_holder_at(lock, 2, 0, &holder), NXL_E_REFUSED);
    nxl_lock_free(heir);
    end(lock, client);
    redis_promote(&servers[6]);
}

/* The first server by another address than that in the list. */
static const char *twin_url(void)
{
    static char url[NAME_ROOM];
    snprintf(
        url, sizeof(url), "rediss://localhost:%u", (unsigned)servers[0].port);
    return live_tls() ? url : servers[0].url;
}

/* One server behind two addresses: one vote, and both names are told. */
static void test_twin(void **state)
{
    is_named(twin_url(), "the same server (run_id) as", NXL_E_URL,
        "one vote, not two");
    nxl_client *client = with_one(1, twin_url());
    nxl_lock *lock = new_lock(client, "k", 10000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_URL, lock);
    assert_contains(nxl_lock_errmsg(lock), twin_url());
    assert_contains(nxl_lock_errmsg(lock), servers[0].unix_url);
    end(lock, client);
}

/* Nor does it prolong with two. */
static void test_twin_extends_once(void **state)
{
    nxl_client *client = with_one(2, twin_url());
    nxl_lock *lock = new_lock(client, "k", 10000);
    connect_most(client);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    redis_run(&servers[1], "DEL", "k", NULL);
    int rc = nxl_lock_extend(lock, 0);
    assert_true(rc != NXL_OK);
    end(lock, client);
}

/* ------------------------------------------------------------------ mended */

/* What a person mends counts without a new client. */
static void test_mended(void **state)
{
    nxl_client *client = with_one(1, servers[6].url);
    nxl_lock *lock = new_lock(client, "k", 10000);
    char port[8];
    snprintf(port, sizeof(port), "%u", (unsigned)servers[0].plain_port);
    redis_follow(&servers[6], port);
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_REFUSED, lock);
    redis_promote(&servers[6]);
    assert_eventually(nxl_lock_acquire(lock, 0) == NXL_OK);
    assert_quiet(lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    end(lock, client);
}

/* Waiting for a list that is wrong ends at once. */
static void test_hopeless_wait(void **state)
{
    nxl_client *client = with_one(1, twin_url());
    nxl_lock *lock = new_lock(client, "k", 10000);
    int64_t before = test_now_ms();
    assert_result(nxl_lock_acquire(lock, NXL_FOREVER), NXL_E_URL, lock);
    assert_between(test_now_ms() - before, 0, 500 + LATE_MS);
    end(lock, client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        quorum_test(test_wrong_password),
        quorum_test(test_no_rights),
        quorum_test(test_nobody_there),
        quorum_test(test_tls_port),
        quorum_test(test_busy_script),
        quorum_test(test_replica),
        quorum_test(test_replica_proves_nothing),
        quorum_test(test_twin),
        quorum_test(test_twin_extends_once),
        quorum_test(test_mended),
        quorum_test(test_hopeless_wait),
    };
    return quorum_run("quorum of a list");
}

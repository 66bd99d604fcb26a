/* SPDX-License-Identifier: MIT */
/*
 * Records live as long as the server's memory. durable=1 makes an append-only
 * file a condition for beginning; without it a client is warned, once. Plain
 * locks pay for none of it.
 */
#include "live/live_rig.h"

#define TTL_MS 5000

static struct told {
    int times;
    char text[512];
} told;

static void listen_to(void *arg, const char *text)
{
    struct told *t = arg;

    snprintf(t->text, sizeof(t->text), "%s", text);
    t->times++;
}

static nxl_client *listener(const char *url)
{
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    nxl_client *client;

    told = (struct told){0};
    options.warning = listen_to;
    options.warning_arg = &told;
    assert_int_equal(nxl_client_new(&client, url, &options), NXL_OK);
    return client;
}

static void persist(const char *appendonly, const char *appendfsync)
{
    redis_run(&server, "CONFIG", "SET", "appendonly", appendonly, NULL);
    redis_run(&server, "CONFIG", "SET", "appendfsync", appendfsync, NULL);
}

/* Closes the client's connection; the next call makes a new one. A connection
 * that was heard of less than a millisecond ago is not looked at before. */
static void disconnect(void)
{
    redis_run(
        &server, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes", NULL);
    test_pause_ms(5);
}

static long asked(void)
{
    return redis_calls(&server, "config|get");
}

static void does_work(nxl_lock *lock)
{
    assert_result(nxl_once_begin(lock, NULL, 0), NXL_OK, lock);
    assert_result(
        nxl_once_tell(lock, NXL_ONCE_FAILED, 0, NULL, 0), NXL_OK, lock);
}

static void locks(nxl_lock *lock)
{
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
}

static void refuses(nxl_lock *lock)
{
    assert_result(nxl_once_begin(lock, NULL, 0), NXL_E_URL, lock);
    assert_contains(nxl_lock_errmsg(lock), "durable=1, but its AOF is off");
    assert_contains(nxl_lock_errmsg(lock), "appendfsync always");
    assert_false(nxl_lock_held(lock));
    assert_false(redis_exists(&server, "work"));
    assert_false(redis_exists(&server, "{work}:once"));
}

/* ---------------------------------------------------------------- durable=1 */

static void begins_only_with_a_file(void **state)
{
    static const nxl_once_options look = {
        .size = sizeof(look), .mode = NXL_ONCE_LOOK};
    persist("no", "always");
    nxl_client *client = new_client("durable=1");
    nxl_lock *lock = new_lock(client, "work", TTL_MS);

    refuses(lock);
    locks(lock); /* which it never was a condition of */
    assert_result(nxl_once_begin(lock, &look, 0), NXL_FREE, lock);
    refuses(lock);
    persist("yes", "always");
    assert_eventually(nxl_once_begin(lock, NULL, 0) == NXL_OK);
    assert_result(
        nxl_once_tell(lock, NXL_ONCE_FAILED, 0, NULL, 0), NXL_OK, lock);
    end(lock, client);
}

/* Each connection is judged before anything begins over it, for another server
 * may answer there. */
static void is_judged_on_each_connection(void **state)
{
    persist("yes", "always");
    nxl_client *client = new_client("durable=1");
    nxl_lock *lock = new_lock(client, "work", TTL_MS);

    locks(lock);
    does_work(lock);
    redis_run(&server, "FLUSHALL", NULL);
    persist("no", "always");
    long before = redis_calls(&server, "evalsha");
    disconnect();
    refuses(lock);
    assert_int_equal(redis_calls(&server, "evalsha"), before);
    end(lock, client);
}

/* ------------------------------------------------------------------ warnings
 */

/* again: the first begin is over a new connection; else over that of the lock
 * before. */
static void warns_over(const char *words, bool again)
{
    char described[1024];
    nxl_server_facts facts = NXL_SERVER_FACTS_INIT;
    nxl_client *client = listener(server_url);
    nxl_lock *lock = new_lock(client, "work", TTL_MS);

    locks(lock);
    assert_int_equal(told.times, 0);
    nxl_client_describe(client, described, sizeof(described));
    assert_null(strstr(described, "records"));
    if (again)
        disconnect();
    for (int i = 0; i < 3; i++) {
        does_work(lock);
        assert_int_equal(told.times, *words != '\0');
    }
    assert_contains(told.text, words);
    nxl_client_describe(client, described, sizeof(described));
    assert_int_equal(strstr(described, "; records: ") != NULL, *words != '\0');
    assert_int_equal(nxl_client_server_facts(client, 0, &facts), NXL_OK);
    assert_int_equal(facts.records[0] != '\0', *words != '\0');
    assert_contains(facts.records, words);
    assert_contains(described, facts.records);
    end(lock, client);
}

static void warns(const char *words)
{
    warns_over(words, false);
    warns_over(words, true);
}

static void is_warned_of_each(void **state)
{
    persist("no", "always");
    warns("it has no append-only file: a restart loses the records");
    persist("yes", "everysec");
    warns("synced by appendfsync everysec: a crash of its machine");
    persist("yes", "no");
    warns("appendfsync no:");
    persist("yes", "always");
    warns("");
}

static void evicts(const char *policy)
{
    redis_run(&server, "CONFIG", "SET", "maxmemory-policy", policy, NULL);
}

/* Of every policy but noeviction, those for keys that expire too: what was done
 * expires. Beside another reason, of both. */
static void is_warned_of_eviction(void **state)
{
    persist("yes", "always");
    evicts("allkeys-lru");
    warns("maxmemory-policy is allkeys-lru: when its memory is full, any "
          "record may be evicted");
    evicts("volatile-ttl");
    warns("maxmemory-policy is volatile-ttl: when its memory is full, records "
          "of what was done may be evicted");
    persist("no", "always");
    warns("it has no append-only file: ");
    warns("; its maxmemory-policy is volatile-ttl: ");
    evicts("noeviction");
    persist("yes", "always");
    warns("");
}

static void is_warned_of_the_unknown(void **state)
{
    static const char *const rows[][2] = {
        {"-config", "how often its append-only file is synced is unknown"},
        {"-info", "whether it has an append-only file is unknown (INFO)"}};
    char url[512];

    persist("yes", "always");
    for (size_t i = 0; i < 2; i++) {
        redis_run(&server, "ACL", "SETUSER", "alice", "reset", "on", ">Zqx7",
            "~*", "+@all", rows[i][0], NULL);
        snprintf(url, sizeof(url), "%s://alice:Zqx7@127.0.0.1:%u",
            server.scheme, (unsigned)server.port);
        nxl_client *client = listener(url);
        nxl_lock *lock = new_lock(client, "work", TTL_MS);
        does_work(lock);
        does_work(lock);
        assert_int_equal(told.times, 1);
        assert_contains(told.text, rows[i][1]);
        end(lock, client);
    }
}

/* --------------------------------------------------------------- what it costs
 */

static void is_asked_once_a_connection(void **state)
{
    persist("yes", "always");
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "work", TTL_MS);
    long before = asked();

    locks(lock);
    disconnect();
    locks(lock);
    assert_int_equal(asked(), before); /* plain locks do not pay */
    does_work(lock);
    assert_int_equal(asked(), before + 1); /* over the connection there is */
    does_work(lock);
    locks(lock);
    assert_int_equal(asked(), before + 1);
    disconnect();
    for (int i = 0; i < 3; i++)
        does_work(lock);
    assert_int_equal(asked(), before + 2);
    end(lock, client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        live_test(begins_only_with_a_file),
        live_test(is_judged_on_each_connection),
        live_test(is_warned_of_each),
        live_test(is_warned_of_eviction),
        live_test(is_warned_of_the_unknown),
        live_test(is_asked_once_a_connection),
    };
    return live_run("once_durable");
}

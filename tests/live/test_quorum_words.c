/* SPDX-License-Identifier: MIT */
/*
 * What is told of servers that have no part in a lock: a minority that somebody
 * has to mend, once a client; each with its own remedy; and who did not answer
 * when a lease was not prolonged.
 */
#include "support/test.h"

#include "live/quorum_rig.h"

static struct told {
    int times;
    char text[1024];
} told;

static void listen_to(void *arg, const char *text)
{
    struct told *t = arg;
    snprintf(t->text, sizeof(t->text), "%s", text);
    t->times++;
}

/* Servers 0 and 1, and one at url; all with these parameters. */
static nxl_client *listener(const char *url, const char *parameters)
{
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    nxl_client *client;
    char list[URLS_ROOM] = "";
    told = (struct told){0};
    options.warning = listen_to;
    options.warning_arg = &told;
    for (size_t i = 0; i < 2; i++)
        add_url(list, servers[i].unix_url, parameters);
    add_url(list, url, "");
    assert_int_equal(nxl_client_new(&client, list, &options), NXL_OK);
    return client;
}

#define GUARDED "max_ttl_ms=5000"

/* Older than the guard asks for then. */
static void two_are_old(void)
{
    for (size_t i = 0; i < 2; i++)
        assert_eventually(
            server_number(&servers[i], "server", "uptime_in_seconds") >= 8);
}

static void cycle(nxl_lock *lock)
{
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_extend(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
}

/* Granted by the two others; it is told of the third one, once. */
static void is_told(const char *url, const char *parameters, const char *name,
    const char *words, const char *remedy)
{
    nxl_client *client = listener(url, parameters);
    nxl_lock *lock = new_lock(client, "k", 5000);
    /* Its answer may come after the first grant. */
    for (int i = 0; i < 1000 && told.times == 0; i++)
        cycle(lock);
    for (int i = 0; i < 5; i++)
        cycle(lock);
    assert_int_equal(told.times, 1);
    assert_contains(told.text, "1 of 3 servers did not take part in a grant");
    assert_contains(told.text, name);
    assert_contains(told.text, words);
    assert_contains(told.text, remedy);
    assert_null(strstr(told.text, "secret"));
    assert_null(strstr(told.text, servers[1].unix_url));
    end(lock, client);
}

static void rights(const char *first, const char *second)
{
    redis_run(&servers[6], "ACL", "SETUSER", "alice", "reset", "on", ">secret",
        "~*", "&*", first, second, NULL);
}

static const char *login(const char *password, const char *parameters)
{
    static char url[128];
    snprintf(url, sizeof(url), "%s://alice:%s@127.0.0.1:%u%s",
        servers[6].scheme, password, (unsigned)servers[6].port, parameters);
    return url;
}

static void a_wrong_password(void **state)
{
    rights("+@all", NULL);
    is_told(login("secret2", ""), NO_GUARD, servers[6].url, "WRONGPASS",
        "check the user and password");
}

static void no_info(void **state)
{
    rights("+@all", "-info");
    two_are_old();
    is_told(login("secret", ""), GUARDED, servers[6].url, "INFO is refused",
        "allow its user to run INFO (ACL: +info)");
}

static void a_right_is_missing(void **state)
{
    rights("+@all", "-set");
    is_told(login("secret", ""), NO_GUARD, servers[6].url, "NOPERM",
        "see docs/acl.md");
}

static void a_replica(void **state)
{
    char port[8];
    snprintf(port, sizeof(port), "%u", (unsigned)servers[0].plain_port);
    redis_run(&servers[6], "REPLICAOF", "127.0.0.1", port, NULL);
    is_told(servers[6].url, NO_GUARD, servers[6].url, ": a replica; ",
        "with an independent server");
    redis_run(&servers[6], "REPLICAOF", "NO", "ONE", NULL);
}

static void durable_without_a_file(void **state)
{
    char url[256];
    snprintf(url, sizeof(url), "%s?durable=1", servers[6].url);
    is_told(url, NO_GUARD, servers[6].url, "its AOF is off",
        "enable its append-only file");
}

/* Quarantined for so long that a person may want to know. */
static void a_young_one(void **state)
{
    two_are_old();
    redis_restart(&servers[6]);
    is_told(servers[6].url, GUARDED, servers[6].url,
        "may have forgotten locks; its vote counts again in",
        "; wait, or make the server keep its locks");
}

/* It is away or slow: what several servers are for. */
static void nothing_to_mend(void **state)
{
    nxl_client *client = listener(servers[6].url, NO_GUARD "&timeout_ms=300");
    nxl_lock *lock = new_lock(client, "k", 5000);
    cycle(lock);
    redis_freeze(&servers[6]);
    cycle(lock);
    redis_thaw(&servers[6]);
    redis_kill(&servers[6]);
    for (int i = 0; i < 5; i++)
        cycle(lock);
    assert_int_equal(told.times, 0);
    end(lock, client);
}

/* -------------------------------------------------------------- prolonging */

static void names_who_is_silent(const char *said)
{
    assert_contains(said, servers[0].unix_url);
    assert_contains(said, servers[2].unix_url);
    assert_contains(said, ": no answer in time");
    assert_null(strstr(said, servers[1].url));
}

static void a_hung_majority(void **state)
{
    nxl_client *client = quorum_client(3, NO_GUARD "&timeout_ms=300");
    nxl_lock *lock = new_lock(client, "k", 5000);
    connect_all(client);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_eventually(standing(3, "k", lock) == 3);
    redis_freeze(&servers[0]);
    redis_freeze(&servers[2]);
    assert_result(nxl_lock_extend(lock, 0), NXL_UNKNOWN, lock);
    names_who_is_silent(nxl_lock_errmsg(lock));
    assert_string_equal(nxl_lock_errmsg_at(lock, 0), "no answer in time");
    assert_string_equal(nxl_lock_errmsg_at(lock, 1), "");
    assert_string_equal(nxl_lock_errmsg_at(lock, 3), "");
    while (nxl_lock_remaining_ms(lock) > 200)
        test_pause_ms(5);
    int rc = nxl_lock_extend(lock, 0); /* until its deadline, or too late */
    for (int i = 0; i < 50 && rc == NXL_UNKNOWN; i++)
        rc = nxl_lock_extend(lock, 0);
    assert_result(rc, NXL_LOST, lock);
    end(lock, client);
}

/* The lease ends while they are waited for. */
static void a_lease_that_lapses(void **state)
{
    nxl_client *client = quorum_client(3, NO_GUARD "&timeout_ms=5000");
    nxl_lock *lock = new_lock(client, "k", 1500);
    connect_all(client);
    assert_eventually(nxl_lock_acquire(lock, 5000) == NXL_OK);
    redis_freeze(&servers[0]);
    redis_freeze(&servers[2]);
    assert_result(nxl_lock_extend(lock, 0), NXL_LOST, lock);
    assert_contains(nxl_lock_errmsg(lock), "the lease had expired");
    names_who_is_silent(nxl_lock_errmsg(lock));
    end(lock, client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        quorum_test(a_wrong_password),
        quorum_test(no_info),
        quorum_test(a_right_is_missing),
        quorum_test(a_replica),
        quorum_test(durable_without_a_file),
        quorum_test(a_young_one),
        quorum_test(nothing_to_mend),
        quorum_test(a_hung_majority),
        quorum_test(a_lease_that_lapses),
    };
    return quorum_run("words about several servers");
}

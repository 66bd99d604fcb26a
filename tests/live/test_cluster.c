/* SPDX-License-Identifier: MIT */
/*
 * Nodes of a Redis Cluster. One that does not serve all slots, or does not say
 * so, is refused at the first command, whatever the name; one that serves them
 * all works, but not for a name whose keys would be in several slots. Through
 * both APIs. Such names on other servers: scenes/in_line.
 */
#define QUORUM_MAX 3
#include "support/test.h"

#include <arpa/inet.h>

#include "model/companion.h"
#include "live/api_rig.h"

enum { TTL_MS = 30000 };

static unsigned buses[QUORUM_MAX];

static const char no_cluster[] = "cluster-enabled no";

/* ------------------------------------------------------------------ servers */

/* A free port for the bus of a node, below those that the system gives out: the
 * server's own port will be one of them. */
static unsigned bus_port(void)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (;;) {
        uint16_t port;
        int given = local_listen_tcp(&port);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        port = (uint16_t)(port - 12000);
        at.sin_port = htons(port);
        bool is_free = bind(fd, (const void *)&at, sizeof(at)) == 0;
        close(fd);
        close(given);
        if (is_free && port != 6379)
            return port;
    }
}

/* Three nodes, which do not know each other and have no slots. */
static int start_nodes(void **state)
{
    on.servers = 3;
    on.tcp = true;
    for (size_t i = 0; i < on.servers; i++) {
        char bus[8];
        snprintf(bus, sizeof(bus), "%u", buses[i] = bus_port());
        if (redis_start(&servers[i], "--cluster-enabled", "yes",
                "--cluster-port", bus, NULL) != 0)
            return -1;
    }
    return 0;
}

static int start_mixed(void **state)
{
    return start_nodes(state) || redis_start(&server, NULL);
}

static int stop_mixed(void **state)
{
    redis_stop(&server);
    return quorum_stop(state);
}

static void take_slots(size_t node, unsigned from, unsigned to)
{
    char first[8], last[8];
    snprintf(first, sizeof(first), "%u", from);
    snprintf(last, sizeof(last), "%u", to);
    redis_run(&servers[node], "CLUSTER", "ADDSLOTSRANGE", first, last, NULL);
}

static bool is_up(size_t node)
{
    redisReply *reply = redis_command(&servers[node], "CLUSTER", "INFO", NULL);
    bool up = reply->str && strstr(reply->str, "cluster_state:ok");
    freeReplyObject(reply);
    return up;
}

static int take_all_slots(void **state)
{
    for (size_t i = 0; i < on.servers; i++) {
        take_slots(i, 0, 16383);
        assert_eventually(is_up(i));
    }
    return 0;
}

/* A third of the slots each, in one Cluster. */
static int join(void **state)
{
    char port[8], bus[8];
    for (size_t i = 0; i < 3; i++)
        take_slots(
            i, (unsigned)i * 5461, i == 2 ? 16383 : (unsigned)i * 5461 + 5460);
    for (size_t i = 1; i < 3; i++) {
        snprintf(port, sizeof(port), "%u", (unsigned)servers[i].port);
        snprintf(bus, sizeof(bus), "%u", buses[i]);
        redis_run(&servers[0], "CLUSTER", "MEET", "127.0.0.1", port, bus, NULL);
    }
    assert_eventually(is_up(0) && is_up(1) && is_up(2));
    return 0;
}

static int start_joined(void **state)
{
    return start_nodes(state) || join(state);
}

static int start_whole(void **state)
{
    return start_nodes(state) || take_all_slots(state);
}

static void cut_all(struct redis *r)
{
    redis_run(r, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes", NULL);
}

/* ------------------------------------------------------------------- scenes */

static int begin_once(nxl_client *client, nxl_lock *lock)
{
    return result_of(client, by_loop ? nxl_once_begin_start(lock, NULL, 0)
                                     : nxl_once_begin(lock, NULL, 0));
}

/* Every verb that could use the lock; nothing is written. */
static void assert_refused(nxl_client *client, const char *words)
{
    static const char *const names[] = {"a", "b", "foo", "bar", "{x}y"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        nxl_lock *lock = new_lock(client, names[i], TTL_MS);
        assert_result(CALL(client, acquire, lock, 0), NXL_E_REFUSED, lock);
        assert_contains(nxl_lock_errmsg(lock), words);
        assert_contains(nxl_lock_errmsg(lock), no_cluster);
        assert_result(CALL(client, acquire, lock, 500), NXL_E_REFUSED, lock);
        assert_result(
            result_of(client, begin_inspect(lock)), NXL_E_REFUSED, lock);
        if (on.servers == 1 || nxl_client_servers(client) == 1)
            assert_result(begin_once(client, lock), NXL_E_REFUSED, lock);
        nxl_lock_free(lock);
    }
    assert_int_equal(calls_at_all("set"), 0);
}

static void assert_unfit(nxl_client *client, const char *words)
{
    nxl_server_facts facts = NXL_SERVER_FACTS_INIT;
    assert_int_equal(nxl_client_server_facts(client, 0, &facts), NXL_OK);
    assert_true(facts.cluster);
    assert_true(facts.unfit);
    assert_false(facts.votes);
    assert_contains(facts.no_vote, words);
}

static void refused_as(const char *words)
{
    nxl_client *client = quorum_client(1, "");
    assert_refused(client, words);
    assert_unfit(client, words);
    nxl_client_free(client);
    client = quorum_client(3, NO_GUARD);
    assert_refused(client, words);
    assert_unfit(client, words);
    nxl_client_free(client);
}

static void a_node_without_slots_is_refused(void **state)
{
    refused_as("serves no slots");
}

/* Whatever the name: also those that this node would take. */
static void a_node_with_some_slots_is_refused(void **state)
{
    refused_as("of 16384 slots");
}

static void assert_cycle(nxl_client *client, const char *name)
{
    nxl_lock *lock = new_lock(client, name, TTL_MS);
    assert_result(CALL(client, acquire, lock, 5000), NXL_OK, lock);
    assert_result(CALL(client, extend, lock, 0), NXL_OK, lock);
    assert_result(CALL(client, release, lock), NXL_OK, lock);
    nxl_lock_free(lock);
}

static void a_node_with_all_slots_works(void **state)
{
    for (size_t count = 1; count <= 3; count += 2) {
        nxl_client *client = quorum_client(count, NO_GUARD);
        assert_cycle(client, "foo");
        for (size_t i = 0; i < count; i++)
            cut_all(&servers[i]);
        assert_cycle(client, "bar");
        nxl_server_facts facts = NXL_SERVER_FACTS_INIT;
        assert_int_equal(nxl_client_server_facts(client, 0, &facts), NXL_OK);
        assert_true(facts.cluster && facts.votes && !facts.unfit);
        nxl_client_free(client);
    }
}

/* Other nodes take over its slots while it is in use. */
static void slots_that_move_away_end_it(void **state)
{
    nxl_client *client = quorum_client(1, "");
    nxl_lock *held = new_lock(client, "held", TTL_MS);
    assert_result(CALL(client, acquire, held, 0), NXL_OK, held);
    redis_run(&servers[0], "CLUSTER", "DELSLOTSRANGE", "0", "99", NULL);
    cut_all(&servers[0]);
    nxl_lock *lock = new_lock(client, "foo", TTL_MS);
    /* It may get no further than to meet the connection's end. */
    assert_eventually(
        CALL(client, acquire, lock, 0) == NXL_E_REFUSED &&
        strstr(nxl_lock_errmsg(lock), "serves 16284 of 16384 slots"));
    take_slots(0, 0, 99);
    assert_eventually(is_up(0));
    assert_eventually(CALL(client, acquire, lock, 0) == NXL_OK);
    assert_result(CALL(client, release, lock), NXL_OK, lock);
    assert_result(CALL(client, release, held), NXL_OK, held);
    nxl_lock_free(lock);
    end(held, client);
}

/* Unknown counts as not. */
static void a_node_that_does_not_say_is_refused(void **state)
{
    for (size_t i = 0; i < on.servers; i++)
        redis_run(
            &servers[i], "ACL", "SETUSER", "default", "-cluster|nodes", NULL);
    refused_as("+cluster|nodes");
    for (size_t i = 0; i < on.servers; i++)
        redis_run(&servers[i], "ACL", "SETUSER", "default", "+@all", NULL);
}

/* A node among servers is a seat without a vote, and two of two nodes none. */
static void among_servers_it_has_no_vote(void **state)
{
    char list[URLS_ROOM] = "", text[4096];
    struct redis third = {0};
    redis_start(&third, NULL);
    add_url(list, server.url, NO_GUARD);
    add_url(list, third.url, NO_GUARD);
    add_url(list, url_of(0), NO_GUARD);
    nxl_client *client = client_at(list);
    connect_all(client);
    assert_cycle(client, "foo");
    nxl_client_describe(client, text, sizeof(text));
    assert_contains(text, "no vote: a node of a Redis Cluster");
    assert_int_equal(redis_calls(&servers[0], "set"), 0);
    nxl_client_free(client);
    redis_stop(&third);
}

/* ------------------------------------- names with '}' and without a hash tag
 */

static const char *const apart[] = {"a}b", "}", "{}a}", "x}{y", "{}"};

static long long slot_of(struct slice key)
{
    redisReply *r = redisCommand(
        servers[0].context, "CLUSTER KEYSLOT %b", key.data, key.len);
    assert_int_equal(r->type, REDIS_REPLY_INTEGER);
    long long slot = r->integer;
    freeReplyObject(r);
    return slot;
}

static const enum companion companions[] = {COMPANION_COUNTER, COMPANION_LINE,
    COMPANION_LINE_MARK, COMPANION_GAP, COMPANION_RECORD};

/* Of all keys of up to five of these letters, key_is_apart() finds those that
 * the server would separate from what accompanies them. */
static void which_names_are_apart(void **state)
{
    static const char letters[] = "a{}";
    char key[6];
    for (unsigned n = 1; n < 3 * 3 * 3 * 3 * 3 * 3; n++) {
        size_t len = 0;
        for (unsigned rest = n; rest > 0 && len < 5; rest /= 3)
            key[len++] = letters[rest % 3];
        struct slice name = {key, len}, other;
        size_t far = 0;
        for (size_t i = 0; i < sizeof(companions) / sizeof(*companions); i++) {
            assert_true(companion_make(name, companions[i], &other));
            far += slot_of(name) != slot_of(other);
            free((char *)other.data);
        }
        assert_int_equal(far > 0, key_is_apart(name));
    }
}

static void a_name_that_is_apart_is_refused(void **state)
{
    for (size_t count = 1; count <= 3; count += 2) {
        nxl_client *client = quorum_client(count, NO_GUARD);
        for (size_t i = 0; i < sizeof(apart) / sizeof(*apart); i++) {
            nxl_lock *lock = new_lock(client, apart[i], TTL_MS);
            assert_result(CALL(client, acquire, lock, 0), NXL_E_REFUSED, lock);
            assert_contains(nxl_lock_errmsg(lock), "the same slot");
            assert_contains(nxl_lock_errmsg(lock), "a name without '}'");
            assert_result(
                CALL(client, acquire, lock, 5000), NXL_E_REFUSED, lock);
            assert_result(
                result_of(client, begin_inspect(lock)), NXL_E_REFUSED, lock);
            if (count == 1)
                assert_result(begin_once(client, lock), NXL_E_REFUSED, lock);
            nxl_lock_free(lock);
        }
        assert_int_equal(calls_at_all("set"), 0);
        assert_int_equal(calls_at_all("evalsha"), 0);
        nxl_client_free(client);
    }
    for (size_t count = 1; count <= 3; count += 2) {
        nxl_client *client = quorum_client(count, NO_GUARD);
        assert_cycle(client, "{a}b}");
        assert_cycle(client, "a{b");
        nxl_client_free(client);
    }
}

/* Where the client does not know that it is a Cluster, the server says so. */
static void a_name_that_is_apart_behind_a_proxy(void **state)
{
    for (size_t i = 0; i < on.servers; i++)
        redis_run(&servers[i], "ACL", "SETUSER", "default", "-info", NULL);
    nxl_client *client = quorum_client(1, "");
    nxl_lock *lock = lock_with(client, "a}b", .ttl_ms = TTL_MS, .fence = 1);
    assert_result(CALL(client, acquire, lock, 0), NXL_E_REFUSED, lock);
    assert_contains(nxl_lock_errmsg(lock), "CROSSSLOT");
    assert_contains(nxl_lock_errmsg(lock), "a name without '}'");
    end(lock, client);
    for (size_t i = 0; i < on.servers; i++)
        redis_run(&servers[i], "ACL", "SETUSER", "default", "+@all", NULL);
}

int main(void)
{
    const struct CMUnitTest empty[] = {
        api_test(a_node_without_slots_is_refused),
    };
    const struct CMUnitTest some[] = {
        api_test(a_node_with_some_slots_is_refused),
    };
    const struct CMUnitTest whole[] = {
        api_test(a_node_with_all_slots_works),
        api_test(a_node_that_does_not_say_is_refused),
        api_test(slots_that_move_away_end_it),
        api_blocking_test(which_names_are_apart),
        api_test(a_name_that_is_apart_is_refused),
        api_test(a_name_that_is_apart_behind_a_proxy),
    };
    const struct CMUnitTest mixed[] = {
        api_blocking_test(among_servers_it_has_no_vote),
    };
    return cmocka_run_group_tests_name(
               "cluster: no slots", empty, start_nodes, quorum_stop) +
           cmocka_run_group_tests_name(
               "cluster: a third each", some, start_joined, quorum_stop) +
           cmocka_run_group_tests_name(
               "cluster: all slots", whole, start_whole, quorum_stop) +
           cmocka_run_group_tests_name(
               "cluster: among servers", mixed, start_mixed, stop_mixed);
}

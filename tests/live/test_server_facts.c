/* SPDX-License-Identifier: MIT */
/*
 * The facts of a real server: they agree with the line about it for people,
 * and tell why there is no connection.
 */
#include "support/test.h"

#include "live/live_rig.h"

static nxl_server_facts facts_of(nxl_client *client)
{
    nxl_server_facts facts = NXL_SERVER_FACTS_INIT;
    assert_int_equal(nxl_client_server_facts(client, 0, &facts), NXL_OK);
    return facts;
}

static void facts_of_a_server_in_use(void **state)
{
    (void)state;
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "k", 5000);
    char line[512], version[64];
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    nxl_server_facts facts = facts_of(client);
    nxl_client_describe_server(client, 0, line, sizeof(line));
    assert_int_equal(strncmp(line, facts.url, strlen(facts.url)), 0);
    assert_int_equal(facts.state, NXL_SERVER_UP);
    assert_int_equal(facts.role, NXL_ROLE_PRIMARY);
    snprintf(version, sizeof(version), "%s %d.%d.%d",
        facts.software == NXL_SOFTWARE_VALKEY ? "valkey" : "redis",
        facts.version[0], facts.version[1], facts.version[2]);
    assert_contains(line, version);
    assert_string_equal(facts.strategy, "SET NX PX + scripts");
    assert_contains(line, facts.strategy);
    assert_true(facts.scripts);
    assert_string_equal(facts.error, "");
    assert_true(facts.in_line);
    assert_string_equal(facts.waiting, "in line");
    end(lock, client);
}

/* Whether the user may wait in line is known after the first wait. */
static void how_locks_wait(void **state)
{
    (void)state;
    redis_run(&server, "ACL", "SETUSER", "u", "on", ">Zqx7", "~*", "&*",
        "+@all", "-zadd", NULL);
    stranger_sets("k", "stranger", 60000);
    nxl_client *client = new_client("user=u&password=Zqx7");
    nxl_lock *lock = new_lock(client, "k", 5000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_BUSY, lock);
    assert_true(facts_of(client).in_line);
    assert_result(nxl_lock_acquire(lock, 100), NXL_BUSY, lock);
    nxl_server_facts facts = facts_of(client);
    assert_false(facts.in_line);
    assert_string_equal(facts.waiting,
        "by polling (no permission to wait in line: see docs/acl.md)");
    end(lock, client);

    client = new_client("poll=1");
    lock = new_lock(client, "k", 5000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_BUSY, lock);
    assert_string_equal(facts_of(client).waiting, "by polling (poll=1)");
    redis_run(&server, "ACL", "DELUSER", "u", NULL);
    end(lock, client);
}

static void facts_without_scripts(void **state)
{
    (void)state;
    redis_run(&server, "ACL", "SETUSER", "u", "on", ">Zqx7", "~*", "+@all",
        "-@scripting", NULL);
    nxl_client *client = new_client("user=u&password=Zqx7");
    nxl_lock *lock = new_lock(client, "k", 5000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    nxl_server_facts facts = facts_of(client);
    assert_int_equal(facts.state, NXL_SERVER_UP);
    assert_false(facts.scripts);
    assert_contains(facts.strategy, "WATCH");
    redis_run(&server, "ACL", "DELUSER", "u", NULL);
    end(lock, client);
}

static void facts_of_a_replica(void **state)
{
    (void)state;
    redis_run(&server, "REPLICAOF", "127.0.0.1", "1", NULL);
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "k", 5000);
    nxl_holder holder = NXL_HOLDER_INIT;
    int rc = nxl_lock_inspect(lock, &holder);
    (void)rc;
    assert_int_equal(facts_of(client).role, NXL_ROLE_REPLICA);
    /* Nothing has been locked there yet. */
    assert_string_equal(facts_of(client).strategy, "");
    redis_run(&server, "REPLICAOF", "NO", "ONE", NULL);
    end(lock, client);
}

static void facts_of_a_missing_database(void **state)
{
    (void)state;
    nxl_client *client = new_client("db=77777");
    nxl_lock *lock = new_lock(client, "k", 5000);
    assert_int_not_equal(nxl_lock_acquire(lock, 0), NXL_OK);
    nxl_server_facts facts = facts_of(client);
    assert_int_equal(facts.state, NXL_SERVER_DOWN);
    assert_true(facts.no_database);
    assert_false(facts.sentinel);
    assert_contains(facts.error, "DB index");
    end(lock, client);
}

static void facts_after_a_wrong_password(void **state)
{
    (void)state;
    nxl_client *client = new_client("password=s3cret-word");
    nxl_lock *lock = new_lock(client, "k", 5000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_DENIED, lock);
    nxl_server_facts facts = facts_of(client);
    assert_int_equal(facts.state, NXL_SERVER_DOWN);
    assert_false(facts.no_database || facts.sentinel);
    assert_true(facts.error[0] != '\0');
    assert_null(strstr(facts.error, "s3cret-word"));
    end(lock, client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        live_test(facts_of_a_server_in_use),
        live_test(how_locks_wait),
        live_test(facts_without_scripts),
        live_test(facts_of_a_replica),
        live_test(facts_of_a_missing_database),
        live_test(facts_after_a_wrong_password),
    };
    return live_run("server facts");
}

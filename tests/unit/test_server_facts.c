/* SPDX-License-Identifier: MIT */
/*
 * The facts of a server, as far as they are known without one; and how a
 * structure of another size is filled.
 */
#include "support/test.h"

#include <nxlock.h>
#include <unistd.h>

static nxl_client *client_of(const char *urls)
{
    nxl_client *client;
    assert_int_equal(nxl_client_new(&client, urls, NULL), NXL_OK);
    return client;
}

static void a_client_without_a_connection(void **state)
{
    (void)state;
    nxl_client *client = client_of("redis://u:s3cret@h:7/3?timeout_ms=500");
    nxl_server_facts facts = NXL_SERVER_FACTS_INIT;
    assert_int_equal(nxl_client_server_facts(client, 0, &facts), NXL_OK);
    assert_int_equal(facts.size, sizeof(facts));
    assert_string_equal(facts.url, "redis://h:7/3");
    assert_int_equal(facts.state, NXL_SERVER_DOWN);
    assert_int_equal(facts.role, NXL_ROLE_UNKNOWN);
    assert_int_equal(facts.software, NXL_SOFTWARE_UNKNOWN);
    assert_string_equal(facts.strategy, "");
    assert_string_equal(facts.error, "");
    assert_true(facts.votes);
    assert_string_equal(facts.no_vote, "");
    assert_false(facts.guarded || facts.cluster || facts.scripts);
    assert_false(facts.sentinel || facts.no_database || facts.logged_in);
    assert_true(facts.sends_password);
    assert_false(facts.in_line);
    assert_string_equal(facts.waiting, "");
    assert_int_equal(facts.timeout_ms, 500);
    assert_int_equal(facts.min_ttl_ms, 13);
    assert_int_equal(facts.max_ttl_ms, 60000);
    nxl_client_free(client);
}

static void each_of_several(void **state)
{
    (void)state;
    nxl_client *client = client_of("redis://a,unix:///b?max_ttl_ms=90000");
    nxl_server_facts facts = NXL_SERVER_FACTS_INIT;
    assert_int_equal(nxl_client_server_facts(client, 0, &facts), NXL_OK);
    assert_string_equal(facts.url, "redis://a:6379/0");
    assert_true(facts.guarded);
    assert_int_equal(facts.max_ttl_ms, 90000);
    assert_int_equal(nxl_client_server_facts(client, 1, &facts), NXL_OK);
    assert_string_equal(facts.url, "unix:///b");
    assert_int_equal(nxl_client_server_facts(client, 2, &facts), NXL_E_INVALID);
    assert_int_equal(nxl_client_server_facts(NULL, 0, &facts), NXL_E_INVALID);
    assert_int_equal(nxl_client_server_facts(client, 0, NULL), NXL_E_INVALID);
    nxl_client_free(client);
}

/* A program that was compiled with an older or a newer header. */
static void other_sizes(void **state)
{
    (void)state;
    nxl_client *client = client_of("redis://h");
    struct {
        nxl_server_facts facts;
        char behind[64];
    } room;
    memset(&room, 0x5a, sizeof(room));
    room.facts.size = 0;
    assert_int_equal(
        nxl_client_server_facts(client, 0, &room.facts), NXL_E_INVALID);
    room.facts.size = offsetof(nxl_server_facts, software);
    assert_int_equal(nxl_client_server_facts(client, 0, &room.facts), NXL_OK);
    assert_string_equal(room.facts.url, "redis://h:6379/0");
    assert_int_equal(room.facts.size, offsetof(nxl_server_facts, software));
    assert_int_equal(room.facts.software, 0x5a5a5a5a);
    room.facts.size = sizeof(room);
    assert_int_equal(nxl_client_server_facts(client, 0, &room.facts), NXL_OK);
    assert_int_equal(room.facts.max_ttl_ms, 60000);
    assert_int_equal(room.behind[0], 0x5a);
    nxl_client_free(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_without_a_connection),
        cmocka_unit_test(each_of_several),
        cmocka_unit_test(other_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

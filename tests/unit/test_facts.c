/* SPDX-License-Identifier: MIT */
/* What a server is, by its INFO; see test_handshake.c for the other facts. */
#include "support/test.h"

#include "wire/facts.h"

static struct facts facts_of(const char *info)
{
    struct facts f = {.uptime_s = -1, .slots = -1};
    struct reply reply = {.kind = REPLY_STRING, .bytes = slice_of(info)};
    facts_read_info(&f, &reply);
    return f;
}

/* Its INFO names it nowhere, and ends with a section of its own. */
static void keydb_is_told_by_what_only_it_says(void **state)
{
    (void)state;
    struct facts f = facts_of("# Server\r\nredis_version:6.3.4\r\n"
                              "executable:/usr/bin/keydb-server\r\n");
    assert_string_equal(f.version, "6.3.4");
    assert_string_equal(f.software, "keydb");
    f = facts_of("redis_version:255.255.255\r\nexecutable:/data/x\r\n"
                 "# KeyDB\r\nmvcc_depth:0\r\n");
    assert_string_equal(f.version, "255.255.255");
    assert_string_equal(f.software, "keydb");
    f = facts_of("redis_version:7.0.15\nexecutable:/bin/redis-server\n");
    assert_string_equal(f.software, "redis");
}

static void a_node_of_a_cluster(void **state)
{
    (void)state;
    assert_true(facts_of("redis_mode:cluster\n").cluster);
    assert_true(facts_of("server_mode:cluster\n").cluster);
    assert_true(facts_of("redis_mode:x\r\ncluster_enabled:1\r\n").cluster);
    assert_true(facts_of("cluster_enabled:1\nredis_mode:x\n").cluster);
    assert_false(
        facts_of("redis_mode:standalone\r\ncluster_enabled:0\r\n").cluster);
    assert_false(facts_of("").cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keydb_is_told_by_what_only_it_says),
        cmocka_unit_test(a_node_of_a_cluster),
    };
    return cmocka_run_group_tests_name("facts", tests, NULL, NULL);
}

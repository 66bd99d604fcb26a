/* SPDX-License-Identifier: MIT */
/*
 * What a server says of itself. Servers that grant locks but must not be given
 * any: an active replica of KeyDB, which is refused at the first command; and
 * one in whose place such a server, or a node of a Redis Cluster, is met later,
 * when lock commands are sent together with the handshake. And how INFO is
 * shown.
 */
#include "rig.h"

#define ACTIVE                                                                 \
    "INFO # Server\\r\\nredis_version:6.3.4\\r\\nrun_id:" RUN_ID               \
    "\\r\\nredis_mode:standalone\\r\\nuptime_in_seconds:864000\\r\\n"          \
    "# Replication\\r\\nrole:active-replica\\r\\nmaster_host:10.0.0.9\\r\\n\n"
#define NODE                                                                   \
    "INFO # Server\\r\\nredis_version:7.0.15\\r\\nrun_id:" RUN_ID              \
    "\\r\\nredis_mode:cluster\\r\\nuptime_in_seconds:864000\\r\\n"             \
    "# Replication\\r\\nrole:master\\r\\n\n"
#define PLAIN                                                                  \
    "INFO # Server\\r\\nredis_version:7.0.15\\r\\nrun_id:" RUN_ID              \
    "\\r\\nuptime_in_seconds:864000\\r\\n# "                                   \
    "Replication\\r\\nrole:master\\r\\n\n"
#define ALL_SLOTS                                                              \
    "BULK f0 :0@0 slave 0 0 0 0 connected\\nf1 127.0.0.1:7000@17000 "          \
    "myself,master - 0 0 1 connected 0-16383\\n\n"

/* What the flight is answered with, when its commands are EXPECTed. */
#define FLIGHT_ANSWERS(info)                                                   \
    "SEND :8\\r\\n\n"                                                          \
    "BULK " info "\n"                                                          \
    "BULK a\nBULK b\nBULK c\n"
#define INFO_OF_ACTIVE                                                         \
    "# Server\\r\\nredis_version:6.3.4\\r\\n"                                  \
    "# Replication\\r\\nrole:active-replica\\r\\n"
#define INFO_OF_NODE                                                           \
    "# Server\\r\\nredis_version:7.0.15\\r\\nredis_mode:cluster\\r\\n"

static void assert_active(const nxl_lock *lock)
{
    assert_contains(nxl_lock_errmsg(lock), "an active replica");
    assert_contains(nxl_lock_errmsg(lock), "two clients can hold one lock");
    assert_contains(nxl_lock_errmsg(lock), "set active-replica no");
    assert_not_held(lock);
}

/* The play has no lock command, so one that came would be reported. */
static void an_active_replica_gets_no_lock(void **state)
{
    (void)state;
    struct rig r = rig_open(ACTIVE SHAKE, 'u', "timeout_ms=2000");
    assert_ends(nxl_lock_acquire(r.lock, 0), NXL_E_REFUSED, 2000);
    assert_active(r.lock);
    assert_ends(nxl_lock_acquire(r.lock, 300), NXL_E_REFUSED, 300);
    assert_active(r.lock);
    assert_ends(nxl_once_begin(r.lock, NULL, 0), NXL_E_REFUSED, 2000);
    nxl_server_facts facts = NXL_SERVER_FACTS_INIT;
    assert_int_equal(nxl_client_server_facts(r.client, 0, &facts), NXL_OK);
    assert_int_equal(facts.role, NXL_ROLE_ACTIVE_REPLICA);
    assert_true(facts.unfit && !facts.votes && !facts.cluster);
    rig_close(&r);
}

/* The lock command was sent with the handshake, and its grant comes together
 * with the answer that shows what the server is. */
static void a_grant_beside_the_handshake_does_not_count(void **state)
{
    (void)state;
    struct rig r = rig_open(PLAIN SHAKE WORKS
        "WAIT-FOR close\nCLOSE\n" NEXT FLIGHT SET_T FLIGHT_ANSWERS(
            INFO_OF_ACTIVE) OK "EXPECT EVAL * 1 k $t\n" ONE,
        'u', "timeout_ms=2000");
    assert_works(r.lock);
    rig_hang_up(&r, "close");
    rig_idle();
    int rc = nxl_lock_acquire(r.lock, 0);
    assert_true(rc == NXL_E_REFUSED || rc == NXL_UNKNOWN);
    assert_active(r.lock);
    rig_close(&r);
}

/* Its slots are asked after INFO, behind the lock command: so the connection
 * ends, and the next one sends nothing early. */
static void a_node_in_its_place_is_asked_first(void **state)
{
    (void)state;
    struct rig r = rig_open(PLAIN SHAKE WORKS
        "WAIT-FOR close\nCLOSE\n" NEXT FLIGHT SET_T FLIGHT_ANSWERS(
            INFO_OF_NODE) "EXPECT-CLOSE\n" NODE NEXT SHAKE
                          "EXPECT CLUSTER NODES\n" ALL_SLOTS
                          "EXPECT EVAL * 1 k $t\n" ONE
                          "EXPECT SET k $y NX PX 30000\n" OK
                          "EXPECT EVALSHA * 1 k $y\n" ONE,
        'u', "timeout_ms=2000");
    assert_works(r.lock);
    rig_hang_up(&r, "close");
    rig_idle();
    int rc = nxl_lock_acquire(r.lock, 0);
    assert_int_equal(rc, NXL_UNKNOWN);
    assert_contains(nxl_lock_errmsg(r.lock), "Redis Cluster");
    assert_not_held(r.lock);
    assert_works(r.lock);
    rig_close(&r);
}

/* What CLUSTER NODES may say; only the first two let a lock in. */
static void slots_are_counted(void **state)
{
    (void)state;
    static const struct {
        const char *answer, *words; /* NULL: it works */
    } rows[] = {
        {ALL_SLOTS, NULL},
        {"BULK f1 :7000 myself,master - 0 0 1 connected 0-99 100 101-16383\\r"
         "\\n\n",
            NULL},
        {"BULK f1 :7000 myself,master - 0 0 1 connected\\n\n", "no slots"},
        {"BULK f1 :7000 myself,slave f2 0 0 1 connected\\nf2 :7001 master - 0 "
         "0 1 connected 0-16383\\n\n",
            "no slots"},
        {"BULK f1 :7000 myself,master - 0 0 1 connected 0-16382\\n\n",
            "serves 16383 of 16384"},
        {"BULK f1 :7000 myself,master - 0 0 1 connected 0-16383 [93->-f2]\\n\n",
            "serves 16383 of 16384"},
        {"BULK f1 :7000 myself,master - 0 0 1 connected 0-16384\\n\n",
            "no slots"},
        {"BULK f1 :7000 myself,master - 0 0 1 connected 1 [2-<-f2] x -\\n\n",
            "serves 1 of 16384"},
        {"BULK f2 :7001 master - 0 0 1 connected 0-16383\\n\n", "does not say"},
        {"SEND $0\\r\\n\\r\\n\n", "does not say"},
        {"SEND -ERR This instance has cluster support disabled\\r\\n\n",
            "does not say"},
        {"SEND -NOPERM no\\r\\n\n", "+cluster|nodes"},
        {"SEND *0\\r\\n\n", "does not say"},
        {"SEND $-1\\r\\n\n", "does not say"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct script s = {0};
        add(&s, NODE SHAKE "EXPECT CLUSTER NODES\n%s%s", rows[i].answer,
            rows[i].words ? "" : WORKS);
        struct rig r = rig_open(s.text, 'u', "timeout_ms=2000");
        if (rows[i].words) {
            assert_ends(nxl_lock_acquire(r.lock, 0), NXL_E_REFUSED, 2000);
            assert_contains(nxl_lock_errmsg(r.lock), rows[i].words);
            assert_contains(nxl_lock_errmsg(r.lock), "cluster-enabled no");
        } else {
            assert_works(r.lock);
        }
        rig_close(&r);
    }
}

/* What INFO says is shown in the library's words, as a program reads it in the
 * facts: a role or software that it does not know is not repeated. */
static void the_line_prints_the_facts(void **state)
{
    (void)state;
    static const struct {
        const char *info;
        int software, role;
        const char *line;
    } rows[] = {
        {"redis_version:7.0.15\\r\\nrole:master", NXL_SOFTWARE_REDIS,
            NXL_ROLE_PRIMARY, ", connected, redis 7.0.15, role primary, lock"},
        {"redis_version:8.0.0-rc1\\r\\nrole:primary", NXL_SOFTWARE_REDIS,
            NXL_ROLE_PRIMARY, ", connected, redis 8.0.0, role primary, lock"},
        {"valkey_version:8.1.0\\r\\nrole:other", NXL_SOFTWARE_VALKEY,
            NXL_ROLE_UNKNOWN, ", connected, valkey 8.1.0, lock"},
        {"redis_version:6.3.4\\r\\nmvcc_depth:0\\r\\nrole:slave",
            NXL_SOFTWARE_KEYDB, NXL_ROLE_REPLICA,
            ", connected, keydb 6.3.4, role replica, lock"},
        {"server_name:kvs\\r\\nredis_version:1.2.3", NXL_SOFTWARE_UNKNOWN,
            NXL_ROLE_UNKNOWN, ", connected, other software 1.2.3, lock"},
        {"uptime_in_seconds:9", NXL_SOFTWARE_UNKNOWN, NXL_ROLE_UNKNOWN,
            ", connected, lock"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct script s = {0};
        nxl_server_facts facts = NXL_SERVER_FACTS_INIT;
        char text[512], expected[2048];
        add(&s, "INFO %s\nSERVE\n", rows[i].info);
        struct rig r = rig_open(s.text, 'u', "timeout_ms=2000");
        assert_int_equal(nxl_lock_acquire(r.lock, 0), NXL_OK);
        assert_int_equal(nxl_client_server_facts(r.client, 0, &facts), NXL_OK);
        assert_int_equal(facts.software, rows[i].software);
        assert_int_equal(facts.role, rows[i].role);
        nxl_client_describe(r.client, text, sizeof(text));
        snprintf(expected, sizeof(expected), "%s%s commands %s, waits %s",
            facts.url, rows[i].line, facts.strategy, facts.waiting);
        assert_string_equal(text, expected);
        rig_close(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_active_replica_gets_no_lock),
        cmocka_unit_test(a_grant_beside_the_handshake_does_not_count),
        cmocka_unit_test(a_node_in_its_place_is_asked_first),
        cmocka_unit_test(slots_are_counted),
        cmocka_unit_test(the_line_prints_the_facts),
    };
    return cmocka_run_group_tests_name("unfit", tests, NULL, NULL);
}

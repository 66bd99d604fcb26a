/* SPDX-License-Identifier: MIT */
/*
 * The flight's bytes, what ends it, and what INFO is read for.
 *
 * One subject: a handshake, of a server or of a Sentinel.
 */
#include "support/test.h"

#include "base/deadline.h"
#include "wire/handshake.h"
#include "wire/script.h"

static const struct handshake_terms nobody = {0};
static const struct handshake_terms secret = {.password = {"pw", 2}};
static const struct handshake_terms full = {
    .user = {"joe", 3}, .password = {"p\0w", 3}, .db = 12};

static inline struct reply words(enum reply_kind kind, const char *text)
{
    return (struct reply){.kind = kind, .bytes = slice_of(text)};
}

static inline struct reply integer(int64_t n)
{
    return (struct reply){.kind = REPLY_INTEGER, .integer = n};
}

static inline void begin(
    struct handshake *h, const struct handshake_terms *who, unsigned replies)
{
    struct buf out = {0};
    assert_int_equal(handshake_begin(h, who, &out), replies);
    buf_free(&out);
}

static inline void assert_waits(struct handshake *h, struct reply reply)
{
    enum fault fault = FAULT_NONE;
    assert_int_equal(handshake_reply(h, &reply, &fault), HANDSHAKE_WAIT);
    assert_int_equal(fault, FAULT_NONE);
}

static inline void assert_fails(
    struct handshake *h, struct reply reply, enum fault expected)
{
    enum fault fault = FAULT_NONE;
    assert_int_equal(handshake_reply(h, &reply, &fault), HANDSHAKE_FAILED);
    assert_int_equal(fault, expected);
}

static const char sha[] = "0123456789abcdef0123456789abcdef01234567";

/* A login that is refused: what INFO answers then ends it. */
static void assert_refuses(
    struct handshake *h, const char *error, enum fault expected)
{
    struct handshake other;

    assert_waits(h, words(REPLY_ERROR, error));
    assert_int_equal(h->refused, expected);
    while (h->step != 4) /* INFO */
        assert_waits(h, words(REPLY_ERROR, "NOAUTH x"));
    other = *h;
    assert_fails(&other, words(REPLY_ERROR, "NOAUTH x"), expected);
    assert_string_equal(other.why, error);
    other = *h;
    assert_fails(&other, words(REPLY_STRING, "role:master\n"), expected);
    assert_string_equal(other.why, error);
}

/* The replies after INFO; the last one ends it. */
static void assert_loads(struct handshake *h, struct reply reply)
{
    enum fault fault = FAULT_NONE;
    for (int i = 0; i < SCRIPTS_LOADED - 1; i++)
        assert_waits(h, reply);
    assert_int_equal(handshake_reply(h, &reply, &fault), HANDSHAKE_DONE);
    assert_int_equal(fault, FAULT_NONE);
}

static void append_loads(struct buf *expected)
{
    for (int i = 0; i < SCRIPTS_LOADED; i++) {
        struct slice body = scripts[scripts_loaded[i]].body;
        char text[16384];
        int len = snprintf(text, sizeof(text),
            "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$%zu\r\n%s\r\n", body.len,
            body.data);
        assert_true(buf_append(expected, text, (size_t)len));
    }
}

static void assert_flight(const struct handshake_terms *who, unsigned replies,
    const char *first, size_t first_len)
{
    static const char rest[] =
        "*2\r\n$6\r\nCLIENT\r\n$2\r\nID\r\n*1\r\n$4\r\nINFO\r\n";
    struct buf out = {0}, expected = {0};
    struct handshake h;

    assert_true(buf_append(&expected, first, first_len));
    assert_true(buf_append(&expected, rest, sizeof(rest) - 1));
    append_loads(&expected);
    assert_int_equal(handshake_begin(&h, who, &out), replies);
    assert_int_equal(buf_len(&out), buf_len(&expected));
    assert_memory_equal(
        buf_head(&out), buf_head(&expected), buf_len(&expected));
    buf_free(&out);
    buf_free(&expected);
}

static void test_bytes(void **state)
{
    static const char auth[] = "*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n";
    static const char both[] = "*3\r\n$4\r\nAUTH\r\n$3\r\njoe\r\n$3\r\np\0w\r\n"
                               "*2\r\n$6\r\nSELECT\r\n$2\r\n12\r\n";
    static const struct handshake_terms empty = {.password = {"", 0}};
    static const char empty_auth[] = "*2\r\n$4\r\nAUTH\r\n$0\r\n\r\n";

    (void)state;
    assert_flight(&nobody, 2 + SCRIPTS_LOADED, "", 0);
    assert_flight(&secret, 3 + SCRIPTS_LOADED, auth, sizeof(auth) - 1);
    assert_flight(&full, 4 + SCRIPTS_LOADED, both, sizeof(both) - 1);
    assert_flight(
        &empty, 3 + SCRIPTS_LOADED, empty_auth, sizeof(empty_auth) - 1);
}

static void test_plain(void **state)
{
    struct handshake_terms db = {.db = 1};

    (void)state;
    assert_true(handshake_is_minimal(&nobody));
    assert_false(handshake_is_minimal(&secret));
    assert_false(handshake_is_minimal(&db));
    assert_false(handshake_is_minimal(&full));
}

static void test_redis(void **state)
{
    struct handshake h;

    (void)state;
    begin(&h, &full, 4 + SCRIPTS_LOADED);
    assert_int_equal(h.facts.uptime_s, -1);
    assert_waits(&h, words(REPLY_STATUS, "OK"));
    assert_waits(&h, words(REPLY_STATUS, "OK"));
    assert_waits(&h, integer(4711));
    assert_waits(&h,
        words(REPLY_STRING,
            "# Server\r\nredis_version:7.0.15\r\nredis_git_sha1:00000000\r\n"
            "run_id:0123456789abcdef0123456789abcdef01234567\r\n"
            "uptime_in_seconds:86461\r\nuptime_in_days:1\r\n\r\n"
            "# Memory\r\nmaxmemory_policy:volatile-lru\r\n"
            "# Persistence\r\nloading:0\r\nasync_loading:0\r\n"
            "# Replication\r\nrole:master\r\nconnected_slaves:0\r\n"));
    assert_loads(&h, words(REPLY_STRING, sha));
    assert_int_equal(h.facts.client_id, 4711);
    assert_int_equal(h.facts.uptime_s, 86461);
    assert_string_equal(h.facts.run_id, sha);
    assert_string_equal(h.facts.version, "7.0.15");
    assert_string_equal(h.facts.software, "redis");
    assert_string_equal(h.facts.role, "master");
    assert_false(h.facts.loading);
    assert_false(h.facts.info_refused);
}

static struct facts facts_of(struct slice info)
{
    struct handshake h;
    struct reply reply = {.kind = REPLY_STRING, .bytes = info};

    begin(&h, &nobody, 2 + SCRIPTS_LOADED);
    assert_waits(&h, integer(1));
    assert_waits(&h, reply);
    return h.facts;
}

/* A field as text; a number that is unknown is -1. */
static const char *shown(const struct facts *f, const char *field)
{
    static char number[32];
    const struct {
        const char *name, *text;
        int64_t number;
    } fields[] = {{"version", f->version, 0}, {"software", f->software, 0},
        {"role", f->role, 0}, {"run_id", f->run_id, 0}, {"mode", f->mode, 0},
        {"uptime", NULL, f->uptime_s},
        {"negative", NULL, f->uptime_was_negative},
        {"loading", NULL, f->loading}, {"cluster", NULL, f->cluster}};

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        snprintf(number, sizeof(number), "%lld", (long long)fields[i].number);
        if (!strcmp(fields[i].name, field))
            return fields[i].text ? fields[i].text : number;
    }
    return "no such field";
}

static const struct {
    const char *info, *field, *value;
} read_facts[] = {
    {"redis_version:7.2.4\r\nvalkey_version:9.1.2\r\n", "version", "9.1.2"},
    {"valkey_version:9.1.2\nredis_version:7.2.4\n", "version", "9.1.2"},
    {"valkey_version:9.1.2\nredis_version:7.2.4\n", "software", "valkey"},
    {"redis_version:7.2.4\r\nserver_name:valkey\r\n", "software", "valkey"},
    /* KeyDB names itself nowhere, and ends with a section of its own. */
    {"redis_version:6.3.4\r\nexecutable:/usr/bin/keydb-server\r\n", "software",
        "keydb"},
    {"redis_version:255.255.255\r\nexecutable:/data/x\r\n# KeyDB\r\n"
     "mvcc_depth:0\r\n",
        "software", "keydb"},
    {"redis_version:255.255.255\r\n# KeyDB\r\nmvcc_depth:0\r\n", "version",
        "255.255.255"},
    {"redis_version:7.0.15\nexecutable:/bin/redis-server\n", "software",
        "redis"},
    {"loading:1\r\nrole:slave\r\n", "loading", "1"},
    {"loading:0\r\nrole:slave\r\n", "role", "slave"},
    {"redis_mode:cluster\n", "cluster", "1"},
    {"server_mode:cluster\n", "cluster", "1"},
    {"redis_mode:x\r\ncluster_enabled:1\r\n", "cluster", "1"},
    {"cluster_enabled:1\nredis_mode:x\n", "cluster", "1"},
    {"redis_mode:standalone\r\ncluster_enabled:0\r\n", "cluster", "0"},
    {"", "cluster", "0"},
    {"", "version", ""},
    {"", "uptime", "-1"},
    {"\r\n:\r\nrole\r\nrole:\r\n:x\r\nxrole:a\r\n", "role", ""},
    /* No line end at the end; longer than the field. */
    {"role:abcdefghijklmnopqrstuvwxyz", "role", "abcdefghijklmno"},
    {"run_id:0123456789abcdef0123456789abcdef01234567x", "run_id", sha},
    {"uptime_in_seconds:12a\r\n", "uptime", "-1"},
    {"uptime_in_seconds:99999999999999999999999\r\n", "uptime", "-1"},
    {"uptime_in_seconds:0\r\n", "uptime", "0"},
    {"uptime_in_seconds:0\r\n", "negative", "0"},
    {"uptime_in_seconds:-7203\r\n", "uptime", "0"},
    {"uptime_in_seconds:-7203\r\n", "negative", "1"},
    {"uptime_in_seconds:-\r\n", "uptime", "-1"},
    {"uptime_in_seconds:--1\r\n", "uptime", "-1"},
    {"uptime_in_seconds:-1a\r\n", "uptime", "-1"},
    {"uptime_in_seconds:-1a\r\n", "negative", "0"},
    {"uptime_in_seconds:-0\r\n", "uptime", "-1"},
    /* A terminal obeys what it is sent. */
    {"redis_version:7\x1b[2J\x07 \x7f\xff\r\n", "version", "7?[2J????"},
    {"server_name:a\x1b]0;\n", "software", "a?]0;"},
    {"role:\x9bm~!\t\r\n", "role", "?m~!?"},
    {"redis_mode:\x1b\n", "mode", "?"},
};

static void test_facts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(read_facts) / sizeof(read_facts[0]); i++) {
        const struct facts f = facts_of(slice_of(read_facts[i].info));
        const char *got = shown(&f, read_facts[i].field);
        if (strcmp(got, read_facts[i].value) != 0)
            fail_msg("row %zu: %s is %s", i, read_facts[i].field, got);
    }
}

/* Of an INFO that was too long, what was read whole counts. */
static void test_info_that_is_cut(void **state)
{
    static const char *const texts[] = {
        "role:master\r\nrun_id:ab\r\nuptime_in_seconds:12",
        "role:master\nrun_id:ab\n", "role:mas", ""};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct handshake h;
        struct reply info = words(REPLY_STRING, texts[i]);
        info.truncated = true;
        begin(&h, &nobody, 2 + SCRIPTS_LOADED);
        assert_waits(&h, integer(1));
        assert_waits(&h, info);
        assert_string_equal(h.facts.run_id, i < 2 ? "ab" : "");
        assert_string_equal(h.facts.role, i < 2 ? "master" : "");
        assert_int_equal(h.facts.uptime_s, -1);
        assert_false(h.facts.info_refused);
    }
}

/* Each cut of it, in memory of just that size. */
static void test_info_is_read_within_the_slice(void **state)
{
    static const char info[] = "# S\r\nredis_version:7.0\r\nrun_id:ab\r\n"
                               "uptime_in_seconds:86461\r\nrole:master\r\n";

    (void)state;
    for (size_t len = 0; len < sizeof(info); len++) {
        char *copy = malloc(len + (len == 0));
        assert_non_null(copy);
        memcpy(copy, info, len);
        facts_of((struct slice){copy, len});
        free(copy);
    }
}

static void test_auth_refused(void **state)
{
    static const struct {
        const char *error;
        enum fault fault;
    } cases[] = {
        {"WRONGPASS invalid username-password pair", FAULT_DENIED},
        {"ERR invalid password", FAULT_DENIED},
        {"ERR Client sent AUTH, but no password is set", FAULT_DENIED},
        {"ERR wrong number of arguments for 'auth' command", FAULT_DENIED},
        {"ERR words of tomorrow", FAULT_DENIED},
        {"LOADING Redis is loading", FAULT_RETRY},
        {"ERR max number of clients reached", FAULT_RETRY},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct handshake h;
        begin(&h, &secret, 3 + SCRIPTS_LOADED);
        if (cases[i].fault == FAULT_DENIED)
            assert_refuses(&h, cases[i].error, cases[i].fault);
        else
            assert_fails(
                &h, words(REPLY_ERROR, cases[i].error), cases[i].fault);
    }
}

static void test_select_refused(void **state)
{
    struct handshake h;
    struct handshake_terms db = {.db = 99};

    (void)state;
    begin(&h, &db, 3 + SCRIPTS_LOADED);
    assert_refuses(&h, "ERR DB index is out of range", FAULT_NO_DATABASE);
    begin(&h, &db, 3 + SCRIPTS_LOADED);
    assert_refuses(&h, "ERR invalid DB index", FAULT_NO_DATABASE);
    begin(&h, &db, 3 + SCRIPTS_LOADED);
    assert_refuses(&h, "ERR in other words", FAULT_NO_DATABASE);
    begin(&h, &db, 3 + SCRIPTS_LOADED);
    assert_refuses(&h, "NOAUTH Authentication required.", FAULT_DENIED);
    begin(&h, &db, 3 + SCRIPTS_LOADED);
    assert_refuses(
        &h, "ERR SELECT is not allowed in cluster mode", FAULT_CLUSTER);
    begin(&h, &full, 4 + SCRIPTS_LOADED);
    assert_waits(&h, words(REPLY_STATUS, "OK"));
    assert_refuses(&h, "NOPERM x", FAULT_NO_PERMISSION);
    /* Longer than what is kept of it. */
    char longer[400];
    memset(longer, 'x', sizeof(longer));
    longer[sizeof(longer) - 1] = '\0';
    begin(&h, &secret, 3 + SCRIPTS_LOADED);
    assert_waits(&h, words(REPLY_ERROR, longer));
    assert_int_equal(strlen(h.why), sizeof(h.why) - 1);
}

static void test_the_rest_may_be_refused(void **state)
{
    static const char *const errors[] = {
        "NOAUTH Authentication required.",
        "ERR operation not permitted",
        "NOPERM this user has no permissions to run the 'info' command",
        "ERR unknown command 'CLIENT'",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        struct handshake h;
        struct reply error = words(REPLY_ERROR, errors[i]);
        begin(&h, &nobody, 2 + SCRIPTS_LOADED);
        assert_waits(&h, error);
        assert_waits(&h, error);
        assert_loads(&h, error);
        assert_true(h.facts.info_refused);
        assert_int_equal(h.facts.client_id, 0);
        assert_int_equal(h.facts.uptime_s, -1);
        assert_false(h.facts.loading);
    }
}

static void test_loading(void **state)
{
    struct handshake h;

    (void)state;
    begin(&h, &nobody, 2 + SCRIPTS_LOADED);
    assert_waits(&h, words(REPLY_ERROR, "LOADING Redis is loading"));
    assert_true(h.facts.loading);
    assert_false(h.facts.info_refused);
}

static void test_farewell(void **state)
{
    struct handshake h;

    (void)state;
    begin(&h, &nobody, 2 + SCRIPTS_LOADED);
    assert_fails(&h, words(REPLY_ERROR, "ERR max number of clients reached"),
        FAULT_RETRY);
    begin(&h, &nobody, 2 + SCRIPTS_LOADED);
    assert_fails(&h,
        words(REPLY_ERROR, "DENIED Redis is running in protected mode"),
        FAULT_DENIED);
}

static void test_impossible_replies(void **state)
{
    const struct reply nil = {.kind = REPLY_NIL};
    struct handshake h;

    (void)state;
    begin(&h, &secret, 3 + SCRIPTS_LOADED);
    assert_fails(&h, integer(1), FAULT_NOT_REDIS);
    begin(&h, &secret, 3 + SCRIPTS_LOADED);
    assert_fails(&h, words(REPLY_STATUS, "QUEUED"), FAULT_NOT_REDIS);
    begin(&h, &nobody, 2 + SCRIPTS_LOADED);
    assert_fails(&h, words(REPLY_STATUS, "OK"), FAULT_NOT_REDIS);
    begin(&h, &nobody, 2 + SCRIPTS_LOADED);
    assert_waits(&h, integer(1));
    assert_fails(&h, nil, FAULT_NOT_REDIS);
    begin(&h, &nobody, 2 + SCRIPTS_LOADED);
    assert_waits(&h, integer(1));
    assert_waits(&h, words(REPLY_STRING, ""));
    assert_fails(&h, integer(1), FAULT_NOT_REDIS);
}

/* Nothing but AUTH and SELECT was answered. */
static void test_unanswered(void **state)
{
    static const struct handshake_terms sentinel = {.sentinel = true};
    struct handshake h;

    (void)state;
    begin(&h, &nobody, 2 + SCRIPTS_LOADED);
    assert_true(handshake_unanswered(&h));
    assert_waits(&h, integer(7));
    assert_false(handshake_unanswered(&h));
    begin(&h, &secret, 3 + SCRIPTS_LOADED);
    assert_true(handshake_unanswered(&h));
    assert_waits(&h, words(REPLY_STATUS, "OK"));
    assert_true(handshake_unanswered(&h));
    begin(&h, &sentinel, 1); /* INFO is its first command */
    assert_true(handshake_unanswered(&h));
}

static void assert_says(struct reply fsync, const char *expected)
{
    struct handshake_terms who = {.asks_fsync = true};
    struct handshake h;

    begin(&h, &who, 3 + SCRIPTS_LOADED);
    who.asks_fsync = false; /* that is for the next one */
    assert_waits(&h, integer(7));
    assert_waits(&h, words(REPLY_STRING, "aof_enabled:1\r\n"));
    assert_waits(&h, fsync);
    assert_loads(&h, words(REPLY_STRING, sha));
    assert_true(h.facts.asked_fsync);
    assert_int_equal(h.facts.aof, AOF_ON);
    assert_string_equal(h.facts.appendfsync, expected);
}

/* How safe its records are is asked of a server that has to keep some. */
static void test_persistence(void **state)
{
    const struct reply items[] = {words(REPLY_STRING, "appendfsync"),
        words(REPLY_STRING, "everysec"), words(REPLY_NIL, "")};
    struct reply fsync = {.kind = REPLY_ARRAY, .count = 2, .items = items};
    struct handshake_terms who = {.asks_fsync = false};
    struct handshake h;

    (void)state;
    assert_says(fsync, "everysec");
    fsync.items = items + 1;
    assert_says(fsync, "");
    fsync.count = 0;
    assert_says(fsync, "");
    assert_says(words(REPLY_ERROR, "NOPERM no permission for config"), "");
    begin(&h, &who, 2 + SCRIPTS_LOADED);
    who.asks_fsync = true;
    assert_waits(&h, integer(7));
    assert_waits(&h, words(REPLY_STRING, "aof_enabled:0\r\n"));
    assert_loads(&h, words(REPLY_STRING, sha));
    assert_false(h.facts.asked_fsync);
    assert_int_equal(h.facts.aof, AOF_OFF);
    begin(&h, &who, 3 + SCRIPTS_LOADED);
    assert_waits(&h, integer(7));
    assert_waits(&h, words(REPLY_STRING, "role:master\r\n"));
    assert_int_equal(h.facts.aof, AOF_UNKNOWN);
    assert_fails(&h, integer(1), FAULT_NOT_REDIS);
}

static void test_brief(void **state)
{
    static const struct handshake_terms brief = {
        .password = {"pw", 2}, .brief = true};
    struct handshake h;
    struct buf out = {0};
    enum fault fault = FAULT_NONE;
    struct reply ok = words(REPLY_STATUS, "OK");
    struct reply pong = words(REPLY_STATUS, "PONG");

    (void)state;
    assert_int_equal(handshake_begin(&h, &brief, &out), 2);
    static const char flight[] =
        "*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n*1\r\n$4\r\nPING\r\n";
    assert_int_equal(buf_len(&out), sizeof(flight) - 1);
    assert_memory_equal(buf_head(&out), flight, sizeof(flight) - 1);
    buf_free(&out);
    assert_true(h.facts.info_refused);
    assert_waits(&h, ok);
    assert_int_equal(handshake_reply(&h, &pong, &fault), HANDSHAKE_DONE);
    assert_int_equal(h.facts.client_id, 0);
}

/* A refused login ends a brief handshake too, though there is no INFO. */
static void test_brief_login_refused(void **state)
{
    static const struct handshake_terms brief = {.db = 3, .brief = true};
    struct handshake h;
    struct buf out = {0};
    enum fault fault = FAULT_NONE;
    struct reply pong = words(REPLY_STATUS, "PONG");

    (void)state;
    assert_int_equal(handshake_begin(&h, &brief, &out), 2);
    buf_free(&out);
    assert_waits(&h, words(REPLY_ERROR, "NOPERM x"));
    assert_int_equal(handshake_reply(&h, &pong, &fault), HANDSHAKE_FAILED);
    assert_int_equal(fault, FAULT_NO_PERMISSION);
    assert_string_equal(h.why, "NOPERM x");
}

/* -------------------------------------------------------------- its clock */

/* What INFO says of a former primary, if slave, or of the one after it. */
static void begin_with(struct handshake *h, const struct handshake_terms *who,
    const char *role, const char *second, const char *clock)
{
    static char info[512];
    snprintf(info, sizeof(info),
        "redis_version:7.0.15\r\n%srole:%s\r\nmaster_replid:new\r\n"
        "master_replid2:%s\r\n",
        clock, role, second);
    begin(h, who, 2 + SCRIPTS_LOADED);
    h->facts.asked_at = 100 * NS_PER_MS;
    h->answered_at = 101 * NS_PER_MS;
    assert_waits(h, integer(7));
    assert_waits(h, words(REPLY_STRING, info));
    for (int i = 0; i < SCRIPTS_LOADED - 1; i++)
        assert_waits(h, words(REPLY_STRING, sha));
}

/* The reply to the last one of the flight, or to a question. The next one is
 * asked now; it is INFO server. */
static enum handshake_next answer(
    struct handshake *h, struct reply reply, uint64_t told_ms)
{
    static const char question[] = "*2\r\n$4\r\nINFO\r\n$6\r\nserver\r\n";
    struct buf out = {0};
    enum fault fault = FAULT_NONE;
    h->answered_at = told_ms * NS_PER_MS;
    enum handshake_next next = handshake_reply(h, &reply, &fault);
    if (next == HANDSHAKE_ASK) {
        h->asked_at = told_ms * NS_PER_MS;
        assert_true(handshake_ask(h, &out));
        assert_int_equal(buf_len(&out), sizeof(question) - 1);
        assert_memory_equal(buf_head(&out), question, sizeof(question) - 1);
        buf_free(&out);
    }
    return next;
}

/* It is read until that took 2 ms at most; the best reading counts, but not
 * that of the flight. */
static void test_clock(void **state)
{
    static const uint64_t waits[][5] = {{2}, {3, 1}, {9, 5, 3, 8, 7}};
    static const struct {
        uint64_t asked, told;
    } kept[] = {{101, 103}, {104, 105}, {115, 118}};
    struct facts last = {.role = "master", .replid = "old"};
    const struct age_terms age = {.last = &last};
    const struct handshake_terms who = {.age = &age};
    (void)state;
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        struct handshake h;
        uint64_t now = 101;
        char text[64];
        begin_with(&h, &who, "slave", "old", "server_time_usec:5\r\n");
        struct reply reply = words(REPLY_STRING, sha);
        for (int n = 0; n < 5 && waits[i][n]; n++) {
            assert_int_equal(answer(&h, reply, now), HANDSHAKE_ASK);
            now += waits[i][n];
            snprintf(text, sizeof(text), "server_time_usec:%d\r\n", (int)now);
            reply = words(REPLY_STRING, text);
        }
        assert_int_equal(answer(&h, reply, now), HANDSHAKE_DONE);
        assert_int_equal(h.facts.asked_at, kept[i].asked * NS_PER_MS);
        assert_int_equal(h.facts.answered_at, kept[i].told * NS_PER_MS);
        assert_int_equal(h.facts.time_us, kept[i].told);
        assert_string_equal(h.facts.role, "slave");
    }
}

/* Only of a former primary, and of its successor; and an error ends it. */
static void test_clock_of_others(void **state)
{
    static const char clock[] = "server_time_usec:5\r\n";
    static const struct {
        const char *last, *role, *second, *clock;
        bool asks;
    } rows[] = {{"master", "slave", "old", clock, true},
        {"slave", "master", "old", clock, true},
        {"master", "slave", "", clock, false},
        {"master", "slave", "old", "", false},
        {"slave", "master", "", clock, false}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct facts last = {.replid = "new", .replid2 = "old"};
        struct handshake h;
        const struct age_terms age = {.last = &last};
        const struct handshake_terms who = {.age = &age};
        snprintf(last.role, sizeof(last.role), "%s", rows[i].last);
        begin_with(&h, &who, rows[i].role, rows[i].second, rows[i].clock);
        enum handshake_next next = answer(&h, words(REPLY_STRING, sha), 101);
        assert_int_equal(next, rows[i].asks ? HANDSHAKE_ASK : HANDSHAKE_DONE);
        if (rows[i].asks) {
            struct reply refused = words(REPLY_ERROR, "NOPERM");
            assert_int_equal(answer(&h, refused, 102), HANDSHAKE_DONE);
            assert_int_equal(h.facts.time_us, 5);
        }
        begin_with(&h, &nobody, rows[i].role, rows[i].second, rows[i].clock);
        assert_int_equal(
            answer(&h, words(REPLY_STRING, sha), 101), HANDSHAKE_DONE);
    }
}

/* ------------------------------------------------------------- a Sentinel */

/* A Sentinel is named whatever it says to the login before. */
static void test_sentinel(void **state)
{
    static const struct {
        const char *info, *why;
    } cases[] = {
        {"redis_mode:sentinel\r\n",
            "this is a Sentinel, which stores no locks"},
        {"# Server\r\nserver_name:valkey\r\nserver_mode:sentinel\r\n"
         "sentinel_masters:2\r\n"
         "master0:name=pay,status=ok,address=10.0.0.7:6379,slaves=1\r\n"
         "master1:name=o d,status=odown,address=::1:6380,slaves=0\r\n",
            "this is a Sentinel, which stores no locks; it monitors pay at "
            "10.0.0.7:6379, o?d at ::1:6380"},
        {"redis_mode:sentinel\r\nmaster0:name=\r\nmaster1:address=\r\n"
         "master2:address\r\nmaster3:,=,,\r\nmaster4",
            "this is a Sentinel, which stores no locks"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct handshake h;
        struct reply info = words(REPLY_STRING, cases[i].info);
        begin(&h, &nobody, 2 + SCRIPTS_LOADED);
        assert_waits(&h, integer(1));
        assert_fails(&h, info, FAULT_IS_SENTINEL);
        assert_string_equal(h.why, cases[i].why);
        begin(&h, &full, 4 + SCRIPTS_LOADED);
        assert_waits(&h, words(REPLY_ERROR, "WRONGPASS invalid"));
        assert_waits(&h, words(REPLY_ERROR, "ERR unknown command 'SELECT'"));
        assert_waits(&h, integer(1));
        assert_fails(&h, info, FAULT_IS_SENTINEL);
        assert_string_equal(h.why, cases[i].why);
        assert_int_equal(h.refused, FAULT_NONE);
    }
}

/* However many there are. */
static void test_sentinel_of_many(void **state)
{
    char text[4096];
    size_t used =
        (size_t)snprintf(text, sizeof(text), "redis_mode:sentinel\r\n");
    struct handshake h;

    (void)state;
    for (int i = 0; i < 30; i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used,
            "master%d:name=a-name-of-some-length,address=10.0.0.%d:6379\r\n", i,
            i);
    begin(&h, &nobody, 2 + SCRIPTS_LOADED);
    assert_waits(&h, integer(1));
    assert_fails(&h, words(REPLY_STRING, text), FAULT_IS_SENTINEL);
    assert_int_equal(strlen(h.why), sizeof(h.why) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_redis),
        cmocka_unit_test(test_facts),
        cmocka_unit_test(test_info_that_is_cut),
        cmocka_unit_test(test_info_is_read_within_the_slice),
        cmocka_unit_test(test_auth_refused),
        cmocka_unit_test(test_select_refused),
        cmocka_unit_test(test_the_rest_may_be_refused),
        cmocka_unit_test(test_loading),
        cmocka_unit_test(test_farewell),
        cmocka_unit_test(test_impossible_replies),
        cmocka_unit_test(test_unanswered),
        cmocka_unit_test(test_persistence),
        cmocka_unit_test(test_brief),
        cmocka_unit_test(test_brief_login_refused),
        cmocka_unit_test(test_clock),
        cmocka_unit_test(test_clock_of_others),
        cmocka_unit_test(test_sentinel),
        cmocka_unit_test(test_sentinel_of_many),
    };
    return cmocka_run_group_tests_name("handshake", tests, NULL, NULL);
}

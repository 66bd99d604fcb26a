/* SPDX-License-Identifier: MIT */
/*
 * The first commands on a connection: their bytes, which replies end the
 * handshake and how, and what INFO is read for.
 *
 * One subject: a handshake, of a server or of a Sentinel.
 */
#include "support/test.h"

#include "base/deadline.h"
#include "unit/fault_names.h"
#include "wire/handshake.h"
#include "wire/script.h"

static const struct handshake_terms nobody = {.db = 0};
static const struct handshake_terms secret = {.password = {"pw", 2}};
static const struct handshake_terms empty = {.password = {"", 0}};
static const struct handshake_terms other_db = {.db = 99};
static const struct handshake_terms full = {
    .user = {"joe", 3}, .password = {"p\0w", 3}, .db = 12};
static const struct handshake_terms brief = {
    .password = {"pw", 2}, .brief = true};
static const struct handshake_terms brief_db = {.db = 3, .brief = true};
static const struct handshake_terms durable = {.asks_fsync = true};
static const struct handshake_terms watched = {.sentinel = true};

#define SHA "0123456789abcdef0123456789abcdef01234567"

/* +OK, -ERR no, :1, $text, ~text of which the end is missing, nil, and
 * *text nil, an array. Lives until the next one. */
static struct reply reply_of(const char *text)
{
    static const char marks[] = "+-:$~*";
    static const enum reply_kind kinds[] = {REPLY_STATUS, REPLY_ERROR,
        REPLY_INTEGER, REPLY_STRING, REPLY_STRING, REPLY_ARRAY};
    static struct reply items[4];
    static char copy[64];
    const char *mark = strchr(marks, *text);
    char *rest;

    if (!mark)
        return (struct reply){.kind = REPLY_NIL};
    struct reply reply = {.kind = kinds[mark - marks],
        .bytes = slice_of(text + 1),
        .truncated = *mark == '~'};
    if (*mark == ':')
        reply.integer = strtoll(text + 1, NULL, 10);
    if (*mark != '*')
        return reply;
    snprintf(copy, sizeof(copy), "%s", text + 1);
    reply.items = items;
    for (char *word = strtok_r(copy, " ", &rest); word;
         word = strtok_r(NULL, " ", &rest))
        items[reply.count++] = (struct reply){
            .kind = strcmp(word, "nil") ? REPLY_STRING : REPLY_NIL,
            .bytes = slice_of(strcmp(word, "nil") ? word : "")};
    return reply;
}

static void begin(struct handshake *h, const struct handshake_terms *who)
{
    struct buf out = {0};
    assert_true(handshake_begin(h, who, &out) > 0);
    buf_free(&out);
}

/* What these replies come to: it waits, asks, is done, or fails with a fault.
 * None but the last one may end it. */
static const char *come_to(struct handshake *h, const char *const *replies)
{
    static const char *const words[] = {[HANDSHAKE_WAIT] = "waits",
        [HANDSHAKE_ASK] = "asks",
        [HANDSHAKE_DONE] = "done"};
    enum handshake_next next = HANDSHAKE_WAIT;
    enum fault fault = FAULT_NONE;

    for (; *replies; replies++) {
        struct reply reply = reply_of(*replies);
        if (next != HANDSHAKE_WAIT)
            return "over too early";
        next = handshake_reply(h, &reply, &fault);
        assert_int_equal(next == HANDSHAKE_FAILED, fault != FAULT_NONE);
    }
    return next == HANDSHAKE_FAILED ? fault_name(fault) : words[next];
}

/* ------------------------------------------------------------------ its bytes
 */

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

static void test_bytes(void **state)
{
#define BYTES(text) text, sizeof(text) - 1
#define AUTH "*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n"
#define REST "*2\r\n$6\r\nCLIENT\r\n$2\r\nID\r\n*1\r\n$4\r\nINFO\r\n"
    static const struct {
        const struct handshake_terms *who;
        unsigned replies;
        const char *bytes; /* behind them the scripts, unless it is brief */
        size_t len;
    } rows[] = {
        {&nobody, 2 + SCRIPTS_LOADED, BYTES(REST)},
        {&secret, 3 + SCRIPTS_LOADED, BYTES(AUTH REST)},
        {&empty, 3 + SCRIPTS_LOADED,
            BYTES("*2\r\n$4\r\nAUTH\r\n$0\r\n\r\n" REST)},
        {&full, 4 + SCRIPTS_LOADED,
            BYTES("*3\r\n$4\r\nAUTH\r\n$3\r\njoe\r\n$3\r\np\0w\r\n"
                  "*2\r\n$6\r\nSELECT\r\n$2\r\n12\r\n" REST)},
        {&brief, 2, BYTES(AUTH "*1\r\n$4\r\nPING\r\n")},
        {&watched, 1, BYTES("*1\r\n$4\r\nINFO\r\n")},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct buf out = {0}, expected = {0};
        struct handshake h;
        assert_true(buf_append(&expected, rows[i].bytes, rows[i].len));
        if (rows[i].replies > SCRIPTS_LOADED)
            append_loads(&expected);
        assert_int_equal(
            handshake_begin(&h, rows[i].who, &out), rows[i].replies);
        assert_int_equal(buf_len(&out), buf_len(&expected));
        assert_memory_equal(
            buf_head(&out), buf_head(&expected), buf_len(&expected));
        buf_free(&out);
        buf_free(&expected);
    }
}

static void test_plain(void **state)
{
    (void)state;
    assert_true(handshake_is_minimal(&nobody));
    assert_false(handshake_is_minimal(&secret));
    assert_false(handshake_is_minimal(&other_db));
    assert_false(handshake_is_minimal(&full));
}

/* ------------------------------------------------------------------ its facts
 */

/* A fact as text; a number that is unknown is -1. */
static const char *shown(const struct handshake *h, const char *name)
{
    static char number[32];
    const struct facts *f = &h->facts;
    const struct {
        const char *name, *text;
        int64_t number;
    } facts[] = {{"version", f->version, 0}, {"software", f->software, 0},
        {"role", f->role, 0}, {"run_id", f->run_id, 0}, {"mode", f->mode, 0},
        {"fsync", f->appendfsync, 0}, {"why", h->why, 0},
        {"client", NULL, f->client_id}, {"uptime", NULL, f->uptime_s},
        {"negative", NULL, f->uptime_was_negative},
        {"loading", NULL, f->loading}, {"cluster", NULL, f->cluster},
        {"info-refused", NULL, f->info_refused},
        {"asked-fsync", NULL, f->asked_fsync}, {"aof", NULL, f->aof},
        {"refused", NULL, h->refused},
        {"unanswered", NULL, handshake_unanswered(h)}};

    for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
        snprintf(number, sizeof(number), "%lld", (long long)facts[i].number);
        if (!strcmp(facts[i].name, name))
            return facts[i].text ? facts[i].text : number;
    }
    return "no such fact";
}

/* "role=master uptime=-1 why=a text that goes to the end" */
static void assert_facts(
    const char *of, const struct handshake *h, const char *expected)
{
    while (*expected) {
        char name[32];
        snprintf(
            name, sizeof(name), "%.*s", (int)strcspn(expected, "="), expected);
        expected += strlen(name) + 1;
        size_t len = strcspn(expected, strcmp(name, "why") ? " " : "");
        const char *got = shown(h, name);
        if (strlen(got) != len || memcmp(got, expected, len) != 0)
            fail_msg("%s: %s is '%s', not '%.*s'", of, name, got, (int)len,
                expected);
        expected += len + (expected[len] == ' ');
    }
}

static const struct {
    const char *info, *facts;
} read_facts[] = {
    {"# Server\r\nredis_version:7.0.15\r\nredis_git_sha1:00000000\r\n"
     "run_id:" SHA "\r\nuptime_in_seconds:86461\r\nuptime_in_days:1\r\n\r\n"
     "# Memory\r\nmaxmemory_policy:volatile-lru\r\n"
     "# Persistence\r\nloading:0\r\nasync_loading:0\r\n"
     "# Replication\r\nrole:master\r\nconnected_slaves:0\r\n",
        "uptime=86461 run_id=" SHA " version=7.0.15 software=redis role=master "
        "loading=0 info-refused=0"},
    {"redis_version:7.2.4\r\nvalkey_version:9.1.2\r\n", "version=9.1.2"},
    {"valkey_version:9.1.2\nredis_version:7.2.4\n",
        "version=9.1.2 software=valkey"},
    {"redis_version:7.2.4\r\nserver_name:valkey\r\n", "software=valkey"},
    /* KeyDB names itself nowhere, and ends with a section of its own. */
    {"redis_version:6.3.4\r\nexecutable:/usr/bin/keydb-server\r\n",
        "software=keydb"},
    {"redis_version:255.255.255\r\nexecutable:/data/x\r\n# KeyDB\r\n"
     "mvcc_depth:0\r\n",
        "software=keydb"},
    {"redis_version:255.255.255\r\n# KeyDB\r\nmvcc_depth:0\r\n",
        "version=255.255.255"},
    {"redis_version:7.0.15\nexecutable:/bin/redis-server\n", "software=redis"},
    {"loading:1\r\nrole:slave\r\n", "loading=1"},
    {"loading:0\r\nrole:slave\r\n", "role=slave"},
    {"redis_mode:cluster\n", "cluster=1"},
    {"server_mode:cluster\n", "cluster=1"},
    {"redis_mode:x\r\ncluster_enabled:1\r\n", "cluster=1"},
    {"cluster_enabled:1\nredis_mode:x\n", "cluster=1"},
    {"redis_mode:standalone\r\ncluster_enabled:0\r\n", "cluster=0"},
    {"", "cluster=0 version= uptime=-1"},
    {"\r\n:\r\nrole\r\nrole:\r\n:x\r\nxrole:a\r\n", "role="},
    /* No line end at the end; longer than the field. */
    {"role:abcdefghijklmnopqrstuvwxyz", "role=abcdefghijklmno"},
    {"run_id:" SHA "x", "run_id=" SHA},
    {"uptime_in_seconds:12a\r\n", "uptime=-1"},
    {"uptime_in_seconds:99999999999999999999999\r\n", "uptime=-1"},
    {"uptime_in_seconds:0\r\n", "uptime=0 negative=0"},
    {"uptime_in_seconds:-7203\r\n", "uptime=0 negative=1"},
    {"uptime_in_seconds:-\r\n", "uptime=-1"},
    {"uptime_in_seconds:--1\r\n", "uptime=-1"},
    {"uptime_in_seconds:-1a\r\n", "uptime=-1 negative=0"},
    {"uptime_in_seconds:-0\r\n", "uptime=-1"},
    /* A terminal obeys what it is sent. */
    {"redis_version:7\x1b[2J\x07_\x7f\xff\r\n", "version=7?[2J?_??"},
    {"redis_version:7 1\r\nserver_name:a\x1b]0;\n",
        "version=7?1 software=a?]0;"},
    {"role:\x9bm~!\t\r\n", "role=?m~!?"},
    {"redis_mode:\x1b\n", "mode=?"},
};

static void read_info(struct handshake *h, struct slice info)
{
    struct reply id = reply_of(":1");
    struct reply reply = {.kind = REPLY_STRING, .bytes = info};
    enum fault fault = FAULT_NONE;

    begin(h, &nobody);
    assert_int_equal(handshake_reply(h, &id, &fault), HANDSHAKE_WAIT);
    assert_int_equal(handshake_reply(h, &reply, &fault), HANDSHAKE_WAIT);
}

static void test_facts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(read_facts) / sizeof(read_facts[0]); i++) {
        struct handshake h;
        read_info(&h, slice_of(read_facts[i].info));
        assert_facts(read_facts[i].info, &h, read_facts[i].facts);
    }
}

/* Each cut of it, in memory of just that size. */
static void test_info_is_read_within_the_slice(void **state)
{
    static const char info[] = "# S\r\nredis_version:7.0\r\nrun_id:ab\r\n"
                               "uptime_in_seconds:86461\r\nrole:master\r\n";

    (void)state;
    for (size_t len = 0; len < sizeof(info); len++) {
        struct handshake h;
        char *copy = malloc(len + (len == 0));
        assert_non_null(copy);
        memcpy(copy, info, len);
        read_info(&h, (struct slice){copy, len});
        free(copy);
    }
}

/* ------------------------------------------------------------------- its end
 */

#define LOADED "$" SHA, "$" SHA, "$" SHA
/* A login that is refused: what INFO answers then ends it. */
#define NOAUTH "-NOAUTH x"
#define WRONG "-WRONGPASS no"
#define REFUSED(who, error, fault)                                             \
    {                                                                          \
        error, who, {"-" error, NOAUTH, NOAUTH}, fault, "why=" error           \
    }
#define SENTINEL "this is a Sentinel, which stores no locks"
#define MODE "$redis_mode:sentinel\r\n"

static const struct {
    const char *name;
    const struct handshake_terms *who;
    const char *replies[8], *come_to, *facts;
} ends[] = {
    {"all is well", &full, {"+OK", "+OK", ":4711", "$role:master\r\n", LOADED},
        "done", "client=4711 role=master uptime=-1 refused=0"},
    {"LOADING", &nobody, {"-LOADING Redis is loading"}, "waits",
        "loading=1 info-refused=0"},
    {"too many clients", &nobody, {"-ERR max number of clients reached"},
        "retry", ""},
    {"protected mode", &nobody, {"-DENIED Redis is running in protected mode"},
        "denied", ""},
    {"a login is asked for, and not given", &nobody,
        {"-NOAUTH Authentication required.", "-NOAUTH x", "-NOAUTH x",
            "-NOAUTH x", "-NOAUTH x"},
        "done", "info-refused=1 client=0 uptime=-1 loading=0"},
    {"a login is asked for in older words", &nobody,
        {"-ERR operation not permitted", "-ERR operation not permitted",
            LOADED},
        "done", "info-refused=1 client=0"},
    {"no permissions", &nobody, {"-NOPERM x", "-NOPERM x", LOADED}, "done",
        "info-refused=1 client=0 uptime=-1 loading=0"},
    {"unknown commands", &nobody,
        {"-ERR unknown command 'CLIENT'", "-ERR unknown command 'INFO'",
            "-ERR unknown command 'SCRIPT'", "-ERR unknown command 'SCRIPT'",
            "-ERR unknown command 'SCRIPT'"},
        "done", "info-refused=1 client=0"},

    REFUSED(&secret, "WRONGPASS invalid username-password pair", "denied"),
    REFUSED(&secret, "ERR invalid password", "denied"),
    REFUSED(&secret, "ERR Client sent AUTH, but no password is set", "denied"),
    REFUSED(
        &secret, "ERR wrong number of arguments for 'auth' command", "denied"),
    REFUSED(&secret, "ERR words of tomorrow", "denied"),
    REFUSED(&other_db, "ERR DB index is out of range", "no database"),
    REFUSED(&other_db, "ERR invalid DB index", "no database"),
    REFUSED(&other_db, "ERR in other words", "no database"),
    REFUSED(&other_db, "NOAUTH Authentication required.", "denied"),
    REFUSED(&other_db, "ERR SELECT is not allowed in cluster mode", "cluster"),
    {"AUTH is refused, INFO not asked yet", &secret, {WRONG}, "waits",
        "why=WRONGPASS no"},
    {"AUTH is refused, INFO answered", &secret,
        {WRONG, NOAUTH, "$role:master\n"}, "denied", "why=WRONGPASS no"},
    {"AUTH is refused for now", &secret, {"-LOADING Redis is loading"}, "retry",
        ""},
    {"AUTH is refused by too many clients", &secret,
        {"-ERR max number of clients reached"}, "retry", ""},
    {"SELECT is refused after AUTH", &full,
        {"+OK", "-NOPERM x", NOAUTH, NOAUTH}, "no permission", "why=NOPERM x"},

    {"AUTH is answered by a number", &secret, {":1"}, "not redis", ""},
    {"AUTH is answered by another word", &secret, {"+QUEUED"}, "not redis", ""},
    {"CLIENT ID is answered by a word", &nobody, {"+OK"}, "not redis", ""},
    {"INFO is answered by nil", &nobody, {":1", "nil"}, "not redis", ""},
    {"SCRIPT LOAD is answered by a number", &nobody, {":1", "$", ":1"},
        "not redis", ""},

    {"nothing was answered", &nobody, {NULL}, "waits", "unanswered=1"},
    {"CLIENT ID was", &nobody, {":7"}, "waits", "unanswered=0"},
    {"nothing, with a password", &secret, {NULL}, "waits", "unanswered=1"},
    {"AUTH alone was", &secret, {"+OK"}, "waits", "unanswered=1"},
    {"nothing, by a Sentinel", &watched, {NULL}, "waits", "unanswered=1"},

    {"brief", &brief, {"+OK", "+PONG"}, "done", "info-refused=1 client=0"},
    {"brief, refused", &brief_db, {"-NOPERM x", "+PONG"}, "no permission",
        "why=NOPERM x"},

    /* How safe its records are is asked of a server that has to keep some. */
    {"its AOF: a word", &durable,
        {":7", "$aof_enabled:1\r\n", "*appendfsync everysec", LOADED}, "done",
        "asked-fsync=1 aof=2 fsync=everysec"},
    {"its AOF: no word", &durable,
        {":7", "$aof_enabled:1\r\n", "*appendfsync nil", LOADED}, "done",
        "asked-fsync=1 fsync="},
    {"its AOF: nothing", &durable, {":7", "$aof_enabled:1\r\n", "*", LOADED},
        "done", "asked-fsync=1 fsync="},
    {"its AOF: no permission", &durable,
        {":7", "$aof_enabled:1\r\n", "-NOPERM no permission", LOADED}, "done",
        "asked-fsync=1 fsync="},
    {"its AOF: a number", &durable, {":7", "$role:master\r\n", ":1"},
        "not redis", "aof=0"},
    {"no records", &nobody, {":7", "$aof_enabled:0\r\n", LOADED}, "done",
        "asked-fsync=0 aof=1"},

    /* Of an INFO that was too long, what was read whole counts. */
    {"INFO is cut in a line", &nobody,
        {":1", "~role:master\r\nrun_id:ab\r\nuptime_in_seconds:12"}, "waits",
        "run_id=ab role=master uptime=-1 info-refused=0"},
    {"INFO is cut between lines", &nobody, {":1", "~role:master\nrun_id:ab\n"},
        "waits", "run_id=ab role=master uptime=-1 info-refused=0"},
    {"INFO is cut in its first line", &nobody, {":1", "~role:mas"}, "waits",
        "run_id= role= uptime=-1 info-refused=0"},
    {"INFO is cut at once", &nobody, {":1", "~"}, "waits",
        "run_id= role= uptime=-1 info-refused=0"},

    {"a Sentinel", &nobody, {":1", MODE}, "sentinel", "why=" SENTINEL},
    {"a Sentinel that refuses the login", &full,
        {WRONG, "-ERR unknown command 'SELECT'", ":1", MODE}, "sentinel",
        "refused=0 "
        "why=" SENTINEL},
    {"a Sentinel with services", &nobody,
        {":1", "$# Server\r\nserver_name:valkey\r\nserver_mode:sentinel\r\n"
               "sentinel_masters:2\r\n"
               "master0:name=pay,status=ok,address=10.0.0.7:6379,slaves=1\r\n"
               "master1:name=o d,status=odown,address=::1:6380,slaves=0\r\n"},
        "sentinel",
        "why=" SENTINEL "; it monitors pay at 10.0.0.7:6379, o?d at ::1:6380"},
    {"a Sentinel with broken services", &nobody,
        {":1", MODE "master0:name=\r\nmaster1:address=\r\n"
                    "master2:address\r\nmaster3:,=,,\r\nmaster4"},
        "sentinel", "why=" SENTINEL},
};

static void test_ends(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        struct handshake_terms who = *ends[i].who;
        struct handshake h;
        begin(&h, &who);
        who.asks_fsync = !who.asks_fsync; /* that is for the next one */
        const char *got = come_to(&h, ends[i].replies);
        if (strcmp(got, ends[i].come_to) != 0)
            fail_msg("%s: '%s', not '%s'", ends[i].name, got, ends[i].come_to);
        assert_facts(ends[i].name, &h, ends[i].facts);
    }
}

/* However long, and however many there are. */
static void test_a_reason_is_cut(void **state)
{
    char longer[400] = "-", many[4096] = MODE;
    const char *const error[] = {longer, NULL}, *const info[] = {
                                                    ":1", many, NULL};
    struct handshake h;

    (void)state;
    memset(longer + 1, 'x', sizeof(longer) - 2);
    begin(&h, &secret);
    assert_string_equal(come_to(&h, error), "waits");
    assert_int_equal(strlen(h.why), sizeof(h.why) - 1);
    for (int i = 0; i < 30; i++)
        snprintf(many + strlen(many), sizeof(many) - strlen(many),
            "master%d:name=a-name-of-some-length,address=10.0.0.%d:6379\r\n", i,
            i);
    begin(&h, &nobody);
    assert_string_equal(come_to(&h, info), "sentinel");
    assert_int_equal(strlen(h.why), sizeof(h.why) - 1);
}

/* -------------------------------------------------------------- its clock */

/* What INFO says of a former primary, if slave, or of the one after it. */
static void begin_with(struct handshake *h, const struct handshake_terms *who,
    const char *role, const char *second, const char *clock)
{
    static char info[512];
    snprintf(info, sizeof(info),
        "$redis_version:7.0.15\r\n%srole:%s\r\nmaster_replid:new\r\n"
        "master_replid2:%s\r\n",
        clock, role, second);
    const char *const replies[] = {":7", info, "$" SHA, "$" SHA, NULL};
    begin(h, who);
    h->facts.asked_at = 100 * NS_PER_MS;
    h->answered_at = 101 * NS_PER_MS;
    assert_string_equal(come_to(h, replies), "waits");
}

/* The reply to the last one of the flight, or to a question. The next one is
 * asked now; it is INFO server. */
static enum handshake_next answer(
    struct handshake *h, const char *text, uint64_t told_ms)
{
    static const char question[] = "*2\r\n$4\r\nINFO\r\n$6\r\nserver\r\n";
    struct buf out = {0};
    struct reply reply = reply_of(text);
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
        char text[64] = "$" SHA;
        begin_with(&h, &who, "slave", "old", "server_time_usec:5\r\n");
        for (int n = 0; n < 5 && waits[i][n]; n++) {
            assert_int_equal(answer(&h, text, now), HANDSHAKE_ASK);
            now += waits[i][n];
            snprintf(text, sizeof(text), "$server_time_usec:%d\r\n", (int)now);
        }
        assert_int_equal(answer(&h, text, now), HANDSHAKE_DONE);
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
        enum handshake_next next = answer(&h, "$" SHA, 101);
        assert_int_equal(next, rows[i].asks ? HANDSHAKE_ASK : HANDSHAKE_DONE);
        if (rows[i].asks) {
            assert_int_equal(answer(&h, "-NOPERM", 102), HANDSHAKE_DONE);
            assert_int_equal(h.facts.time_us, 5);
        }
        begin_with(&h, &nobody, rows[i].role, rows[i].second, rows[i].clock);
        assert_int_equal(answer(&h, "$" SHA, 101), HANDSHAKE_DONE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_facts),
        cmocka_unit_test(test_info_is_read_within_the_slice),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_a_reason_is_cut),
        cmocka_unit_test(test_clock),
        cmocka_unit_test(test_clock_of_others),
    };
    return cmocka_run_group_tests_name("handshake", tests, NULL, NULL);
}

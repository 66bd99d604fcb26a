/* SPDX-License-Identifier: MIT */
/*
 * The scripts of the line, on a real server: who is granted the lock, when, and
 * what is left behind. Every way to release it: test_line_release.c.
 */
#include "live/permit_rig.h"

#define waiter line_waiter /* live_rig.h has another struct waiter */
#include "wire/waiter.h"
#undef waiter

static const struct permit_row line_rows[] = {
    {"first come, first served",
        "set h 10000 yes; join a first; left 9000 10000; join b behind;"
        "join c behind; line 3; lasts {k}:nxl-l 14000 15000;"
        "lasts {k}:nxl-w 14000 15000; release h yes; told a; holder a;"
        "lasts k 19000 20000; stay c behind; stay b first; release a yes;"
        "told b; release a gone; release b yes; told c; holder c;"
        "lasts {k}:nxl-l -2 -2; lasts {k}:nxl-w -2 -2; release c yes;"
        "holder none; quiet"},
    {"a token joins once, and keeps its place",
        "stay a gone; empty; set h 10000 yes; join a first; join b behind;"
        "join a first; line 2; release h yes; stay a yes; release a yes;"
        "holder b; stay a gone; cmd DEL k; stay a gone; holder none"},
    {"a free lock goes to the first, whoever finds it free",
        "join a yes; holder a; lasts {k}:nxl-l -2 -2; lasts {k}:nxl-w -2 -2;"
        "join b first; join c behind; cmd DEL k; stay c behind;"
        "left 19000 20000; told b; holder b; cmd DEL k; stay c yes; holder c;"
        "quiet"},
    {"a lease is never shortened",
        "set a yes; cmd PEXPIRE k 200000; stay a yes; lasts k 180000 200000;"
        "cmd PEXPIRE k 1000; stay a yes; lasts k 19000 20000; cmd PERSIST k;"
        "join a yes; lasts k -1 -1; join b no; left -1 -1"},
    {"leaving",
        "set h 10000 yes; join a first; join b behind; leave a yes; line 1;"
        "leave a gone; leave b yes; lasts {k}:nxl-l -2 -2;"
        "lasts {k}:nxl-w -2 -2; holder h"},
    {"who leaves was granted it meanwhile: it is released, and handed over",
        "set h 10000 yes; join a first; join b behind; release h yes; told a;"
        "leave a yes; told b; holder b"},
    /* In a gap programs outside the line may take the lock, and nobody in it
     * does, whoever asks. What they release does not end it. */
    {"nobody in line is granted it in a gap",
        "set h 10000 yes; join a first; join b behind; make_gap h 900 yes;"
        "gap 900; holder none; told ?a; make_gap h 900 gone; quiet;"
        "cmd PEXPIRE {k}:nxl-g 8400; stay a first; left 1 1000;"
        "cmd PEXPIRE {k}:nxl-g 8400; stay b behind;"
        "cmd PEXPIRE {k}:nxl-g 8400; join c behind; left 1 1000; set x yes;"
        "release x yes; cmd PEXPIRE {k}:nxl-g 8400; stay a first; holder none;"
        "set x yes; make_gap x 75 yes; cmd PEXPIRE {k}:nxl-g 8400;"
        "stay a first; holder none; gap 0; quiet; stay b behind; holder a;"
        "told a; release a yes; told b"},
    /* The key of a gap stays for that much longer, and nobody waits for that.
     */
    {"a clock that is set back makes no long gap",
        "set h 10000 yes; join a first; join b behind; make_gap h 900 yes;"
        "told ?a; cmd PEXPIRE {k}:nxl-g 10000; stay a yes;"
        "lasts {k}:nxl-g 1 7400; release a yes; holder b; told b"},
    {"no gap without a line, or one that can be told",
        "set h 10000 yes; make_gap h 20000 yes; lasts {k}:nxl-g -2 -2;"
        "set h 10000 yes; put D 1 0; make_gap h 20000 yes;"
        "lasts {k}:nxl-g -2 -2; holder none"},
    {"a token of a later version is not granted, nor is who is behind it",
        "join z+toy first; join b behind; stay z+toy first; holder none; quiet;"
        "leave z+toy yes; stay b yes; holder b; line 0"},
    {"a member of a later version that is dead is not waited for",
        "set h 10000 yes; put z+toy 1 360; put y 2 360 fifth; join b first;"
        "release h yes; holder b; told b; line 0"},
    {"an empty value is no free lock",
        "cmd SET k _; join a no; left -1 -1; stay a first; value k _;"
        "release a gone; value k _"},
    {"a mark keeps the value that a later version gave to it",
        "set h 10000 yes; cmd SET {k}:nxl-w later PX 100; join a first;"
        "stay a first; value {k}:nxl-w later; lasts {k}:nxl-w 10000 15000"},
    /* A sign of life in the future counts as one of now. */
    {"a clock that steps back a minute empties no line",
        "set h 10000 yes; put a 1 -1920; put b 2 -1920; join c behind;"
        "release h yes; told a; release a yes; told b; line 1"},
    {"a clock that steps back 14 hours empties no line",
        "set h 10000 yes; put a 1 -1600000; put b 2 -1600000; join c behind;"
        "release h yes; told a; release a yes; told b; line 1"},
    {"the window ends", "set h 10000 yes; put a 1 300; put b 2 322; put c 3 0;"
                        "release h yes; told a; release a yes; told c; line 0"},
    {"the dead are removed, and who cannot be told keeps its place",
        "set h 10000 yes; put d 1 360; put E 2 0;"
        "cmd ZADD {k}:nxl-l 12582912 nonsense; join a first; join b behind;"
        "line 3; put f 0 360; release h yes; told a; holder a; line 2;"
        "leave b yes; line 1; release a yes; holder none;"
        "lasts {k}:nxl-w 1 15000; stay E yes; join M no; release E yes;"
        "holder M; quiet"},
    {"a holder in line that cannot be told is not the first",
        "put E 1 0; set E yes; join b first; line 2; holder E"},
    {"after the last ticket all others join anew",
        "set h 10000 yes; put a 2147483645 0; join b behind; line 2;"
        "join c first; line 1; stay a gone"},
    /* A lock that was handed over draws its fencing token afterwards. */
    {"the next number",
        "set a yes; cmd SET {k}:f 41; fence a more; fence a more;"
        "cmd SET {k}:f 8000000000000000; fence a more;"
        "value {k}:f 8000000000000001; lasts {k}:f -1 -1; cmd SET {k}:f x;"
        "fence a wrong; release a yes; set b yes; fence a no"},
    {"keys of another type",
        "cmd LPUSH k x; join a wrong; cmd DEL k; set h 10000 yes;"
        "cmd SET {k}:nxl-l x; join a wrong; cmd SET {k}:nxl-w 1;"
        "release h yes; holder none"},
};

static void the_table(void **state)
{
    permit_play(line_rows, sizeof(line_rows) / sizeof(line_rows[0]));
}

/* A member of a later version keeps its place while it is alive. Neither it nor
 * anybody behind it is granted the lock. */
static void a_later_version_is_waited_for(void **state)
{
    static const struct {
        const char *token, *more;
        bool known;
    } members[] = {
        {"z", "", true},
        {"z@job", "", true},
        {"z+toy", "", false},
        {"z+toy@job", "", false},
        {"z", " fifth", false},
        {"z", " 5 6", false},
    };
    static const char *const steps[2][2] = {
        {"set h 10000 yes; put %s 1 0%s; join b behind; release h yes;"
         "told ?%s; holder none; line 2",
            "set h 10000 yes; put %s 1 0%s; join b behind; cmd DEL k;"
            "stay b behind; quiet; line 2"},
        {"set h 10000 yes; put %s 1 0%s; join b behind; release h yes;"
         "told %s; line 1",
            "set h 10000 yes; put %s 1 0%s; join b behind; cmd DEL k;"
            "stay b behind; told %s; line 1"},
    };
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
        for (int deleted = 0; deleted < 2; deleted++) {
            char text[300];
            const char *token = members[i].token;
            snprintf(text, sizeof(text), steps[members[i].known][deleted],
                token, members[i].more, token);
            permit_play(&(struct permit_row){token, text}, 1);
        }
}

/* ------------------------------------------------------ members and places */

/* Does a release pass the member over, which has just been seen? */
static bool is_passed_over(const char *member)
{
    redis_run(&server, "FLUSHALL", NULL);
    held_by("H", 10000);
    add_member(1, 0, "%s", member);
    assert_kind(release("H"), OUTCOME_MINE);
    return in_line() == 0 && !redis_exists(&server, "k");
}

/* The library, which shows a line to people, and the scripts, which serve it,
 * agree on what is a member, whatever byte is in it. */
static void the_library_reads_members_as_the_scripts_do(void **state)
{
    static const char member[] =
        "00000000-0000-4000-8000-000000000000 test 99999999 99999999";
    static const size_t places[] = {
        0, 4, 36, 37, 39, 41, 46, 50, 51, 55, sizeof(member) - 1};
    unsigned members = 0;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        for (unsigned byte = 1; byte < 256; byte++) {
            char changed[sizeof(member) + 1], score[32];
            struct line_waiter waiter;
            snprintf(changed, sizeof(changed), "%.*s%c%s", (int)places[i],
                member, (int)byte, member + places[i]);
            snprintf(score, sizeof(score), "%llu",
                (unsigned long long)(1 << 22 | (ticks_now() & 0x3fffff)));
            waiter_read(&waiter, slice_of(changed), slice_of(score),
                (int64_t)ticks_now());
            if (waiter.dead != is_passed_over(changed))
                fail_msg("byte %u at %zu: %s for the library, and not for the "
                         "scripts",
                    byte, places[i], waiter.dead ? "dead" : "alive");
            members += !waiter.dead;
        }
    }
    assert_in_range(members, 255, 10 * 255);
}

/* Who has many ahead of it may be silent for longer: as long as line.c takes.
 */
static void the_last_in_line_may_be_silent_for_longer(void **state)
{
    static const struct {
        unsigned ahead, window;
        int64_t ticks; /* from now until it counts as dead */
    } rows[] = {{0, 11, 11}, {32, 11, 16}, {64, 11, 22}, {640, 11, 121},
        {3000, 11, 480}, {900, 96, 480}, {64, 290, 480}, {900, 600, 600}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct verb verb = {.kind = VERB_JOIN,
            .key = slice_of("k"),
            .token = slice_of("A"),
            .client = slice_of(CLIENT),
            .window = rows[i].window,
            .ttl_ms = LEASE_MS};
        char token[16];
        redis_run(&server, "FLUSHALL", NULL);
        held_by("H", 10000);
        for (unsigned n = 0; n < rows[i].ahead; n++) {
            snprintf(token, sizeof(token), "B%u", n);
            add_waiter(token, CLIENT, n + 1, 0);
        }
        for (unsigned stays = 0; stays < 2; stays++) {
            uint64_t before = ticks_now();
            assert_int_equal(line_send(&peer, &verb).ahead, rows[i].ahead);
            int64_t seen = (int64_t)((score_of("A") - before) & 0x3fffff);
            assert_in_range(
                seen + verb.window, rows[i].ticks, rows[i].ticks + 32);
            verb.kind = VERB_STAY;
        }
    }
}

/* The channel of one name says nothing about another. */
static void a_channel_is_of_one_name(void **state)
{
    static const struct {
        const char *key, *channel;
    } rows[] = {
        {"a", "nxl:" CLIENT ":a"},
        {"a:b", "nxl:" CLIENT ":a:b"},
        {"a b", "nxl:" CLIENT ":a%20b"},
        {"a%20b", "nxl:" CLIENT ":a%2520b"},
        {"a\n\x01\x7f", "nxl:" CLIENT ":a%0A%01%7F"},
        {"*?[a]\\", "nxl:" CLIENT ":*?[a]\\"},
        {"\xc3\xa9\xff", "nxl:" CLIENT ":\xc3\xa9\xff"},
        {"{a}b", "nxl:" CLIENT ":{a}b"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char room[CHANNEL_MAX];
        struct slice name = {
            room, channel_name(room, CLIENT, slice_of(rows[i].key))};
        assert_true(slice_equal(name, slice_of(rows[i].channel)));
        of_lock = rows[i].key;
        redisReply *r = redisCommand(ears, "SUBSCRIBE %b", name.data, name.len);
        assert_int_equal(r->type, REDIS_REPLY_ARRAY);
        freeReplyObject(r);
        held_by("H", 10000);
        join("A");
        assert_kind(release("H"), OUTCOME_MINE);
        assert_message("A");
    }
}

static void the_dead_do_not_pile_up(void **state)
{
    char token[16];

    held_by("H", 20000);
    for (unsigned i = 1; i <= 200; i++) {
        snprintf(token, sizeof(token), "dead%u", i);
        add_waiter(token, CLIENT, i, WINDOW + 40);
    }
    add_waiter("A", CLIENT, 0, 0);
    for (unsigned i = 0; i < 40; i++) {
        snprintf(token, sizeof(token), "B%u", i);
        join(token);
    }
    assert_in_range(in_line(), 41, 240);
    assert_kind(release("H"), OUTCOME_MINE);
    assert_holder("A");
    assert_kind(release("A"), OUTCOME_MINE);
    assert_holder("B0");
    assert_int_equal(in_line(), 39);
}

static void whether_the_channel_is_heard(void **state)
{
    struct verb verb = {.kind = VERB_JOIN,
        .key = slice_of("k"),
        .token = slice_of("A"),
        .client = slice_of(CLIENT),
        .window = WINDOW,
        .test_listener = true,
        .ttl_ms = LEASE_MS};

    held_by("H", 10000);
    struct outcome o = line_send(&peer, &verb);
    assert_kind(o, OUTCOME_BUSY);
    assert_false(o.no_listener);
    verb.client = slice_of("nobody");
    assert_true(line_send(&peer, &verb).no_listener);
    verb.client = slice_of("-");
    assert_false(line_send(&peer, &verb).no_listener);
}

/* A counter that is high enough stays as it is, and is written nonetheless:
 * WAIT behind it counts the replicas that have what this connection wrote. */
static void a_number_that_is_passed(void **state)
{
    struct verb raise = {.kind = VERB_RAISE,
        .key = slice_of("k"),
        .token = slice_of("A"),
        .counter = slice_of("{k}:f"),
        .fence = 41};
    static const char *const ttls[] = {"99999999999", NULL};
    for (size_t i = 0; i < 2; i++) {
        held_by("A", 10000);
        redis_run(&server, "SET", "{k}:f", "42", ttls[i] ? "PX" : NULL, ttls[i],
            NULL);
        long changes = server_number(
            &server, "persistence", "rdb_changes_since_last_save");
        struct outcome o = line_send(&peer, &raise);
        assert_kind(o, OUTCOME_MINE);
        assert_int_equal(o.fence, 42);
        assert_true(server_number(&server, "persistence",
                        "rdb_changes_since_last_save") > changes);
        assert_int_equal(redis_pttl(&server, "{k}:f") > 0, ttls[i] != NULL);
    }
}

/* ------------------------------------------------------------------- rights */

#define WAITER                                                                 \
    "&nxl:* +pttl +pexpire +zscore +zrank +zcard +zadd +getrange +del +time "  \
    "+zrange +zrem +set +exists +pubsub|numsub +publish"

/* Without a right the token either waits, or joins nothing at all. */
static void who_may_not_wait(void **state)
{
    static const char *const needs[] = {"pttl", "getrange", "time", "zscore",
        "zrange", "zcard", "zadd", "zrem", "set", "pexpire"};
    static const char *const helps[] = {"exists", "del", "publish", "pubsub"};
    const size_t needed = sizeof(needs) / sizeof(needs[0]);
    const size_t all = needed + sizeof(helps) / sizeof(helps[0]);

    redis_needs_acl(&server);
    for (size_t i = 0; i <= all; i++) {
        const char *without = i < needed ? needs[i]
                              : i < all  ? helps[i - needed]
                                         : NULL;
        for (int held = 0; held < 2; held++) {
            struct peer user;
            char rights[400];
            redis_run(&server, "FLUSHALL", NULL);
            snprintf(rights, sizeof(rights), "~k ~{k}:* " WAITER " %s%s",
                without ? "-" : "", without ? without : "");
            peer_as(&user, rights);
            if (held)
                held_by("H", 10000);
            add_waiter("deaf", "nobody", 1, 0);
            struct outcome o = line_verb(&user, VERB_JOIN, "A", CLIENT);
            bool waits = i >= needed;
            /* Who cannot be told is then taken for one who can. */
            bool blind = without && strcmp(without, "pubsub") == 0;
            if (without && strcmp(without, "getrange") == 0 && !held)
                waits = true; /* there is nothing to read */
            assert_int_equal(o.kind, !waits          ? OUTCOME_FAULT
                                     : held || blind ? OUTCOME_BUSY
                                                     : OUTCOME_GRANTED);
            assert_int_equal(user.dialect.line_refused != FAULT_NONE, !waits);
            assert_int_equal(user.dialect.line_again != 0, !waits);
            assert_false(!waits && o.unsure);
            if (!waits) { /* nothing of the token is there */
                assert_int_equal(in_line(), 1);
                assert_holder(held ? "H" : NULL);
            }
            redisFree(user.c);
        }
    }
}

static void keys_that_may_not_be_touched(void **state)
{
    struct peer user;

    redis_needs_acl(&server);
    peer_as(&user, "~k " WAITER);
    held_by("H", 10000);
    struct outcome o = line_verb(&user, VERB_JOIN, "A", CLIENT);
    assert_int_equal(o.fault, FAULT_NO_PERMISSION);
    assert_int_equal(user.dialect.line_refused, FAULT_NO_PERMISSION);
    assert_int_equal(user.dialect.line_again, 0); /* it is about this name */
    assert_int_equal(in_line(), 0);
    redisFree(user.c);
}

#define line_test(function)                                                    \
    cmocka_unit_test_setup_teardown(function, line_setup, line_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        line_test(the_table),
        line_test(a_later_version_is_waited_for),
        line_test(the_library_reads_members_as_the_scripts_do),
        line_test(the_last_in_line_may_be_silent_for_longer),
        line_test(a_channel_is_of_one_name),
        line_test(the_dead_do_not_pile_up),
        line_test(whether_the_channel_is_heard),
        line_test(a_number_that_is_passed),
        line_test(who_may_not_wait),
        line_test(keys_that_may_not_be_touched),
    };
    return cmocka_run_group_tests_name(
        "line_scripts", tests, live_unix, live_stop);
}

/* SPDX-License-Identifier: MIT */
/* One subject: the scripts of the line, on a real server: who is granted the
 * lock, when, and what is left behind. */
#include "live/line_rig.h"

#define waiter line_waiter /* live_rig.h has another struct waiter */
#include "wire/waiter.h"
#undef waiter

static void first_come_first_served(void **state)
{
    held_by("H", 10000);
    struct outcome a = join("A");
    assert_busy(a, true);
    assert_between(a.left_ms, 9000, 10000);
    assert_busy(join("B"), false);
    assert_busy(join("C"), false);
    assert_int_equal(in_line(), 3);
    assert_between(redis_pttl(&server, "{k}:nxl-l"), 14000, 15000);
    assert_between(redis_pttl(&server, "{k}:nxl-w"), 14000, 15000);

    assert_kind(release("H"), OUTCOME_MINE);
    assert_message("A");
    assert_holder("A");
    assert_between(redis_pttl(&server, "k"), LEASE_MS - 1000, LEASE_MS);
    assert_busy(stay("C"), false);
    assert_busy(stay("B"), true);
    assert_kind(release("A"), OUTCOME_MINE);
    assert_message("B");
    assert_kind(release("A"), OUTCOME_NOT_MINE);
    assert_kind(release("B"), OUTCOME_MINE);
    assert_message("C");
    assert_holder("C");
    /* Nothing is left, and nobody is waited for. */
    assert_false(redis_exists(&server, "{k}:nxl-l"));
    assert_false(redis_exists(&server, "{k}:nxl-w"));
    assert_kind(release("C"), OUTCOME_MINE);
    assert_holder(NULL);
    assert_no_message();
}

static void a_token_joins_once(void **state)
{
    assert_kind(stay("A"), OUTCOME_NOT_MINE);
    assert_int_equal(redis_run(&server, "DBSIZE", NULL), 0);
    held_by("H", 10000);
    assert_busy(join("A"), true);
    assert_busy(join("B"), false);
    assert_busy(join("A"), true); /* it keeps its place */
    assert_int_equal(in_line(), 2);
    assert_kind(release("H"), OUTCOME_MINE);
    assert_kind(stay("A"), OUTCOME_GRANTED);
    assert_kind(release("A"), OUTCOME_MINE);
    assert_holder("B");
    /* It was granted, and is neither in line nor granted again. */
    assert_kind(stay("A"), OUTCOME_NOT_MINE);
    redis_run(&server, "DEL", "k", NULL);
    assert_kind(stay("A"), OUTCOME_NOT_MINE);
    assert_holder(NULL);
}

static void a_free_lock_goes_to_the_first(void **state)
{
    assert_kind(join("A"), OUTCOME_GRANTED);
    assert_holder("A");
    assert_false(redis_exists(&server, "{k}:nxl-l"));
    assert_false(redis_exists(&server, "{k}:nxl-w"));
    assert_busy(join("B"), true);
    assert_busy(join("C"), false);
    redis_run(&server, "DEL", "k", NULL);
    /* Whoever finds it free, the first is granted it. */
    struct outcome c = stay("C");
    assert_busy(c, false);
    assert_between(c.left_ms, LEASE_MS - 1000, LEASE_MS);
    assert_message("B");
    assert_holder("B");
    redis_run(&server, "DEL", "k", NULL);
    assert_kind(stay("C"), OUTCOME_GRANTED);
    assert_holder("C");
    assert_no_message();
}

static void a_lease_is_never_shortened(void **state)
{
    held_by("A", 10 * LEASE_MS);
    assert_kind(stay("A"), OUTCOME_GRANTED);
    assert_between(redis_pttl(&server, "k"), 9 * LEASE_MS, 10 * LEASE_MS);
    held_by("A", 1000);
    assert_kind(stay("A"), OUTCOME_GRANTED);
    assert_between(redis_pttl(&server, "k"), LEASE_MS - 1000, LEASE_MS);
    redis_run(&server, "PERSIST", "k", NULL);
    assert_kind(join("A"), OUTCOME_GRANTED);
    assert_int_equal(redis_pttl(&server, "k"), -1);
    assert_int_equal(join("B").left_ms, LEFT_FOREVER);
}

static void leaving(void **state)
{
    held_by("H", 10000);
    join("A");
    join("B");
    assert_kind(leave("A"), OUTCOME_MINE);
    assert_int_equal(in_line(), 1);
    assert_kind(leave("A"), OUTCOME_NOT_MINE);
    assert_kind(leave("B"), OUTCOME_MINE);
    assert_int_equal(redis_run(&server, "DBSIZE", NULL), 1);
    assert_holder("H");
    /* Granted in the meantime: it is released, and handed over. */
    join("A");
    join("B");
    release("H");
    assert_message("A");
    assert_kind(leave("A"), OUTCOME_MINE);
    assert_message("B");
    assert_holder("B");
}

static struct outcome release_with_gap(const char *token, uint32_t gap_ms)
{
    struct verb verb = {.kind = VERB_RELEASE,
        .key = slice_of("k"),
        .token = slice_of(token),
        .gap_ms = gap_ms};
    return line_send(&peer, &verb);
}

static bool gap_is_over(void)
{
    return !redis_exists(&server, "{k}:nxl-g");
}

/* The test may take longer than a gap. */
static void go_on_with_the_gap(void)
{
    redis_run(&server, "SET", "{k}:nxl-g", "1", "PX", "8400", "XX", NULL);
}

/* In a gap programs outside the line may take the lock, and nobody in it does,
 * whoever asks: one that waits, one that joins, or one that was outside. */
static void nobody_in_line_is_granted_in_a_gap(void **state)
{
    held_by("H", 10000);
    join("A");
    join("B");
    assert_kind(release_with_gap("H", 900), OUTCOME_MINE);
    assert_holder(NULL);
    assert_message("?A"); /* it is the first, and asks soon */
    assert_kind(release_with_gap("H", 900), OUTCOME_NOT_MINE);
    assert_no_message();
    go_on_with_the_gap();
    struct outcome first = stay("A");
    go_on_with_the_gap();
    struct outcome second = stay("B");
    go_on_with_the_gap();
    struct outcome last = join("C");
    assert_busy(first, true);
    assert_busy(second, false);
    assert_busy(last, false);
    assert_in_range(first.left_ms, 1, 1000);
    assert_in_range(last.left_ms, 1, 1000);
    /* Whoever takes it meanwhile does not end the gap by a release. */
    for (unsigned how = 0; how < 3; how++) {
        held_by("X", 10000);
        assert_kind(how == 0   ? release("X")
                    : how == 1 ? release_with_gap("X", 75)
                               : line_verb(&peer, VERB_RELEASE, "X", ""),
            OUTCOME_MINE);
        go_on_with_the_gap();
        assert_busy(stay("A"), true);
        assert_holder(NULL);
    }
    redis_run(&server, "PEXPIRE", "{k}:nxl-g", "1", NULL);
    assert_eventually(gap_is_over());
    assert_no_message();
    assert_busy(stay("B"), false); /* grants it to the first */
    assert_holder("A");
    assert_message("A");
    assert_kind(release("A"), OUTCOME_MINE);
    assert_message("B");
}

/* If the clock is set back in a gap its key stays for that much longer. Nobody
 * in line waits for that, and the next gap is not put off by it. */
static void clock_set_back_makes_no_long_gap(void **state)
{
    held_by("H", 10000);
    join("A");
    join("B");
    assert_kind(release_with_gap("H", 900), OUTCOME_MINE);
    assert_message("?A");
    redis_run(&server, "PEXPIRE", "{k}:nxl-g", "10000", NULL);
    assert_kind(stay("A"), OUTCOME_GRANTED);
    assert_in_range(redis_run(&server, "PTTL", "{k}:nxl-g", NULL), 1, 7400);
    assert_kind(release("A"), OUTCOME_MINE);
    assert_holder("B");
    assert_message("B");
}

/* It is cheap to ask for one: without a line there is none. */
static void no_gap_without_a_line(void **state)
{
    held_by("H", 10000);
    assert_kind(release_with_gap("H", 20000), OUTCOME_MINE);
    assert_true(gap_is_over());
    held_by("H", 10000);
    add_waiter("deaf", "nobody", 1, 0);
    assert_kind(release_with_gap("H", 20000), OUTCOME_MINE);
    assert_true(gap_is_over());
    assert_holder(NULL);
}

/* A member of a later version keeps its place while it is alive. Neither it nor
 * anybody behind it is granted the lock. */
static void a_later_version_is_waited_for(void **state)
{
    static const struct {
        const char *token, *more;
        bool known;
    } rows[] = {
        {"00000000-0000-4000-8000-000000000000", "", true},
        {"00000000-0000-4000-8000-000000000000@job", "", true},
        {"00000000-0000-4000-8000-000000000000+toy", "", false},
        {"00000000-0000-4000-8000-000000000000+toy@job", "", false},
        {"00000000-0000-4000-8000-000000000000", " fifth", false},
        {"00000000-0000-4000-8000-000000000000", " 5 6", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (unsigned how = 0; how < 3; how++) {
            char hint[80];
            redis_run(&server, "FLUSHALL", NULL);
            held_by("H", 10000);
            add_member(1, 0, "%s %s %d %d%s", rows[i].token, CLIENT, LEASE_MS,
                WINDOW, rows[i].more);
            assert_busy(join("B"), false);
            if (how == 0)
                assert_kind(release("H"), OUTCOME_MINE);
            else
                redis_run(&server, "DEL", "k", NULL);
            snprintf(hint, sizeof(hint), "?%s", rows[i].token);
            if (how == 0 || rows[i].known) {
                if (how > 0)
                    assert_busy(stay("B"), false);
                assert_message(rows[i].known ? rows[i].token : hint);
            } else {
                assert_busy(stay("B"), false);
                assert_no_message();
            }
            assert_holder(rows[i].known ? rows[i].token : NULL);
            assert_int_equal(in_line(), 2 - rows[i].known);
        }
    }
    /* A dead one is no longer waited for; nor is what no version has made. */
    static const char *const gone[] = {
        "00000000-0000-4000-8000-000000000000+toy test 20000 1",
        "00000000-0000-4000-8000-000000000000 test 20000 1 fifth", "rubbish",
        "one two three four"};
    for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++) {
        redis_run(&server, "FLUSHALL", NULL);
        held_by("H", 10000);
        add_member(1, 64, "%s", gone[i]);
        join("B");
        assert_kind(release("H"), OUTCOME_MINE);
        assert_holder("B");
        assert_message("B");
    }
}

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

/* The kind of a lock is read from the token: who uses these scripts with one of
 * a later version is in line, and is not granted the lock. */
static void a_token_of_a_later_version_is_not_granted(void **state)
{
    static const char toy[] = "00000000-0000-4000-8000-000000000000+toy";
    assert_busy(join(toy), true);
    assert_busy(join("B"), false);
    assert_busy(stay(toy), true);
    assert_holder(NULL);
    assert_no_message();
    assert_kind(leave(toy), OUTCOME_MINE);
    assert_kind(stay("B"), OUTCOME_GRANTED);
    assert_holder("B");
    assert_int_equal(in_line(), 0);
}

/* A key with nothing in it is no free lock. */
static void an_empty_value_is_no_free_lock(void **state)
{
    struct verb look = {.kind = VERB_INSPECT, .key = slice_of("k")};
    assert_int_equal(line_send(&peer, &look).kind, OUTCOME_FREE);
    redis_run(&server, "SET", "k", "", NULL);
    assert_int_equal(join("A").left_ms, LEFT_FOREVER);
    assert_busy(stay("A"), true);
    assert_holder("");
    assert_int_equal(line_send(&peer, &look).left_ms, LEFT_FOREVER);
    assert_kind(release("A"), OUTCOME_NOT_MINE);
    assert_holder("");
}

/* The mark may have another value, which a later version gave to it. */
static void a_mark_keeps_its_value(void **state)
{
    char value[16];
    held_by("H", 10000);
    redis_run(&server, "SET", "{k}:nxl-w", "later", "PX", "100", NULL);
    join("A");
    stay("A");
    assert_true(redis_get(&server, "{k}:nxl-w", value, sizeof(value)));
    assert_string_equal(value, "later");
    assert_in_range(
        redis_run(&server, "PTTL", "{k}:nxl-w", NULL), 10000, 15000);
}

/* A sign of life that seems to be in the future, because the server's clock was
 * set back, counts as one of now. */
static void a_clock_that_steps_back_empties_no_line(void **state)
{
    static const int ahead_s[] = {1, 60, 3600, 50000};
    for (size_t i = 0; i < sizeof(ahead_s) / sizeof(ahead_s[0]); i++) {
        redis_run(&server, "FLUSHALL", NULL);
        held_by("H", 10000);
        add_waiter("A", CLIENT, 1, (unsigned)(-32 * ahead_s[i]));
        add_waiter("B", CLIENT, 2, (unsigned)(-32 * ahead_s[i]));
        assert_busy(join("C"), false);
        assert_kind(release("H"), OUTCOME_MINE);
        assert_message("A");
        assert_kind(release("A"), OUTCOME_MINE);
        assert_message("B");
        assert_int_equal(in_line(), 1);
    }
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

/* The dead are removed. Who cannot be told now is passed over, but keeps its
 * place. */
static void the_dead_and_the_deaf(void **state)
{
    held_by("H", 10000);
    add_waiter("dead", CLIENT, 1, WINDOW + 40);
    add_waiter("deaf", "nobody", 2, 0);
    redis_run(&server, "ZADD", "{k}:nxl-l", "12582912", "nonsense", NULL);
    assert_busy(join("A"), true);
    assert_busy(join("B"), false);
    assert_int_equal(in_line(), 3); /* deaf, A, B */
    add_waiter("dead", CLIENT, 0, WINDOW + 40);
    assert_kind(release("H"), OUTCOME_MINE);
    assert_message("A");
    assert_holder("A");
    assert_int_equal(in_line(), 2);
    assert_kind(leave("B"), OUTCOME_MINE);
    assert_int_equal(in_line(), 1);
    /* Nobody can be told: the lock is free, and the mark remains. */
    assert_kind(release("A"), OUTCOME_MINE);
    assert_holder(NULL);
    assert_true(redis_exists(&server, "{k}:nxl-w"));
    assert_kind(line_verb(&peer, VERB_STAY, "deaf", "nobody"), OUTCOME_GRANTED);
    /* One that is not told at all gets the lock, too. */
    assert_kind(line_verb(&peer, VERB_JOIN, "mute", "-"), OUTCOME_BUSY);
    assert_kind(release("deaf"), OUTCOME_MINE);
    assert_holder("mute");
    assert_no_message();
}

static void the_window_ends(void **state)
{
    struct verb brief = {.kind = VERB_JOIN,
        .key = slice_of("k"),
        .token = slice_of("A"),
        .client = slice_of(CLIENT),
        .window = 3,
        .ttl_ms = LEASE_MS};

    held_by("H", 20000);
    assert_busy(line_send(&peer, &brief), true);
    assert_busy(join("B"), false);
    assert_eventually(stay("B").ahead == 0);
    assert_int_equal(in_line(), 1);
    brief.kind = VERB_STAY;
    assert_kind(line_send(&peer, &brief), OUTCOME_NOT_MINE);
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

static void the_last_ticket(void **state)
{
    held_by("H", 10000);
    add_waiter("A", CLIENT, 2147483645, 0);
    assert_busy(join("B"), false);
    assert_int_equal(in_line(), 2);
    assert_busy(join("C"), true); /* all others join anew */
    assert_int_equal(in_line(), 1);
    assert_kind(stay("A"), OUTCOME_NOT_MINE);
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

static void keys_of_another_type(void **state)
{
    redis_run(&server, "LPUSH", "k", "x", NULL);
    assert_int_equal(join("A").fault, FAULT_WRONG_TYPE);
    redis_run(&server, "DEL", "k", NULL);
    held_by("H", 10000);
    redis_run(&server, "SET", "{k}:nxl-l", "x", NULL);
    assert_int_equal(join("A").fault, FAULT_WRONG_TYPE);
    assert_int_equal(peer.dialect.line_refused, FAULT_NONE);
    redis_run(&server, "SET", "{k}:nxl-w", "1", NULL);
    assert_kind(release("H"), OUTCOME_MINE);
    assert_holder(NULL);
}

static void names_with_a_hash_tag(void **state)
{
    static const char *const names[][4] = {
        {"a{b}c", "a{b}c::nxl-l", "a{b}c::nxl-w", "a{b}c::nxl-g"},
        {"{}{a}", "{{}{a}}:nxl-l", "{{}{a}}:nxl-w", "{{}{a}}:nxl-g"},
        {"a}{b", "{a}{b}:nxl-l", "{a}{b}:nxl-w", "{a}{b}:nxl-g"}};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        of_lock = names[i][0];
        redisReply *r =
            redisCommand(ears, "SUBSCRIBE nxl:" CLIENT ":%s", of_lock);
        freeReplyObject(r);
        held_by("H", 10000);
        assert_busy(join("A"), true);
        assert_busy(join("B"), false);
        assert_true(redis_exists(&server, names[i][1]));
        assert_true(redis_exists(&server, names[i][2]));
        assert_kind(release("H"), OUTCOME_MINE);
        assert_message("A");
        assert_holder("A");
        assert_kind(leave("B"), OUTCOME_MINE);
        assert_false(redis_exists(&server, names[i][1]));
        assert_kind(release("A"), OUTCOME_MINE);
        assert_holder(NULL);
        assert_int_equal(redis_run(&server, "DEL", names[i][3], NULL), 1);
    }
    assert_int_equal(redis_run(&server, "DBSIZE", NULL), 0);
}

/* A lock that was handed over draws its fencing token afterwards. */
static void the_next_number(void **state)
{
    struct verb draw = {.kind = VERB_RAISE,
        .key = slice_of("k"),
        .token = slice_of("A"),
        .counter = slice_of("{k}:f")};

    held_by("A", 10000);
    redis_run(&server, "SET", "{k}:f", "41", NULL);
    struct outcome o = line_send(&peer, &draw);
    assert_kind(o, OUTCOME_MINE);
    assert_true(o.fence > UINT64_C(1500000000000000)); /* the clock */
    uint64_t first = o.fence;
    o = line_send(&peer, &draw);
    assert_true(o.fence > first);
    redis_run(&server, "SET", "{k}:f", "8000000000000000", NULL);
    assert_int_equal(line_send(&peer, &draw).fence, UINT64_C(8000000000000001));
    assert_int_equal(redis_pttl(&server, "{k}:f"), -1);
    redis_run(&server, "SET", "{k}:f", "x", NULL);
    assert_int_equal(line_send(&peer, &draw).fault, FAULT_WRONG_TYPE);
    held_by("B", 10000);
    assert_kind(line_send(&peer, &draw), OUTCOME_NOT_MINE);
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

#define RELEASER                                                               \
    "+getrange +del +time +zrange +zrem +set +exists "                         \
    "+pubsub|numsub +publish"

/* What a releaser lacks: whether the lock is handed over even so. In any case
 * it is removed, and the user does not try again what it may not. */
static void who_may_not_hand_over(void **state)
{
    static const struct {
        const char *rights;
        bool handed, told;
    } cases[] = {
        {"~k ~{k}:* &nxl:* " RELEASER, true, true},
        {"~k ~{k}:* &nxl:* " RELEASER " -exists", true, true},
        {"~k ~{k}:* resetchannels " RELEASER, true, false},
        {"~k ~{k}:* &nxl:* " RELEASER " -publish", true, false},
        {"~k ~{k}:* &nxl:* " RELEASER " -pubsub|numsub", true, true},
        {"~k ~{k}:* &nxl:* " RELEASER " -time", false, false},
        {"~k ~{k}:* &nxl:* " RELEASER " -zrange", false, false},
        {"~k ~{k}:* &nxl:* " RELEASER " -zrem", false, false},
        {"~k ~{k}:* &nxl:* " RELEASER " -set", false, false},
        {"~k &nxl:* " RELEASER, false, false},
        {"~k +getrange +del", false, false},
    };

    redis_needs_acl(&server);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct peer user;
        redis_run(&server, "FLUSHALL", NULL);
        redis_run(&server, "ACL", "LOG", "RESET", NULL);
        peer_as(&user, cases[i].rights);
        held_by("H", 10000);
        join("A");
        join("B");
        assert_kind(line_verb(&user, VERB_RELEASE, "H", ""), OUTCOME_MINE);
        assert_holder(cases[i].handed ? "A" : NULL);
        if (cases[i].told)
            assert_message("A");
        assert_no_message();
        assert_int_equal(user.hand_over_again != 0, !cases[i].handed);
        if (!cases[i].handed) {
            long long before = denials();
            held_by("H", 10000);
            assert_kind(line_verb(&user, VERB_RELEASE, "H", ""), OUTCOME_MINE);
            assert_int_equal(denials(), before);
        }
        redisFree(user.c);
    }
}

/* Without a right the token either waits, or joins nothing at all. */
static void who_may_not_wait(void **state)
{
    static const char *const needs[] = {"pttl", "getrange", "time", "zscore",
        "zrange", "zcard", "zadd", "zrem", "set", "pexpire"};
    static const char *const helps[] = {
        "exists", "del", "publish", "pubsub|numsub"};
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
            snprintf(rights, sizeof(rights),
                "~k ~{k}:* &nxl:* +pttl +pexpire +zscore +zrank +zcard "
                "+zadd " RELEASER " %s%s",
                without ? "-" : "", without ? without : "");
            peer_as(&user, rights);
            if (held)
                held_by("H", 10000);
            add_waiter("deaf", "nobody", 1, 0);
            struct outcome o = line_verb(&user, VERB_JOIN, "A", CLIENT);
            bool waits = i >= needed;
            /* Who cannot be told is then taken for one who can. */
            bool blind = without && strcmp(without, "pubsub|numsub") == 0;
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
    peer_as(&user,
        "~k &nxl:* +pttl +pexpire +zscore +zrank +zcard +zadd " RELEASER);
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
        line_test(first_come_first_served),
        line_test(a_token_joins_once),
        line_test(a_free_lock_goes_to_the_first),
        line_test(a_lease_is_never_shortened),
        line_test(leaving),
        line_test(nobody_in_line_is_granted_in_a_gap),
        line_test(clock_set_back_makes_no_long_gap),
        line_test(no_gap_without_a_line),
        line_test(a_later_version_is_waited_for),
        line_test(the_library_reads_members_as_the_scripts_do),
        line_test(a_token_of_a_later_version_is_not_granted),
        line_test(an_empty_value_is_no_free_lock),
        line_test(a_mark_keeps_its_value),
        line_test(a_clock_that_steps_back_empties_no_line),
        line_test(the_last_in_line_may_be_silent_for_longer),
        line_test(a_channel_is_of_one_name),
        line_test(the_dead_and_the_deaf),
        line_test(the_window_ends),
        line_test(the_dead_do_not_pile_up),
        line_test(the_last_ticket),
        line_test(whether_the_channel_is_heard),
        line_test(keys_of_another_type),
        line_test(names_with_a_hash_tag),
        line_test(the_next_number),
        line_test(a_number_that_is_passed),
        line_test(who_may_not_hand_over),
        line_test(who_may_not_wait),
        line_test(keys_that_may_not_be_touched),
    };
    return cmocka_run_group_tests_name(
        "line_scripts", tests, live_unix, live_stop);
}

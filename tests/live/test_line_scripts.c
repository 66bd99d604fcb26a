/* SPDX-License-Identifier: MIT */
/* The scripts of the line, on a real server: who is granted the lock, when, and
 * what is left behind. */
#include "live/line_rig.h"

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
    assert_int_equal(c.left_ms, LEASE_MS);
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

static void nobody_is_handed_over_to(void **state)
{
    struct verb plain = {.kind = VERB_RELEASE,
        .key = slice_of("k"),
        .token = slice_of("H"),
        .plain = true};

    held_by("H", 10000);
    join("A");
    assert_kind(line_send(&peer, &plain), OUTCOME_MINE);
    assert_holder(NULL);
    assert_message("?A"); /* it is the first, and asks soon */
    assert_kind(line_send(&peer, &plain), OUTCOME_NOT_MINE);
    assert_no_message();
    assert_kind(stay("A"), OUTCOME_GRANTED);
}

/* The dead are removed. Who cannot be told now is passed over, but keeps its
 * place. */
static void the_dead_and_the_deaf(void **state)
{
    held_by("H", 10000);
    add_waiter("dead", CHANNEL, 1, WINDOW + 40);
    add_waiter("deaf", "nxl:nobody", 2, 0);
    redis_run(&server, "ZADD", "{k}:nxl-l", "12582912", "nonsense", NULL);
    assert_busy(join("A"), true);
    assert_busy(join("B"), false);
    assert_int_equal(in_line(), 3); /* deaf, A, B */
    add_waiter("dead", CHANNEL, 0, WINDOW + 40);
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
    assert_kind(
        line_verb(&peer, VERB_STAY, "deaf", "nxl:nobody"), OUTCOME_GRANTED);
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
        .channel = slice_of(CHANNEL),
        .window = 3,
        .ttl_ms = LEASE_MS};

    held_by("H", 20000);
    assert_busy(line_send(&peer, &brief), true);
    assert_busy(join("B"), false);
    assert_eventually(stay("B").first);
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
        add_waiter(token, CHANNEL, i, WINDOW + 40);
    }
    add_waiter("A", CHANNEL, 0, 0);
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
    add_waiter("A", CHANNEL, 2147483645, 0);
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
        .channel = slice_of(CHANNEL),
        .window = WINDOW,
        .test = true,
        .ttl_ms = LEASE_MS};

    held_by("H", 10000);
    struct outcome o = line_send(&peer, &verb);
    assert_kind(o, OUTCOME_BUSY);
    assert_false(o.deaf);
    verb.channel = slice_of("nxl:nobody");
    assert_true(line_send(&peer, &verb).deaf);
    verb.channel = slice_of("-");
    assert_false(line_send(&peer, &verb).deaf);
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
    static const char *const names[][3] = {
        {"a{b}c", "a{b}c::nxl-l", "a{b}c::nxl-w"},
        {"{}{a}", "{{}{a}}:nxl-l", "{{}{a}}:nxl-w"},
        {"a}{b", "{a}{b}:nxl-l", "{a}{b}:nxl-w"}};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        of_lock = names[i][0];
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

    for (size_t i = 0; i <= all; i++) {
        const char *without = i < needed ? needs[i]
                              : i < all  ? helps[i - needed]
                                         : NULL;
        for (int held = 0; held < 2; held++) {
            struct peer user;
            char rights[400];
            redis_run(&server, "FLUSHALL", NULL);
            snprintf(rights, sizeof(rights),
                "~k ~{k}:* &nxl:* +pttl +pexpire +zscore +zcard +zadd " RELEASER
                " %s%s",
                without ? "-" : "", without ? without : "");
            peer_as(&user, rights);
            if (held)
                held_by("H", 10000);
            add_waiter("deaf", "nxl:nobody", 1, 0);
            struct outcome o = line_verb(&user, VERB_JOIN, "A", CHANNEL);
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

    peer_as(&user, "~k &nxl:* +pttl +pexpire +zscore +zcard +zadd " RELEASER);
    held_by("H", 10000);
    struct outcome o = line_verb(&user, VERB_JOIN, "A", CHANNEL);
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
        line_test(nobody_is_handed_over_to),
        line_test(the_dead_and_the_deaf),
        line_test(the_window_ends),
        line_test(the_dead_do_not_pile_up),
        line_test(the_last_ticket),
        line_test(whether_the_channel_is_heard),
        line_test(keys_of_another_type),
        line_test(names_with_a_hash_tag),
        line_test(the_next_number),
        line_test(who_may_not_hand_over),
        line_test(who_may_not_wait),
        line_test(keys_that_may_not_be_touched),
    };
    return cmocka_run_group_tests_name(
        "line_scripts", tests, live_unix, live_stop);
}

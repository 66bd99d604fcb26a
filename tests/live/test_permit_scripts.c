/* SPDX-License-Identifier: MIT */
/*
 * The scripts of a lock that several hold, on a real server. One row for each
 * hazard (permit_rows.h): a schedule that would grant too many permits, or keep
 * some for nobody.
 */
#include "live/permit_rows.h"

static void the_table(void **state)
{
    permit_play(permit_rows, PERMIT_ROWS);
}

/* ---------------------------------------------------------- what takes more */

static const char *reader(unsigned i, const char *mark)
{
    static char text[TOKEN_MAX + 2];
    snprintf(
        text, sizeof(text), "%s%08x-0000-4000-8000-000000000000+1/0", mark, i);
    return text;
}

/* A script grants it to 128 at most, and tells the next one to ask (16). */
static void many_readers(void **state)
{
    enum { READERS = 300, MOST = 128 };
    assert_null(permit_scene("set x yes"));
    for (unsigned i = 0; i < READERS; i++)
        assert_kind(join(reader(i, "")), OUTCOME_BUSY);
    assert_null(permit_scene("release x yes; hold 128; line 172"));
    for (unsigned i = 0; i < READERS; i++) {
        if (i == MOST || i == 2 * MOST) {
            assert_message(reader(i, "!"));
            assert_no_message();
            assert_kind(stay(reader(i, "")), OUTCOME_GRANTED);
        } else {
            assert_message(reader(i, ""));
        }
    }
    assert_no_message();
    assert_null(permit_scene("hold 300; line 0"));
}

/* What no version has written stands where a script stops: it is removed. */
static void many_readers_and_damage(void **state)
{
    enum { MOST = 128 };
    (void)state;
    assert_null(permit_scene("set x yes"));
    for (unsigned i = 0; i < MOST; i++)
        assert_kind(join(reader(i, "")), OUTCOME_BUSY);
    redis_run(&server, "ZADD", "{k}:nxl-l", "541065216", "x", NULL);
    assert_kind(join(reader(MOST, "")), OUTCOME_BUSY);
    assert_null(permit_scene("release x yes; hold 128; line 1"));
    for (unsigned i = 0; i <= MOST; i++)
        assert_message(reader(i, i < MOST ? "" : "!"));
    assert_no_message();
}

/* The slot was moved to a server whose clock is an hour ahead or behind. */
static void another_clock(void **state)
{
    static const int64_t hours[] = {-3600000, 3600000};
    for (unsigned h = 0; h < 2; h++) {
        line_teardown(state);
        line_setup(state);
        assert_null(permit_scene("take a+1/4 yes; take b+1/4 yes;"
                                 "take c+1/4 yes; take d+2/4 no;"
                                 "take d+1/4 300 yes; take e+1/4 no"));
        redisReply *all = redis_command(
            &server, "ZRANGE", "k", "0", "-2", "WITHSCORES", NULL);
        for (size_t i = 0; i < all->elements; i += 2) {
            char score[32];
            snprintf(score, sizeof(score), "%lld",
                strtoll(all->element[i + 1]->str, NULL, 10) +
                    (long long)hours[h]);
            redis_run(&server, "ZADD", "k", score, all->element[i]->str, NULL);
        }
        freeReplyObject(all);
        struct outcome o = permit_verb("take", "e+1/4", LEASE_MS);
        assert_kind(o, OUTCOME_BUSY);
        assert_between(o.left_ms, 1, 300);
        assert_int_equal(permit_check_shifted(hours[h]).holders, 4);
        assert_kind(permit_verb("extend", "a+1/4", 30000), OUTCOME_MINE);
        assert_between(redis_pttl(&server, "k"), 29000, 30000);
        assert_kind(permit_verb("set", "x", 100), OUTCOME_BUSY);
        usleep(320000);
        assert_kind(permit_verb("extend", "d+1/4", 100), OUTCOME_NOT_MINE);
        assert_kind(permit_verb("take", "e+1/4", 100), OUTCOME_GRANTED);
        assert_kind(permit_verb("release", "a+1/4", 100), OUTCOME_MINE);
        assert_between(redis_pttl(&server, "k"), 18000, 20000);
        assert_int_equal(permit_check_shifted(hours[h]).holders, 3);
    }
}

/* A user who may not do all of it does none of it (9). */
static void half_permitted(void **state)
{
    static const char all[] = "~k ~{k}:nxl-* +get +getrange +pttl +zrange "
                              "+time +exists +zadd +zrem +zcount +zscore "
                              "+zremrangebyscore +pexpire +del";
    static const char *const needed[] = {
        "pexpire", "zadd", "del", "exists", "zrange"};
    struct peer owner = peer;
    redis_needs_acl(&server);
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
        char rights[400];
        snprintf(rights, sizeof(rights), "%s -%s", all, needed[i]);
        peer_as(&peer, rights);
        struct outcome o = permit_verb("take", "a+1/4", LEASE_MS);
        assert_kind(o, OUTCOME_FAULT);
        assert_false(o.unsure);
        assert_int_equal(redis_run(&server, "DBSIZE", NULL), 0);
        redisFree(peer.c);
    }
    peer_as(&peer, all);
    assert_kind(permit_verb("take", "a+1/4", LEASE_MS), OUTCOME_GRANTED);
    assert_kind(permit_verb("take", "b+2/4", LEASE_MS), OUTCOME_GRANTED);
    assert_kind(permit_verb("extend", "a+1/4", LEASE_MS), OUTCOME_MINE);
    assert_kind(permit_verb("release", "a+1/4", LEASE_MS), OUTCOME_MINE);
    redisFree(peer.c);
    peer = owner;
    /* Beside others: nothing changes. */
    static const char *const beside[] = {"pexpire", "zadd", "zremrangebyscore",
        "zrem", "zcount", "zrange", "pttl"};
    for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++) {
        char rights[400];
        line_teardown(state);
        line_setup(state);
        owner = peer;
        assert_null(permit_scene("take a+1/4 yes"));
        snprintf(rights, sizeof(rights), "%s -%s", all, beside[i]);
        peer_as(&peer, rights);
        assert_kind(
            permit_verb("take", "b+2/4", LEASE_MS + 1000), OUTCOME_FAULT);
        redisFree(peer.c);
        peer = owner;
        assert_int_equal(permit_check().holders, 1);
        assert_null(permit_scene("take b+2/4 yes; take c+2/4 no"));
    }
}

/* Whoever may remove a holder has released it, whatever else is refused. */
static void a_release_that_lacks_rights(void **state)
{
    (void)state;
    static const char *const lacking[] = {"pexpire", "del", "zcount"};
    struct peer owner = peer;
    redis_needs_acl(&server);
    for (size_t i = 0; i < sizeof(lacking) / sizeof(lacking[0]); i++) {
        char rights[100];
        assert_null(permit_scene("take a+1/4 yes; take b+1/4 yes;"
                                 "join d+4/4 no"));
        snprintf(rights, sizeof(rights), "~* &* +@all -%s", lacking[i]);
        peer_as(&peer, rights);
        assert_kind(permit_verb("release", "a+1/4", LEASE_MS), OUTCOME_MINE);
        assert_kind(permit_verb("release", "b+1/4", LEASE_MS), OUTCOME_MINE);
        redisFree(peer.c);
        peer = owner;
        const char *failed = permit_scene("release a+1/4 no; release b+1/4 no;"
                                          "join d+4/4 yes; release d+4/4 yes;"
                                          "take c+2/2 yes; release c+2/2 yes");
        if (failed)
            print_error("without %s: %s\n", lacking[i], failed);
        assert_null(failed);
        line_teardown(state);
        line_setup(state);
        owner = peer;
    }
}

/* Who cannot be served must not stay in line: an error says that it has not
 * joined, so its client does not leave. Who is granted the lock is told so,
 * though those behind it cannot be served. */
static void who_may_not_serve(void **state)
{
    static const struct {
        const char *lacks, *before, *word, *token, *after;
    } cases[] = {
        {"del", "set x yes; join w+1/4 no; cmd DEL k", "join", "a+1/4",
            "line 0; hold 0"},
        {"zremrangebyscore", "take h+1/4 yes", "join", "a+1/4",
            "line 0; hold 1; release h+1/4 yes; empty"},
        {"zadd", "set x yes", "join", "a+1/4", "cmd DEL k; empty"},
        {"zcount", "set x yes; join w+1/4 no; cmd DEL k", "join", "a",
            "told w+1/4; line 0; hold 1"},
        {"zremrangebyscore",
            "set x yes; join a+1/4 no; join b+1/4 no; cmd DEL k", "stay",
            "a+1/4", "line 0; hold 1; release a+1/4 yes; empty"},
    };
    redis_needs_acl(&server);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct peer owner = peer;
        char rights[40];
        assert_null(permit_scene(cases[i].before));
        snprintf(rights, sizeof(rights), "~* &* +@all -%s", cases[i].lacks);
        peer_as(&peer, rights);
        struct outcome o = permit_verb(cases[i].word, cases[i].token, LEASE_MS);
        redisFree(peer.c);
        peer = owner;
        bool stays = strcmp(cases[i].word, "stay") == 0;
        assert_kind(o, stays ? OUTCOME_GRANTED : OUTCOME_FAULT);
        assert_false(o.unsure);
        const char *failed = permit_scene(cases[i].after);
        if (failed)
            print_error("without %s: %s\n", cases[i].lacks, failed);
        assert_null(failed);
        assert_null(permit_scene("quiet"));
        line_teardown(state);
        line_setup(state);
    }
}

/* A token is not there only if that was seen; and a lease that is not extended
 * does not become longer for the others. */
static void a_holder_that_lacks_rights(void **state)
{
    struct peer owner = peer;
    (void)state;
    redis_needs_acl(&server);
    assert_null(permit_scene("take a+1/4 1000 yes"));
    peer_as(&peer, "~* &* +@all -zrange");
    assert_kind(permit_verb("leave", "a+1/4", LEASE_MS), OUTCOME_FAULT);
    assert_kind(permit_verb("leave", "a", LEASE_MS), OUTCOME_NOT_MINE);
    redisFree(peer.c);
    peer_as(&peer, "~* &* +@all -zadd");
    assert_kind(permit_verb("extend", "a+1/4", LEASE_MS), OUTCOME_FAULT);
    redisFree(peer.c);
    peer = owner;
    assert_null(permit_scene("hold 1; pttl 1000; release a+1/4 yes; empty"));
}

/* Whoever may leave the line has left it, whatever else is refused. */
static void a_leave_that_lacks_rights(void **state)
{
    static const char *const tokens[] = {"a+4/4", "a"};
    redis_needs_acl(&server);
    for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++) {
        struct peer owner = peer;
        char joins[40];
        snprintf(joins, sizeof(joins), "join %s no", tokens[i]);
        assert_null(permit_scene("take h+1/4 yes"));
        assert_null(permit_scene(joins));
        assert_null(permit_scene("join b+1/4 no"));
        peer_as(&peer, "~* &* +@all -zcount");
        assert_kind(permit_verb("leave", tokens[i], LEASE_MS), OUTCOME_MINE);
        assert_kind(
            permit_verb("leave", tokens[i], LEASE_MS), OUTCOME_NOT_MINE);
        assert_kind(permit_verb("release", "x", LEASE_MS), OUTCOME_NOT_MINE);
        redisFree(peer.c);
        peer = owner;
        assert_null(permit_scene("quiet; line 1; stay b+1/4 yes; hold 2;"
                                 "release h+1/4 yes; release b+1/4 yes;"
                                 "empty"));
        line_teardown(state);
        line_setup(state);
    }
}

#define scene(function)                                                        \
    cmocka_unit_test_setup_teardown(function, line_setup, line_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        scene(the_table),
        scene(many_readers),
        scene(many_readers_and_damage),
        scene(another_clock),
        scene(half_permitted),
        scene(a_release_that_lacks_rights),
        scene(who_may_not_serve),
        scene(a_holder_that_lacks_rights),
        scene(a_leave_that_lacks_rights),
    };
    return cmocka_run_group_tests_name(
        "permit_scripts", tests, live_unix, live_stop);
}

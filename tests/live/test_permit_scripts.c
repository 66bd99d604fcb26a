/* SPDX-License-Identifier: MIT */
/*
 * The scripts of a lock that several hold, on a real server. One row for each
 * hazard: a schedule that would grant too many permits, or keep some for
 * nobody.
 */
#include "live/permit_rig.h"

static const struct row {
    const char *name, *steps;
} rows[] = {
    {"four of four, and not a fifth",
        "take a+1/4 yes; take b+1/4 yes; take c+1/4 yes; take d+1/4 yes;"
        "take e+1/4 no; hold 4; release b+1/4 yes; take e+1/4 yes; hold 4;"
        "release a+1/4 yes; release c+1/4 yes; release d+1/4 yes;"
        "release e+1/4 yes; empty"},
    {"readers together, a writer alone",
        "take a+1/0 yes; take b+1/0 yes; set x no; release a+1/0 yes; set x no;"
        "release b+1/0 yes; set x yes; take a+1/0 no; release x yes;"
        "take a+1/0 yes"},
    {"weights", "take a+3/4 yes; take b+2/4 no; take c+1/4 yes; take d+1/4 no;"
                "release a+3/4 yes; take b+2/4 yes; take d+1/4 yes; hold 3"},
    {"a token takes its permits once (1)",
        "take a+1/2 yes; take a+1/2 yes; hold 1; take b+1/2 yes; take a+1/2 "
        "yes;"
        "join a+1/2 yes; take c+1/2 no; hold 2; line 0"},
    {"a lease is never shortened",
        "take a+1/2 yes; take a+1/2 100 yes; pttl 20000; extend a+1/2 100 yes;"
        "pttl 20000; extend a+1/2 30000 yes; pttl 30000"},
    {"a member leaves as it joined (4)",
        "set x yes; join a+1/2 no; leave a+1/2 100 no; line 1; leave a+1/2 yes;"
        "line 0"},
    {"the smallest limit of all holders (5)",
        "take a+1/2 yes; take b+1/4 yes; take c+1/4 no; release a+1/2 yes;"
        "take c+1/4 yes; take d+1/4 yes; take e+1/2 no; take e+1/4 yes;"
        "take f+1/4 no; take f+1/0 no"},
    {"in a batch too (5)",
        "set x yes; join a+1/2 no; join b+1/4 no; join c+1/4 no; release x yes;"
        "told a+1/2; told b+1/4; quiet; hold 2; line 1; release a+1/2 yes;"
        "told c+1/4; hold 2"},
    {"the head knows of a second kind (6)",
        "take a+1/4 yes; take b+2/4 yes; take c+1/4 yes; take d+1/4 no;"
        "release b+2/4 yes; take d+1/4 yes; take e+1/4 yes; take f+1/4 no"},
    {"the longest lease leaves, the other one dies (7)",
        "take a+1/4 300 yes; take b+1/4 yes; release b+1/4 yes; pttl 300;"
        "sleep 350; set x yes"},
    {"a short lease joins a long one (8)",
        "take a+1/4 yes; take b+1/4 300 yes; pttl 20000; sleep 350; hold 1;"
        "set x no; take c+1/4 yes; hold 2"},
    {"a holder with a limit leaves, a short lease is over",
        "take a+1/2 300 yes; take b+1/4 yes; take c+1/4 no; sleep 350;"
        "take c+1/4 yes; take d+1/4 yes; take e+1/4 yes; take f+1/4 no"},
    {"nobody passes a writer (10)",
        "take a+1/0 yes; join x no; take b+1/0 no; try b+1/0 no; join b+1/0 no;"
        "release a+1/0 yes; told x; quiet; take c+1/0 no; release x yes;"
        "told b+1/0; take c+1/0 yes; hold 2"},
    {"a batch counts on (12)",
        "set x yes; join a+1/2 no; join b+1/2 no; join c+1/2 no; release x yes;"
        "told a+1/2; told b+1/2; quiet; hold 2; line 1"},
    {"granted from the line once (13)",
        "set x yes; join a+1/2 no; release x yes; told a+1/2; hold 1; line 0;"
        "release a+1/2 yes; stay a+1/2 no; hold 0; quiet"},
    {"extended and released after the lease was over (14)",
        "take a+1/2 300 yes; take b+1/2 300 yes; sleep 350; take c+1/2 yes;"
        "take d+1/2 yes; extend a+1/2 no; keep a+1/2 no; release a+1/2 no;"
        "see a+1/2 no; extend b+1/2 no; hold 2; take e+1/2 no"},
    {"a lease that is over takes no permits, though its key stays",
        "take a+1/2 300 yes; take b+1/2 yes; sleep 350; extend a+1/2 no;"
        "release a+1/2 no; take c+1/2 yes; take d+1/2 no; hold 2"},
    {"a lease that is over does not come again, whatever the clock does",
        "take a+1/2 300 yes; take b+1/2 yes; sleep 350; members 3;"
        "release a+1/2 no; members 2; hold 1; pttl 20000"},
    {"a ranking of another program (15)",
        "cmd ZADD k 1 you 2 me; take a+1/4 wrong; try a+1/4 wrong;"
        "join a+1/4 wrong; extend a+1/4 no; keep a+1/4 no; release a+1/4 no;"
        "see a+1/4 no; set x no; extend x no; release x no; keep x no; line 0"},
    {"a ranking that looks like one (15)",
        "cmd ZADD k 1 nxl=1/4; take a+1/4 wrong; join a+1/4 wrong"},
    {"a list", "cmd RPUSH k a; take a+1/4 wrong; join a+1/4 wrong;"
               "extend a+1/4 no; release a+1/4 no; set x no"},
    {"a hash", "cmd HSET k a b; take a+1/4 wrong; join a+1/4 wrong"},
    {"a set", "cmd SADD k a; take a+1/4 wrong; join a+1/4 wrong"},
    {"a string of somebody",
        "cmd SET k v; take a+1/4 no; extend a+1/4 no; release a+1/4 no;"
        "keep a+1/4 no; see a+1/4 no"},
    {"an exclusive lock that was lost to several",
        "set x 300 yes; sleep 350; take a+1/4 yes; extend x no; keep x no;"
        "release x no; leave x no; see x no; hold 1"},
    {"several who lost it to an exclusive one",
        "take a+1/4 300 yes; sleep 350; set x yes; extend a+1/4 no;"
        "keep a+1/4 no; release a+1/4 no; see a+1/4 no; see x yes"},
    {"who is in line and does not fit stops those behind (19)",
        "take a+3/4 yes; join b+2/4 no; take c+1/4 no; join c+1/4 no;"
        "release a+3/4 yes; told b+2/4; told c+1/4; hold 2"},
    {"a writer gives up: those behind it are granted it",
        "take a+1/0 yes; join x no; join b+1/0 no; join c+1/0 no; leave x yes;"
        "told b+1/0; told c+1/0; hold 3; line 0"},
    {"a small limit gives up",
        "take a+1/4 yes; take b+1/4 yes; join c+1/2 no; join d+1/4 no;"
        "leave c+1/2 yes; told d+1/4; hold 3"},
    {"a waiter who left holds nothing",
        "set x yes; join a+1/2 no; leave a+1/2 yes; release x yes; empty"},
    {"min_hold: an earlier end",
        "take a+1/2 yes; take b+1/2 30000 yes; keep b+1/2 300 yes; pttl 20000;"
        "keep a+1/2 300 yes; pttl 300; take c+1/2 no; sleep 350; take c+1/2 "
        "yes"},
    {"a permit that was kept goes to the first in line",
        "take a+1/2 yes; take b+1/2 yes; join c+1/2 no; keep a+1/2 300 yes;"
        "sleep 350; stay c+1/2 yes; hold 2"},
    {"a writer waits for the last of them",
        "take a+1/0 300 yes; take b+1/0 700 yes; join x no; sleep 350; stay x "
        "no;"
        "sleep 400; stay x yes"},
    {"a key of a later kind in line",
        "set x yes; join z*9 no; join a+1/2 no; release x yes; told ?z*9;"
        "take b+1/2 no; stay a+1/2 no; stay z*9 no; hold 0; line 2"},
    {"a foreign share is no kind",
        "set x yes; join z+01/4 no; join a+1/2 no; release x yes; told ?z+01/4;"
        "stay a+1/2 no"},
    {"the mark was deleted: the line is served nonetheless",
        "take a+1/2 yes; take b+1/2 yes; join c+1/2 no; cmd DEL {k}:nxl-w;"
        "release a+1/2 yes; stay c+1/2 yes; hold 2; line 0"},
    {"the line was deleted",
        "take a+1/0 yes; join x no; cmd DEL {k}:nxl-l; take b+1/0 yes;"
        "stay x no; hold 2"},
    {"all holders were deleted",
        "take a+1/2 yes; take b+1/2 yes; join c+1/2 no; cmd DEL k;"
        "extend a+1/2 no; release b+1/2 no; stay c+1/2 yes; hold 1"},
    {"a permanent key",
        "take a+1/2 300 yes; cmd PERSIST k; extend a+1/2 300 yes; pttl 300;"
        "cmd PERSIST k; sleep 350; extend a+1/2 no; take b+1/2 yes; hold 1;"
        "pttl 20000"},
    {"a gap is left free, to try as well (17)",
        "cmd SET {k}:nxl-g 1 PX 8200; take a+1/2 no; try a+1/2 no;"
        "join a+1/2 no; hold 0; sleep 850; stay a+1/2 yes"},
    {"who is in line and cannot be told keeps its place",
        "set x yes; join a+1/2 no; cmd CLIENT KILL TYPE pubsub; release x yes;"
        "line 1; try b+1/2 yes; stay a+1/2 yes; hold 2"},
};

static void the_table(void **state)
{
    unsigned failures = 0;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        line_teardown(state);
        line_setup(state);
        const char *failed = permit_scene(rows[i].steps);
        if (failed)
            print_error("%s: %s\n", rows[i].name, failed);
        failures += failed != NULL;
    }
    assert_int_equal(failures, 0);
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

/* Sets how long the holders have had the lock. */
static void stands_for(int64_t ms)
{
    char score[32];
    redisReply *head = redis_command(&server, "ZRANGE", "k", "-1", "-1", NULL);
    snprintf(score, sizeof(score), "%lld",
        (long long)(PERMIT_FAR + permit_now_ms() - ms));
    redis_run(&server, "ZADD", "k", score, head->element[0]->str, NULL);
    freeReplyObject(head);
}

/* Overlapping holders make room for programs that poll: every 30.1 s nobody is
 * added for 0.1 s, and if the last one leaves then, the lock stays free for a
 * moment. */
static void a_pause(void **state)
{
    assert_null(permit_scene("take a+1/0 yes"));
    stands_for(29900);
    assert_null(permit_scene("take b+1/0 yes"));
    stands_for(30010);
    assert_null(permit_scene("try c+1/0 yes; take d+1/0 no; join d+1/0 no;"
                             "extend a+1/0 yes; release a+1/0 yes;"
                             "release b+1/0 yes; hold 1; line 1"));
    stands_for(30010);
    assert_null(permit_scene("release c+1/0 yes; told ?d+1/0; hold 0; line 1;"
                             "stay d+1/0 no; take e+1/0 no; set x yes;"
                             "release x yes"));
    usleep(110000);
    assert_null(permit_scene("stay d+1/0 yes"));
    stands_for(30101);
    assert_null(permit_scene("take e+1/0 yes; hold 2"));
}

/* When a gap is over and nobody in line has asked yet, there is no mark: those
 * in line come first all the same. */
static void after_a_gap(void **state)
{
    assert_null(permit_scene("take a+1/2 yes"));
    stands_for(30010);
    assert_null(permit_scene("join b+2/2 no; release a+1/2 yes; told ?b+2/2"));
    usleep(110000);
    assert_null(permit_scene("take c+1/2 no; told b+2/2; hold 1; line 0"));
}

/* A user who may not do all of it does none of it (9). */
static void half_permitted(void **state)
{
    static const char all[] = "~k ~{k}:nxl-* +get +getrange +pttl +zrange "
                              "+time +exists +zadd +zrem +zcount +zscore "
                              "+zremrangebyscore +pexpire +del";
    static const char *const needed[] = {
        "pexpire", "zadd", "del", "exists", "pttl"};
    struct peer owner = peer;
    redisReply *acl = redis_command(&server, "ACL", "WHOAMI", NULL);
    bool without = acl->type == REDIS_REPLY_ERROR;
    freeReplyObject(acl);
    if (without) /* before Redis 6 */
        skip();
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
    static const char *const beside[] = {
        "pexpire", "zadd", "zremrangebyscore", "zrem", "zcount", "zrange"};
    for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++) {
        char rights[400];
        line_teardown(state);
        line_setup(state);
        owner = peer;
        assert_null(permit_scene("take a+1/4 yes"));
        snprintf(rights, sizeof(rights), "%s -%s", all, beside[i]);
        peer_as(&peer, rights);
        assert_kind(permit_verb("take", "b+2/4", LEASE_MS), OUTCOME_FAULT);
        redisFree(peer.c);
        peer = owner;
        assert_int_equal(permit_check().holders, 1);
        assert_null(permit_scene("take b+2/4 yes; take c+2/4 no"));
    }
}

#define scene(function)                                                        \
    cmocka_unit_test_setup_teardown(function, line_setup, line_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        scene(the_table),
        scene(many_readers),
        scene(another_clock),
        scene(a_pause),
        scene(after_a_gap),
        scene(half_permitted),
    };
    return cmocka_run_group_tests_name(
        "permit_scripts", tests, live_unix, live_stop);
}

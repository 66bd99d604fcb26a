/* SPDX-License-Identifier: MIT */
/*
 * The scripts of a lock that several hold, on a real server. One row for each
 * hazard, a schedule that would grant too many permits, or keep some for
 * nobody, in the words of permit_rig.h; a number in brackets is that of a
 * hazard.
 */
#include "live/permit_rig.h"

static const struct permit_row permit_rows[] = {
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
    {"a take that is repeated has a new lease",
        "take a+1/2 300 yes; take a+1/2 yes; pttl 20000; sleep 350; hold 1"},
    {"a lease is never shortened",
        "take a+1/2 yes; take a+1/2 100 yes; pttl 20000; extend a+1/2 100 yes;"
        "pttl 20000; extend a+1/2 30000 yes; pttl 30000"},
    {"a token that takes is in line",
        "set x yes; join a+2/3 no; cmd DEL k; take a+2/3 300 yes; told a+2/3;"
        "hold 1; line 0; pttl 20000; take b+1/3 yes; take c+1/3 no"},
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
    {"in a batch too, if it is not that of the first (5)",
        "set x yes; join a+1/4 no; join b+1/2 no; join c+1/4 no; release x yes;"
        "told a+1/4; told b+1/2; quiet; hold 2; line 1"},
    {"the head knows of a second kind (6)",
        "take a+1/4 yes; take b+2/4 yes; take c+1/4 yes; take d+1/4 no;"
        "release b+2/4 yes; take d+1/4 yes; take e+1/4 yes; take f+1/4 no"},
    {"the longest lease leaves, the other one dies (7)",
        "take a+1/4 300 yes; take b+1/4 yes; release b+1/4 yes; pttl 300;"
        "sleep 350; set x yes"},
    {"a short lease joins a long one (8)",
        "take a+1/4 yes; take b+1/4 300 yes; pttl 20000; sleep 350; hold 1;"
        "set x no; take c+1/4 yes; hold 2"},
    {"a long lease joins a short one",
        "take a+1/4 300 yes; take b+1/4 yes; pttl 20000; sleep 350; hold 1;"
        "set x no"},
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
    {"readers have one number, writers between them others",
        "set x yes; fence x more; release x yes; take a+1/0 yes;"
        "fence a+1/0 more; take b+1/0 yes; fence b+1/0 same; fence a+1/0 same;"
        "release a+1/0 yes; take c+1/0 yes; fence c+1/0 same;"
        "release b+1/0 yes; release c+1/0 yes; set x yes; fence x more;"
        "release x yes; take a+1/0 yes; fence a+1/0 more; hold 1;"
        "release a+1/0 yes; take a+1/0 yes; fence a+1/0 more"},
    {"readers handed over in a batch have one number",
        "set x yes; fence x more; join a+1/0 no; join b+1/0 no; release x yes;"
        "told a+1/0; told b+1/0; fence b+1/0 more; fence a+1/0 same"},
    {"a number is kept with a second kind of holders, and with a third",
        "take a+1/0 yes; fence a+1/0 more; take b+1/4 yes; fence a+1/0 same;"
        "take c+2/5 yes; fence a+1/0 same; release b+1/4 yes;"
        "release c+2/5 yes; take d+1/0 yes; fence d+1/0 same; hold 2"},
    {"a number that is drawn beside a second kind of holders",
        "take a+1/0 yes; take b+1/4 yes; fence a+1/0 more; fence a+1/0 same;"
        "take c+1/4 yes; take d+1/0 yes; fence d+1/0 same; hold 4"},
    {"no number after the lease",
        "take a+1/0 300 yes; fence a+1/0 more; sleep 350; fence a+1/0 no;"
        "take b+1/0 yes; fence a+1/0 no; fence b+1/0 more; release b+1/0 yes;"
        "set x yes; fence b+1/0 no; fence x more"},
    {"no number after the lease, though the set goes on",
        "take a+1/0 300 yes; take b+1/0 yes; fence a+1/0 more; sleep 350;"
        "fence a+1/0 no; fence b+1/0 same; hold 1"},
    {"another type after the lease: no number, and no error",
        "take a+1/0 yes; set x no; cmd DEL k; cmd RPUSH k a; fence a+1/0 no;"
        "fence x no; cmd DEL k; cmd ZADD k 1 you; fence a+1/0 no; fence x no"},
    {"sharers after the lease of a writer: no number, and no error",
        "set x 300 yes; sleep 350; take a+1/0 yes; fence x no; fence a+1/0 "
        "more"},
    {"a counter that is ahead of the clock",
        "cmd SET {k}:f 9000000000000000; take a+1/0 yes; fence a+1/0 more;"
        "release a+1/0 yes; take a+1/0 yes; fence a+1/0 more; cmd DEL {k}:f;"
        "fence a+1/0 same; release a+1/0 yes; set x yes; fence x more"},
    {"a counter that is none",
        "take a+1/0 yes; cmd RPUSH {k}:f a; fence a+1/0 wrong; hold 1;"
        "cmd DEL {k}:f; fence a+1/0 more; cmd SET {k}:f x; fence a+1/0 wrong;"
        "cmd DEL {k}:f; fence a+1/0 same; hold 1; release a+1/0 yes;"
        "set x yes; fence x more"},
    {"a writer that polls holds readers back (21)",
        "take a+1/0 yes; take b+1/0 yes; hold_back x several; take c+1/0 no;"
        "try c+1/0 no; take a+1/0 yes; extend b+1/0 yes; release a+1/0 yes;"
        "take c+1/0 no; release b+1/0 yes; take c+1/0 no; set x yes;"
        "release x yes; take c+1/0 yes; take d+1/0 yes; hold 2"},
    {"not for longer than it asked for",
        "take a+1/0 yes; hold_back x several; take b+1/0 no; sleep 750;"
        "take b+1/0 yes; hold 2"},
    {"not in line, where there is one",
        "take a+1/0 yes; hold_back x several; take b+1/0 no; join b+1/0 yes;"
        "hold 2; line 0"},
    {"again, and then by another one",
        "take a+1/0 yes; hold_back x several; sleep 400; hold_back y several;"
        "sleep 400; take b+1/0 no; release a+1/0 yes; hold_back x yes;"
        "hold_back y no; release x yes; take b+1/0 yes"},
    {"an exclusive holder, or none, is not held back",
        "set x yes; hold_back y no; release x yes; take a+1/0 yes;"
        "release a+1/0 yes; hold_back y yes; release y yes; empty;"
        "set x 300 yes; hold_back y no; sleep 350; take a+1/0 yes"},
    {"where there is a line it stays as it is",
        "take a+1/0 yes; join w no; hold_back x several; release a+1/0 yes;"
        "told w; release w yes; take b+1/0 yes"},
    {"a line that came in between keeps its mark",
        "take a+1/0 yes; hold_back x several; join w no; sleep 100;"
        "hold_back y several; sleep 750; take b+1/0 no; release a+1/0 yes;"
        "told w; release w yes; take b+1/0 yes"},
    {"a line that comes later is served",
        "take a+1/0 yes; hold_back x several; join w no; join b+1/0 no;"
        "release a+1/0 yes; told w; release w yes; told b+1/0; hold 1;"
        "take c+1/0 yes"},
    {"a mark of a later version",
        "take a+1/0 yes; cmd SET {k}:nxl-w later; hold_back x several;"
        "take b+1/0 yes; cmd SET {k}:nxl-w +99999999999999; take c+1/0 yes;"
        "hold 3"},
    {"a gap is left free, to try as well (17)",
        "cmd SET {k}:nxl-g 1 PX 8200; take a+1/2 no; try a+1/2 no;"
        "join a+1/2 no; hold 0; sleep 850; stay a+1/2 yes"},
    {"who is in line and cannot be told keeps its place",
        "set x yes; join a+1/2 no; cmd CLIENT KILL TYPE pubsub; release x yes;"
        "line 1; try b+1/2 yes; stay a+1/2 yes; hold 2"},
    /* Overlapping holders make room for programs that poll: every 30.1 s nobody
     * is added for 0.1 s, and if the last one leaves then, the lock stays free
     * for a moment. */
    {"a pause",
        "take a+1/0 yes; stands 25000; take b+1/0 yes; stands 30000;"
        "try c+1/0 yes; cmd SET {k}:nxl-w 1 PX 5000; try e+1/0 yes;"
        "release e+1/0 yes; take d+1/0 no; join d+1/0 no; try e+1/0 no; quiet;"
        "hold 3; line 1; extend a+1/0 yes;"
        "release a+1/0 yes; release b+1/0 yes; hold 1; line 1;"
        "release c+1/0 yes; told ?d+1/0; gap 100; hold 0; line 1;"
        "stay d+1/0 no; take e+1/0 no; set x yes; release x yes; gap 0;"
        "stay d+1/0 yes; stands 30100; take e+1/0 yes; hold 2"},
    {"who leaves last begins a gap when it is time for one",
        "take a+1/0 yes; take b+1/0 yes; join x no; pass a+1/0 yes; quiet;"
        "hold 1; pass b+1/0 yes; told ?x; gap 100; hold 0; line 1; stay x no;"
        "take c+1/0 no; set y yes; release y yes; quiet; gap 0;"
        "stay x yes; line 0"},
    {"and hands it over when it is not",
        "take a+1/0 yes; join x no; cmd SET {k}:nxl-g 1 PX 5000;"
        "pass a+1/0 yes; told x; quiet; line 0"},
    {"one of several who was not handed it does not put off the next gap",
        "take a+1/0 yes; join x no; release a+1/0 yes; told x;"
        "join b+1/0 no; pass x yes; told ?b+1/0; hold 0; line 1"},
    {"after a gap there is no mark: those in line come first all the same",
        "take a+1/2 yes; stands 30010; join b+2/2 no; release a+1/2 yes;"
        "told ?b+2/2; sleep 110; take c+1/2 no; told b+2/2; hold 1; line 0"},
    {"a batch that stops leaves the mark",
        "set x yes; join a+1/2 no; join b+1/2 no; join c+2/2 no;"
        "release x yes; told a+1/2; told b+1/2; hold 2; line 1;"
        "release a+1/2 yes; take d+1/2 no; hold 1"},
    {"a short lease is extended beside a longer one",
        "take a+1/4 yes; take b+1/4 300 yes; extend b+1/4 500 yes; pttl 20000"},
    {"a ranking with great scores (15)",
        "cmd ZADD k 17592186044417 you 17592186044418 me; take a+1/4 wrong;"
        "join a+1/4 wrong"},
    {"nobody removes a lease that is over, and it takes no permits",
        "take a+1/2 300 yes; take b+1/2 yes; sleep 350; take c+1/2 yes;"
        "take d+1/2 no; hold 2"},
    {"a greater limit beside those of one kind",
        "take a+1/2 yes; take b+1/2 yes; take c+1/4 no; take d+1/0 no"},
    {"shares that no version writes",
        "take a+3/2 no; take a+0/2 no; take a+1/1 no; take a+01/2 no;"
        "take a+1/02 no; take a+2/0 no; take a+1/2x no; take a+1/ no;"
        "take a+/2 no; take a+ no; take a+1/2147483648 no; empty;"
        "take a+1/2147483647 yes"},
};

static void the_table(void **state)
{
    permit_play(permit_rows, sizeof(permit_rows) / sizeof(permit_rows[0]));
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
                                 "take d+1/4 700 yes; take e+1/4 no"));
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
        assert_between(o.left_ms, 1, 700);
        assert_int_equal(permit_check(hours[h]).holders, 4);
        assert_kind(permit_verb("extend", "a+1/4", 30000), OUTCOME_MINE);
        assert_between(redis_pttl(&server, "k"), 29000, 30000);
        assert_kind(permit_verb("set", "x", 100), OUTCOME_BUSY);
        usleep(720000);
        assert_kind(permit_verb("extend", "d+1/4", 100), OUTCOME_NOT_MINE);
        assert_kind(permit_verb("take", "e+1/4", 100), OUTCOME_GRANTED);
        assert_kind(permit_verb("release", "a+1/4", 100), OUTCOME_MINE);
        assert_between(redis_pttl(&server, "k"), 18000, 20000);
        assert_int_equal(permit_check(hours[h]).holders, 3);
    }
}

/* ------------------------------------------------------------------- rights */

#define ALL "~* &* +@all"
#define LEAST                                                                  \
    "~k ~{k}:nxl-* +get +getrange +pttl +zrange +time +exists +zadd +zrem "    \
    "+zcount +zscore +zremrangebyscore +pexpire +del"

/* The steps, once without each of these commands. */
static const struct {
    const char *commands, *steps;
} without_rights[] = {
    /* A user who may not do all of it does none of it (9). */
    {"pexpire zadd del exists zrange", "as " LEAST " -%s; take a+1/4 fault;"
                                       "empty"},
    {"get", "as " LEAST " -%s; take a+1/4 yes; take b+2/4 yes;"
            "extend a+1/4 yes; release a+1/4 yes"},
    {"pexpire zadd zremrangebyscore zrem zcount zrange pttl",
        "take a+1/4 yes; as " LEAST " -%s; take b+2/4 21000 fault; as all;"
        "hold 1; take b+2/4 yes; take c+2/4 no"},
    /* Whoever may remove a holder has released it, whatever else is refused. */
    {"pexpire del zcount",
        "take a+1/4 yes; take b+1/4 yes; join d+4/4 no; as " ALL " -%s;"
        "release a+1/4 yes; release b+1/4 yes; as all; release a+1/4 no;"
        "release b+1/4 no; join d+4/4 yes; release d+4/4 yes; take c+2/2 yes;"
        "release c+2/2 yes"},
    /* Who cannot be served must not stay in line: an error says that it has not
     * joined, so its client does not leave. Who is granted the lock is told so,
     * though those behind it cannot be served. */
    {"del", "set x yes; join w+1/4 no; cmd DEL k; as " ALL " -%s;"
            "join a+1/4 fault; line 0; hold 0; quiet"},
    {"zremrangebyscore", "take h+1/4 yes; as " ALL " -%s; join a+1/4 fault;"
                         "as all; line 0; hold 1; release h+1/4 yes; empty;"
                         "quiet"},
    {"zadd", "set x yes; as " ALL " -%s; join a+1/4 fault; cmd DEL k; empty;"
             "quiet"},
    {"zcount", "set x yes; join w+1/4 no; cmd DEL k; as " ALL " -%s;"
               "join a fault; told w+1/4; line 0; hold 1; quiet"},
    {"zremrangebyscore", "set x yes; join a+1/4 no; join b+1/4 no; cmd DEL k;"
                         "as " ALL " -%s; stay a+1/4 yes; as all; line 0;"
                         "hold 1; release a+1/4 yes; empty; quiet"},
    /* A token is not there only if that was seen; and a lease that is not
     * extended does not become longer for the others. */
    {"zrange", "take a+1/4 1000 yes; as " ALL " -%s; leave a+1/4 fault;"
               "leave a no; as all; hold 1; release a+1/4 yes; empty"},
    {"zadd", "take a+1/4 1000 yes; as " ALL " -%s; extend a+1/4 fault; as all;"
             "hold 1; pttl 1000; release a+1/4 yes; empty"},
    /* Whoever may leave the line has left it, whatever else is refused. */
    {"zcount", "take h+1/4 yes; join a+4/4 no; join b+1/4 no; as " ALL " -%s;"
               "leave a+4/4 yes; leave a+4/4 no; release x no; as all; quiet;"
               "line 1; stay b+1/4 yes; hold 2"},
    {"zcount", "take h+1/4 yes; join a no; join b+1/4 no; as " ALL " -%s;"
               "leave a yes; leave a no; release x no; as all; quiet;"
               "line 1; stay b+1/4 yes; hold 2"},
};

static void users_who_lack_rights(void **state)
{
    redis_needs_acl(&server);
    for (size_t i = 0; i < sizeof(without_rights) / sizeof(*without_rights);
         i++) {
        char commands[100], steps[600], *save;
        snprintf(commands, sizeof(commands), "%s", without_rights[i].commands);
        for (char *command = strtok_r(commands, " ", &save); command;
             command = strtok_r(NULL, " ", &save)) {
            snprintf(steps, sizeof(steps), without_rights[i].steps, command);
            permit_play(&(struct permit_row){command, steps}, 1);
        }
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
        scene(users_who_lack_rights),
    };
    return cmocka_run_group_tests_name(
        "permit_scripts", tests, live_unix, live_stop);
}

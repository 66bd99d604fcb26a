/* SPDX-License-Identifier: MIT */
/*
 * May a server vote, and if not, why and until when. One subject: the function
 * that judges it, story by story. Times are of a clock
 * that began long before the servers.
 */
#include "support/test.h"

#include "base/deadline.h"
#include "client/ineligible.h"
#include "core/confirm.h"
#include "core/weigh.h"

#define S NS_PER_S
#define T0 (UINT64_C(1000000) * S)
/* The longest lease of 60 s, its drift of 602 ms, in whole seconds. */
#define NEEDED 61

static struct eligibility s;
static struct eligibility_terms terms;
static struct server_info info;

static int set_up(void **state)
{
    (void)state;
    s = (struct eligibility){0};
    terms = (struct eligibility_terms){.max_ttl_ms = 60000,
        .drift_ppm = 10000,
        .several_servers = true,
        .guard = true};
    info = (struct server_info){.run_id = "aaaa",
        .role = "master",
        .replid = "1",
        .replid2 = "",
        .uptime_s = 5000};
    return 0;
}

static void judge(uint64_t now)
{
    eligibility_judge(&s, &info, &terms, false, now);
}

static const char *words(uint64_t now)
{
    static struct text text;
    text_clear(&text);
    ineligible_explain(&s, now, &text);
    return text.data;
}

static bool extend_counts(uint64_t now)
{
    const struct outcome extended = {.kind = OUTCOME_MINE, .sent_at = now};
    struct outcome instead;
    return weigh_outcome(&s, VERB_EXTEND, &extended, now, now, &instead);
}

static void votes_from(uint64_t at)
{
    assert_int_equal(s.votes_at, at);
    assert_false(eligibility_votes(&s, at - 1));
    assert_int_equal(eligibility_fault(&s, at - 1), FAULT_RESTARTED);
    assert_true(eligibility_votes(&s, at));
    assert_int_equal(eligibility_fault(&s, at), FAULT_NONE);
    assert_string_equal(words(at), "");
}

/* What it had granted before is gone, whether it keeps its data or not. */
static void a_replica_that_is_promoted_waits(void **state)
{
    (void)state;
    for (int durable = 0; durable <= 1; durable++) {
        set_up(NULL);
        terms.durable = durable;
        judge(T0);
        assert_true(eligibility_votes(&s, T0));
        info.role = "slave";
        judge(T0 + S);
        assert_false(eligibility_votes(&s, T0 + S));
        info.role = "master";
        judge(T0 + 2 * S);
        votes_from(T0 + (2 + NEEDED) * S);
        judge(T0 + 3 * S); /* and is not put off again */
        votes_from(T0 + (2 + NEEDED) * S);
    }
}

static void old_one_votes(void **state)
{
    (void)state;
    judge(T0);
    assert_true(eligibility_votes(&s, T0));
    assert_string_equal(words(T0), "");
}

/* uptime - 1 >= ceil(max_ttl + drift), to the second. */
static void by_uptime(void **state)
{
    (void)state;
    for (int64_t uptime = 0; uptime < 80; uptime++) {
        set_up(NULL);
        info.uptime_s = uptime;
        judge(T0);
        uint64_t age = uptime > 0 ? (uint64_t)uptime - 1 : 0;
        if (age >= NEEDED)
            assert_true(eligibility_votes(&s, T0));
        else
            votes_from(T0 + (NEEDED - age) * S);
    }
}

static void by_max_ttl(void **state)
{
    (void)state;
    static const struct {
        uint32_t max_ttl_ms, drift_ppm;
        uint64_t needed;
    } rows[] = {{1000, 10000, 2}, {3000, 10000, 4}, {990, 1, 1}, {20, 1, 1},
        {2147483647, 500000, 3221226}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        set_up(NULL);
        terms.max_ttl_ms = rows[i].max_ttl_ms;
        terms.drift_ppm = rows[i].drift_ppm;
        info.uptime_s = 0;
        judge(T0);
        votes_from(T0 + rows[i].needed * S);
    }
}

/* The same process again never votes sooner than was said before. */
static void a_stepped_clock_brings_nothing_forward(void **state)
{
    (void)state;
    info.uptime_s = 1;
    judge(T0);
    votes_from(T0 + NEEDED * S);
    info.uptime_s = 100000;
    judge(T0 + 2 * S);
    votes_from(T0 + NEEDED * S);
}

static void another_process(void **state)
{
    (void)state;
    judge(T0);
    info.run_id = "bbbb";
    info.uptime_s = 1000000; /* whatever that says */
    judge(T0 + 100 * S);
    votes_from(T0 + (100 + NEEDED) * S);
    assert_contains(
        words(T0 + 110 * S), "restarted, promoted or replaced 10s ago");
    assert_contains(words(T0 + 110 * S), "its vote counts again in 52s");
    /* A third one, in the meantime, begins anew. */
    info.run_id = "cccc";
    judge(T0 + 120 * S);
    votes_from(T0 + (120 + NEEDED) * S);
    /* It stays in quarantine, with the same process, until then. */
    judge(T0 + 121 * S);
    votes_from(T0 + (120 + NEEDED) * S);
}

static void seconds_are_told(void **state)
{
    (void)state;
    info.uptime_s = 11;
    judge(T0);
    assert_contains(words(T0 + 2 * S), "started 12s ago");
    assert_contains(words(T0 + 2 * S), "locks; its vote counts again in 50s");
}

/* 2.2 tells no run_id, and one that does may be asked later. */
static void no_run_id(void **state)
{
    (void)state;
    info.run_id = "";
    judge(T0);
    assert_true(eligibility_votes(&s, T0));
    info.run_id = "aaaa";
    judge(T0 + S);
    assert_true(eligibility_votes(&s, T0 + S));
    info.run_id = "";
    judge(T0 + 2 * S);
    info.run_id = "bbbb";
    judge(T0 + 3 * S);
    votes_from(T0 + (3 + NEEDED) * S);
}

static void bars(void **state)
{
    (void)state;
    static const struct {
        struct server_info info;
        bool durable, duplicate;
        enum fault fault;
        const char *words;
    } rows[] = {
        {{"a", "", -1, .refused = true}, false, false, FAULT_NO_INFO, "+info"},
        {{"a", "master", -1, .refused = false}, false, false, FAULT_NO_INFO,
            "uptime"},
        {{"a", "slave", 5000, .refused = false}, false, false,
            FAULT_NOT_PRIMARY, "replica"},
        {{"a", "active-replica", 5000, .refused = false}, false, false,
            FAULT_ACTIVE_REPLICA, "active replica"},
        {{"a", "active-replica", 5000, .refused = false}, false, true,
            FAULT_ACTIVE_REPLICA, "active replica"},
        {{"a", "master", 5000, .cluster = true, .slots = -1}, false, false,
            FAULT_CLUSTER, "+cluster|nodes"},
        {{"a", "slave", 5000, .cluster = true, .slots = 0}, false, false,
            FAULT_CLUSTER, "serves no slots"},
        {{"a", "master", 5000, .cluster = true, .slots = 16383}, false, true,
            FAULT_CLUSTER, "serves 16383 of 16384 slots"},
        {{"a", "replica", 5000, .refused = false}, false, false,
            FAULT_NOT_PRIMARY, "replica"},
        {{"a", "master", 5000, .no_aof = true}, true, false, FAULT_NOT_DURABLE,
            "aof_enabled:0"},
        {{"a", "master", 5000, .refused = false}, false, true, FAULT_DUPLICATE,
            "same server"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        set_up(NULL);
        terms.durable = rows[i].durable;
        eligibility_judge(&s, &rows[i].info, &terms, rows[i].duplicate, T0);
        assert_false(eligibility_votes(&s, NEVER));
        assert_false(extend_counts(T0));
        assert_int_equal(eligibility_fault(&s, T0), rows[i].fault);
        assert_contains(words(T0), rows[i].words);
        info.run_id = "a";
        terms.durable = false;
        judge(T0 + S); /* mended; what had other data has to wait */
        bool waits = rows[i].fault == FAULT_NOT_PRIMARY ||
                     rows[i].fault == FAULT_ACTIVE_REPLICA ||
                     rows[i].fault == FAULT_CLUSTER;
        assert_int_equal(eligibility_votes(&s, T0 + S), !waits);
        assert_true(eligibility_votes(&s, T0 + (1 + NEEDED) * S));
    }
}

/* Only these two bar a single server, too. */
static void a_node_with_all_slots_votes(void **state)
{
    (void)state;
    info.cluster = true;
    info.slots = CLUSTER_SLOTS;
    judge(T0);
    assert_true(eligibility_votes(&s, T0));
    assert_false(eligibility_unfit(&s));
    info.slots--;
    judge(T0);
    assert_true(eligibility_unfit(&s));
    info.cluster = false;
    info.role = "slave";
    judge(T0);
    assert_false(eligibility_unfit(&s));
    info.role = "active-replica";
    judge(T0);
    assert_true(eligibility_unfit(&s));
}

/* What bars it for a while does not end its quarantine. */
static void quarantine_outlasts_a_bar(void **state)
{
    (void)state;
    info.uptime_s = 1;
    judge(T0);
    info.uptime_s = 2;
    eligibility_judge(&s, &info, &terms, true, T0 + S);
    assert_int_equal(eligibility_fault(&s, T0 + S), FAULT_DUPLICATE);
    info.refused = true;
    info.uptime_s = -1;
    judge(T0 + 2 * S);
    assert_int_equal(eligibility_fault(&s, T0 + 2 * S), FAULT_NO_INFO);
    info.refused = false;
    info.uptime_s = 100000;
    judge(T0 + 3 * S);
    votes_from(T0 + NEEDED * S);
    assert_true(extend_counts(T0 + 3 * S));
}

/* Its age is then only what was seen of it. */
static void a_clock_that_was_set_back(void **state)
{
    (void)state;
    info.uptime_s = 0;
    info.uptime_was_negative = true;
    judge(T0);
    assert_contains(words(T0 + 3 * S), "its clock was set back");
    assert_contains(words(T0 + 3 * S), "3s ago");
    assert_contains(words(T0 + 3 * S), "its vote counts again in 59s");
    judge(T0 + 30 * S); /* a new connection to the same process */
    votes_from(T0 + NEEDED * S);
    judge(T0 + 2 * NEEDED * S);
    assert_true(eligibility_votes(&s, T0 + 2 * NEEDED * S));
    info.run_id = "bbbb";
    judge(T0 + 3 * NEEDED * S);
    votes_from(T0 + 4 * NEEDED * S);
    info.run_id = "";
    judge(T0 + 5 * NEEDED * S);
    votes_from(T0 + 6 * NEEDED * S);
    set_up(NULL); /* while it is set back, under a client that knows its age */
    judge(T0);
    info.uptime_s = 0;
    info.uptime_was_negative = true;
    judge(T0 + S);
    votes_from(T0 + (1 + NEEDED) * S);
}

static void a_durable_one_is_exempt(void **state)
{
    (void)state;
    terms.durable = true;
    info.uptime_s = 0;
    judge(T0);
    assert_true(eligibility_votes(&s, T0));
    info.run_id = "bbbb";
    judge(T0 + S);
    assert_true(eligibility_votes(&s, T0 + S));
}

#define FAILOVER_NEEDED 62 /* ... and a second of slack */

static void grants_from(uint64_t at)
{
    assert_int_equal(s.votes_at, at);
    assert_int_equal(eligibility_fault(&s, at - 1), FAULT_PROMOTED);
    assert_int_equal(eligibility_fault(&s, at), FAULT_NONE);
}

/* Nobody knows since when it has been the primary, but for what its replicas or
 * the marker say. */
static void one_that_was_promoted(void **state)
{
    (void)state;
    for (int64_t age = -1; age < 80; age++) {
        set_up(NULL);
        terms.failover = true;
        info.replid = "2";
        info.replid2 = "1";
        info.primary_s = age;
        judge(T0);
        if (age >= FAILOVER_NEEDED)
            assert_true(eligibility_votes(&s, T0));
        else
            grants_from(
                T0 + (FAILOVER_NEEDED - (uint64_t)(age > 0 ? age : 0)) * S);
        judge(T0 + S); /* and is not put off again */
        assert_true(eligibility_votes(&s, T0 + FAILOVER_NEEDED * S));
    }
    set_up(NULL);
    info.replid = "2"; /* without the guard against failovers */
    info.replid2 = "1";
    judge(T0);
    assert_true(eligibility_votes(&s, T0));
}

/* That it was promoted long ago does not count: it had other data since. */
static void slots_that_come_back_may_be_empty(void **state)
{
    (void)state;
    terms.failover = true;
    terms.several_servers = false;
    info.cluster = true;
    info.slots = CLUSTER_SLOTS - 1;
    info.replid2 = "bbbb";
    info.primary_s = 5000;
    judge(T0);
    info.slots++;
    judge(T0 + S);
    assert_false(eligibility_votes(&s, T0 + S));
    assert_int_equal(s.votes_at, T0 + (1 + FAILOVER_NEEDED) * S);
}

/* What a living client sees, with a server that writes to disk or not: it has
 * to wait where a promotion may have lost its locks. */
static void histories_and_durable(void **state)
{
    (void)state;
    static const struct {
        const char *story, *run_id, *replid, *replid2;
        int64_t primary_s;
        uint64_t waits, durable_waits;
    } rows[] = {
        {"the same", "aaaa", "1", "", -1, 0, 0},
        {"restarted without data", "bbbb", "7", "", -1, 62, 0},
        {"restarted, from an RDB file", "bbbb", "7", "1", -1, 62, 62},
        {"promoted", "bbbb", "2", "1", -1, 62, 62},
        {"promoted 40 s ago", "bbbb", "2", "1", 40, 22, 22},
        {"promoted between two looks", "aaaa", "3", "2", -1, 62, 62},
        {"its backlog was freed", "aaaa", "8", "", -1, 0, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (int durable = 0; durable <= 1; durable++) {
            set_up(NULL);
            terms.failover = true;
            terms.durable = durable;
            judge(T0);
            assert_true(eligibility_votes(&s, T0));
            info.run_id = rows[i].run_id;
            info.replid = rows[i].replid;
            info.replid2 = rows[i].replid2;
            info.primary_s = rows[i].primary_s;
            judge(T0 + S);
            uint64_t waits = durable ? rows[i].durable_waits : rows[i].waits;
            print_message("%s, durable %d\n", rows[i].story, durable);
            assert_int_equal(s.votes_at, waits ? T0 + (1 + waits) * S : 0);
        }
    }
}

/* Redis before 4.0 tells no history, so it may have been promoted just now. */
static void no_history(void **state)
{
    (void)state;
    static const struct {
        const char *replid;
        bool failover, several, sentinels;
        uint64_t waits;
    } rows[] = {
        {"", true, false, false, 62}, {NULL, true, false, false, 62},
        {"1", true, false, false, 0}, {"", false, false, false, 0},
        {"", true, true, false, 0},
        {"", true, false, true, 0}, /* they say since when */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        set_up(NULL);
        info.replid = rows[i].replid;
        info.named_s = 5000;
        terms.failover = rows[i].failover;
        terms.several_servers = rows[i].several;
        terms.sentinels = rows[i].sentinels;
        judge(T0);
        assert_int_equal(s.votes_at, rows[i].waits ? T0 + 62 * S : 0);
        judge(T0 + S); /* once */
        assert_int_equal(s.votes_at, rows[i].waits ? T0 + 62 * S : 0);
    }
    set_up(NULL);
    info.replid = "";
    terms.failover = true;
    terms.several_servers = false;
    judge(T0);
    assert_string_equal(words(T0 + S),
        "it does not tell whether it was promoted, as Redis 4.0 and later do, "
        "and was first seen 1s ago; it may have forgotten locks; it grants "
        "locks again in 62s");
    assert_int_equal(eligibility_fault(&s, T0 + S), FAULT_PROMOTED);
}

/* With Sentinels, how long a majority has named the server counts, up to the
 * age of its process; and a second more of slack. */
static void by_the_word_of_a_majority(void **state)
{
    (void)state;
    static const struct {
        const char *story;
        bool known; /* as "aaaa" with the history "1" before */
        const char *run_id, *replid, *replid2;
        int64_t uptime_s, named_s;
        uint64_t waits;
    } rows[] = {
        {"never promoted, at an unknown time", false, "aaaa", "1", "", 5000, 0,
            63},
        {"never promoted, named for 40 s", false, "aaaa", "1", "", 5000, 40,
            23},
        {"never promoted, named for longer", false, "aaaa", "1", "", 5000, 63,
            0},
        {"as ever, but named for 40 s", true, "aaaa", "1", "", 5000, 40, 23},
        {"as ever", true, "aaaa", "1", "", 5000, 5000, 0},
        {"promoted at an unknown time", false, "bbbb", "2", "1", 5000, 0, 63},
        {"named for 40 s", false, "bbbb", "2", "1", 5000, 40, 23},
        {"named for longer", false, "bbbb", "2", "1", 5000, 63, 0},
        {"restarted since", false, "bbbb", "2", "1", 11, 5000, 53},
        {"another one, named for 40 s", true, "bbbb", "2", "1", 5000, 40, 23},
        {"replaced by a restart", true, "bbbb", "2", "1", 1, 5000, 63},
        {"replaced, with no data", true, "bbbb", "9", "", 1, 5000, 63},
        {"promoted between two looks", true, "aaaa", "3", "2", 5000, 5000, 63},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        set_up(NULL);
        terms.failover = terms.sentinels = true;
        info.named_s = 5000;
        info.primary_s = 5000; /* nobody asks it, and it does not count */
        if (rows[i].known)
            judge(T0);
        info.run_id = rows[i].run_id;
        info.replid = rows[i].replid;
        info.replid2 = rows[i].replid2;
        info.uptime_s = rows[i].uptime_s;
        info.named_s = rows[i].named_s;
        judge(T0 + S);
        print_message("%s\n", rows[i].story);
        assert_int_equal(
            s.votes_at, rows[i].waits ? T0 + (1 + rows[i].waits) * S : 0);
    }
}

static void name(uint64_t asked_at, uint64_t since, bool moves)
{
    const struct sentinel_view named = {.asked_at = asked_at, .since = since};
    eligibility_named(&s, &named, moves);
}

/* Another one may have been named while this client did not ask, and have
 * granted locks that this one knows nothing of. */
static void named_again(void **state)
{
    (void)state;
    terms.failover = terms.sentinels = true;
    assert_int_equal(eligibility_named_s(&s, T0), 0);
    name(T0 - S, T0 - 5000 * S, false);
    assert_int_equal(s.confirmed_at, T0 - S);
    assert_int_equal(eligibility_named_s(&s, T0), 5000);
    info.named_s = 5000;
    judge(T0);
    /* Sentinels have started anew, but it was named all the while. */
    name(T0 + S, T0, false);
    assert_int_equal(eligibility_named_s(&s, T0 + S), 5001);
    assert_int_equal(s.votes_at, 0);
    /* After a while they say the same, by and large. */
    name(T0 + 100 * S, T0 - 4998 * S, false);
    assert_int_equal(eligibility_named_s(&s, T0 + 100 * S), 5100);
    assert_int_equal(s.votes_at, 0);
    name(T0 + 200 * S, T0 + 150 * S, false);
    assert_int_equal(eligibility_named_s(&s, T0 + 200 * S), 50);
    assert_int_equal(s.votes_at, T0 + (150 + NEEDED + 2) * S);
    assert_int_equal(s.confirmed_at, T0 + 200 * S);
    assert_int_equal(s.primary_changed_at, 0);
    assert_string_equal(words(T0 + 200 * S),
        "named as the primary 50s ago; it may have forgotten locks; its vote "
        "counts again in 14s");
    name(T0 + 198 * S, T0 + 150 * S, false);
    assert_int_equal(s.confirmed_at, T0 + 200 * S);
    /* Another one is judged when there is a connection. */
    name(T0 + 299 * S, T0 + 299 * S, true);
    assert_int_equal(s.primary_changed_at, T0 + 299 * S);
    assert_int_equal(eligibility_named_s(&s, T0 + 300 * S), 1);
    assert_int_equal(s.votes_at, T0 + (150 + NEEDED + 2) * S);
    name(T0 + 302 * S, T0 + 299 * S, false);
    assert_int_equal(s.primary_changed_at, T0 + 299 * S);
    /* The former one was named later than these say that they named this one.
     */
    name(T0 + 303 * S, T0 + 100 * S, true);
    assert_int_equal(s.primary_changed_at, T0 + 302 * S);
}

/* Each is counted once, however often the server is looked at; a restart, one
 * from an RDB file too, and what happened before the first look are none. */
static void failovers_are_counted_once(void **state)
{
    (void)state;
    static const struct {
        const char *run_id, *role, *replid, *replid2;
        int64_t uptime_s;
        unsigned failovers;
    } looks[] = {
        {"aaaa", "master", "2", "1", 9999, 0},   /* long ago */
        {"bbbb", "master", "7", "", 1, 0},       /* without data */
        {"cccc", "master", "8", "7", 1, 0},      /* from an RDB file */
        {"dddd", "master", "9", "8", 9999, 1},   /* promoted, unseen */
        {"eeee", "slave", "9", "", 9999, 1},     /* to be promoted, */
        {"eeee", "master", "10", "9", 9999, 2},  /* and it is */
        {"eeee", "master", "11", "10", 9999, 3}, /* a replica in between */
        {"eeee", "master", "12", "", 9999, 3},   /* its backlog was freed */
    };
    set_up(NULL);
    terms.failover = true;
    for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++) {
        info.run_id = looks[i].run_id;
        info.role = looks[i].role;
        info.replid = looks[i].replid;
        info.replid2 = looks[i].replid2;
        info.uptime_s = looks[i].uptime_s;
        for (int again = 0; again < 3; again++) {
            judge(T0 + S * i);
            assert_int_equal(s.failovers, looks[i].failovers);
        }
    }
}

/* How long a quarantine lasts yet; a replica is in none. */
static void what_is_left_of_a_quarantine(void **state)
{
    (void)state;
    set_up(NULL);
    terms.failover = true;
    judge(T0);
    assert_int_equal(eligibility_quarantine(&s, T0), 0);
    info.run_id = "bbbb";
    info.replid = "2";
    info.replid2 = "1";
    judge(T0);
    assert_int_equal(
        eligibility_quarantine(&s, T0 + S), (FAILOVER_NEEDED - 1) * S);
    assert_int_equal(eligibility_quarantine(&s, T0 + FAILOVER_NEEDED * S), 0);
    info.role = "slave";
    judge(T0 + S);
    assert_int_equal(eligibility_quarantine(&s, T0 + S), 0);
}

/* The former primary says that nothing was lost: then a second is enough, if
 * half of a lease's drift covers what the new one's clock is ahead. */
static void one_that_was_handed_over_to(void **state)
{
    (void)state;
    static const struct {
        int64_t ahead_ms;
        uint64_t waits;
    } rows[] = {
        {-5000, 1}, {0, 1}, {6, 1}, {7, 2}, {100, 20}, {302, 61}, {5000, 62}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        set_up(NULL);
        terms.failover = true;
        info.clock_low_ns = info.clock_high_ns = (int64_t)T0;
        judge(T0);
        info.role = "slave";
        info.replid = "2";
        info.replid2 = "1";
        judge(T0 + S);
        assert_int_equal(eligibility_fault(&s, T0 + S), FAULT_DEMOTED);
        info.run_id = "bbbb";
        info.role = "master";
        info.clock_high_ns += rows[i].ahead_ms * (int64_t)NS_PER_MS;
        judge(T0 + 2 * S);
        grants_from(T0 + (2 + rows[i].waits) * S);
        assert_int_equal(eligibility_coordinated_s(&s, &terms, T0 + 2 * S),
            FAILOVER_NEEDED - rows[i].waits);
        assert_int_equal(eligibility_coordinated_s(&s, &terms, T0 + 3 * S), -1);
        assert_contains(words(T0 + 2 * S),
            "promoted 0s ago, with all locks; its vote counts");
    }
}

/* With Sentinels: the former primary is asked when they name another one. What
 * it says counts if it had been named until then, so that no third one can have
 * granted locks in between. */
static void the_former_primary_is_asked(void **state)
{
    (void)state;
    static const struct {
        const char *what, *run_id, *role, *replid, *replid2;
        uint64_t followed_until, waits;
    } rows[] = {
        {"it has handed over", "aaaa", "slave", "2", "1", T0 + 98 * S, 1},
        {"it was followed long ago", "aaaa", "slave", "2", "1", T0 + 97 * S,
            63},
        {"it is a primary", "aaaa", "master", "1", "", T0 + 98 * S, 63},
        {"it has lost writes", "aaaa", "slave", "2", "", T0 + 98 * S, 63},
        {"it has gone elsewhere", "aaaa", "slave", "3", "1", T0 + 98 * S, 63},
        {"it was replaced", "cccc", "slave", "2", "1", T0 + 98 * S, 63},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        print_message("%s\n", rows[i].what);
        set_up(NULL);
        terms.failover = terms.sentinels = true;
        info.clock_low_ns = info.clock_high_ns = (int64_t)T0;
        info.named_s = 5000;
        name(T0, T0 - 5000 * S, false);
        judge(T0);
        name(rows[i].followed_until, T0, false);
        name(T0 + 100 * S, T0 + 100 * S, true);
        info.run_id = rows[i].run_id;
        info.role = rows[i].role;
        info.replid = rows[i].replid;
        info.replid2 = rows[i].replid2;
        if (rows[i].followed_until >= T0 + 98 * S)
            eligibility_hear_former(&s, &info);
        info.run_id = "bbbb";
        info.role = "master";
        info.replid = "2";
        info.replid2 = "1";
        info.named_s = 0;
        judge(T0 + 100 * S);
        grants_from(T0 + (100 + rows[i].waits) * S);
    }
}

/* It may have said so while it was followed, too. */
static void a_hand_over_is_forgotten(void **state)
{
    (void)state;
    for (uint64_t gap = 2; gap <= 3; gap++) {
        const struct sentinel_view next = {.asked_at = T0 + (1 + gap) * S};
        set_up(NULL);
        terms.failover = terms.sentinels = true;
        info.clock_low_ns = info.clock_high_ns = (int64_t)T0;
        info.named_s = 5000;
        name(T0, T0 - 5000 * S, false);
        judge(T0);
        info.role = "slave";
        info.replid = "2";
        info.replid2 = "1";
        name(T0 + S, T0, false);
        judge(T0 + S);
        assert_int_equal(eligibility_gives_way_to(&s, &next), gap == 2);
        name(next.asked_at, next.asked_at, true);
        info.run_id = "bbbb";
        info.role = "master";
        info.named_s = 0;
        judge(next.asked_at);
        grants_from(next.asked_at + (gap == 2 ? 1 : 63) * S);
    }
}

/* The quarantine of the former primary goes on at the new one. */
static void a_hand_over_within_a_quarantine(void **state)
{
    (void)state;
    terms.failover = true;
    info.uptime_s = 1;
    judge(T0);
    assert_int_equal(s.votes_at, T0 + NEEDED * S);
    info.role = "slave";
    info.replid = "2";
    info.replid2 = "1";
    info.clock_low_ns = info.clock_high_ns = (int64_t)T0;
    judge(T0 + S);
    info.run_id = "bbbb";
    info.role = "master";
    info.uptime_s = 5000;
    judge(T0 + 2 * S);
    assert_int_equal(s.votes_at, T0 + NEEDED * S);
    assert_int_equal(eligibility_coordinated_s(&s, &terms, T0 + 2 * S), -1);
}

/* It was seen before the server was replaced, or while it has no vote. */
static void a_longer_lease(void **state)
{
    (void)state;
    const uint64_t longer_needed = 607; /* 600 s, their drift of 6002 ms */
    for (int later = 0; later <= 1; later++) {
        set_up(NULL);
        terms.longer_ttl_ms = later ? 0 : 600000;
        judge(T0);
        assert_true(eligibility_votes(&s, T0)); /* it is older */
        info.run_id = "bbbb";
        judge(T0 + S);
        assert_int_equal(
            s.votes_at, T0 + (1 + (later ? NEEDED : longer_needed)) * S);
        terms.longer_ttl_ms = 600000;
        eligibility_lengthen(&s, &terms, T0 + 40 * S);
        votes_from(T0 + (1 + longer_needed) * S);
        assert_contains(words(T0 + 40 * S), "replaced 39s ago; it may have "
                                            "forgotten locks, some of which "
                                            "last for 10m; its vote");
    }
    set_up(NULL); /* its process is young; the rest is as above */
    info.uptime_s = 2;
    judge(T0);
    terms.longer_ttl_ms = 600000;
    eligibility_lengthen(&s, &terms, T0 + S);
    votes_from(T0 + (longer_needed - 1) * S);
}

/* Not if it has a vote again, or nothing was lost; and what the others learn of
 * a hand-over is for those that have seen no longer lease. */
static void a_longer_lease_that_makes_no_difference(void **state)
{
    (void)state;
    info.uptime_s = 0;
    judge(T0);
    terms.longer_ttl_ms = 600000;
    eligibility_lengthen(&s, &terms, T0 + NEEDED * S);
    votes_from(T0 + NEEDED * S);
    set_up(NULL);
    terms.failover = true;
    terms.longer_ttl_ms = 600000;
    info.clock_low_ns = info.clock_high_ns = (int64_t)T0;
    judge(T0);
    info.role = "slave";
    info.replid = "2";
    info.replid2 = "1";
    judge(T0 + S);
    info.run_id = "bbbb";
    info.role = "master";
    judge(T0 + 2 * S);
    eligibility_lengthen(&s, &terms, T0 + 2 * S);
    grants_from(T0 + 3 * S);
    assert_int_equal(
        eligibility_coordinated_s(&s, &terms, T0 + 2 * S), FAILOVER_NEEDED - 1);
}

static void without_the_guard(void **state)
{
    (void)state;
    terms.guard = false;
    info.uptime_s = 0;
    judge(T0);
    info.run_id = "bbbb";
    judge(T0);
    assert_true(eligibility_votes(&s, T0));
    info.refused = true;
    info.uptime_s = -1;
    judge(T0);
    assert_true(eligibility_votes(&s, T0));
    info.role = "slave"; /* that it is never */
    judge(T0);
    assert_false(eligibility_votes(&s, T0));
}

/* Only what a person can mend is looked at again, and once a second. */
static void checked_again_once_a_second(void **state)
{
    (void)state;
    info.uptime_s = 0;
    judge(T0);
    assert_false(eligibility_recheck(&s, T0 + 2 * S)); /* time mends it */
    info.role = "slave";
    judge(T0 + 2 * S);
    assert_false(eligibility_recheck(&s, T0 + 3 * S - 1));
    assert_true(eligibility_recheck(&s, T0 + 3 * S));
    assert_false(eligibility_recheck(&s, T0 + 4 * S - 1));
    assert_true(eligibility_recheck(&s, T0 + 4 * S));
    judge(T0 + 5 * S);
    assert_false(eligibility_recheck(&s, T0 + 6 * S - 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(old_one_votes, set_up),
        cmocka_unit_test_setup(a_replica_that_is_promoted_waits, set_up),
        cmocka_unit_test_setup(by_uptime, set_up),
        cmocka_unit_test_setup(by_max_ttl, set_up),
        cmocka_unit_test_setup(a_stepped_clock_brings_nothing_forward, set_up),
        cmocka_unit_test_setup(another_process, set_up),
        cmocka_unit_test_setup(seconds_are_told, set_up),
        cmocka_unit_test_setup(no_run_id, set_up),
        cmocka_unit_test_setup(bars, set_up),
        cmocka_unit_test_setup(a_node_with_all_slots_votes, set_up),
        cmocka_unit_test_setup(slots_that_come_back_may_be_empty, set_up),
        cmocka_unit_test_setup(quarantine_outlasts_a_bar, set_up),
        cmocka_unit_test_setup(a_clock_that_was_set_back, set_up),
        cmocka_unit_test_setup(a_durable_one_is_exempt, set_up),
        cmocka_unit_test_setup(one_that_was_promoted, set_up),
        cmocka_unit_test_setup(histories_and_durable, set_up),
        cmocka_unit_test_setup(failovers_are_counted_once, set_up),
        cmocka_unit_test(no_history),
        cmocka_unit_test(by_the_word_of_a_majority),
        cmocka_unit_test_setup(named_again, set_up),
        cmocka_unit_test_setup(the_former_primary_is_asked, set_up),
        cmocka_unit_test_setup(a_hand_over_is_forgotten, set_up),
        cmocka_unit_test_setup(what_is_left_of_a_quarantine, set_up),
        cmocka_unit_test_setup(one_that_was_handed_over_to, set_up),
        cmocka_unit_test_setup(a_hand_over_within_a_quarantine, set_up),
        cmocka_unit_test_setup(a_longer_lease, set_up),
        cmocka_unit_test_setup(a_longer_lease_that_makes_no_difference, set_up),
        cmocka_unit_test_setup(without_the_guard, set_up),
        cmocka_unit_test_setup(checked_again_once_a_second, set_up),
    };
    return cmocka_run_group_tests_name("eligibility", tests, NULL, NULL);
}

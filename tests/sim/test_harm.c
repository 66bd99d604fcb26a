/* SPDX-License-Identifier: MIT */
/*
 * The checker can only be trusted if it finds what is wrong: with each guard
 * turned off, the very seeds that are clean with it break the invariant that
 * it is there for. A case searches for the first such seed, and prints it for
 * tests/guards/table.py. Where no guard is named there is none that helps, as
 * docs/guarantees.md says: clocks that no lease can bear, and servers that
 * forget records.
 *
 * test_sim_harm [locks|permits|sentinels]: a third of them, or all.
 */
#define TEST_TIMEOUT_S 280 /* of one search, on a busy machine */
#include "support/test.h"

#include "sim/world.h"

#define MOST_SEEDS 6000
#define CLEAN_SEEDS 200 /* are played once more with the guard, at most */

/* Each invariant is searched for with each number of servers. */
static const struct search {
    const char *work, *guard;
    const char *servers;
    const char *breaks;
    const char *faults; /* NULL: clean */
} searches[] = {
    {"locks", "drift", "135", "I1", NULL},
    {"locks", "recheck", "135", "I1", NULL},
    {"locks", "restarts", "135", "I1", NULL},
    {"locks", "compare", "135", "I1", NULL},
    {"locks", "continuity", "135", "I1", NULL},
    {"locks", "shorten", "135", "I1", NULL},
    {"locks", "expired", "135", "I1", NULL},
    {"locks", "send-time", "1", "I1", NULL},
    {"locks", "fresh-token", "1", "I1", NULL},
    {"locks", "adopt", "1", "I1", "rewind"},
    {"locks", "drift", "4", "I3", NULL},
    {"locks", "send-time", "4", "I3", NULL},
    {"locks", "continuity", "14", "I3", NULL},
    {"locks", "write-back", "345", "I2", NULL},
    {"locks", "fence-floor", "13", "I2", NULL},
    {"locks", "restarts", "1", "I2", NULL},
    {"locks", NULL, "13", "I2", "clean,apart"},
    {"locks", "loss", "15", "I9", NULL},
    {"locks", "compare", "15", "I4", NULL},
    {"locks", "expired", "135", "I4", NULL},
    /* What a lost round leaves behind is in everybody's way. */
    {"locks", "late-undo", "135", "I5 I6", NULL},
    {"locks", "lost-acquire", "135", "I5 I6", NULL},
    {"locks", "fresh-token", "13", "I8", NULL},
    {"locks", "witness", "135", "I11", NULL},
    /* A line; test_rare.c has what seeds do not find. */
    {"locks", "join-once", "1", "I1 I8", NULL},
    {"locks", "answered", "1", "I1 I3", NULL},
    {"locks", "grant-order", "1", "I1", NULL},
    {"locks", NULL, "1235", "I1", "skew"},

    {"once", "witness", "1", "I11", NULL},
    {"once", "fresh-token", "1", "I12", NULL},
    {"once", "unseen", "1", "I5", NULL},
    {"once", "seen", "1", "O1", NULL},
    {"once", "fingerprint", "1", "O5", NULL},
    {"once", "begin-free", "1", "I1", NULL},
    {"once", "begin-once", "1", "O1", NULL},
    {"once", "halt", "1", "O1", NULL},
    {"once", "doubts", "1", "O1 O3", NULL},
    {"once", "no-end", "1", "O2", NULL},
    {"once", "tell-own", "1", "O1", NULL},
    {"once", "done-stays", "1", "O4 O5", NULL},
    {"once", "done-late", "1", "O4", NULL},
    {"once", "unsure-late", "1", "O2", NULL},
    {"once", "late", "1", "O4", NULL},
    {"once", "failed-doubts", "1", "O2", NULL},
    {"once", "forget", "1", "O1", NULL},
    {"once", "unbegin-own", "1", "O1", NULL},
    {"once", NULL, "1", "O1", "wipe,cut"},

    {"crowd", "answered", "1", "I3", NULL},
    {"crowd", "late-undo", "1", "I5 I6", NULL},
    {"crowd", "window", "1", "I16", NULL},
    {"crowd", "far-window", "1", "I15", NULL},
    {"crowd", "clock-back", "1", "I15", NULL},
    {"crowd", "place", "1", "I17", NULL},
    {"crowd", "gap", "1", "I18", NULL},
    {"crowd", "gap-kept", "1", "I18", NULL},
    {"crowd", "gap-ends", "1", "I18", NULL},
    /* With few other troubles hand-overs go on for long enough. */
    {"crowd", "gap-comes", "1", "I18", "clock"},

    {"several", "name-order", "13", "I6", NULL},

    {"failover", "second-history", "13", "I1", NULL},
    {"failover", "age", "1", "I1", NULL},
    {"failover", "coordinated", "1", "I1", NULL},
    {"failover", "alive", "1", "I1", NULL},
    {"failover", "heard", "1", "I1", NULL},
    {"failover", "replicas", "1", "I1", NULL},
    {"failover", "same-history", "1", "I1", NULL},
    {"failover", "marker", "1", "I1", NULL},

    {"replicas", "copies", "13", "I19", NULL},
    {"replicas", "own-wait", "1", "I19", NULL},
    {"replicas", "old-deadline", "13", "I19", NULL},
    {"replicas", "void-token", "1", "I8", NULL},
    {"replicas", "held", "1", "I5", NULL},

    {"sentinels", "confirm-grants", "1", "I1", NULL},
    {"sentinels", "confirm-extends", "1", "I1", NULL},
    {"sentinels", "confirm-messages", "1", "I1", NULL},
    {"sentinels", "named", "1", "I1", NULL},
    {"sentinels", "moved", "1", "I1", NULL},
    {"sentinels", "all-sentinels", "1", "I1", NULL},
    {"sentinels", "one-sentinel", "1", "I1", NULL},
    {"sentinels", "first-answer", "1", "I1", NULL},
    {"sentinels", "age", "1", "I1", NULL},

    /* What the scripts do at the server. */
    {"permits", "smallest", "1", "I1", NULL},
    {"permits", "head", "1", "I1", NULL},
    {"permits", "lease-over", "1", "I11", NULL},
    {"permits", "end-put", "13", "I1", NULL},
    {"permits", "end-left", "1", "I1 I5", NULL},
    {"permits", "end-left", "3", "I5", NULL},
    {"permits", "counts-on", "1", "I1", NULL},
    {"permits", "held-first", "1", "I11 I6", NULL},
    {"permits", "leaves-line", "1", "I5", NULL},
    {"permits", "take-behind", "1", "I15", NULL},
    {"permits", "after-gap", "1", "I15", NULL},
    {"permits", "pause", "1", "I18", NULL},
    {"permits", "never-shorten", "1", "I1", NULL},
    /* What a client does. */
    {"permits", "send-time", "1", "I1 I3", NULL},
    {"permits", "drift", "13", "I1", NULL},
    {"permits", "answered", "1", "I1 I3", NULL},
    {"permits", "fresh-token", "13", "I8", NULL},
    {"permits", "join-once", "1", "I8 I12", NULL},
    {"permits", "lost-acquire", "1", "I5 I6", NULL},
    {"permits", "lost-acquire", "3", "I5", NULL},
    {"permits", "late-undo", "1", "I5 I6", NULL},
    {"permits", "as-joined", "1", "I5 I8", NULL},
    {"permits", "witness", "1", "I11", NULL},
    {"permits", "restarts", "13", "I1", NULL},
    {"permits", "expired", "3", "I4", NULL},

    {"readers", "hold-back", "135", "I21", NULL},
    {"readers", "mark-stays", "135", "I21 I15", NULL},

    {"permits-failover", "second-history", "13", "I1", NULL},
    {"permits-failover", "age", "1", "I1", NULL},
    {"permits-failover", "coordinated", "1", "I1", NULL},
    {"permits-failover", "alive", "1", "I1", NULL},
    {"permits-failover", "replicas", "1", "I1", NULL},
    {"permits-failover", "marker", "1", "I1", NULL},

    {"permits-replicas", "copies", "13", "I19", NULL},
    {"permits-replicas", "own-wait", "1", "I19", NULL},
    {"permits-replicas", "old-deadline", "13", "I19", NULL},
    {"permits-replicas", "void-token", "1", "I8", NULL},
    {"permits-replicas", "held", "1", "I5", NULL},

    {"permits-sentinels", "confirm-grants", "1", "I1", NULL},
    {"permits-sentinels", "confirm-extends", "1", "I1", NULL},
    {"permits-sentinels", "named", "1", "I1", NULL},
    {"permits-sentinels", "one-sentinel", "1", "I1", NULL},
    {"permits-sentinels", "age", "1", "I1", NULL},
};
#define SEARCHES (sizeof(searches) / sizeof(*searches))

static struct options options_of(const struct search *s, unsigned servers)
{
    struct options options = OPTIONS_INIT;
    options.servers = servers;
    options.kind = world_kind(s->work);
    assert_non_null(options.kind);
    if (options.kind->once && !s->faults)
        options.troubles &= ~FORGETFUL_TROUBLES;
    if (s->faults)
        assert_true(troubles_parse(s->faults, &options.troubles));
    return options;
}

static enum invariant invariant_of(const char *name, size_t len)
{
    unsigned i = 1;
    while (i < INVARIANTS && (strlen(invariant_names[i]) != len ||
                                 strncmp(invariant_names[i], name, len) != 0))
        i++;
    assert_true(i < INVARIANTS);
    return (enum invariant)i;
}

/* The first seed that breaks what is checked; 0: none up to last. */
static uint64_t first_broken(struct options options, uint64_t last)
{
    for (options.seed = 1; options.seed <= last; options.seed++)
        if (world_run(&options, NULL).broken)
            return options.seed;
    return 0;
}

static void search_for(
    const struct search *s, unsigned servers, enum invariant which)
{
    struct options options = options_of(s, servers);
    bool locks = options.kind == world_kinds;
    clock_t began = clock();
    options.checked = INVARIANT(which);
    guards_turn_on();
    assert_true(!s->guard || guard_turn_off(s->guard));
    uint64_t seed = first_broken(options, MOST_SEEDS);
    guards_turn_on();
    print_message("%u servers, %s%s%sfaults %s%s%s: seed %llu breaks %s (%.0f "
                  "ms)\n",
        servers, locks ? "" : "work ", locks ? "" : s->work, locks ? "" : ", ",
        s->faults ? s->faults : "clean", s->guard ? ", without " : "",
        s->guard ? s->guard : "", (unsigned long long)seed,
        invariant_names[which],
        (double)(clock() - began) * 1000 / CLOCKS_PER_SEC);
    assert_true(seed != 0);
    if (!s->guard)
        return;
    uint64_t clean = seed > CLEAN_SEEDS ? CLEAN_SEEDS : seed;
    assert_int_equal(first_broken(options, clean), 0);
    options.checked = ALL_INVARIANTS;
    options.seed = seed;
    assert_int_equal(world_run(&options, stderr).broken, 0);
}

static void test_search(void **state)
{
    const struct search *s = *state;
    for (const char *which = s->breaks; *which;) {
        size_t len = strcspn(which, " ");
        for (const char *servers = s->servers; *servers; servers++)
            search_for(s, (unsigned)(*servers - '0'), invariant_of(which, len));
        which += len + (which[len] == ' ');
    }
}

static bool is_of_part(const struct search *s, const char *part)
{
    bool permits = world_kind(s->work)->permits || world_kind(s->work)->readers;
    if (strcmp(part, "permits") == 0)
        return permits;
    bool sentinels = strcmp(s->work, "sentinels") == 0;
    return strcmp(part, "sentinels") == 0 ? sentinels : !permits && !sentinels;
}

int main(int argc, char **argv)
{
    static struct CMUnitTest tests[SEARCHES];
    static char names[SEARCHES][80];
    size_t count = 0;
    for (size_t i = 0; i < SEARCHES; i++) {
        const struct search *s = &searches[i];
        if (argc > 1 && !is_of_part(s, argv[1]))
            continue;
        snprintf(names[i], sizeof(names[i]), "%s without %s: %s", s->work,
            s->guard ? s->guard : s->faults, s->breaks);
        tests[count++] = (struct CMUnitTest){.name = names[i],
            .test_func = test_search,
            .initial_state = (void *)s};
    }
    return test_run_group("harm", tests, count, NULL, NULL);
}

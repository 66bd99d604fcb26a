/* SPDX-License-Identifier: MIT */
/*
 * What a broken world is made small to is still broken, in the same way, and
 * nothing more can be left out of it; and it is played again by its events.
 */
#include "support/test.h"

#include "sim/shrink.h"

static const struct wrong {
    const char *guard;
    unsigned servers;
    enum invariant which;
} wrongs[] = {
    {"restarts", 3, I1},
    {"drift", 3, I1},
    {"compare", 3, I1},
    {"expired", 3, I1},
    {"late-undo", 1, I5},
    {"lost-acquire", 3, I5},
    {"fresh-token", 1, I8},
};

/* A world in which little happened may need all of it. */
#define EVENTS_ENOUGH 30

/* The first world that breaks and has enough in it; *all: what happened. */
static struct options first_broken(
    const struct wrong *wrong, struct report *report, struct events *all)
{
    struct options options = OPTIONS_INIT;
    options.happened = all;
    options.servers = wrong->servers;
    options.checked = INVARIANT(wrong->which);
    assert_true(guard_turn_off(wrong->guard));
    do {
        all->count = 0;
        *report = world_run(&options, NULL);
    } while ((!report->broken || all->count < EVENTS_ENOUGH) &&
             options.seed++ < 6000);
    assert_int_equal(report->broken, wrong->which);
    options.happened = NULL;
    return options;
}

/* The sentence without its numbers. */
static void words_of(const struct report *report, char *words)
{
    for (const char *at = report->why; *at != '\0'; at++)
        if (!strchr("0123456789", *at))
            *words++ = *at;
    *words = '\0';
}

static void assert_same(const struct report *one, const struct report *other)
{
    char words[2][200];
    words_of(one, words[0]);
    words_of(other, words[1]);
    assert_int_equal(one->broken, other->broken);
    assert_string_equal(words[0], words[1]);
}

static void make_small(const struct wrong *wrong)
{
    static struct events all, kept, fewer;
    struct report report;
    struct options options = first_broken(wrong, &report, &all);
    assert_true(shrink(&options, &kept));
    print_message(
        "without %s: %zu of %zu events\n", wrong->guard, kept.count, all.count);
    assert_true(kept.count > 0 && kept.count < all.count);
    struct report small = world_run(&options, NULL);
    assert_same(&small, &report);
    assert_true(small.steps < report.steps);
    assert_true(world_run(&options, NULL).hash == small.hash);
    for (size_t leave = 0; leave < kept.count; leave++) {
        fewer.count = 0;
        for (size_t j = 0; j < kept.count; j++)
            if (j != leave)
                fewer.id[fewer.count++] = kept.id[j];
        options.only = &fewer;
        struct report less = world_run(&options, NULL);
        assert_false(same_failure(&less, &report));
    }
}

static void test_smallest(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(wrongs) / sizeof(*wrongs); i++) {
        make_small(&wrongs[i]);
        guards_turn_on();
    }
}

static void test_same_failure(void **state)
{
    static const struct report one = {.broken = I5, .why = "t9 stands at s1"};
    static const struct {
        struct report report;
        bool same;
    } others[] = {
        {{.broken = I5, .why = "t10 stands at s2"}, true},
        {{.broken = I5, .why = "t10 stands at s2, still"}, false},
        {{.broken = I5, .why = "t10 still stands at s2"}, false},
        {{.broken = I5, .why = "t10 stands at s"}, true},
        {{.broken = I5, .why = "t10 stands"}, false},
        {{.broken = I5, .why = ""}, false},
        {{.broken = I8, .why = "t9 stands at s1"}, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        assert_int_equal(same_failure(&one, &others[i].report), others[i].same);
}

static void test_events_have_names(void **state)
{
    static const struct {
        const char *name;
        uint64_t id;
    } events[] = {{"T0", EVENT_TROUBLE(0)}, {"T17", EVENT_TROUBLE(17)},
        {"c0.0#0", EVENT_BEGIN(0, 0, 0)}, {"c4.2#99", EVENT_BEGIN(4, 2, 99)},
        {"c29.9#3", EVENT_BEGIN(29, 9, 3)}};
    static const char *const none[] = {"", "T", "T1x", "c1.0", "c30.0#1",
        "c1.10#1", "x", "T07", "T-1", "T 1", "c1.0#+1",
        "T99999999999999999999999"};
    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        char text[40];
        uint64_t id;
        FILE *out = fmemopen(text, sizeof(text), "w");
        assert_non_null(out);
        event_print(events[i].id, out);
        fclose(out);
        assert_string_equal(text, events[i].name);
        assert_true(event_parse(text, strlen(text), &id));
        assert_true(id == events[i].id);
    }
    for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
        uint64_t id;
        assert_false(event_parse(none[i], strlen(none[i]), &id));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_smallest),
        cmocka_unit_test(test_same_failure),
        cmocka_unit_test(test_events_have_names),
    };
    return cmocka_run_group_tests_name("shrink", tests, NULL, NULL);
}

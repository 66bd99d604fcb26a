/* SPDX-License-Identifier: MIT */
/*
 * What a broken world is made small to is still broken, in the same way, and
 * nothing more can be left out of it; and it is played again by its events.
 */
#include "support/test.h"

#include "sim/shrink.h"

static struct options first_broken(const char *guard, struct report *report)
{
    struct options options = OPTIONS_INIT;
    options.servers = 3;
    options.checked = INVARIANT(I1);
    assert_true(guard_turn_off(guard));
    do
        *report = world_run(&options, NULL);
    while (!report->broken && options.seed++ < 6000);
    assert_int_equal(report->broken, I1);
    return options;
}

static void test_smallest(void **state)
{
    static const char *const off[] = {"restarts", "drift", "compare"};
    static struct events all, kept, fewer;
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        struct report report;
        struct options options = first_broken(off[i], &report);
        all.count = 0;
        options.happened = &all;
        world_run(&options, NULL);
        options.happened = NULL;
        shrink(&options, &kept);
        print_message("without %s: %zu of %zu events\n", off[i], kept.count,
            all.count);
        assert_true(kept.count > 0 && kept.count < all.count);
        struct report small = world_run(&options, NULL);
        assert_int_equal(small.broken, I1);
        assert_true(small.steps < report.steps);
        assert_true(world_run(&options, NULL).hash == small.hash);
        for (size_t leave = 0; leave < kept.count; leave++) {
            fewer.count = 0;
            for (size_t j = 0; j < kept.count; j++)
                if (j != leave)
                    fewer.id[fewer.count++] = kept.id[j];
            options.only = &fewer;
            assert_int_equal(world_run(&options, NULL).broken, 0);
        }
        guards_turn_on();
    }
}

static void test_events_have_names(void **state)
{
    static const struct {
        const char *name;
        uint64_t id;
    } events[] = {{"T0", EVENT_TROUBLE(0)}, {"T17", EVENT_TROUBLE(17)},
        {"c0.0#0", EVENT_BEGIN(0, 0, 0)}, {"c4.2#99", EVENT_BEGIN(4, 2, 99)}};
    static const char *const none[] = {
        "", "T", "T1x", "c1.0", "c9.0#1", "c1.7#1", "x"};
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        char text[40];
        uint64_t id;
        FILE *out = fmemopen(text, sizeof text, "w");
        assert_non_null(out);
        event_print(events[i].id, out);
        fclose(out);
        assert_string_equal(text, events[i].name);
        assert_true(event_parse(text, strlen(text), &id));
        assert_true(id == events[i].id);
    }
    for (unsigned i = 0; i < 7; i++) {
        uint64_t id;
        assert_false(event_parse(none[i], strlen(none[i]), &id));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_smallest),
        cmocka_unit_test(test_events_have_names),
    };
    return cmocka_run_group_tests_name("shrink", tests, NULL, NULL);
}

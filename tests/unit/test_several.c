/* SPDX-License-Identifier: MIT */
/*
 * Several names by one handle: their order, as many as there may be, and the
 * worst result. Single cases are in unit/scenes/several.scenes.
 */
#include "unit/scene_several.h"

static void the_order_of_the_bytes(void **state)
{
    static const struct slice keys[] = {
        {"b", 1}, {"a\xff", 2}, {"a", 1}, {"a\0", 2}, {"B", 1}};
    static const unsigned char sorted[] = {4, 2, 3, 1, 0};
    unsigned char order[5];
    (void)state;
    assert_int_equal(several_order(keys, 5, order), 5);
    assert_memory_equal(order, sorted, 5);
    static const struct slice equal[] = {
        {"y", 1}, {"x", 1}, {"z", 1}, {"y", 1}};
    assert_int_equal(several_order(equal, 4, order), 1);
    assert_int_equal(order[1] + order[2], 0 + 3);
}

static void the_most_names(void **state)
{
    char word[16], wanted[1024];
    int len = snprintf(wanted, sizeof(wanted), "T B0");
    (void)state;
    scene_begin(&several_machine, "");
    snprintf(word, sizeof(word), "acquire:%d", SEVERAL_MAX);
    scene_play(word);
    for (unsigned i = 0; i < SEVERAL_MAX; i++) {
        assert_string_equal(scene.trace, wanted);
        snprintf(word, sizeof(word), "ok:%u", i);
        scene_play(word);
        len += snprintf(wanted + len, sizeof(wanted) - (size_t)len,
            i + 1 < SEVERAL_MAX ? " B%u" : " S", i + 1);
    }
    scene_play("settled:1");
    several_call(&several, CALL_RELEASE);
    struct several_action action;
    unsigned begun = 0;
    while (several_next(&several, &action, scene.now)) {
        assert_int_equal(action.kind, SEVERAL_BEGIN);
        assert_int_equal(action.member, begun++);
    }
    assert_int_equal(begun, SEVERAL_MAX);
}

/* The result of the whole, whichever member has it. */
static void the_worst_result(void **state)
{
    static const char *const order[] = {
        "ok", "cancelled", "fault", "unknown", "lost"};
    (void)state;
    for (unsigned a = 0; a < 5; a++) {
        for (unsigned b = 0; b < 5; b++) {
            char steps[64], wanted[64];
            unsigned worst = a > b ? a : b;
            snprintf(steps, sizeof(steps), "call:release %s:1 %s:0", order[b],
                order[a]);
            snprintf(wanted, sizeof(wanted),
                worst ? "B0 B1 =%s@%d" : "B0 B1 =%s", order[worst],
                a > b ? 0 : 1);
            scene_begin(&several_machine, "");
            scene_play(steps);
            assert_string_equal(scene.trace, wanted);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_order_of_the_bytes),
        cmocka_unit_test(the_most_names),
        cmocka_unit_test(the_worst_result),
    };
    return cmocka_run_group_tests_name("several", tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* The ring keeps its order, and a node outside points to itself. */
#include "support/test.h"

#include "base/list.h"

struct item {
    int number;
    struct list node;
};

static int pop_number(struct list *head)
{
    struct list *node = list_pop(head);
    return node ? list_entry(node, struct item, node)->number : -1;
}

static void test_first_in_first_out(void **state)
{
    struct list head = LIST_INIT(head);
    struct item items[3];

    (void)state;
    assert_true(list_empty(&head));
    assert_null(list_pop(&head));
    for (int i = 0; i < 3; i++) {
        items[i].number = i;
        list_init(&items[i].node);
        list_append(&head, &items[i].node);
    }
    assert_false(list_empty(&head));
    for (int i = 0; i < 3; i++)
        assert_int_equal(pop_number(&head), i);
    assert_true(list_empty(&head));
}

static void test_remove_is_harmless_twice(void **state)
{
    struct list head;
    struct item a = {.number = 1}, b = {.number = 2}, c = {.number = 3};

    (void)state;
    list_init(&head);
    list_append(&head, &a.node);
    list_append(&head, &b.node);
    list_append(&head, &c.node);
    list_remove(&b.node);
    assert_true(list_empty(&b.node));
    list_remove(&b.node);
    list_append(&head, &b.node);
    assert_int_equal(pop_number(&head), 1);
    assert_int_equal(pop_number(&head), 3);
    assert_int_equal(pop_number(&head), 2);
    assert_int_equal(pop_number(&head), -1);
    assert_true(list_empty(&a.node));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_in_first_out),
        cmocka_unit_test(test_remove_is_harmless_twice),
    };
    return cmocka_run_group_tests_name("list", tests, NULL, NULL);
}

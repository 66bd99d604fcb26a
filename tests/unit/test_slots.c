/* SPDX-License-Identifier: MIT */
/*
 * The queue of replies to come: first in, first out, however it wraps around
 * and grows; each keeps its number, whatever comes and goes.
 */
#include "support/test.h"

#include "net/slots.h"
#include "support/alloc.h"

static void push(struct slots *s, size_t n)
{
    assert_true(slots_reserve(s, 1));
    slots_push(s, SLOT_REQUEST, NULL, n, n);
}

static void assert_numbers(
    const struct slots *s, const size_t *numbers, size_t count)
{
    assert_int_equal(s->count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(slots_at(s, i)->bytes, numbers[i]);
}

#define assert_slots(s, ...)                                                   \
    do {                                                                       \
        size_t wanted[] = {__VA_ARGS__};                                       \
        assert_numbers((s), wanted, sizeof(wanted) / sizeof(wanted[0]));       \
    } while (0)

static void they_leave_in_their_order(void **state)
{
    (void)state;
    struct slots s = {0};
    size_t in = 0, out = 0;

    /* Three in, two out: it wraps around and grows in all positions. */
    for (int i = 0; i < 200; i++) {
        push(&s, in++);
        push(&s, in++);
        push(&s, in++);
        assert_int_equal(slots_pop(&s).bytes, out++);
        assert_int_equal(slots_pop(&s).bytes, out++);
        assert_int_equal(s.room & (s.room - 1), 0);
        assert_true(s.count <= s.room);
    }
    while (s.count)
        assert_int_equal(slots_pop(&s).bytes, out++);
    assert_int_equal(out, in);
    slots_free(&s);
    assert_null(s.ring);
    assert_int_equal(s.count, 0);
}

static void a_slot_keeps_all_it_was_given(void **state)
{
    (void)state;
    struct slots s = {0};
    int owner;

    assert_true(slots_reserve(&s, 1));
    slots_push(&s, SLOT_KILL, &owner, 77, 5);
    struct slot slot = slots_pop(&s);
    assert_int_equal(slot.kind, SLOT_KILL);
    assert_ptr_equal(slot.owner, &owner);
    assert_int_equal(slot.sent_at, 77);
    assert_int_equal(slot.bytes, 5);
    slots_free(&s);
}

/* Slots 0 ... count - 1 in a ring that begins at "first". */
static struct slots ring_from(size_t first, size_t count)
{
    struct slots s = {0};
    for (size_t i = 0; i < first; i++) {
        push(&s, 99);
        slots_pop(&s);
    }
    for (size_t i = 0; i < count; i++)
        push(&s, i);
    return s;
}

static void numbers_never_change(void **state)
{
    (void)state;
    struct slots s = ring_from(11, 3);

    assert_int_equal(s.popped, 11);
    assert_int_equal(slots_end(&s), 14);
    assert_true(slots_reserve(&s, 100)); /* it moves */
    assert_int_equal(s.popped, 11);
    slots_pop(&s);
    assert_int_equal(s.popped, 12);
    assert_int_equal(slots_end(&s), 14);
    slots_clear(&s);
    assert_int_equal(s.count, 0);
    assert_int_equal(slots_end(&s), 0);
    slots_free(&s);
}

static void room_is_made_once(void **state)
{
    (void)state;
    struct slots s = {0};

    assert_true(slots_reserve(&s, 40));
    assert_true(s.room >= 40);
    unsigned long before = alloc_count();
    for (size_t i = 0; i < 40; i++)
        push(&s, i);
    assert_int_equal(alloc_count(), before);
    slots_free(&s);
}

static void no_memory_changes_nothing(void **state)
{
    (void)state;
    if (!alloc_counts())
        test_skip("a sanitizer has the allocator");
    struct slots s = ring_from(11, 16);

    alloc_fail_at(1);
    bool more = slots_reserve(&s, 1);
    assert_true(alloc_stop());
    assert_false(more);
    assert_slots(&s, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    push(&s, 16);
    assert_slots(&s, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
    slots_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_leave_in_their_order),
        cmocka_unit_test(a_slot_keeps_all_it_was_given),
        cmocka_unit_test(numbers_never_change),
        cmocka_unit_test(room_is_made_once),
        cmocka_unit_test(no_memory_changes_nothing),
    };
    return cmocka_run_group_tests_name("slots", tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Every entry is found under its key, whatever was put in, moved and removed
 * before, with memory and without; and buckets are short. */
#include "support/test.h"

#include "base/index.h"
#include "support/alloc.h"

#define MOST 4000

struct thing {
    struct index_entry entry;
    char key[24];
};

static struct thing things[MOST];
static struct index index_;
static size_t steps; /* entries that were looked at */

static struct thing *find(const char *key)
{
    struct list *bucket = index_bucket(&index_, slice_of(key));
    for (struct list *node = bucket->next; node != bucket; node = node->next) {
        struct thing *t = list_entry(node, struct thing, entry.node);
        steps++;
        if (strcmp(t->key, key) == 0)
            return t;
    }
    return NULL;
}

static void put(size_t i, unsigned generation)
{
    snprintf(things[i].key, sizeof(things[i].key), "%zu@%u", i, generation);
    index_put(&index_, &things[i].entry, slice_of(things[i].key));
}

static int set_up(void **state)
{
    (void)state;
    index_init(&index_);
    for (size_t i = 0; i < MOST; i++)
        index_entry_init(&things[i].entry);
    steps = 0;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    index_free(&index_);
    return 0;
}

#define index_test(function)                                                   \
    cmocka_unit_test_setup_teardown(function, set_up, tear_down)

static void assert_found(size_t count)
{
    assert_int_equal(index_.count, count);
    for (size_t i = 0; i < count; i++)
        assert_ptr_equal(find(things[i].key), &things[i]);
    assert_null(find("nothing"));
}

static void each_is_found_in_few_steps(void **state)
{
    (void)state;
    for (size_t i = 0; i < MOST; i++) {
        put(i, 0);
        assert_int_equal(index_.count, i + 1);
    }
    assert_found(MOST);
    assert_true(steps < 3 * MOST);
    for (size_t i = 0; i < MOST; i++)
        put(i, 1); /* under another key */
    assert_null(find("7@0"));
    assert_found(MOST);
}

static void none_is_left(void **state)
{
    (void)state;
    for (size_t count = 1; count < 40; count++) {
        for (size_t i = 0; i < count; i++)
            put(i, 0);
        for (size_t i = count; i-- > 0;) {
            index_remove(&index_, &things[i].entry);
            index_remove(&index_, &things[i].entry); /* harmless */
            assert_found(i);
        }
        assert_int_equal(index_.size, 0);
    }
}

static void without_memory(void **state)
{
    (void)state;
    alloc_fail_from(1);
    for (size_t i = 0; i < 100; i++)
        put(i, 0);
    alloc_stop();
    assert_found(100);
    for (size_t i = 100; i < 200; i++)
        put(i, 0);
    assert_found(200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        index_test(each_is_found_in_few_steps),
        index_test(none_is_left),
        index_test(without_memory),
    };
    return cmocka_run_group_tests_name("index", tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * A step that is sent without memory: all of it goes out, or nothing of it.
 */
#ifndef NXLOCK_TESTS_UNIT_STRATEGY_STARVED_H
#define NXLOCK_TESTS_UNIT_STRATEGY_STARVED_H
#include "support/alloc.h"
#include "unit/strategy_rig.h"

/* Makes the exchange what the scene of that number is about to send; false when
 * there are no more of them. */
typedef bool begin_step(size_t number);

/* Each allocation of each scene's step fails in turn. */
static inline void all_or_nothing(begin_step *begin_it)
{
    if (!alloc_counts())
        test_skip("a sanitizer has the allocator");
    size_t number = 0;
    for (unsigned n = 1; begin_it(number); n++) {
        struct buf out = {0};
        assert_true(buf_append(&out, "before", 6));
        alloc_fail_at(n);
        unsigned due = exchange_encode(&x, &dialect, &out);
        bool failed = alloc_stop();
        size_t len = buf_len(&out);
        buf_free(&out);
        if (failed) {
            assert_int_equal(due, 0);
            assert_int_equal(len, 6);
            assert_null(dialect.in_transaction);
        } else {
            assert_true(due > 0);
            number++;
            n = 0;
        }
    }
    assert_true(number > 0);
}

#endif

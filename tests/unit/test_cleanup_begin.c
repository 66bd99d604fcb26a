/* SPDX-License-Identifier: MIT */
/*
 * What a cancelled BEGIN leaves to be cleaned up: what an acquire would; and
 * after a wait in line the lock, whether or not the request was sent.
 */
#include "support/test.h"

#include "core/cleanup.h"

static void as_an_acquire(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 128; bits++) {
        struct cancelled r = {.verb = VERB_ACQUIRE,
            .stage = (enum cancel_stage)(bits % 4),
            .undo = bits & 4,
            .writes = bits & 8,
            .never_sent = bits & 16,
            .unsure = bits & 32,
            .never_undo = bits & 64};
        struct cancellation acquire = cancel_request(&r);
        r.verb = VERB_BEGIN;
        struct cancellation begin = cancel_request(&r);
        assert_int_equal(begin.cause, acquire.cause);
        assert_int_equal(begin.changed_nothing, acquire.changed_nothing);
        assert_int_equal(begin.ends_use, acquire.ends_use);
    }
}

static void what_a_line_has_brought_is_given_back(void **state)
{
    static const struct cancelled rows[] = {
        {.stage = CANCEL_UNSENT},
        {.stage = CANCEL_SENT, .writes = true},
        {.stage = CANCEL_ENDED, .never_sent = true},
        {.stage = CANCEL_ENDED},
        {.stage = CANCEL_ENDED, .unsure = true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cancelled r = rows[i];
        r.verb = VERB_BEGIN;
        r.may_hold = r.undo = true;
        struct cancellation left = cancel_request(&r);
        assert_int_equal(left.cause,
            r.stage == CANCEL_SENT ? CLEANUP_ACQUIRE_SENT : CLEANUP_TOKEN);
        assert_false(left.changed_nothing);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_an_acquire),
        cmocka_unit_test(what_a_line_has_brought_is_given_back),
    };
    return cmocka_run_group_tests_name("cleanup of begin", tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * What cancelling a request leaves to be cleaned up. How a cleanup goes on is
 * in unit/scenes/cleanup.scenes.
 */
#include "support/test.h"

#include "base/deadline.h"
#include "core/cleanup.h"

#define T0 (UINT64_C(1000) * NS_PER_S)

static void assert_leaves(
    const struct cancelled *r, enum cleanup_cause cause, bool changed_nothing)
{
    struct cancellation left = cancel_request(r);
    assert_int_equal(left.cause, cause);
    assert_int_equal(left.changed_nothing, changed_nothing);
    assert_int_equal(left.ends_use, r->undo);
}

/* Every stage of an acquire, a STAY and a release. A JOIN and a BEGIN leave
 * what an acquire does. */
static void what_a_cancelled_request_leaves(void **state)
{
    (void)state;
    static const struct {
        struct cancelled request;
        enum cleanup_cause cause;
        bool changed_nothing;
    } rows[] = {
#define ACQUIRE .verb = VERB_ACQUIRE
#define RELEASE .verb = VERB_RELEASE
#define STAY .verb = VERB_STAY
        {{ACQUIRE, .stage = CANCEL_UNSENT, .undo = true}, CLEANUP_NONE, true},
        {{ACQUIRE, .stage = CANCEL_UNSENT}, CLEANUP_NONE, true},
        {{ACQUIRE, .stage = CANCEL_SENT, .undo = true, .writes = true},
            CLEANUP_ACQUIRE_SENT, false},
        {{ACQUIRE, .stage = CANCEL_SENT, .undo = true}, CLEANUP_TOKEN, false},
        {{ACQUIRE, .stage = CANCEL_SENT, .writes = true},
            CLEANUP_ACQUIRE_IN_USE, false},
        {{ACQUIRE, .stage = CANCEL_SENT}, CLEANUP_NONE, false},
        {{ACQUIRE, .stage = CANCEL_LOST}, CLEANUP_ACQUIRE_LOST, false},
        {{ACQUIRE, .stage = CANCEL_ENDED, .undo = true}, CLEANUP_TOKEN, true},
        {{ACQUIRE, .stage = CANCEL_ENDED, .undo = true, .unsure = true},
            CLEANUP_TOKEN, false},
        {{ACQUIRE, .stage = CANCEL_ENDED, .undo = true, .never_sent = true},
            CLEANUP_NONE, true},
        {{ACQUIRE, .stage = CANCEL_ENDED}, CLEANUP_NONE, false},
        {{ACQUIRE, .stage = CANCEL_ENDED, .never_sent = true}, CLEANUP_NONE,
            true},
        {{RELEASE, .stage = CANCEL_UNSENT, .undo = true}, CLEANUP_TOKEN, true},
        {{RELEASE, .stage = CANCEL_UNSENT}, CLEANUP_NONE, true},
        {{RELEASE, .stage = CANCEL_SENT, .undo = true, .compares = true},
            CLEANUP_RELEASE_SENT, false},
        {{RELEASE, .stage = CANCEL_SENT, .undo = true}, CLEANUP_TOKEN, false},
        {{RELEASE, .stage = CANCEL_SENT}, CLEANUP_NONE, false},
        {{RELEASE, .stage = CANCEL_LOST}, CLEANUP_NONE, false},
        {{RELEASE, .stage = CANCEL_ENDED, .undo = true}, CLEANUP_TOKEN, true},
        {{RELEASE, .stage = CANCEL_ENDED, .undo = true, .unsure = true},
            CLEANUP_TOKEN, false},
        {{RELEASE, .stage = CANCEL_ENDED, .undo = true, .never_sent = true},
            CLEANUP_TOKEN, true},
        {{RELEASE, .stage = CANCEL_ENDED}, CLEANUP_NONE, false},
        /* Its token joined before, so it matters little what it did itself. */
        {{STAY, .stage = CANCEL_UNSENT, .undo = true}, CLEANUP_TOKEN, true},
        {{STAY, .stage = CANCEL_UNSENT}, CLEANUP_NONE, true},
        {{STAY, .stage = CANCEL_SENT, .undo = true}, CLEANUP_TOKEN, false},
        {{STAY, .stage = CANCEL_SENT}, CLEANUP_NONE, false},
        {{STAY, .stage = CANCEL_LOST, .undo = true}, CLEANUP_NONE, false},
        {{STAY, .stage = CANCEL_LOST}, CLEANUP_NONE, false},
        {{STAY, .stage = CANCEL_ENDED, .undo = true}, CLEANUP_TOKEN, true},
        {{STAY, .stage = CANCEL_ENDED, .undo = true, .unsure = true},
            CLEANUP_TOKEN, false},
        {{STAY, .stage = CANCEL_ENDED, .undo = true, .never_sent = true},
            CLEANUP_TOKEN, true},
        {{STAY, .stage = CANCEL_ENDED}, CLEANUP_NONE, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cancelled r = rows[i].request;
        assert_leaves(&r, rows[i].cause, rows[i].changed_nothing);
        if (r.verb == VERB_ACQUIRE) {
            r.verb = VERB_JOIN;
            assert_leaves(&r, rows[i].cause, rows[i].changed_nothing);
            r.verb = VERB_BEGIN;
            assert_leaves(&r, rows[i].cause, rows[i].changed_nothing);
        }
        r.never_undo = true;
        assert_int_equal(cancel_request(&r).cause, CLEANUP_NONE);
    }
}

/* Nothing else has set or may delete a key. */
static void other_verbs_leave_nothing(void **state)
{
    (void)state;
    for (unsigned verb = 0; verb < VERB_KINDS; verb++) {
        for (unsigned stage = CANCEL_UNSENT; stage <= CANCEL_ENDED; stage++) {
            struct cancelled r = {.verb = (enum verb_kind)verb,
                .stage = (enum cancel_stage)stage,
                .undo = true};
            if (!verb_may_grant(r.verb) && verb != VERB_RELEASE)
                assert_int_equal(cancel_request(&r).cause, CLEANUP_NONE);
        }
    }
}

/* One that was lost is cleaned up already; one that only waits for the answer
 * of its acquire would not delete. */
static void a_known_cleanup_is_enough_if_it_deletes(void **state)
{
    (void)state;
    struct cleanup c;
    struct cancelled r = {.verb = VERB_ACQUIRE,
        .stage = CANCEL_ENDED,
        .undo = true,
        .unsure = true,
        .cleanup = &c};
    cleanup_start(&c, CLEANUP_ACQUIRE_IN_USE, 3 * NS_PER_S, 0, T0);
    assert_int_equal(cancel_request(&r).cause, CLEANUP_TOKEN);
    cleanup_connection_lost(&c, 7, "run", T0);
    assert_int_equal(cancel_request(&r).cause, CLEANUP_NONE);
    assert_false(cancel_request(&r).changed_nothing);
}

/* After a wait in line a cancelled BEGIN leaves the lock, whether or not it was
 * sent. */
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
        cmocka_unit_test(what_a_line_has_brought_is_given_back),
        cmocka_unit_test(what_a_cancelled_request_leaves),
        cmocka_unit_test(other_verbs_leave_nothing),
        cmocka_unit_test(a_known_cleanup_is_enough_if_it_deletes),
    };
    return cmocka_run_group_tests_name("cleanup", tests, NULL, NULL);
}

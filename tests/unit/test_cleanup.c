/* SPDX-License-Identifier: MIT */
/*
 * What cancelling a request leaves to be cleaned up, and every way in which a
 * cleanup goes on: by its cause, by what happens to it, and by time.
 */
#include "support/test.h"

#include "base/deadline.h"
#include "core/cleanup.h"

#define T0 (UINT64_C(1000) * NS_PER_S)
#define TTL (UINT64_C(3) * NS_PER_S)
#define RUN_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define RUN_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define KILL CLEANUP_SEND_KILL
#define DELETE CLEANUP_SEND_DELETE

static struct cleanup c;

static void begin(enum cleanup_cause cause)
{
    cleanup_start(&c, cause, TTL, 0, T0);
}

static void lose(uint64_t now)
{
    cleanup_connection_lost(&c, 7, RUN_A, now);
}

static void deleted(enum outcome_kind kind, uint64_t now)
{
    struct outcome outcome = {.kind = kind};
    cleanup_delete_answered(&c, &outcome, now);
}

/* ------------------------------------------------ cancelling a request */

/* Every stage of an acquire, a STAY and a release. A JOIN is an acquire. */
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
        struct cancellation left = cancel_request(&r);
        assert_int_equal(left.cause, rows[i].cause);
        assert_int_equal(left.changed_nothing, rows[i].changed_nothing);
        assert_int_equal(left.ends_use, r.undo);
        if (r.verb == VERB_ACQUIRE) {
            r.verb = VERB_JOIN;
            left = cancel_request(&r);
            assert_int_equal(left.cause, rows[i].cause);
            assert_int_equal(left.changed_nothing, rows[i].changed_nothing);
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
    struct cancelled r = {.verb = VERB_ACQUIRE,
        .stage = CANCEL_ENDED,
        .undo = true,
        .unsure = true,
        .cleanup = &c};
    begin(CLEANUP_ACQUIRE_IN_USE);
    assert_int_equal(cancel_request(&r).cause, CLEANUP_TOKEN);
    lose(T0);
    assert_int_equal(cancel_request(&r).cause, CLEANUP_NONE);
    assert_false(cancel_request(&r).changed_nothing);
}

/* -------------------------------------------------- by cause, event and time
 */

enum event { SENT, NOT_MINE, MINE, REFUSED, LOST, GRANTED, BUSY, KILLED };

static void happens(enum event event, uint64_t now)
{
    switch (event) {
    case SENT:
        cleanup_next(&c, RUN_A, now);
        break;
    case NOT_MINE:
        deleted(OUTCOME_NOT_MINE, now);
        break;
    case MINE:
        deleted(OUTCOME_MINE, now);
        break;
    case REFUSED:
        deleted(OUTCOME_FAULT, now);
        break;
    case LOST:
        lose(now);
        break;
    case GRANTED:
    case BUSY:
        cleanup_acquire_answered(&c, event == BUSY, now);
        break;
    case KILLED:
        cleanup_kill_answered(&c, true, now);
        break;
    }
}

/* The events happen a millisecond after one another. */
static void each_way_of_each_cause(void **state)
{
    (void)state;
    static const struct {
        enum cleanup_cause cause;
        unsigned count;
        enum event events[5];
        enum cleanup_state state;
        uint64_t until_ms; /* after T0; 0: NEVER */
    } rows[] = {
        {CLEANUP_TOKEN, 0, {0}, CLEANUP_IDLE, 3000},
        {CLEANUP_TOKEN, 1, {SENT}, CLEANUP_DELETING, 3000},
        {CLEANUP_TOKEN, 2, {SENT, NOT_MINE}, CLEANUP_DONE, 3000},
        {CLEANUP_TOKEN, 2, {SENT, MINE}, CLEANUP_DONE, 3000},
        {CLEANUP_TOKEN, 2, {SENT, REFUSED}, CLEANUP_IDLE, 3000},
        {CLEANUP_TOKEN, 2, {SENT, LOST}, CLEANUP_IDLE, 3000},
        {CLEANUP_TOKEN, 4, {SENT, LOST, SENT, NOT_MINE}, CLEANUP_DONE, 3000},
        {CLEANUP_RELEASE_SENT, 0, {0}, CLEANUP_DELETING, 3000},
        {CLEANUP_RELEASE_SENT, 1, {NOT_MINE}, CLEANUP_DONE, 3000},
        {CLEANUP_RELEASE_SENT, 1, {REFUSED}, CLEANUP_IDLE, 3000},
        {CLEANUP_RELEASE_SENT, 1, {LOST}, CLEANUP_IDLE, 3000},
        {CLEANUP_ACQUIRE_SENT, 0, {0}, CLEANUP_IDLE, 0},
        {CLEANUP_ACQUIRE_SENT, 1, {SENT}, CLEANUP_DELETING, 0},
        {CLEANUP_ACQUIRE_SENT, 1, {BUSY}, CLEANUP_DONE, 0},
        {CLEANUP_ACQUIRE_SENT, 1, {GRANTED}, CLEANUP_IDLE, 3000},
        {CLEANUP_ACQUIRE_SENT, 2, {SENT, BUSY}, CLEANUP_DELETING, 1},
        {CLEANUP_ACQUIRE_SENT, 3, {SENT, BUSY, NOT_MINE}, CLEANUP_DONE, 1},
        {CLEANUP_ACQUIRE_SENT, 3, {SENT, BUSY, REFUSED}, CLEANUP_GIVEN_UP, 1},
        {CLEANUP_ACQUIRE_SENT, 3, {SENT, GRANTED, MINE}, CLEANUP_DONE, 3001},
        {CLEANUP_ACQUIRE_SENT, 3, {SENT, GRANTED, REFUSED}, CLEANUP_IDLE, 3001},
        {CLEANUP_ACQUIRE_SENT, 2, {SENT, NOT_MINE}, CLEANUP_DONE, 0},
        {CLEANUP_ACQUIRE_SENT, 2, {SENT, LOST}, CLEANUP_IDLE, 3001},
        {CLEANUP_ACQUIRE_SENT, 3, {SENT, LOST, SENT}, CLEANUP_KILL_DELETING,
            3001},
        {CLEANUP_ACQUIRE_SENT, 4, {SENT, LOST, SENT, KILLED}, CLEANUP_DELETING,
            3001},
        {CLEANUP_ACQUIRE_SENT, 5, {SENT, LOST, SENT, KILLED, NOT_MINE},
            CLEANUP_DONE, 3001},
        {CLEANUP_ACQUIRE_IN_USE, 0, {0}, CLEANUP_WATCHING, 0},
        {CLEANUP_ACQUIRE_IN_USE, 1, {GRANTED}, CLEANUP_DONE, 0},
        {CLEANUP_ACQUIRE_IN_USE, 1, {BUSY}, CLEANUP_DONE, 0},
        {CLEANUP_ACQUIRE_IN_USE, 1, {LOST}, CLEANUP_IDLE, 3000},
        {CLEANUP_ACQUIRE_IN_USE, 2, {LOST, SENT}, CLEANUP_KILLING, 3000},
        {CLEANUP_ACQUIRE_IN_USE, 3, {LOST, SENT, KILLED}, CLEANUP_DONE, 3000},
        {CLEANUP_ACQUIRE_IN_USE, 3, {LOST, SENT, LOST}, CLEANUP_IDLE, 3000},
        {CLEANUP_ACQUIRE_LOST, 1, {LOST}, CLEANUP_IDLE, 3000},
        {CLEANUP_ACQUIRE_LOST, 2, {LOST, SENT}, CLEANUP_KILLING, 3000},
        {CLEANUP_ACQUIRE_LOST, 3, {LOST, SENT, KILLED}, CLEANUP_DONE, 3000},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        begin(rows[i].cause);
        for (unsigned n = 0; n < rows[i].count; n++)
            happens(rows[i].events[n], T0 + n * NS_PER_MS);
        assert_int_equal(c.state, rows[i].state);
        uint64_t until =
            rows[i].until_ms ? T0 + rows[i].until_ms * NS_PER_MS : NEVER;
        assert_int_equal(c.until, until);
        if (c.state != CLEANUP_IDLE)
            continue;
        cleanup_tick(&c, until - 1);
        assert_int_equal(c.state, CLEANUP_IDLE);
        cleanup_tick(&c, until);
        assert_int_equal(c.state, CLEANUP_GIVEN_UP);
    }
}

/* Without CLIENT KILL a deletion proves only that it deleted something. */
static void elsewhere_only_a_deletion_is_proof(void **state)
{
    (void)state;
    uint64_t now = T0, interval = 20 * NS_PER_MS;
    begin(CLEANUP_ACQUIRE_SENT);
    lose(T0);
    for (; now + interval < T0 + TTL; interval *= 2) {
        assert_int_equal(cleanup_next(&c, RUN_B, now), DELETE);
        deleted(OUTCOME_NOT_MINE, now);
        assert_int_equal(c.state, CLEANUP_IDLE);
        interval = earlier(interval, NS_PER_S);
        assert_int_equal(c.next_try, now + interval);
        now = c.next_try;
    }
    assert_int_equal(cleanup_next(&c, "", now), DELETE);
    deleted(OUTCOME_MINE, now);
    assert_int_equal(c.state, CLEANUP_DONE);
}

/* Scripts are refused by now, and no other command takes it out of the line. */
static void in_line_only_a_deletion_is_proof(void **state)
{
    (void)state;
    struct outcome in_line = {.kind = OUTCOME_NOT_MINE, .unsure = true};
    uint64_t now = T0;
    begin(CLEANUP_TOKEN);
    while (now < T0 + TTL) {
        assert_int_equal(cleanup_next(&c, RUN_A, now), DELETE);
        cleanup_delete_answered(&c, &in_line, now);
        if (c.state == CLEANUP_DONE)
            break;
        assert_between(c.next_try - now, 20 * NS_PER_MS, NS_PER_S);
        now = c.next_try;
    }
    assert_true(now + NS_PER_S >= T0 + TTL);
    begin(CLEANUP_ACQUIRE_SENT);
    assert_int_equal(cleanup_next(&c, RUN_A, T0), DELETE);
    cleanup_delete_answered(&c, &in_line, T0);
    assert_int_equal(c.state, CLEANUP_IDLE);
    assert_int_equal(c.until, T0 + TTL);
}

/* ----------------------------------------------------------- what is sent */

static void kill_only_where_it_ends_the_old_connection(void **state)
{
    (void)state;
    begin(CLEANUP_ACQUIRE_SENT);
    assert_int_equal(cleanup_next(&c, RUN_A, T0), DELETE); /* by order */
    lose(T0);
    assert_int_equal(c.client_id, 7);
    assert_int_equal(cleanup_next(&c, RUN_B, T0), DELETE);
    assert_int_equal(cleanup_next(&c, "", T0), DELETE);
    assert_int_equal(cleanup_next(&c, RUN_A, T0), KILL | DELETE);
    cleanup_kill_answered(&c, false, T0); /* refused: once more */
    deleted(OUTCOME_NOT_MINE, T0);
    assert_int_equal(cleanup_next(&c, RUN_A, T0), KILL | DELETE);
    cleanup_kill_answered(&c, true, T0);
    cleanup_connection_lost(&c, 9, RUN_A, T0); /* the acquire was on 7 */
    assert_int_equal(c.client_id, 7);
    assert_int_equal(cleanup_next(&c, RUN_A, T0), DELETE);

    begin(CLEANUP_ACQUIRE_SENT);
    cleanup_connection_lost(&c, 0, RUN_A, T0); /* its id was not known */
    assert_int_equal(cleanup_next(&c, RUN_A, T0), DELETE);
}

/* In use it only ends the connection, or waits without waking anybody. */
static void in_use_nothing_is_deleted(void **state)
{
    (void)state;
    begin(CLEANUP_ACQUIRE_LOST);
    lose(T0);
    assert_int_equal(cleanup_next(&c, RUN_B, T0), 0);
    assert_int_equal(c.state, CLEANUP_IDLE);
    assert_int_equal(c.next_try, NEVER);
    assert_int_equal(cleanup_next(&c, RUN_A, T0), KILL);
    cleanup_kill_answered(&c, false, T0);
    assert_int_equal(c.state, CLEANUP_IDLE);
    assert_int_equal(c.next_try, NEVER);
    cleanup_not_in_use(&c, T0 + 10, T0 + 5);
    assert_int_equal(c.next_try, T0 + 5);
    assert_int_equal(cleanup_next(&c, RUN_A, T0 + 5), KILL | DELETE);
    cleanup_kill_answered(&c, false, T0 + 6);
    deleted(OUTCOME_NOT_MINE, T0 + 6);
    /* From not_after on an heir may rely on the token. */
    assert_int_equal(cleanup_next(&c, RUN_A, T0 + 10), KILL);
    cleanup_kill_answered(&c, true, T0 + 11);
    assert_int_equal(c.state, CLEANUP_DONE);
}

static void no_longer_in_use_while_it_kills(void **state)
{
    (void)state;
    begin(CLEANUP_ACQUIRE_LOST);
    lose(T0);
    assert_int_equal(cleanup_next(&c, RUN_A, T0), KILL);
    cleanup_not_in_use(&c, 0, T0 + 1);
    cleanup_kill_answered(&c, true, T0 + 2);
    assert_int_equal(c.state, CLEANUP_IDLE);
    assert_int_equal(c.next_try, T0 + 2);
    assert_int_equal(cleanup_next(&c, RUN_A, T0 + 2), DELETE);
}

static void a_release_ends_at_its_limit(void **state)
{
    (void)state;
    cleanup_start(&c, CLEANUP_TOKEN, TTL, T0 + 10, T0);
    assert_int_equal(c.until, T0 + 10);
    assert_int_equal(cleanup_next(&c, RUN_A, T0), DELETE);
    assert_false(cleanup_too_late(&c, T0 + 9));
    assert_true(cleanup_too_late(&c, T0 + 10));
    cleanup_withdrawn(&c, T0 + 10); /* it was still in the buffer */
    assert_int_equal(c.state, CLEANUP_IDLE);
    cleanup_tick(&c, T0 + 10);
    assert_int_equal(c.state, CLEANUP_GIVEN_UP);
}

/* CLIENT KILL has left, the deletion behind it is taken back. */
static void withdrawn_behind_a_kill(void **state)
{
    (void)state;
    begin(CLEANUP_ACQUIRE_SENT);
    lose(T0);
    c.not_after = T0 + 5;
    assert_int_equal(cleanup_next(&c, RUN_A, T0), KILL | DELETE);
    cleanup_withdrawn(&c, T0 + 5);
    assert_int_equal(c.state, CLEANUP_KILLING);
    cleanup_kill_answered(&c, true, T0 + 6);
    assert_int_equal(c.state, CLEANUP_DONE);
}

/* The first loss may have had any reason; the next ones it may have caused. */
static void lost_again_and_again_it_grows_rare(void **state)
{
    (void)state;
    uint64_t now = T0, interval = 20 * NS_PER_MS;
    begin(CLEANUP_ACQUIRE_SENT);
    lose(T0);
    assert_int_equal(c.next_try, T0);
    for (int i = 0; i < 8; i++) {
        cleanup_next(&c, RUN_A, now);
        lose(now); /* the kill's reply */
        lose(now); /* the deletion's */
        assert_int_equal(c.next_try, now + interval);
        now = c.next_try;
        interval = earlier(2 * interval, NS_PER_S);
    }
}

/* --------------------------------------------------------------- adoption */

static void what_an_adoption_cancels(void **state)
{
    (void)state;
    static const struct {
        enum cleanup_cause cause;
        unsigned count;
        enum event events[2];
        bool possible, kept_if_applied, kept_else;
    } rows[] = {
        {CLEANUP_TOKEN, 0, {0}, true, false, false},
        {CLEANUP_TOKEN, 1, {SENT}, false, false, false},
        {CLEANUP_TOKEN, 2, {SENT, REFUSED}, true, false, false},
        {CLEANUP_RELEASE_SENT, 0, {0}, false, false, false},
        {CLEANUP_ACQUIRE_SENT, 0, {0}, false, false, false},
        {CLEANUP_ACQUIRE_SENT, 1, {LOST}, true, false, true},
        {CLEANUP_ACQUIRE_SENT, 2, {LOST, SENT}, false, false, false},
        {CLEANUP_ACQUIRE_IN_USE, 0, {0}, true, true, true},
        {CLEANUP_ACQUIRE_LOST, 1, {LOST}, true, false, true},
        {CLEANUP_ACQUIRE_LOST, 2, {LOST, SENT}, true, true, true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (int applied = 0; applied <= 1; applied++) {
            begin(rows[i].cause);
            for (unsigned n = 0; n < rows[i].count; n++)
                happens(rows[i].events[n], T0);
            assert_int_equal(cleanup_can_cancel(&c), rows[i].possible);
            if (!rows[i].possible)
                continue;
            cleanup_cancel(&c, applied);
            bool kept = applied ? rows[i].kept_if_applied : rows[i].kept_else;
            assert_int_equal(cleanup_over(&c), !kept);
            assert_true(!kept || c.in_use);
        }
    }
}

/* A cancelled BEGIN leaves what an acquire would; and after a wait in line the
 * lock, whether or not the request was sent. */
static void a_begin_as_an_acquire(void **state)
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
        cmocka_unit_test(a_begin_as_an_acquire),
        cmocka_unit_test(what_a_line_has_brought_is_given_back),
        cmocka_unit_test(what_a_cancelled_request_leaves),
        cmocka_unit_test(other_verbs_leave_nothing),
        cmocka_unit_test(a_known_cleanup_is_enough_if_it_deletes),
        cmocka_unit_test(each_way_of_each_cause),
        cmocka_unit_test(elsewhere_only_a_deletion_is_proof),
        cmocka_unit_test(in_line_only_a_deletion_is_proof),
        cmocka_unit_test(kill_only_where_it_ends_the_old_connection),
        cmocka_unit_test(in_use_nothing_is_deleted),
        cmocka_unit_test(no_longer_in_use_while_it_kills),
        cmocka_unit_test(a_release_ends_at_its_limit),
        cmocka_unit_test(withdrawn_behind_a_kill),
        cmocka_unit_test(lost_again_and_again_it_grows_rare),
        cmocka_unit_test(what_an_adoption_cancels),
    };
    return cmocka_run_group_tests_name("cleanup", tests, NULL, NULL);
}

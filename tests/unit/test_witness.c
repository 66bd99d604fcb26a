/* SPDX-License-Identifier: MIT */
/*
 * Who says that a lock is busy has a witness: each way to wait, crossed with
 * what became of the last request, with how long the key could last, and with
 * the end of the wait.
 */
#include "support/test.h"

#include "core/life.h"
#include "unit/core_rig.h"

#define TIMEOUT (500 * MS)
#define WAIT (1000 * MS) /* longer than the timeout: the call ends then */

/* How it waits, and on how many servers. */
enum way { POLLS, POLLS_THREE, LINES_UP, BEGINS, BEGINS_IN_LINE, CONFIRMS };
enum { WAYS = CONFIRMS + 1 };
static const char *const ways[] = {"polling", "polling three servers",
    "in line", "begin", "begin in line", "begin, granted by the line"};

/* What becomes of the last request. UNSENT: nothing of it had left when the
 * wait ended. ASLEEP: there is none, because this process woke up too late.
 * READ_LATE: it woke up too late to read the answer in time. */
enum last { ANSWERED, SILENT, REFUSED, CUT, UNSENT, ASLEEP, READ_LATE };
enum { LASTS = READ_LATE + 1 };
static const char *const lasts[] = {
    "busy", "no answer", "refused", "cut", "not sent", "asleep", "read late"};

/* How long the key could last by then. */
enum left { LONG, OVER, NOT_SAID };
enum { LEFTS = NOT_SAID + 1 };
static const char *const lefts[] = {"long", "over", "not said"};

enum how { TRIES, EXPIRES, IS_CANCELLED };
enum { HOWS = IS_CANCELLED + 1 };
static const char *const hows[] = {"a try", "the wait is over", "cancelled"};

static struct life l;
static struct line line;
static struct messages messages;
static struct renewal renewal;
static struct peer peers[3];
static struct ballot ballots[3 * LIFE_BALLOTS];
static uint64_t now, sent_at;
static unsigned sent; /* servers that have not answered */
static bool in_line, unsent;

static void drain(void)
{
    struct action action;
    while (life_next(&l, &action, now)) {
        if (action.kind == ACTION_SEND) {
            sent |= 1U << action.server;
            sent_at = now;
        } else if (action.kind == ACTION_LINE && in_line) {
            life_line_up(&l, &line, &messages, now);
        } else if ((action.kind == ACTION_UNDO ||
                       action.kind == ACTION_ABANDON) &&
                   unsent) {
            life_withdrawn(&l, &action);
        }
    }
}

/* Everybody who was asked says it. */
static void say(struct outcome o)
{
    o.sent_at = sent_at;
    o.connection = 1;
    for (unsigned i = 0; i < l.terms.servers; i++) {
        if (sent & 1U << i && l.running) {
            sent &= ~(1U << i);
            life_outcome(&l, TRACK_CALL, i, &o, now);
            drain();
        }
    }
}

static struct outcome answer(enum last last, enum left left)
{
    static const int64_t left_ms[] = {60000, 3, LEFT_UNKNOWN};
    if (last == REFUSED)
        return refused(FAULT_RETRY);
    return last == CUT ? cut(sent_at) : busy(left_ms[left]);
}

static void begin(enum way way, uint64_t wait_ns)
{
    struct life_terms terms = {.servers = way == POLLS_THREE ? 3 : 1,
        .peers = peers,
        .ttl_ms = 10000,
        .max_ttl_ms = 60000,
        .drift_ppm = 10000,
        .max_hold_ns = NEVER,
        .timeout_ns = TIMEOUT,
        .retry_first_ns = 10 * MS,
        .retry_max_ns = 100 * MS};
    now = T0;
    in_line = way == LINES_UP || way >= BEGINS_IN_LINE;
    unsent = false;
    sent = 0;
    for (unsigned i = 0; i < 3; i++)
        peers[i] = (struct peer){PEER_UP, 0};
    messages = (struct messages){MESSAGES_UP, 1};
    line = (struct line){0};
    memset(ballots, 0, sizeof(ballots));
    l = (struct life){0};
    life_init(&l, &terms, ballots, &renewal);
    if (way >= BEGINS)
        life_begin(&l, wait_ns, 7, now);
    else
        life_acquire(&l, wait_ns, 7, now);
    drain();
}

/* Is no other request to follow what is under way? */
static bool is_last(void)
{
    return now + LAST_REQUEST_SLACK >= T0 + WAIT;
}

/* All are answered "busy", until the last request is under way. */
static void wait_for_the_last(enum way way, enum last last, enum left left)
{
    uint64_t enough = T0 + WAIT - 300 * MS;
    while (l.running && !(sent && is_last())) {
        if (sent) {
            now += MS / 4;
            say(answer(ANSWERED, left));
        } else if (last == ASLEEP && now > enough) {
            return;
        } else {
            now = later(now, l.wake);
            life_tick(&l, now);
            drain();
        }
    }
    if (way == CONFIRMS && l.running) { /* BEGIN, as the line has granted it */
        line_on_granted(&line, 1, now);
        drain();
        assert_false(life_in_line(&l));
    }
}

/* Until the call ends. */
static void wake_up(enum last last, enum left left)
{
    if (last == ASLEEP) /* in time for what lasts, else for nothing */
        now = T0 + WAIT + (left == LONG ? MS : 2 * TIMEOUT);
    while (l.running) {
        if (last == ANSWERED && sent) { /* after BEGIN it joins again */
            now += MS / 4;
            say(answer(last, left));
            continue;
        }
        now = later(now, l.wake);
        assert_true(now != NEVER);
        life_tick(&l, now);
        drain();
    }
}

static enum life_result result_of(
    enum way way, enum last last, enum left left, enum how how)
{
    begin(way, how == TRIES ? 0 : WAIT);
    if (how != TRIES)
        wait_for_the_last(way, last, left);
    assert_true(l.running);
    unsent = last == UNSENT;
    if (how == IS_CANCELLED) {
        life_cancel(&l);
        drain();
    } else if (last == READ_LATE) {
        now = T0 + WAIT + 2 * TIMEOUT;
        say(answer(ANSWERED, left));
    } else if (last == ANSWERED || last == REFUSED || last == CUT) {
        now += MS / 4;
        say(answer(last, left));
    }
    wake_up(last, left);
    return l.result;
}

static enum life_result wanted(
    enum way way, enum last last, enum left left, enum how how)
{
    bool stays = how != TRIES && (way == LINES_UP || way >= BEGINS_IN_LINE);
    if (how == IS_CANCELLED)
        return LIFE_CANCELLED;
    switch (last) {
    case ANSWERED:
        return LIFE_BUSY;
    case SILENT:
    case CUT:
        return LIFE_UNKNOWN;
    case REFUSED: /* a token in line may be granted all the same */
        return stays ? LIFE_UNKNOWN : LIFE_FAULT;
    case UNSENT:
        if (stays)
            return LIFE_UNKNOWN;
        return how == TRIES || left == OVER ? LIFE_FAULT : LIFE_BUSY;
    case READ_LATE:
        /* BEGIN was refused, so the line's grant is gone: it waits nowhere. */
        stays = stays && way != CONFIRMS;
        /* fall through */
    case ASLEEP:
        if (left == LONG)
            return LIFE_BUSY;
        return stays ? LIFE_UNKNOWN : LIFE_FAULT;
    }
    return LIFE_OK;
}

static bool cell(enum way way, enum last last, enum left left, enum how how)
{
    bool there_is_none =
        (last == ASLEEP && (how == TRIES || way == CONFIRMS)) ||
        (way == CONFIRMS && how == TRIES);
    if (there_is_none)
        return true;
    enum life_result got = result_of(way, last, left, how);
    if (got == wanted(way, last, left, how))
        return true;
    print_error("%s, %s, left %s, %s: %d instead of %d\n", ways[way],
        lasts[last], lefts[left], hows[how], (int)got,
        (int)wanted(way, last, left, how));
    return false;
}

static void each_end_of_each_wait(void **state)
{
    (void)state;
    unsigned wrong = 0;
    for (unsigned way = 0; way < WAYS; way++)
        for (unsigned last = 0; last < LASTS; last++)
            for (unsigned left = 0; left < LEFTS; left++)
                for (unsigned how = 0; how < HOWS; how++)
                    wrong += !cell((enum way)way, (enum last)last,
                        (enum left)left, (enum how)how);
    assert_int_equal(wrong, 0);
}

static void the_decision(void **state)
{
    static const struct {
        struct witness witness;
        enum verdict verdict;
    } rows[] = {
        {{.busy_until = T0}, VERDICT_NO},
        {{.busy_until = T0 - 1}, VERDICT_FAULT},
        {{0}, VERDICT_FAULT},
        {{.line_may_have_granted = true, .busy_until = T0}, VERDICT_NO},
        {{.line_may_have_granted = true, .busy_until = T0 - 1},
            VERDICT_UNKNOWN},
        {{.line_may_have_granted = true}, VERDICT_UNKNOWN},
        {{.unanswered = true, .busy_until = NEVER}, VERDICT_UNKNOWN},
        {{.unanswered = true,
             .line_may_have_granted = true,
             .busy_until = NEVER},
            VERDICT_UNKNOWN},
        {{.unanswered = true}, VERDICT_UNKNOWN},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        assert_int_equal(
            witness_verdict(&rows[i].witness, T0), rows[i].verdict);
    assert_int_equal(busy_until(T0, 3, TIMEOUT), T0 + 3 * MS);
    assert_int_equal(busy_until(T0, 0, TIMEOUT), T0);
    assert_int_equal(busy_until(T0, LEFT_UNKNOWN, TIMEOUT), T0 + TIMEOUT);
    assert_true(busy_until(T0, LEFT_FOREVER, TIMEOUT) == NEVER);
    assert_true(busy_until(T0, INT64_MAX, TIMEOUT) == NEVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_decision),
        cmocka_unit_test(each_end_of_each_wait),
    };
    return cmocka_run_group_tests_name("witness", tests, NULL, NULL);
}

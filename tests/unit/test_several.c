/* SPDX-License-Identifier: MIT */
/*
 * Several names by one handle: which member begins, when all is given back and
 * begun again, and the result of the whole. A step of a table is what comes in,
 * and the actions that follow: "T" a token, "B0" member 0 begins, "b0" early,
 * "C0" its call is cancelled, "R0" its key is removed, "L0" its lease ends and
 * the key stays, "S" all are granted. At the end "=" and the result, if the
 * call is over.
 */
#include "support/test.h"

#include "core/several.h"

#include <stdio.h>

#define MS NS_PER_MS
#define T0 (UINT64_C(5000) * MS)
#define WORDS_MAX 128

static struct several s;
static uint64_t now;
static bool asks_early;

static const char *actions(void)
{
    static char words[WORDS_MAX];
    struct several_action action;
    size_t len = 0;
    words[0] = '\0';
    while (several_next(&s, &action, now)) {
        assert_true(len + 5 < WORDS_MAX);
        char letter = "TBCRLS"[action.kind];
        if (letter == 'B' && action.early)
            letter = 'b';
        bool alone = letter == 'T' || letter == 'S';
        len += (size_t)snprintf(words + len, WORDS_MAX - len,
            alone ? "%s%c" : "%s%c%u", len ? " " : "", letter, action.member);
        if (letter == 'S') /* several_settled() comes first */
            return words;
    }
    if (!s.running)
        snprintf(words + len, WORDS_MAX - len, "%s=%d", len ? " " : "",
            (int)s.result);
    return words;
}

static void over(unsigned member, enum life_result result)
{
    struct several_end end = {.result = result};
    several_over(&s, member, &end, now);
}

static void spoilt(unsigned member)
{
    struct several_end end = {.result = LIFE_FAULT, .token_is_used = true};
    several_over(&s, member, &end, now);
}

#define expect(words) assert_string_equal(actions(), words)
#define OK "=0"
#define BUSY "=1"
#define LOST "=6"
#define UNKNOWN "=7"
#define FAULT "=8"
#define CANCELLED "=9"

static void acquire(unsigned count, uint64_t wait_ns)
{
    struct backoff backoff;
    backoff_init(&backoff, 10 * MS, 100 * MS, 1);
    now = T0;
    several_init(&s, count);
    several_acquire(&s, wait_ns, 500 * MS, asks_early, &backoff, now);
    expect(asks_early ? "T B0 b1 b2" : "T B0");
}

static void the_results(void **state)
{
    char text[8];
    (void)state;
    static const struct {
        enum life_result result;
        const char *text;
    } rows[] = {{LIFE_OK, OK}, {LIFE_BUSY, BUSY}, {LIFE_LOST, LOST},
        {LIFE_UNKNOWN, UNKNOWN}, {LIFE_FAULT, FAULT},
        {LIFE_CANCELLED, CANCELLED}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        snprintf(text, sizeof(text), "=%d", (int)rows[i].result);
        assert_string_equal(text, rows[i].text);
    }
}

/* ---------------------------------------------------------------- in order */

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

static void one_after_the_other(void **state)
{
    (void)state;
    acquire(3, 0);
    assert_int_equal(s.wait_until, T0);
    assert_int_equal(s.end, T0 + 500 * MS);
    over(0, LIFE_OK);
    expect("B1");
    over(1, LIFE_OK);
    expect("B2");
    over(2, LIFE_OK);
    expect("S");
    several_settled(&s, true, now);
    expect(OK);
    assert_int_equal(s.attempts, 1);
    assert_int_equal(s.member, 3);
    assert_int_equal(several_wake(&s), NEVER);
}

static void the_most_names(void **state)
{
    char words[8];
    (void)state;
    acquire(SEVERAL_MAX, 0);
    for (unsigned i = 1; i < SEVERAL_MAX; i++) {
        over(i - 1, LIFE_OK);
        snprintf(words, sizeof(words), "B%u", i);
        expect(words);
    }
    over(SEVERAL_MAX - 1, LIFE_OK);
    expect("S");
    several_settled(&s, true, now);
    expect(OK);
    several_call(&s, CALL_RELEASE);
    unsigned begun = 0;
    struct several_action action;
    while (several_next(&s, &action, now)) {
        assert_int_equal(action.kind, SEVERAL_BEGIN);
        assert_int_equal(action.member, begun++);
    }
    assert_int_equal(begun, SEVERAL_MAX);
}

/* What ends the whole, with each member: those before it are given back. */
static void one_fails(void **state)
{
    static const enum life_result results[] = {
        LIFE_BUSY, LIFE_LOST, LIFE_UNKNOWN, LIFE_FAULT, LIFE_CANCELLED};
    static const char *const given_back[] = {"", "R0 ", "R0 R1 "};
    (void)state;
    for (unsigned at = 0; at < 3; at++) {
        for (size_t r = 0; r < sizeof(results) / sizeof(results[0]); r++) {
            char words[32];
            struct several_end end = {
                .result = results[r], .fault = FAULT_DENIED};
            acquire(3, NEVER);
            for (unsigned i = 0; i < at; i++) {
                over(i, LIFE_OK);
                actions();
            }
            several_over(&s, at, &end, now);
            snprintf(
                words, sizeof(words), "%s=%d", given_back[at], (int)results[r]);
            expect(words);
            assert_int_equal(s.member, at);
            assert_int_equal(s.fault, FAULT_DENIED);
        }
    }
}

/* -------------------------------------------------------------- once again */

static void a_token_that_is_used(void **state)
{
    (void)state;
    acquire(3, NEVER);
    over(0, LIFE_OK);
    expect("B1");
    spoilt(1);
    expect("R0 T B0"); /* the second attempt begins at once */
    over(0, LIFE_OK);
    expect("B1");
    over(1, LIFE_OK);
    expect("B2");
    spoilt(2);
    expect("R0 R1"); /* the third one after a delay */
    assert_int_equal(s.attempts, 2);
    uint64_t wake = several_wake(&s);
    assert_in_range(wake - now, 5 * MS, 10 * MS);
    now = wake - 1;
    expect("");
    now = wake;
    expect("T B0");
    assert_int_equal(s.attempts, 3);
    assert_int_equal(several_wake(&s), NEVER);
}

static void not_after_the_wait(void **state)
{
    (void)state;
    acquire(2, 50 * MS);
    over(0, LIFE_OK);
    expect("B1");
    now = T0 + 50 * MS;
    spoilt(1);
    expect("R0 " BUSY);
    assert_int_equal(s.member, 2);
    acquire(2, 0);
    spoilt(0);
    expect(BUSY);
}

/* One that was granted is lost: the member that waits is cancelled first, even
 * if it is granted meanwhile. */
static void one_is_lost(void **state)
{
    static const enum life_result ends[] = {LIFE_CANCELLED, LIFE_OK};
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        acquire(3, NEVER);
        over(0, LIFE_OK);
        expect("B1");
        over(1, LIFE_OK);
        expect("B2");
        several_lost(&s, 0, now);
        expect("C2 R0 R1");
        several_lost(&s, 1, now); /* it is not held any longer */
        expect("");
        over(2, ends[i]);
        expect(i ? "R2 T B0" : "T B0");
    }
}

static void a_loss_that_does_not_matter(void **state)
{
    (void)state;
    acquire(2, NEVER);
    several_lost(&s, 1, now);
    expect("");
    over(0, LIFE_OK);
    expect("B1");
    over(1, LIFE_OK);
    expect("S");
    several_settled(&s, true, now);
    expect(OK);
    several_lost(&s, 1, now);
    expect(OK);
}

static void one_has_expired(void **state)
{
    (void)state;
    acquire(2, 50 * MS);
    over(0, LIFE_OK);
    expect("B1");
    over(1, LIFE_OK);
    expect("S");
    several_settled(&s, false, now);
    expect("R0 R1 T B0");
    over(0, LIFE_OK);
    expect("B1");
    now += 50 * MS;
    over(1, LIFE_OK);
    expect("S");
    several_settled(&s, false, now);
    expect("R0 R1 " LOST);
}

static void no_token(void **state)
{
    struct backoff backoff;
    struct several_action action;
    (void)state;
    backoff_init(&backoff, MS, MS, 1);
    several_init(&s, 2);
    several_acquire(&s, NEVER, MS, false, &backoff, T0);
    assert_true(several_next(&s, &action, T0));
    assert_int_equal(action.kind, SEVERAL_TOKEN);
    several_no_token(&s);
    expect(FAULT);
    assert_int_equal(s.fault, FAULT_SYSTEM);
}

/* -------------------------------------------------------------------- early */

static void all_are_free(void **state)
{
    (void)state;
    asks_early = true;
    acquire(3, NEVER);
    for (unsigned i = 0; i < 2; i++) {
        over(i, LIFE_OK);
        expect("");
    }
    over(2, LIFE_OK);
    expect("S");
    several_settled(&s, true, now);
    expect(OK);
    assert_int_equal(s.attempts, 1);
}

/* The second one is busy: it asks again, and waits; the third one asks when the
 * second has its name. */
static void one_is_busy(void **state)
{
    (void)state;
    asks_early = true;
    acquire(3, NEVER);
    over(0, LIFE_OK);
    expect("");
    over(1, LIFE_BUSY);
    expect("B1");
    over(2, LIFE_BUSY);
    expect("");
    over(1, LIFE_OK);
    expect("B2");
    over(2, LIFE_OK);
    expect("S");
    several_settled(&s, true, now);
    expect(OK);
}

/* The first one waits; when it has its name, all others ask at once. */
static void the_first_is_busy(void **state)
{
    (void)state;
    asks_early = true;
    acquire(3, NEVER);
    over(1, LIFE_BUSY);
    over(2, LIFE_FAULT);
    expect("");
    over(0, LIFE_OK);
    expect("B1 b2");
    over(1, LIFE_OK);
    over(2, LIFE_OK);
    expect("S");
    several_settled(&s, true, now);
    expect(OK);
    acquire(3, 0);
    over(0, LIFE_BUSY);
    expect("C1 C2");
    over(1, LIFE_BUSY);
    over(2, LIFE_OK);
    expect("R2 " BUSY);
}

/* The key of one that is unknown may have the token. */
static void an_early_one_is_unknown(void **state)
{
    (void)state;
    asks_early = true;
    acquire(3, NEVER);
    over(0, LIFE_OK);
    over(1, LIFE_UNKNOWN);
    expect("C2 R0");
    over(2, LIFE_BUSY);
    expect("T B0 b1 b2");
    acquire(3, 0);
    over(0, LIFE_OK);
    over(1, LIFE_UNKNOWN);
    expect("C2 R0");
    over(2, LIFE_BUSY);
    expect(UNKNOWN);
}

static void early_ones_are_cancelled(void **state)
{
    (void)state;
    asks_early = true;
    acquire(3, NEVER);
    over(0, LIFE_OK);
    several_cancel(&s);
    expect("C1 C2");
    over(1, LIFE_BUSY);
    expect("C2 R0");
    over(2, LIFE_CANCELLED);
    expect(CANCELLED);
}

static int in_turn(void **state)
{
    (void)state;
    asks_early = false;
    return 0;
}

/* ----------------------------------------------------------------- cancelled
 */

static void cancelled_while_one_waits(void **state)
{
    (void)state;
    several_init(&s, 2);
    several_cancel(&s);
    expect(OK);
    acquire(3, NEVER);
    over(0, LIFE_OK);
    expect("B1");
    several_cancel(&s);
    expect("C1");
    over(1, LIFE_CANCELLED);
    expect("R0 " CANCELLED);
    /* It was granted before it could be cancelled: */
    acquire(3, NEVER);
    over(0, LIFE_OK);
    expect("B1");
    several_cancel(&s);
    expect("C1");
    over(1, LIFE_OK);
    expect("R0 R1 " CANCELLED);
    /* and as the last one, so the call is. */
    acquire(2, NEVER);
    over(0, LIFE_OK);
    expect("B1");
    several_cancel(&s);
    expect("C1");
    over(1, LIFE_OK);
    expect("S");
    several_settled(&s, true, now);
    expect(OK);
}

static void cancelled_before_the_next_attempt(void **state)
{
    (void)state;
    acquire(2, NEVER);
    spoilt(0);
    expect("T B0");
    several_cancel(&s);
    expect("C0");
    spoilt(0);
    expect(CANCELLED);
    acquire(2, NEVER);
    spoilt(0);
    expect("T B0");
    spoilt(0);
    expect("");
    several_cancel(&s);
    expect(CANCELLED);
    assert_int_equal(several_wake(&s), NEVER);
}

/* ------------------------------------------------------------ all at once */

/* The result of the whole, whichever member has it. */
static void the_worst_result(void **state)
{
    static const enum life_result order[] = {
        LIFE_OK, LIFE_CANCELLED, LIFE_FAULT, LIFE_UNKNOWN, LIFE_LOST};
    (void)state;
    for (unsigned a = 0; a < 5; a++) {
        for (unsigned b = 0; b < 5; b++) {
            char words[8];
            unsigned worst = a > b ? a : b;
            several_init(&s, 2);
            several_call(&s, CALL_RELEASE);
            expect("B0 B1");
            over(1, order[b]);
            expect("");
            over(0, order[a]);
            snprintf(words, sizeof(words), "=%d", (int)order[worst]);
            expect(words);
            assert_int_equal(s.member, worst == 0 ? 2 : a > b ? 0 : 1);
        }
    }
}

static void an_adoption(void **state)
{
    (void)state;
    several_init(&s, 2);
    several_call(&s, CALL_ADOPT);
    expect("B0 B1");
    over(0, LIFE_OK);
    over(1, LIFE_OK);
    expect("S");
    several_settled(&s, true, now);
    expect(OK);
    several_call(&s, CALL_ADOPT);
    expect("B0 B1");
    over(0, LIFE_OK);
    over(1, LIFE_LOST);
    expect("L0 " LOST); /* it belongs to another handle */
    several_call(&s, CALL_ADOPT);
    expect("B0 B1");
    over(0, LIFE_OK);
    over(1, LIFE_OK);
    expect("S");
    several_settled(&s, false, now);
    expect("L0 L1 " LOST);
}

static void an_extension(void **state)
{
    (void)state;
    several_init(&s, 2);
    several_call(&s, CALL_EXTEND);
    expect("B0 B1");
    over(0, LIFE_OK);
    over(1, LIFE_UNKNOWN);
    expect(UNKNOWN); /* what is held stays so */
    several_call(&s, CALL_EXTEND);
    expect("B0 B1");
    several_cancel(&s);
    expect("C0 C1");
    over(0, LIFE_CANCELLED);
    over(1, LIFE_CANCELLED);
    expect(CANCELLED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_results),
        cmocka_unit_test(the_order_of_the_bytes),
        cmocka_unit_test(one_after_the_other),
        cmocka_unit_test(the_most_names),
        cmocka_unit_test(one_fails),
        cmocka_unit_test(a_token_that_is_used),
        cmocka_unit_test(not_after_the_wait),
        cmocka_unit_test(one_is_lost),
        cmocka_unit_test(a_loss_that_does_not_matter),
        cmocka_unit_test(one_has_expired),
        cmocka_unit_test(no_token),
        cmocka_unit_test_teardown(all_are_free, in_turn),
        cmocka_unit_test_teardown(one_is_busy, in_turn),
        cmocka_unit_test_teardown(the_first_is_busy, in_turn),
        cmocka_unit_test_teardown(an_early_one_is_unknown, in_turn),
        cmocka_unit_test_teardown(early_ones_are_cancelled, in_turn),
        cmocka_unit_test(cancelled_while_one_waits),
        cmocka_unit_test(cancelled_before_the_next_attempt),
        cmocka_unit_test(the_worst_result),
        cmocka_unit_test(an_adoption),
        cmocka_unit_test(an_extension),
    };
    return cmocka_run_group_tests_name("several", tests, NULL, NULL);
}

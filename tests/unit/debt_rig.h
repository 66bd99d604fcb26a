/* SPDX-License-Identifier: MIT */
/*
 * One debt at a server without a socket: a connection that only collects
 * what is to go out, and answers from the test's mouth.
 */
#ifndef NXLOCK_TESTS_DEBT_RIG_H
#define NXLOCK_TESTS_DEBT_RIG_H

#include "support/test.h"

#include "base/deadline.h"
#include "net/debt.h"

#define START UINT64_C(5000000000)
#define TTL_MS 3000
#define TTL (TTL_MS * NS_PER_MS)
#define TOKEN "6f1d7c1e-0000-4000-8000-0123456789ab"
#define RUN_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define RUN_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static struct conn conn;
static struct ladder ladder; /* of it */
static struct facts facts;   /* of the connection there is now */
static struct debt *debt;

static inline int set_up(void **state)
{
    (void)state;
    conn = (struct conn){.fd = -1};
    ladder_begin(&ladder);
    facts = (struct facts){.client_id = 9};
    memcpy(facts.run_id, RUN_A, sizeof facts.run_id);
    debt = debt_new(slice_of("key"), 64);
    return debt == NULL;
}

static inline int tear_down(void **state)
{
    (void)state;
    debt_free(debt);
    debt = NULL;
    conn_free(&conn);
    return 0;
}

static inline void owe(bool may_come)
{
    debt_incur(debt, slice_of(TOKEN), TTL_MS, may_come, START);
}

static inline enum debt_answer told(struct reply reply, uint64_t now)
{
    return debt_answered(debt, &reply, &conn, &ladder, now);
}

static inline enum debt_answer told_words(
    enum reply_kind kind, const char *text, uint64_t now)
{
    return told(
        (struct reply){.kind = kind, .bytes = slice_of(text)}, now);
}

static inline enum debt_answer told_number(int64_t number, uint64_t now)
{
    return told(
        (struct reply){.kind = REPLY_INTEGER, .integer = number}, now);
}

/* Is it paid by that? */
static inline bool answered(int64_t number, uint64_t now)
{
    enum debt_answer answer = told_number(number, now);
    assert_int_not_equal(answer, DEBT_WAITS);
    return answer == DEBT_PAID;
}

static inline bool refused(uint64_t now)
{
    enum debt_answer answer = told_words(REPLY_ERROR, "ERR no", now);
    assert_int_not_equal(answer, DEBT_WAITS);
    return answer == DEBT_PAID;
}

/* What is to go out, as text (zero bytes do not occur). */
static inline const char *said(void)
{
    static char text[4096];
    assert_true(buf_len(&conn.out) < sizeof text);
    memcpy(text, buf_head(&conn.out), buf_len(&conn.out));
    text[buf_len(&conn.out)] = '\0';
    return text;
}

/* All of it has gone and been answered. */
static inline void gone(void)
{
    conn.slots.first = conn.slots.count = 0;
    buf_clear(&conn.out);
}

/* Sends what is due at now, and says what that is. */
static inline const char *sent(uint64_t now)
{
    gone();
    assert_true(debt_send(debt, &conn, &ladder, &facts, now));
    assert_int_equal(debt->state, DEBT_SENT);
    return said();
}

/* The debt's acquire went on a connection that is gone: client 7 of A. */
static inline void owe_after_a_cut(void)
{
    owe(true);
    debt->exact = true;
    debt_cut_off(debt, 7, RUN_A, START);
}

#define debt_test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif

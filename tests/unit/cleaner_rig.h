/* SPDX-License-Identifier: MIT */
/*
 * One cleaner at a server without a socket: a connection that only collects
 * what is to go out, and answers from the test's mouth.
 */
#ifndef NXLOCK_TESTS_CLEANER_RIG_H
#define NXLOCK_TESTS_CLEANER_RIG_H

#include "support/test.h"

#include "base/deadline.h"
#include "net/cleaner.h"

#define START UINT64_C(5000000000)
#define TTL_MS 3000
#define TTL (TTL_MS * NS_PER_MS)
#define TOKEN "6f1d7c1e-0000-4000-8000-0123456789ab"
#define RUN_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define RUN_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static struct conn conn;
static struct dialect dialect; /* of it */
static struct facts facts;     /* of the connection there is now */
static struct cleaner *cleaner;

static inline int set_up(void **state)
{
    (void)state;
    conn = (struct conn){.transport = TRANSPORT_CLOSED};
    dialect_begin(&dialect);
    facts = (struct facts){.client_id = 9};
    memcpy(facts.run_id, RUN_A, sizeof(facts.run_id));
    cleaner = cleaner_new(slice_of("key"), 64);
    return !cleaner;
}

static inline int tear_down(void **state)
{
    (void)state;
    cleaner_free(cleaner);
    cleaner = NULL;
    conn_free(&conn);
    return 0;
}

static inline void begin(enum cleanup_cause cause)
{
    struct verb of = {.token = slice_of(TOKEN), .ttl_ms = TTL_MS};
    cleaner_start(cleaner, cause, &of, START);
}

static inline enum cleanup_state told(struct reply reply, uint64_t now)
{
    cleaner_delete_answered(cleaner, &reply, &conn, &dialect, now);
    return cleaner->cleanup.state;
}

static inline enum cleanup_state told_words(
    enum reply_kind kind, const char *text, uint64_t now)
{
    return told((struct reply){.kind = kind, .bytes = slice_of(text)}, now);
}

static inline enum cleanup_state told_number(int64_t number, uint64_t now)
{
    return told((struct reply){.kind = REPLY_INTEGER, .integer = number}, now);
}

/* Is it over by that? */
static inline bool answered(int64_t number, uint64_t now)
{
    assert_int_not_equal(told_number(number, now), CLEANUP_DELETING);
    return cleanup_over(&cleaner->cleanup);
}

static inline bool refused(uint64_t now)
{
    enum cleanup_state state = told_words(REPLY_ERROR, "ERR no", now);
    assert_int_not_equal(state, CLEANUP_DELETING);
    return cleanup_over(&cleaner->cleanup);
}

/* Would it expire by then? */
static inline bool expired(uint64_t now)
{
    struct cleanup copy = cleaner->cleanup;
    cleanup_tick(&copy, now);
    return copy.state == CLEANUP_GIVEN_UP;
}

static inline void kill_answered(const struct reply *reply, uint64_t now)
{
    cleaner_kill_answered(cleaner, reply, now);
}

/* What is to go out, as text (zero bytes do not occur). */
static inline const char *said(void)
{
    static char text[16384];
    assert_true(buf_len(&conn.out) < sizeof(text));
    if (buf_len(&conn.out) > 0)
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
    assert_true(cleaner_send(cleaner, &conn, &dialect, &facts, now));
    assert_true(cleaner->cleanup.state == CLEANUP_DELETING ||
                cleaner->cleanup.state == CLEANUP_KILL_DELETING);
    return said();
}

/* Its acquire went on a connection that is gone: client 7 of A. */
static inline void begin_after_a_cut(void)
{
    begin(CLEANUP_ACQUIRE_SENT);
    cleanup_connection_lost(&cleaner->cleanup, 7, RUN_A, START);
}

#define cleaner_test(name)                                                     \
    cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif

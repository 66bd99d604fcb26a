/* SPDX-License-Identifier: MIT */
/*
 * Work that must be done once, on one real server: what is written there, what
 * came before a scene, and calls through either API. Only the client `own` is
 * used by the API of the scene; all others, as `theirs`, block.
 *
 * Invariant: no scene here can begin a second attempt without NXL_ONCE_RETRY as
 * long as there is one of which nobody said that nothing happened, and none
 * with it that is not told of the doubt (note_begun()).
 */
#ifndef NXLOCK_TESTS_ONCE_RIG_H
#define NXLOCK_TESTS_ONCE_RIG_H

#include "live/in_line_rig.h"
#include "live/renew_rig.h"

#define NAME "job"
#define RECORD_KEY "{job}:once"
#define FINGERPRINT "100EUR"
#define DAY_MS INT64_C(86400000)
#define KEPT_MS (30 * DAY_MS) /* a record, by default */
#define LINE_ROOM 1024

static nxl_client *own, *theirs; /* theirs: for calls that block */

/* ------------------------------------------------------- what is written */

/* The first line of the record at the server, as a test reads it. */
struct written {
    char state[8], token[256], fingerprint[160];
    unsigned long long fence;
    long long attempt, doubts, first, since, ended, late, keep, size;
    int code;
};

static inline bool once_line(char line[LINE_ROOM])
{
    redisReply *reply = redis_command(servers, "GET", RECORD_KEY, NULL);
    bool found = reply->type == REDIS_REPLY_STRING;
    if (found) {
        const char *end = memchr(reply->str, '\n', reply->len);
        assert_non_null(end);
        snprintf(line, LINE_ROOM, "%.*s", (int)(end - reply->str), reply->str);
    }
    freeReplyObject(reply);
    return found;
}

static inline bool once_written(struct written *w)
{
    char line[LINE_ROOM];
    int end = 0;
    memset(w, 0, sizeof(*w));
    if (!once_line(line))
        return false;
    int count = sscanf(line,
        "once1 %7s %255s %llu %lld %lld %lld %lld %lld %d %lld %lld %159s "
        "%lld%n",
        w->state, w->token, &w->fence, &w->attempt, &w->doubts, &w->first,
        &w->since, &w->ended, &w->code, &w->late, &w->keep, w->fingerprint,
        &w->size, &end);
    if (count != 13 || line[end] != '\0') {
        print_error("not a record: \"%s\"\n", line);
        fail();
    }
    return true;
}

static inline const char *once_state(void)
{
    static char state[8];
    struct written w;
    snprintf(state, sizeof(state), "%s", once_written(&w) ? w.state : "none");
    return state;
}

/* The record is as nxl_once_record() shows it, now. */
static inline void assert_shown(const nxl_lock *lock)
{
    static const char *const states[] = {
        "none", "begun", "doubt", "done", "failed"};
    nxl_record r = NXL_RECORD_INIT;
    struct written w;
    int rc = nxl_once_record(lock, &r);
    if (!once_written(&w)) {
        assert_int_equal(rc, NXL_FREE);
        assert_int_equal(r.state, NXL_ONCE_NONE);
        return;
    }
    assert_int_equal(rc, NXL_OK);
    assert_between(r.state, NXL_ONCE_BEGUN, NXL_ONCE_FAILED);
    assert_string_equal(states[r.state], w.state);
    assert_string_equal(r.token, w.token);
    assert_true(r.fence == w.fence);
    assert_int_equal(r.attempt, w.attempt);
    assert_int_equal(r.doubts, w.doubts);
    assert_int_equal(r.late, w.late);
    assert_int_equal(r.first_ms, w.first);
    assert_int_equal(r.since_ms, w.since);
    assert_int_equal(r.ended_ms, w.ended);
    assert_int_equal(r.code, w.code);
    assert_string_equal(
        r.fingerprint, w.fingerprint[0] == '=' ? w.fingerprint + 1 : "");
    if (w.size < 0) {
        assert_null(r.result);
        assert_true(r.result_length == NXL_ONCE_NOT_KEPT);
    } else {
        assert_int_equal(r.result_length, w.size);
    }
}

/* A record that says so ends after keep_ms; one that does not has no end. */
static inline void assert_ends(int64_t keep_ms)
{
    const char *state = once_state();
    int64_t left = redis_pttl(servers, RECORD_KEY);
    if (strcmp(state, "done") == 0 || strcmp(state, "failed") == 0)
        assert_between(left, keep_ms - 5000, keep_ms);
    else
        assert_int_equal(left, -1);
}

/* ---------------------------------------------------------------- calls */

static inline bool loops(const nxl_client *client)
{
    return by_loop && client == own;
}

#define WORK(...)                                                              \
    (nxl_once_options)                                                         \
    {                                                                          \
        .size = sizeof(nxl_once_options), __VA_ARGS__                          \
    }
#define BEGIN_ONCE(client, name, ...)                                          \
    (loops(client) ? nxl_once_##name##_start(__VA_ARGS__)                      \
                   : nxl_once_##name(__VA_ARGS__))

/* Attempts of which nobody has said that nothing happened. */
static int attempts_open;

static inline void note_begun(const nxl_lock *lock, int mode, int result)
{
    nxl_record r = NXL_RECORD_INIT;
    if (result != NXL_OK)
        return;
    assert_int_equal(nxl_once_record(lock, &r), NXL_OK);
    if (attempts_open > 0 && (mode != NXL_ONCE_RETRY || r.doubts == 0)) {
        print_error("HARM: %d attempts are open, and one more has begun\n",
            attempts_open);
        fail();
    }
    assert_int_equal(r.state, NXL_ONCE_BEGUN);
    assert_string_equal(r.token, nxl_lock_token(lock));
    assert_true(r.fence == nxl_lock_fence(lock) && r.fence > 0);
    attempts_open++;
}

static inline void note_told(const nxl_lock *lock, int verdict, int result)
{
    nxl_record r = NXL_RECORD_INIT;
    char line[LINE_ROOM];
    if (result != NXL_OK)
        return;
    int rc = nxl_once_record(lock, &r);
    assert_true(rc == NXL_OK || (rc == NXL_FREE && !once_line(line)));
    if (verdict == NXL_ONCE_FAILED && r.state == NXL_ONCE_FAILED)
        attempts_open = 0;
    if (verdict == NXL_ONCE_CLEAR)
        attempts_open = 1;
}

/* The record was removed, or its time is over. */
static inline void note_forgotten(void)
{
    attempts_open = 0;
}

static inline int once_begin(nxl_client *client, nxl_lock *lock,
    const nxl_once_options *options, int64_t wait_ms)
{
    int rc =
        result_of(client, BEGIN_ONCE(client, begin, lock, options, wait_ms));
    if (!options || options->mode != NXL_ONCE_LOOK)
        note_begun(lock, options ? options->mode : NXL_ONCE_HALT, rc);
    return rc;
}

static inline int once_tell(nxl_client *client, nxl_lock *lock, int verdict,
    int code, const char *result)
{
    int rc = result_of(client, BEGIN_ONCE(client, tell, lock, verdict, code,
                                   result, result ? strlen(result) : 0));
    note_told(lock, verdict, rc);
    return rc;
}

static inline int once_forget(nxl_client *client, nxl_lock *lock)
{
    int rc = result_of(client, BEGIN_ONCE(client, forget, lock));
    if (rc == NXL_OK)
        note_forgotten();
    return rc;
}

static inline int once_look(nxl_client *client, nxl_lock *lock)
{
    return once_begin(client, lock,
        &WORK(.mode = NXL_ONCE_LOOK, .fingerprint = FINGERPRINT), 0);
}

/* Release, extend, acquire: BEGIN() for the client's own API. */
#define CALL_OF(client, name, ...)                                             \
    result_of(client, loops(client) ? nxl_lock_##name##_start(__VA_ARGS__)     \
                                    : nxl_lock_##name(__VA_ARGS__))

/* ------------------------------------------------------ two clients, or more
 */

#define LAST_MS 60000 /* a lease that outlasts every scene */

static inline void open_clients(void)
{
    own = client_on(NO_GUARD);
    theirs = client_on(NO_GUARD);
}

static inline void close_clients(void)
{
    nxl_client_free(own);
    nxl_client_free(theirs);
}

/* Lets the client do what it owes: by its loop, or by a call that connects. */
static inline void settle(void)
{
    if (by_loop)
        turn(own, 5);
    else
        connect_most(own);
}

#define settles(condition) assert_eventually((settle(), (condition)))

/* What a begin finds now, in this mode. */
static inline void assert_found(int mode, int result)
{
    nxl_lock *lock = new_lock(theirs, NAME, LAST_MS);
    assert_result(
        once_begin(theirs, lock, &WORK(.mode = mode), 0), result, lock);
    nxl_lock_free(lock);
}

/* A begin that takes its time, in a thread or by the event loop. */
struct beginner {
    pthread_t thread;
    nxl_client *client;
    nxl_lock *lock;
    nxl_once_options options;
    int64_t wait_ms;
    int result;
};

static inline void *beginner_run(void *argument)
{
    struct beginner *b = argument;
    b->result = nxl_once_begin(b->lock, &b->options, b->wait_ms);
    return NULL;
}

/* b is static: see struct waiter. */
static inline void beginner_start(struct beginner *b, nxl_client *client,
    nxl_lock *lock, const nxl_once_options *options, int64_t wait_ms)
{
    *b = (struct beginner){.client = client,
        .lock = lock,
        .options = *options,
        .wait_ms = wait_ms};
    if (loops(client))
        assert_int_equal(
            nxl_once_begin_start(lock, options, wait_ms), NXL_PENDING);
    else
        assert_int_equal(pthread_create(&b->thread, NULL, beginner_run, b), 0);
}

static inline int beginner_end(struct beginner *b)
{
    if (loops(b->client))
        b->result = next_event(b->client).result;
    else
        assert_int_equal(pthread_join(b->thread, NULL), 0);
    note_begun(b->lock, b->options.mode, b->result);
    return b->result;
}

/* ------------------------------------------------------- what came before */

enum before {
    FRESH,
    BUSY,
    PROGRESS,
    DOUBT,
    UNSURE,
    DONE,
    FAILED,
    KEEP_OVER,
    BEFORES
};
static const char *const befores[] = {"fresh", "busy", "in progress",
    "in doubt", "unsure", "done", "failed", "done, keep over"};

/* Brings the record there with this lock, by calls that block. */
static inline void come_to(
    enum before before, nxl_lock *lock, const char *fingerprint)
{
    static const int verdicts[BEFORES] = {[UNSURE] = NXL_ONCE_DOUBT,
        [DONE] = NXL_ONCE_DONE,
        [FAILED] = NXL_ONCE_FAILED,
        [KEEP_OVER] = NXL_ONCE_DONE};
    nxl_once_options options = WORK(.fingerprint = fingerprint);
    if (before == FRESH)
        return;
    if (before == BUSY) {
        assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
        return;
    }
    assert_result(once_begin(NULL, lock, &options, 0), NXL_OK, lock);
    if (verdicts[before])
        assert_result(
            once_tell(NULL, lock, verdicts[before], 7, "before"), NXL_OK, lock);
    if (before == DOUBT)
        assert_result(nxl_lock_release(lock), NXL_OK, lock);
    if (before == KEEP_OVER) { /* now, and not in a day */
        redis_run(servers, "PEXPIRE", RECORD_KEY, "1", NULL);
        assert_eventually(!redis_exists(servers, RECORD_KEY));
        note_forgotten();
    }
}

static inline int once_clean(void **state)
{
    attempts_open = 0;
    return quorum_clean(state);
}

static inline int once_blocking(void **state)
{
    by_loop = false;
    return once_clean(state);
}

static inline int once_loop(void **state)
{
    by_loop = true;
    return once_clean(state);
}

/* As api_test(). */
#define once_blocking_test(function)                                           \
    cmocka_unit_test_setup_teardown(function, once_blocking, quorum_mend)
#define once_loop_test(function)                                               \
    {                                                                          \
#function " (event loop)", function, once_loop, quorum_mend, NULL      \
    }
#define once_test(function)                                                    \
    once_blocking_test(function), once_loop_test(function)

#endif

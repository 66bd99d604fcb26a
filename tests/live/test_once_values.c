/* SPDX-License-Identifier: MIT */
/*
 * Work that must be done once: results of all sizes and bytes, arguments that
 * are refused, servers that cannot keep a record, and strangers' keys where a
 * record would be. Through both APIs.
 *
 * Invariant: a result is returned as it was given, or not at all; and what is
 * refused changes nothing and says why.
 */
#include "live/once_rig.h"

#define MB (1024 * 1024)

static char bytes[MB + 1];

static nxl_lock *open_all(void)
{
    own = client_on(NO_GUARD);
    theirs = client_on(NO_GUARD);
    return new_lock(own, NAME, 30000);
}

static void close_all(nxl_lock *lock)
{
    end(lock, own);
    nxl_client_free(theirs);
}

static int tell_bytes(nxl_lock *lock, const void *result, size_t length)
{
    return result_of(
        own, BEGIN_ONCE(own, tell, lock, NXL_ONCE_DONE, 0, result, length));
}

/* ------------------------------------------------------------------ results */

static void fill_bytes(void)
{
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i ^ i >> 8 ^ i >> 16);
}

static const nxl_lock *told; /* its tell does not send the bytes back */

static void assert_result_is(const nxl_lock *lock, size_t length)
{
    nxl_record r = NXL_RECORD_INIT;
    assert_int_equal(nxl_once_record(lock, &r), NXL_OK);
    assert_int_equal(r.state, NXL_ONCE_DONE);
    assert_true(r.result_length == length);
    if (length == NXL_ONCE_NOT_KEPT) {
        assert_null(r.result);
    } else if (lock != told) {
        assert_non_null(r.result);
        assert_memory_equal(r.result, bytes, length);
    }
}

static void play_result(const void *result, size_t length)
{
    nxl_lock *lock = open_all(), *other = new_lock(theirs, NAME, 30000);
    once_clean(NULL);
    told = lock;
    assert_result(once_begin(own, lock, NULL, 0), NXL_OK, lock);
    assert_result(tell_bytes(lock, result, length), NXL_OK, lock);
    assert_result_is(lock, length);
    assert_result(once_begin(theirs, other, NULL, 0), NXL_DONE, other);
    assert_result_is(other, length);
    /* What is said again changes nothing, however short. */
    assert_result(tell_bytes(lock, "", 0), NXL_OK, lock);
    assert_result_is(lock, length);
    assert_result(once_begin(theirs, other, &WORK(.mode = NXL_ONCE_LOOK), 0),
        NXL_DONE, other);
    assert_result_is(other, length);
    nxl_lock_free(other);
    close_all(lock);
}

static void results_of_all_sizes(void **state)
{
    static const size_t sizes[] = {0, 1, 2, 256, 4095, 4096, 16383, 16384,
        65535, 65536, 65537, MB - 1, MB};
    fill_bytes();
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        play_result(bytes, sizes[i]);
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = "\n\r\0once1 done"[i % 13]; /* as if it were a line */
    for (size_t length = 1; length < 30; length++)
        play_result(bytes, length);
    play_result(NULL, NXL_ONCE_NOT_KEPT);
}

static void results_that_are_refused(void **state)
{
    nxl_lock *lock = open_all();
    char line[LINE_ROOM] = "", after[LINE_ROOM] = "";
    assert_result(once_begin(own, lock, NULL, 0), NXL_OK, lock);
    assert_true(once_line(line));
    assert_result(tell_bytes(lock, bytes, MB + 1), NXL_E_INVALID, lock);
    assert_contains(nxl_lock_errmsg(lock), "NXL_ONCE_NOT_KEPT");
    assert_result(
        tell_bytes(lock, bytes, NXL_ONCE_NOT_KEPT), NXL_E_INVALID, lock);
    assert_result(tell_bytes(lock, NULL, 5), NXL_E_INVALID, lock);
    assert_true(*nxl_lock_errmsg(lock));
    static const int wrong[] = {-1, NXL_ONCE_NONE, NXL_ONCE_BEGUN, 6};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_result(
            once_tell(own, lock, wrong[i], 0, NULL), NXL_E_INVALID, lock);
    assert_true(once_line(after));
    assert_string_equal(line, after);
    assert_true(nxl_lock_held(lock)); /* and it can still be told */
    assert_result(tell_bytes(lock, NULL, NXL_ONCE_NOT_KEPT), NXL_OK, lock);
    close_all(lock);
}

/* Codes are kept as they are, with every verdict. */
static void codes_are_kept_with_each_verdict(void **state)
{
    static const int all[] = {0, 1, -1, 255, INT32_MAX, INT32_MIN};
    for (int verdict = NXL_ONCE_DOUBT; verdict <= NXL_ONCE_FAILED; verdict++) {
        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
            nxl_record r = NXL_RECORD_INIT;
            nxl_lock *lock = open_all();
            once_clean(NULL);
            assert_result(once_begin(own, lock, NULL, 0), NXL_OK, lock);
            assert_result(
                once_tell(own, lock, verdict, all[i], NULL), NXL_OK, lock);
            assert_shown(lock);
            assert_int_equal(nxl_once_record(lock, &r), NXL_OK);
            assert_int_equal(r.code, all[i]);
            close_all(lock);
        }
    }
}

/* ---------------------------------------------------------------- arguments */

static int begin_with(nxl_lock *lock, nxl_once_options options, int64_t wait_ms)
{
    return once_begin(own, lock, &options, wait_ms);
}

static void options_that_are_refused(void **state)
{
    static char longest[129]; /* that is a fingerprint */
    nxl_lock *lock = open_all();
    struct {
        nxl_once_options options;
        int64_t wait_ms;
        const char *words;
    } wrong[] = {
        {WORK(.mode = 3), 0, "mode"},
        {WORK(.mode = NXL_ONCE_LOOK), 1, "LOOK"},
        {WORK(.mode = NXL_ONCE_HALT), -2, "wait_ms"},
        {{.size = 0}, 0, "size"},
    };
    memset(longest, 'x', sizeof(longest) - 1);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_result(begin_with(lock, wrong[i].options, wrong[i].wait_ms),
            NXL_E_INVALID, lock);
        assert_contains(nxl_lock_errmsg(lock), wrong[i].words);
        assert_false(nxl_lock_held(lock));
    }
    assert_int_equal(redis_run(servers, "DBSIZE", NULL), 0);
    assert_result(begin_with(lock,
                      WORK(.fingerprint = longest, .keep_ms = 365 * DAY_MS), 0),
        NXL_OK, lock);
    assert_shown(lock);
    assert_result(once_tell(own, lock, NXL_ONCE_DONE, 0, NULL), NXL_OK, lock);
    assert_ends(365 * DAY_MS);
    close_all(lock);
}

/* Nothing is to be told, shown or forgotten. */
static void verdicts_without_a_begin(void **state)
{
    nxl_lock *lock = open_all();
    nxl_record r = NXL_RECORD_INIT, none = {.size = 0};
    assert_int_equal(nxl_once_record(lock, &r), NXL_E_INVALID);
    assert_int_equal(nxl_once_record(lock, NULL), NXL_E_INVALID);
    assert_int_equal(nxl_once_record(NULL, &r), NXL_E_INVALID);
    assert_int_equal(nxl_once_begin(NULL, NULL, 0), NXL_E_INVALID);
    assert_int_equal(nxl_once_tell(NULL, 1, 0, NULL, 0), NXL_E_INVALID);
    assert_int_equal(nxl_once_forget(NULL), NXL_E_INVALID);
    assert_result(
        once_tell(own, lock, NXL_ONCE_DONE, 0, NULL), NXL_E_INVALID, lock);
    assert_result(once_forget(own, lock), NXL_E_INVALID, lock);
    assert_true(*nxl_lock_errmsg(lock));
    assert_result(once_look(own, lock), NXL_FREE, lock);
    assert_int_equal(nxl_once_record(lock, &r), NXL_FREE);
    assert_int_equal(r.state, NXL_ONCE_NONE);
    assert_string_equal(r.token, "");
    assert_int_equal(nxl_once_record(lock, &none), NXL_E_INVALID);
    assert_result(
        once_tell(own, lock, NXL_ONCE_DONE, 0, NULL), NXL_E_INVALID, lock);
    assert_result(once_forget(own, lock), NXL_E_INVALID, lock);
    assert_result(CALL(own, acquire, lock, 0), NXL_OK, lock);
    assert_result(once_begin(own, lock, NULL, 0), NXL_E_INVALID, lock);
    assert_result(once_look(own, lock), NXL_E_INVALID, lock);
    close_all(lock);
}

/* ------------------------------------------------------------------ servers */

static void assert_unsupported(const char *url, const char *words)
{
    once_clean(NULL);
    own = client_at(url);
    nxl_lock *lock = new_lock(own, NAME, 30000);
    assert_result(once_begin(own, lock, NULL, 0), NXL_E_UNSUPPORTED, lock);
    assert_contains(nxl_lock_errmsg(lock), words);
    assert_result(once_look(own, lock), NXL_E_UNSUPPORTED, lock);
    assert_false(nxl_lock_held(lock));
    assert_result(
        once_tell(own, lock, NXL_ONCE_DONE, 0, NULL), NXL_E_INVALID, lock);
    assert_int_equal(redis_run(servers, "DBSIZE", NULL), 0);
    end(lock, own);
}

static void servers_that_cannot_keep_records(void **state)
{
    char url[URLS_ROOM] = "";
    add_url(url, url_of(0), "scheme=timestamp");
    assert_unsupported(url, "timestamp");
    *url = '\0';
    add_url(url, url_of(0), NO_GUARD);
    add_url(url, "redis://127.0.0.1:1", NO_GUARD);
    add_url(url, "redis://127.0.0.1:2", NO_GUARD);
    assert_unsupported(url, "one server");
}

/* A user who may run no script, or may not touch the record. */
static void users_without_the_permissions(void **state)
{
    static const char *const rights[][2] = {
        {"+@all -eval -evalsha", "~*"},
        {"+@all", "~job"},
        {"+@all -time", "~*"},
        {"+@all -set", "~*"},
    };
    redis_needs_acl(servers);
    for (size_t i = 0; i < sizeof(rights) / sizeof(rights[0]); i++) {
        char command[256], url[256];
        once_clean(NULL);
        snprintf(command, sizeof(command),
            "ACL SETUSER u reset on >Zqx7 &* %s %s", rights[i][0],
            rights[i][1]);
        freeReplyObject(redis_commandf(servers, command));
        snprintf(url, sizeof(url), "%.*s?user=u&password=Zqx7",
            (int)strcspn(url_of(0), "?"), url_of(0));
        own = client_at(url);
        nxl_lock *lock = new_lock(own, NAME, 30000);
        int rc = once_begin(own, lock, NULL, 0);
        assert_true(rc == NXL_E_DENIED || rc == NXL_E_UNSUPPORTED);
        assert_true(*nxl_lock_errmsg(lock));
        assert_false(redis_exists(servers, RECORD_KEY));
        assert_false(redis_exists(servers, NAME));
        end(lock, own);
    }
    redis_run(servers, "ACL", "DELUSER", "u", NULL);
}

/* Something else at the record's key is neither read nor overwritten. */
static void record_key_that_holds_something_else(void **state)
{
    static const char *const all[][4] = {
        {"SET", RECORD_KEY, "hello", NULL},
        {"SET", RECORD_KEY, "", NULL},
        {"SET", RECORD_KEY, "once1 begun\n", NULL},
        {"SET", RECORD_KEY, "once2 done x 1 1 0 0 0 0 0 0 1000 - 0\n", NULL},
        {"SET", RECORD_KEY, "once1 done x 1 1 0 1 1 1 0 0 9000 - 3\nab", NULL},
        {"RPUSH", RECORD_KEY, "item", NULL},
        {"SADD", RECORD_KEY, "item", NULL},
    };
    enum { DAMAGED = 4 }; /* of these */
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        once_clean(NULL);
        nxl_lock *lock = open_all();
        redis_run(servers, all[i][0], all[i][1], all[i][2], NULL);
        for (int mode = 0; mode <= NXL_ONCE_LOOK; mode++) {
            nxl_once_options options = WORK(.mode = mode);
            assert_result(
                once_begin(own, lock, &options, 0), NXL_E_WRONG_TYPE, lock);
            assert_contains(
                nxl_lock_errmsg(lock), i == DAMAGED ? "damaged" : ":once");
        }
        assert_false(nxl_lock_held(lock));
        assert_false(redis_exists(servers, NAME));
        assert_int_equal(redis_run(servers, "DBSIZE", NULL), 1);
        redis_run(servers, "DEL", RECORD_KEY, NULL);
        /* Or it comes while the work goes on. */
        assert_result(once_begin(own, lock, NULL, 0), NXL_OK, lock);
        redis_run(servers, "DEL", RECORD_KEY, NULL);
        redis_run(servers, all[i][0], all[i][1], all[i][2], NULL);
        assert_result(once_tell(own, lock, NXL_ONCE_DONE, 0, NULL),
            NXL_E_WRONG_TYPE, lock);
        redis_run(servers, "DEL", RECORD_KEY, NULL);
        assert_result(
            once_tell(own, lock, NXL_ONCE_DONE, 0, NULL), NXL_OK, lock);
        assert_string_equal(once_state(), "done");
        close_all(lock);
    }
}

/* The record is lost with the server's memory: who began still has the last
 * word, as long as nobody else has begun. */
static void verdict_after_the_record_is_lost(void **state)
{
    static const int verdicts[] = {
        NXL_ONCE_DONE, NXL_ONCE_FAILED, NXL_ONCE_DOUBT};
    static const char *const states[] = {"done", "none", "doubt"};
    for (int i = 0; i < 3; i++) {
        nxl_lock *lock = open_all();
        assert_result(once_begin(own, lock, NULL, 0), NXL_OK, lock);
        redis_run(servers, "FLUSHALL", NULL);
        note_forgotten();
        assert_result(
            once_tell(own, lock, NXL_ONCE_CLEAR, 0, NULL), NXL_LOST, lock);
        assert_result(once_tell(own, lock, verdicts[i], 2, "x"), NXL_OK, lock);
        assert_shown(lock);
        assert_string_equal(once_state(), states[i]);
        if (i == 0)
            assert_ends(KEPT_MS);
        close_all(lock);
        once_clean(NULL);
    }
}

/* -------------------------------------------------------------- memory full */

static void fill_memory(bool full)
{
    redis_run(servers, "CONFIG", "SET", "maxmemory-policy", "noeviction", NULL);
    redis_run(
        servers, "CONFIG", "SET", "maxmemory", full ? "100000" : "0", NULL);
}

static void server_memory_is_full(void **state)
{
    char line[LINE_ROOM] = "", after[LINE_ROOM] = "";
    nxl_lock *lock = open_all(), *other = new_lock(theirs, NAME, 30000);
    fill_memory(true);
    assert_result(once_begin(own, lock, NULL, 0), NXL_E_REFUSED, lock);
    assert_int_equal(redis_run(servers, "DBSIZE", NULL), 0);
    fill_memory(false);
    assert_result(once_begin(own, lock, NULL, 0), NXL_OK, lock);
    assert_true(once_line(line));
    fill_memory(true);
    for (int i = 0; i < 2; i++) {
        assert_result(
            once_tell(own, lock, NXL_ONCE_DONE, 0, "x"), NXL_E_REFUSED, lock);
        assert_contains(nxl_lock_errmsg(lock), "memory");
    }
    assert_true(once_line(after));
    assert_string_equal(line, after);
    assert_true(holds(NAME, lock)); /* until its lease is over */
    assert_result(once_begin(theirs, other, NULL, 0), NXL_BUSY, other);
    fill_memory(false);
    redis_run(servers, "PEXPIRE", NAME, "1", NULL);
    assert_eventually(!redis_exists(servers, NAME));
    assert_result(once_begin(theirs, other, NULL, 0), NXL_DOUBT, other);
    assert_result(once_tell(own, lock, NXL_ONCE_DONE, 0, "x"), NXL_OK, lock);
    assert_result(once_begin(theirs, other, NULL, 0), NXL_DONE, other);
    nxl_lock_free(other);
    close_all(lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        once_test(results_of_all_sizes),
        once_test(results_that_are_refused),
        once_test(codes_are_kept_with_each_verdict),
        once_test(options_that_are_refused),
        once_test(verdicts_without_a_begin),
        once_test(servers_that_cannot_keep_records),
        once_test(users_without_the_permissions),
        once_test(record_key_that_holds_something_else),
        once_test(verdict_after_the_record_is_lost),
        once_test(server_memory_is_full),
    };
    return on_run(one_unix, "once: values", tests);
}

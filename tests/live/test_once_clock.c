/* SPDX-License-Identifier: MIT */
/*
 * The server's clock is stepped while there is a record of work that must be
 * done once.
 *
 * Invariant: no step makes "nobody knows" into "nobody has begun". It may end a
 * lease, keep one for longer, or end the time for which a verdict is kept.
 */
#include "live/once_rig.h"

#include <fcntl.h>
#include <sys/mman.h>

#define HOUR_S 3600

static volatile int64_t *offset_s; /* of the server's clock, see the preload */
static char clock_path[] = "/tmp/nxlock-clock-XXXXXX";
static nxl_lock *lock, *other;

static int clock_start(void **state)
{
    const char *preload = getenv("NXLOCK_TEST_CLOCK");
    if (!preload)
        return test_skip("no NXLOCK_TEST_CLOCK; run it by meson test");
    int fd = mkstemp(clock_path);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, sizeof(*offset_s)), 0);
    void *map = mmap(
        NULL, sizeof(*offset_s), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(map != MAP_FAILED);
    offset_s = map;
    close(fd);
    setenv("LD_PRELOAD", preload, 1);
    setenv("NXLOCK_CLOCK_FILE", clock_path, 1);
    int rc = on_one_unix(state);
    unsetenv("LD_PRELOAD");
    return rc;
}

static int clock_stop(void **state)
{
    if (offset_s) {
        munmap((void *)offset_s, sizeof(*offset_s));
        unlink(clock_path);
    }
    return quorum_stop(state);
}

static long long server_s(void)
{
    redisReply *reply = redis_command(servers, "TIME", NULL);
    long long seconds = strtoll(reply->element[0]->str, NULL, 10);
    freeReplyObject(reply);
    return seconds;
}

static void step_to(int64_t seconds)
{
    *offset_s = seconds;
    assert_eventually(llabs(server_s() - time(NULL) - seconds) <= 1);
}

static void open_all(void)
{
    own = client_on(NO_GUARD);
    theirs = client_on(NO_GUARD);
    lock = new_lock(own, NAME, 30000);
    other = new_lock(theirs, NAME, 30000);
}

static void close_all(void)
{
    nxl_lock_free(other);
    end(lock, own);
    nxl_client_free(theirs);
    *offset_s = 0;
}

static int begin_other(int mode)
{
    return once_begin(theirs, other, &WORK(.mode = mode), 0);
}

/* The lease is over for the server, but not for its holder. */
static void clock_an_hour_ahead_makes_doubt(void **state)
{
    open_all();
    assert_result(once_begin(own, lock, NULL, 0), NXL_OK, lock);
    step_to(HOUR_S);
    assert_eventually(!redis_exists(servers, NAME));
    assert_result(begin_other(NXL_ONCE_HALT), NXL_DOUBT, other);
    assert_true(nxl_lock_held(lock)); /* by its own clock */
    assert_result(once_tell(own, lock, NXL_ONCE_DONE, 0, "x"), NXL_OK, lock);
    assert_result(begin_other(NXL_ONCE_HALT), NXL_DONE, other);
    close_all();
}

/* The lease lasts for three hours more, and nothing else is wrong. */
static void clock_three_hours_back_lengthens_the_lease(void **state)
{
    open_all();
    assert_result(once_begin(own, lock, NULL, 0), NXL_OK, lock);
    uint64_t fence = nxl_lock_fence(lock);
    step_to(-3 * HOUR_S);
    assert_result(begin_other(NXL_ONCE_HALT), NXL_BUSY, other);
    assert_true(redis_pttl(servers, NAME) > 3 * HOUR_S * INT64_C(1000));
    assert_result(once_tell(own, lock, NXL_ONCE_FAILED, 0, NULL), NXL_OK, lock);
    assert_result(begin_other(NXL_ONCE_HALT), NXL_OK, other);
    assert_true(nxl_lock_fence(other) > fence);
    redis_run(servers, "DEL", "{job}:f", NULL); /* the counter is lost, too */
    assert_result(
        once_tell(theirs, other, NXL_ONCE_DOUBT, 0, NULL), NXL_OK, other);
    fence = nxl_lock_fence(other);
    assert_result(
        once_begin(own, lock, &WORK(.mode = NXL_ONCE_RETRY), 0), NXL_OK, lock);
    assert_true(nxl_lock_fence(lock) > fence);
    assert_result(once_tell(own, lock, NXL_ONCE_DONE, 0, NULL), NXL_OK, lock);
    close_all();
}

/* What nobody knows has no end. */
static void doubt_does_not_expire(void **state)
{
    open_all();
    for (int tells = 0; tells < 2; tells++) {
        once_clean(NULL);
        assert_result(once_begin(own, lock, NULL, 0), NXL_OK, lock);
        if (tells)
            assert_result(
                once_tell(own, lock, NXL_ONCE_DOUBT, 0, NULL), NXL_OK, lock);
        step_to(10 * 24 * HOUR_S);
        assert_result(begin_other(NXL_ONCE_HALT), NXL_DOUBT, other);
        assert_result(
            once_tell(own, lock, NXL_ONCE_DONE, 0, "x"), NXL_OK, lock);
        assert_result(begin_other(NXL_ONCE_HALT), NXL_DONE, other);
        assert_ends(KEPT_MS);
        step_to(0);
    }
    close_all();
}

/* What is kept for 30 days is forgotten an hour later, and not before. */
static void verdict_expires_after_keep_ms(void **state)
{
    open_all();
    assert_result(once_begin(own, lock, NULL, 0), NXL_OK, lock);
    assert_result(once_tell(own, lock, NXL_ONCE_DONE, 0, "x"), NXL_OK, lock);
    step_to(30 * 24 * HOUR_S - HOUR_S);
    assert_result(begin_other(NXL_ONCE_HALT), NXL_DONE, other);
    step_to(30 * 24 * HOUR_S + HOUR_S);
    note_forgotten();
    assert_result(begin_other(NXL_ONCE_HALT), NXL_OK, other);
    struct written w;
    assert_true(once_written(&w));
    assert_int_equal(w.attempt, 1);
    /* Its first holder says it once more, and is told. */
    assert_result(once_tell(own, lock, NXL_ONCE_DONE, 0, "x"), NXL_LOST, lock);
    close_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        once_test(clock_an_hour_ahead_makes_doubt),
        once_test(clock_three_hours_back_lengthens_the_lease),
        once_test(doubt_does_not_expire),
        once_test(verdict_expires_after_keep_ms),
    };
    return cmocka_run_group_tests_name(
        "once: the server's clock", tests, clock_start, clock_stop);
}

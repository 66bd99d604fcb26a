/* SPDX-License-Identifier: MIT */
/*
 * What a wait ends with when the last answer is missing: the lock was busy
 * before, but then it may have become the caller's own. And what it ends with
 * when no answer is missing.
 */
#define QUORUM_MAX 3
#include "live/in_line_rig.h"

#define NAME "busy"
#define WAIT_MS 1000
#define LAST_MS 700   /* before the end of the wait */
#define SLACK_MS 5000 /* how late a call may end on a busy machine */
#define WAITS (getenv("NXLOCK_FULL") ? 5000 : 100)

static struct waiter own_waiter;

/* How a client waits; in line it does on one server only. */
static const struct way_to_wait {
    const char *name, *parameters;
    bool begins;
} ways_to_wait[] = {
    {"in line", NO_GUARD "&timeout_ms=1000", false},
    {"polling", NO_GUARD "&timeout_ms=1000&poll=1", false},
    {"begin", NO_GUARD "&timeout_ms=1000&poll=1", true},
    {"begin in line", NO_GUARD "&timeout_ms=1000", true},
};
#define WAYS_TO_WAIT (sizeof(ways_to_wait) / sizeof(ways_to_wait[0]))

static struct scene {
    nxl_client *own, *theirs;
    nxl_lock *lock, *holder;
    bool begins;
    int64_t began;
} scene;

static void *begin_main(void *arg)
{
    struct waiter *w = (struct waiter *)arg;
    w->result = nxl_once_begin(w->lock, NULL, w->wait_ms);
    return NULL;
}

/* The holder has the lock, and the other client waits for it. */
static void begin_scene(const struct way_to_wait *way)
{
    scene.begins = way->begins;
    scene.theirs = client_on(NO_GUARD);
    scene.own = proxied_client(on.servers, way->parameters);
    scene.holder = new_lock(scene.theirs, NAME, 60000);
    scene.lock = new_lock(scene.own, NAME, 10000);
    assert_result(nxl_lock_acquire(scene.holder, 0), NXL_OK, scene.holder);
    scene.began = test_now_ms();
    if (!way->begins) {
        begin_wait(&own_waiter, scene.own, scene.lock, WAIT_MS);
    } else if (by_loop) {
        assert_int_equal(
            nxl_once_begin_start(scene.lock, NULL, WAIT_MS), NXL_PENDING);
    } else {
        own_waiter = (struct waiter){
            .lock = scene.lock, .wait_ms = WAIT_MS, .result = -99};
        assert_int_equal(
            pthread_create(&own_waiter.thread, NULL, begin_main, &own_waiter),
            0);
    }
    await_with(scene.own, test_now_ms() > scene.began + WAIT_MS - LAST_MS);
}

static int end_of_wait(void)
{
    if (by_loop || !scene.begins)
        return end_wait(&own_waiter, scene.own);
    assert_int_equal(pthread_join(own_waiter.thread, NULL), 0);
    return own_waiter.result;
}

static void end_scene(void)
{
    end(scene.holder, scene.theirs);
    end(scene.lock, scene.own);
}

/* Somebody else than the holder has it, at a majority. */
static bool is_taken(void)
{
    size_t taken = 0;
    for (size_t i = 0; i < on.servers; i++)
        taken += redis_exists(&servers[i], NAME) &&
                 !stands_at(i, NAME, scene.holder);
    return taken >= majority();
}

static size_t ways_here(void)
{
    return on.servers == 1 ? WAYS_TO_WAIT : 2;
}

/* Still long before the end of the wait? On a busy machine a scene may take
 * longer than the wait, and is played again. */
static bool is_early(void)
{
    return test_now_ms() < scene.began + WAIT_MS - LAST_MS / 2;
}

static void clear_scene(void)
{
    end_scene();
    quorum_mend(NULL);
    quorum_clean(NULL);
}

static void hold_answers(bool hold)
{
    for (size_t i = 0; i < on.servers; i++)
        proxy_hold(proxies[i], PROXY_DOWN, hold);
}

/* Returns whether it was seen that the wait took the lock. */
static bool lose_answer_to_grant(const struct way_to_wait *way)
{
    begin_scene(way);
    hold_answers(true);
    assert_result(nxl_lock_release(scene.holder), NXL_OK, scene.holder);
    await_with(scene.own, is_taken() || test_now_ms() > scene.began + WAIT_MS);
    bool taken = is_taken();
    int rc = end_of_wait();
    assert_between(test_now_ms() - scene.began, 0, WAIT_MS + SLACK_MS);
    if (taken) {
        assert_result(rc, NXL_UNKNOWN, scene.lock);
        assert_contains(nxl_lock_errmsg(scene.lock), "may have been applied");
    }
    hold_answers(false);
    await_with(scene.own, !is_taken());
    clear_scene();
    return taken;
}

/* The holder releases the lock, and the wait takes it, but no answer comes. */
static void the_answer_to_the_grant_is_lost(void **state)
{
    for (size_t i = 0; i < ways_here(); i++) {
        print_message("%s\n", ways_to_wait[i].name);
        assert_eventually(lose_answer_to_grant(&ways_to_wait[i]));
    }
}

/* Returns whether they hung before the end. */
static bool hang_servers(const struct way_to_wait *way)
{
    begin_scene(way);
    for (size_t i = 0; i < on.servers; i++)
        redis_freeze(&servers[i]);
    bool early = is_early();
    int rc = end_of_wait();
    assert_between(test_now_ms() - scene.began, 0, WAIT_MS + SLACK_MS);
    if (early)
        assert_result(rc, NXL_UNKNOWN, scene.lock);
    for (size_t i = 0; i < on.servers; i++)
        redis_thaw(&servers[i]);
    assert_result(nxl_lock_release(scene.holder), NXL_OK, scene.holder);
    clear_scene();
    return early;
}

/* The servers hang at the end of the wait. */
static void the_servers_hang(void **state)
{
    for (size_t i = 0; i < ways_here(); i++) {
        print_message("%s\n", ways_to_wait[i].name);
        assert_eventually(hang_servers(&ways_to_wait[i]));
    }
}

/* Where the servers answer, a wait that expires is busy, and so is a try. */
static void every_answer_comes(void **state)
{
    static const char *const parameters[] = {
        NO_GUARD "&timeout_ms=20000", NO_GUARD "&timeout_ms=20000&poll=1"};
    static const int64_t waits_ms[] = {0, 1, 25, 60};
    nxl_client *theirs = client_on(NO_GUARD);
    nxl_lock *holder = new_lock(theirs, NAME, 60000);
    assert_result(nxl_lock_acquire(holder, 0), NXL_OK, holder);
    for (size_t i = 0; i < 2; i++) {
        nxl_client *own = client_on(parameters[i]);
        nxl_lock *lock = new_lock(own, NAME, 10000);
        for (int n = 0; n < WAITS / 2; n++)
            assert_result(
                CALL(own, acquire, lock, waits_ms[n % 4]), NXL_BUSY, lock);
        end(lock, own);
    }
    end(holder, theirs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        api_test(the_answer_to_the_grant_is_lost),
        api_test(the_servers_hang),
        api_test(every_answer_comes),
    };
    return on_one_and_three_run("busy", tests);
}

/* SPDX-License-Identifier: MIT */
/*
 * Hundreds of locks wait for one name: those far behind ask seldom, and keep
 * their places all the same, also when the line begins to move fast.
 */
#include "live/in_line_rig.h"

#define NAME "job"

/* The first in line loses its place when it is silent for three beats, which a
 * busy machine must not make of it. */
enum { CROWD = 600, TTL_MS = 10000, BEAT_MS = 1000, WINDOW_MS = 3 * BEAT_MS };

static nxl_client *client;
static nxl_lock *locks[CROWD];

static void line_up(void)
{
    client = client_on(NO_GUARD "&timeout_ms=20000");
    for (size_t i = 0; i < CROWD; i++) {
        locks[i] = new_lock(client, NAME, TTL_MS);
        assert_int_equal(
            nxl_lock_acquire_start(locks[i], NXL_FOREVER), NXL_PENDING);
        /* The server has the script from the first one. Those that are sent
         * before would be sent again, behind others. */
        while (i == 0 && line_length(NAME) == 0)
            turn(client, 5);
    }
    while (line_length(NAME) < CROWD)
        turn(client, 5);
}

/* Returns how long it was: so long, at least. */
static int64_t wait_on(int64_t least_ms)
{
    int64_t since = test_now_ms();
    while (test_now_ms() < since + least_ms)
        turn(client, 20);
    return test_now_ms() - since;
}

/* For each 64 places they wait a beat longer, 5 s at most, so that all together
 * ask a third as often as if each did at its beat. */
static void assert_asks_seldom(void)
{
    long asked = redis_calls(servers, "zadd");
    int64_t took_ms = wait_on(2500);
    long at_the_beat = (long)(CROWD * took_ms / BEAT_MS);
    asked = redis_calls(servers, "zadd") - asked;
    print_message("           %ld of %ld\n", asked, at_the_beat);
    assert_true(asked < at_the_beat / 2);
}

static void far_behind_they_ask_seldom_and_keep_their_places(void **state)
{
    redis_run(servers, "SET", NAME, "somebody", "PX", "60000", NULL);
    line_up();
    wait_on(WINDOW_MS - 2000);
    assert_asks_seldom();
    /* Most of them have been silent for longer than a short line allows. */
    redis_run(servers, "DEL", NAME, NULL);
    for (size_t granted = 0, released = 0; released < CROWD;) {
        nxl_event event = next_event(client);
        assert_result(event.result, NXL_OK, event.lock);
        if (event.operation == NXL_OP_RELEASE) {
            released++;
            continue;
        }
        assert_ptr_equal(event.lock, locks[granted++]);
        assert_int_equal(nxl_lock_release_start(event.lock), NXL_PENDING);
    }
    for (size_t i = 0; i < CROWD; i++)
        nxl_lock_free(locks[i]);
    nxl_client_free(client);
    assert_true(is_free(NAME));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        api_loop_test(far_behind_they_ask_seldom_and_keep_their_places),
    };
    return on_run(one_unix, "line crowd", tests);
}

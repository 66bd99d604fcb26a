/* SPDX-License-Identifier: MIT */
/*
 * Many locks of one client wait in line, each for its own name: what a handle
 * that has waited takes of memory, and that a message is not compared with all
 * who wait. What waiting costs the server: live/scenes/line_costs.scenes.
 */
#include "live/in_line_rig.h"

#include <malloc.h>

enum { MOST = 200 };

static size_t comparisons;

int __wrap_memcmp(const void *a, const void *b, size_t size);
int __real_memcmp(const void *a, const void *b, size_t size);

int __wrap_memcmp(const void *a, const void *b, size_t size)
{
    comparisons++;
    return __real_memcmp(a, b, size);
}

static struct {
    nxl_client *client, *others;
    nxl_lock *waits[MOST], *holds[MOST];
    size_t count;
} stage;

static void set_stage(size_t count)
{
    stage.client = client_on(NO_GUARD);
    stage.others = client_on(NO_GUARD);
    stage.count = count;
    for (size_t i = 0; i < count; i++) {
        char name[64];
        snprintf(name, sizeof(name), "name-of-two-and-thirty-bytes-%03zu", i);
        stage.waits[i] = new_lock(stage.client, name, 60000);
        stage.holds[i] = new_lock(stage.others, name, 60000);
    }
}

static void clear_stage(void)
{
    for (size_t i = 0; i < stage.count; i++) {
        nxl_lock_free(stage.waits[i]);
        nxl_lock_free(stage.holds[i]);
    }
    nxl_client_free(stage.client);
    nxl_client_free(stage.others);
}

/* It waits for its lock and listens, as so many others do. */
static void wait_in_line(size_t i, long long others)
{
    nxl_lock *holds = stage.holds[i], *waits = stage.waits[i];
    assert_result(CALL(stage.others, acquire, holds, 0), NXL_OK, holds);
    assert_int_equal(nxl_lock_acquire_start(waits, 60000), NXL_PENDING);
    while (line_length(nxl_lock_name(holds, 0, NULL)) == 0 ||
           server_number(servers, "stats", "pubsub_channels") <= others)
        turn(stage.client, 5);
}

static void hand_over(size_t i)
{
    nxl_lock *holds = stage.holds[i];
    assert_result(CALL(stage.others, release, holds), NXL_OK, holds);
    assert_ptr_equal(next_event(stage.client).lock, stage.waits[i]);
}

/* How often the library compares something for so many messages, which come in
 * the opposite order. */
static size_t compare_while_handing_over(size_t count)
{
    set_stage(count);
    for (size_t i = 0; i < count; i++)
        wait_in_line(i, (long long)i);
    comparisons = 0;
    for (size_t i = count; i-- > 0;)
        hand_over(i);
    size_t made = comparisons;
    clear_stage();
    return made;
}

/* Four times as many waiters cost four times as much, and not sixteen times. */
static void messages_of_many_waiters(void **state)
{
    size_t few = compare_while_handing_over(MOST / 4);
    size_t many = compare_while_handing_over(MOST);
    print_message("# %zu comparisons, %zu for four times as many\n", few, many);
    assert_true(many < 6 * few);
}

/* A handle that has waited is larger, but its line is allocated once. */
static void memory_of_a_handle_that_waited(void **state)
{
    size_t used[3];
    set_stage(MOST);
    for (int round = 0; round <= 2; round++) {
        for (size_t i = 0; i < MOST; i++) {
            nxl_lock *waits = stage.waits[i];
            if (round > 0 || i == 0) { /* with it the second connection */
                wait_in_line(i, 0);
                hand_over(i);
            } else {
                assert_result(
                    CALL(stage.client, acquire, waits, 0), NXL_OK, waits);
            }
            assert_result(CALL(stage.client, release, waits), NXL_OK, waits);
        }
        used[round] = mallinfo2().uordblks;
    }
    size_t each = (used[1] - used[0]) / MOST;
    print_message("# %zu bytes a handle for its line\n", each);
    if (!LIVE_INSTRUMENTED) {
        assert_between(each, 1, 1408); /* its channel, above all */
        assert_between((int64_t)used[2] - (int64_t)used[1], -100000, MOST * 16);
    }
    clear_stage();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        api_loop_test(messages_of_many_waiters),
        api_loop_test(memory_of_a_handle_that_waited),
    };
    return on_run(one_unix, "many who wait", tests);
}

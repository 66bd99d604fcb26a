/* SPDX-License-Identifier: MIT */
/* At most one WAIT is sent with what leaves in one write, whatever leaves. */
#include "support/test.h"

#include <sys/socket.h>

#include "live/loop_rig.h"
#include "live/replica_rig.h"

enum { LOCKS = 64, ROUNDS = 4000, TTL_MS = 30000 };

static long flushes;

ssize_t __real_send(int fd, const void *data, size_t size, int flags);
ssize_t __wrap_send(int fd, const void *data, size_t size, int flags);

ssize_t __wrap_send(int fd, const void *data, size_t size, int flags)
{
    ssize_t n = __real_send(fd, data, size, flags);
    flushes += n > 0;
    return n;
}

static unsigned below(unsigned sides)
{
    static uint64_t dice = 1;
    dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(dice >> 33) % sides;
}

static int start_next(nxl_lock *lock)
{
    if (!nxl_lock_held(lock))
        return nxl_lock_acquire_start(lock, 0);
    return below(3) ? nxl_lock_release_start(lock)
                    : nxl_lock_extend_start(lock, 2 * TTL_MS);
}

/* Acquires, extensions and releases, from one at a time to all at once. */
static void play(nxl_client *client, nxl_lock **locks, unsigned at_a_time)
{
    unsigned under_way = 0;
    bool busy[LOCKS] = {false};
    nxl_event event;
    for (unsigned done = 0; done < ROUNDS;) {
        while (under_way < at_a_time) {
            unsigned i = below(LOCKS);
            if (busy[i])
                continue;
            assert_int_equal(start_next(locks[i]), NXL_PENDING);
            busy[i] = true;
            under_way++;
        }
        loop_wait(client, 1000);
        while (nxl_client_next_event(client, &event)) {
            assert_result(event.result, NXL_OK, event.lock);
            for (unsigned i = 0; i < LOCKS; i++)
                busy[i] = busy[i] && locks[i] != event.lock;
            under_way--;
            done++;
        }
    }
    loop.count = 0;
    while (under_way > 0) {
        loop_wait(client, 1000);
        while (nxl_client_next_event(client, &event))
            under_way--;
    }
}

static void at_most_one_wait_a_flush(void **state)
{
    static const unsigned at_a_time[] = {1, 2, 7, LOCKS - 1};
    nxl_client *client = waiting_client("&wait_ms=5000&timeout_ms=20000");
    nxl_lock *locks[LOCKS];
    loop_reset(false);
    for (int i = 0; i < LOCKS; i++) {
        char name[16];
        snprintf(name, sizeof(name), "k%d", i);
        locks[i] = new_lock(client, name, TTL_MS);
    }
    for (size_t i = 0; i < sizeof(at_a_time) / sizeof(at_a_time[0]); i++) {
        flushes = 0;
        long waits = redis_calls(&server, "wait");
        play(client, locks, at_a_time[i]);
        waits = redis_calls(&server, "wait") - waits;
        print_message("%u at a time: %d calls, %ld flushes, %ld WAITs\n",
            at_a_time[i], ROUNDS, flushes, waits);
        assert_true(waits > 0 && waits <= flushes);
        assert_true(waits * at_a_time[i] <= 3L * ROUNDS);
    }
    for (int i = 0; i < LOCKS; i++)
        nxl_lock_free(locks[i]);
    nxl_client_free(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(at_most_one_wait_a_flush, replica_set_up),
    };
    return cmocka_run_group_tests_name(
        "WAITs and flushes", tests, replica_start, replica_stop);
}

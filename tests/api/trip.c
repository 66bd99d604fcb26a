/* SPDX-License-Identifier: MIT */
/*
 * Prints every function of the library that one blocking acquire calls, and
 * then one release. Each line is "CALL DEPTH FUNCTION SITE": the last two are
 * addresses that addr2line takes, SITE lies in the caller. test_trip.py reads
 * that.
 *
 * It wants a library that is compiled without optimization, so that each
 * function exists, and with -finstrument-functions, which calls the first two
 * functions here: run.sh --checks has one (plain).
 */
#include "support/test.h"

#include <link.h>
#include <time.h>

#include <nxlock.h>

#include "support/redis.h"

#define CALLS 4096 /* ten times as many as there are */

void __cyg_profile_func_enter(void *function, void *site);
void __cyg_profile_func_exit(void *function, void *site);

static struct {
    void *function, *site;
    int depth;
} calls[CALLS];
static size_t count;
static bool tracing;
static int depth;

void __cyg_profile_func_enter(void *function, void *site)
{
    if (!tracing)
        return;
    if (count < CALLS) {
        calls[count].function = function;
        calls[count].site = site;
        calls[count].depth = depth;
    }
    count++;
    depth++;
}

void __cyg_profile_func_exit(void *function, void *site)
{
    (void)function;
    (void)site;
    if (tracing)
        depth--;
}

/* Where the program itself was loaded: the first of all objects. */
static int base_of(struct dl_phdr_info *info, size_t size, void *base)
{
    (void)size;
    *(uintptr_t *)base = info->dlpi_addr;
    return 1;
}

static void print_calls(const char *call)
{
    uintptr_t base = 0;
    dl_iterate_phdr(base_of, &base);
    assert_int_equal(depth, 0);
    assert_in_range(count, 1, CALLS);
    printf("\n");
    /* A return address is behind the call, which may be another line. */
    for (size_t i = 0; i < count; i++)
        printf("%s %d %#jx %#jx\n", call, calls[i].depth,
            (uintmax_t)((uintptr_t)calls[i].function - base),
            (uintmax_t)((uintptr_t)calls[i].site - base - 1));
    count = 0;
}

/* A connection that was silent for a moment is looked at before it is used
 * (LOOK_AGAIN in net/server.c). How long this program itself takes must not
 * decide whether that is part of the trip. */
static void be_silent(void)
{
    struct timespec moment = {0, 5000000};
    assert_int_equal(nanosleep(&moment, NULL), 0);
}

static void one_acquire_and_one_release(void **state)
{
    (void)state;
    static struct redis redis;
    nxl_client *client;
    nxl_lock *lock;
    redis_start(&redis, NULL);
    assert_int_equal(nxl_client_new(&client, redis.unix_url, NULL), NXL_OK);
    assert_int_equal(nxl_lock_new(&lock, client, "trip", NULL), NXL_OK);
    /* Connecting is not part of the picture. */
    assert_int_equal(nxl_lock_acquire(lock, 0), NXL_OK);
    assert_int_equal(nxl_lock_release(lock), NXL_OK);
    be_silent();
    tracing = true;
    assert_int_equal(nxl_lock_acquire(lock, 0), NXL_OK);
    tracing = false;
    print_calls("acquire");
    be_silent();
    tracing = true;
    assert_int_equal(nxl_lock_release(lock), NXL_OK);
    tracing = false;
    print_calls("release");
    nxl_lock_free(lock);
    nxl_client_free(client);
    redis_stop(&redis);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_acquire_and_one_release)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

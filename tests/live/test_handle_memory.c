/* SPDX-License-Identifier: MIT */
/*
 * How much memory a lock handle takes after an acquire and a release: as much
 * as a hundred more handles take, divided by a hundred. The limits are of one
 * server and a name of 32 bytes; on three servers the size is only shown.
 */
#include "live/quorum_rig.h"
#include "live/renew_rig.h"

#include "support/alloc.h"

enum { HANDLES = 100, PLAIN_MAX = 2048, RENEWED_MAX = 3072, ONCE_MAX = 4096 };

struct use {
    const char *words;
    bool renew, once;
    int64_t permits; /* 0: exclusive */
    long most;
};

static void cycle_once(nxl_lock *lock)
{
    char result[100] = "a receipt";
    assert_result(nxl_once_begin(lock, NULL, 0), NXL_OK, lock);
    assert_result(nxl_once_tell(lock, NXL_ONCE_DONE, 0, result, sizeof(result)),
        NXL_OK, lock);
}

static nxl_lock *used_lock(
    nxl_client *client, int number, const struct use *use)
{
    char name[64];
    snprintf(name, sizeof(name), "a name of 32 bytes, number %05d", number);
    assert_int_equal(strlen(name), 32);
    nxl_lock *lock = lock_with(client, name, .ttl_ms = 30000,
        .renew = use->renew, .permits = use->permits);
    if (use->once) {
        cycle_once(lock);
        return lock;
    }
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    return lock;
}

static void assert_size(const struct use *use)
{
    nxl_lock *locks[1 + HANDLES];
    nxl_client *client = client_on(NO_GUARD);
    connect_all(client);
    locks[0] = used_lock(client, 0, use);
    long before = alloc_bytes();
    for (int i = 1; i <= HANDLES; i++)
        locks[i] = used_lock(client, i, use);
    long each = (alloc_bytes() - before) / HANDLES;
    print_message(
        "%ld bytes a handle, %zu server(s)%s\n", each, on.servers, use->words);
    if (on.servers == 1)
        assert_between(each, 1, use->most);
    for (int i = 0; i <= HANDLES; i++)
        nxl_lock_free(locks[i]);
    nxl_client_free(client);
}

static void a_plain_lock(void **state)
{
    assert_size(&(struct use){"", .most = PLAIN_MAX});
}

static void a_renewed_lock(void **state)
{
    assert_size(&(struct use){", renewed", .renew = true, .most = RENEWED_MAX});
}

/* A handle has room for its token, whatever the kind. */
static void a_permit(void **state)
{
    assert_size(&(struct use){", permit", .permits = 4, .most = PLAIN_MAX});
}

static void a_lock_of_work(void **state)
{
    assert_size(&(struct use){", once", .once = true, .most = ONCE_MAX});
}

static int memory_setup(void **state)
{
    if (!alloc_counts())
        return test_skip("a sanitizer has the allocator");
    return quorum_clean(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_plain_lock, memory_setup, quorum_mend),
        cmocka_unit_test_setup_teardown(
            a_renewed_lock, memory_setup, quorum_mend),
    };
    const struct CMUnitTest one[] = {
        cmocka_unit_test_setup_teardown(
            a_lock_of_work, memory_setup, quorum_mend),
        cmocka_unit_test_setup_teardown(a_permit, memory_setup, quorum_mend),
    };
    return on_one_and_three_run("memory of a handle", tests) +
           on_run(
               one_unix, "memory of a handle (one server, once, permits)", one);
}

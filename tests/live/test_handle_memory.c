/* SPDX-License-Identifier: MIT */
/*
 * How much memory a lock handle takes after an acquire and a release: as much
 * as a hundred more handles take, divided by a hundred. The limits are of one
 * server and a name of 32 bytes; on three servers the size is only shown.
 */
#include "live/quorum_rig.h"
#include "live/renew_rig.h"

#include "support/alloc.h"

enum { HANDLES = 100, PLAIN_MOST = 2048, RENEWED_MOST = 3072 };

static nxl_lock *used_lock(nxl_client *client, int number, int renew)
{
    char name[64];
    snprintf(name, sizeof(name), "a name of 32 bytes, number %05d", number);
    assert_int_equal(strlen(name), 32);
    nxl_lock *lock = lock_with(client, name, .ttl_ms = 30000, .renew = renew);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    return lock;
}

static void assert_size(int renew, long most)
{
    nxl_lock *locks[1 + HANDLES];
    nxl_client *client = client_on(NO_GUARD);
    connect_all(client);
    locks[0] = used_lock(client, 0, renew);
    long before = alloc_bytes();
    for (int i = 1; i <= HANDLES; i++)
        locks[i] = used_lock(client, i, renew);
    long each = (alloc_bytes() - before) / HANDLES;
    print_message("%ld bytes a handle, %zu server(s)%s\n", each, on.servers,
        renew ? ", renewed" : "");
    if (on.servers == 1)
        assert_between(each, 1, most);
    for (int i = 0; i <= HANDLES; i++)
        nxl_lock_free(locks[i]);
    nxl_client_free(client);
}

static void a_plain_lock(void **state)
{
    assert_size(0, PLAIN_MOST);
}

static void a_renewed_lock(void **state)
{
    assert_size(1, RENEWED_MOST);
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
    return on_one_and_three_run("memory of a handle", tests);
}

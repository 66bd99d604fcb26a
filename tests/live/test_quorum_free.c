/* SPDX-License-Identifier: MIT */
/*
 * The end of a client waits for what its servers owe it: not for those that
 * hang and were never sent anything but a handshake, or only questions.
 */
#include "support/test.h"

#include "live/api_rig.h"

/* The end of a client waits 500 ms for a server that owes it an answer. */
enum { COUNT = 5, HUNG = 2, TIMES = 4, WAITS_MS = TIMES * 500 };

static void freeze_some(void)
{
    for (size_t i = 0; i < HUNG; i++)
        redis_freeze(&servers[COUNT - 1 - i]);
}

static void lock_and_unlock(nxl_client *client)
{
    nxl_lock *lock = new_lock(client, "k", 20000);
    assert_result(CALL(client, acquire, lock, 0), NXL_OK, lock);
    assert_result(CALL(client, release, lock), NXL_OK, lock);
    nxl_lock_free(lock);
}

static void a_handshake_is_not_awaited(void **state)
{
    int64_t freeing = 0;
    freeze_some();
    for (int i = 0; i < TIMES; i++) {
        nxl_client *client = quorum_client(COUNT, NO_GUARD);
        lock_and_unlock(client);
        int64_t began = test_now_ms();
        nxl_client_free(client);
        freeing += test_now_ms() - began;
    }
    assert_between(freeing, 0, WAITS_MS / 2);
    assert_int_equal(keys_at(COUNT - HUNG, "k"), 0);
}

static void a_question_is_not_awaited(void **state)
{
    int64_t freeing = 0;
    for (int i = 0; i < TIMES; i++) {
        nxl_client *client = quorum_client(COUNT, NO_GUARD);
        nxl_lock *lock = new_lock(client, "k", 20000);
        nxl_holder holder = NXL_HOLDER_INIT;
        connect_all(client);
        freeze_some();
        assert_result(nxl_lock_inspect(lock, &holder), NXL_FREE, lock);
        nxl_lock_free(lock);
        int64_t began = test_now_ms();
        nxl_client_free(client);
        freeing += test_now_ms() - began;
        quorum_mend(NULL);
    }
    assert_between(freeing, 0, WAITS_MS / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        api_test(a_handshake_is_not_awaited),
        quorum_test(a_question_is_not_awaited),
    };
    return quorum_run("quorum_free");
}

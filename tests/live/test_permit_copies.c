/* SPDX-License-Identifier: MIT */
/*
 * wait_replicas with each kind of lock: what counts only if a replica has it,
 * and what is undone if none has.
 *
 *                 a replica has it    it is stopped         there is none
 *     acquire     granted             undone, refused       the same
 *     beside      granted             undone, others stay   the same
 *     extend      extended            unknown, no deadline  the same
 *     handed over each of a batch confirms it; one that cannot gives it back
 *     adopt       reads only; its first extension counts
 */
#include "live/kinds_rig.h"
#include "live/replica_rig.h"

enum { TTL_MS = 20000, BATCH = 3 };

/* Longer than a busy machine needs. */
#define PATIENT "&wait_ms=5000&timeout_ms=10000"
#define SHORT "&wait_ms=60"

enum trouble { STOPPED, NO_REPLICA, TROUBLES };

static void begin_trouble(enum trouble trouble)
{
    if (trouble == STOPPED) {
        redis_freeze(&replica);
        return;
    }
    redis_promote(&replica);
    assert_eventually(
        server_number(&server, "replication", "connected_slaves") == 0);
}

/* Since the last look; twice behind a script that the server did not know. */
static bool has_waited(long *waits)
{
    long before = *waits;
    *waits = redis_calls(&server, "wait");
    return *waits > before && *waits <= before + 2;
}

static void what_a_replica_has_counts(void **state)
{
    for (int kind = 0; kind < KINDS; kind++) {
        nxl_client *client = waiting_client(PATIENT);
        nxl_client *other = waiting_client(PATIENT);
        nxl_lock *lock[4];
        long waits = redis_calls(&server, "wait");
        for (int i = 0; i < kinds[kind].together; i++) {
            lock[i] = of_kind(client, kind, TTL_MS, false);
            assert_result(nxl_lock_acquire(lock[i], 0), NXL_OK, lock[i]);
            assert_true(stands(&replica, nxl_lock_token(lock[i])));
            assert_true(has_waited(&waits));
            assert_result(
                nxl_lock_extend(lock[i], 2 * TTL_MS), NXL_OK, lock[i]);
            assert_true(has_waited(&waits));
        }
        nxl_lock *heir = new_lock(other, "k", TTL_MS);
        assert_result(
            nxl_lock_adopt(heir, nxl_lock_token(lock[0])), NXL_OK, heir);
        uint64_t deadline = nxl_lock_deadline(heir);
        /* It does not shorten the lease, and is written all the same. */
        assert_result(nxl_lock_extend(heir, 0), NXL_OK, heir);
        assert_true(has_waited(&waits));
        assert_true(nxl_lock_deadline(heir) >= deadline);
        assert_result(nxl_lock_release(heir), NXL_OK, heir);
        for (int i = 0; i < kinds[kind].together; i++)
            nxl_lock_free(lock[i]);
        nxl_client_free(client);
        end(heir, other);
        assert_int_equal(redis_lasting_keys(&server), 0);
    }
}

/* Those who hold it already keep it. */
static void what_none_has_is_undone(void **state)
{
    for (int i = 0; i < TROUBLES * KINDS; i++) {
        int kind = i / TROUBLES;
        assert_int_equal(replica_set_up(state), 0);
        nxl_client *client = waiting_client(SHORT);
        nxl_client *plain = client_at(server.unix_url);
        nxl_lock *lock = of_kind(client, kind, TTL_MS, false);
        nxl_lock *beside = of_kind(plain, kind, TTL_MS, false);
        if (kind != EXCLUSIVE)
            assert_result(nxl_lock_acquire(beside, 0), NXL_OK, beside);
        long long before = holders_at(&server);
        begin_trouble((enum trouble)(i % TROUBLES));
        assert_result(nxl_lock_acquire(lock, 0), NXL_E_REFUSED, lock);
        assert_contains(nxl_lock_errmsg(lock), "0 of 1 replica had it within");
        assert_false(nxl_lock_held(lock));
        assert_eventually(holders_at(&server) == before);
        if (kind != EXCLUSIVE) {
            assert_true(stands(&server, nxl_lock_token(beside)));
            assert_result(nxl_lock_extend(beside, 0), NXL_OK, beside);
        }
        end(beside, plain);
        end(lock, client);
    }
}

/* And a permit that is held stays so until the deadline that was promised. */
static void an_extension_moves_no_deadline(void **state)
{
    for (int i = 0; i < TROUBLES * KINDS; i++) {
        assert_int_equal(replica_set_up(state), 0);
        nxl_client *client = waiting_client(SHORT);
        nxl_lock *lock = of_kind(client, i / TROUBLES, TTL_MS, false);
        assert_result(nxl_lock_acquire(lock, 20000), NXL_OK, lock);
        uint64_t deadline = nxl_lock_deadline(lock);
        begin_trouble((enum trouble)(i % TROUBLES));
        assert_result(nxl_lock_extend(lock, 2 * TTL_MS), NXL_UNKNOWN, lock);
        assert_contains(nxl_lock_errmsg(lock), "0 of 1 replica had it within");
        assert_int_equal(nxl_lock_deadline(lock), deadline);
        assert_true(nxl_lock_held(lock));
        assert_result(nxl_lock_release(lock), NXL_OK, lock);
        end(lock, client);
    }
}

static struct batch {
    struct waiter waiter[BATCH];
    nxl_client *plain, *client[BATCH];
    nxl_lock *held, *lock[BATCH];
    int size;
} batch;

/* An exclusive lock is held, and as many of that kind as it can have at once,
 * each of a client of its own, wait in line for it. */
static void line_up(int kind, const char *parameters, int64_t wait_ms)
{
    batch.size = kind == EXCLUSIVE ? 1 : BATCH;
    batch.plain = client_at(server.unix_url);
    batch.held = new_lock(batch.plain, "k", 60000);
    assert_result(nxl_lock_acquire(batch.held, 0), NXL_OK, batch.held);
    for (int i = 0; i < batch.size; i++) {
        batch.client[i] = waiting_client(parameters);
        batch.lock[i] = of_kind(batch.client[i], kind, TTL_MS, false);
        waiter_start(&batch.waiter[i], batch.lock[i], wait_ms);
        assert_eventually(
            waiters_at(&server) == i + 1 && are_told(&server, i + 1));
    }
}

static void line_ends(void)
{
    for (int i = 0; i < batch.size; i++)
        end(batch.lock[i], batch.client[i]);
    end(batch.held, batch.plain);
}

/* One release grants it to the whole batch, and each confirms that by a write
 * and a WAIT of its own. */
static void each_of_a_batch_confirms(void **state)
{
    for (int kind = 0; kind < KINDS; kind++) {
        line_up(kind, SHORT, 30000);
        redis_freeze(&replica);
        long waits = redis_calls(&server, "wait");
        assert_result(nxl_lock_release(batch.held), NXL_OK, batch.held);
        assert_eventually(redis_calls(&server, "wait") >= waits + batch.size);
        for (int i = 0; i < batch.size; i++)
            assert_false(nxl_lock_held(batch.lock[i]));
        redis_thaw(&replica);
        for (int i = 0; i < batch.size; i++) {
            assert_result(waiter_join(&batch.waiter[i]), NXL_OK, batch.lock[i]);
            assert_true(stands(&replica, nxl_lock_token(batch.lock[i])));
        }
        assert_int_equal(holders_at(&server), batch.size);
        line_ends();
        assert_eventually(redis_lasting_keys(&server) == 0);
    }
}

/* What the line has granted is given back by each that cannot confirm it. */
static void a_batch_that_cannot_confirm(void **state)
{
    for (int kind = 0; kind < KINDS; kind++) {
        assert_int_equal(replica_set_up(state), 0);
        line_up(kind, SHORT, 3000);
        redis_freeze(&replica);
        assert_result(nxl_lock_release(batch.held), NXL_OK, batch.held);
        for (int i = 0; i < batch.size; i++) {
            assert_result(
                waiter_join(&batch.waiter[i]), NXL_E_REFUSED, batch.lock[i]);
            assert_false(nxl_lock_held(batch.lock[i]));
        }
        assert_eventually(!redis_exists(&server, "k"));
        assert_eventually(waiters_at(&server) == 0);
        line_ends();
    }
}

#define copies_test(f) cmocka_unit_test_setup(f, replica_set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        copies_test(what_a_replica_has_counts),
        copies_test(what_none_has_is_undone),
        copies_test(an_extension_moves_no_deadline),
        copies_test(each_of_a_batch_confirms),
        copies_test(a_batch_that_cannot_confirm),
    };
    return cmocka_run_group_tests_name(
        "permit copies", tests, replica_start, replica_stop);
}

/* SPDX-License-Identifier: MIT */
/*
 * What a handle says after faults, the same for each kind of lock: exclusive,
 * shared and with permits; and what is lost is lost for its holder too. That no
 * fault makes too many holders, or keeps a waiter from the lock: the cells
 * "kinds" of tests/faults.
 */
#include "live/kinds_rig.h"
#include "live/proxy_rig.h"

#include <sys/wait.h>

enum { TTL_MS = 600 };

/* --------------------------------------------------------- another process */

struct child {
    pid_t pid;
    int say, hear; /* a byte to it; a byte from it: the result of a call */
};

/* In the child: the result of each call, until nobody asks any more. */
static void child_runs(int kind, int64_t wait_ms, int in, int out)
{
    char byte = 0;
    nxl_client *client;
    nxl_lock *lock;
    nxl_lock_options options = kinds[kind].options;
    options.ttl_ms = TTL_MS;
    if (nxl_client_new(&client, server.unix_url, NULL) != NXL_OK ||
        nxl_lock_new(&lock, client, "k", &options) != NXL_OK)
        _exit(3);
    byte = (char)nxl_lock_acquire(lock, wait_ms);
    while (write(out, &byte, 1) == 1 && read(in, &byte, 1) == 1)
        byte = byte == 'h'   ? (char)nxl_lock_held(lock)
               : byte == 'e' ? (char)nxl_lock_extend(lock, 0)
                             : (char)nxl_lock_release(lock);
    _exit(0);
}

static struct child child_start(int kind, int64_t wait_ms)
{
    int to[2], from[2];
    struct child child;
    assert_int_equal(pipe(to), 0);
    assert_int_equal(pipe(from), 0);
    child.pid = test_fork();
    assert_true(child.pid >= 0);
    if (child.pid == 0)
        child_runs(kind, wait_ms, to[0], from[1]);
    close(to[0]);
    close(from[1]);
    child.say = to[1];
    child.hear = from[0];
    return child;
}

static int child_hears(struct child *child)
{
    signed char byte = 99;
    assert_int_equal(read(child->hear, &byte, 1), 1);
    return byte;
}

static int child_does(struct child *child, char what)
{
    assert_int_equal(write(child->say, &what, 1), 1);
    return child_hears(child);
}

static void child_dies(struct child *child)
{
    kill(child->pid, SIGKILL);
    assert_int_equal(waitpid(child->pid, NULL, 0), child->pid);
    close(child->say);
    close(child->hear);
}

/* ------------------------------------------------------ killed and stopped */

static void stopped_for_longer_than_its_lease(void **state)
{
    for (int kind = 0; kind < KINDS; kind++) {
        nxl_client *client = new_client("");
        nxl_lock *next = new_lock(client, "k", 20000);
        struct child child = child_start(kind, 0);
        assert_int_equal(child_hears(&child), NXL_OK);
        kill(child.pid, SIGSTOP);
        assert_result(nxl_lock_acquire(next, 10000), NXL_OK, next);
        kill(child.pid, SIGCONT);
        assert_int_equal(child_does(&child, 'h'), false);
        assert_int_equal(child_does(&child, 'e'), NXL_LOST);
        assert_int_equal(child_does(&child, 'r'), NXL_LOST);
        assert_true(stands(&server, nxl_lock_token(next)));
        assert_true(nxl_lock_held(next));
        child_dies(&child);
        end(next, client);
    }
}

/* A child of fork() has none of it, and leaves the lock to its parent. */
static void forked_while_it_is_held(void **state)
{
    for (int kind = 0; kind < KINDS; kind++) {
        int status = -1;
        nxl_client *client = new_client("");
        nxl_lock *lock = of_kind(client, kind, 20000, false);
        assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
        assert_int_equal(nxl_client_holds(client, "k", 1), 1);
        pid_t pid = test_fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            bool right = nxl_client_holds(client, "k", 1) == 0 &&
                         !nxl_lock_held(lock) &&
                         nxl_lock_release(lock) == NXL_E_FORKED;
            nxl_lock_free(lock);
            nxl_client_free(client);
            _exit(right ? 0 : 1);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        assert_true(nxl_lock_held(lock));
        assert_true(stands(&server, nxl_lock_token(lock)));
        assert_result(nxl_lock_extend(lock, 0), NXL_OK, lock);
        end(lock, client);
        assert_int_equal(holders_at(&server), 0);
    }
}

/* ------------------------------------------------------- at the server */

/* Its holder learns that by its next renewal, or by any call. */
static void the_key_is_deleted(void **state)
{
    static struct waiter waits;
    for (int kind = 0; kind < KINDS; kind++) {
        char why[256];
        nxl_client *client = new_client(""), *other = new_client("");
        nxl_lock *renewed = of_kind(client, kind, TTL_MS, true);
        nxl_lock *next = new_lock(other, "k", 20000);
        assert_result(nxl_lock_acquire(renewed, 0), NXL_OK, renewed);
        waiter_start(&waits, next, 20000);
        assert_eventually(waiters_at(&server) == 1 && are_told(&server, 1));
        redis_run(&server, "DEL", "k", NULL);
        assert_int_equal(waiter_join(&waits), NXL_OK);
        assert_between(waits.ended_ms - waits.began_ms, 0, 10000);
        assert_eventually(
            nxl_lock_loss(renewed, why, sizeof(why)) != NXL_LOSS_NONE);
        /* Removed, if a renewal came before the waiter. */
        int loss = nxl_lock_loss(renewed, why, sizeof(why));
        assert_true(loss == NXL_LOSS_TAKEN || loss == NXL_LOSS_REMOVED);
        assert_false(nxl_lock_held(renewed));
        assert_result(nxl_lock_release(renewed), NXL_LOST, renewed);
        assert_true(stands(&server, nxl_lock_token(next)));
        end(renewed, client);
        end(next, other);
    }
}

/* --------------------------------------------------------------- no answer */

/* The server applies the acquire after its caller has given up. */
static void unanswered_and_undone(void **state)
{
    for (int kind = 0; kind < KINDS; kind++) {
        struct proxy *proxy = proxy_to_server();
        nxl_client *client = via(proxy, "timeout_ms=100");
        nxl_client *other = new_client("");
        nxl_lock *lock = of_kind(client, kind, 30000, false);
        nxl_lock *next = new_lock(other, "k", 20000);
        nxl_holder holder = NXL_HOLDER_INIT;
        assert_eventually(nxl_lock_inspect(lock, &holder) == NXL_FREE);
        redis_freeze(&server);
        assert_result(nxl_lock_acquire(lock, 0), NXL_UNKNOWN, lock);
        redis_thaw(&server);
        /* Undone on its connection, which is still open. */
        assert_result(nxl_lock_acquire(next, 5000), NXL_OK, next);
        assert_result(nxl_lock_release(next), NXL_OK, next);

        /* Its connection is lost with the answer. */
        proxy_hold(proxy, PROXY_DOWN, true);
        assert_result(nxl_lock_acquire(lock, 0), NXL_UNKNOWN, lock);
        proxy_cut(proxy, false);
        proxy_hold(proxy, PROXY_DOWN, false);
        assert_eventually(nxl_lock_inspect(lock, &holder) == NXL_FREE);
        assert_int_equal(redis_lasting_keys(&server), 0);
        end(next, other);
        end(lock, client);
        proxy_stop(proxy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        live_test(stopped_for_longer_than_its_lease),
        live_test(forked_while_it_is_held),
        live_test(the_key_is_deleted),
        live_test(unanswered_and_undone),
    };
    return live_run_long("permit faults");
}

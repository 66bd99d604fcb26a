/* SPDX-License-Identifier: MIT */
/*
 * What a handle of each kind of lock, exclusive, shared and with permits, says
 * when its process was stopped or has forked. Keys that are deleted and replies
 * that are lost: live/scenes/permit_crossings.scenes. That no fault makes too
 * many holders, or keeps a waiter from the lock: the cells "kinds" of
 * tests/faults.
 */
#include "live/kinds_rig.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        live_test(stopped_for_longer_than_its_lease),
        live_test(forked_while_it_is_held),
    };
    return live_run_long("permit faults");
}

/* SPDX-License-Identifier: MIT */
/*
 * With every strategy 8 processes increment one number in a file under the
 * lock, 4000 times in all (NXLOCK_FULL=1: 10000), and no increment is lost;
 * some of them extend their leases. What becomes of a holder that stays beyond
 * its lease: leases_end in test_strategies_inspect.c.
 */
#include "live/strategies_rig.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { PROCESSES = 8, TTL = 60000 };
/* At each place. */
#define ROUNDS (getenv("NXLOCK_FULL") ? 1000 : 400)

static struct board { /* shared */
    atomic_bool go;
    int last; /* who wrote last; this and the next are written under the lock */
    int passed; /* increments behind one of another process */
} * board;

static void pause_us(long us)
{
    struct timespec t = {0, us * 1000};
    nanosleep(&t, NULL);
}

/* Exclusion is all that makes this right. */
static void increment(int file, int who)
{
    char text[24] = "";
    if (pread(file, text, sizeof(text) - 1, 0) <= 0)
        _exit(3);
    pause_us(50);
    int len =
        snprintf(text, sizeof(text), "%-20ld", strtol(text, NULL, 10) + 1);
    if (pwrite(file, text, (size_t)len, 0) != len)
        _exit(4);
    board->passed += board->last != who;
    board->last = who;
}

static void child(int file, int who)
{
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    nxl_client *client;
    nxl_lock *lock;
    options.ttl_ms = TTL;
    options.retry_min_ms = 1;
    options.retry_max_ms = 4;
    /* Many of them on few processors: an answer may take its time. */
    nxl_client_options patient = NXL_CLIENT_OPTIONS_INIT;
    patient.timeout_ms = 20000;
    if (nxl_client_new(&client, here_url, &patient) != NXL_OK ||
        nxl_lock_new(&lock, client, "number", &options) != NXL_OK)
        _exit(2);
    while (!atomic_load(&board->go))
        test_pause_ms(1);
    for (int round = 0; round < ROUNDS / PROCESSES; round++) {
        if (nxl_lock_acquire(lock, NXL_FOREVER) != NXL_OK)
            _exit(5);
        if (round % 8 == 0 && nxl_lock_extend(lock, TTL) != NXL_OK)
            _exit(6);
        increment(file, who);
        if (nxl_lock_release(lock) != NXL_OK)
            _exit(7);
        pause_us(200); /* let another one have it */
    }
    end(lock, client);
    _exit(0);
}

static void run_all(int file)
{
    pid_t pid[PROCESSES];
    int failed = 0;
    for (int i = 0; i < PROCESSES; i++) {
        pid[i] = test_fork();
        assert_true(pid[i] >= 0);
        if (pid[i] == 0)
            child(file, i);
    }
    atomic_store(&board->go, true);
    for (int i = 0; i < PROCESSES; i++) {
        int status = 0;
        assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
        if (status != 0)
            print_error("process %d ended with %#x\n", i, status);
        failed += status != 0;
    }
    assert_int_equal(failed, 0);
}

static void no_lost_update(void **state)
{
    char path[LOCAL_PATH], text[24] = "";
    struct ways before = ways_so_far();
    local_path(path, server.dir, "number");
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    assert_int_equal(pwrite(file, "0", 1, 0), 1);
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(board != MAP_FAILED);
    run_all(file);
    assert_true(pread(file, text, sizeof(text) - 1, 0) > 0);
    assert_int_equal(strtol(text, NULL, 10), ROUNDS);
    assert_true(board->passed >= PROCESSES - 1);
    assert_false(redis_exists(&server, "number"));
    struct ways after = ways_so_far();
    assert_true(after.n[here->release] - before.n[here->release] >= ROUNDS);
    /* In line most are granted otherwise. */
    assert_true(after.n[here->acquire] - before.n[here->acquire] >=
                (stamps_here() ? ROUNDS : 1));
    munmap(board, sizeof(*board));
    close(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        place_test(no_lost_update),
    };
    int rc = 0;
    places_run(rc);
    return rc;
}

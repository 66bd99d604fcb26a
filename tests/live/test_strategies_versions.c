/* SPDX-License-Identifier: MIT */
/*
 * Versions come and go while processes race for one counter, on the same
 * connections or on new ones: no update is lost, and nothing is left behind.
 */
#include "support/test.h"

#include "live/strategies_stops.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { PROCESSES = 4, INCREMENTS = 500, CHANGES = 200, PATIENCE_MS = 20000 };

struct board { /* shared */
    atomic_bool go, enough;
    atomic_int written, unknown, searching;
};

static void increment(int file)
{
    char text[24] = "";
    if (pread(file, text, sizeof(text) - 1, 0) <= 0)
        _exit(3);
    int len =
        snprintf(text, sizeof(text), "%-20ld", strtol(text, NULL, 10) + 1);
    if (pwrite(file, text, (size_t)len, 0) != len)
        _exit(4);
}

/* With the oldest ones, or with those that cannot change a time. */
static bool with_old;

/* Only what a lost connection explains. E_UNSUPPORTED, or E_DENIED when that
 * was the first word: the server changed again and again while one verb asked
 * for its ways, or a token was to be prolonged before 2.6. */
static void note(struct board *board, int rc)
{
    if (rc == NXL_UNKNOWN || rc == NXL_E_UNREACHABLE)
        atomic_fetch_add(&board->unknown, 1);
    else if (rc == NXL_E_UNSUPPORTED || rc == NXL_E_DENIED)
        atomic_fetch_add(&board->searching, 1);
    else if (rc != NXL_OK)
        _exit(100 + (rc < 0 ? -rc : 50 + rc));
}

/* Who has no answer to his last call takes along what it left behind: it
 * would stand in the others' way as long as the lease. */
static void leave_nothing(nxl_lock *lock, const char *label)
{
    int64_t limit = test_now_ms() + PATIENCE_MS;
    nxl_holder holder = NXL_HOLDER_INIT;
    for (;;) {
        int rc = nxl_lock_inspect(lock, &holder);
        if (rc == NXL_FREE ||
            (rc == NXL_OK &&
                (!holder.label || strcmp(holder.label, label) != 0)))
            return;
        if (test_now_ms() > limit)
            _exit(7);
        test_pause_ms(1);
    }
}

/* It begins when all are there: who is forked later would keep the proxy's
 * ends of its connections open. */
static void child(int file, struct board *board)
{
    char label[24];
    snprintf(label, sizeof(label), "process:%d", (int)getpid());
    while (!atomic_load(&board->go))
        test_pause_ms(1);
    nxl_client *client = client_here("timeout_ms=10000");
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    nxl_lock *lock;
    options.ttl_ms = 60000;
    options.label = label;
    options.retry_min_ms = 1;
    options.retry_max_ms = 4;
    if (nxl_lock_new(&lock, client, "number", &options) != NXL_OK)
        _exit(2);
    while (!atomic_load(&board->enough)) {
        /* BUSY for so long: somebody left it behind. */
        int rc = nxl_lock_acquire(lock, PATIENCE_MS);
        note(board, rc);
        if (rc != NXL_OK)
            continue;
        note(board, nxl_lock_extend(lock, 60000));
        increment(file);
        atomic_fetch_add(&board->written, 1);
        note(board, nxl_lock_release(lock));
    }
    leave_nothing(lock, label);
    end(lock, client);
    _exit(0);
}

static unsigned next_stop(unsigned at, unsigned more)
{
    while (more > 0) {
        at = (at + 1) % stop_count;
        more -= with_old || !is_old(stops[at]);
    }
    return at;
}

/* On a busy machine versions would come faster than anything is done. */
static void let_one_write(struct board *board)
{
    int before = atomic_load(&board->written);
    for (int i = 0; i < 100 && atomic_load(&board->written) == before; i++)
        test_pause_ms(1);
}

/* How often another version came. */
static int racers(pid_t *pid, int file, struct board *board)
{
    for (int i = 0; i < PROCESSES; i++) {
        pid[i] = test_fork();
        assert_true(pid[i] >= 0);
        if (pid[i] == 0)
            child(file, board);
    }
    int64_t limit = test_now_ms() + 2 * PATIENCE_MS;
    unsigned at = 0;
    int changes = 0;
    atomic_store(&board->go, true);
    while (changes < CHANGES || atomic_load(&board->written) < INCREMENTS ||
           atomic_load(&board->unknown) == 0) {
        if (test_now_ms() > limit)
            break;
        at = next_stop(at, 1 + (unsigned)changes % 3);
        go_to(stops[at], changes % 2 == 0);
        test_pause_ms(1 + changes % 7);
        if (++changes >= CHANGES)
            let_one_write(board);
    }
    atomic_store(&board->enough, true);
    return changes;
}

static int processes_failed(const pid_t *pid)
{
    int failed = 0;
    for (int i = 0; i < PROCESSES; i++) {
        int status = 0;
        assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
        if (status != 0)
            print_error("process %d ended with %#x\n", i, status);
        failed += status != 0;
    }
    return failed;
}

static void no_lost_update(void **state)
{
    with_old = *(bool *)*state;
    place_clean(state);
    char path[LOCAL_PATH], text[24] = "";
    pid_t pid[PROCESSES];
    struct board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(board != MAP_FAILED);
    local_path(path, server.dir, "number");
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    assert_int_equal(pwrite(file, "0", 1, 0), 1);
    int changes = racers(pid, file, board);
    int failed = processes_failed(pid), written = board->written;
    print_message("%d increments, %d changes of version, %d calls without an "
                  "answer, %d without a way\n",
        written, changes, (int)board->unknown, (int)board->searching);
    assert_int_equal(failed, 0);
    assert_true(pread(file, text, sizeof(text) - 1, 0) > 0);
    assert_int_equal(strtol(text, NULL, 10), written);
    assert_true(written >= INCREMENTS && changes >= CHANGES);
    assert_true(board->unknown > 0);
    munmap(board, sizeof(*board));
    close(file);
    go_to(&plain, true);
}

int main(void)
{
    static bool without = false, with = true;
    const struct CMUnitTest tests[] = {
        {"no lost update", no_lost_update, NULL, NULL, &without},
        {"no lost update, with the oldest", no_lost_update, NULL, NULL, &with},
    };
    find_stops();
    any_form = true;
    here = &plain;
    return cmocka_run_group_tests_name(
        "versions", tests, place_open, place_close);
}

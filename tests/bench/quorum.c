/* SPDX-License-Identifier: MIT */
/* Readers and writers of one name over three servers, each a process: how long
 * they wait. They record it in shared memory.
 *
 * Invariant: no crowd is measured in which a writer holds the lock beside
 * somebody: that is an error. */
#include "delay.h"
#include "cases.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { VOTERS = 3, READERS = 8, WRITERS_MAX = 2 };
enum { TTL_MS = 20000, HOLD_US = 5000, WRITER_RESTS_US = 5000 };

/* Of one process, in the window. */
struct place {
    _Atomic uint64_t grants, longest_ns;
    struct histogram waits;
};

static struct board {
    _Atomic uint64_t begin_ns, end_ns; /* both 0: it is not open yet */
    atomic_bool stop;
    atomic_uint ready;
    atomic_int readers, writers; /* that hold the lock */
    _Atomic uint64_t broken, failures;
    char failure[200];
    struct place places[READERS + WRITERS_MAX];
} * board;

/* ----------------------------------------------------------------- members */

static void record(struct place *place, uint64_t asked, uint64_t granted)
{
    uint64_t took = granted - asked;

    if (board->begin_ns == 0 || asked < board->begin_ns ||
        granted > board->end_ns)
        return;
    place->grants++;
    histogram_add(&place->waits, took);
    if (took > place->longest_ns)
        place->longest_ns = took;
}

static void fail_turn(nxl_lock *lock)
{
    if (board->failures++ == 0)
        snprintf(board->failure, sizeof(board->failure), "%s",
            nxl_lock_errmsg(lock));
}

static void take_turn(bool writes, struct place *place, nxl_lock *lock)
{
    atomic_int *holders = writes ? &board->writers : &board->readers;
    uint64_t asked = bench_now_ns();

    if (nxl_lock_acquire(lock, 60000) != NXL_OK) {
        fail_turn(lock);
        return;
    }
    record(place, asked, bench_now_ns());
    ++*holders;
    if (board->writers > 1 || (board->writers && board->readers))
        board->broken++;
    case_pause_us(HOLD_US);
    if (!nxl_lock_held(lock))
        fail_turn(lock);
    --*holders;
    if (nxl_lock_release(lock) != NXL_OK)
        fail_turn(lock);
    if (writes)
        case_pause_us(WRITER_RESTS_US);
}

static void become_member(int number, const char *url)
{
    bool writes = number >= READERS;
    struct lock_kind kind = {0, !writes};
    nxl_client *client = case_client(url);
    nxl_lock *lock = case_lock(client, CASE_NAME, &kind, TTL_MS);

    board->ready++;
    while (!board->stop)
        take_turn(writes, &board->places[number], lock);
    nxl_lock_free(lock);
    nxl_client_free(client);
    _exit(0);
}

/* ------------------------------------------------------------------- crowd */

static int begin_crowd(pid_t *pids, int count, const char *url)
{
    pid_t parent = getpid();

    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED)
        return case_fail("out of memory");
    fflush(NULL);
    for (int i = 0; i < count; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            prctl(PR_SET_TIMERSLACK, 1ul);
            if (getppid() == parent)
                become_member(i, url);
            _exit(1);
        }
    }
    for (int i = 0; board->ready < (unsigned)count; i++) {
        if (i > 20000)
            return case_fail("the crowd does not begin");
        case_pause_us(1000);
    }
    case_pause_us(500000);
    return 0;
}

/* Opens the window for so long. */
static void measure_for(double seconds)
{
    uint64_t now = bench_now_ns();

    board->end_ns = now + (uint64_t)(seconds * 1e9);
    board->begin_ns = now;
    case_pause_us((long)(seconds * 1e6));
}

static int end_crowd(const pid_t *pids, int count)
{
    board->stop = true;
    for (int i = 0; i < count; i++) {
        int status = -1;

        waitpid(pids[i], &status, 0);
        if (status != 0) {
            fprintf(stderr, "a process ended with status %d\n", status);
            return -1; /* it has said why, unless it crashed */
        }
    }
    if (board->broken) {
        fprintf(stderr, "HARM: %lu times too many held the lock\n",
            (unsigned long)board->broken);
        return -1;
    }
    if (board->failures)
        return case_fail("%lu calls failed: %s", (unsigned long)board->failures,
            board->failure);
    return 0;
}

/* Of the members from first on, readers or writers. */
static void print_waits(int writers, int first, int count)
{
    static struct histogram waits;
    const char *who = first < READERS ? "readers" : "writers";
    uint64_t grants = 0, longest_ns = 0;
    char what[80];

    memset(&waits, 0, sizeof(waits));
    for (int i = first; i < first + count; i++) {
        const struct place *place = &board->places[i];

        histogram_merge(&waits, &place->waits);
        grants += place->grants;
        if (place->longest_ns > longest_ns)
            longest_ns = place->longest_ns;
    }
    snprintf(what, sizeof(what), "writers: %d; %s wait, p50 of %lu", writers,
        who, (unsigned long)grants);
    case_figure(what, " ms", histogram_us(&waits, 0.5) / 1000, 0);
    case_figure("p99", " ms", histogram_us(&waits, 0.99) / 1000, 1000);
    case_figure("the longest", " ms", (double)longest_ns / 1e6, 0);
}

static int one_crowd(const char *url, int writers)
{
    pid_t pids[READERS + WRITERS_MAX];
    int count = READERS + writers;
    int rc = begin_crowd(pids, count, url);

    if (rc == 0) {
        measure_for(cases_run.seconds);
        print_waits(writers, 0, READERS);
        print_waits(writers, READERS, writers);
    }
    rc |= end_crowd(pids, count);
    munmap(board, sizeof(*board));
    return rc;
}

int case_quorum(void)
{
    struct redis servers[VOTERS] = {{0}};
    struct delay delays[VOTERS] = {{0}};
    double load[1] = {0};
    char url[200] = "";
    int rc = 0;

    for (int i = 0; rc == 0 && i < VOTERS; i++) {
        rc = redis_start(&servers[i], NULL);
        if (rc == 0)
            rc = delay_start(&delays[i], servers[i].plain_port) ||
                 delay_adjust(&delays[i], DELAY_FAR_US);
        snprintf(url + strlen(url), sizeof(url) - strlen(url),
            "%sredis://127.0.0.1:%d", i ? "," : "", delays[i].port);
    }
    /* Without a pause after the start of the servers. */
    snprintf(url + strlen(url), sizeof(url) - strlen(url),
        "?timeout_ms=2000&guard_restarts=off");
    for (int i = 0; rc == 0 && i < cases_run.rounds; i++) {
        (void)getloadavg(load, 1);
        case_note("load %.2f", load[0]);
        rc = one_crowd(url, 1) || one_crowd(url, 2);
    }
    for (int i = 0; i < VOTERS; i++) {
        delay_stop(&delays[i]);
        redis_stop(&servers[i]);
    }
    return rc ? -1 : 0;
}

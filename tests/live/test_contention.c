/* SPDX-License-Identifier: MIT */
/*
 * Processes that increment one number in a file under the lock: no increment
 * is lost, and the times in which they rely on the lock never overlap. The
 * same while the server is frozen for longer than a call waits, and its
 * scripts are taken away.
 */
#include "support/test.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "live/live_rig.h"

enum { PROCESSES = 8, ROUNDS = 2000, SHARE = ROUNDS / PROCESSES };
/* Nobody begins to write with less of the lease left: the scheduler may stop
 * a process between its look at the clock and the write. */
enum { MARGIN_MS = 50 };

/* When one process relied on the lock: from the return of its acquire until
 * it called release, or until its deadline. */
struct interval {
    uint64_t begin, end;
    int who;
};

struct board {
    struct interval interval[PROCESSES][SHARE];
    int written[PROCESSES]; /* increments */
    int unknown[PROCESSES]; /* calls without an answer */
    int lost[PROCESSES];    /* leases that ran out while held */
};

struct race {
    struct board *board; /* shared */
    int file;
    const char *parameters;
    int64_t ttl_ms;
    bool oversleeps; /* at times a holder stays beyond its lease */
    pid_t pid[PROCESSES];
};

/* ------------------------------------------------------------- a process */

static void pause_us(long us)
{
    struct timespec t = {0, us * 1000};
    nanosleep(&t, NULL);
}

/* Exclusion is all that makes this right. */
static bool increment(int file)
{
    char text[24] = "";
    if (pread(file, text, sizeof(text) - 1, 0) <= 0)
        return false;
    pause_us(100);
    int len =
        snprintf(text, sizeof(text), "%-20ld", strtol(text, NULL, 10) + 1);
    return pwrite(file, text, (size_t)len, 0) == len;
}

static nxl_lock *child_lock(const struct race *race, nxl_client **client)
{
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    nxl_lock *lock;
    char url[512];
    options.ttl_ms = race->ttl_ms;
    options.retry_min_ms = 1;
    options.retry_max_ms = 4;
    snprintf(url, sizeof(url), "%s%s", server_url, race->parameters);
    if (nxl_client_new(client, url, NULL) != NXL_OK ||
        nxl_lock_new(&lock, *client, "number", &options) != NXL_OK)
        _exit(2);
    return lock;
}

/* One hold; false: this time it was not to be had. */
static bool one_hold(struct race *race, int who, int round, nxl_lock *lock)
{
    struct interval *interval = &race->board->interval[who][round];
    int rc = nxl_lock_acquire(lock, NXL_FOREVER);
    race->board->unknown[who] += rc == NXL_UNKNOWN;
    if (rc != NXL_OK)
        return false;
    interval->who = who;
    interval->begin = nxl_now_ns();
    if (nxl_lock_remaining_ms(lock) >= MARGIN_MS) {
        if (!increment(race->file))
            _exit(3);
        race->board->written[who]++;
    }
    if (race->oversleeps && round % (SHARE / 2) == SHARE / 2 - 1)
        test_pause_ms((int)race->ttl_ms * 2);
    interval->end = nxl_now_ns();
    if (nxl_lock_deadline(lock) < interval->end)
        interval->end = nxl_lock_deadline(lock);
    rc = nxl_lock_release(lock);
    race->board->unknown[who] += rc == NXL_UNKNOWN;
    race->board->lost[who] += rc == NXL_LOST;
    pause_us(200); /* let another one have it */
    return true;
}

static void child(struct race *race, int who)
{
    nxl_client *client;
    nxl_lock *lock = child_lock(race, &client);
    for (int round = 0; round < SHARE;)
        round += one_hold(race, who, round, lock);
    end(lock, client);
    _exit(0);
}

/* --------------------------------------------------------------- the race */

static void race_start(
    struct race *race, const char *parameters, int64_t ttl_ms, bool oversleeps)
{
    char path[LOCAL_PATH];
    *race = (struct race){
        .parameters = parameters, .ttl_ms = ttl_ms, .oversleeps = oversleeps};
    race->board = mmap(NULL, sizeof(*race->board), PROT_READ | PROT_WRITE,
        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(race->board != MAP_FAILED);
    local_path(path, server.dir, "number");
    race->file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(race->file >= 0);
    assert_int_equal(pwrite(race->file, "0", 1, 0), 1);
    for (int i = 0; i < PROCESSES; i++) {
        race->pid[i] = test_fork();
        assert_true(race->pid[i] >= 0);
        if (race->pid[i] == 0)
            child(race, i);
    }
}

/* True when all have ended; with wait, waits for it. */
static bool race_over(struct race *race, bool wait)
{
    bool over = true;
    for (int i = 0; i < PROCESSES; i++) {
        int status = 0;
        if (race->pid[i] == 0)
            continue;
        if (waitpid(race->pid[i], &status, wait ? 0 : WNOHANG) == 0) {
            over = false;
            continue;
        }
        race->pid[i] = 0;
        assert_int_equal(status, 0);
    }
    return over;
}

static int by_begin(const void *a, const void *b)
{
    const struct interval *left = a, *right = b;
    return (left->begin > right->begin) - (left->begin < right->begin);
}

/* Returns how often the lock went from one process to another. */
static int assert_exclusive(struct race *race)
{
    struct interval *all = race->board->interval[0];
    int changes = 0;
    qsort(all, ROUNDS, sizeof(*all), by_begin);
    for (int i = 1; i < ROUNDS; i++) {
        changes += all[i].who != all[i - 1].who;
        if (all[i].begin < all[i - 1].end)
            fail_msg("two held at once, for %llu ns",
                (unsigned long long)(all[i - 1].end - all[i].begin));
    }
    return changes;
}

static int sum(const int *of_each)
{
    int total = 0;
    for (int i = 0; i < PROCESSES; i++)
        total += of_each[i];
    return total;
}

/* Every race was one, and hurt nobody. */
static void race_end(
    struct race *race, int least_written, int least_unknown, int least_lost)
{
    const struct board *board = race->board;
    char text[24] = "";
    int written = sum(board->written), unknown = sum(board->unknown);
    int lost = sum(board->lost), changes = assert_exclusive(race);
    print_message("%d increments, %d changes of hands, %d calls without an "
                  "answer, %d leases lost\n",
        written, changes, unknown, lost);
    assert_true(pread(race->file, text, sizeof(text) - 1, 0) > 0);
    assert_int_equal(strtol(text, NULL, 10), written);
    assert_true(changes >= ROUNDS / 4);
    assert_true(written >= least_written);
    assert_true(unknown >= least_unknown);
    assert_true(lost >= least_lost);
    /* What the last ones may have left is undone by nxl_client_free. */
    assert_false(redis_exists(&server, "number"));
    close(race->file);
    munmap(race->board, sizeof(*race->board));
}

static void test_no_lost_update(void **state)
{
    struct race race;
    race_start(&race, "", 10000, false);
    race_over(&race, true);
    race_end(&race, ROUNDS, 0, 0);
}

/* The server is frozen for longer than calls wait. */
static void trouble(
    struct race *race, int64_t ttl_ms, bool oversleeps, int frozen_ms)
{
    race_start(race, "?timeout_ms=20", ttl_ms, oversleeps);
    for (int i = 0; !race_over(race, false); i++) {
        redis_freeze(&server);
        test_pause_ms(frozen_ms);
        redis_thaw(&server);
        if (i % 2 == 0)
            redis_run(&server, "SCRIPT", "FLUSH", NULL);
        test_pause_ms(50);
    }
}

static void test_frozen_at_times(void **state)
{
    struct race race;
    trouble(&race, 5000, false, 40);
    race_end(&race, ROUNDS * 9 / 10, 3, 0);
}

/* Leases end while the server stands still, and while holders sleep. */
static void test_short_leases(void **state)
{
    struct race race;
    trouble(&race, 2 * MARGIN_MS, true, 3 * MARGIN_MS);
    race_end(&race, ROUNDS / 2, 3, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        live_test(test_no_lost_update),
        live_test(test_frozen_at_times),
        live_test(test_short_leases),
    };
    return live_run_long("contention");
}

/* SPDX-License-Identifier: MIT */
/*
 * With every strategy 8 processes increment one number in a file under the
 * lock, 5600 times in all (NXLOCK_FULL=1: 14000), and no increment is lost;
 * some of them extend their leases. In the second race the leases are short,
 * and everybody stays beyond his once: no two leases were held at the same
 * time, however late anybody came to know. A lease that is a time has whole
 * seconds: there one stays so long that it is taken over from him, but at 2.2,
 * which is as 2.4. (Without WATCH nobody does: of those that find it past, the
 * last one's time stands, and blocks them all. See stamps_bare.)
 */
#include "live/strategies_rig.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { PROCESSES = 8, ROUNDS_FULL = 1000, SHORT_ROUNDS_FULL = 320 };
/* At each place. */
#define ROUNDS (getenv("NXLOCK_FULL") ? ROUNDS_FULL : 400)
#define SHORT_ROUNDS (getenv("NXLOCK_FULL") ? SHORT_ROUNDS_FULL : 160)
enum { SHORT_TTL_MS = 50 };

/* When a process was entitled: from the answer until it released, or until
 * its deadline. */
struct hold {
    uint64_t from, until;
};

struct race {
    int64_t ttl_ms;
    int rounds; /* of each process */
    bool oversleeps;
    int file;
    struct board { /* shared */
        atomic_bool go;
        atomic_bool asleep; /* the one whom somebody is to follow */
        int last;           /* who wrote last; written under the lock */
        struct tally {
            int written, lost, passed; /* passed: from another process */
        } tally[PROCESSES];
        struct hold hold[ROUNDS_FULL];
    } * board;
};

static void pause_us(long us)
{
    struct timespec t = {0, us * 1000};
    nanosleep(&t, NULL);
}

/* Exclusion is all that makes this right. */
static void increment(int file)
{
    char text[24] = "";
    if (pread(file, text, sizeof(text) - 1, 0) <= 0)
        _exit(3);
    pause_us(50);
    int len =
        snprintf(text, sizeof(text), "%-20ld", strtol(text, NULL, 10) + 1);
    if (pwrite(file, text, (size_t)len, 0) != len)
        _exit(4);
}

/* Of a lease as long as the test: who has it writes. */
static void write_it(struct race *race, int who)
{
    struct tally *tally = &race->board->tally[who];
    tally->passed += race->board->last != who;
    race->board->last = who;
    increment(race->file);
    tally->written++;
}

static bool taken_over(int who)
{
    return stamps_here() && !bare_here() && here->age != AGED_2_2 && who == 0;
}

/* Until somebody else has it, where the key alone would not tell that its
 * time is over. */
static void oversleep(struct race *race, int who, nxl_lock *lock)
{
    int64_t began = test_now_ms();
    nxl_holder holder = NXL_HOLDER_INIT;

    if (taken_over(who))
        atomic_store(&race->board->asleep, true);
    test_pause_ms(3 * (int)race->ttl_ms);
    while (taken_over(who) && test_now_ms() - began < 60000) {
        int rc = nxl_lock_inspect(lock, &holder);
        if (rc == NXL_FREE ||
            (rc == NXL_OK && !nxl_holder_is(&holder, nxl_lock_token(lock))))
            return;
        test_pause_ms(20);
    }
}

static void one_hold(struct race *race, int who, int round, nxl_lock *lock)
{
    struct tally *tally = &race->board->tally[who];
    struct hold *hold = &race->board->hold[who * race->rounds + round];
    int rc;
    do /* a short lease may be over when its answer is read */
        rc = nxl_lock_acquire(lock, NXL_FOREVER);
    while (rc == NXL_LOST && race->oversleeps);
    if (rc != NXL_OK)
        _exit(5);
    hold->from = nxl_now_ns();
    uint64_t deadline = nxl_lock_deadline(lock);
    if (round % 8 == 0) {
        rc = nxl_lock_extend(lock, 2 * race->ttl_ms);
        tally->lost += rc == NXL_LOST;
        if (rc == NXL_OK)
            deadline = nxl_lock_deadline(lock);
    }
    if (!race->oversleeps)
        write_it(race, who);
    else if (round == race->rounds / 2 + 1 && (who == 0 || !stamps_here()))
        oversleep(race, who, lock);
    hold->until = nxl_now_ns();
    if (hold->until > deadline)
        hold->until = deadline;
    /* Late, too: another one may hold it then. */
    rc = nxl_lock_release(lock);
    tally->lost += rc == NXL_LOST;
    if (rc != NXL_OK && rc != NXL_LOST && rc != NXL_E_INVALID)
        _exit(6);
    pause_us(200); /* let another one have it */
}

static void child(struct race *race, int who)
{
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    nxl_client *client;
    nxl_lock *lock;
    options.ttl_ms = race->ttl_ms;
    options.retry_min_ms = 1;
    options.retry_max_ms = 4;
    /* Many of them on few processors: an answer may take its time. */
    nxl_client_options patient = NXL_CLIENT_OPTIONS_INIT;
    patient.timeout_ms = 20000;
    if (nxl_client_new(&client, here_url, &patient) != NXL_OK ||
        nxl_lock_new(&lock, client, "number", &options) != NXL_OK)
        _exit(2);
    while (!atomic_load(&race->board->go))
        test_pause_ms(1);
    for (int round = 0; round < race->rounds; round++) {
        /* Somebody has to be left who wants it. */
        while (round == race->rounds - 1 && who != 0 && race->oversleeps &&
               taken_over(0) && !atomic_load(&race->board->asleep))
            test_pause_ms(1);
        one_hold(race, who, round, lock);
    }
    end(lock, client);
    _exit(0);
}

static void *shared(size_t size)
{
    void *memory = mmap(
        NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    return memory;
}

static void run_all(struct race *race)
{
    pid_t pid[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) {
        pid[i] = test_fork();
        assert_true(pid[i] >= 0);
        if (pid[i] == 0)
            child(race, i);
    }
    atomic_store(&race->board->go, true);
    int failed = 0;
    for (int i = 0; i < PROCESSES; i++) {
        int status = 0;
        assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
        if (status != 0)
            print_error("process %d ended with %#x\n", i, status);
        failed += status != 0;
    }
    assert_int_equal(failed, 0);
}

static int by_begin(const void *a, const void *b)
{
    const struct hold *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

/* A hold that was over before it was known of excludes nobody. */
static int assert_one_at_a_time(struct race *race)
{
    struct hold *hold = race->board->hold;
    int count = PROCESSES * race->rounds, some = 0;
    uint64_t until = 0;
    qsort(hold, (size_t)count, sizeof(*hold), by_begin);
    for (int i = 0; i < count; i++) {
        if (hold[i].until <= hold[i].from)
            continue;
        assert_true(hold[i].from >= until);
        until = hold[i].until;
        some++;
    }
    assert_true(some > 0);
    return some;
}

/* How many increments were made, none of them in vain. */
static struct tally run_race(struct race *race)
{
    char path[LOCAL_PATH], text[24] = "";
    int64_t start = test_now_ms();
    local_path(path, server.dir, "number");
    race->file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(race->file >= 0);
    assert_int_equal(pwrite(race->file, "0", 1, 0), 1);
    race->board = shared(sizeof(*race->board));
    run_all(race);
    int holds = assert_one_at_a_time(race);
    struct tally sum = {0};
    for (int i = 0; i < PROCESSES; i++) {
        sum.written += race->board->tally[i].written;
        sum.lost += race->board->tally[i].lost;
        sum.passed += race->board->tally[i].passed;
    }
    print_message("%s: %d holds, %d increments, %d changes of hands, %d leases "
                  "lost, %lld ms\n",
        here->name, holds, sum.written, sum.passed, sum.lost,
        (long long)(test_now_ms() - start));
    assert_true(pread(race->file, text, sizeof(text) - 1, 0) > 0);
    assert_int_equal(strtol(text, NULL, 10), sum.written);
    munmap(race->board, sizeof(*race->board));
    close(race->file);
    return sum;
}

static void no_lost_update(void **state)
{
    struct race race = {.ttl_ms = 60000, .rounds = ROUNDS / PROCESSES};
    struct ways before = ways_so_far();
    struct tally sum = run_race(&race);
    struct ways after = ways_so_far();
    assert_int_equal(sum.written, ROUNDS);
    assert_int_equal(sum.lost, 0);
    assert_true(sum.passed >= PROCESSES - 1);
    assert_false(redis_exists(&server, "number"));
    assert_true(after.n[here->release] - before.n[here->release] >= ROUNDS);
    /* In line most are granted otherwise. */
    assert_true(after.n[here->acquire] - before.n[here->acquire] >=
                (stamps_here() ? ROUNDS : 1));
}

static void short_leases(void **state)
{
    /* A time that outlives its lease by seconds is not to be met often; and
     * without WATCH two may replace it at once, see timestamps_published. */
    if (bare_here())
        return;
    struct race race = {.ttl_ms = (stamps_here() ? 10 : 1) * SHORT_TTL_MS,
        .rounds = SHORT_ROUNDS / PROCESSES,
        .oversleeps = true};
    struct tally sum = run_race(&race);
    assert_true(sum.lost >= (stamps_here() ? taken_over(0) : PROCESSES));
    assert_eventually(!redis_exists(&server, "number"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        place_test(no_lost_update),
        place_test(short_leases),
    };
    int rc = 0;
    places_run(rc);
    return rc;
}

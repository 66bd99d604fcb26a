/* SPDX-License-Identifier: MIT */
/*
 * With every strategy processes increment one number in a file under the lock,
 * and no increment is lost; some of them extend their leases. Where a lock is a
 * time, others beside them lock by SETNX and GETSET of a unix time in whole
 * seconds, as that scheme was published (scenes/timestamps_published has its
 * stories), and one of each kind dies with the lock. NXLOCK_FULL=1: more of
 * all. What becomes of a holder that stays beyond its lease: scenes/strategies.
 */
#include "live/strategies_rig.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { RACERS = 8, RACES = 3 };

static struct race {
    int ours, classics;
    int share; /* increments of each */
    int64_t ttl_ms;
    const char *parameters;
    int file;
} race;

static struct board { /* shared */
    atomic_bool go;
    /* A process wrote after its lease had ended, because the machine had paused
     * it: an update lost then proves nothing. */
    atomic_bool overslept;
    int last; /* who wrote last; this and the next are written under the lock */
    int passed; /* increments behind one of another process */
} * board;

static void pause_us(long us)
{
    struct timespec t = {0, us * 1000};
    nanosleep(&t, NULL);
}

/* Exclusion is all that makes this right. */
static void increment(int who)
{
    char text[24] = "";
    if (pread(race.file, text, sizeof(text) - 1, 0) <= 0)
        _exit(2);
    pause_us(50);
    int len =
        snprintf(text, sizeof(text), "%-20ld", strtol(text, NULL, 10) + 1);
    if (pwrite(race.file, text, (size_t)len, 0) != len)
        _exit(3);
    board->passed += board->last != who;
    board->last = who;
}

/* Of each kind one dies with the lock once, if there are two kinds. */
static bool dies(int who, int round)
{
    return race.classics > 0 && (who == 0 || who == race.ours) &&
           round == race.share / 2;
}

/* ------------------------------------------------------------------- ours */

static nxl_lock *race_lock(void)
{
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    nxl_lock *lock;
    options.ttl_ms = race.ttl_ms;
    options.retry_min_ms = 1;
    options.retry_max_ms = 8;
    if (nxl_lock_new(&lock, client_here(race.parameters), "k", &options) !=
        NXL_OK)
        _exit(4);
    return lock;
}

/* A machine that is busy may have used up a short lease before it wrote. */
static bool is_too_late(const nxl_lock *lock)
{
    return race.classics > 0 && nxl_lock_remaining_ms(lock) < 500;
}

static void run_ours(int who)
{
    nxl_lock *lock = race_lock();
    for (int round = 0; round < race.share;) {
        int rc = nxl_lock_acquire(lock, NXL_FOREVER);
        if (rc != NXL_OK && race.classics > 0)
            continue;
        if (rc != NXL_OK)
            _exit(5);
        if (is_too_late(lock)) {
            if (nxl_lock_release(lock) < NXL_OK)
                _exit(6);
            continue;
        }
        if (race.classics == 0 && round % 8 == 0 &&
            nxl_lock_extend(lock, race.ttl_ms) != NXL_OK)
            _exit(7);
        increment(who);
        if (!nxl_lock_held(lock))
            board->overslept = true;
        round++;
        if (dies(who, round))
            lock = race_lock();
        else if (nxl_lock_release(lock) < NXL_OK)
            _exit(8);
        pause_us(200); /* let another one have it */
    }
    _exit(0);
}

/* ------------------------------------ programs of the published scheme */

/* They lock "k" by SETNX and GETSET of the unix time in whole seconds at which
 * the lock is over, and release it by a plain DEL well before that. */
enum { CLASSIC_S = 3 };

struct classic {
    redisContext *c;
    int64_t end_s; /* of what it holds; 0: nothing */
};

/* A number as Python's int() reads it: blanks around it are skipped, and
 * anything else ends the program. */
static int64_t classic_int(const char *text)
{
    char *end;
    long long number = strtoll(text, &end, 10);
    if (end == text || end[strspn(end, " \t\n\v\f\r")] != '\0')
        _exit(9);
    return number;
}

/* Its first word is the command, the value a time or, if 0, not given. The
 * number that is answered; 0: nothing. */
static int64_t classic_send(
    struct classic *who, const char *command, int64_t value)
{
    redisReply *reply =
        value ? redisCommand(who->c, "%s k %lld", command, (long long)value)
              : redisCommand(who->c, "%s k", command);
    if (!reply || reply->type == REDIS_REPLY_ERROR)
        _exit(10);
    int64_t answer = reply->type == REDIS_REPLY_INTEGER ? reply->integer
                     : reply->type == REDIS_REPLY_STRING
                         ? classic_int(reply->str)
                         : 0;
    freeReplyObject(reply);
    return answer;
}

/* SETNX; or, of a time in the past, GETSET, which decides. */
static bool classic_try(struct classic *who)
{
    int64_t end_s = time(NULL) + CLASSIC_S + 1;
    bool got = classic_send(who, "SETNX", end_s) == 1;
    int64_t there = got ? 0 : classic_send(who, "GET", 0);
    if (there != 0 && there < time(NULL)) {
        end_s = time(NULL) + CLASSIC_S + 1;
        got = classic_send(who, "GETSET", end_s) < time(NULL);
    }
    if (got)
        who->end_s = end_s;
    return got;
}

static void run_classic(int who)
{
    struct classic c = {.c = redisConnectUnix(servers[0].path)};
    for (int round = 0; round < race.share;) {
        if (!classic_try(&c)) {
            pause_us(3000);
            continue;
        }
        increment(who);
        if (time(NULL) >= c.end_s)
            board->overslept = true;
        if (!dies(who, round) && time(NULL) + 1 < c.end_s)
            classic_send(&c, "DEL", 0);
        round++;
        pause_us(300);
    }
    _exit(0);
}

/* ------------------------------------------------------------------ races */

static void run_all(void)
{
    pid_t pid[RACERS];
    int count = race.ours + race.classics, failed = 0;
    for (int i = 0; i < count; i++) {
        pid[i] = test_fork();
        assert_true(pid[i] >= 0);
        if (pid[i] != 0)
            continue;
        while (!board->go)
            test_pause_ms(1);
        if (i < race.ours)
            run_ours(i);
        run_classic(i);
    }
    board->go = true;
    for (int i = 0; i < count; i++) {
        int status = 0;
        assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
        if (status != 0)
            print_error("process %d ended with %#x\n", i, status);
        failed += status != 0;
    }
    assert_int_equal(failed, 0);
}

/* True: no update was lost. */
static bool no_update_is_lost(void)
{
    char path[LOCAL_PATH], text[24] = "";
    local_path(path, servers[0].dir, "number");
    race.file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(race.file >= 0);
    assert_int_equal(pwrite(race.file, "0", 1, 0), 1);
    memset(board, 0, sizeof(*board));
    run_all();
    assert_true(pread(race.file, text, sizeof(text) - 1, 0) > 0);
    close(race.file);
    return strtol(text, NULL, 10) == (race.ours + race.classics) * race.share;
}

static void of_ours(void **state)
{
    struct ways before = ways_so_far();
    int share = getenv("NXLOCK_FULL") ? 125 : 50, rounds = RACERS * share;
    race = (struct race){.ours = RACERS,
        .share = share,
        .ttl_ms = 60000,
        .parameters = "timeout_ms=20000"}; /* many on few processors */
    assert_true(no_update_is_lost());
    assert_true(board->passed >= RACERS - 1);
    assert_false(redis_exists(&servers[0], "k"));
    struct ways after = ways_so_far();
    assert_true(after.n[here->release] - before.n[here->release] >= rounds);
    /* In line most are granted otherwise. */
    assert_true(after.n[here->acquire] - before.n[here->acquire] >=
                (stamps_here() ? rounds : 1));
}

/* Without WATCH ours take over for max_ttl_ms, and what the loser wrote stays:
 * the more of them find a time past, the more often all wait for the next one.
 */
static void of_ours_and_the_published_scheme(void **state)
{
    bool few = bare_here() && !getenv("NXLOCK_FULL");
    race = (struct race){.ours = few ? 2 : 3,
        .classics = few ? 1 : 2,
        .share = 120,
        .ttl_ms = 2000,
        .parameters = bare_here() ? "max_ttl_ms=2000&timeout_ms=20000"
                                  : "timeout_ms=20000"};
    for (int i = 0; !no_update_is_lost(); i++) {
        if (!board->overslept || i == RACES)
            fail_msg("an update was lost");
        redis_run(&servers[0], "DEL", "k", NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        place_test(of_ours),
        cmocka_unit_test_setup(of_ours_and_the_published_scheme, place_clean),
    };
    int rc = 0;
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED)
        return 1;
    for (here = strategy_places; here < strategy_places + PLACES; here++)
        rc += test_run_group(here->name, tests, *query_here() == '\0' ? 1 : 2,
            place_open, place_close);
    return rc;
}

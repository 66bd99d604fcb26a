/* SPDX-License-Identifier: MIT */
/*
 * A race with other programs that lock by SETNX and GETSET of a unix time in
 * whole seconds, as the scheme was published (scenes/timestamps_published has
 * its stories): no update is lost. NXLOCK_FULL=1 races with more of them where
 * there is no WATCH.
 */
#include "live/live_rig.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#define STAMPS "scheme=timestamp"

enum { CLASSICS = 2, OURS = 3, SHARE = 120, RACES = 3 };

/* ------------------------------------- a program of the published scheme */

/* It locks "k" by SETNX and GETSET of the unix time in whole seconds at which
 * its lock is over, and releases it by a plain DEL well before that. */

enum { CLASSIC_S = 3 };

struct classic {
    redisContext *c;
    int64_t end_s; /* of what it holds; 0: nothing */
    int64_t ttl_s;
};

static int64_t classic_now(void)
{
    return (int64_t)time(NULL);
}

/* A number as Python's int() reads it: blanks around it are skipped, and
 * anything else ends the program. */
static int64_t classic_int(const char *text)
{
    char *end;
    long long number = strtoll(text, &end, 10);
    if (end == text || end[strspn(end, " \t\n\v\f\r")] != '\0')
        _exit(5);
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
        _exit(4);
    int64_t answer = reply->type == REDIS_REPLY_INTEGER ? reply->integer
                     : reply->type == REDIS_REPLY_STRING
                         ? classic_int(reply->str)
                         : 0;
    freeReplyObject(reply);
    return answer;
}

/* It has read a time in the past: the step that decides. */
static bool classic_take_over(struct classic *who)
{
    int64_t end_s = classic_now() + who->ttl_s + 1;
    bool got = classic_send(who, "GETSET", end_s) < classic_now();
    if (got)
        who->end_s = end_s;
    return got;
}

/* What stands there, as it reads it. */
static bool classic_is_past(struct classic *who)
{
    int64_t there = classic_send(who, "GET", 0);
    return there != 0 && there < classic_now();
}

static bool classic_try(struct classic *who)
{
    int64_t end_s = classic_now() + who->ttl_s + 1;
    if (classic_send(who, "SETNX", end_s) == 1) {
        who->end_s = end_s;
        return true;
    }
    return classic_is_past(who) && classic_take_over(who);
}

static void classic_release(struct classic *who)
{
    if (classic_now() + 1 < who->end_s)
        classic_send(who, "DEL", 0);
    who->end_s = 0;
}

/* ------------------------------------------------------------------ the race
 */

/* Exclusion is all that makes this right. */
static void increment(int file)
{
    char text[24] = "";
    if (pread(file, text, sizeof(text) - 1, 0) <= 0)
        _exit(2);
    sched_yield();
    int len =
        snprintf(text, sizeof(text), "%-20ld", strtol(text, NULL, 10) + 1);
    if (pwrite(file, text, (size_t)len, 0) != len)
        _exit(3);
}

static void pause_us(long us)
{
    struct timespec t = {0, us * 1000};
    nanosleep(&t, NULL);
}

/* One of each kind dies with the lock once. */
static bool dies(int who, int round)
{
    return (who == 0 || who == CLASSICS) && round == SHARE / 2;
}

/* A process wrote after its lease had ended, because the machine had paused it:
 * an update lost then proves nothing. */
static atomic_bool *overslept; /* shared */

static void run_classic(int file, int who)
{
    struct classic c = {.c = redisConnectUnix(server.path), .ttl_s = CLASSIC_S};
    for (int round = 0; round < SHARE;) {
        if (!classic_try(&c)) {
            pause_us(3000);
            continue;
        }
        increment(file);
        if (classic_now() >= c.end_s)
            *overslept = true;
        if (!dies(who, round))
            classic_release(&c);
        round++;
        pause_us(300);
    }
    _exit(0);
}

static void run_ours(int file, int who, const char *parameters)
{
    nxl_client *client = new_client(parameters);
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    nxl_lock *lock;
    options.ttl_ms = 2000;
    options.retry_min_ms = 1;
    options.retry_max_ms = 8;
    if (nxl_lock_new(&lock, client, "k", &options) != NXL_OK)
        _exit(5);
    for (int round = 0; round < SHARE;) {
        if (nxl_lock_acquire(lock, NXL_FOREVER) != NXL_OK)
            continue;
        if (nxl_lock_remaining_ms(lock) < 500) { /* too late to write */
            if (nxl_lock_release(lock) < NXL_OK)
                _exit(7);
            continue;
        }
        increment(file);
        if (!nxl_lock_held(lock))
            *overslept = true;
        round++;
        if (dies(who, round)) {
            nxl_client *next = new_client(parameters);
            if (nxl_lock_new(&lock, next, "k", &options) != NXL_OK)
                _exit(5);
        } else if (nxl_lock_release(lock) < NXL_OK) {
            _exit(7);
        }
        pause_us(300);
    }
    _exit(0);
}

/* Races this many processes of each kind. True: no update was lost. */
static bool one_race(int classics, int ours, const char *parameters)
{
    char path[LOCAL_PATH], text[24] = "";
    pid_t pid[CLASSICS + OURS];
    int count = 0;
    local_path(path, server.dir, "number");
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_int_equal(pwrite(file, "0", 1, 0), 1);
    for (int i = 0; i < CLASSICS + OURS; i++) {
        if (i < CLASSICS ? i >= classics : i >= CLASSICS + ours)
            continue;
        pid[count] = test_fork();
        if (pid[count] == 0 && i < CLASSICS)
            run_classic(file, i);
        if (pid[count] == 0)
            run_ours(file, i, parameters);
        count++;
    }
    for (int i = 0; i < count; i++) {
        int status = -1;
        assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
        assert_int_equal(status, 0);
    }
    assert_true(pread(file, text, sizeof(text) - 1, 0) > 0);
    close(file);
    return strtol(text, NULL, 10) == count * SHARE;
}

static void a_race(int classics, int ours, const char *parameters)
{
    overslept = mmap(NULL, sizeof(*overslept), PROT_READ | PROT_WRITE,
        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(overslept != MAP_FAILED);
    for (int i = 0; !one_race(classics, ours, parameters); i++) {
        if (!*overslept || i == RACES)
            fail_msg("an update was lost");
        redis_run(&server, "DEL", "k", NULL);
        *overslept = false;
    }
    munmap(overslept, sizeof(*overslept));
}

static void a_race_of_all(void **state)
{
    a_race(CLASSICS, OURS, STAMPS);
}

/* Here ours take over for max_ttl_ms, and what the loser wrote stays: the more
 * of them find a time past, the more often all wait for the next one. */
static void a_race_without_watch(void **state)
{
    const char *full = getenv("NXLOCK_FULL");
    bool all = full && strcmp(full, "1") == 0;
    redis_run(&server, "ACL", "SETUSER", "default", "-watch", "-multi", NULL);
    a_race(all ? CLASSICS : 1, all ? OURS : 2, STAMPS "&max_ttl_ms=2000");
    redis_run(&server, "ACL", "SETUSER", "default", "+@all", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        live_test(a_race_of_all),
        live_test(a_race_without_watch),
    };
    return live_run_long("a race with the published scheme");
}

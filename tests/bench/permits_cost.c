/* SPDX-License-Identifier: MIT */
/* What a cycle of acquire and release costs, in time and at the server: beside
 * holders, against SET NX PX and compare-and-delete by hand over the same
 * hiredis. And the memory that a holder takes at the server. */
#include "cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Batches are so short that some are not interrupted on a busy machine. */
enum { BATCH = 50, BATCHES = 20, TTL_MS = 3600000 };
enum { ROUNDS_MAX = BENCH_MAX_ROUNDS };

static int rounds(void)
{
    int all = cases_run.rounds * BATCHES;

    return all < ROUNDS_MAX ? all : ROUNDS_MAX;
}

static double least_of(const double *values)
{
    double least = values[0];

    for (int i = 1; i < rounds(); i++)
        least = values[i] < least ? values[i] : least;
    return least;
}

/* Two rows: the ratios within the rounds, and that of the best rounds, which a
 * busy machine changes least. The goal is for that one. */
static void compare(
    const char *what, const double *ours, const double *theirs, double goal)
{
    char words[200];

    case_ratio(what, ours, theirs, rounds(), 0);
    snprintf(words, sizeof(words), "the best rounds, %.1f to %.1f us",
        least_of(ours), least_of(theirs));
    case_figure(words, "", least_of(ours) / least_of(theirs), goal);
}

#define URL_TERMS "?max_ttl_ms=3600000"

static char url[600];

static redisContext *begin_here(void)
{
    snprintf(url, sizeof(url), "%s" URL_TERMS, cases_run.server.unix_url);
    return case_connect();
}

/* ----------------------------------------------------------- beside holders */

/* Half of the holders are of the kind that is measured, if they are mixed. */
static const struct scene {
    const char *words;
    int holders;
    bool mixed, exclusive;
    double goal; /* of the time, against the floor */
} scenes[] = {
    {"an exclusive lock", 0, false, true, 0},
    {"nobody else", 0, false, false, 1.9},
    {"beside 3 holders", 3, false, false, 1.9},
    {"beside 63 holders", 63, false, false, 1.9},
    {"beside 999 holders", 999, false, false, 0},
    {"beside 15 holders of two kinds", 15, true, false, 2.5},
};
enum {
    SCENES = sizeof(scenes) / sizeof(*scenes),
    BESIDE_3 = 2,
    BESIDE_999 = 4
};

struct pair {
    nxl_lock *lock;
    double us[ROUNDS_MAX], server_us[ROUNDS_MAX];
};

static int floor_batch(redisContext *redis, const char *sha)
{
    char token[40];

    for (int i = 0; i < BATCH; i++) {
        snprintf(token, sizeof(token), "f1005f10-0000-4000-8000-%012d", i);
        const char *set[] = {"SET", "floor", token, "NX", "PX", BENCH_TTL};
        const char *delete[] = {"EVALSHA", sha, "1", "floor", token};
        redisReply *reply = redisCommandArgv(redis, 6, set, NULL);
        bool good = reply && reply->type == REDIS_REPLY_STATUS;

        freeReplyObject(reply);
        reply = redisCommandArgv(redis, 5, delete, NULL);
        good = good && reply && reply->type == REDIS_REPLY_INTEGER &&
               reply->integer == 1;
        freeReplyObject(reply);
        if (!good)
            return case_fail("the floor was not granted the lock");
    }
    return 0;
}

static int lock_batch(nxl_lock *lock)
{
    for (int i = 0; i < BATCH; i++) {
        if (nxl_lock_acquire(lock, 0) != NXL_OK ||
            nxl_lock_release(lock) != NXL_OK)
            return case_fail("%s", nxl_lock_errmsg(lock));
    }
    return 0;
}

/* Microseconds that the server took for the command, by INFO commandstats. */
static double command_us(redisContext *redis, const char *command)
{
    redisReply *reply = redisCommand(redis, "INFO commandstats");
    char key[64];
    const char *at;
    double us = 0;

    snprintf(key, sizeof(key), "cmdstat_%s:", command);
    at = reply && reply->str ? strstr(reply->str, key) : NULL;
    at = at ? strstr(at, "usec=") : NULL;
    if (at)
        us = strtod(at + strlen("usec="), NULL);
    freeReplyObject(reply);
    return us;
}

static double cycle_us(redisContext *redis)
{
    return (command_us(redis, "set") + command_us(redis, "evalsha")) / BATCH;
}

/* lock NULL: of the floor. */
static int timed(redisContext *redis, redisContext *floor, const char *sha,
    nxl_lock *lock, double *us, double *server_us)
{
    double before = cycle_us(redis);
    uint64_t began = bench_now_ns();
    int rc = lock ? lock_batch(lock) : floor_batch(floor, sha);

    *us = (double)(bench_now_ns() - began) / 1000 / BATCH;
    *server_us = cycle_us(redis) - before;
    return rc;
}

static void set_scene(nxl_client *client, int which, struct pair *pair)
{
    static const struct lock_kind many = {2000, 0}, more = {3000, 0};
    const struct scene *scene = &scenes[which];
    char name[16];

    snprintf(name, sizeof(name), "scn%02d", which);
    for (int i = 0; i < scene->holders; i++) {
        nxl_lock *holder = case_lock(
            client, name, scene->mixed && i % 2 ? &more : &many, TTL_MS);
        if (nxl_lock_acquire(holder, 0) != NXL_OK) {
            case_fail("%s", nxl_lock_errmsg(holder));
            _exit(1);
        }
    }
    pair->lock =
        case_lock(client, name, scene->exclusive ? NULL : &many, 30000);
}

static void print_scenes(const struct pair *pairs, const double *floor_us,
    const double *floor_server_us)
{
    char what[160];

    for (int s = 0; s < SCENES; s++) {
        snprintf(what, sizeof(what), "%s: time, to the floor", scenes[s].words);
        compare(what, pairs[s].us, floor_us, scenes[s].goal);
        snprintf(what, sizeof(what), "%s: at the server", scenes[s].words);
        compare(what, pairs[s].server_us, floor_server_us, 0);
    }
    compare("1000 holders to 4: time", pairs[BESIDE_999].us, pairs[BESIDE_3].us,
        1.1);
}

int case_cost(void)
{
    static struct pair pairs[SCENES];
    static double floor_us[ROUNDS_MAX], floor_server_us[ROUNDS_MAX];
    redisContext *redis = begin_here(), *floor = case_connect();
    redisReply *sha =
        floor ? redisCommand(floor, "SCRIPT LOAD %s", bench_release) : NULL;
    nxl_client *client = case_client(url);
    int rc = redis && sha && sha->type == REDIS_REPLY_STRING ? 0 : -1;

    for (int s = 0; rc == 0 && s < SCENES; s++)
        set_scene(client, s, &pairs[s]);
    case_pin(true);
    /* The first round is not counted. */
    for (int i = -1; rc == 0 && i < rounds(); i++) {
        int to = i < 0 ? 0 : i;

        rc = timed(
            redis, floor, sha->str, NULL, &floor_us[to], &floor_server_us[to]);
        for (int k = 0; rc == 0 && k < SCENES; k++) {
            struct pair *pair = &pairs[(k + to) % SCENES];

            rc = timed(redis, floor, sha->str, pair->lock, &pair->us[to],
                &pair->server_us[to]);
        }
    }
    if (rc == 0)
        print_scenes(pairs, floor_us, floor_server_us);
    freeReplyObject(sha);
    nxl_client_free(client);
    if (redis)
        redisFree(redis);
    if (floor)
        redisFree(floor);
    return rc;
}

/* ------------------------------------------------------------------ memory */

int case_memory(void)
{
    static const int sizes[] = {4, 64, 128, 129, 1000};
    static const struct lock_kind many = {2000, 0};
    redisContext *redis = begin_here();
    nxl_client *client;
    int held = 0;
    char what[80];

    if (!redis)
        return -1;
    client = case_client(url);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        long long bytes;

        while (held < sizes[i]) {
            nxl_lock *lock = case_lock(client, CASE_NAME, &many, TTL_MS);

            if (nxl_lock_acquire(lock, 0) != NXL_OK)
                return case_fail("%s", nxl_lock_errmsg(lock));
            held++;
        }
        bytes = case_ask(redis, "MEMORY USAGE %s SAMPLES 0", CASE_NAME);
        if (bytes < 0) {
            case_note("not measured: the server has no MEMORY USAGE");
            break;
        }
        snprintf(what, sizeof(what), "a holder at the server, of %d", held);
        case_figure(what, " bytes", (double)bytes / held, 160);
    }
    nxl_client_free(client);
    redisFree(redis);
    return 0;
}

/* SPDX-License-Identifier: MIT */
/* The floors: what hiredis alone reaches with the same two commands a cycle.
 * They keep no deadline, survive no fault and undo nothing, so nothing that
 * does can be expected to beat them by much. Every reply is checked: a floor
 * that does not lock is no floor. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#define TOKEN_LENGTH 36

const char bench_release[] =
    "if redis.call('get', KEYS[1]) == ARGV[1] then "
    "return redis.call('del', KEYS[1]) else return 0 end";

/* A fresh token: the shape of a UUID, made by counting, for the price of a
 * few stores. */
static void token_next(char token[TOKEN_LENGTH], uint64_t *counter)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t value = ++*counter;

    for (int i = TOKEN_LENGTH - 1; i >= 24; i--) {
        token[i] = digits[value & 15];
        value >>= 4;
    }
}

static const char token_start[TOKEN_LENGTH + 1] =
    "f1005f10-0000-4000-8000-000000000000";

static redisContext *floor_connect(
    const struct task *task, struct sample *sample)
{
    redisContext *redis = task->unix_path
                              ? redisConnectUnix(task->unix_path)
                              : redisConnect(task->host, task->port);

    if (!redis) {
        sample_fail(sample, "out of memory");
    } else if (redis->err) {
        sample_fail(sample, "connect: %s", redis->errstr);
        redisFree(redis);
        redis = NULL;
    }
    return redis;
}

static int load_script(redisContext *redis, char sha[41], struct sample *sample)
{
    redisReply *reply = redisCommand(redis, "SCRIPT LOAD %s", bench_release);
    int rc = -1;

    if (reply && reply->type == REDIS_REPLY_STRING && reply->len == 40) {
        memcpy(sha, reply->str, 41);
        rc = 0;
    } else {
        sample_fail(sample, "SCRIPT LOAD: %s",
            reply && reply->str ? reply->str : redis->errstr);
    }
    if (reply)
        freeReplyObject(reply);
    return rc;
}

static bool is_ok(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_STATUS && strcmp(reply->str, "OK") == 0;
}

static bool is_one(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_INTEGER && reply->integer == 1;
}

/* The two commands of one lock. */
struct pair {
    char name[BENCH_NAME_SIZE];
    char token[TOKEN_LENGTH];
    char sha[41];
    const char *set[6];
    size_t set_length[6];
    const char *drop[5];
    size_t drop_length[5];
};

static void pair_init(struct pair *pair, const char sha[41], int i)
{
    const char *set[6] = {
        "SET", pair->name, pair->token, "NX", "PX", BENCH_TTL};
    const char *drop[5] = {"EVALSHA", pair->sha, "1", pair->name, pair->token};

    bench_name(pair->name, i);
    memcpy(pair->token, token_start, TOKEN_LENGTH);
    memcpy(pair->sha, sha, sizeof(pair->sha));
    memcpy(pair->set, set, sizeof(set));
    memcpy(pair->drop, drop, sizeof(drop));
    for (int j = 0; j < 6; j++)
        pair->set_length[j] = j == 2 ? TOKEN_LENGTH : strlen(set[j]);
    for (int j = 0; j < 5; j++)
        pair->drop_length[j] = j == 4 ? TOKEN_LENGTH : strlen(drop[j]);
}

static int expect(redisContext *redis, redisReply *reply,
    bool (*good)(const redisReply *), struct sample *sample)
{
    int rc = 0;

    if (!reply)
        return sample_fail(sample, "floor: %s", redis->errstr);
    if (!good(reply))
        rc = sample_fail(
            sample, "floor: unexpected reply %s", reply->str ? reply->str : "");
    freeReplyObject(reply);
    return rc;
}

static int argv_cycle(redisContext *redis, struct pair *pair, uint64_t *counter,
    struct sample *sample)
{
    token_next(pair->token, counter);
    if (expect(redis, redisCommandArgv(redis, 6, pair->set, pair->set_length),
            is_ok, sample))
        return -1;
    return expect(redis,
        redisCommandArgv(redis, 5, pair->drop, pair->drop_length), is_one,
        sample);
}

/* One lock, one blocking connection, one request at a time. */
int floor_argv(const struct task *task, struct sample *sample)
{
    struct histogram histogram = {0};
    redisContext *redis = floor_connect(task, sample);
    struct pair pair;
    struct meter meter;
    uint64_t counter = 0;
    uint64_t cycles = 0;
    uint64_t now;
    char sha[41];
    int rc = -1;

    if (!redis)
        return -1;
    if (load_script(redis, sha, sample))
        goto out;
    pair_init(&pair, sha, 0);
    for (int i = 0; i < BENCH_WARM; i++) {
        if (argv_cycle(redis, &pair, &counter, sample))
            goto out;
    }
    meter_begin(&meter, task);
    now = meter.begin_ns;
    while (now < meter.deadline_ns) {
        uint64_t before = now;

        if (argv_cycle(redis, &pair, &counter, sample))
            goto out;
        now = bench_now_ns();
        histogram_add(&histogram, now - before);
        cycles++;
    }
    meter_end(&meter, now);
    meter_report(&meter, cycles, &histogram, sample);
    rc = 0;
out:
    redisFree(redis);
    return rc;
}

/* A lock of the pipelined floor, which formats every command when it is sent.
 */
struct piped {
    struct pair pair;
    uint64_t since_ns;
    bool held;
    bool idle;
};

struct flow {
    redisContext *redis;
    struct piped *locks;
    int width;
    int next;   /* whose reply comes next */
    int active; /* locks that are not idle */
    bool stopping;
    uint64_t counter;
    uint64_t cycles;
    struct histogram histogram;
};

static int send_set(struct flow *flow, struct piped *lock, uint64_t now)
{
    struct pair *pair = &lock->pair;

    lock->since_ns = now;
    token_next(pair->token, &flow->counter);
    return redisAppendCommandArgv(flow->redis, 6, pair->set, pair->set_length);
}

static int send_drop(struct flow *flow, struct piped *lock)
{
    return redisAppendCommandArgv(
        flow->redis, 5, lock->pair.drop, lock->pair.drop_length);
}

/* One reply. Every lock has exactly one command under way and its next one
 * is queued as its reply is handled, so the replies come round robin. */
static int flow_reply(struct flow *flow, const redisReply *reply, uint64_t now)
{
    struct piped *lock;

    do {
        lock = &flow->locks[flow->next];
        flow->next = flow->next + 1 == flow->width ? 0 : flow->next + 1;
    } while (lock->idle);
    if (!lock->held) {
        lock->held = is_ok(reply);
        if (!lock->held)
            return -1;
        return send_drop(flow, lock);
    }
    if (!is_one(reply))
        return -1;
    lock->held = false;
    histogram_add(&flow->histogram, now - lock->since_ns);
    flow->cycles++;
    if (!flow->stopping)
        return send_set(flow, lock, now);
    lock->idle = true;
    flow->active--;
    return 0;
}

/* Writes everything queued, waits, and handles all replies of one read.
 * Sets *now to when they came. */
static int flow_batch(struct flow *flow, uint64_t *now, struct sample *sample)
{
    void *reply = NULL;
    int rc = redisGetReply(flow->redis, &reply);

    *now = bench_now_ns();
    while (rc == REDIS_OK && reply) {
        if (flow_reply(flow, reply, *now))
            sample_fail(sample, "floor: unexpected reply");
        freeReplyObject(reply);
        reply = NULL;
        if (sample->error[0])
            return -1;
        rc = redisGetReplyFromReader(flow->redis, &reply);
    }
    if (rc != REDIS_OK)
        return sample_fail(sample, "floor: %s", flow->redis->errstr);
    return 0;
}

static int flow_fill(struct flow *flow, struct sample *sample)
{
    char sha[41];

    if (load_script(flow->redis, sha, sample))
        return -1;
    for (int i = 0; i < flow->width; i++) {
        struct piped *lock = &flow->locks[i];

        pair_init(&lock->pair, sha, i);
        if (send_set(flow, lock, bench_now_ns()))
            return sample_fail(sample, "out of memory");
    }
    flow->active = flow->width;
    return 0;
}

static int flow_measure(
    const struct task *task, struct flow *flow, struct sample *sample)
{
    struct meter meter;
    uint64_t now;

    /* Two cycles of each lock, so that the flow is even. */
    while (flow->cycles < 2 * (uint64_t)flow->width) {
        if (flow_batch(flow, &now, sample))
            return -1;
    }
    memset(&flow->histogram, 0, sizeof(flow->histogram));
    flow->cycles = 0;
    meter_begin(&meter, task);
    do {
        if (flow_batch(flow, &now, sample))
            return -1;
    } while (now < meter.deadline_ns);
    meter_end(&meter, now);
    meter_report(&meter, flow->cycles, &flow->histogram, sample);

    flow->stopping = true;
    while (flow->active > 0) {
        if (flow_batch(flow, &now, sample))
            return -1;
    }
    return 0;
}

/* task->width locks in flight on one connection. */
int floor_pipe(const struct task *task, struct sample *sample)
{
    struct flow flow = {0};
    int rc = -1;

    flow.width = task->width;
    flow.redis = floor_connect(task, sample);
    if (!flow.redis)
        return -1;
    flow.locks = calloc((size_t)task->width, sizeof(*flow.locks));
    if (!flow.locks)
        sample_fail(sample, "out of memory");
    else if (flow_fill(&flow, sample) == 0)
        rc = flow_measure(task, &flow, sample);
    free(flow.locks);
    redisFree(flow.redis);
    return rc;
}

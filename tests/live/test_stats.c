/* SPDX-License-Identifier: MIT */
/*
 * Each counter of nxl_client_stats(), on one server and on three, through
 * either API: a scene, and what it must have counted. Whatever a scene does not
 * name must still be 0.
 */
#include "live/api_rig.h"
#include "live/renew_rig.h"

enum { SHORT_MS = 600, PATIENT_MS = 8000 };
#define ANY INT64_MAX

struct expected {
    size_t at; /* the offset of a counter */
    int64_t least, most;
};

struct scene {
    const char *name;
    nxl_lock_options options;
    void (*act)(nxl_client *client, nxl_lock *lock);
    struct expected expected[12];
};

static const char *present; /* the name of the scene */

/* Until the condition, which may use "stats", is true. */
#define await_stats(client, condition)                                         \
    do {                                                                       \
        int64_t end_ms = test_now_ms() + PATIENT_MS;                           \
        nxl_stats stats;                                                       \
        while (stats = stats_of(client), !(condition)) {                       \
            if (test_now_ms() > end_ms)                                        \
                fail_msg("%s: no " #condition, present);                       \
            wait_a_bit(client);                                                \
        }                                                                      \
    } while (0)

static void wait_a_bit(nxl_client *client)
{
    nxl_event event;
    if (!by_loop)
        test_pause_ms(5);
    else
        turn(client, 5);
    while (nxl_client_next_event(client, &event))
        assert_int_equal(event.operation, NXL_OP_HOLD);
}

static void on_all(void (*what)(struct redis *))
{
    for (size_t i = 0; i < on.servers; i++)
        what(&servers[i]);
}

static void strangers_key(const char *value)
{
    for (size_t i = 0; i < on.servers; i++)
        redis_run(&servers[i], "SET", "k", value, NULL);
}

static void removed(struct redis *r)
{
    redis_run(r, "DEL", "k", NULL);
}

/* Inspections are not counted. */
static void inspect_other(nxl_client *client)
{
    nxl_lock *lock = new_lock(client, "other", 1000);
    assert_result(result_of(client, begin_inspect(lock)), NXL_FREE, lock);
    nxl_lock_free(lock);
}

static void connect_to_all(nxl_client *client)
{
    while (!connected_to_all(client))
        inspect_other(client);
}

/* Behind the name: lock, and what else the call takes. */
#define DO(result, name, ...)                                                  \
    assert_result(CALL(client, name, __VA_ARGS__), result, lock)

/* ------------------------------------------------------------------ scenes */

static void uncontended(nxl_client *client, nxl_lock *lock)
{
    for (int i = 0; i < 3; i++) {
        DO(NXL_OK, acquire, lock, 0);
        DO(NXL_OK, extend, lock, 0);
        test_pause_ms(25);
        DO(NXL_OK, release, lock);
    }
}

static void busy_at_once(nxl_client *client, nxl_lock *lock)
{
    strangers_key("somebody");
    DO(NXL_BUSY, acquire, lock, 0);
}

static void busy_after_a_wait(nxl_client *client, nxl_lock *lock)
{
    strangers_key("somebody");
    DO(NXL_BUSY, acquire, lock, 150);
}

static void frozen(nxl_client *client, nxl_lock *lock)
{
    on_all(redis_freeze);
    DO(NXL_UNKNOWN, acquire, lock, 0);
    on_all(redis_thaw);
    /* A blocking client cleans up in its calls. */
    while (!stats_of(client).cleanups)
        inspect_other(client);
}

static void dead(nxl_client *client, nxl_lock *lock)
{
    on_all(redis_kill);
    DO(NXL_E_UNREACHABLE, acquire, lock, 0);
    on_all(redis_restart);
}

static void not_writable(struct redis *r)
{
    redis_run(r, "CONFIG", "SET", "min-replicas-to-write", "3", NULL);
}

static void writable(struct redis *r)
{
    redis_run(r, "CONFIG", "SET", "min-replicas-to-write", "0", NULL);
}

static void refused(nxl_client *client, nxl_lock *lock)
{
    on_all(not_writable);
    DO(NXL_E_REFUSED, acquire, lock, 0);
    on_all(writable);
}

static void *cancel_it(void *lock)
{
    test_pause_ms(60);
    nxl_lock_cancel(lock);
    return NULL;
}

static void cancelled(nxl_client *client, nxl_lock *lock)
{
    static pthread_t thread;
    strangers_key("somebody");
    assert_int_equal(pthread_create(&thread, NULL, cancel_it, lock), 0);
    DO(NXL_CANCELLED, acquire, lock, NXL_FOREVER);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static int begin(nxl_client *client, nxl_lock *lock, int mode)
{
    nxl_once_options options = NXL_ONCE_OPTIONS_INIT;
    options.mode = mode;
    return result_of(client, by_loop ? nxl_once_begin_start(lock, &options, 0)
                                     : nxl_once_begin(lock, &options, 0));
}

static void once(nxl_client *client, nxl_lock *lock)
{
    assert_result(begin(client, lock, NXL_ONCE_HALT), NXL_OK, lock);
    assert_result(
        result_of(client,
            by_loop ? nxl_once_tell_start(lock, NXL_ONCE_DONE, 0, NULL, 0)
                    : nxl_once_tell(lock, NXL_ONCE_DONE, 0, NULL, 0)),
        NXL_OK, lock);
    assert_result(begin(client, lock, NXL_ONCE_HALT), NXL_DONE, lock);
    assert_result(begin(client, lock, NXL_ONCE_LOOK), NXL_DONE, lock);
}

static void release_unanswered(nxl_client *client, nxl_lock *lock)
{
    DO(NXL_OK, acquire, lock, 0);
    on_all(redis_freeze);
    DO(NXL_UNKNOWN, extend, lock, 0);
    DO(NXL_UNKNOWN, release, lock);
    on_all(redis_thaw);
}

static void found_lost(nxl_client *client, nxl_lock *lock)
{
    DO(NXL_OK, acquire, lock, 0);
    on_all(removed);
    DO(NXL_LOST, release, lock);
}

static void renewed(nxl_client *client, nxl_lock *lock)
{
    DO(NXL_OK, acquire, lock, 0);
    await_stats(client, stats.renewals >= 2);
    DO(NXL_OK, release, lock);
}

static void renewed_late(nxl_client *client, nxl_lock *lock)
{
    DO(NXL_OK, acquire, lock, 0);
    on_all(not_writable);
    await_stats(client, stats.renewal_failures > 0);
    on_all(writable);
    await_stats(client, stats.renewals > 0);
    DO(NXL_OK, release, lock);
}

static void await_a_loss(nxl_client *client)
{
    await_stats(client, stats.losses > 0);
}

static void held_too_long(nxl_client *client, nxl_lock *lock)
{
    DO(NXL_OK, acquire, lock, 0);
    await_a_loss(client);
}

static void key_removed(nxl_client *client, nxl_lock *lock)
{
    DO(NXL_OK, acquire, lock, 0);
    on_all(removed);
    await_a_loss(client);
}

static void key_taken(nxl_client *client, nxl_lock *lock)
{
    DO(NXL_OK, acquire, lock, 0);
    strangers_key("somebody");
    await_a_loss(client);
}

static void servers_gone(nxl_client *client, nxl_lock *lock)
{
    DO(NXL_OK, acquire, lock, 0);
    on_all(redis_freeze);
    await_a_loss(client);
    on_all(redis_thaw);
}

static void disconnected(struct redis *r)
{
    redis_run(r, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes", NULL);
}

static void cut(nxl_client *client, nxl_lock *lock)
{
    on_all(disconnected);
    /* The first inspection may be the one that finds it out. */
    while (stats_of(client).reconnects < on.servers)
        (void)result_of(client, begin_inspect(lock));
    connect_to_all(client);
    DO(NXL_OK, acquire, lock, 0);
    DO(NXL_OK, release, lock);
}

/* ------------------------------------------------------------------- table */

#define AT(member) offsetof(nxl_stats, member)
#define IS(member, number)                                                     \
    {                                                                          \
        AT(member), number, number                                             \
    }
#define FROM(member, number)                                                   \
    {                                                                          \
        AT(member), number, ANY                                                \
    }
#define ACQUIRED(result) IS(result, 1), FROM(attempts, 1), IS(wait.count, 1)
/* Released in the end. */
#define HELD ACQUIRED(grants), IS(hold.count, 1), IS(releases, 1)
#define RENEWED                                                                \
    {                                                                          \
        .ttl_ms = SHORT_MS, .renew = 1                                         \
    }
#define LOST(reason)                                                           \
    ACQUIRED(grants), IS(hold.count, 1), IS(losses, 1),                        \
        IS(losses_##reason, 1), FROM(renewals, 0), FROM(renewal_failures, 0),  \
        FROM(least_slack_ms, 0)

static const struct scene scenes[] = {
    {"uncontended", {0}, uncontended,
        {IS(grants, 3), IS(attempts, 3), IS(wait.count, 3), IS(hold.count, 3),
            IS(releases, 3)}},
    {"busy at once", {0}, busy_at_once, {ACQUIRED(busy)}},
    {"busy after a wait", {0}, busy_after_a_wait,
        {ACQUIRED(busy), IS(waits, 1)}},
    {"frozen", {0}, frozen, {ACQUIRED(unknown), FROM(cleanups, 1)}},
    {"dead", {0}, dead, {ACQUIRED(unreachable), FROM(waits, 0)}},
    {"refused", {0}, refused, {ACQUIRED(refused)}},
    {"cancelled", {0}, cancelled, {ACQUIRED(cancelled), FROM(waits, 0)}},
    {"release unanswered", {0}, release_unanswered,
        {ACQUIRED(grants), IS(hold.count, 1), IS(unanswered, 2)}},
    {"found lost", {0}, found_lost, {ACQUIRED(grants), IS(hold.count, 1)}},
    {"renewed", RENEWED, renewed,
        {HELD, FROM(renewals, 2), {AT(least_slack_ms), 1, SHORT_MS}}},
    {"renewed late", RENEWED, renewed_late,
        {HELD, FROM(renewals, 1), FROM(renewal_failures, 1),
            {AT(least_slack_ms), 1, SHORT_MS}}},
    {"held too long", {.ttl_ms = SHORT_MS, .renew = 1, .max_hold_ms = SHORT_MS},
        held_too_long, {LOST(expired)}},
    {"key removed", RENEWED, key_removed, {LOST(removed)}},
    {"key taken", RENEWED, key_taken, {LOST(taken)}},
    {"servers gone", RENEWED, servers_gone, {LOST(unreachable)}},
    {"cut", {0}, cut, {HELD, FROM(reconnects, 1)}},
};

/* A record is on one server only. */
static const struct scene once_scenes[] = {
    {"once", {0}, once,
        {IS(grants, 1), IS(recorded, 1), IS(attempts, 2), IS(wait.count, 2),
            IS(hold.count, 1)}},
};

/* ------------------------------------------------------------------ checks */

/* What any numbers must agree in. */
static void check_sums(const nxl_stats *s)
{
    assert_int_equal(s->wait.count, s->grants + s->busy + s->unknown +
                                        s->unreachable + s->refused +
                                        s->cancelled + s->recorded);
    assert_int_equal(s->losses, s->losses_expired + s->losses_removed +
                                    s->losses_taken + s->losses_unreachable);
    assert_true(s->attempts >= s->grants + s->busy);
}

/* Each of its durations is in a bucket, and their limits fit the total. */
static void check_histogram(const nxl_histogram *h)
{
    uint64_t count = 0, low_ms = 0, high_ms = 0;
    for (size_t i = 0; i < NXL_HISTOGRAM_BUCKETS; i++) {
        count += h->buckets[i];
        low_ms += h->buckets[i] * (i ? nxl_histogram_limit_ms(i - 1) : 0);
        high_ms += h->buckets[i] * nxl_histogram_limit_ms(i);
    }
    assert_int_equal(h->count, count);
    assert_between(h->sum_ns, low_ms * 1000000, high_ms * 1000000);
}

static void check_counter(
    const struct scene *scene, const nxl_stats *stats, size_t at)
{
    struct expected expected = {at, 0, 0};
    uint64_t value =
        *(const uint64_t *)(const void *)((const char *)stats + at);
    for (size_t i = 0; i < 12; i++)
        if (scene->expected[i].most && scene->expected[i].at == at)
            expected = scene->expected[i];
    /* A server may answer only when a majority has decided without it. */
    if (at == AT(cleanups) && on.servers > 1)
        expected.most = ANY;
    if (value < (uint64_t)expected.least || value > (uint64_t)expected.most)
        fail_msg("%s: the counter at %zu is %llu, not %lld ... %lld",
            scene->name, at, (unsigned long long)value,
            (long long)expected.least, (long long)expected.most);
}

static void check(
    const struct scene *scene, const nxl_stats *before, const nxl_stats *after)
{
    static const size_t counters[] = {AT(grants), AT(busy), AT(unknown),
        AT(unreachable), AT(refused), AT(cancelled), AT(recorded), AT(attempts),
        AT(waits), AT(wait.count), AT(hold.count), AT(releases), AT(unanswered),
        AT(renewals), AT(renewal_failures), AT(least_slack_ms), AT(losses),
        AT(losses_expired), AT(losses_removed), AT(losses_taken),
        AT(losses_unreachable), AT(cleanups)};
    for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
        check_counter(scene, after, counters[i]);
    check_sums(after);
    check_histogram(&after->wait);
    check_histogram(&after->hold);
    /* A server that is dead or frozen may be connected to again. */
    uint64_t more = after->connections - before->connections;
    assert_int_equal(before->connections - before->reconnects, on.servers);
    assert_int_equal(after->reconnects, before->reconnects + more);
    if (scene->act == cut)
        assert_true(more >= on.servers);
    else if (scene->act == uncontended)
        assert_int_equal(more, 0);
}

static void run(const struct scene *scene, size_t count)
{
    for (size_t i = 0; i < count; i++, scene++) {
        nxl_lock_options options = scene->options;
        options.size = sizeof(options);
        present = scene->name;
        quorum_clean(NULL);
        nxl_client *client = client_on(NO_GUARD "&timeout_ms=300");
        connect_to_all(client);
        nxl_stats before = stats_of(client);
        nxl_lock *lock = live_lock(client, "k", &options, __FILE__, __LINE__);
        scene->act(client, lock);
        nxl_stats after = stats_of(client);
        check(scene, &before, &after);
        end(lock, client);
    }
}

static void each_counter(void **state)
{
    run(scenes, sizeof(scenes) / sizeof(scenes[0]));
    if (on.servers == 1)
        run(once_scenes, sizeof(once_scenes) / sizeof(once_scenes[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {api_test(each_counter)};
    return on_one_and_three_run("stats", tests);
}

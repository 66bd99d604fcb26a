/* SPDX-License-Identifier: MIT */
/*
 * Each kind of lock crossed with what else a lock or a client may be asked for,
 * as a table: the rows are played with each kind, beside another holder where
 * the kind allows one. What that other holder has never changes.
 *
 * Elsewhere: refusals (permits), wait_replicas (permit_copies), guard_failover
 * (permit_failover), Sentinels (permit_sentinels), faults (permit_faults,
 * permit_cuts), kills (tests/faults), rights (acl_least), memory (no_memory).
 */
#include "live/kinds_rig.h"
#include "live/loop_rig.h"

#include <fcntl.h>

/* A handle of the kind, and another one that may hold the lock beside it. */
struct scene {
    nxl_client *client, *other;
    nxl_lock *lock, *beside; /* beside of an exclusive lock: NULL */
    int kind;
};

static struct scene scene_of(int kind, const char *parameters,
    const nxl_lock_options *more, int64_t ttl_ms)
{
    struct scene s = {.client = new_client(parameters),
        .other = new_client(""),
        .kind = kind};
    nxl_lock_options options = more ? *more : kinds[kind].options;
    options.permits = kinds[kind].options.permits;
    options.shared = kinds[kind].options.shared;
    options.ttl_ms = ttl_ms;
    s.lock = live_lock(s.client, "k", &options, kinds[kind].name, kind);
    if (kind == EXCLUSIVE)
        return s;
    s.beside = of_kind(s.other, kind, 20000, false);
    assert_result(nxl_lock_acquire(s.beside, 0), NXL_OK, s.beside);
    return s;
}

static int others(const struct scene *s)
{
    return s->beside ? 1 : 0;
}

/* The other holder still has its lease, and at the end no key is left. */
static void scene_ends(struct scene *s)
{
    nxl_lock_free(s->lock);
    nxl_client_free(s->client);
    if (s->beside) {
        assert_true(nxl_lock_held(s->beside));
        assert_true(stands(&server, nxl_lock_token(s->beside)));
        assert_result(nxl_lock_release(s->beside), NXL_OK, s->beside);
        nxl_lock_free(s->beside);
    }
    nxl_client_free(s->other);
    assert_int_equal(redis_lasting_keys(&server), 0);
}

/* -------------------------------------------------------------------- rows */

static void max_ttl(int kind)
{
    struct scene s = scene_of(kind, "max_ttl_ms=5000", NULL, 5000);
    nxl_lock *lock;
    nxl_lock_options options = kinds[kind].options;
    options.ttl_ms = 5001;
    assert_int_equal(
        nxl_lock_new(&lock, s.client, "k", &options), NXL_E_INVALID);
    assert_contains(nxl_client_errmsg(s.client), "5001");
    assert_result(nxl_lock_acquire(s.lock, 0), NXL_OK, s.lock);
    uint64_t deadline = nxl_lock_deadline(s.lock);
    long calls = redis_calls(&server, "evalsha");
    assert_result(nxl_lock_extend(s.lock, 5001), NXL_E_INVALID, s.lock);
    assert_int_equal(redis_calls(&server, "evalsha"), calls);
    assert_int_equal(nxl_lock_deadline(s.lock), deadline);
    scene_ends(&s);
}

static void min_hold(int kind)
{
    struct scene s = scene_of(kind, "", &OPTIONS(.min_hold_ms = 400), 5000);
    int64_t began = test_now_ms();
    assert_result(nxl_lock_acquire(s.lock, 0), NXL_OK, s.lock);
    char token[128];
    snprintf(token, sizeof(token), "%s", nxl_lock_token(s.lock));
    assert_result(nxl_lock_release(s.lock), NXL_OK, s.lock);
    if (test_now_ms() - began < 350)
        assert_true(stands(&server, token));
    assert_eventually(redis_run(&server, "EVAL",
                          "local t, e = redis.call('TIME'), "
                          "redis.call('TYPE', KEYS[1]).ok == 'zset' and "
                          "redis.call('ZSCORE', KEYS[1], ARGV[1]) "
                          "return (e and e - t[1] * 1000 - t[2] / 1000 > 0 or "
                          "redis.call('TYPE', KEYS[1]).ok == 'string') "
                          "and 1 or 0",
                          "1", "k", token, NULL) == 0);
    assert_true(test_now_ms() - began >= 395);
    scene_ends(&s);
}

/* queue=-1 of the command: the library waits by polling. */
static void poll_1(int kind)
{
    static struct waiter waits;
    struct scene s = scene_of(kind, "poll=1", NULL, 20000);
    nxl_lock *alone = new_lock(s.other, "k", 20000);
    if (s.beside)
        assert_result(nxl_lock_release(s.beside), NXL_OK, s.beside);
    assert_result(nxl_lock_acquire(alone, 0), NXL_OK, alone);
    waiter_start(&waits, s.lock, 20000);
    long calls = redis_calls(&server, "evalsha") + redis_calls(&server, "set");
    assert_eventually(
        redis_calls(&server, "evalsha") + redis_calls(&server, "set") >
        calls + 2);
    assert_false(redis_exists(&server, "{k}:nxl-l"));
    assert_result(nxl_lock_release(alone), NXL_OK, alone);
    assert_int_equal(waiter_join(&waits), NXL_OK);
    nxl_lock_free(alone);
    if (s.beside)
        assert_result(nxl_lock_acquire(s.beside, 0), NXL_OK, s.beside);
    scene_ends(&s);
}

/* By a handle of another kind: what counts is the token. */
static void adopt(int kind)
{
    struct scene s = scene_of(kind, "", NULL, 20000);
    nxl_client *theirs = new_client("");
    nxl_lock *heir = of_kind(theirs, (kind + 1) % KINDS, 20000, false);
    assert_result(nxl_lock_acquire(s.lock, 0), NXL_OK, s.lock);
    assert_result(nxl_lock_adopt(heir, nxl_lock_token(s.lock)), NXL_OK, heir);
    assert_result(nxl_lock_extend(heir, 30000), NXL_OK, heir);
    assert_int_equal(holders_at(&server), 1 + others(&s));
    assert_result(nxl_lock_release(heir), NXL_OK, heir);
    assert_result(nxl_lock_extend(s.lock, 0), NXL_LOST, s.lock);
    assert_result(nxl_lock_release(s.lock), NXL_LOST, s.lock);
    end(heir, theirs);
    scene_ends(&s);
}

/* Its own lease and no other's; never shorter. */
static void extend(int kind)
{
    struct scene s = scene_of(kind, "", NULL, 20000);
    assert_result(nxl_lock_acquire(s.lock, 0), NXL_OK, s.lock);
    uint64_t before = s.beside ? nxl_lock_deadline(s.beside) : 0;
    assert_result(nxl_lock_extend(s.lock, 40000), NXL_OK, s.lock);
    assert_between(nxl_lock_remaining_ms(s.lock), 35000, 40000);
    assert_result(nxl_lock_extend(s.lock, 10000), NXL_OK, s.lock);
    assert_between(nxl_lock_remaining_ms(s.lock), 34000, 40000);
    assert_between(redis_pttl(&server, "k"), 34000, 40000);
    if (s.beside)
        assert_int_equal(nxl_lock_deadline(s.beside), before);
    assert_result(nxl_lock_release(s.lock), NXL_OK, s.lock);
    /* The key lasts as long as those who are left. */
    if (s.beside)
        assert_between(redis_pttl(&server, "k"), 10000, 20000);
    scene_ends(&s);
}

/* As `nxlock unlock` does: the holder that was seen, and no other. */
static void unlock(int kind)
{
    struct scene s = scene_of(kind, "", NULL, 40000);
    nxl_lock *looks = new_lock(s.other, "k", 20000);
    nxl_holder holder = NXL_HOLDER_INIT;
    assert_result(nxl_lock_acquire(s.lock, 0), NXL_OK, s.lock);
    assert_result(nxl_lock_inspect(looks, &holder), NXL_OK, looks);
    assert_true(nxl_holder_is(&holder, nxl_lock_token(s.lock)));
    assert_result(nxl_lock_break(looks, &holder), NXL_OK, looks);
    assert_int_equal(holders_at(&server), others(&s));
    assert_result(nxl_lock_break(looks, &holder), NXL_FREE, looks);
    assert_result(nxl_lock_extend(s.lock, 0), NXL_LOST, s.lock);
    nxl_lock_free(looks);
    scene_ends(&s);
}

static void write_password(const char *path, const char *password)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(
        write(fd, password, strlen(password)), (ssize_t)strlen(password));
    close(fd);
}

/* The password changes while the lock is held, and the connections end. */
static void credentials(int kind)
{
    char path[LOCAL_PATH + 16], parameters[LOCAL_PATH + 64];
    snprintf(path, sizeof(path), "%s/password", server.dir);
    snprintf(parameters, sizeof(parameters), "password_file=%s", path);
    struct scene s = scene_of(kind, "", NULL, 20000);
    nxl_lock_free(s.lock);
    nxl_client_free(s.client);
    redis_run(&server, "CONFIG", "SET", "requirepass", "one", NULL);
    redis_run(&server, "AUTH", "one", NULL);
    write_password(path, "one\n");
    s.client = new_client(parameters);
    s.lock = of_kind(s.client, kind, 900, true);
    assert_result(nxl_lock_acquire(s.lock, 5000), NXL_OK, s.lock);
    redis_run(&server, "CONFIG", "SET", "requirepass", "two", NULL);
    redis_run(&server, "AUTH", "two", NULL);
    write_password(path, "two\n");
    redis_run(
        &server, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes", NULL);
    int64_t end_ms = test_now_ms() + 2000;
    while (test_now_ms() < end_ms) {
        assert_true(nxl_lock_held(s.lock));
        test_pause_ms(20);
    }
    assert_true(stands(&server, nxl_lock_token(s.lock)));
    assert_result(nxl_lock_release(s.lock), NXL_OK, s.lock);
    redis_run(&server, "CONFIG", "SET", "requirepass", "", NULL);
    scene_ends(&s);
}

static void renewed_by_a_thread(int kind)
{
    struct scene s = scene_of(kind, "", &OPTIONS(.renew = 1), 900);
    assert_result(nxl_lock_acquire(s.lock, 0), NXL_OK, s.lock);
    test_pause_ms(2200);
    assert_true(nxl_lock_held(s.lock));
    assert_int_equal(nxl_lock_loss(s.lock, NULL, 0), NXL_LOSS_NONE);
    assert_int_equal(holders_at(&server), 1 + others(&s));
    assert_result(nxl_lock_release(s.lock), NXL_OK, s.lock);
    scene_ends(&s);
}

static void renewed_by_a_loop(int kind)
{
    struct scene s = scene_of(kind, "", &OPTIONS(.renew = 1), 900);
    loop_reset(kind % 2);
    assert_int_equal(nxl_lock_acquire_start(s.lock, 0), NXL_PENDING);
    loop_until(s.client, 1);
    assert_int_equal(loop.event[0].result, NXL_OK);
    loop_for(s.client, 2200);
    assert_int_equal(loop.count, 1); /* and no loss */
    assert_true(nxl_lock_held(s.lock));
    assert_int_equal(holders_at(&server), 1 + others(&s));
    assert_int_equal(nxl_lock_release_start(s.lock), NXL_PENDING);
    loop_until(s.client, 2);
    assert_int_equal(loop.event[1].result, NXL_OK);
    scene_ends(&s);
}

/* A wait in a loop that is cancelled leaves the line. */
static void cancelled_in_a_loop(int kind)
{
    struct scene s = scene_of(kind, "", NULL, 20000);
    nxl_lock *alone = new_lock(s.other, "k", 20000);
    if (s.beside)
        assert_result(nxl_lock_release(s.beside), NXL_OK, s.beside);
    assert_result(nxl_lock_acquire(alone, 0), NXL_OK, alone);
    loop_reset(kind % 2);
    assert_int_equal(nxl_lock_acquire_start(s.lock, 20000), NXL_PENDING);
    loop_until_true(s.client, waiters_at(&server) == 1);
    assert_int_equal(nxl_lock_cancel(s.lock), NXL_OK);
    loop_until(s.client, 1);
    assert_int_equal(loop.event[0].result, NXL_CANCELLED);
    loop_until_true(s.client, waiters_at(&server) == 0);
    nxl_lock_free(alone);
    if (s.beside)
        assert_result(nxl_lock_acquire(s.beside, 2000), NXL_OK, s.beside);
    scene_ends(&s);
}

/* max_hold_ms ends one holder's lease, not the others'. */
static void max_hold(int kind)
{
    struct scene s =
        scene_of(kind, "", &OPTIONS(.renew = 1, .max_hold_ms = 700), 400);
    char why[256];
    assert_result(nxl_lock_acquire(s.lock, 0), NXL_OK, s.lock);
    assert_eventually(nxl_lock_loss(s.lock, why, sizeof(why)) != NXL_LOSS_NONE);
    assert_false(nxl_lock_held(s.lock));
    scene_ends(&s);
}

static const struct crossing {
    const char *name;
    void (*play)(int kind);
} crossings[] = {
    {"max_ttl_ms", max_ttl},
    {"min_hold_ms", min_hold},
    {"max_hold_ms", max_hold},
    {"poll=1", poll_1},
    {"adopt", adopt},
    {"extend", extend},
    {"break", unlock},
    {"password changes", credentials},
    {"renewed by a thread", renewed_by_a_thread},
    {"renewed by a loop", renewed_by_a_loop},
    {"cancelled in a loop", cancelled_in_a_loop},
};

static void each_kind_with_each_row(void **state)
{
    for (size_t i = 0; i < sizeof(crossings) / sizeof(crossings[0]); i++) {
        for (int kind = 0; kind < KINDS; kind++) {
            print_message("# %s, %s\n", crossings[i].name, kinds[kind].name);
            crossings[i].play(kind);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        live_test(each_kind_with_each_row),
    };
    return live_run_long("permit crossings");
}

/* SPDX-License-Identifier: MIT */
/*
 * Everything that can be done with a lock, done with one that was handed over
 * in line: by a message, by an answer to STAY, and by JOIN at once. Through
 * both APIs.
 *
 * Invariant: the result is that of a lock that was free; another client that
 * waits behind gets the lock; and nothing stays at the server.
 */
#include "live/in_line_rig.h"

#define NAME "job"
#define MIN_HOLD_MS 400
#define MAX_HOLD_MS 700
#define SHORT_MS 450

static struct scene {
    enum way way;
    nxl_client *before, *own, *after; /* the first and the last one block */
    nxl_lock *holder, *lock, *next;
    int64_t since_ms; /* the lock had been granted by then */
} on_stage;
static struct waiter next_waiter;

struct play {
    const char *name;
    nxl_lock_options options; /* of the lock, and what matters of its next's */
    /* Ends the hold, with a check of all results. */
    void (*body)(struct scene *s);
    int64_t least_ms; /* the next one is granted that much after the grant */
};

/* ------------------------------------------------------------- the endings */

static void release(struct scene *s)
{
    assert_result(CALL(s->own, release, s->lock), NXL_OK, s->lock);
    assert_false(nxl_lock_held(s->lock));
}

static void release_renewed(struct scene *s)
{
    nxl_stats stats = {0};
    uint64_t first = nxl_lock_deadline(s->lock);
    await_with(s->own, nxl_lock_deadline(s->lock) > first &&
                           test_now_ms() > s->since_ms + 2 * SHORT_MS);
    assert_true(nxl_lock_held(s->lock));
    assert_true(holds(NAME, s->lock));
    assert_int_equal(nxl_lock_loss(s->lock, NULL, 0), NXL_LOSS_NONE);
    assert_int_equal(nxl_client_stats(s->own, &stats, sizeof(stats)), NXL_OK);
    assert_between(stats.renewals, 2, 50);
    release(s);
}

static void release_fenced(struct scene *s)
{
    assert_true(nxl_lock_fence(s->lock) > nxl_lock_fence(s->holder));
    assert_true(nxl_lock_fence(s->holder) > 0);
    release(s);
}

static void release_fenced_and_renewed(struct scene *s)
{
    uint64_t number = nxl_lock_fence(s->lock);
    assert_true(number > nxl_lock_fence(s->holder));
    release_renewed(s);
    assert_true(nxl_lock_fence(s->lock) == number);
}

static void release_early(struct scene *s)
{
    release(s);
    assert_between(redis_pttl(servers, NAME), 1, MIN_HOLD_MS);
}

static void lose_to_max_hold(struct scene *s)
{
    await_with(s->own, !nxl_lock_held(s->lock));
    assert_between(
        test_now_ms() - s->since_ms, MAX_HOLD_MS - 100, MAX_HOLD_MS + LATE_MS);
    if (by_loop) {
        nxl_event event = next_event(s->own);
        assert_int_equal(event.operation, NXL_OP_HOLD);
        assert_int_equal(event.result, NXL_LOST);
    }
    assert_eventually(nxl_lock_loss(s->lock, NULL, 0) == NXL_LOSS_EXPIRED);
    assert_result(CALL(s->own, release, s->lock), NXL_LOST, s->lock);
}

static void extend(struct scene *s)
{
    uint64_t before = nxl_lock_deadline(s->lock);
    assert_result(CALL(s->own, extend, s->lock, 1000), NXL_OK, s->lock);
    assert_true(nxl_lock_deadline(s->lock) >= before); /* never shortens */
    assert_result(CALL(s->own, extend, s->lock, 40000), NXL_OK, s->lock);
    assert_between(nxl_lock_remaining_ms(s->lock), 39000, 40000);
    assert_between(redis_pttl(servers, NAME), 39000, 40000);
    release(s);
}

static void let_adopt(struct scene *s)
{
    nxl_client *heir = client_on(NO_GUARD);
    nxl_lock *adopted = new_lock(heir, NAME, 30000);
    assert_result(
        nxl_lock_adopt(adopted, nxl_lock_token(s->lock)), NXL_OK, adopted);
    assert_true(nxl_lock_remaining_ms(adopted) > 1000);
    assert_result(nxl_lock_extend(adopted, 0), NXL_OK, adopted);
    assert_true(holds(NAME, s->lock));
    assert_result(nxl_lock_release(adopted), NXL_OK, adopted);
    end(adopted, heir);
    assert_result(CALL(s->own, release, s->lock), NXL_LOST, s->lock);
}

static void let_break(struct scene *s)
{
    nxl_client *other = client_on(NO_GUARD);
    nxl_lock *lock = new_lock(other, NAME, 30000);
    nxl_holder seen = NXL_HOLDER_INIT;
    assert_result(nxl_lock_inspect(lock, &seen), NXL_OK, lock);
    assert_true(nxl_holder_is(&seen, nxl_lock_token(s->lock)));
    assert_result(nxl_lock_break(lock, &seen), NXL_OK, lock);
    assert_result(nxl_lock_break(lock, &seen), NXL_FREE, lock);
    end(lock, other);
    assert_result(CALL(s->own, release, s->lock), NXL_LOST, s->lock);
}

static void break_own(struct scene *s)
{
    nxl_holder seen = NXL_HOLDER_INIT;
    int rc = result_of(s->own, begin_inspect(s->lock));
    assert_result(rc, NXL_OK, s->lock);
    assert_int_equal(nxl_lock_holder(s->lock, &seen), NXL_OK);
    assert_true(seen.ours);
    assert_result(CALL(s->own, break, s->lock, &seen), NXL_OK, s->lock);
    assert_false(nxl_lock_held(s->lock));
}

static void free_lock(struct scene *s)
{
    nxl_lock_free(s->lock);
    s->lock = NULL;
    if (by_loop)
        turn(s->own, 0);
}

static void free_client(struct scene *s)
{
    nxl_client_free(s->own);
    s->own = NULL;
    nxl_lock_free(s->lock);
    s->lock = NULL;
}

/* What can come only while a call is in progress does not end the hold. */
static void cancel_in_vain(struct scene *s)
{
    assert_int_equal(nxl_lock_cancel(s->lock), NXL_OK);
    assert_int_equal(nxl_lock_interrupt(s->lock), NXL_OK);
    nxl_client_interrupt(s->own);
    assert_true(nxl_lock_held(s->lock));
    assert_true(holds(NAME, s->lock));
    release(s);
    assert_result(
        CALL(s->own, acquire, s->lock, 20000), NXL_CANCELLED, s->lock);
}

/* Its TTL runs out; nobody removes it. */
static void let_expire(struct scene *s)
{
    await_with(s->own, !nxl_lock_held(s->lock));
    assert_result(CALL(s->own, release, s->lock), NXL_LOST, s->lock);
}

static const struct play plays[] = {
    {"release", {.ttl_ms = 30000}, release, 0},
    {"renew", {.ttl_ms = SHORT_MS, .renew = 1}, release_renewed, 0},
    {"fence", {.ttl_ms = 3000, .fence = 1}, release_fenced, 0},
    {"fence, renewed", {.ttl_ms = SHORT_MS, .renew = 1, .fence = 1},
        release_fenced_and_renewed, 0},
    {"min_hold", {.ttl_ms = 1000, .min_hold_ms = MIN_HOLD_MS}, release_early,
        MIN_HOLD_MS},
    {"min_hold of more than the TTL",
        {.ttl_ms = 200, .min_hold_ms = MIN_HOLD_MS}, release_early,
        MIN_HOLD_MS},
    {"max_hold", {.ttl_ms = SHORT_MS, .renew = 1, .max_hold_ms = MAX_HOLD_MS},
        lose_to_max_hold, MAX_HOLD_MS - 100},
    {"extend", {.ttl_ms = 3000}, extend, 0},
    {"adopt", {.ttl_ms = 3000}, let_adopt, 0},
    {"break", {.ttl_ms = 30000}, let_break, 0},
    {"break by its holder", {.ttl_ms = 30000}, break_own, 0},
    {"free", {.ttl_ms = 30000}, free_lock, 0},
    {"free, renewed", {.ttl_ms = 600, .renew = 1}, free_lock, 0},
    {"free of the client", {.ttl_ms = 30000}, free_client, 0},
    {"cancel", {.ttl_ms = 30000}, cancel_in_vain, 0},
    {"expiry of the shortest TTL", {.ttl_ms = 13}, let_expire, 0},
    {"longest TTL", {.ttl_ms = 60000}, release, 0},
    {"label", {.ttl_ms = 30000, .label = "db7:41233:backup"}, release, 0},
};

/* ---------------------------------------------------------------- one cell */

static bool sensible(const struct scene *s, const struct play *play)
{
    /* A waiter finds a key that is deleted by hand only later than that. */
    return s->way != BY_STAY || play->options.ttl_ms > 13;
}

static void set_stage(struct scene *s, const struct play *play)
{
    nxl_lock_options options = play->options, others;
    options.size = sizeof(options);
    others = OPTIONS(.ttl_ms = 30000, .fence = options.fence);
    s->before = client_on(NO_GUARD);
    s->own = client_on(NO_GUARD);
    s->after = client_on(NO_GUARD);
    s->holder = live_lock(s->before, NAME, &others, __FILE__, __LINE__);
    s->lock = live_lock(s->own, NAME, &options, __FILE__, __LINE__);
    s->next = live_lock(s->after, NAME, &others, __FILE__, __LINE__);
}

static void run_play(enum way way, const struct play *play)
{
    struct scene *s = &on_stage;
    *s = (struct scene){.way = way};
    if (!sensible(s, play))
        return;
    quorum_clean(NULL);
    set_stage(s, play);
    bool lasts = play->body != let_expire;
    if (lasts)
        win_by(way, s->own, s->lock, s->holder, NAME);
    else
        win(s->own, s->lock, s->holder, NAME, true);
    s->since_ms = test_now_ms();
    uint64_t fence = nxl_lock_fence(s->lock);
    waiter_start(&next_waiter, s->next, 20000);
    if (lasts)
        await_with(s->own, line_listens(NAME, 1));
    play->body(s);
    assert_result(waiter_join(&next_waiter), NXL_OK, s->next);
    /* The clocks of grant and wait are read a little later than they begin. */
    assert_true(next_waiter.ended_ms - s->since_ms >= play->least_ms - 50);
    assert_true(holds(NAME, s->next));
    assert_int_equal(line_length(NAME), 0);
    assert_true(nxl_lock_fence(s->next) > fence || fence == 0);
    assert_result(nxl_lock_release(s->next), NXL_OK, s->next);
    assert_true(is_free(NAME));
    end(s->holder, s->before);
    end(s->lock, s->own);
    end(s->next, s->after);
    assert_true(is_free(NAME));
}

static void run_plays(enum way way)
{
    for (size_t i = 0; i < sizeof(plays) / sizeof(plays[0]); i++) {
        print_message("           %s, %s\n", ways[way], plays[i].name);
        run_play(way, &plays[i]);
    }
}

static void handed_over_by_a_message(void **state)
{
    run_plays(BY_MESSAGE);
}

static void granted_by_stay(void **state)
{
    run_plays(BY_STAY);
}

static void granted_by_join_at_once(void **state)
{
    run_plays(BY_JOIN);
}

/* ------------------------------------------------------------------- names */

/* How many keys there are, without those that make gaps. */
static long long keys_that_count(void)
{
    redisReply *r = redis_command(servers, "KEYS", "*:nxl-g", NULL);
    long long count = redis_run(servers, "DBSIZE", NULL);
    count -= (long long)r->elements;
    freeReplyObject(r);
    return count;
}

static void play_name(const char *prefix, const char *name, size_t length)
{
    char parameters[128];
    snprintf(parameters, sizeof(parameters), NO_GUARD "%s%s",
        *prefix ? "&prefix=" : "", prefix);
    nxl_client *client = client_on(parameters), *own = client_on(parameters);
    nxl_lock *holder = lock_with(client, name, .name_length = length);
    nxl_lock *lock = lock_with(own, name, .name_length = length);
    for (int round = 0; round < 2; round++) {
        assert_result(nxl_lock_acquire(holder, 0), NXL_OK, holder);
        long sets = redis_calls(servers, "set");
        begin_wait(&subject_waiter, own, lock, 20000);
        /* With a key that is too long for a channel it polls. */
        if (length > 512)
            await_with(own, redis_calls(servers, "set") >= sets + 3);
        else
            await_with(own, keys_that_count() == 3);
        assert_result(nxl_lock_release(holder), NXL_OK, holder);
        assert_result(end_wait(&subject_waiter, own), NXL_OK, lock);
        assert_int_equal(keys_that_count(), 1);
        assert_result(nxl_lock_acquire(holder, 0), NXL_BUSY, holder);
        assert_result(CALL(own, release, lock), NXL_OK, lock);
        assert_int_equal(keys_that_count(), 0);
    }
    end(holder, client);
    end(lock, own);
}

static void names_of_all_kinds(void **state)
{
    static char longest[NXL_NAME_MAX];
    memset(longest, ' ', sizeof(longest));
    play_name("", "a\0b", 3);
    play_name("", "with blanks and \r\n", 18);
    play_name("", "{tag}:1", 0);
    play_name("", "x{tag}", 0);
    play_name("", "{}x", 0);
    play_name("", "}{", 0);
    play_name("", "a}b{c", 0);
    play_name("", "%s %d", 0);
    play_name("app:", "job", 0);
    play_name("%7Bapp%7D:", "job", 0);
    play_name("", longest, 512);
    play_name("", longest, 513);
    play_name("", longest, sizeof(longest));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        api_test(handed_over_by_a_message),
        api_test(granted_by_stay),
        api_test(granted_by_join_at_once),
        api_test(names_of_all_kinds),
    };
    return on_run(one_unix, "line matrix", tests);
}

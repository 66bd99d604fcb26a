/* SPDX-License-Identifier: MIT */
/*
 * How a handle ends, crossed with what happened to its lease before: every
 * combination on real servers, through both APIs.
 *
 * Invariant: once the deadline that a lock was promised has passed, whatever
 * is done with its handle leaves the key alone; so an heir who adopted and
 * extended the lock, or a stranger who acquired it since, keeps it. No key
 * outlives the TTL that was last asked for. A record of work that its caller
 * knows to have begun stays as it is, and one that no caller knew of says that
 * nothing happened. Handles that wait in line: live/scenes/line_ends.scenes.
 *
 * Time passes by moving the clock that the library reads; the servers' clocks
 * stay, so a key that is gone was removed.
 */
#include "ends_rig.h"

#include <stdatomic.h>
#include <time.h>

int __real_clock_gettime(clockid_t id, struct timespec *time);
int __wrap_clock_gettime(clockid_t id, struct timespec *time);

static _Atomic int64_t clock_ahead_ms;

int __wrap_clock_gettime(clockid_t id, struct timespec *time)
{
    int rc = __real_clock_gettime(id, time);
    int64_t ns = time->tv_nsec + atomic_load(&clock_ahead_ms) % 1000 * 1000000;
    time->tv_sec += atomic_load(&clock_ahead_ms) / 1000 + ns / 1000000000;
    time->tv_nsec = ns % 1000000000;
    return rc;
}

static void pass_ms(int64_t ms)
{
    atomic_fetch_add(&clock_ahead_ms, ms);
}

/* -------------------------------------------------- what happens to a lease */

static void adopt_and_extend(struct cell *c)
{
    c->other = new_lock(others[c->servers], c->name, HEIR_MS);
    assert_result(nxl_lock_adopt(c->other, c->token), NXL_OK, c->other);
    assert_result(nxl_lock_extend(c->other, 0), NXL_OK, c->other);
}

static void remove_key(struct cell *c)
{
    for (size_t i = 0; i < c->servers; i++)
        redis_run(&servers[i], "DEL", c->name, NULL);
}

static atomic_bool cancelled;

static void *keep_cancelling(void *lock)
{
    while (!atomic_load(&cancelled))
        nxl_lock_cancel(lock);
    return NULL;
}

/* On a busy machine its time may be over before it is cancelled. */
static void assert_unanswered(int rc, nxl_lock *lock)
{
    if (rc != NXL_UNKNOWN)
        assert_result(rc, NXL_CANCELLED, lock);
}

/* Sent, and perhaps applied, but its answer is never seen. */
static void extend_unanswered(struct cell *c)
{
    pthread_t canceller;
    for (size_t i = 0; i < c->servers; i++)
        redis_freeze(&servers[i]);
    if (c->loop) {
        assert_int_equal(
            nxl_lock_extend_start(c->lock, EXTENDED_MS), NXL_PENDING);
        notice(c);
        nxl_lock_cancel(c->lock);
        if (c->ending != EVENT_NOT_TAKEN)
            assert_unanswered(await(c, NXL_PENDING), c->lock);
    } else {
        atomic_store(&cancelled, false);
        pthread_create(&canceller, NULL, keep_cancelling, c->lock);
        assert_unanswered(nxl_lock_extend(c->lock, EXTENDED_MS), c->lock);
        atomic_store(&cancelled, true);
        pthread_join(canceller, NULL);
    }
    for (size_t i = 0; i < c->servers; i++)
        redis_thaw(&servers[i]);
}

static void befall(struct cell *c)
{
    if (c->fate == REFUSED) {
        remove_key(c);
        assert_result(CELL(c, extend, c->lock, 0), NXL_LOST, c->lock);
    } else if (c->fate == UNANSWERED) {
        extend_unanswered(c);
    }
    if (c->heir && c->fate == REFUSED) { /* a stranger, in that case */
        c->other = new_lock(others[c->servers], c->name, HEIR_MS);
        assert_result(nxl_lock_acquire(c->other, 0), NXL_OK, c->other);
    } else if (c->heir) {
        adopt_and_extend(c);
    }
    if (c->fate == SILENCE) { /* lost a twentieth of the lease before its end */
        pass_ms(TTL_MS - 100);
        notice(c);
        assert_false(nxl_lock_held(c->lock));
    }
    if (c->fate != VALID)
        pass_ms(TTL_MS);
    if (c->fate == MAX_HOLD || c->ending == PROCESS_STOPPED)
        notice(c);
    assert_int_equal(
        nxl_lock_held(c->lock), c->fate == VALID && !(c->begun && untaken(c)));
}

/* ------------------------------------------------------------------ endings */

static bool stands(const struct cell *c)
{
    return keys_at(c->servers, c->name) > 0;
}

/* Its handle holds the lock anew, with a lease that is nothing to this test. */
static bool end_handle(struct cell *c)
{
    bool valid = c->fate == VALID, refused = c->fate == REFUSED;
    int again = valid ? NXL_E_INVALID : stands(c) ? NXL_BUSY : NXL_OK;
    int adopted = valid ? NXL_E_INVALID : refused ? NXL_LOST : NXL_OK;
    switch (c->ending) {
    case RELEASE:
        assert_result(
            CELL(c, release, c->lock), valid ? NXL_OK : NXL_LOST, c->lock);
        return false;
    case ACQUIRE_AGAIN:
        assert_result(CELL(c, acquire, c->lock, 0), again, c->lock);
        return again == NXL_OK;
    case ADOPT:
        assert_result(CELL(c, adopt, c->lock, c->token), adopted, c->lock);
        return adopted == NXL_OK;
    case CLIENT_FREE:
        nxl_client_free(c->client);
        c->client = NULL;
        return false;
    case FREE: /* all are freed */
    case EVENT_NOT_TAKEN:
    case PROCESS_STOPPED:
    case ENDINGS:
        break;
    }
    return false;
}

/* Whoever has the name now still has it, and can go on with it. */
static void assert_others_keep_it(struct cell *c)
{
    nxl_lock *third = new_lock(thirds[c->servers], c->name, HEIR_MS);
    for (size_t i = 0; i < c->servers; i++) {
        assert_true(stands_at(i, c->name, c->other));
        /* The heir had a majority; the last server may be a little later. */
        assert_eventually(redis_pttl(&servers[i], c->name) > EXTENDED_MS);
    }
    assert_true(nxl_lock_held(c->other));
    assert_result(nxl_lock_acquire(third, 0), NXL_BUSY, third);
    assert_result(nxl_lock_extend(c->other, 0), NXL_OK, c->other);
    nxl_lock_free(third);
}

static void assert_no_key_outlives(const struct cell *c, int64_t most)
{
    for (size_t i = 0; i < c->servers; i++) {
        int64_t left = redis_pttl(&servers[i], c->name);
        assert_true(left == -2 || (left >= 0 && left <= most));
    }
}

/* Before the deadline the end of the handle ends the lock, whoever has adopted
 * it: this is what nxl_lock_adopt() documents. With min_hold_ms the key stays;
 * a release cuts it short to that at a majority. */
static void assert_ended(const struct cell *c)
{
    size_t cut_short = 0;
    if (!c->min_hold) {
        assert_false(stands(c));
        return;
    }
    assert_no_key_outlives(c, c->heir ? HEIR_MS : TTL_MS);
    for (size_t i = 0; i < c->servers; i++)
        cut_short += redis_pttl(&servers[i], c->name) <= MIN_HOLD_MS;
    if (c->ending == RELEASE)
        assert_true(cut_short > c->servers / 2);
}

static void make_lock(struct cell *c)
{
    by_loop = c->loop;
    c->client = quorum_client(c->servers, NO_GUARD);
    c->lock = lock_with(c->client, c->name, .ttl_ms = TTL_MS, .renew = c->renew,
        .fence = c->fence, .min_hold_ms = c->min_hold ? MIN_HOLD_MS : 0,
        .max_hold_ms = c->fate == MAX_HOLD ? TTL_MS : 0);
}

static void acquire(struct cell *c)
{
    if (c->servers > 1)
        connect_to_all(c);
    int rc = begin_acquire(c, 1000);
    if (untaken(c))
        await_grant(c);
    else
        assert_result(await(c, rc), NXL_OK, c->lock);
    snprintf(c->token, sizeof(c->token), "%s", nxl_lock_token(c->lock));
}

static void assert_recorded(const struct cell *c)
{
    if (!c->begun)
        assert_string_equal(record_of(c), "");
    else
        assert_string_equal(record_of(c), untaken(c) ? "failed" : "begun");
}

static void assert_fair(struct cell *c)
{
    if (c->fate == VALID)
        assert_ended(c);
    else if (c->heir)
        assert_others_keep_it(c);
    else
        assert_no_key_outlives(c, c->fate == UNANSWERED ? EXTENDED_MS : TTL_MS);
}

static void play(struct cell *c)
{
    make_lock(c);
    acquire(c);
    befall(c);
    bool held_anew = end_handle(c);
    if (c->heir && c->fate != VALID)
        assert_others_keep_it(c);
    nxl_lock_free(c->lock);
    nxl_client_free(c->client); /* what it has to send is sent by then */
    if (!held_anew) /* else it was another lease that was released */
        assert_fair(c);
    assert_recorded(c);
    nxl_lock_free(c->other);
    remove_key(c);
}

/* ---------------------------------------------------------------- the table */

static size_t played;

static void play_all_of(struct cell *frame)
{
    for (int ending = 0; ending < ENDINGS; ending++) {
        for (int fate = 0; fate < FATES; fate++) {
            struct cell c = *frame;
            c.ending = (enum ending)ending;
            c.fate = (enum fate)fate;
            if (!sensible(&c))
                continue;
            snprintf(c.name, sizeof(c.name), "k%zu", played++);
            print_message("%s, %s%s%s%s%s%s, %s, %zu\n", fates[c.fate],
                endings[c.ending], c.begun ? ", begun" : "",
                c.heir ? ", heir" : "", c.renew ? ", renew" : "",
                c.min_hold ? ", min_hold" : "", c.fence ? ", fence" : "",
                c.loop ? "event loop" : "blocking", c.servers);
            play(&c);
        }
    }
}

static void play_table(size_t count, bool loop)
{
    others[count] = quorum_client(count, NO_GUARD);
    thirds[count] = quorum_client(count, NO_GUARD);
    connect_all(others[count]);
    connect_all(thirds[count]);
    for (unsigned bits = 0; bits < 32; bits++) {
        struct cell frame = {.heir = bits & 1,
            .renew = bits & 2,
            .min_hold = bits & 4,
            .fence = bits & 8,
            .begun = bits & 16,
            .loop = loop,
            .servers = count};
        play_all_of(&frame);
    }
    nxl_client_free(others[count]);
    nxl_client_free(thirds[count]);
}

static void every_cell(void **state)
{
    play_table(on.servers, by_loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        api_test(every_cell),
    };
    return on_one_and_three_run("how a handle ends", tests);
}

/* SPDX-License-Identifier: MIT */
/*
 * Another server answers, older or newer: after a failover, on the same
 * connection, between two operations and at each step of one. The strategies
 * are searched again, and a token that was acquired by one strategy is extended
 * and released by another. A lock that is stored as a unix time is extended and
 * released as one wherever there is WATCH; one that is stored as a token cannot
 * be extended before 2.6.
 */
#include "live/strategies_step.h"

#include <stdlib.h>

/* ------------------------------- the places behind one proxy, to go between
 */

static const struct place plain = {"7.0 behind a proxy", AGED, AGED_PLAIN, NULL,
    NULL, BY_SET, BY_SCRIPT, BY_SCRIPT, BY_SCRIPT};

/* The places behind the proxy. (That one has no GETRANGE is learnt once a
 * connection, and so it is no place to come to.) */
static const struct place *stops[PLACES + 1];
static unsigned stop_count;

static inline void find_stops(void)
{
    stops[stop_count++] = &plain;
    for (unsigned i = 0; i < PLACES; i++)
        if (places[i].kind == AGED &&
            (!places[i].without || strcmp(places[i].without, "GETRANGE") != 0))
            stops[stop_count++] = &places[i];
}

/* From now on this one answers. */
static inline void go_to(const struct place *place, bool cut)
{
    here = place;
    aged_allow(aged);
    if (place->without)
        aged_refuse(aged, place->without, place->words);
    aged_profile_now(aged, place->age, cut);
}

static inline bool is_old(const struct place *place)
{
    return place->acquire == BY_STAMP;
}

/* There, what stands at KEY now. */
static bool can_extend(const struct place *place)
{
    return stamped_at(KEY) || !is_old(place);
}

/* It is said, and nothing has changed. */
static void assert_no_way(int rc, nxl_lock *lock)
{
    assert_true(rc == NXL_E_UNSUPPORTED || rc == NXL_E_DENIED);
    assert_ours(KEY, lock);
}

/* ------------------------------------------------------ between operations */

static void release_here(nxl_lock *lock)
{
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_false(redis_exists(&server, KEY));
}

/* Another client, which knows nothing, finds it held; and by its token takes
 * part in it, to the end. */
static void meet_others(nxl_lock *lock)
{
    nxl_client *others = client_here("");
    nxl_lock *other = new_lock(others, KEY, TTL);
    assert_result(nxl_lock_acquire(other, 0), NXL_BUSY, other);
    assert_result(nxl_lock_acquire(other, 20), NXL_BUSY, other);
    assert_ours(KEY, lock);
    assert_result(nxl_lock_adopt(other, nxl_lock_token(lock)), NXL_OK, other);
    if (can_extend(here))
        assert_result(nxl_lock_extend(other, 30000), NXL_OK, other);
    else
        assert_no_way(nxl_lock_extend(other, 30000), other);
    release_here(other);
    end(other, others);
    int rc = nxl_lock_release(lock);
    assert_true(rc == NXL_LOST || rc == NXL_E_UNSUPPORTED ||
                rc == NXL_E_DENIED); /* it cannot ask */
}

static void held_here(nxl_lock *lock)
{
    if (can_extend(here)) {
        assert_result(nxl_lock_extend(lock, 40000), NXL_OK, lock);
        assert_lasts(KEY, 38000, 40000);
        assert_result(nxl_lock_extend(lock, 1000), NXL_OK, lock);
        assert_lasts(KEY, 35000, 40000);
    } else {
        assert_no_way(nxl_lock_extend(lock, 40000), lock);
        assert_true(nxl_lock_held(lock));
    }
    assert_result(look(lock), NXL_OK, lock);
    assert_ours(KEY, lock);
}

static void learn_here(nxl_lock *lock)
{
    assert_result(nxl_lock_extend(lock, 30000), NXL_OK, lock);
    assert_result(look(lock), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
}

static void cycle_from(
    const struct place *from, const struct place *to, bool cut)
{
    go_to(from, true);
    redis_run(&server, "SCRIPT", "FLUSH", NULL);
    nxl_client *client = learnt_client("");
    nxl_lock *lock = new_lock(client, KEY, TTL);
    assert_by(from->acquire, nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_int_equal(stamped_at(KEY), is_old(from));

    go_to(to, cut);
    held_here(lock);
    if (is_old(from) != is_old(to))
        meet_others(lock);
    else
        release_here(lock);

    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_eventually(nobody_in_multi());
    /* Its own best way, and no other. */
    if (cut) {
        assert_int_equal(stamped_at(KEY), is_old(to));
        if (is_old(from) != is_old(to)) /* known by now only of the old form */
            learn_here(lock);
        assert_by(to->extend, nxl_lock_extend(lock, 50000), NXL_OK, lock);
        assert_by(to->inspect, look(lock), NXL_OK, lock);
        assert_by(to->release, nxl_lock_release(lock), NXL_OK, lock);
        assert_by(to->acquire, nxl_lock_acquire(lock, 0), NXL_OK, lock);
    }
    go_to(from, cut);
    release_here(lock);
    end(lock, client);
}

/* The search costs one refused command per strategy, and happens once. */
static void from_each_to_each(void **state)
{
    for (unsigned i = 0; i < stop_count; i++)
        for (unsigned j = 0; j < stop_count; j++)
            for (int cut = 0; cut < 2; cut++)
                cycle_from(stops[i], stops[j], cut);
    go_to(&plain, true);
}

static const struct place no_scripts = {"7.0 without scripts", AGED, AGED_PLAIN,
    "EVAL EVALSHA SCRIPT", AGED_NOPERM, BY_SET, BY_WATCH, BY_WATCH, BY_READ};

/* A failed-over connection is told of as what it is. */
static void told_anew(void **state)
{
    char text[512];
    go_to(&no_scripts, true);
    nxl_client *client = learnt_client("");
    nxl_client_describe(client, text, sizeof(text));
    assert_contains(text, "SET NX PX + WATCH");
    go_to(&plain, true);
    nxl_lock *lock = new_lock(client, KEY, TTL);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    nxl_client_describe(client, text, sizeof(text));
    assert_contains(text, "7.0");
    assert_contains(text, "SET NX PX + scripts");
    end(lock, client);
}

/* ------------------------------------------------------- in the midst of one
 */

static bool one_step(const struct place *from, const struct place *to, bool cut)
{
    go_to(from, true);
    open_op(PATIENT);
    bool stopped = stop_at_step();
    go_to(to, cut);
    let_all_through();
    pthread_join(op.thread, NULL);
    if (stopped && cut && op.result == NXL_UNKNOWN && op.verb == EXTEND) {
        assert_false(can_extend(here)); /* done before, or not at all */
    } else if (stopped && op.result != NXL_OK && op.verb == EXTEND &&
               !can_extend(here)) {
        assert_no_way(op.result, op.lock);
        go_to(&plain, true); /* where there is one */
    } else if (!cut || !stopped || op.verb == EXTEND || op.verb == LOOK) {
        assert_result(op.result, NXL_OK, op.lock); /* asked again */
    } else {
        assert_true(op.result == NXL_OK || op.result == NXL_UNKNOWN);
    }
    if (nxl_lock_held(op.lock) && !can_extend(here))
        go_to(&plain, true);
    assert_goes_on();
    close_op();
    return stopped;
}

static void sweep(const struct place *from, const struct place *to, bool cut)
{
    op.learnt = true;
    for (int verb = ACQUIRE; verb <= LOOK; verb++)
        for (int side = REQUEST; side <= REPLY; side++) {
            op.verb = (enum verb)verb;
            op.side = (enum side)side;
            op.step = 0;
            while (op.step < STEPS && one_step(from, to, cut))
                op.step++;
            assert_between(op.step, 1, STEPS - 1);
        }
}

/* From one place to the others. */
struct way_out {
    unsigned from;
    bool cut;
    char name[128];
};

/* What was learnt does not outlive a connection, so of the failovers a third
 * will do: from and to each place in several ways. Without NXLOCK_FULL half of
 * these, and of the others; which half depends on the place. */
static void at_each_step(void **state)
{
    const struct way_out *way = *state;
    place_clean(state);
    unsigned step = (way->cut ? 3U : 1U) * (getenv("NXLOCK_FULL") ? 1 : 2);
    for (unsigned j = 1 + way->from % step; j < stop_count; j += step) {
        const struct place *to = stops[(way->from + j) % stop_count];
        sweep(stops[way->from], to, way->cut);
    }
    go_to(&plain, true);
    place_check(state);
}

/* A test for each place, for together they take long: on a busy machine it
 * would not be known whether that moves on or hangs. */
int main(void)
{
    static struct way_out ways[2 * (PLACES + 1)];
    struct CMUnitTest tests[2 + 2 * (PLACES + 1)] = {
        place_test(from_each_to_each),
        place_test(told_anew),
    };
    size_t count = 2;

    find_stops();
    for (unsigned i = 0; i < 2 * stop_count; i++) {
        struct way_out *way = &ways[i];
        way->from = i / 2;
        way->cut = i % 2;
        snprintf(way->name, sizeof(way->name), "at each step from %s%s",
            stops[way->from]->name, way->cut ? ", by failover" : "");
        tests[count++] =
            (struct CMUnitTest){way->name, at_each_step, NULL, NULL, way};
    }
    any_form = true;
    here = &plain;
    return test_run_group("changes", tests, count, place_open, place_close);
}

/* SPDX-License-Identifier: MIT */
/*
 * Looking at a name, taking a lock over by its token, and breaking exactly
 * what was seen.
 */
#include "live/live_rig.h"

#define RUBBISH 0xee

static const char foreign[] = "123e4567-e89b-42d3-a456-426614174000@them";

/* ----------------------------------------------------------------- inspect */

static void we_hold_it(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "job", 5000);
    nxl_lock *other = new_lock(client, "job", 5000);
    nxl_holder seen = NXL_HOLDER_INIT;
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    uint64_t deadline = nxl_lock_deadline(lock);
    assert_result(nxl_lock_inspect(lock, &seen), NXL_OK, lock);
    assert_int_equal(seen.size, sizeof(seen));
    assert_string_equal(seen.value, nxl_lock_token(lock));
    assert_int_equal(seen.value_length, 36);
    assert_false(seen.truncated);
    assert_true(seen.ours);
    assert_null(seen.label);
    assert_between(seen.left_ms, 2500, 5000);
    assert_true(nxl_lock_held(lock));
    assert_int_equal(nxl_lock_deadline(lock), deadline);

    /* Ours means this handle's. */
    assert_result(nxl_lock_inspect(other, &seen), NXL_OK, other);
    assert_string_equal(seen.value, nxl_lock_token(lock));
    assert_false(seen.ours);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_result(nxl_lock_inspect(lock, &seen), NXL_FREE, lock);
    nxl_lock_free(other);
    end(lock, client);
}

static void another_holds_it(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "job", 5000);
    nxl_holder seen = NXL_HOLDER_INIT;
    stranger_sets("job", foreign, 7000);
    assert_result(nxl_lock_inspect(lock, &seen), NXL_OK, lock);
    assert_string_equal(seen.value, foreign);
    assert_int_equal(seen.value_length, strlen(foreign));
    assert_false(seen.ours);
    assert_ptr_equal(seen.label, seen.value + 37);
    assert_string_equal(seen.label, "them");
    assert_between(seen.left_ms, 6000, 7000);

    stranger_sets("job", "not@a token", 0);
    assert_result(nxl_lock_inspect(lock, &seen), NXL_OK, lock);
    assert_string_equal(seen.value, "not@a token");
    assert_null(seen.label);
    assert_int_equal(seen.left_ms, -1);
    end(lock, client);
    assert_value("job", "not@a token");
}

/* ------------------------------------------------------------------- break */

static void break_needs_something_seen(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "job", 5000);
    nxl_holder empty = NXL_HOLDER_INIT;
    assert_result(nxl_lock_break(lock, NULL), NXL_E_INVALID, lock);
    assert_result(nxl_lock_break(lock, &empty), NXL_E_INVALID, lock);
    assert_contains(nxl_lock_errmsg(lock), "nxl_lock_inspect");
    assert_int_equal(redis_calls(&server, "evalsha"), 0);
    end(lock, client);
}

/* Programs that were built with an older or a newer header: the bytes behind
 * the size they give are theirs. */
union caller {
    nxl_holder holder;
    unsigned char bytes[sizeof(nxl_holder) + 64];
};

static int ask_inspect(nxl_lock *lock, nxl_holder *holder)
{
    return nxl_lock_inspect(lock, holder);
}

static int ask_holder(nxl_lock *lock, nxl_holder *holder)
{
    return nxl_lock_holder(lock, holder);
}

static int ask_holder_at(nxl_lock *lock, nxl_holder *holder)
{
    return nxl_lock_holder_at(lock, 0, 0, holder);
}

static void caller_of_size(union caller *caller, size_t size)
{
    memset(caller, RUBBISH, sizeof(*caller));
    caller->holder.size = size;
}

static void shows_as_much_as_fits(
    int (*ask)(nxl_lock *, nxl_holder *), nxl_lock *lock, size_t size)
{
    union caller caller;
    nxl_holder *seen = &caller.holder;
    size_t known = size < sizeof(*seen) ? size : sizeof(*seen);

    caller_of_size(&caller, size);
    assert_result(ask(lock, seen), NXL_OK, lock);
    assert_int_equal(seen->size, size);
    assert_string_equal(seen->value, foreign);
    assert_int_equal(seen->value_length, strlen(foreign));
    assert_false(seen->truncated);
    assert_false(seen->ours);
    assert_true(nxl_holder_is(seen, foreign));
    if (size >= offsetof(nxl_holder, left_ms))
        assert_ptr_equal(seen->label, seen->value + 37);
    if (size >= offsetof(nxl_holder, value_ends_s))
        assert_between(seen->left_ms, 50000, 60000);
    if (size >= sizeof(*seen))
        assert_int_equal(seen->value_ends_s, 0);
    for (size_t i = known; i < sizeof(caller); i++)
        assert_int_equal(caller.bytes[i], RUBBISH);
}

static void refuses_the_size(
    int (*ask)(nxl_lock *, nxl_holder *), nxl_lock *lock, size_t size)
{
    union caller caller, before;

    caller_of_size(&caller, size);
    before = caller;
    assert_int_equal(ask(lock, &caller.holder), NXL_E_INVALID);
    assert_memory_equal(&caller, &before, sizeof(caller));
}

static void too_small_for_break(nxl_lock *lock, size_t size)
{
    union caller caller = {.holder = NXL_HOLDER_INIT};

    strcpy(caller.holder.value, foreign);
    caller.holder.value_length = strlen(foreign);
    caller.holder.size = size;
    assert_false(nxl_holder_is(&caller.holder, foreign));
    assert_result(nxl_lock_break(lock, &caller.holder), NXL_E_INVALID, lock);
    assert_contains(nxl_lock_errmsg(lock), "NXL_HOLDER_INIT");
    assert_value("job", foreign);
}

static void holders_of_every_size(void **state)
{
    static const struct {
        size_t size;
        bool fits;
    } sizes[] = {{0, false}, {sizeof(size_t), false},
        {offsetof(nxl_holder, ours), false},
        {offsetof(nxl_holder, label) - 1, false},
        {offsetof(nxl_holder, label), true},
        {offsetof(nxl_holder, left_ms), true},
        {offsetof(nxl_holder, value_ends_s), true}, {sizeof(nxl_holder), true},
        {sizeof(nxl_holder) + 8, true}, {sizeof(union caller), true}};
    /* The last two show what the inspection before them found. */
    static int (*const asks[])(nxl_lock *, nxl_holder *) = {
        ask_inspect, ask_holder, ask_holder_at};
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "job", 5000);

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        size_t size = sizes[i].size;
        union caller caller;
        stranger_sets("job", foreign, 60000);
        if (!sizes[i].fits) {
            refuses_the_size(ask_inspect, lock, size);
            assert_contains(nxl_lock_errmsg(lock), "NXL_HOLDER_INIT");
            assert_result(nxl_lock_inspect(lock, NULL), NXL_OK, lock);
            refuses_the_size(ask_holder, lock, size);
            refuses_the_size(ask_holder_at, lock, size);
            too_small_for_break(lock, size);
            continue;
        }
        for (size_t k = 0; k < sizeof(asks) / sizeof(*asks); k++)
            shows_as_much_as_fits(asks[k], lock, size);
        caller_of_size(&caller, size);
        assert_result(nxl_lock_inspect(lock, &caller.holder), NXL_OK, lock);
        assert_result(nxl_lock_break(lock, &caller.holder), NXL_OK, lock);
        assert_false(redis_exists(&server, "job"));
    }
    end(lock, client);
}

/* One holder at most: there is none at the second index. */
static void holders_by_index(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "job", 5000);
    nxl_holder seen = NXL_HOLDER_INIT;

    stranger_sets("job", foreign, 60000);
    assert_result(nxl_lock_inspect(lock, NULL), NXL_OK, lock);
    assert_int_equal(nxl_lock_holder_at(lock, 0, 1, &seen), NXL_FREE);
    assert_int_equal(nxl_lock_holder_at(lock, 0, SIZE_MAX, &seen), NXL_FREE);
    assert_int_equal(seen.value_length, 0);
    assert_int_equal(nxl_lock_holder_at(lock, 1, 1, &seen), NXL_E_INVALID);
    assert_int_equal(nxl_lock_holder_at(lock, 0, 0, &seen), NXL_OK);
    assert_string_equal(seen.value, foreign);
    end(lock, client);
}

/* ------------------------------------------------------------------- adopt */

static void token_is_taken_over(void **state)
{
    nxl_client *one = new_client(""), *two = new_client("");
    nxl_lock *parent = lock_with(one, "job", .ttl_ms = 9000, .label = "parent");
    nxl_lock *child = new_lock(two, "job", 5000);
    nxl_holder seen = NXL_HOLDER_INIT;
    assert_result(nxl_lock_acquire(parent, 0), NXL_OK, parent);
    uint64_t before = nxl_now_ns();
    assert_result(nxl_lock_adopt(child, nxl_lock_token(parent)), NXL_OK, child);
    assert_true(nxl_lock_held(child));
    assert_string_equal(nxl_lock_token(child), nxl_lock_token(parent));
    /* Counted from what is left at the server, less its own drift. */
    assert_true(nxl_lock_deadline(child) > before);
    assert_true(nxl_lock_deadline(child) <= nxl_now_ns() + LEASE_NS(9000));
    assert_result(nxl_lock_inspect(child, &seen), NXL_OK, child);
    assert_true(seen.ours);
    assert_string_equal(seen.label, "parent");

    assert_result(nxl_lock_extend(child, 20000), NXL_OK, child);
    assert_between(redis_pttl(&server, "job"), 15000, 20000);
    assert_result(
        nxl_lock_adopt(child, nxl_lock_token(parent)), NXL_E_INVALID, child);
    assert_result(nxl_lock_acquire(child, 0), NXL_E_INVALID, child);
    assert_result(nxl_lock_release(child), NXL_OK, child);
    assert_result(nxl_lock_release(parent), NXL_LOST, parent);

    /* The next token is the handle's own again, without that label. */
    assert_result(nxl_lock_acquire(child, 0), NXL_OK, child);
    assert_int_equal(strlen(nxl_lock_token(child)), 36);
    assert_value("job", nxl_lock_token(child));
    assert_result(nxl_lock_release(child), NXL_OK, child);
    end(parent, one);
    end(child, two);
}

/* A deadline from PTTL: what is left when the answer is on its way. */
static void adopted_lease_ends_with_the_key(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "job", 60000);
    stranger_sets("job", foreign, 400);
    uint64_t before = nxl_now_ns();
    assert_result(nxl_lock_adopt(lock, foreign), NXL_OK, lock);
    assert_true(nxl_lock_deadline(lock) <=
                before + UINT64_C(400000000) + UINT64_C(1000000) * LATE_MS);
    uint64_t deadline = nxl_lock_deadline(lock);
    assert_eventually(!redis_exists(&server, "job"));
    assert_true(nxl_now_ns() > deadline);
    assert_false(nxl_lock_held(lock));
    assert_result(nxl_lock_release(lock), NXL_LOST, lock);
    end(lock, client);
}

static void only_the_token_that_stands_is_adopted(void **state)
{
    static const char *const bad[] = {"", "x", "somebody",
        "123e4567-e89b-42d3-a456-42661417400",
        "123e4567-e89b-42d3-a456-4266141740000",
        "123e4567-e89b-42d3-a456-426614174000@",
        "123e4567-e89b-42d3-a456-426614174000@a b",
        "123e4567-e89b-42d3-a456-426614174000@a\n",
        " 123e4567-e89b-42d3-a456-426614174000",
        "123e4567+e89b-42d3-a456-426614174000"};
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "job", 5000);
    assert_result(nxl_lock_adopt(lock, foreign), NXL_LOST, lock); /* free */
    stranger_sets("job", "123e4567-e89b-42d3-a456-426614174000@THEM", 5000);
    assert_result(nxl_lock_adopt(lock, foreign), NXL_LOST, lock);
    stranger_sets("job", "123e4567-e89b-42d3-a456-426614174000@them2", 5000);
    assert_result(nxl_lock_adopt(lock, foreign), NXL_LOST, lock);
    assert_false(nxl_lock_held(lock));
    assert_result(nxl_lock_release(lock), NXL_E_INVALID, lock);

    long calls = redis_calls(&server, "evalsha");
    assert_result(nxl_lock_adopt(lock, NULL), NXL_E_INVALID, lock);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_result(nxl_lock_adopt(lock, bad[i]), NXL_E_INVALID, lock);
    assert_contains(nxl_lock_errmsg(lock), "UUID@label");
    assert_int_equal(redis_calls(&server, "evalsha"), calls);
    assert_value("job", "123e4567-e89b-42d3-a456-426614174000@them2");

    assert_int_equal(redis_run(&server, "DEL", "job", NULL), 1);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_value("job", nxl_lock_token(lock));
    end(lock, client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        live_test(we_hold_it),
        live_test(another_holds_it),
        live_test(break_needs_something_seen),
        live_test(holders_of_every_size),
        live_test(holders_by_index),
        live_test(token_is_taken_over),
        live_test(adopted_lease_ends_with_the_key),
        live_test(only_the_token_that_stands_is_adopted),
    };
    return live_run("inspect");
}

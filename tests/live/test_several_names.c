/* SPDX-License-Identifier: MIT */
/*
 * Handles of several names (nxl_lock_new_many()) through the public interface:
 * which name is busy or lost, with each kind of lock, and every way to end.
 * Nothing may be left on the server in any row.
 */
#include "live/several_rig.h"

/* ------------------------------------------------------------- the refusals */

static void refused(nxl_client *client, const char *const *names,
    const size_t *lengths, size_t count, const nxl_lock_options *options,
    const char *words)
{
    nxl_lock *lock = (nxl_lock *)client;
    assert_int_equal(
        nxl_lock_new_many(&lock, client, names, lengths, count, options),
        NXL_E_INVALID);
    assert_null(lock);
    assert_contains(nxl_client_errmsg(client), words);
}

static void the_refusals(void **state)
{
    static const char *const empty[] = {"a", ""}, *const null[] = {"a", NULL};
    static const char *const equal[] = {"x", "y", "z", "y"};
    static const char *const bytes[] = {"xy", "xz"};
    static const size_t one_byte[] = {1, 1}, two_bytes[] = {2, 2};
    nxl_client *client = new_client("");
    nxl_lock *lock;
    assert_int_equal(
        nxl_lock_new_many(NULL, client, three, NULL, 3, NULL), NXL_E_INVALID);
    assert_int_equal(
        nxl_lock_new_many(&lock, NULL, three, NULL, 3, NULL), NXL_E_INVALID);
    refused(client, NULL, NULL, 2, NULL, "the array of names is NULL");
    refused(client, three, NULL, 0, NULL, "2 to 64");
    refused(client, three, NULL, 1, NULL, "nxl_lock_new()");
    refused(client, three, NULL, NXL_NAMES_MAX + 1, NULL, "65 names");
    refused(client, empty, NULL, 2, NULL, "the name is empty");
    refused(client, null, NULL, 2, NULL, "the name is NULL");
    refused(client, equal, NULL, 4, NULL, "names[1] and names[3] are equal");
    refused(client, bytes, one_byte, 2, NULL, "are equal: 'x'");
    refused(client, three, NULL, 3, &OPTIONS(.name_length = 2), "lengths");
    refused(client, three, NULL, 3, &OPTIONS(.ttl_ms = 1), "ttl_ms");
    assert_int_equal(
        nxl_lock_new_many(&lock, client, bytes, two_bytes, 2, NULL), NXL_OK);
    nxl_lock_free(lock);

    lock = three_with(client, .ttl_ms = 20000);
    nxl_holder holder = NXL_HOLDER_INIT;
    assert_int_equal(nxl_lock_inspect(lock, &holder), NXL_E_INVALID);
    assert_contains(nxl_lock_errmsg(lock), "nxl_lock_new()");
    assert_int_equal(nxl_lock_break(lock, &holder), NXL_E_INVALID);
    assert_int_equal(nxl_once_begin(lock, NULL, 0), NXL_E_INVALID);
    assert_int_equal(
        nxl_once_tell(lock, NXL_ONCE_DONE, 0, NULL, 0), NXL_E_INVALID);
    assert_int_equal(nxl_once_forget(lock), NXL_E_INVALID);
    assert_int_equal(nxl_lock_holder(lock, &holder), NXL_E_INVALID);
    assert_int_equal(nxl_lock_acquire(lock, -2), NXL_E_INVALID);
    assert_int_equal(nxl_lock_adopt(lock, "no token"), NXL_E_INVALID);
    assert_int_equal(nxl_lock_release(lock), NXL_E_INVALID);
    assert_int_equal(nxl_lock_extend(lock, 0), NXL_E_INVALID);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_int_equal(nxl_lock_extend(lock, 1), NXL_E_INVALID);
    assert_int_equal(nxl_lock_acquire(lock, 0), NXL_E_INVALID);
    assert_true(nxl_lock_held(lock));
    end(lock, client);
}

static void the_names(void **state)
{
    static const char *const names[] = {"b", "a\0x", "a"};
    static const size_t lengths[] = {1, 3, 1};
    nxl_client *client = new_client("prefix=p:");
    nxl_lock *lock, *one = new_lock(client, "one", 20000);
    assert_int_equal(
        nxl_lock_new_many(&lock, client, names, lengths, 3, NULL), NXL_OK);
    assert_int_equal(nxl_lock_names(lock), 3);
    for (size_t i = 0; i < 3; i++) {
        size_t length = 9;
        assert_memory_equal(nxl_lock_name(lock, i, &length), names[i], 4 - 2);
        assert_int_equal(length, lengths[i]);
        assert_int_equal(nxl_lock_name(lock, i, NULL)[length], 0);
    }
    size_t length = 9;
    assert_null(nxl_lock_name(lock, 3, &length));
    assert_int_equal(length, 0);
    assert_int_equal(nxl_lock_names(one), 1);
    assert_string_equal(nxl_lock_name(one, 0, NULL), "one");
    assert_null(nxl_lock_name(one, 1, NULL));
    assert_null(nxl_lock_name(NULL, 0, NULL));
    assert_int_equal(nxl_lock_names(NULL), 0);
    assert_int_equal(nxl_lock_fence_of(NULL, 0), 0);
    assert_string_equal(nxl_lock_token(lock), "");
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_true(exists("p:a") && exists("p:b"));
    assert_int_equal(nxl_client_holds(client, "a", 1), 1);
    assert_int_equal(nxl_client_holds(client, "a\0x", 3), 1);
    assert_int_equal(nxl_client_holds(client, "c", 1), 0);
    nxl_lock_free(one);
    end(lock, client);
    assert_int_equal(redis_run(&server, "DBSIZE", NULL), 0);
}

/* ------------------------------------------------- which name is busy, or not
 */

struct row {
    enum kind kind;
    int renew, fence;
    const char *parameters;
    int busy; /* sorted[busy] is; 3: none */
    int64_t wait_ms;
};

static void acquire_beside_one(const struct row *row)
{
    static struct waiter waiter;
    nxl_client *client = new_client(row->parameters);
    nxl_client *other = new_client("");
    nxl_lock_options options = options_of(row->kind, row->renew, row->fence);
    nxl_lock *lock = several(client, three, 3, &options);
    nxl_lock *busy =
        new_lock(other, row->busy < 3 ? sorted[row->busy] : "d", 20000);
    bool waits = row->wait_ms > 0 && row->busy < 3;
    int expected = row->busy < 3 && !waits ? NXL_BUSY : NXL_OK;
    /* Then the server is known to run scripts, and names are asked for early.
     */
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_result(nxl_lock_acquire(busy, 0), NXL_OK, busy);
    waiter_start(&waiter, lock, row->wait_ms);
    if (waits) {
        for (int i = 0; i < row->busy; i++)
            await(exists(sorted[i]));
        if (!*row->parameters)
            await(in_line(sorted[row->busy]));
        for (int i = row->busy + 1; i < 3; i++)
            assert_false(exists(sorted[i]));
        assert_false(nxl_lock_held(lock));
        for (unsigned i = 0; i < 3; i++)
            assert_int_equal(
                nxl_client_holds(client, sorted[i], strlen(sorted[i])), 0);
        assert_result(nxl_lock_release(busy), NXL_OK, busy);
    }
    int rc = waiter_join(&waiter);
    live_assert_result(rc, expected, nxl_lock_errmsg(lock), "row", row->busy);
    assert_int_equal(nxl_lock_held(lock), expected == NXL_OK);
    if (expected == NXL_OK) {
        assert_all_have_the_token(lock, row->kind);
        assert_between(nxl_lock_remaining_ms(lock), 10000, 22000);
        assert_int_equal(nxl_client_holds(client, "beta", 4), 1);
        for (size_t i = 0; i < 3; i++)
            assert_int_equal(nxl_lock_fence_of(lock, i) > 0,
                row->fence && row->kind != PERMITS);
        assert_int_equal(nxl_lock_fence(lock), 0);
        assert_result(nxl_lock_release(lock), NXL_OK, lock);
    } else {
        char quoted[32];
        snprintf(quoted, sizeof(quoted), "'%s': ", sorted[row->busy]);
        assert_contains(nxl_lock_errmsg(lock), quoted);
    }
    assert_false(nxl_lock_held(lock));
    nxl_lock_free(busy);
    assert_nothing_held();
    end(lock, client);
    nxl_client_free(other);
}

static void which_one_is_busy(void **state)
{
    static const char *const clients[] = {"", "poll=1"};
    for (unsigned i = 0; i < KINDS * 2 * 4 * 2; i++) {
        struct row row = {.kind = (enum kind)(i % KINDS),
            .renew = (int)(i / KINDS % 2),
            .fence = (int)(i / KINDS % 2),
            .busy = (int)(i / KINDS / 2 % 4),
            .wait_ms = i / KINDS / 8 ? 20000 : 0};
        for (size_t c = 0; c < COUNT(clients); c++) {
            row.parameters = clients[c];
            acquire_beside_one(&row);
        }
    }
}

/* Without scripts there is no line, and an exclusive lock needs none. */
static void without_scripts(void **state)
{
    if (live_tls())
        skip(); /* it has a URL of its own */
    redis_run(&server, "ACL", "SETUSER", "plain", "on", ">word", "~*", "&*",
        "+@all", "-eval", "-evalsha", "-script", NULL);
    char url[512];
    snprintf(url, sizeof(url), "redis://plain:word@127.0.0.1:%d", server.port);
    nxl_client *client = client_at(url);
    nxl_lock *lock = three_with(client, .ttl_ms = 20000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_all_have_the_token(lock, ALONE);
    assert_result(nxl_lock_extend(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_int_equal(held_keys(), 0);
    end(lock, client);
}

/* Once the server is known to run scripts, all names that are free take one
 * round trip: the commands arrive together. */
static void all_in_one_round_trip(void **state)
{
    enum { MANY = 8 };
    char text[MANY][8];
    const char *names[MANY];
    if (live_tls())
        skip(); /* a record may arrive in pieces */
    nxl_client *client = new_client("");
    for (int i = 0; i < MANY; i++) {
        snprintf(text[i], sizeof(text[i]), "k%d", i);
        names[i] = text[i];
    }
    nxl_lock *lock = several(client, names, MANY, &OPTIONS(.ttl_ms = 20000));
    for (int i = 0; i < 3; i++) { /* the first time it loads the script */
        long long before =
            server_number(&server, "stats", "total_reads_processed");
        assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
        long long after =
            server_number(&server, "stats", "total_reads_processed");
        if (i > 1 && before >= 0) /* 6.0 and later */
            assert_int_equal(after - before, 1 + 1);
        for (int k = 0; k < MANY; k++)
            assert_value(names[k], nxl_lock_token(lock));
        assert_result(nxl_lock_release(lock), NXL_OK, lock);
    }
    end(lock, client);
    assert_int_equal(redis_run(&server, "DBSIZE", NULL), 0);
}

/* It holds one name, and waits for another for longer than a lease. */
static void renewed_while_it_waits(void **state)
{
    static struct waiter waiter;
    nxl_client *client = new_client(""), *other = new_client("");
    nxl_lock *lock = three_with(client, .ttl_ms = 300);
    nxl_lock *busy = new_lock(other, "beta", 20000);
    char first[200], now[200];
    assert_result(nxl_lock_acquire(busy, 0), NXL_OK, busy);
    waiter_start(&waiter, lock, 20000);
    await(redis_get(&server, "alpha", first, sizeof(first)));
    for (int64_t until = test_now_ms() + 1000; test_now_ms() < until;) {
        assert_true(redis_get(&server, "alpha", now, sizeof(now)));
        assert_string_equal(first, now);
        usleep(10000);
    }
    assert_result(nxl_lock_release(busy), NXL_OK, busy);
    assert_int_equal(waiter_join(&waiter), NXL_OK);
    assert_string_equal(nxl_lock_token(lock), first);
    assert_true(nxl_lock_remaining_ms(lock) <= 300 + 100);
    /* Now that all are held nothing renews them: that was not asked for. */
    await(!nxl_lock_held(lock));
    await(held_keys() == 0);
    assert_int_equal(nxl_lock_loss(lock, NULL, 0), NXL_LOSS_NONE);
    assert_result(nxl_lock_release(lock), NXL_LOST, lock);
    nxl_lock_free(busy);
    nxl_client_free(other);
    end(lock, client);
}

/* A name that it holds is taken away while it waits for another one. */
static void lost_while_it_waits(void **state)
{
    static struct waiter waiter;
    nxl_client *client = new_client(""), *other = new_client("");
    nxl_lock *lock = three_with(client, .ttl_ms = 300);
    nxl_lock *busy = new_lock(other, "gamma", 20000);
    nxl_lock *thief = new_lock(other, "alpha", 20000);
    char first[200];
    assert_result(nxl_lock_acquire(busy, 0), NXL_OK, busy);
    waiter_start(&waiter, lock, 20000);
    await(redis_get(&server, "beta", first, sizeof(first)));
    redis_run(&server, "DEL", "alpha", NULL);
    assert_result(nxl_lock_acquire(thief, 0), NXL_OK, thief);
    await(!exists("beta")); /* given back */
    await(in_line("alpha"));
    assert_result(nxl_lock_release(busy), NXL_OK, busy);
    assert_result(nxl_lock_release(thief), NXL_OK, thief);
    assert_int_equal(waiter_join(&waiter), NXL_OK);
    assert_string_not_equal(nxl_lock_token(lock), first);
    assert_all_have_the_token(lock, ALONE);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_nothing_held();
    nxl_lock_free(busy);
    end(thief, other);
    end(lock, client);
}

/* ----------------------------------------------------------- ways to give up
 */

enum way { WAIT_IS_OVER, CANCEL, INTERRUPT, INTERRUPT_CLIENT, WAYS };

static void given_up(void **state)
{
    static struct waiter waiter;
    for (unsigned i = 0; i < WAYS * 3; i++) {
        const char *name = sorted[i % 3];
        enum way way = (enum way)(i / 3);
        nxl_client *client = new_client(""), *other = new_client("");
        nxl_lock *lock = three_with(client, .ttl_ms = 20000, .min_hold_ms = 9);
        nxl_lock *busy = new_lock(other, name, 20000);
        assert_result(nxl_lock_acquire(busy, 0), NXL_OK, busy);
        waiter_start(&waiter, lock, way == WAIT_IS_OVER ? 200 : 20000);
        if (way != WAIT_IS_OVER)
            await(in_line(name));
        if (way == CANCEL)
            assert_int_equal(nxl_lock_cancel(lock), NXL_OK);
        else if (way == INTERRUPT)
            assert_int_equal(nxl_lock_interrupt(lock), NXL_OK);
        else if (way == INTERRUPT_CLIENT)
            nxl_client_interrupt(client);
        int rc = waiter_join(&waiter);
        live_assert_result(rc, way == WAIT_IS_OVER ? NXL_BUSY : NXL_CANCELLED,
            nxl_lock_errmsg(lock), "way", (int)way);
        assert_true(nxl_lock_errmsg(lock)[0] != '\0');
        await(held_keys() == 1);
        assert_true(exists(name));
        await(!in_line(name));
        assert_int_equal(nxl_lock_release(lock), NXL_E_INVALID);
        nxl_lock_free(busy);
        nxl_client_free(other);
        assert_result(nxl_lock_acquire(lock, 5000), NXL_OK, lock);
        usleep(10000);
        assert_result(nxl_lock_release(lock), NXL_OK, lock);
        assert_nothing_held();
        end(lock, client);
    }
}

/* An interrupt that comes first ends the next acquire, and sends nothing. */
static void interrupted_before(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = three_with(client, .ttl_ms = 20000);
    assert_int_equal(nxl_lock_interrupt(lock), NXL_OK);
    assert_result(nxl_lock_acquire(lock, 0), NXL_CANCELLED, lock);
    assert_int_equal(held_keys(), 0);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    nxl_client_interrupt(client);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_result(nxl_lock_acquire(lock, 0), NXL_CANCELLED, lock);
    end(lock, client);
}

/* ------------------------------------------------------------------ a crowd */

/* Everybody takes three of five names at random, in any order; each name is
 * held by one at a time, and nobody waits for ever. */
enum { MEMBERS = 8, NAMES = 5, SET = 3 };

static struct crowd {
    atomic_bool stop;
    atomic_int inside[NAMES], grants;
    _Atomic int64_t longest_ms;
} crowd;

static struct member {
    pthread_t thread;
    unsigned seed;
    bool failed;
    int result;
} members[MEMBERS];

static void pick(unsigned *seed, int picked[SET])
{
    int all[NAMES] = {0, 1, 2, 3, 4};
    for (int i = 0; i < SET; i++) {
        *seed = *seed * 1103515245 + 12345;
        int at = i + (int)(*seed >> 16) % (NAMES - i);
        picked[i] = all[at];
        all[at] = all[i];
    }
}

static void take_a_turn(struct member *m, nxl_client *client)
{
    static const char *const names[NAMES] = {"n0", "n1", "n2", "n3", "n4"};
    int picked[SET];
    const char *chosen[SET];
    nxl_lock *lock;
    pick(&m->seed, picked);
    for (int i = 0; i < SET; i++)
        chosen[i] = names[picked[i]];
    m->result = nxl_lock_new_many(
        &lock, client, chosen, NULL, SET, &OPTIONS(.ttl_ms = 20000));
    if (m->result != NXL_OK)
        return;
    int64_t began = test_now_ms();
    m->result = nxl_lock_acquire(lock, 20000);
    int64_t took = test_now_ms() - began;
    if (took > crowd.longest_ms)
        crowd.longest_ms = took;
    for (int i = 0; m->result == NXL_OK && i < SET; i++)
        m->failed |= atomic_fetch_add(&crowd.inside[picked[i]], 1) > 0;
    crowd.grants++;
    for (int i = 0; m->result == NXL_OK && i < SET; i++)
        atomic_fetch_sub(&crowd.inside[picked[i]], 1);
    nxl_lock_free(lock);
}

static void *take_turns(void *argument)
{
    struct member *m = argument;
    nxl_client *client = NULL;
    m->result = nxl_client_new(&client, server_url, NULL);
    while (!crowd.stop && m->result == NXL_OK)
        take_a_turn(m, client);
    nxl_client_free(client);
    return NULL;
}

static void a_crowd(void **state)
{
    crowd.stop = false;
    for (unsigned i = 0; i < MEMBERS; i++) {
        members[i] = (struct member){.seed = i + 1};
        assert_int_equal(
            pthread_create(&members[i].thread, NULL, take_turns, &members[i]),
            0);
    }
    usleep(1500000);
    crowd.stop = true;
    for (unsigned i = 0; i < MEMBERS; i++)
        pthread_join(members[i].thread, NULL);
    for (unsigned i = 0; i < MEMBERS; i++) {
        assert_int_equal(members[i].result, NXL_OK);
        assert_false(members[i].failed);
    }
    print_message("%d grants, the longest wait %lld ms\n", crowd.grants,
        (long long)crowd.longest_ms);
    assert_true(crowd.grants > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        live_test(the_refusals),
        live_test(the_names),
        live_test(which_one_is_busy),
        live_test(without_scripts),
        live_test(all_in_one_round_trip),
        live_test(renewed_while_it_waits),
        live_test(lost_while_it_waits),
        live_test(given_up),
        live_test(interrupted_before),
        live_test(a_crowd),
    };
    return live_run_with(
        "several_names", tests, live_tcp, live_unix, live_stop);
}

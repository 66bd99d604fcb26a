/* SPDX-License-Identifier: MIT */
/*
 * Handles of several names: what no scene of live/scenes/several_names.scenes
 * can show. Arguments that are refused, and a crowd that takes names at random.
 */
#include "live/live_rig.h"

#include <stdatomic.h>

static const char *const three[] = {"gamma", "alpha", "beta"};

/* ----------------------------------------------------------- the refusals */

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
    static const char *const null[] = {"a", NULL};
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
    refused(client, null, NULL, 2, NULL, "the name is NULL");
    refused(client, bytes, one_byte, 2, NULL, "are equal: 'x'");
    assert_int_equal(
        nxl_lock_new_many(&lock, client, bytes, two_bytes, 2, NULL), NXL_OK);
    nxl_lock_free(lock);

    assert_int_equal(nxl_lock_names(NULL), 0);
    assert_null(nxl_lock_name(NULL, 0, NULL));
    assert_int_equal(nxl_lock_fence_of(NULL, 0), 0);
    nxl_client_free(client);
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
    crowd.grants = 0;
    for (unsigned i = 0; i < MEMBERS; i++) {
        members[i] = (struct member){.seed = i + 1};
        assert_int_equal(
            pthread_create(&members[i].thread, NULL, take_turns, &members[i]),
            0);
    }
    usleep(1500000);
    for (int i = 0; crowd.grants <= 20 && i < 3000; i++)
        test_pause_ms(10);
    crowd.stop = true;
    for (unsigned i = 0; i < MEMBERS; i++)
        pthread_join(members[i].thread, NULL);
    for (unsigned i = 0; i < MEMBERS; i++) {
        assert_int_equal(members[i].result, NXL_OK);
        assert_false(members[i].failed);
    }
    assert_true(crowd.grants > 20);
    print_message("%d grants, the longest wait %lld ms\n", crowd.grants,
        (long long)crowd.longest_ms);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        live_test(the_refusals),
        live_test(a_crowd),
    };
    return live_run_long("a crowd of several names");
}

/* SPDX-License-Identifier: MIT */
/*
 * Memory that runs out at every place in turn, once or for good, while clients,
 * locks and grants of one server or three are made: each call ends in time with
 * a clean error or manages without, a grant is a majority's or none, nothing is
 * left behind by mistake, and one failure costs one of three servers at most.
 */
#include "api/private.h"
#include "lock/waiting.h"
#include "live/memory_rig.h"

#include "live/api_rig.h"
#include "live/fence_rig.h"
#include "support/alloc.h"

/* ------------------------------------------------------------------- making */

/* It is made whole, of more than so many pieces, or not at all. */
static void a_client(const char *urls, unsigned pieces)
{
    char why[200];
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    options.errbuf = why;
    options.errbuf_size = sizeof(why);
    options.prefix = "given:";
    for (unsigned n = first_place(); failed; n++) {
        nxl_client *client = (nxl_client *)why;
        strcpy(why, "");
        fail_at(n);
        int rc = nxl_client_new(&client, urls, &options);
        fail_no_more();
        if (failed) {
            assert_null(client);
            assert_out_of_memory(rc, why);
        } else {
            assert_int_equal(rc, NXL_OK);
            assert_true(n > pieces);
            nxl_client_free(client);
        }
    }
}

static void making_a_client(void **state)
{
    if (on.servers == 1)
        a_client(
            "redis://user:secret@some.host:7000/3?prefix=x%20y&timeout_ms=50",
            3);
    else
        a_client("redis://user:secret@one.host:7000/3?prefix=x%20y,"
                 "redis://:secret@two.host?timeout_ms=50,unix:///three.sock",
            9);
}

static void a_lock(nxl_client *client, int fence_and_renew)
{
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    options.label = "label";
    options.fence = options.renew = fence_and_renew;
    for (unsigned n = first_place(); failed; n++) {
        nxl_lock *lock = (nxl_lock *)client;
        fail_at(n);
        int rc = nxl_lock_new(&lock, client, "k", &options);
        fail_no_more();
        if (failed) {
            assert_null(lock);
            assert_int_equal(rc, NXL_E_NOMEM);
            assert_contains(nxl_client_errmsg(client), "memory");
        } else {
            assert_int_equal(rc, NXL_OK);
            assert_true(n > (on.servers > 1 ? 6 : 3));
            assert_works(lock, client);
            nxl_lock_free(lock);
        }
    }
}

static void making_a_lock(void **state)
{
    nxl_client *client = usual_client();
    a_lock(client, 0);
    a_lock(client, 1);
    nxl_client_free(client);
}

static void the_one_descriptor(void **state)
{
    for (unsigned n = first_place(); failed; n++) {
        nxl_client *client = usual_client();
        fail_at(n);
        int fd = nxl_client_fd(client);
        fail_no_more();
        if (fd < 0)
            assert_contains(nxl_client_errmsg(client), "memory");
        assert_true(failed || fd >= 0);
        assert_true(nxl_client_fd(client) >= 0);
        nxl_client_free(client);
    }
}

/* ---------------------------------------------------------------- acquiring */

/* What an acquire says is so. */
static void assert_granted_or_not(int rc, const nxl_lock *lock)
{
    assert_true(nxl_lock_held(lock) == (rc == NXL_OK));
    assert_true(failed || rc == NXL_OK);
    if (rc == NXL_OK)
        assert_true(standing(on.servers, "k", lock) >= majority());
    else
        assert_failed(rc, lock);
}

/* The numbers of grants grow, and a majority has the last; without a grant
 * there is none. */
static void assert_fence(int rc, const nxl_lock *lock)
{
    static uint64_t last;
    size_t have = 0;
    uint64_t fence = nxl_lock_fence(lock);
    if (rc != NXL_OK) {
        assert_int_equal(fence, 0);
        return;
    }
    assert_true(fence > last);
    for (size_t i = 0; i < on.servers; i++)
        have += counter_at(i) >= fence;
    assert_true(have >= majority());
    last = fence;
}

struct way {
    bool fence, renew;
    bool one_away;   /* then the two others have to grant */
    int64_t wait_ms; /* one failure is waited out */
};

static nxl_client *client_for(const struct way *way)
{
    if (!way->one_away)
        return usual_client();
    nxl_client *client = proxied_client(3, NO_GUARD "&timeout_ms=1000");
    proxy_refuse(proxies[0], true);
    return client;
}

static nxl_lock *lock_for(const struct way *way, nxl_client *client)
{
    return way->fence   ? fenced_lock(client, LEASE_MS)
           : way->renew ? kept_for(client, LEASE_MS)
                        : plain_lock(client);
}

/* On connections that have to be made. One failure leaves two servers: enough,
 * but where a third is away, or connects too late to be raised. */
static void the_first_acquire(void **state)
{
    const struct way *way = *state;
    bool enough = way->wait_ms || (!way->fence && !way->one_away);
    int64_t most_ms = (way->wait_ms ? way->wait_ms : usual_ms()) + LATE_MS;
    for (unsigned n = first_place(); failed; n++) {
        nxl_client *client = client_for(way);
        nxl_lock *lock = lock_for(way, client);
        int64_t began = test_now_ms();
        fail_at(n);
        int rc = nxl_lock_acquire(lock, way->wait_ms);
        fail_no_more();
        assert_between(test_now_ms() - began, 0, most_ms);
        assert_granted_or_not(rc, lock);
        if (way->fence)
            assert_fence(rc, lock);
        if (enough && !may_fail())
            assert_result(rc, NXL_OK, lock);
        if (rc == NXL_OK)
            assert_result(nxl_lock_release(lock), NXL_OK, lock);
        assert_works(lock, client);
        end(lock, client);
        assert_true(failed || n > 3 * majority());
    }
}

/* On connections that are good, by a handle that has never been used. */
static void a_cycle(void **state)
{
    nxl_client *client = usual_client();
    for (unsigned n = first_place(); failed; n++) {
        nxl_lock *lock = plain_lock(client);
        connect_all(client);
        fail_at(n);
        int rc = nxl_lock_acquire(lock, 0);
        int released = rc == NXL_OK ? nxl_lock_release(lock) : NXL_OK;
        fail_no_more();
        assert_false(nxl_lock_held(lock));
        if (rc != NXL_OK)
            assert_failed(rc, lock);
        if (released != NXL_OK)
            assert_failed(released, lock);
        assert_works(lock, client); /* what was not released is owed */
        nxl_lock_free(lock);
        assert_true(failed || (rc == NXL_OK && released == NXL_OK && n > 2));
    }
    nxl_client_free(client);
}

/* Each cycle from the first on takes what it needs and keeps it. */
static void cycles_take_none(void **state)
{
    nxl_client *client = usual_client();
    nxl_lock *lock = plain_lock(client);
    for (int i = 0; i < 50; i++) {
        unsigned long before = alloc_count();
        assert_int_equal(nxl_lock_acquire(lock, 0), NXL_OK);
        assert_int_equal(nxl_lock_extend(lock, 0), NXL_OK);
        assert_int_equal(nxl_lock_release(lock), NXL_OK);
        if (i > 0)
            assert_int_equal(alloc_count(), before);
    }
    end(lock, client);
}

/* On connections that are good, with counters that have to be raised. */
static void a_fence_that_is_raised(void **state)
{
    static uint64_t ahead = FAR;
    nxl_client *client = usual_client();
    for (unsigned n = first_place(); failed; n++) {
        nxl_lock *lock = fenced_lock(client, LEASE_MS);
        connect_all(client);
        counter_is(n % on.servers, ahead += 10);
        fail_at(n);
        int rc = nxl_lock_acquire(lock, 0);
        fail_no_more();
        assert_granted_or_not(rc, lock);
        assert_fence(rc, lock);
        if (rc == NXL_OK)
            assert_result(nxl_lock_release(lock), NXL_OK, lock);
        assert_works(lock, client);
        nxl_lock_free(lock);
    }
    nxl_client_free(client);
}

/* Somebody has it at so many servers: in a minority he is in the way of one who
 * gets no memory for another. */
static void a_name_that_is_taken(size_t at)
{
    for (unsigned n = first_place(); failed; n++) {
        nxl_client *client = usual_client();
        nxl_lock *lock = plain_lock(client);
        for (size_t i = 0; i < at; i++)
            redis_run(&servers[i], "SET", "k", "somebody", NULL);
        fail_at(n);
        int rc = nxl_lock_acquire(lock, 0);
        fail_no_more();
        assert_true(rc != NXL_OK || at < majority());
        assert_true(failed || rc == (at < majority() ? NXL_OK : NXL_BUSY));
        if (rc == NXL_BUSY)
            assert_false(nxl_lock_held(lock));
        else
            assert_granted_or_not(rc, lock);
        end(lock, client);
        assert_int_equal(keys_at(on.servers, "k"), at); /* theirs alone */
    }
    quorum_clean(NULL);
}

static void a_name_that_is_busy(void **state)
{
    for (size_t at = 1; at <= on.servers; at++)
        a_name_that_is_taken(at);
}

/* ------------------------------------------------------------------ in line */

static const struct messages *messages_of(const nxl_lock *lock)
{
    const struct waiting *w = lock->name.waiting;
    return w && w->channel ? &w->channel->messages : NULL;
}

/* It is in line, and it is known whether it can be told. */
static bool waits_settled(const nxl_lock *lock)
{
    const struct messages *m = messages_of(lock);
    return lock->name.waiting && lock->name.waiting->line.has_waited &&
           (!m || m->state != MESSAGES_COMING);
}

/* It cannot be told for lack of memory, which is tried again 5 s later. */
static bool cannot_be_told(nxl_client *client, const nxl_lock *lock)
{
    char words[1024];
    const struct messages *m = messages_of(lock);
    if (!m || m->state != MESSAGES_NONE)
        return false;
    nxl_client_describe(client, words, sizeof(words));
    return strstr(words, "in line without messages (out of memory)");
}

/* Whatever the line needs and does not get, the lock is granted when it is
 * free, by asking if not by a message. */
static void a_wait_in_line(void **state)
{
    enum { SETTLE_MS = 400 };
    static bool told_again; /* takes 5 s: in the first play alone */
    unsigned untold = 0;
    nxl_client *before = usual_client();
    nxl_lock *held = plain_lock(before);
    by_loop = true;
    for (unsigned n = first_place(); failed; n++) {
        nxl_event event = {.result = NXL_PENDING};
        nxl_client *client = usual_client();
        nxl_lock *lock = plain_lock(client);
        assert_result(nxl_lock_acquire(held, 0), NXL_OK, held);
        int64_t until = test_now_ms() + SETTLE_MS;
        fail_at(n);
        int rc = nxl_lock_acquire_start(lock, 20000);
        while (rc == NXL_PENDING && !waits_settled(lock) &&
               event.result == NXL_PENDING && test_now_ms() < until)
            if (!nxl_client_next_event(client, &event))
                turn(client, 5);
        fail_no_more();
        if (rc == NXL_PENDING && cannot_be_told(client, lock)) {
            untold++;
            while (!for_good && !told_again &&
                   messages_of(lock)->state != MESSAGES_UP)
                turn(client, 50);
            told_again = told_again || !for_good;
        }
        assert_result(nxl_lock_release(held), NXL_OK, held);
        if (rc == NXL_PENDING && event.result == NXL_PENDING)
            event = next_event(client);
        rc = rc == NXL_PENDING ? event.result : rc;
        if (rc == NXL_OK)
            assert_int_equal(
                result_of(client, nxl_lock_release_start(lock)), NXL_OK);
        else if (rc == NXL_UNKNOWN) /* it may be granted yet, and is undone */
            assert_contains(nxl_lock_errmsg(lock), "emory");
        else
            assert_failed(rc, lock);
        assert_true(failed || rc == NXL_OK);
        end(lock, client);
        assert_eventually(keys_at(on.servers, "k") == 0);
    }
    assert_true(untold > 0);
    end(held, before);
    by_loop = false;
}

/* ------------------------------------------------------------- busy, or late
 */

static void running_into_debt(void **state)
{
    unsigned in_a_row = 0; /* neither with nor without needed so many */
    nxl_client *client = client_within(100);
    for (unsigned n = 1; in_a_row < 2; n++) {
        nxl_lock *lock = plain_lock(client);
        assert_works(lock, client);
        connect_all(client);
        for (size_t i = 0; i < majority(); i++)
            redis_freeze(&servers[i]);
        /* The first takes what the cycle before has left for others. */
        if (n % 2)
            assert_result(nxl_lock_acquire(lock, 0), NXL_UNKNOWN, lock);
        int64_t began = test_now_ms();
        fail_at((n + 1) / 2);
        int rc = nxl_lock_acquire(lock, 0);
        fail_no_more();
        assert_between(test_now_ms() - began, 0, 100 + LATE_MS);
        assert_false(nxl_lock_held(lock));
        quorum_mend(NULL);
        if (rc != NXL_UNKNOWN)
            assert_out_of_memory(rc, nxl_lock_errmsg(lock));
        assert_works(lock, client);
        nxl_lock_free(lock);
        in_a_row = failed ? 0 : in_a_row + 1;
        assert_true(failed || rc == NXL_UNKNOWN);
    }
    nxl_client_free(client);
}

/* With a nested answer, on a connection that is new or good. */
static void a_question(void **state)
{
    static const char *const words[] = {"SCAN", "0"};
    redis_run(&servers[0], "SET", "key", "value", NULL);
    for (unsigned n = first_place(); failed; n++) {
        nxl_client *client = usual_client();
        struct answer *answer = NULL, *again = NULL;
        fail_at(n);
        int rc = client_ask(client, 0, 2, words, NULL, &answer);
        fail_no_more();
        assert_true((answer != NULL) == (rc == NXL_OK));
        assert_true(failed || (rc == NXL_OK && n > 5));
        if (rc != NXL_OK)
            assert_out_of_memory(rc, nxl_client_errmsg(client));
        assert_int_equal(client_ask(client, 0, 2, words, NULL, &again), NXL_OK);
        assert_int_equal(answer_count(again), 2);
        assert_string_equal(answer_item(again, 1, NULL), "key");
        answer_free(answer);
        answer_free(again);
        nxl_client_free(client);
    }
}

/* What the server said is not lost with the memory that failed. */
static void a_refused_question(void **state)
{
    static const char *const words[] = {"STRLEN", "list"};
    redis_run(&servers[0], "RPUSH", "list", "item", NULL);
    nxl_client *client = usual_client();
    connect_all(client);
    for (unsigned n = first_place(); failed; n++) {
        struct answer *answer = NULL;
        fail_at(n);
        int rc = client_ask(client, 0, 2, words, NULL, &answer);
        fail_no_more();
        assert_null(answer);
        if (rc == NXL_E_WRONG_TYPE)
            assert_contains(nxl_client_errmsg(client), "WRONGTYPE");
        else
            assert_out_of_memory(rc, nxl_client_errmsg(client));
    }
    nxl_client_free(client);
}

#define way_once(words, ...)                                                   \
    memory_scene(the_first_acquire, "the first acquire" words " (once)",       \
        .row = &(const struct way){__VA_ARGS__})
#define way_test(words, ...)                                                   \
    way_once(words, __VA_ARGS__),                                              \
        memory_scene(the_first_acquire,                                        \
            "the first acquire" words " (for good)", .for_good = true,         \
            .row = &(const struct way){__VA_ARGS__})

int main(void)
{
    const struct CMUnitTest each[] = {
        memory_test(making_a_client),
        memory_test(making_a_lock),
        memory_test(the_one_descriptor),
        way_test("", .wait_ms = 0),
        way_test(", fenced", .fence = true),
        way_test(", to keep", .renew = true),
        memory_test(a_cycle),
        memory_test(a_name_that_is_busy),
        memory_test(running_into_debt),
    };
    const struct CMUnitTest one[] = {
        memory_once(cycles_take_none),
        memory_test(a_question),
        memory_test(a_refused_question),
    };
    const struct CMUnitTest line[] = {
        memory_test(a_wait_in_line),
    };
    const struct CMUnitTest three[] = {
        way_test(" of two in three", .one_away = true),
        way_once(
            " of two in three, waiting", .one_away = true, .wait_ms = 5000),
        way_once(", fenced, waiting", .fence = true, .wait_ms = 5000),
        memory_test(a_fence_that_is_raised),
    };
    return on_each_run("out of memory", each) +
           on_run(one_tcp, "no memory (one server, TCP, alone)", one) +
           on_run(one_unix, "no memory (one server, alone)", one) +
           on_run(one_unix, "no memory (in line)", line) +
           on_run(three, "no memory (of three servers)", three);
}

/* SPDX-License-Identifier: MIT */
/*
 * A host name that leads to a replica which took over, while the former primary
 * still serves the connections that it has: a client with guard_failover finds
 * out, and a holder learns that its lock is gone before another one gets it.
 *
 * The primary listens on 127.0.0.1, the replica on 127.0.0.2, with one port.
 * The look-up of "db.test" is answered here. Leases of at most 900 ms: the
 * guard lasts for 2 s, and the name is looked up three times in that.
 */
#include "support/test.h"

#include <netdb.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "live/fork_rig.h"
#include "live/live_rig.h"
#include "live/renew_rig.h"

#define GUARDED "&guard_failover=on"
enum { TTL_MS = 900, GUARD_MS = 2000 };

static struct redis primary, replica;

/* ---------------------------------------------------------------- look-ups */

static struct {
    _Atomic(const char *) addresses[2]; /* of "db.test"; NULL: none */
    atomic_bool hangs;                  /* until `go` is posted */
    atomic_uint answered;
    sem_t go;
} names;

int __real_getaddrinfo(const char *host, const char *service,
    const struct addrinfo *hints, struct addrinfo **list);
int __wrap_getaddrinfo(const char *host, const char *service,
    const struct addrinfo *hints, struct addrinfo **list);

int __wrap_getaddrinfo(const char *host, const char *service,
    const struct addrinfo *hints, struct addrinfo **list)
{
    struct addrinfo **end = list;
    int rc = EAI_AGAIN;

    if (hints->ai_flags & AI_NUMERICHOST || strcmp(host, "db.test") != 0)
        return __real_getaddrinfo(host, service, hints, list);
    if (atomic_load(&names.hangs))
        sem_wait(&names.go);
    for (int i = 0; i < 2; i++) {
        const char *address = atomic_load(&names.addresses[i]);
        if (!address)
            continue;
        rc = __real_getaddrinfo(address, service, hints, end);
        if (rc != 0)
            break;
        end = &(*end)->ai_next;
    }
    atomic_fetch_add(&names.answered, 1);
    return rc;
}

static void lead_to(const char *first, const char *second)
{
    atomic_store(&names.addresses[0], first);
    atomic_store(&names.addresses[1], second);
}

static unsigned answered(void)
{
    return atomic_load(&names.answered);
}

/* ----------------------------------------------------------------- servers */

static int start(void **state)
{
    char port[8];
    if (redis_start(&primary, "--repl-diskless-sync-delay", "0", NULL) != 0)
        return -1;
    snprintf(port, sizeof(port), "%u", (unsigned)primary.plain_port);
    if (redis_start(&replica, "--bind", "127.0.0.2", "--port", port, NULL) != 0)
        return -1;
    sem_init(&names.go, 0, 0);
    while (server_number(&primary, "server", "uptime_in_seconds") < 3)
        test_pause_ms(20);
    return 0;
}

static int stop(void **state)
{
    redis_stop(&replica);
    redis_stop(&primary);
    return 0;
}

static int set_up(void **state)
{
    redis_copy(&replica, &primary);
    redis_run(&primary, "FLUSHALL", NULL);
    lead_to("127.0.0.1", NULL);
    atomic_store(&names.hangs, false);
    return 0;
}

static nxl_client *client_of(const char *parameters)
{
    char url[128];
    snprintf(url, sizeof(url), "redis://db.test:%u?max_ttl_ms=900%s",
        (unsigned)primary.plain_port, parameters);
    return client_at(url);
}

struct holder {
    nxl_client *client;
    nxl_lock *lock;
    int late;
};

/* Holds "k" and renews it. */
static struct holder hold(const char *parameters)
{
    struct holder h = {.client = client_of(parameters)};
    h.lock = lock_with(h.client, "k", .ttl_ms = TTL_MS, .renew = 1);
    assert_result(nxl_lock_acquire(h.lock, 5000), NXL_OK, h.lock);
    return h;
}

/* Where it was renewed too late it holds "k" again, twice at most. */
static bool is_held(struct holder *h)
{
    if (nxl_lock_held(h->lock))
        return true;
    int loss = nxl_lock_loss(h->lock, NULL, 0);
    assert_true(loss != NXL_LOSS_REMOVED && loss != NXL_LOSS_TAKEN);
    assert_in_range(++h->late, 1, 2);
    assert_result(nxl_lock_acquire(h->lock, 5000), NXL_OK, h->lock);
    return true;
}

static void await_renewals(struct holder *h, unsigned count)
{
    uint64_t renewals = stats_of(h->client).renewals + count;
    assert_eventually(is_held(h) && stats_of(h->client).renewals >= renewals);
}

/* The replica takes over without the holder's lock, and the name leads to it.
 * The former primary goes on. */
static void move(struct holder *h, const char *parameters)
{
    redis_follow(&replica, "1");
    *h = hold(parameters);
    redis_promote(&replica);
    lead_to("127.0.0.2", NULL);
}

/* ------------------------------------------------------------------- tests */

static void the_holder_learns_in_time(void **state)
{
    struct holder h;
    move(&h, GUARDED);
    nxl_client *other = client_of(GUARDED);
    nxl_lock *lock = new_lock(other, "k", TTL_MS);
    assert_result(nxl_lock_acquire(lock, 10000), NXL_OK, lock);
    assert_false(nxl_lock_held(h.lock));
    assert_int_not_equal(nxl_lock_loss(h.lock, NULL, 0), NXL_LOSS_NONE);
    end(lock, other);
    end(h.lock, h.client);
}

/* Renewed for longer than three look-ups and the pause take. */
static void without_the_guard_it_stays(void **state)
{
    struct holder h;
    move(&h, "");
    unsigned look_ups = answered();
    await_renewals(&h, 10);
    assert_true(nxl_lock_held(h.lock));
    assert_int_equal(answered(), look_ups);
    end(h.lock, h.client);
}

static void a_name_that_stays_changes_nothing(void **state)
{
    static const char *const answers[][2] = {
        {"127.0.0.1", NULL},        /* as before */
        {"127.0.0.2", "127.0.0.1"}, /* one more, and it comes first */
        {NULL, NULL},               /* the look-up fails */
    };
    struct holder h = hold(GUARDED);
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        lead_to(answers[i][0], answers[i][1]);
        unsigned look_ups = answered() + 2;
        assert_eventually(is_held(&h) && answered() >= look_ups);
    }
    await_renewals(&h, 2);
    assert_int_equal(stats_of(h.client).connections, 1);
    assert_result(nxl_lock_release(h.lock), NXL_OK, h.lock);
    end(h.lock, h.client);
}

/* A look-up that takes long holds nothing up: not renewals, a child that frees
 * its copies, or the end. There is only one. */
static void a_look_up_that_hangs_is_left_alone(void **state)
{
    struct holder h = hold(GUARDED);
    int fds = count_fds();
    atomic_store(&names.hangs, true);
    assert_eventually(count_fds() > fds); /* the look-up's */
    await_renewals(&h, 8);
    assert_int_equal(count_fds(), fds + 1);
    struct handles handles = {h.client, h.lock};
    run_child(expect_forked, &handles);
    int64_t began = test_now_ms();
    assert_result(nxl_lock_release(h.lock), NXL_OK, h.lock);
    end(h.lock, h.client);
    assert_between(test_now_ms() - began, 0, 1000 + LATE_MS);
    unsigned before = answered();
    sem_post(&names.go);
    assert_eventually(answered() > before);
}

/* Its answer comes when no request waits for anything. */
static void a_late_answer_counts(void **state)
{
    nxl_client *client = client_of(GUARDED);
    nxl_lock *lock = lock_with(client, "k", .ttl_ms = TTL_MS, .renew = 1);
    assert_result(nxl_lock_acquire(lock, 5000), NXL_OK, lock);
    int fds = count_fds();
    atomic_store(&names.hangs, true);
    assert_eventually(count_fds() > fds);
    lead_to("127.0.0.2", NULL);
    redis_promote(&replica); /* it has the lock */
    atomic_store(&names.hangs, false);
    sem_post(&names.go);
    assert_eventually(stats_of(client).connections == 2);
    assert_true(nxl_lock_held(lock));
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_false(redis_exists(&replica, "k"));
    end(lock, client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_holder_learns_in_time, set_up),
        cmocka_unit_test_setup(without_the_guard_it_stays, set_up),
        cmocka_unit_test_setup(a_name_that_stays_changes_nothing, set_up),
        cmocka_unit_test_setup(a_look_up_that_hangs_is_left_alone, set_up),
        cmocka_unit_test_setup(a_late_answer_counts, set_up),
    };
    return cmocka_run_group_tests_name(
        "a host name that leads elsewhere", tests, start, stop);
}

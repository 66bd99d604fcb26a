/* SPDX-License-Identifier: MIT */
/*
 * Many threads, very many locks that are kept alive, one client and its one
 * keeper: whatever is acquired, prolonged, cancelled, released and freed at
 * whatever moment, and whoever forks meanwhile, nothing that is held is lost
 * and nothing is left behind.
 */
#include "renew_rig.h"

#include <stdatomic.h>
#include <sys/wait.h>

enum { THREADS = 64, LOCKS = 1000, STAYING = 500, HASTY = 6 };

/* No lock may be lost, however busy the machine is: a renewal, which is due
 * after a third of the TTL, may be six seconds late. Each lock that stays held
 * is due twice in a run. */
enum { TTL_MS = 9000, RUN_MS = 6500 };

static struct worker {
    pthread_t thread;
    unsigned number, seed;
    unsigned wrong, granted, cancelled, freed;
    int wrong_result;
} worker[THREADS];

/* The first of them stay for the whole run, and may be cancelled by all; the
 * others are freed and made anew by the thread whose they are. */
static nxl_lock *lock[LOCKS];
static nxl_client *client;
static atomic_bool stop;

static unsigned below(struct worker *w, unsigned n)
{
    return (unsigned)rand_r(&w->seed) % n;
}

static bool one_of(struct worker *w, int rc, int good, int also)
{
    if (rc == good || rc == also)
        return true;
    w->wrong++;
    w->wrong_result = rc;
    return false;
}

static nxl_lock *make_lock(unsigned number)
{
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    nxl_lock *made;
    char name[24];
    snprintf(name, sizeof(name), "own:%u", number);
    options.ttl_ms = TTL_MS;
    options.renew = 1;
    return nxl_lock_new(&made, client, name, &options) == NXL_OK ? made : NULL;
}

static void pause_up_to(struct worker *w, long us)
{
    struct timespec t = {0, below(w, (unsigned)us) * 1000L};
    nanosleep(&t, NULL);
}

static void use(struct worker *w, unsigned number)
{
    nxl_lock *l = lock[number];
    switch (below(w, 12)) {
    case 0:
    case 1:
        if (nxl_lock_held(l))
            break;
        /* One that was cancelled before may stand in its own way a while. */
        int rc = nxl_lock_acquire(l, 10000);
        one_of(w, rc, NXL_OK, NXL_CANCELLED);
        w->granted += rc == NXL_OK;
        w->cancelled += rc == NXL_CANCELLED;
        break;
    case 2:
        if (nxl_lock_held(l))
            one_of(w, nxl_lock_extend(l, 0), NXL_OK, NXL_CANCELLED);
        break;
    case 3:
        if (nxl_lock_held(l))
            one_of(w, nxl_lock_release(l), NXL_OK, NXL_OK);
        w->wrong += nxl_lock_held(l);
        break;
    case 4:
        one_of(w, nxl_lock_cancel(lock[below(w, STAYING)]), NXL_OK, NXL_OK);
        break;
    case 5:
        w->wrong += nxl_lock_loss(l, NULL, 0) != NXL_LOSS_NONE;
        if (number < STAYING)
            break;
        nxl_lock_free(l);
        lock[number] = make_lock(number);
        w->wrong += !lock[number];
        w->freed++;
        break;
    }
}

static void *run(void *argument)
{
    struct worker *w = argument;
    while (!stop) {
        unsigned number = w->number + THREADS * below(w, LOCKS / THREADS + 1);
        if (number < LOCKS)
            use(w, number);
        if (w->number >= HASTY)
            pause_up_to(w, 20000);
    }
    return NULL;
}

/* It has the handles, and can do nothing with them. */
static int child_of_fork(void)
{
    int bad = 0;
    for (unsigned i = 0; i < STAYING; i++) {
        bad += nxl_lock_held(lock[i]);
        bad += nxl_lock_loss(lock[i], NULL, 0) != NXL_LOSS_NONE;
    }
    bad += nxl_lock_release(lock[0]) != NXL_E_FORKED;
    bad += nxl_lock_acquire(lock[1], 0) != NXL_E_FORKED;
    nxl_lock_free(lock[2]);
    nxl_client_free(client);
    return bad != 0;
}

static void fork_once(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(child_of_fork());
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void *nothing(void *argument)
{
    return argument;
}

/* Of this process. A sanitizer has one of its own, from the first one on. */
static int threads_at_rest(void)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, nothing, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    return count_threads();
}

static void at_random(void **state)
{
    int before = threads_at_rest();
    client = new_client("timeout_ms=10000");
    stop = false;
    for (unsigned i = 0; i < LOCKS; i++)
        assert_non_null(lock[i] = make_lock(i));
    for (unsigned i = 0; i < THREADS; i++) {
        worker[i] = (struct worker){.number = i, .seed = i + 1};
        assert_int_equal(
            pthread_create(&worker[i].thread, NULL, run, &worker[i]), 0);
    }
    int64_t end_ms = test_now_ms() + RUN_MS;
    while (test_now_ms() < end_ms) {
        test_pause_ms(100);
        fork_once();
    }
    stop = true;
    unsigned granted = 0, cancelled = 0, freed = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(worker[i].thread, NULL), 0);
        if (worker[i].wrong)
            print_error("thread %u: %u times wrong, the last result %s\n", i,
                worker[i].wrong, nxl_strerror(worker[i].wrong_result));
        assert_int_equal(worker[i].wrong, 0);
        granted += worker[i].granted;
        cancelled += worker[i].cancelled;
        freed += worker[i].freed;
    }
    /* What is held now goes on being held, by nobody's doing. */
    comes_true(stats_of(client).renewals > 0, 10000);
    nxl_stats stats = stats_of(client);
    print_message("# %u granted, %u cancelled, %u freed, %llu renewals\n",
        granted, cancelled, freed, (unsigned long long)stats.renewals);
    assert_int_equal(stats.losses, 0);
    assert_true(granted > 0 && freed > 0);
    for (unsigned i = 0; i < LOCKS; i++)
        nxl_lock_free(lock[i]);
    assert_eventually(redis_run(&server, "DBSIZE", NULL) == 0);
    comes_true(count_threads() == before, 5000);
    nxl_client_free(client);
}

/* Each thread's first lock starts the keeper, its last one's end ends it,
 * and another thread begins meanwhile. */
static void *come_and_go(void *argument)
{
    struct worker *w = argument;
    while (!stop) {
        nxl_lock *l = make_lock(w->number);
        w->wrong += !l;
        if (l)
            one_of(w, nxl_lock_acquire(l, 10000), NXL_OK, NXL_OK);
        pause_up_to(w, 2000);
        nxl_lock_free(l);
        pause_up_to(w, 500000); /* longer than the keeper lingers */
    }
    return NULL;
}

static void the_keeper_comes_and_goes(void **state)
{
    enum { FEW = 4 };
    int before = threads_at_rest();
    client = new_client("timeout_ms=10000");
    stop = false;
    for (unsigned i = 0; i < FEW; i++) {
        worker[i] = (struct worker){.number = i, .seed = i + 1};
        assert_int_equal(
            pthread_create(&worker[i].thread, NULL, come_and_go, &worker[i]),
            0);
    }
    test_pause_ms(3000);
    stop = true;
    for (unsigned i = 0; i < FEW; i++) {
        assert_int_equal(pthread_join(worker[i].thread, NULL), 0);
        assert_int_equal(worker[i].wrong, 0);
    }
    comes_true(count_threads() == before, 5000);
    assert_eventually(redis_run(&server, "DBSIZE", NULL) == 0);
    nxl_client_free(client);
}

static void the_keeper_is_there_while_needed(void **state)
{
    int before = threads_at_rest();
    client = new_client("");
    nxl_lock *plain = new_lock(client, "plain", 5000);
    nxl_lock *own = kept_lock(client, "k", NULL);
    nxl_lock *other = kept_lock(client, "other", NULL);
    assert_result(nxl_lock_acquire(plain, 0), NXL_OK, plain);
    assert_int_equal(count_threads(), before);
    assert_result(nxl_lock_acquire(own, 0), NXL_OK, own);
    assert_int_equal(count_threads(), before + 1);
    assert_result(nxl_lock_acquire(other, 0), NXL_OK, other);
    assert_int_equal(count_threads(), before + 1);
    assert_result(nxl_lock_release(own), NXL_OK, own);
    test_pause_ms(300);
    assert_int_equal(count_threads(), before + 1); /* for the other one */
    assert_result(nxl_lock_release(other), NXL_OK, other);
    comes_true(count_threads() == before, 2000);
    /* Again, and ended by the client's end. */
    assert_result(nxl_lock_acquire(own, 0), NXL_OK, own);
    assert_int_equal(count_threads(), before + 1);
    nxl_lock_free(plain);
    nxl_lock_free(other);
    end(own, client);
    assert_int_equal(count_threads(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        live_test(at_random),
        live_test(the_keeper_comes_and_goes),
        live_test(the_keeper_is_there_while_needed),
    };
    return live_run_long("renewal in threads");
}

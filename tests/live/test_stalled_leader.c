/* SPDX-License-Identifier: MIT */
/*
 * A thread that reads for the others of its client stops running, as one of low
 * priority does on a busy machine: the others go on without it, every call ends
 * in time, and renewed locks stay held.
 *
 * The thread is stopped where it does not hold the client's mutex: by a handler
 * of a signal, and in the calls of the library that sleep.
 */
#include "api/private.h"
#include "renew_rig.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <errno.h>
#include <semaphore.h>

enum { TIMEOUT_MS = 300, TTL_MS = 1000, LONG_MS = 60000 };

/* ------------------------------------------------------- to stop one thread */

enum place {
    BEFORE_WAIT,  /* before it sleeps in epoll_wait() */
    IN_WAIT,      /* while it sleeps there, without events */
    AFTER_EVENTS, /* with events that it has fetched */
    PROMOTED,     /* when it was told to lead, before it does anything */
    PLACES
};
static const char *const places[] = {
    "before its wait", "in its wait", "after events", "as it was promoted"};

static atomic_int trap = PLACES; /* the place where the next thread stops */
static _Atomic(pthread_t) prey;  /* the thread that is to stop */
static _Atomic(pthread_t) last;  /* the one that followed last */
static sem_t caught, go_on;

int __real_sem_wait(sem_t *sem);

static void stop_here(enum place place)
{
    if (atomic_load(&trap) != (int)place ||
        !pthread_equal(atomic_load(&prey), pthread_self()))
        return;
    atomic_store(&trap, PLACES);
    sem_post(&caught);
    while (__real_sem_wait(&go_on) < 0)
        ;
}

static _Thread_local volatile sig_atomic_t asleep; /* in epoll_wait() */

static void on_signal(int number)
{
    int error = errno;
    if (asleep) /* else it may have the client's mutex */
        stop_here(IN_WAIT);
    errno = error;
}

int __real_epoll_wait(int fd, struct epoll_event *list, int most, int ms);
int __wrap_epoll_wait(int fd, struct epoll_event *list, int most, int ms);

int __wrap_epoll_wait(int fd, struct epoll_event *list, int most, int ms)
{
    stop_here(BEFORE_WAIT);
    asleep = 1;
    int count = __real_epoll_wait(fd, list, most, ms);
    asleep = 0;
    if (count > 0)
        stop_here(AFTER_EVENTS);
    return count;
}

/* A thread that follows sleeps in one of these. */
int __wrap_sem_wait(sem_t *sem);

int __wrap_sem_wait(sem_t *sem)
{
    atomic_store(&last, pthread_self());
    int rc = __real_sem_wait(sem);
    if (rc == 0)
        stop_here(PROMOTED);
    return rc;
}

int __real_sem_timedwait(sem_t *sem, const struct timespec *end);
int __wrap_sem_timedwait(sem_t *sem, const struct timespec *end);

int __wrap_sem_timedwait(sem_t *sem, const struct timespec *end)
{
    atomic_store(&last, pthread_self());
    int rc = __real_sem_timedwait(sem, end);
    if (rc == 0)
        stop_here(PROMOTED);
    return rc;
}

int __real_sem_clockwait(
    sem_t *sem, clockid_t clock, const struct timespec *end);
int __wrap_sem_clockwait(
    sem_t *sem, clockid_t clock, const struct timespec *end);

int __wrap_sem_clockwait(
    sem_t *sem, clockid_t clock, const struct timespec *end)
{
    atomic_store(&last, pthread_self());
    int rc = __real_sem_clockwait(sem, clock, end);
    if (rc == 0)
        stop_here(PROMOTED);
    return rc;
}

static void set_trap(enum place place, pthread_t thread)
{
    atomic_store(&prey, thread);
    atomic_store(&trap, (int)place);
}

static void await_caught(void)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 20;
    assert_int_equal(sem_timedwait(&caught, &end), 0);
}

/* ----------------------------------------------------------------- the stage
 */

/* A client whose leader, in a thread of its own, waits for a name that another
 * client has; and two locks for calls of the test's thread. */
static struct {
    nxl_client *client, *others;
    nxl_lock *taken;    /* the other client's */
    nxl_lock *free_one; /* of this client */
    nxl_lock *held;     /* likewise; it is held */
    nxl_lock *renewed;  /* likewise, and renewed */
    struct waiter leader, second;
} on;

static void set_stage(void)
{
    char parameters[40];
    snprintf(parameters, sizeof(parameters), "timeout_ms=%d", TIMEOUT_MS);
    on.others = new_client("");
    on.taken = new_lock(on.others, "taken", 30000);
    assert_result(nxl_lock_acquire(on.taken, 0), NXL_OK, on.taken);
    on.client = new_client(parameters);
    on.free_one = new_lock(on.client, "free", 30000);
    on.held = new_lock(on.client, "held", 30000);
    assert_result(nxl_lock_acquire(on.held, 0), NXL_OK, on.held);
    on.renewed = kept_lock(on.client, "renewed", &OPTIONS(.ttl_ms = TTL_MS));
    assert_result(nxl_lock_acquire(on.renewed, 0), NXL_OK, on.renewed);
}

static void clear_stage(void)
{
    nxl_lock_free(on.leader.lock);
    nxl_lock_free(on.free_one);
    nxl_lock_free(on.held);
    nxl_lock_free(on.renewed);
    nxl_client_free(on.client); /* if that is left */
    end(on.taken, on.others);
}

/* It waits in line, and asks every 100 ms. */
static void wait_in_thread(struct waiter *w, const char *name)
{
    char line[40];
    snprintf(line, sizeof(line), "{%s}:nxl-l", name);
    long long before = redis_run(&server, "ZCARD", line, NULL);
    waiter_start(w, new_lock(on.client, name, TTL_MS), LONG_MS);
    comes_true(redis_run(&server, "ZCARD", line, NULL) > before, 10000);
}

static void stop_leader(enum place place)
{
    pthread_t thread = on.leader.thread;
    if (place == PROMOTED) { /* the first one leads until it is cancelled */
        wait_in_thread(&on.second, "taken");
        wait_in_thread(&on.leader, "taken");
        comes_true(pthread_equal(atomic_load(&last), on.leader.thread), 10000);
        set_trap(PROMOTED, on.leader.thread);
        assert_int_equal(nxl_lock_interrupt(on.second.lock), NXL_OK);
        assert_int_equal(waiter_join(&on.second), NXL_CANCELLED);
        nxl_lock_free(on.second.lock);
        await_caught();
        return;
    }
    wait_in_thread(&on.leader, "taken");
    thread = on.leader.thread;
    set_trap(place, thread);
    while (place == IN_WAIT && atomic_load(&trap) == IN_WAIT) {
        assert_int_equal(pthread_kill(thread, SIGUSR1), 0);
        test_pause_ms(1);
    }
    await_caught();
}

/* The leader runs again. It gets the lock for which it waits once that is
 * free, and nothing is left behind. */
static void strike(void)
{
    sem_post(&go_on);
    assert_result(nxl_lock_release(on.taken), NXL_OK, on.taken);
    int64_t released = test_now_ms();
    assert_result(waiter_join(&on.leader), NXL_OK, on.leader.lock);
    assert_true(on.leader.ended_ms - released < 1000 + LATE_MS);
    assert_true(nxl_lock_held(on.leader.lock));
    clear_stage();
    assert_int_equal(redis_lasting_keys(&server), 0);
}

/* ----------------------------------------------------------------- the table
 */

static void acquires(void)
{
    assert_result(nxl_lock_acquire(on.free_one, 0), NXL_OK, on.free_one);
}

static void releases(void)
{
    assert_result(nxl_lock_release(on.held), NXL_OK, on.held);
}

static void extends(void)
{
    assert_result(nxl_lock_extend(on.held, 0), NXL_OK, on.held);
}

static void asks(void)
{
    static const char *const words[] = {"PTTL", "held"};
    struct answer *answer = NULL;
    assert_int_equal(client_ask(on.client, 0, 2, words, NULL, &answer), NXL_OK);
    answer_free(answer);
}

/* A call of another thread ends in the time that its options promise. */
static void play(enum place place, const char *name, void (*call)(void))
{
    print_message("%s, stopped %s\n", name, places[place]);
    int descriptors = count_fds();
    set_stage();
    if (place != AFTER_EVENTS) {
        stop_leader(place);
    } else {
        wait_in_thread(&on.leader, "taken");
        set_trap(place, on.leader.thread);
    }
    int64_t began = test_now_ms();
    call();
    int64_t took = test_now_ms() - began;
    if (took > TIMEOUT_MS + LATE_MS)
        print_error("it took %lld ms\n", (long long)took);
    assert_true(took <= TIMEOUT_MS + LATE_MS);
    if (place == AFTER_EVENTS)
        await_caught();
    strike();
    assert_int_equal(count_fds(), descriptors);
}

static void calls_of_others_end_in_time(void **state)
{
    for (int place = 0; place < PLACES; place++) {
        play((enum place)place, "acquire", acquires);
        play((enum place)place, "release", releases);
        play((enum place)place, "extend", extends);
        play((enum place)place, "ask", asks);
    }
}

static void the_renewal_thread_takes_over(void **state)
{
    for (int place = 0; place < PLACES; place++) {
        print_message("renewal, stopped %s\n", places[place]);
        set_stage();
        stop_leader((enum place)place);
        uint64_t before = stats_of(on.client).renewals;
        int64_t end = test_now_ms() + 3 * TTL_MS;
        while (test_now_ms() < end) {
            assert_true(nxl_lock_held(on.renewed));
            test_pause_ms(20);
        }
        assert_true(stats_of(on.client).renewals >= before + 4);
        strike();
    }
}

static void the_client_is_freed(void **state)
{
    for (int place = 0; place < PLACES; place++) {
        print_message("client free, stopped %s\n", places[place]);
        set_stage();
        stop_leader((enum place)place);
        int64_t began = test_now_ms();
        nxl_client_free(on.client);
        on.client = NULL;
        assert_true(test_now_ms() - began <= 500 + LATE_MS);
        /* What was held was released, and its answer was read. */
        assert_int_equal(redis_run(&server, "EXISTS", "held", NULL), 0);
        assert_int_equal(redis_run(&server, "EXISTS", "renewed", NULL), 0);
        sem_post(&go_on);
        assert_int_equal(waiter_join(&on.leader), NXL_CANCELLED);
        clear_stage();
    }
}

/* ----------------------------------------------- when it wakes up once again
 */

/* Another thread leads for long, and ends the call of the one that is stopped.
 * When that runs again it returns at once, though nothing more happens at the
 * descriptors for which it may have begun to wait. */
static void it_returns_when_another_has_ended_its_call(void **state)
{
    for (int place = BEFORE_WAIT; place <= AFTER_EVENTS; place++) {
        print_message("stopped %s\n", places[place]);
        set_stage();
        nxl_lock *also_taken = new_lock(on.others, "also taken", 30000);
        assert_result(nxl_lock_acquire(also_taken, 0), NXL_OK, also_taken);
        stop_leader((enum place)place);
        wait_in_thread(&on.second, "also taken");
        assert_result(nxl_lock_release(on.taken), NXL_OK, on.taken);
        comes_true(nxl_lock_held(on.leader.lock), 10000);
        int64_t began = test_now_ms();
        sem_post(&go_on);
        assert_result(waiter_join(&on.leader), NXL_OK, on.leader.lock);
        assert_true(on.leader.ended_ms - began < 1000 + LATE_MS);
        assert_result(nxl_lock_release(also_taken), NXL_OK, also_taken);
        assert_result(waiter_join(&on.second), NXL_OK, on.second.lock);
        nxl_lock_free(on.second.lock);
        nxl_lock_free(also_taken);
        assert_result(nxl_lock_acquire(on.taken, 0), NXL_BUSY, on.taken);
        assert_result(nxl_lock_release(on.leader.lock), NXL_OK, on.leader.lock);
        assert_result(nxl_lock_acquire(on.taken, 0), NXL_OK, on.taken);
        clear_stage();
    }
}

/* Then the one that took over stops, and the first one takes over from it. */
static void it_takes_over_in_its_turn(void **state)
{
    for (int place = BEFORE_WAIT; place <= AFTER_EVENTS; place++) {
        print_message("stopped %s\n", places[place]);
        set_stage();
        nxl_lock *also_taken = new_lock(on.others, "also taken", 30000);
        assert_result(nxl_lock_acquire(also_taken, 0), NXL_OK, also_taken);
        stop_leader((enum place)place);
        wait_in_thread(&on.second, "also taken");
        set_trap(BEFORE_WAIT, on.second.thread);
        await_caught();
        nxl_lock *first = on.leader.lock;
        set_trap(PLACES, on.second.thread);
        sem_post(&go_on); /* for either: at the end of this both run */
        assert_result(nxl_lock_release(on.taken), NXL_OK, on.taken);
        assert_result(nxl_lock_release(also_taken), NXL_OK, also_taken);
        if (place == BEFORE_WAIT)
            comes_true(
                nxl_lock_held(first) || nxl_lock_held(on.second.lock), 10000);
        sem_post(&go_on);
        assert_result(waiter_join(&on.leader), NXL_OK, first);
        assert_result(waiter_join(&on.second), NXL_OK, on.second.lock);
        nxl_lock_free(on.second.lock);
        nxl_lock_free(also_taken);
        clear_stage();
    }
}

static int set_up(void **state)
{
    atomic_store(&trap, PLACES);
    sem_init(&caught, 0, 0);
    sem_init(&go_on, 0, 0);
    return live_clean(state);
}

int main(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &action, NULL);
#define stall_test(function) cmocka_unit_test_setup(function, set_up)
    const struct CMUnitTest tests[] = {
        stall_test(calls_of_others_end_in_time),
        stall_test(the_renewal_thread_takes_over),
        stall_test(the_client_is_freed),
        stall_test(it_returns_when_another_has_ended_its_call),
        stall_test(it_takes_over_in_its_turn),
    };
    return live_run_long("a leader that does not run");
}

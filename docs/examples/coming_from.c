/* SPDX-License-Identifier: MIT */
/*
 * coming_from: shows how nxlock differs from other lock libraries, with one
 * function for each difference; docs/coming-from.md explains them.
 *
 * It checks what it shows against the server at $NXLOCK_URL, or else the one on
 * this machine, and exits with 1 at the first expectation that does not hold.
 */
#include <nxlock.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define expect(condition) check((condition), #condition, __LINE__)

static void check(bool holds, const char *condition, int line)
{
    if (holds)
        return;
    fprintf(stderr, "coming_from.c:%d: not true: %s\n", line, condition);
    exit(1);
}

static nxl_client *new_client(nxl_client_options *options)
{
    const char *url = getenv("NXLOCK_URL");
    nxl_client *client;

    options->prefix = "coming-from:"; /* in front of every lock's name */
    expect(nxl_client_new(&client, url ? url : "redis://localhost:6379",
               options) == NXL_OK);
    return client;
}

static nxl_lock *new_lock(
    nxl_client *client, const char *name, const nxl_lock_options *options)
{
    nxl_lock *lock;

    expect(nxl_lock_new(&lock, client, name, options) == NXL_OK);
    return lock;
}

static void extend_sets_a_minimum(nxl_client *client)
{
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    options.ttl_ms = 10000;
    nxl_lock *lock = new_lock(client, "extend", &options);

    expect(nxl_lock_acquire(lock, 1000) == NXL_OK);

    expect(nxl_lock_extend(lock, 20000) == NXL_OK); /* 20 s from now, */
    expect(nxl_lock_remaining_ms(lock) <= 20000);   /* not 30 s */

    expect(nxl_lock_extend(lock, 5000) == NXL_OK); /* at least 5 s: */
    expect(nxl_lock_remaining_ms(lock) > 10000);   /* nothing changes */

    int64_t left = nxl_lock_remaining_ms(lock);
    expect(nxl_lock_extend(lock, left + 10000) == NXL_OK); /* adds 10 s */
    expect(nxl_lock_remaining_ms(lock) > 20000);

    expect(nxl_lock_release(lock) == NXL_OK);
    nxl_lock_free(lock);
}

static void every_lock_expires(nxl_client *client)
{
    nxl_lock *lock = new_lock(client, "default", NULL);

    expect(nxl_lock_acquire(lock, 1000) == NXL_OK);
    expect(nxl_lock_remaining_ms(lock) <= 30000); /* the default ttl_ms */
    expect(nxl_lock_release(lock) == NXL_OK);
    nxl_lock_free(lock);

    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    options.ttl_ms = 1500;
    options.renew = 1; /* every 500 ms, until it is released or lost */
    lock = new_lock(client, "renew", &options);

    expect(nxl_lock_acquire(lock, 1000) == NXL_OK);
    uint64_t first = nxl_lock_deadline(lock);
    while (nxl_lock_held(lock) && nxl_lock_deadline(lock) == first)
        usleep(10000); /* the work */

    expect(nxl_lock_held(lock)); /* the deadline has moved */
    expect(nxl_lock_release(lock) == NXL_OK);
    nxl_lock_free(lock);
}

static void ttl_has_a_limit(nxl_client *client)
{
    nxl_lock *lock = NULL;
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    options.ttl_ms = 600000; /* 10 minutes */
    expect(nxl_lock_new(&lock, client, "long", &options) == NXL_E_INVALID);

    nxl_client_options longer = NXL_CLIENT_OPTIONS_INIT;
    longer.max_ttl_ms = 600000; /* or ?max_ttl_ms=600000 in the URL */
    nxl_client *other = new_client(&longer);
    expect(nxl_lock_new(&lock, other, "long", &options) == NXL_OK);
    expect(nxl_lock_acquire(lock, 1000) == NXL_OK);
    expect(nxl_lock_remaining_ms(lock) > 500000);
    expect(nxl_lock_release(lock) == NXL_OK);
    nxl_lock_free(lock);
    nxl_client_free(other);
}

static void locks_are_not_reentrant(nxl_client *client)
{
    nxl_lock *lock = new_lock(client, "reentrant", NULL);
    nxl_lock *other = new_lock(client, "reentrant", NULL);

    expect(nxl_lock_acquire(lock, 1000) == NXL_OK);
    expect(nxl_lock_acquire(lock, 0) == NXL_E_INVALID); /* held already */
    expect(nxl_lock_acquire(other, 0) == NXL_BUSY); /* same name and thread */
    expect(nxl_client_holds(client, "reentrant", 9) == 1);

    expect(nxl_lock_release(lock) == NXL_OK); /* one release frees it */
    expect(nxl_lock_acquire(other, 0) == NXL_OK);
    expect(nxl_lock_release(other) == NXL_OK);
    nxl_lock_free(other);
    nxl_lock_free(lock);
}

static int total; /* protected by the lock "threads" */

static void *add_five(void *client)
{
    nxl_lock *lock = new_lock(client, "threads", NULL); /* its own handle */

    for (int i = 0; i < 5; i++) {
        expect(nxl_lock_acquire(lock, NXL_FOREVER) == NXL_OK);
        total++;
        expect(nxl_lock_release(lock) == NXL_OK);
    }
    nxl_lock_free(lock);
    return NULL;
}

static void each_thread_has_its_handle(nxl_client *client)
{
    pthread_t threads[2];

    total = 0;
    for (int i = 0; i < 2; i++) /* all threads share the client */
        expect(pthread_create(&threads[i], NULL, add_five, client) == 0);
    for (int i = 0; i < 2; i++)
        expect(pthread_join(threads[i], NULL) == 0);
    expect(total == 10);
}

static void freeing_a_handle_releases(nxl_client *client)
{
    nxl_lock *lock = new_lock(client, "free", NULL); /* ttl 30 s */
    nxl_lock *next = new_lock(client, "free", NULL);

    expect(nxl_lock_acquire(lock, 1000) == NXL_OK);
    nxl_lock_free(lock);
    expect(nxl_lock_acquire(next, 5000) == NXL_OK); /* no wait for the ttl */
    expect(nxl_lock_release(next) == NXL_OK);
    nxl_lock_free(next);
}

static void only_renew_reports_a_loss(nxl_client *client)
{
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    options.ttl_ms = 1000;
    nxl_lock *plain = new_lock(client, "plain", &options);
    options.renew = 1;
    options.max_hold_ms = 1000; /* so that it is lost here, too */
    nxl_lock *renewed = new_lock(client, "renewed", &options);
    nxl_event event;

    expect(nxl_lock_acquire(plain, 1000) == NXL_OK);
    while (nxl_lock_held(plain)) /* nothing calls back: ask */
        usleep(10000);
    expect(!nxl_client_next_event(client, &event));
    expect(nxl_lock_release(plain) == NXL_LOST);

    struct pollfd loss = {.fd = nxl_client_loss_fd(client), .events = POLLIN};
    expect(nxl_lock_acquire(renewed, 1000) == NXL_OK);
    expect(poll(&loss, 1, 10000) == 1); /* or wait for it in your own loop */
    expect(nxl_client_next_event(client, &event));
    expect(event.operation == NXL_OP_HOLD && event.lock == renewed);
    expect(nxl_lock_loss(renewed, NULL, 0) == NXL_LOSS_EXPIRED);
    expect(!nxl_lock_held(renewed));
    nxl_lock_free(renewed);
    nxl_lock_free(plain);
}

static void remaining_time_has_a_margin(nxl_client *client)
{
    nxl_lock *lock = new_lock(client, "margin", NULL); /* ttl 30 s */

    expect(nxl_lock_acquire(lock, 1000) == NXL_OK);
    expect(nxl_lock_remaining_ms(lock) <= 30000 - 302); /* 1 % and 2 ms */
    expect(nxl_lock_release(lock) == NXL_OK);
    nxl_lock_free(lock);
}

static void an_expired_key_is_busy_for_the_margin(void)
{
    nxl_client_options wide = NXL_CLIENT_OPTIONS_INIT;
    wide.drift_ppm = 500000; /* a margin of half the ttl, to make it visible */
    nxl_client *client = new_client(&wide);
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    options.ttl_ms = 2000;
    nxl_lock *lock = new_lock(client, "expired", &options);

    expect(nxl_lock_acquire(lock, 1000) == NXL_OK);
    while (nxl_lock_held(lock))
        usleep(10000);
    expect(nxl_lock_acquire(lock, 0) == NXL_BUSY); /* our own old key */
    expect(nxl_lock_acquire(lock, 5000) == NXL_OK);
    expect(nxl_lock_release(lock) == NXL_OK);
    nxl_lock_free(lock);
    nxl_client_free(client);
}

static uint64_t attempts(nxl_client *client)
{
    nxl_stats stats;

    expect(nxl_client_stats(client, &stats, sizeof(stats)) == NXL_OK);
    return stats.attempts;
}

static void waiters_poll(nxl_client *client)
{
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    options.retry_min_ms = 200;
    options.retry_max_ms = 200; /* each pause is drawn from 100 ... 200 ms */
    nxl_lock *holder = new_lock(client, "retry", NULL);
    nxl_lock *waiter = new_lock(client, "retry", &options);

    expect(nxl_lock_acquire(holder, 1000) == NXL_OK);
    uint64_t before = attempts(client);
    expect(nxl_lock_acquire(waiter, 500) == NXL_BUSY);
    expect(attempts(client) - before <= 6); /* SET and PTTL each */
    expect(nxl_lock_release(holder) == NXL_OK);
    nxl_lock_free(waiter);
    nxl_lock_free(holder);
}

static void a_forked_child_holds_nothing(nxl_client *client)
{
    nxl_lock *lock = new_lock(client, "fork", NULL);
    int status;

    expect(nxl_lock_acquire(lock, 1000) == NXL_OK);
    pid_t child = fork();
    if (child == 0) {
        expect(!nxl_lock_held(lock));
        expect(nxl_lock_release(lock) == NXL_E_FORKED);
        _exit(0);
    }
    expect(waitpid(child, &status, 0) == child && status == 0);
    expect(nxl_lock_held(lock)); /* the parent still does */
    expect(nxl_lock_release(lock) == NXL_OK);
    nxl_lock_free(lock);
}

int main(void)
{
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    nxl_client *client = new_client(&options);

    extend_sets_a_minimum(client);
    every_lock_expires(client);
    ttl_has_a_limit(client);
    locks_are_not_reentrant(client);
    each_thread_has_its_handle(client);
    freeing_a_handle_releases(client);
    only_renew_reports_a_loss(client);
    remaining_time_has_a_margin(client);
    an_expired_key_is_busy_for_the_margin();
    waiters_poll(client);
    a_forked_child_holds_nothing(client);
    nxl_client_free(client);
    puts("everything is as docs/coming-from.md says");
    return 0;
}

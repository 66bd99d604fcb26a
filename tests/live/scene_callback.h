/* SPDX-License-Identifier: MIT */
/*
 * A callback for credentials, which clients "with callback" have. Passwords of
 * scenes begin with SECRET, and no message and no trace may show that.
 */
#ifndef NXLOCK_TESTS_LIVE_SCENE_CALLBACK_H
#define NXLOCK_TESTS_LIVE_SCENE_CALLBACK_H

#include "live/scene_fields.h"

#include <errno.h>
#include <semaphore.h>
#include <sys/wait.h>

#define SECRET "s3cret."

/* What it gives and does. */
struct callback_order {
    char user[64], password[8193], next[64]; /* next: from the second call on */
    char why[256];
    int64_t failures; /* so many calls fail */
    bool fills;       /* everything, without an end */
    bool hangs;
    bool forks; /* a program, as for a token from a command */
};

struct callback_counts {
    int64_t calls, running;
    int64_t sentinels; /* calls for Sentinels */
    int64_t servers;   /* that it was called for */
};

/* Its calls come from threads of the library. */
static struct callback {
    pthread_mutex_t mutex;
    struct callback_order order;
    struct callback_counts counts;
    unsigned asked; /* the servers, by bits */
    sem_t leave;
} callback = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static inline void fill_in(
    const struct callback_order *order, bool first, nxl_credentials *c)
{
    const char *next = first ? "" : order->next;
    snprintf(c->user, sizeof(c->user), "%s", order->user);
    snprintf(c->password, sizeof(c->password), "%s",
        *next != '\0' ? next : order->password);
    if (!order->fills)
        return;
    memset(c->password, 'x', sizeof(c->password));
    memset(c->why, 'y', sizeof(c->why));
}

/* With the library's signals blocked, as a program that it starts has them. */
static inline bool fork_works(void)
{
    int status = -1;
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    pid_t child = fork();
    if (child == 0)
        _exit(7);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) && WEXITSTATUS(status) == 7 &&
           sigismember(&mask, SIGTERM);
}

static inline bool give_credentials(void *arg, nxl_credentials *c)
{
    struct callback *from = arg;
    pthread_mutex_lock(&from->mutex);
    struct callback_order order = from->order;
    int64_t call = from->counts.calls++;
    from->asked |= 1U << c->server;
    from->counts.servers = __builtin_popcount(from->asked);
    from->counts.sentinels += c->sentinel;
    from->counts.running++;
    pthread_mutex_unlock(&from->mutex);
    bool fails = call < order.failures;
    fill_in(&order, call == 0, c);
    if (fails)
        snprintf(c->why, sizeof(c->why), "%s", order.why);
    if (order.forks && !fork_works())
        fails = true;
    while (order.hangs && sem_wait(&from->leave) != 0)
        ;
    pthread_mutex_lock(&from->mutex);
    from->counts.running--;
    pthread_mutex_unlock(&from->mutex);
    return !fails;
}

static inline void assert_hidden(const char *text)
{
    if (!strstr(text, SECRET))
        return;
    print_error("it shows a password: \"%s\"\n", text);
    fail();
}

static inline void trace_hides(void *arg, const nxl_trace *trace)
{
    (void)arg;
    assert_hidden(trace->text);
}

/* Calls that hang return. */
static inline void callback_returns(void)
{
    pthread_mutex_lock(&callback.mutex);
    callback.order.hangs = false;
    for (int64_t i = 0; i < callback.counts.running; i++)
        sem_post(&callback.leave);
    pthread_mutex_unlock(&callback.mutex);
}

static inline void callback_obeys(
    const struct callback_order *order, bool counts_anew)
{
    pthread_mutex_lock(&callback.mutex);
    callback.order = *order;
    if (counts_anew) {
        callback.counts.calls = callback.counts.servers = 0;
        callback.asked = 0;
    }
    pthread_mutex_unlock(&callback.mutex);
}

/* As it is when a scene begins. */
static inline void callback_reset(void)
{
    callback_obeys(&(struct callback_order){.failures = 0}, true);
    callback.counts.sentinels = 0;
    sem_init(&callback.leave, 0, 0);
}

static inline void take_text(struct words *words, char *text, size_t size)
{
    snprintf(text, size, "%s", take(words)->text);
}

static const struct field callback_fields[] = {
    FIELD(struct callback_counts, calls, INT64),
    FIELD(struct callback_counts, running, INT64),
    FIELD(struct callback_counts, sentinels, INT64),
    FIELD(struct callback_counts, servers, INT64),
    {.name = NULL},
};

/* gives "one" [as app] [then "two"], or fails "why" 3 times: its calls are
 * counted anew. */
static inline bool read_order(
    struct words *words, struct callback_order *order, bool *counts_anew)
{
    if (accept(words, "gives")) {
        *counts_anew = true;
        take_text(words, order->password, sizeof(order->password));
        order->user[0] = order->next[0] = '\0';
        if (accept(words, "as"))
            take_text(words, order->user, sizeof(order->user));
        if (accept(words, "then"))
            take_text(words, order->next, sizeof(order->next));
    } else if (accept(words, "fails")) {
        *counts_anew = true;
        take_text(words, order->why, sizeof(order->why));
        order->failures = number_of(take(words));
        if (!accept(words, "times"))
            file_error("fails \"why\" 3 times");
    } else if (accept(words, "fills") && accept(words, "everything")) {
        order->fills = true;
    } else if (accept(words, "hangs")) {
        order->hangs = true;
    } else if (accept(words, "forks")) {
        order->forks = true;
    } else {
        return false;
    }
    return true;
}

static inline void play_callback(
    const struct subject *subject, struct words *words, struct outcome *o)
{
    bool counts_anew = false;
    struct callback_order order = callback.order;
    pthread_mutex_lock(&callback.mutex);
    struct callback_counts counts = callback.counts;
    pthread_mutex_unlock(&callback.mutex);
    if (accept(words, "returns"))
        callback_returns();
    else if (read_order(words, &order, &counts_anew))
        callback_obeys(&order, counts_anew);
    else if (!give_field(o, callback_fields, &counts, words))
        file_error("a callback knows no \"%s\"", take(words)->text);
}

#endif

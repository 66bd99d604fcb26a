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

/* What it gives and does. Its calls come from threads of the library. */
static struct callback {
    pthread_mutex_t mutex;
    char user[64], password[8193], next[64]; /* next: from the second call on */
    char why[256];
    int64_t failures; /* so many calls fail */
    int64_t calls, running;
    int64_t sentinels; /* calls for Sentinels */
    unsigned servers;  /* it was called for, by bits */
    bool fills;        /* without an end */
    bool hangs;
    bool forks; /* a program, as for a token from a command */
    sem_t leave;
} callback = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static inline void fill_in(struct callback *from, nxl_credentials *c)
{
    const char *next = from->calls > 0 ? from->next : "";
    snprintf(c->user, sizeof(c->user), "%s", from->user);
    snprintf(c->password, sizeof(c->password), "%s",
        *next != '\0' ? next : from->password);
    if (!from->fills)
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
    fill_in(from, c);
    bool fails = from->calls < from->failures, hangs = from->hangs;
    if (fails)
        snprintf(c->why, sizeof(c->why), "%s", from->why);
    from->servers |= 1U << c->server;
    from->sentinels += c->sentinel;
    from->calls++;
    from->running++;
    bool forks = from->forks;
    pthread_mutex_unlock(&from->mutex);
    if (forks && !fork_works())
        fails = true;
    while (hangs && sem_wait(&from->leave) != 0)
        ;
    pthread_mutex_lock(&from->mutex);
    from->running--;
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
    callback.hangs = false;
    for (int64_t i = 0; i < callback.running; i++)
        sem_post(&callback.leave);
    pthread_mutex_unlock(&callback.mutex);
}

/* As it is when a scene begins. */
static inline void callback_reset(void)
{
    callback.user[0] = callback.next[0] = '\0';
    callback.fills = callback.hangs = callback.forks = false;
    callback.failures = callback.calls = callback.sentinels = 0;
    callback.servers = 0;
    sem_init(&callback.leave, 0, 0);
}

/* gives "one" [as app] [then "two"]; its calls are counted anew. */
static inline void callback_gives(struct words *words)
{
    snprintf(
        callback.password, sizeof(callback.password), "%s", take(words)->text);
    callback.user[0] = callback.next[0] = '\0';
    callback.calls = callback.servers = 0;
    if (accept(words, "as"))
        snprintf(callback.user, sizeof(callback.user), "%s", take(words)->text);
    if (accept(words, "then"))
        snprintf(callback.next, sizeof(callback.next), "%s", take(words)->text);
}

/* What it is told, or -1; or a number that it has. */
static inline int64_t play_callback(struct words *words)
{
    int64_t value = -1;
    if (accept(words, "returns")) {
        callback_returns();
        return value;
    }
    pthread_mutex_lock(&callback.mutex);
    if (accept(words, "gives")) {
        callback_gives(words);
    } else if (accept(words, "fails")) {
        snprintf(callback.why, sizeof(callback.why), "%s", take(words)->text);
        callback.failures = number_of(take(words));
        callback.calls = 0;
        if (!accept(words, "times"))
            file_error("fails \"why\" 3 times");
    } else if (accept(words, "fills") && accept(words, "everything")) {
        callback.fills = true;
    } else if (accept(words, "hangs")) {
        callback.hangs = true;
    } else if (accept(words, "forks")) {
        callback.forks = true;
    } else if (accept(words, "calls")) {
        value = callback.calls;
    } else if (accept(words, "running")) {
        value = callback.running;
    } else if (accept(words, "sentinels")) {
        value = callback.sentinels;
    } else if (accept(words, "servers")) {
        value = __builtin_popcount(callback.servers);
    } else {
        file_error("a callback knows no \"%s\"", take(words)->text);
    }
    pthread_mutex_unlock(&callback.mutex);
    return value;
}

#endif

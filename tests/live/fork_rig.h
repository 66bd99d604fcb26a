/* SPDX-License-Identifier: MIT */
/*
 * What a child of fork() may do with its parent's handles: nothing but ask,
 * and free them. A child's checks are told by its exit status; the first that
 * failed is named.
 */
#ifndef NXLOCK_TESTS_LIVE_FORK_RIG_H
#define NXLOCK_TESTS_LIVE_FORK_RIG_H

#include "api/private.h"
#include "live_rig.h"

#include <poll.h>
#include <sys/wait.h>

#define TOKEN "6f1d7c1e-0000-4000-8000-0123456789ab"

/* In the child, where cmocka has no say. */
#define expect(condition)                                                      \
    do {                                                                       \
        if (!(condition)) {                                                    \
            fprintf(stderr, "in the child, %s:%d: not %s\n", __FILE__,         \
                __LINE__, #condition);                                         \
            _exit(1);                                                          \
        }                                                                      \
    } while (0)

static inline void run_child(void (*body)(void *), void *argument)
{
    pid_t pid = test_fork();
    int status = -1;
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(20);
        body(argument);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

struct handles {
    nxl_client *client;
    nxl_lock *lock;
};

static inline void expect_forked(void *argument)
{
    struct handles *h = argument;
    nxl_holder seen = {.size = sizeof(seen), .value = "x", .value_length = 1};
    nxl_holder holder = NXL_HOLDER_INIT;
    nxl_record record = NXL_RECORD_INIT;
    nxl_event event;
    nxl_lock *fresh = h->lock;
    struct pollfd fds[4];
    int timeout = 0;
    char words[64] = "?";
    const char *const ping[] = {"PING"};
    struct answer *answer;
    nxl_stats stats;
    nxl_server_facts facts = NXL_SERVER_FACTS_INIT;

    expect(nxl_lock_acquire(h->lock, 1000) == NXL_E_FORKED);
    expect(nxl_lock_extend(h->lock, 0) == NXL_E_FORKED);
    expect(nxl_lock_release(h->lock) == NXL_E_FORKED);
    expect(nxl_lock_adopt(h->lock, TOKEN) == NXL_E_FORKED);
    expect(nxl_lock_inspect(h->lock, &holder) == NXL_E_FORKED);
    expect(nxl_lock_break(h->lock, &seen) == NXL_E_FORKED);
    expect(nxl_lock_acquire_start(h->lock, 0) == NXL_E_FORKED);
    expect(nxl_lock_extend_start(h->lock, 0) == NXL_E_FORKED);
    expect(nxl_lock_release_start(h->lock) == NXL_E_FORKED);
    expect(nxl_lock_adopt_start(h->lock, TOKEN) == NXL_E_FORKED);
    expect(nxl_lock_inspect_start(h->lock) == NXL_E_FORKED);
    expect(lock_empty_line(h->lock) == NXL_E_FORKED);
    expect(nxl_lock_break_start(h->lock, &seen) == NXL_E_FORKED);
    expect(nxl_once_begin(h->lock, NULL, 0) == NXL_E_FORKED);
    expect(nxl_once_begin_start(h->lock, NULL, 0) == NXL_E_FORKED);
    expect(nxl_once_tell(h->lock, NXL_ONCE_DONE, 0, "x", 1) == NXL_E_FORKED);
    expect(
        nxl_once_tell_start(h->lock, NXL_ONCE_DONE, 0, "x", 1) == NXL_E_FORKED);
    expect(nxl_once_forget(h->lock) == NXL_E_FORKED);
    expect(nxl_once_forget_start(h->lock) == NXL_E_FORKED);
    expect(nxl_once_record(h->lock, &record) == NXL_E_FORKED);
    expect(nxl_lock_cancel(h->lock) == NXL_E_FORKED);
    expect(nxl_lock_interrupt(h->lock) == NXL_E_FORKED);
    expect(nxl_lock_holder(h->lock, &holder) == NXL_E_FORKED);
    expect(nxl_lock_holder_at(h->lock, 0, 0, &holder) == NXL_E_FORKED);
    expect(nxl_lock_new(&fresh, h->client, "other", NULL) == NXL_E_FORKED);
    expect(!fresh);
    expect(nxl_client_holds(h->client, "other", 5) == 0);
    expect(client_ask(h->client, 0, 1, ping, NULL, &answer) == NXL_E_FORKED);
    expect(!answer);
    expect(nxl_client_stats(h->client, &stats, sizeof(stats)) == NXL_E_FORKED);
    expect(nxl_client_process(h->client) == NXL_E_FORKED);
    expect(nxl_client_fd(h->client) == -1);
    expect(nxl_client_pollfds(h->client, fds, 4, &timeout) == 0);
    expect(nxl_client_loss_fd(h->client) == -1);
    expect(!nxl_client_next_event(h->client, &event));
    expect(!nxl_lock_held(h->lock));
    expect(nxl_lock_deadline(h->lock) == 0);
    expect(nxl_lock_remaining_ms(h->lock) == 0);
    expect(nxl_lock_loss(h->lock, NULL, 0) == NXL_LOSS_NONE);
    expect(nxl_lock_errmsg(h->lock) != NULL);
    expect(nxl_lock_errmsg_at(h->lock, 0) != NULL);
    expect(nxl_client_errmsg(h->client) != NULL);
    expect(nxl_client_describe(h->client, words, sizeof(words)) == 0);
    expect(strcmp(words, "") == 0);
    expect(nxl_client_server_facts(h->client, 0, &facts) == NXL_E_FORKED);
}

static inline void expect_forked_below(void *argument)
{
    expect_forked(argument);
    pid_t pid = test_fork();
    int status = -1;
    if (pid == 0) {
        expect_forked(argument);
        _exit(0);
    }
    expect(waitpid(pid, &status, 0) == pid && status == 0);
}

struct freeing {
    struct handles h;
    int fds; /* open without the client */
};

static inline void expect_freed(void *argument)
{
    struct freeing *f = argument;
    nxl_lock_free(f->h.lock);
    nxl_client_free(f->h.client);
    expect(count_fds() == f->fds);
}

/* Frees, and ends as a program does, handlers of atexit() included. The memory
 * is left to the parent's threads, which a leak checker would not understand.
 */
static inline void free_and_exit(void *argument)
{
    expect_freed(argument);
    if (!LIVE_INSTRUMENTED)
        exit(0);
}

#endif

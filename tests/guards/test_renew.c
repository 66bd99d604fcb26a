/* SPDX-License-Identifier: MIT */
/* The guards of locks that are kept alive: a process that was stopped does not
 * revive itself, a loss needs no answer, and a release ends it all. */
#include "guards/guards_rig.h"
#include "live/renew_rig.h"

#include <sys/wait.h>

/* ------------------------------------------------ a process that is stopped */

enum { STOPPED_MS = 3000, TRIES = 4, MOST_TRIES = 8 };
/* Half of the lease is drift: it is over there long after it is over here. */
#define HALF_LEASE "drift_ppm=500000"

struct holder {
    pid_t pid;
    int ask[2], tell[2], failed[2];
};

static void on_trace(void *arg, const nxl_trace *trace)
{
    const struct holder *h = arg;
    if (trace->kind == NXL_TRACE_RENEWAL && trace->result != NXL_OK &&
        write(h->failed[1], "f", 1) != 1)
        _exit(8);
}

static void tell(const struct holder *h, const nxl_lock *lock)
{
    uint64_t deadline = nxl_lock_deadline(lock);
    if (write(h->tell[1], &deadline, sizeof(deadline)) != sizeof(deadline))
        _exit(3);
}

/* Tells its deadline, or 0, when it got the lock and when it is asked. */
static void loop_of(const struct holder *h, nxl_client *client, nxl_lock *lock)
{
    for (;;) {
        struct pollfd fds[2] = {{.events = POLLIN}, {h->ask[0], POLLIN, 0}};
        nxl_event event;
        int timeout_ms;
        char byte;
        if (nxl_client_pollfds(client, fds, 1, &timeout_ms) != 1)
            _exit(4);
        if (poll(fds, 2, timeout_ms) < 0)
            fds[1].revents = 0;
        if (nxl_client_process(client) != NXL_OK)
            _exit(5);
        while (nxl_client_next_event(client, &event))
            if (event.operation == NXL_OP_ACQUIRE)
                tell(h, lock);
        if (fds[1].revents && read(h->ask[0], &byte, 1) == 1)
            tell(h, lock);
    }
}

/* In a process of its own. Its loop comes late: by then the answer is there
 * (a thread of the library's would have looked at its clock first). */
static void hold_on(struct holder *h)
{
    char url[512];
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    nxl_lock_options more = NXL_LOCK_OPTIONS_INIT;
    nxl_client *client;
    nxl_lock *lock;
    snprintf(url, sizeof(url), "%s?" HALF_LEASE, server_url);
    options.tracer = on_trace;
    options.tracer_arg = h;
    more.ttl_ms = STOPPED_MS;
    more.renew = 1;
    if (nxl_client_new(&client, url, &options) != NXL_OK ||
        nxl_lock_new(&lock, client, "k", &more) != NXL_OK ||
        nxl_lock_acquire_start(lock, 0) != NXL_PENDING)
        _exit(2);
    loop_of(h, client, lock);
}

/* Is fd readable within this time? */
static bool comes(int fd, int within_ms)
{
    struct pollfd ready = {fd, POLLIN, 0};
    return poll(&ready, 1, within_ms) == 1;
}

static uint64_t deadline_of(struct holder *h)
{
    uint64_t deadline;
    assert_true(comes(h->tell[0], 20000));
    assert_int_equal(
        read(h->tell[0], &deadline, sizeof(deadline)), sizeof(deadline));
    return deadline;
}

static void start_holder(struct holder *h)
{
    assert_int_equal(pipe(h->ask), 0);
    assert_int_equal(pipe(h->tell), 0);
    assert_int_equal(pipe(h->failed), 0);
    h->pid = test_fork();
    if (h->pid == 0) {
        close(h->ask[1]);
        hold_on(h);
    }
}

static void end_holder(struct holder *h)
{
    int *all[] = {h->ask, h->tell, h->failed};
    assert_int_equal(kill(h->pid, SIGKILL), 0);
    assert_int_equal(waitpid(h->pid, NULL, 0), h->pid);
    for (int i = 0; i < 3; i++) {
        close(all[i][0]);
        close(all[i][1]);
    }
    redis_thaw(&server);
    redis_run(&server, "DEL", "k", NULL);
}

static void pause_until(uint64_t ns)
{
    while (test_now_ns() < ns)
        test_pause_ms(1);
}

enum outcome { NOT_STOPPED, LOST, REVIVED };

/* The process is stopped during a renewal, which succeeds, but whose answer is
 * read only after the old lease has expired. On a busy machine the lease may
 * expire before that: NOT_STOPPED. */
static enum outcome revives(void)
{
    struct holder h;
    int status;
    start_holder(&h);
    uint64_t deadline = deadline_of(&h);
    redis_freeze(&server);
    if (deadline == 0 || !comes(h.failed[0], 2 * STOPPED_MS)) {
        end_holder(&h);
        return NOT_STOPPED;
    }
    /* The next one begins within a tenth of the lease, and waits as long. */
    test_pause_ms(STOPPED_MS / 10 + 60);
    assert_int_equal(kill(h.pid, SIGSTOP), 0);
    assert_int_equal(waitpid(h.pid, &status, WUNTRACED), h.pid);
    assert_true(WIFSTOPPED(status));
    bool in_time = test_now_ns() < deadline;
    redis_thaw(&server);
    pause_until(deadline + 50 * UINT64_C(1000000));
    assert_int_equal(kill(h.pid, SIGCONT), 0);
    test_pause_ms(200);
    assert_int_equal(write(h.ask[1], "?", 1), 1);
    bool held = deadline_of(&h) != 0;
    end_holder(&h);
    return held ? REVIVED : in_time ? LOST : NOT_STOPPED;
}

static bool the_stopped_revives(void)
{
    int stopped = 0;
    for (int i = 0; i < MOST_TRIES && stopped < TRIES; i++) {
        enum outcome outcome = revives();
        if (outcome == REVIVED)
            return true;
        stopped += outcome == LOST;
    }
    assert_true(stopped > 0);
    return false;
}

static void test_lapsed(void **state)
{
    (void)state;
    assert_needed(LAPSED,
        "a process that was stopped beyond its lease holds again",
        the_stopped_revives);
}

/* ------------------------------------------------------------------- losses */

/* The server does not answer: who waits for the news of a loss waits on. */
static bool nobody_is_told(void)
{
    nxl_client *client = new_client("timeout_ms=300");
    nxl_lock *lock = kept_lock(client, "k", NULL);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    redis_freeze(&server);
    bool harm = !await_loss(client, 2 * RENEW_MS);
    redis_thaw(&server);
    end(lock, client);
    return harm;
}

static void test_loss(void **state)
{
    (void)state;
    assert_needed(LOSS,
        "nobody is told of a loss while the server does not answer",
        nobody_is_told);
}

/* Its key stays, with its token, for the least time: it is renewed there, or
 * found to be lost, although nobody holds it. */
static bool goes_on_after_release(void)
{
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    options.ttl_ms = RENEW_MS;
    options.min_hold_ms = 2 * RENEW_MS;
    nxl_client *client = new_client("");
    nxl_lock *lock = kept_lock(client, "k", &options);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    bool harm = await_loss(client, 3 * RENEW_MS) != NULL;
    end(lock, client);
    return harm;
}

static void test_released(void **state)
{
    (void)state;
    assert_needed(RELEASED,
        "a lock that was released is renewed, or found lost",
        goes_on_after_release);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        guard_test(test_lapsed),
        guard_test(test_loss),
        guard_test(test_released),
    };
    return live_run("guards of renewal");
}

/* SPDX-License-Identifier: MIT */
/*
 * After fork() the child's copies of the handles do nothing but say so: no
 * byte, no hang, no harm to the parent, which goes on as if nothing happened.
 * With one server and with three, whatever state each connection is in.
 */
#define QUORUM_MAX 3
#include "live/quorum_rig.h"

#include "live/fork_rig.h"
#include "live/loop_rig.h"
#include "live/renew_rig.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/socket.h>

enum { KEPT_MS = 900 };

#define TERMS NO_GUARD "&timeout_ms=1000"

static struct handles handles(void)
{
    nxl_client *client = client_on(TERMS);
    return (struct handles){client, new_lock(client, "k", 30000)};
}

/* The parent's: it stands, can be prolonged, and goes with its release. */
static void assert_untouched(nxl_lock *lock)
{
    assert_true(nxl_lock_held(lock));
    assert_int_equal(standing(on.servers, "k", lock), on.servers);
    assert_result(nxl_lock_extend(lock, 50000), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_eventually(keys_at(on.servers, "k") == 0);
}

static void acquire_everywhere(struct handles h)
{
    connect_all(h.client);
    assert_result(nxl_lock_acquire(h.lock, 5000), NXL_OK, h.lock);
    assert_eventually(standing(on.servers, "k", h.lock) == on.servers);
}

/* ---------------------------------------------------------- what it is told */

static void every_call_says_so(void **state)
{
    struct handles h = handles();
    nxl_holder holder = NXL_HOLDER_INIT;

    run_child(expect_forked, &h); /* never connected */
    acquire_everywhere(h);
    run_child(expect_forked_below, &h); /* and its own child */
    assert_result(nxl_lock_inspect(h.lock, &holder), NXL_OK, h.lock);
    run_child(expect_forked, &h); /* what it had seen of each is no answer */
    assert_true(holder.ours);
    assert_untouched(h.lock);
    end(h.lock, h.client);
}

/* An operation is in progress at all of them, and once one is silent. */
static void every_call_of_a_loop_says_so(void **state)
{
    struct handles h = handles();

    if (on.servers > 1 && !loop.by_fd)
        redis_freeze(&servers[1]);
    assert_int_equal(nxl_lock_acquire_start(h.lock, 0), NXL_PENDING);
    run_child(expect_forked, &h);
    loop_wait(h.client, 0);
    run_child(expect_forked, &h);
    loop_until_true(h.client, nxl_lock_held(h.lock));
    run_child(expect_forked, &h); /* an event waits: it is the parent's */
    assert_event(h.client, h.lock, NXL_OP_ACQUIRE, NXL_OK);
    quorum_mend(NULL);
    assert_result(nxl_lock_release_start(h.lock), NXL_PENDING, h.lock);
    assert_event(h.client, h.lock, NXL_OP_RELEASE, NXL_OK);
    end(h.lock, h.client);
    assert_eventually(keys_at(on.servers, "k") == 0);
}

/* ------------------------------------------------------------ what it frees */

static long scripts(void)
{
    return calls_at_all("eval") + calls_at_all("evalsha");
}

static void freeing_sends_nothing(void **state)
{
    struct freeing f = {.fds = count_fds()};
    f.h = handles();

    acquire_everywhere(f.h);
    long before = scripts();
    run_child(expect_freed, &f);
    assert_int_equal(standing(on.servers, "k", f.h.lock), on.servers);
    for (size_t i = 0; i < on.servers; i++)
        assert_int_equal(redis_clients(&servers[i]), 1);
    assert_int_equal(scripts(), before);
    assert_untouched(f.h.lock);
    end(f.h.lock, f.h.client);
}

/* While it connects, in the midst of a handshake of TLS, and once it holds. */
static void freeing_a_loop(void **state)
{
    struct freeing f = {.fds = count_fds()};
    nxl_client *client = client_on(NO_GUARD "&timeout_ms=5000");
    nxl_lock *lock = new_lock(client, "k", 30000);
    f.h = (struct handles){client, lock};

    assert_result(nxl_lock_acquire_start(lock, 0), NXL_PENDING, lock);
    for (int i = 0; i < 8; i++) {
        run_child(expect_freed, &f);
        loop_wait(client, 20);
    }
    assert_event(client, lock, NXL_OP_ACQUIRE, NXL_OK);
    run_child(expect_freed, &f);
    assert_between(stats_of(client).connections, majority(), on.servers);
    assert_true(standing(on.servers, "k", lock) >= majority());
    end(lock, client);
}

/* While it connects to one that does not answer. */
static void freeing_in_the_midst_of_connecting(void **state)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    int full[8];
    char url[64];
    uint16_t port = 0;
    int listener = local_listen_tcp(&port);
    assert_int_equal(listen(listener, 0), 0);
    at.sin_port = htons(port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < 8; i++) {
        full[i] =
            socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)!connect(full[i], (struct sockaddr *)&at, sizeof(at));
    }
    struct freeing f = {.fds = count_fds()};
    snprintf(url, sizeof(url), "redis://127.0.0.1:%u?timeout_ms=300", port);
    nxl_client *client = client_at(url);
    nxl_lock *lock = new_lock(client, "k", 30000);
    f.h = (struct handles){client, lock};
    assert_result(nxl_lock_acquire_start(lock, 0), NXL_PENDING, lock);
    loop_wait(client, 0);
    run_child(expect_freed, &f);
    assert_event(client, lock, NXL_OP_ACQUIRE, NXL_E_UNREACHABLE);
    end(lock, client);
    for (int i = 0; i < 8; i++)
        close(full[i]);
    close(listener);
}

static void expect_freed_at_once(void *argument)
{
    struct handles *h = argument;
    int64_t began = test_now_ms();
    int fds = count_fds();
    nxl_lock_free(h->lock);
    nxl_client_free(h->client);
    expect(test_now_ms() - began <= LATE_MS);
    expect(count_fds() <= fds - 4); /* two connections, and what it waits by */
}

/* One does not answer, and to one there is no connection. */
static void freeing_with_one_left(void **state)
{
    nxl_client *client = proxied_client(on.servers, TERMS);
    nxl_lock *lock = new_lock(client, "k", 30000);
    struct handles h = {client, lock};

    acquire_everywhere(h);
    proxy_hold(proxies[1], PROXY_UP, true);
    proxy_refuse(proxies[2], true);
    proxy_cut(proxies[2], true);
    assert_result(nxl_lock_extend(lock, 0), NXL_UNKNOWN, lock);
    uint64_t sent[2] = {
        proxy_bytes(proxies[0], PROXY_UP), proxy_bytes(proxies[1], PROXY_UP)};
    run_child(expect_freed_at_once, &h);
    proxy_refuse(proxies[2], false);
    test_pause_ms(20); /* what it had sent would be here by now */
    for (int i = 0; i < 2; i++)
        assert_true(proxy_bytes(proxies[i], PROXY_UP) == sent[i]);
    proxy_hold(proxies[1], PROXY_UP, false);
    connect_all(client);
    assert_untouched(lock);
    end(lock, client);
}

/* A lock that is kept: by a thread that the child has not. */
static void the_parent_keeps_its_lock(void **state)
{
    struct freeing f = {.fds = count_fds()};
    nxl_client *client = client_on(TERMS);
    nxl_lock *lock = lock_with(client, "k", .ttl_ms = KEPT_MS, .renew = 1);
    f.h = (struct handles){client, lock};

    acquire_everywhere(f.h);
    for (int i = 0; i < 3; i++) {
        uint64_t renewals = stats_of(client).renewals;
        run_child(expect_forked, &f.h);
        run_child(i % 2 ? expect_freed : free_and_exit, &f);
        comes_true(stats_of(client).renewals > renewals, 10000);
        assert_int_equal(nxl_lock_loss(lock, NULL, 0), NXL_LOSS_NONE);
        assert_true(nxl_lock_held(lock));
    }
    assert_untouched(lock); /* nor does a child end a TLS session */
    assert_int_equal(stats_of(client).connections, on.servers);
    end(lock, client);
}

/* A child that lives on with the descriptors, as a daemon might. What the
 * parent closes is not gone then, but it must not be called for it. */
static void a_child_that_keeps_them_open(void **state)
{
    nxl_client *client = client_on(NO_GUARD "&timeout_ms=5000");
    nxl_lock *lock = new_lock(client, "k", 30000);
    int status;

    assert_result(nxl_lock_acquire_start(lock, 0), NXL_PENDING, lock);
    assert_event(client, lock, NXL_OP_ACQUIRE, NXL_OK);
    pid_t pid = test_fork();
    if (pid == 0)
        for (;;)
            pause();
    redis_kill(&servers[0]);
    loop_for(client, 100);
    loop.turns = 0;
    loop_for(client, 300);
    assert_between(loop.turns, 0, 2);
    redis_restart(&servers[0]);
    assert_result(nxl_lock_extend_start(lock, 0), NXL_PENDING, lock);
    assert_event(client, lock, NXL_OP_EXTEND, NXL_LOST);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    end(lock, client);
}

/* ------------------------------------------------------ a client of its own */

static void use_an_own_client(void *argument)
{
    struct handles *parent = argument;
    nxl_client *client = client_on(TERMS);
    nxl_lock *same, *other;
    expect(nxl_lock_new(&same, client, "k", NULL) == NXL_OK);
    expect(nxl_lock_new(&other, client, "other", NULL) == NXL_OK);
    expect(nxl_lock_acquire(same, 0) == NXL_BUSY);
    expect(nxl_lock_acquire(other, 5000) == NXL_OK);
    expect(nxl_lock_acquire(parent->lock, 0) == NXL_E_FORKED);
    /* Taking over is by the token. */
    expect(nxl_lock_adopt(same, nxl_lock_token(parent->lock)) == NXL_OK);
    expect(nxl_lock_held(same) && !nxl_lock_held(parent->lock));
    expect(nxl_lock_release(other) == NXL_OK);
    expect(nxl_lock_release(same) == NXL_OK);
    nxl_lock_free(same);
    nxl_lock_free(other);
    nxl_client_free(client);
}

static void a_child_makes_its_own(void **state)
{
    struct handles h = handles();

    acquire_everywhere(h);
    run_child(use_an_own_client, &h);
    assert_int_equal(stats_of(h.client).connections, on.servers);
    /* It took it over. */
    assert_result(nxl_lock_release(h.lock), NXL_LOST, h.lock);
    end(h.lock, h.client);
    assert_int_equal(keys_at(on.servers, "k"), 0);
    assert_int_equal(keys_at(on.servers, "other"), 0);
}

struct draw {
    int to;
    char name[16];
};

static void draw_a_token(void *argument)
{
    struct draw *d = argument;
    nxl_client *client;
    nxl_lock *lock;
    expect(nxl_client_new(&client, url_of(0), NULL) == NXL_OK);
    expect(nxl_lock_new(&lock, client, d->name, NULL) == NXL_OK);
    expect(nxl_lock_acquire(lock, 0) == NXL_OK);
    expect(write(d->to, nxl_lock_token(lock), 37) == 37);
}

static void tokens_differ(void **state)
{
    static char token[9][37];
    int ends[2];
    struct handles h = handles();
    nxl_lock *lock = h.lock;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    for (int i = 0; i < 9; i += 3) {
        struct draw d = {.to = ends[1]};
        assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
        memcpy(token[i], nxl_lock_token(lock), 37);
        assert_result(nxl_lock_release(lock), NXL_OK, lock);
        for (int j = 1; j < 3; j++) {
            snprintf(d.name, sizeof(d.name), "child:%d", i + j);
            run_child(draw_a_token, &d);
            assert_int_equal(read(ends[0], token[i + j], 37), 37);
        }
    }
    for (int i = 0; i < 9; i++)
        for (int j = 0; j < i; j++)
            assert_string_not_equal(token[i], token[j]);
    close(ends[0]);
    close(ends[1]);
    end(lock, h.client);
}

/* ---------------------------------------------------- threads in the parent */

#define BUSY_THREADS 4

static atomic_bool stop;
static atomic_uint wrong;

static void *work(void *argument)
{
    nxl_lock *lock = argument;
    while (!stop)
        wrong += nxl_lock_acquire(lock, 5000) != NXL_OK ||
                 nxl_lock_release(lock) != NXL_OK;
    return NULL;
}

static void expect_no_hang(void *argument)
{
    struct handles *h = argument;
    expect(nxl_lock_acquire(h->lock, 1000) == NXL_E_FORKED);
    expect(!nxl_lock_held(h->lock));
    expect(nxl_lock_cancel(h->lock) == NXL_E_FORKED);
    expect(nxl_lock_interrupt(h->lock) == NXL_E_FORKED);
    expect(strstr(nxl_client_errmsg(h->client), "fork()") != NULL);
    /* A sanitizer's own malloc may be stuck here. */
    if (!LIVE_INSTRUMENTED) {
        nxl_client *client;
        nxl_lock *lock;
        expect(nxl_client_new(&client, url_of(0), NULL) == NXL_OK);
        expect(nxl_lock_new(&lock, client, "child", NULL) == NXL_OK);
        expect(nxl_lock_acquire(lock, 5000) == NXL_OK);
        nxl_lock_free(lock);
        nxl_client_free(client);
    }
    nxl_lock_free(h->lock);
    nxl_client_free(h->client);
}

static void forked_while_threads_are_at_it(void **state)
{
    nxl_client *client = client_on(TERMS);
    nxl_lock *lock[BUSY_THREADS + 1];
    pthread_t thread[BUSY_THREADS];

    stop = false;
    wrong = 0;
    for (int i = 0; i <= BUSY_THREADS; i++) {
        char name[16];
        snprintf(name, sizeof(name), "busy:%d", i);
        lock[i] = new_lock(client, name, 30000);
    }
    for (int i = 0; i < BUSY_THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, work, lock[i]), 0);
    struct handles h = {client, lock[BUSY_THREADS]};
    for (int i = 0; i < 50; i++)
        run_child(expect_no_hang, &h);
    stop = true;
    for (int i = 0; i < BUSY_THREADS; i++)
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    assert_int_equal(wrong, 0);
    for (int i = 0; i <= BUSY_THREADS; i++)
        nxl_lock_free(lock[i]);
    nxl_client_free(client);
    assert_int_equal(redis_run(&servers[0], "DBSIZE", NULL), 0);
}

/* -------------------------------------------------- no fork in that sense */

static void other_programs_are_started(void **state)
{
    bool mine[256] = {false};
    char *const argv[] = {"true", NULL}, *const environment[] = {NULL};
    pid_t pid;
    int status;

    for (int fd = 0; fd < 256; fd++)
        mine[fd] = fcntl(fd, F_GETFD) >= 0;
    struct handles h = handles();
    nxl_lock *lock = h.lock;
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_int_equal(
        posix_spawnp(&pid, "true", NULL, NULL, argv, environment), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_true(nxl_lock_held(lock));
    assert_result(nxl_lock_extend(lock, 0), NXL_OK, lock);
    pid = vfork();
    if (pid == 0)
        _exit(0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(nxl_lock_held(lock));
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    for (int fd = 0; fd < 256; fd++) /* nothing of ours goes along */
        if (!mine[fd] && fcntl(fd, F_GETFD) >= 0)
            assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    end(lock, h.client);
}

int main(void)
{
    const struct CMUnitTest each[] = {
        loop_test_poll(every_call_says_so),
        loop_test(every_call_of_a_loop_says_so),
        loop_test_poll(freeing_sends_nothing),
        loop_test(freeing_a_loop),
        loop_test_poll(a_child_makes_its_own),
        loop_test_poll(other_programs_are_started),
    };
    const struct CMUnitTest one[] = {
        loop_test_poll(freeing_in_the_midst_of_connecting),
        loop_test(a_child_that_keeps_them_open),
        loop_test_poll(tokens_differ),
        loop_test_poll(forked_while_threads_are_at_it),
    };
    const struct CMUnitTest three[] = {
        loop_test_poll(freeing_with_one_left),
        loop_test_poll(the_parent_keeps_its_lock),
    };
    return on_each_run("fork", each) +
           on_run(one_tcp, "fork (one server, TCP, alone)", one) +
           on_run(one_unix, "fork (one server, alone)", one) +
           on_run(three, "fork (of three servers)", three);
}

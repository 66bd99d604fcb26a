/* SPDX-License-Identifier: MIT */
/*
 * Many clients in one process, each with many locks that it renews; or one that
 * locks and releases as fast as it can. For crowd.py. Writes a line for each
 * thing that happens, times in ns as nxl_now_ns():
 *
 *     D CLIENT NOW PORT      an attempt to connect
 *     R LOCK NOW RESULT      a renewal ended
 *     L LOCK NOW REASON      a lock was lost
 *     held GRANTS            all acquires ended; so many were granted
 *     released OK            all releases ended; so many succeeded
 *     idle WAKES SWITCHES    in IDLE_S seconds with nothing held: how often a
 *                            client woke the event loop, and how often a thread
 *                            of this process waited
 *     cycles NUMBER          so many times a lock was acquired and released
 *
 * A line on its input makes it release all locks and end. In the other mode
 * each line is answered with the number, and the end of the input ends it.
 */
#include <errno.h>
#include <nxlock.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "connect.h"

enum { SETTLE_MS = 1000, IDLE_S = 3, EVENTS = 64 };

static struct {
    nxl_client **client;
    nxl_lock **lock;
    size_t clients, locks; /* locks: of all clients */
    int64_t ttl_ms;
    bool loop;
    int epoll;
    size_t current; /* whose turn it is in the event loop */
    size_t ended, succeeded, wakes;
} me;

/* A line is one write, because several threads write. */
__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
    char line[128];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (write(STDOUT_FILENO, line, (size_t)len) != len)
        _Exit(8);
}

__attribute__((noreturn)) static void fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    _Exit(1);
}

/* With the blocking API each client has a thread that renews. */
void on_dial(unsigned port)
{
    long who = me.loop ? (long)me.current : syscall(SYS_gettid);
    note("D %ld %llu %u\n", who, (unsigned long long)nxl_now_ns(), port);
}

static void on_trace(void *arg, const nxl_trace *trace)
{
    (void)arg;
    if (trace->kind == NXL_TRACE_RENEWAL || trace->kind == NXL_TRACE_LOSS)
        note("%c %td %llu %d\n", trace->kind == NXL_TRACE_LOSS ? 'L' : 'R',
            (nxl_lock **)trace->user - me.lock,
            (unsigned long long)trace->at_ns, trace->result);
}

static void make(const char *url)
{
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    nxl_lock_options of_lock = NXL_LOCK_OPTIONS_INIT;
    char why[512], name[32];
    options.tracer = on_trace;
    options.errbuf = why;
    options.errbuf_size = sizeof(why);
    of_lock.ttl_ms = me.ttl_ms;
    of_lock.renew = 1;
    for (size_t i = 0; i < me.clients; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.u64 = i};
        if (nxl_client_new(&me.client[i], url, &options) != NXL_OK)
            fail("nxl_client_new", why);
        if (me.loop && epoll_ctl(me.epoll, EPOLL_CTL_ADD,
                           nxl_client_fd(me.client[i]), &event) != 0)
            fail("epoll_ctl", strerror(errno));
    }
    for (size_t i = 0; i < me.locks; i++) {
        nxl_client *client = me.client[i % me.clients];
        snprintf(name, sizeof(name), "lock %zu", i);
        of_lock.user = &me.lock[i];
        if (nxl_lock_new(&me.lock[i], client, name, &of_lock) != NXL_OK)
            fail("nxl_lock_new", nxl_client_errmsg(client));
    }
}

static uint64_t ms_left(uint64_t end_ns)
{
    uint64_t now = nxl_now_ns();
    return now < end_ns ? (end_ns - now + 999999) / 1000000 : 0;
}

/* ------------------------------------------------------------- the event loop
 */

static void take_events(nxl_client *client)
{
    nxl_event event;
    while (nxl_client_next_event(client, &event)) {
        if (event.operation == NXL_OP_HOLD)
            continue;
        me.ended++;
        me.succeeded += event.result == NXL_OK;
    }
}

/* Waits once, at most so long. False: there is input. */
static bool turn(int most_ms)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(me.epoll, events, EVENTS, most_ms);
    bool input = false;
    for (int i = 0; i < n; i++) {
        me.current = events[i].data.u64;
        if (me.current == me.clients) {
            input = true;
            continue;
        }
        me.wakes++;
        if (nxl_client_process(me.client[me.current]) != NXL_OK)
            fail(
                "nxl_client_process", nxl_client_errmsg(me.client[me.current]));
        take_events(me.client[me.current]);
    }
    return !input;
}

/* ------------------------------------------------------------ both interfaces
 */

/* All locks, acquired or released; returns how many were. */
static size_t each(int (*call)(nxl_lock *lock), int (*start)(nxl_lock *lock))
{
    size_t pending = 0;
    me.ended = me.succeeded = 0;
    for (size_t i = 0; i < me.locks; i++) {
        me.current = i % me.clients;
        int rc = me.loop ? start(me.lock[i]) : call(me.lock[i]);
        pending += rc == NXL_PENDING;
        me.succeeded += rc == NXL_OK;
    }
    while (me.ended < pending)
        turn(-1);
    return me.succeeded;
}

static int acquire(nxl_lock *lock)
{
    return nxl_lock_acquire(lock, 0);
}

static int acquire_start(nxl_lock *lock)
{
    return nxl_lock_acquire_start(lock, 0);
}

static void wait_for_input(void)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    if (me.loop)
        while (turn(-1))
            ;
    else
        (void)poll(&input, 1, -1);
}

static void rest(uint64_t ms)
{
    uint64_t end = nxl_now_ns() + ms * 1000000;
    for (uint64_t left; (left = ms_left(end)) > 0;) {
        struct timespec t = {
            (time_t)(left / 1000), (long)(left % 1000) * 1000000};
        if (me.loop)
            turn((int)left);
        else
            nanosleep(&t, NULL);
    }
}

/* The end of the input must not wake it. */
static void be_idle(void)
{
    struct rusage before, after;
    if (me.loop)
        epoll_ctl(me.epoll, EPOLL_CTL_DEL, STDIN_FILENO, NULL);
    rest(SETTLE_MS);
    me.wakes = 0;
    getrusage(RUSAGE_SELF, &before);
    rest(IDLE_S * 1000);
    getrusage(RUSAGE_SELF, &after);
    note("idle %zu %ld\n", me.wakes, after.ru_nvcsw - before.ru_nvcsw);
}

static void hold(void)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = me.clients};
    if (me.loop &&
        epoll_ctl(me.epoll, EPOLL_CTL_ADD, STDIN_FILENO, &event) != 0)
        fail("epoll_ctl", strerror(errno));
    note("held %zu\n", each(acquire, acquire_start));
    wait_for_input();
    note("released %zu\n", each(nxl_lock_release, nxl_lock_release_start));
    be_idle();
}

/* --------------------------------------------------------- lock and release */

static void cycle(void)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    char byte;
    for (uint64_t n = 0;; n++) {
        if (nxl_lock_acquire(me.lock[0], 0) != NXL_OK ||
            nxl_lock_release(me.lock[0]) != NXL_OK)
            fail("cycle", nxl_client_errmsg(me.client[0]));
        if (poll(&input, 1, 0) <= 0)
            continue;
        if (read(STDIN_FILENO, &byte, 1) <= 0)
            return;
        note("cycles %llu\n", (unsigned long long)n + 1);
    }
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "usage: %s URL block|loop|cycle CLIENTS LOCKS TTL_MS\n",
            argv[0]);
        return 2;
    }
    bool cycles = strcmp(argv[2], "cycle") == 0;
    me.loop = strcmp(argv[2], "loop") == 0;
    me.clients = cycles ? 1 : strtoul(argv[3], NULL, 10);
    me.locks = cycles ? 1 : me.clients * strtoul(argv[4], NULL, 10);
    me.ttl_ms = strtol(argv[5], NULL, 10);
    me.client = calloc(me.clients, sizeof(nxl_client *));
    me.lock = calloc(me.locks, sizeof(nxl_lock *));
    me.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!me.client || !me.lock || me.epoll < 0)
        fail("the beginning", strerror(errno));
    make(argv[1]);
    if (cycles)
        cycle();
    else
        hold();
    for (size_t i = 0; i < me.locks; i++)
        nxl_lock_free(me.lock[i]);
    for (size_t i = 0; i < me.clients; i++)
        nxl_client_free(me.client[i]);
    free(me.lock);
    free(me.client);
    close(me.epoll);
    return 0;
}

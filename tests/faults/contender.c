/* SPDX-License-Identifier: MIT */
/*
 * One process that wants the lock again and again, and writes down in RECORD
 * what it is told, always before it does what ends that: what stands there of
 * one that was killed is true. A line is a letter and numbers, times in ns of
 * CLOCK_BOOTTIME:
 *
 *     S NOW            it has begun, and asks from now on
 *     B ATTEMPT NOW DEADLINE FENCE    held; asked for at ATTEMPT
 *     X DEADLINE       prolonged      W NOW    held, and about to write
 *     L NOW            not held any more       E NOW    the release begins
 *     A RESULT NOW     an acquire that did not get it
 *     R RESULT NOW     what the release or an extend said
 *     H BEGAN NOW MOST a call that took longer than MOST ns, with all slack
 *     Y NOW            a thread was given the answer to another question
 *     G NOW            held, and the thread hangs
 *     T TEXT           why it was lost, as it was told while it hung
 *     M TEXT           why an acquire had no answer or failed
 *
 * SIGTERM ends it in order.
 */
#include <errno.h>
#include <fcntl.h>
#include <nxlock.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "asker.h"
#include "resource.h"

/* A machine with much to do returns late; a call that hangs never does. */
enum { LATE_MS = 1500, SLICE_MS = 5 };

static struct {
    int record;
    int timeout_ms, ttl_ms, write_ms;
    int max_hold_ms;
    int hold_ms; /* 0: as work_ms() says */
    bool renew;
    int permits, weight, shared;
    bool fence;
    uint64_t dice;
    nxl_client *client;
    nxl_lock *lock;
    struct resource *resource;
    _Atomic uint64_t attempt;
} me;
static volatile sig_atomic_t over, to_hang;

static void on_term(int number)
{
    (void)number;
    over = 1;
    nxl_client_interrupt(me.client);
}

static void on_hang(int number)
{
    to_hang = number == SIGUSR1;
}

static void on_trace(void *arg, const nxl_trace *trace)
{
    (void)arg;
    if (trace->kind == NXL_TRACE_ATTEMPT && trace->lock == me.lock)
        me.attempt = trace->at_ns;
}

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
    char line[640];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (write(me.record, line, (size_t)len) != len)
        _Exit(8);
}

#define N(ns) ((unsigned long long)(ns))

/* Numbers that a seed repeats (splitmix64). */
static int below(int sides)
{
    uint64_t z = me.dice += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (int)((z ^ z >> 31) % (uint64_t)sides);
}

static void pause_ms(int ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&t, NULL);
}

static void note_late(uint64_t began, int64_t limit_ms)
{
    uint64_t now = nxl_now_ns();
    uint64_t most = (uint64_t)(limit_ms + LATE_MS) * 1000000;
    if (now > began + most)
        note("H %llu %llu %llu\n", N(began), N(now), N(most));
}

static void note_mix_up(void)
{
    note("Y %llu\n", N(nxl_now_ns()));
}

/* Works while the lock is held; false: it is not any more. */
static bool work(int ms, uint64_t *deadline)
{
    uint64_t end = nxl_now_ns() + (uint64_t)ms * 1000000;
    for (;;) {
        uint64_t now_until = nxl_lock_deadline(me.lock);
        bool held = nxl_lock_held(me.lock);
        if (held && now_until > *deadline) {
            *deadline = now_until;
            note("X %llu\n", N(now_until));
        }
        if (!held) {
            note("L %llu\n", N(nxl_now_ns()));
            return false;
        }
        if (over || nxl_now_ns() >= end)
            return true;
        pause_ms(SLICE_MS);
    }
}

static void extend(void)
{
    uint64_t began = nxl_now_ns();
    int rc = nxl_lock_extend(me.lock, 0);
    note_late(began, me.timeout_ms);
    if (rc != NXL_OK)
        note("R %d %llu\n", rc, N(nxl_now_ns()));
}

/* Most are short. The long ones of a lock that renews itself outlive its
 * first lease; the others are prolonged on the way, or not, and some stay
 * until their time is over. */
static int work_ms(void)
{
    if (me.hold_ms > 0)
        return me.hold_ms;
    if (below(8) > 0)
        return below(8);
    if (me.renew)
        return me.ttl_ms * 8 / 5;
    return below(3) > 0 ? me.ttl_ms * 4 / 5 : me.ttl_ms * 3;
}

/* It asks nothing of anybody and never releases: what it writes down it only
 * sees. The library's thread renews the lock all the same. */
static void hang(uint64_t *deadline)
{
    char why[256];
    note("G %llu\n", N(nxl_now_ns()));
    while (!over && work(SLICE_MS, deadline))
        ;
    while (!over && nxl_lock_loss(me.lock, why, sizeof(why)) == NXL_LOSS_NONE)
        pause_ms(SLICE_MS);
    if (!over)
        note("T %s\n", why);
    while (!over && to_hang)
        pause_ms(SLICE_MS);
}

/* Increments what only one may write at a time; without a fencing token it only
 * waits. */
static void increment(int ms, uint64_t *deadline)
{
    struct reading reading = {0};
    if (me.fence)
        reading = resource_read(me.resource, nxl_lock_fence(me.lock));
    bool held = work(ms / 2, deadline);
    if (held && ms >= me.ttl_ms / 2 && !me.renew && below(2) == 0)
        extend();
    if (held && work(ms / 2, deadline) && me.fence) {
        /* From here on it does not ask: the write is on its way. */
        note("W %llu\n", N(nxl_now_ns()));
        pause_ms(me.write_ms);
        resource_write(me.resource, &reading);
    }
}

static void hold(void)
{
    uint64_t deadline = nxl_lock_deadline(me.lock);
    note("B %llu %llu %llu %llu\n", N(me.attempt), N(nxl_now_ns()), N(deadline),
        N(nxl_lock_fence(me.lock)));
    if (to_hang) {
        hang(&deadline);
        return;
    }
    increment(work_ms(), &deadline);
    note("E %llu\n", N(nxl_now_ns()));
    uint64_t began = nxl_now_ns();
    int rc = nxl_lock_release(me.lock);
    note_late(began, me.timeout_ms);
    note("R %d %llu\n", rc, N(nxl_now_ns()));
}

static void contend(void)
{
    while (!over) {
        bool patient = me.hold_ms > 0 && below(2) == 0;
        int wait_ms = patient ? 2 * me.hold_ms : below(1000);
        uint64_t began = nxl_now_ns();
        int rc = nxl_lock_acquire(me.lock, wait_ms);
        note_late(began, wait_ms > me.timeout_ms ? wait_ms : me.timeout_ms);
        if (rc == NXL_OK) {
            hold();
            pause_ms(below(10));
        } else {
            note("A %d %llu\n", rc, N(nxl_now_ns()));
            if (rc < 0 || rc == NXL_UNKNOWN)
                note("M %.600s\n", nxl_lock_errmsg(me.lock));
            pause_ms(5 + below(30));
        }
    }
}

static bool open_all(
    const char *url, const char *record, const char *resource, const char *name)
{
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    nxl_lock_options lock = NXL_LOCK_OPTIONS_INIT;
    char why[512] = "";
    options.errbuf = why;
    options.errbuf_size = sizeof(why);
    options.timeout_ms = me.timeout_ms;
    options.tracer = on_trace;
    lock.ttl_ms = me.ttl_ms;
    lock.renew = me.renew;
    lock.max_hold_ms = me.max_hold_ms;
    lock.permits = me.permits;
    lock.weight = me.weight;
    lock.shared = me.shared;
    lock.fence = me.fence;
    lock.label = COMMON_NAME;
    lock.retry_min_ms = 5;
    lock.retry_max_ms = 25;
    me.record = open(record, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    me.resource = resource_open(resource);
    if (me.record >= 0 && nxl_client_new(&me.client, url, &options) == NXL_OK &&
        nxl_lock_new(&me.lock, me.client, name, &lock) == NXL_OK)
        return true;
    fprintf(stderr, "%s %s\n", why, nxl_client_errmsg(me.client));
    return false;
}

int main(int argc, char **argv)
{
    if (argc < 11 || (argc > 13 && argc != 17)) {
        fprintf(stderr, "usage: contender URL RECORD RESOURCE TTL_MS "
                        "TIMEOUT_MS WRITE_MS RENEW ASK_MS "
                        "MAX_HOLD_MS SEED [NAME [HOLD_MS "
                        "[PERMITS WEIGHT SHARED FENCE]]]\n");
        return 2;
    }
    me.ttl_ms = (int)strtol(argv[4], NULL, 10);
    me.timeout_ms = (int)strtol(argv[5], NULL, 10);
    me.write_ms = (int)strtol(argv[6], NULL, 10);
    me.max_hold_ms = (int)strtol(argv[9], NULL, 10);
    me.hold_ms = argc > 12 ? (int)strtol(argv[12], NULL, 10) : 0;
    me.renew = strcmp(argv[7], "1") == 0;
    me.fence = argc < 17 || strcmp(argv[16], "1") == 0;
    if (argc == 17) {
        me.permits = (int)strtol(argv[13], NULL, 10);
        me.weight = (int)strtol(argv[14], NULL, 10);
        me.shared = (int)strtol(argv[15], NULL, 10);
    }
    me.dice = strtoull(argv[10], NULL, 10);
    if (!open_all(
            argv[1], argv[2], argv[3], argc > 11 ? argv[11] : COMMON_NAME))
        return 1;
    struct sigaction action = {.sa_handler = on_term};
    sigaction(SIGTERM, &action, NULL);
    action.sa_handler = on_hang;
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR2, &action, NULL);
    int ask_ms = (int)strtol(argv[8], NULL, 10);
    if (ask_ms > 0)
        askers_start(me.client, me.ttl_ms, ask_ms, note_mix_up);
    note("S %llu\n", N(nxl_now_ns()));
    contend();
    askers_stop();
    uint64_t began = nxl_now_ns();
    nxl_lock_free(me.lock);
    nxl_client_free(me.client);
    note_late(began, 500);
    resource_close(me.resource);
    return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * When a lease ends at its server, by that server's own word: what it has done
 * with each key, and when (MONITOR), on the clock of the test. And when this
 * machine did not let the test itself run.
 */
#ifndef NXLOCK_TESTS_LIVE_STALLS_RIG_H
#define NXLOCK_TESTS_LIVE_STALLS_RIG_H

#include "renew_rig.h"

#include <fcntl.h>
#include <stdatomic.h>

#define STALL_MS UINT64_C(1000000)
enum { STALL_KEYS = 4, STALL_LEASES = 4000 };

/* One lease as the server set it. */
struct lease_there {
    unsigned key;
    uint64_t at, end; /* ns of nxl_now_ns() */
};

struct witness {
    redisContext *context;
    struct lease_there lease[STALL_LEASES];
    size_t leases;
    bool full;
};

static inline bool witness_open(struct witness *w, const char *path)
{
    memset(w, 0, sizeof(*w));
    w->context = redisConnectUnix(path);
    redisReply *reply = w->context ? redisCommand(w->context, "MONITOR") : NULL;
    bool open = reply && reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    return open;
}

static inline void witness_close(struct witness *w)
{
    if (w->context)
        redisFree(w->context);
    w->context = NULL;
}

/* The server's clock is this machine's; what it is ahead of ours. */
static inline int64_t clock_distance(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec - (int64_t)nxl_now_ns();
}

/* 12.345678 [0 lua] "PEXPIRE" "k1" "1500", or a SET with PX. */
static inline void witness_line(
    struct witness *w, const char *line, int64_t distance)
{
    const char *command = strstr(line, "\"PEXPIRE\" \"k");
    const char *number = command ? strstr(command + 13, "\" \"") : NULL;
    size_t skip = 12;
    if (!command) {
        command = strstr(line, "\"SET\" \"k");
        number = command ? strstr(command, "\"PX\" \"") : NULL;
        number = number ? number + 3 : NULL;
        skip = 8;
    }
    if (!command || !number)
        return;
    w->full |= w->leases == STALL_LEASES;
    if (w->full)
        return;
    char *rest;
    int64_t at = (int64_t)strtoll(line, &rest, 10) * 1000000000;
    at += (int64_t)strtoll(rest + 1, NULL, 10) * 1000 - distance;
    /* It counts from the last whole millisecond, and perhaps from just
     * before that. */
    w->lease[w->leases++] = (struct lease_there){
        .key = (unsigned)strtoul(command + skip, NULL, 10),
        .at = (uint64_t)at,
        .end = (uint64_t)at - 2 * STALL_MS +
               (uint64_t)strtoull(number + 3, NULL, 10) * STALL_MS,
    };
}

/* Takes in what has come. */
static inline void witness_read(struct witness *w)
{
    struct pollfd fd = {w->context->fd, POLLIN, 0};
    void *reply = NULL;
    int64_t distance = clock_distance();
    while (poll(&fd, 1, 0) > 0 && redisBufferRead(w->context) == REDIS_OK)
        while (
            redisGetReplyFromReader(w->context, &reply) == REDIS_OK && reply) {
            witness_line(w, ((redisReply *)reply)->str, distance);
            freeReplyObject(reply);
        }
}

/* When the lease that stood at that time ends; 0: there was none. */
static inline uint64_t witness_end(
    const struct witness *w, unsigned key, uint64_t at)
{
    for (size_t i = w->leases; i-- > 0;)
        if (w->lease[i].key == key && w->lease[i].at <= at)
            return w->lease[i].end;
    return 0;
}

/* ------------------------------------------------------------ this machine */

/* Sleeps, and notes when it was woken late: then so was whoever else here. */
static struct sleeper {
    pthread_t thread;
    atomic_bool stop;
    struct {
        _Atomic uint64_t from, to;
    } late[4096];
    atomic_size_t count;
    _Atomic uint64_t most;
} sleeper;

static inline void *sleeper_run(void *argument)
{
    struct timespec t = {0, 2 * (long)STALL_MS};
    uint64_t before = nxl_now_ns();
    while (!sleeper.stop) {
        nanosleep(&t, NULL);
        uint64_t now = nxl_now_ns();
        uint64_t late = now - before - 2 * STALL_MS;
        if (late > sleeper.most)
            sleeper.most = late;
        if (late > 10 * STALL_MS) {
            size_t at = sleeper.count++ % 4096;
            sleeper.late[at].from = before;
            sleeper.late[at].to = now;
        }
        before = now;
    }
    return argument;
}

static inline void sleeper_start(void)
{
    memset(&sleeper, 0, sizeof(sleeper));
    assert_int_equal(
        pthread_create(&sleeper.thread, NULL, sleeper_run, NULL), 0);
}

static inline void sleeper_end(void)
{
    sleeper.stop = true;
    assert_int_equal(pthread_join(sleeper.thread, NULL), 0);
}

/* How long this thread has been ready to run, and was not let, ns; 0 where
 * the system does not tell. */
static inline uint64_t waited_to_run(void)
{
    char text[80];
    int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *second = strchr(text, ' ');
    return second ? strtoull(second, NULL, 10) : 0;
}

/* Did the machine pause between these times? */
static inline bool overslept(uint64_t from, uint64_t to)
{
    size_t count = sleeper.count < 4096 ? sleeper.count : 4096;
    for (size_t i = 0; i < count; i++)
        if (sleeper.late[i].from < to && sleeper.late[i].to > from)
            return true;
    return false;
}

/* ... and for longer than ns? */
static inline bool paused_for(uint64_t ns, uint64_t from, uint64_t to)
{
    size_t count = sleeper.count < 4096 ? sleeper.count : 4096;
    for (size_t i = 0; i < count; i++)
        if (sleeper.late[i].from < to && sleeper.late[i].to > from &&
            sleeper.late[i].to - sleeper.late[i].from > ns)
            return true;
    return false;
}

#endif

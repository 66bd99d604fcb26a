/* SPDX-License-Identifier: MIT */
/* A slow network: a proxy in a process of its own that delays every byte. It
 * is not support/proxy.h, which counts in whole milliseconds, and not netem,
 * which needs root and a kernel module. The proxy's own time depends on the
 * machine, so the delay is adjusted until a PING takes as long as wanted.
 *
 * Invariant: one delay for all bytes, so what came first is due first, and
 * one queue serves all connections. */
#include "delay.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#define PAIRS 200
#define CHUNK 16384
#define FIRST_GUESS_NS 450000u
#define ADJUSTMENTS 5
/* A proxy that needs more than the rest of the round trip shares the machine
 * with something else; that is not made up for. */
#define LEAST 0.8
#define PINGS 100
#define GOOD_US 20

struct chunk {
    struct chunk *next;
    uint64_t due_ns;
    int from;      /* an end */
    size_t length; /* 0: the sender has closed */
    char bytes[];
};

/* Ends 2n and 2n + 1 are the two sides of one connection. */
struct proxy_ends {
    int listener;
    int target_port;
    _Atomic uint64_t *one_way_ns;
    struct pollfd fds[2 * PAIRS + 1]; /* the listener comes last */
    int fd[2 * PAIRS];                /* -1: free */
    bool closed[2 * PAIRS];           /* and the other side knows */
    struct chunk *first, **last;
};

static void no_delay(int fd)
{
    int on = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static int connect_to(int port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd >= 0 &&
        connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static void open_pair(struct proxy_ends *p)
{
    int client = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC);
    int server = client < 0 ? -1 : connect_to(p->target_port);
    int end = 0;

    while (end < 2 * PAIRS && p->fd[end] >= 0)
        end += 2;
    if (server < 0 || end == 2 * PAIRS) {
        if (client >= 0)
            close(client);
        if (server >= 0)
            close(server);
        return;
    }
    no_delay(client);
    no_delay(server);
    p->fd[end] = client;
    p->fd[end + 1] = server;
    for (int i = end; i < end + 2; i++) {
        p->fds[i] = (struct pollfd){.fd = p->fd[i], .events = POLLIN};
        p->closed[i] = false;
    }
}

static void take_in(struct proxy_ends *p, int end)
{
    char bytes[CHUNK];
    ssize_t n = recv(p->fd[end], bytes, sizeof(bytes), MSG_DONTWAIT);
    struct chunk *chunk;

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        p->fds[end].fd = -1;
        n = 0;
    }
    chunk = malloc(sizeof(*chunk) + (size_t)n);
    if (!chunk)
        abort();
    *chunk = (struct chunk){.due_ns = bench_now_ns() + *p->one_way_ns,
        .from = end,
        .length = (size_t)n};
    memcpy(chunk->bytes, bytes, (size_t)n);
    *p->last = chunk;
    p->last = &chunk->next;
}

static void close_end(struct proxy_ends *p, int end)
{
    int other = end ^ 1;

    p->closed[end] = true;
    shutdown(p->fd[other], SHUT_WR);
    for (int i = 0; p->closed[other] && i < 2; i++) {
        close(p->fd[end ^ i]);
        p->fd[end ^ i] = -1;
    }
}

static void pass_on(struct proxy_ends *p)
{
    struct chunk *chunk;

    while ((chunk = p->first) && chunk->due_ns <= bench_now_ns()) {
        /* May block if the receiver does not read, and gives up if it has
         * closed; neither happens during a measurement. */
        for (size_t sent = 0; sent < chunk->length;) {
            ssize_t n = send(p->fd[chunk->from ^ 1], chunk->bytes + sent,
                chunk->length - sent, MSG_NOSIGNAL);
            if (n <= 0)
                break;
            sent += (size_t)n;
        }
        if (chunk->length == 0)
            close_end(p, chunk->from);
        p->first = chunk->next;
        if (!p->first)
            p->last = &p->first;
        free(chunk);
    }
}

static void run(struct proxy_ends *p)
{
    for (;;) {
        uint64_t now = bench_now_ns();
        struct timespec sleep = {0, 0};

        if (p->first && p->first->due_ns > now)
            sleep.tv_nsec = (long)(p->first->due_ns - now);
        if (ppoll(p->fds, 2 * PAIRS + 1, p->first ? &sleep : NULL, NULL) > 0) {
            for (int i = 0; i < 2 * PAIRS; i++) {
                if (p->fds[i].fd >= 0 && p->fds[i].revents)
                    take_in(p, i);
            }
            if (p->fds[2 * PAIRS].revents)
                open_pair(p);
        }
        pass_on(p);
    }
}

static void become_proxy(const struct delay *delay, int listener, int target)
{
    struct proxy_ends *p = calloc(1, sizeof(*p));

    if (!p)
        _exit(1);
    prctl(PR_SET_TIMERSLACK, 1ul);
    p->listener = listener;
    p->target_port = target;
    p->one_way_ns = delay->one_way_ns;
    p->last = &p->first;
    for (int i = 0; i < 2 * PAIRS; i++)
        p->fds[i].fd = p->fd[i] = -1;
    p->fds[2 * PAIRS] = (struct pollfd){.fd = listener, .events = POLLIN};
    run(p);
}

static int listen_at(int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd >= 0 &&
        (bind(fd, (struct sockaddr *)&address, size) || listen(fd, PAIRS) ||
            getsockname(fd, (struct sockaddr *)&address, &size))) {
        close(fd);
        fd = -1;
    }
    *port = ntohs(address.sin_port);
    return fd;
}

int delay_ping(
    const struct delay *delay, int count, struct histogram *histogram)
{
    redisContext *redis = redisConnect("127.0.0.1", delay->port);
    int rc = redis && !redis->err ? 0 : -1;

    for (int i = 0; rc == 0 && i < count; i++) {
        uint64_t before = bench_now_ns();
        redisReply *reply = redisCommand(redis, "PING");

        histogram_add(histogram, bench_now_ns() - before);
        rc = reply && reply->type == REDIS_REPLY_STATUS ? 0 : -1;
        freeReplyObject(reply);
    }
    if (redis)
        redisFree(redis);
    return rc;
}

int delay_adjust(const struct delay *delay, double rtt_us)
{
    for (int i = 0; i < ADJUSTMENTS; i++) {
        struct histogram histogram = {0};
        double off_us, one_way_ns;

        if (delay_ping(delay, PINGS, &histogram))
            return -1;
        off_us = histogram_us(&histogram, 0.5) - rtt_us;
        if (off_us < GOOD_US && off_us > -GOOD_US)
            break;
        one_way_ns = (double)*delay->one_way_ns - off_us * 500;
        if (one_way_ns < LEAST * rtt_us * 500)
            one_way_ns = LEAST * rtt_us * 500;
        *delay->one_way_ns = (uint64_t)one_way_ns;
    }
    return 0;
}

int delay_start(struct delay *delay, int port)
{
    pid_t parent = getpid();
    int listener = listen_at(&delay->port);

    delay->one_way_ns = mmap(NULL, sizeof(*delay->one_way_ns),
        PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (listener < 0 || delay->one_way_ns == MAP_FAILED) {
        fprintf(stderr, "nxlock-bench-cases: cannot make a proxy: %s\n",
            strerror(errno));
        return -1;
    }
    *delay->one_way_ns = FIRST_GUESS_NS;
    delay->pid = fork();
    if (delay->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent)
            become_proxy(delay, listener, port);
        _exit(1);
    }
    close(listener);
    if (delay->pid > 0)
        return 0;
    fprintf(stderr, "nxlock-bench-cases: the proxy does not work\n");
    delay_stop(delay);
    return -1;
}

void delay_stop(struct delay *delay)
{
    if (delay->pid > 0) {
        kill(delay->pid, SIGKILL);
        waitpid(delay->pid, NULL, 0);
    }
    delay->pid = 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * One thread, one lock: the thread lets go of it only inside poll(), so that
 * an order given under the lock is never crossed by a byte on its way. Only
 * the thread closes descriptors, for it may be polling them.
 */
#include "support/proxy.h"

#include "support/bytes.h"
#include "support/local.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

enum { PAIRS = 64, AWAIT_MS = 10000, CHUNK = 16384 };

struct chunk {
    struct chunk *next;
    int64_t due_ms;
    struct bytes bytes;
};

struct flow { /* one direction of one connection */
    struct chunk *first, **end;
    size_t passed;
    bool closed; /* the sender has closed */
};

struct joint { /* client and server; fd[w] is the sender of way w */
    bool used, cut, reset;
    int fd[2];
    struct flow flow[2];
};

struct way {
    int delay_ms;
    bool held, dropped, cutting;
    size_t cut_after;
    uint64_t bytes;
};

struct proxy {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    int wake[2];
    int listeners[2];
    bool stopping, refused;
    char dir[LOCAL_PATH], path[LOCAL_PATH], target[LOCAL_PATH];
    uint16_t port, target_port;
    char url[LOCAL_PATH + 16], tcp_url[LOCAL_PATH];
    struct way way[2];
    struct joint joints[PAIRS];
    size_t accepted;
    uint64_t turns; /* of the thread, for those who wait for one */
};

static void wake(struct proxy *p)
{
    if (write(p->wake[1], "", 1) != 1 && errno != EAGAIN)
        abort();
}

/* Lets the thread carry out what was ordered; the lock is held. */
static void carry_out(struct proxy *p)
{
    uint64_t turn = p->turns + 1;

    wake(p);
    while (p->turns < turn)
        pthread_cond_wait(&p->changed, &p->lock);
}

static void flow_clear(struct flow *flow)
{
    while (flow->first != NULL) {
        struct chunk *chunk = flow->first;
        flow->first = chunk->next;
        bytes_free(&chunk->bytes);
        free(chunk);
    }
    memset(flow, 0, sizeof(*flow));
    flow->end = &flow->first;
}

static void joint_close(struct joint *j)
{
    for (int i = 0; i < 2; i++) {
        if (j->reset)
            local_make_reset(j->fd[i]);
        close(j->fd[i]);
        flow_clear(&j->flow[i]);
    }
    j->used = j->cut = j->reset = false;
}

static void joint_open(struct proxy *p, int client)
{
    int server = local_connect(
        *p->target != '\0' ? p->target : NULL, p->target_port);
    struct joint *j = p->joints;

    while (j < p->joints + PAIRS && j->used)
        j++;
    if (server < 0 || j == p->joints + PAIRS) {
        close(client);
        if (server >= 0)
            close(server);
        return;
    }
    memset(j, 0, sizeof(*j));
    local_no_delay(client);
    j->used = true;
    j->fd[PROXY_UP] = client;
    j->fd[PROXY_DOWN] = server;
    for (int i = 0; i < 2; i++) {
        fcntl(j->fd[i], F_SETFL, O_NONBLOCK);
        flow_clear(&j->flow[i]);
    }
    p->accepted++;
}

/* Takes in what the sender of that way has sent. */
static void take_in(struct proxy *p, struct joint *j, enum proxy_way way)
{
    char data[CHUNK];
    ssize_t n = recv(j->fd[way], data, sizeof(data), 0);
    struct flow *flow = &j->flow[way];

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0) { /* reset by one side: the other is to see it too */
        j->cut = j->reset = true;
        return;
    }
    if (n == 0) {
        flow->closed = true;
        return;
    }
    p->way[way].bytes += (uint64_t)n;
    if (p->way[way].dropped)
        return;
    struct chunk *chunk = calloc(1, sizeof(*chunk));
    if (chunk == NULL)
        abort();
    int delay_ms = p->way[way].delay_ms;
    /* The clock is cut to milliseconds: no delay is shorter than asked. */
    chunk->due_ms = test_now_ms() + delay_ms + (delay_ms > 0);
    bytes_add(&chunk->bytes, data, (size_t)n);
    *flow->end = chunk;
    flow->end = &chunk->next;
}

/* Passes on what is due. When all has been passed and the sender has closed,
 * so is the receiver's side. */
static void pass_on(struct proxy *p, struct joint *j, enum proxy_way way)
{
    struct way *rule = &p->way[way];
    struct flow *flow = &j->flow[way];
    int to = j->fd[1 - way];
    int64_t now = test_now_ms();

    while (!j->cut && !rule->held && flow->first != NULL &&
           flow->first->due_ms <= now) {
        struct chunk *chunk = flow->first;
        size_t len = chunk->bytes.len;
        if (rule->cutting && len > rule->cut_after - flow->passed)
            len = rule->cut_after - flow->passed;
        ssize_t n = len ? send(to, chunk->bytes.data, len, MSG_NOSIGNAL) : 0;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0) {
            j->cut = true;
            return;
        }
        flow->passed += (size_t)n;
        bytes_drop(&chunk->bytes, (size_t)n);
        if (rule->cutting && flow->passed >= rule->cut_after) {
            rule->cutting = false;
            j->cut = true;
            return;
        }
        if (chunk->bytes.len > 0)
            return;
        flow->first = chunk->next;
        if (flow->first == NULL)
            flow->end = &flow->first;
        bytes_free(&chunk->bytes);
        free(chunk);
    }
    if (flow->closed && flow->first == NULL && !rule->held)
        j->cut = true;
}

/* ms until the next chunk is due, -1: none waits for its time. */
static int next_due(const struct proxy *p)
{
    int64_t now = test_now_ms(), next = -1;

    for (size_t i = 0; i < PAIRS; i++)
        for (int w = 0; w < 2 && p->joints[i].used; w++) {
            const struct chunk *chunk = p->joints[i].flow[w].first;
            if (chunk == NULL || p->way[w].held)
                continue;
            /* One that is due already waits for its receiver's room. */
            int64_t left = chunk->due_ms > now ? chunk->due_ms - now : 5;
            if (next < 0 || left < next)
                next = left;
        }
    return (int)next;
}

static size_t fill(const struct proxy *p, struct pollfd *fds)
{
    size_t count = 0;

    fds[count++] = (struct pollfd){p->wake[0], POLLIN, 0};
    for (int i = 0; i < 2; i++)
        fds[count++] = (struct pollfd){p->listeners[i], POLLIN, 0};
    for (size_t i = 0; i < PAIRS; i++)
        for (int w = 0; w < 2; w++) {
            const struct joint *j = &p->joints[i];
            bool ask = j->used && !j->flow[w].closed;
            fds[count++] = (struct pollfd){ask ? j->fd[w] : -1, POLLIN, 0};
        }
    return count;
}

static void obey(struct proxy *p)
{
    for (int i = 0; i < 2; i++) {
        if (p->refused && p->listeners[i] >= 0) {
            close(p->listeners[i]);
            p->listeners[i] = -1;
        } else if (!p->refused && p->listeners[i] < 0) {
            p->listeners[i] = i == 0 ? local_listen_unix(p->path)
                                     : local_listen_tcp(&p->port);
            if (p->listeners[i] < 0)
                abort();
            fcntl(p->listeners[i], F_SETFL, O_NONBLOCK);
        }
    }
    for (size_t i = 0; i < PAIRS; i++)
        for (int w = 0; w < 2 && p->joints[i].used; w++)
            pass_on(p, &p->joints[i], (enum proxy_way)w);
    for (size_t i = 0; i < PAIRS; i++)
        if (p->joints[i].used && (p->joints[i].cut || p->stopping))
            joint_close(&p->joints[i]);
    p->turns++;
    pthread_cond_broadcast(&p->changed);
}

static void *run(void *data)
{
    struct proxy *p = data;
    struct pollfd fds[3 + 2 * PAIRS];
    char drain[64];

    pthread_mutex_lock(&p->lock);
    for (obey(p); !p->stopping; obey(p)) {
        size_t count = fill(p, fds);
        int wait_ms = next_due(p);
        pthread_mutex_unlock(&p->lock);
        if (poll(fds, count, wait_ms) < 0 && errno != EINTR)
            abort();
        pthread_mutex_lock(&p->lock);
        if (fds[0].revents != 0 &&
            read(p->wake[0], drain, sizeof(drain)) < 0 && errno != EAGAIN)
            abort();
        for (size_t i = 3; i < count; i++)
            if (fds[i].revents != 0)
                take_in(p, &p->joints[(i - 3) / 2],
                    (enum proxy_way)((i - 3) % 2));
        for (int i = 0; i < 2 && !p->refused; i++) {
            int fd = fds[1 + i].revents == 0
                         ? -1
                         : accept4(
                               p->listeners[i], NULL, NULL, SOCK_CLOEXEC);
            if (fd >= 0)
                joint_open(p, fd);
        }
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

struct proxy *proxy_start(const char *path, uint16_t port)
{
    struct proxy *p = calloc(1, sizeof(*p));
    pthread_condattr_t monotonic;
    sigset_t all, before;

    if (p == NULL || pipe2(p->wake, O_CLOEXEC | O_NONBLOCK) != 0)
        abort();
    snprintf(p->target, sizeof(p->target), "%s", path ? path : "");
    p->target_port = port;
    local_dir_make(p->dir);
    local_path(p->path, p->dir, "proxy.sock");
    p->listeners[0] = -1;
    p->listeners[1] = -1;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&p->thread, NULL, run, p) != 0)
        abort();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_mutex_lock(&p->lock);
    carry_out(p);
    pthread_mutex_unlock(&p->lock);
    snprintf(p->url, sizeof(p->url), "unix://%s", p->path);
    snprintf(p->tcp_url, sizeof(p->tcp_url), "redis://127.0.0.1:%u",
        (unsigned)p->port);
    return p;
}

void proxy_stop(struct proxy *p)
{
    if (p == NULL)
        return;
    pthread_mutex_lock(&p->lock);
    p->stopping = p->refused = true;
    wake(p);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    close(p->wake[0]);
    close(p->wake[1]);
    local_dir_remove(p->dir);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

const char *proxy_url(const struct proxy *p)
{
    return p->url;
}

const char *proxy_tcp_url(const struct proxy *p)
{
    return p->tcp_url;
}

void proxy_delay(struct proxy *p, enum proxy_way way, int ms)
{
    pthread_mutex_lock(&p->lock);
    p->way[way].delay_ms = ms;
    pthread_mutex_unlock(&p->lock);
}

void proxy_hold(struct proxy *p, enum proxy_way way, bool held)
{
    pthread_mutex_lock(&p->lock);
    p->way[way].held = held;
    carry_out(p);
    pthread_mutex_unlock(&p->lock);
}

void proxy_drop(struct proxy *p, enum proxy_way way, bool dropped)
{
    pthread_mutex_lock(&p->lock);
    p->way[way].dropped = dropped;
    pthread_mutex_unlock(&p->lock);
}

void proxy_cut_after(struct proxy *p, enum proxy_way way, size_t bytes)
{
    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < PAIRS; i++)
        p->joints[i].flow[way].passed = 0;
    p->way[way].cutting = true;
    p->way[way].cut_after = bytes;
    pthread_mutex_unlock(&p->lock);
}

void proxy_cut(struct proxy *p, bool reset)
{
    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < PAIRS; i++) {
        p->joints[i].cut = p->joints[i].used;
        p->joints[i].reset = reset;
    }
    carry_out(p);
    pthread_mutex_unlock(&p->lock);
}

void proxy_refuse(struct proxy *p, bool refused)
{
    pthread_mutex_lock(&p->lock);
    p->refused = refused;
    carry_out(p);
    pthread_mutex_unlock(&p->lock);
}

uint64_t proxy_bytes(struct proxy *p, enum proxy_way way)
{
    pthread_mutex_lock(&p->lock);
    uint64_t bytes = p->way[way].bytes;
    pthread_mutex_unlock(&p->lock);
    return bytes;
}

bool proxy_await(struct proxy *p, enum proxy_way way, uint64_t bytes)
{
    struct timespec end;
    int rc = 0;

    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += AWAIT_MS / 1000;
    pthread_mutex_lock(&p->lock);
    while (p->way[way].bytes < bytes && rc == 0)
        rc = pthread_cond_timedwait(&p->changed, &p->lock, &end);
    bool came = p->way[way].bytes >= bytes;
    pthread_mutex_unlock(&p->lock);
    return came;
}

size_t proxy_connections(struct proxy *p)
{
    size_t count = 0;

    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < PAIRS; i++)
        count += p->joints[i].used;
    pthread_mutex_unlock(&p->lock);
    return count;
}

size_t proxy_accepted(struct proxy *p)
{
    pthread_mutex_lock(&p->lock);
    size_t count = p->accepted;
    pthread_mutex_unlock(&p->lock);
    return count;
}

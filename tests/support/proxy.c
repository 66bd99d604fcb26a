/* SPDX-License-Identifier: MIT */
/*
 * One thread, one lock: the thread lets go of it only inside poll(), so that
 * an order given under the lock is never crossed by a byte on its way. Only
 * the thread closes descriptors, for it may be polling them.
 */
#include "support/proxy_inner.h"

#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

enum { CHUNK = 16384 };

static void wake(struct proxy *p)
{
    if (write(p->wake[1], "", 1) != 1 && errno != EAGAIN)
        abort();
}

void proxy_carry_out(struct proxy *p)
{
    uint64_t turn = p->turns + 1;

    wake(p);
    while (p->turns < turn)
        pthread_cond_wait(&p->changed, &p->lock);
}

static void flow_clear(struct flow *flow)
{
    while (flow->first) {
        struct chunk *chunk = flow->first;
        flow->first = chunk->next;
        bytes_free(&chunk->bytes);
        free(chunk);
    }
    memset(flow, 0, sizeof(*flow));
    flow->end = &flow->first;
}

static void joint_close(const struct proxy *p, struct joint *j)
{
    if (p->reader)
        p->reader->end(j);
    for (int i = 0; i < 2; i++) {
        if (j->reset && j->fd[i] >= 0)
            local_make_reset(j->fd[i]);
        if (j->fd[i] >= 0)
            close(j->fd[i]);
        flow_clear(&j->flow[i]);
    }
    j->used = j->cut = j->reset = false;
}

/* The last byte of the address; 0: it has none. */
static uint8_t source_of(int client)
{
    struct sockaddr_in peer = {0};
    socklen_t len = sizeof(peer);

    if (getpeername(client, (struct sockaddr *)&peer, &len) != 0 ||
        peer.sin_family != AF_INET)
        return 0;
    return (uint8_t)ntohl(peer.sin_addr.s_addr);
}

static void joint_open(struct proxy *p, int client)
{
    int server =
        local_connect(*p->target != '\0' ? p->target : NULL, p->target_port);
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
    j->source = source_of(client);
    j->unheard = p->way[PROXY_UP].held_from[j->source];
    j->fd[PROXY_UP] = client;
    j->fd[PROXY_DOWN] = server;
    for (int i = 0; i < 2; i++) {
        fcntl(j->fd[i], F_SETFL, O_NONBLOCK);
        flow_clear(&j->flow[i]);
    }
    p->accepted++;
}

/* The client's side is over; what it had sent is kept. */
static void joint_strand(struct joint *j)
{
    close(j->fd[PROXY_UP]);
    j->fd[PROXY_UP] = -1;
    j->flow[PROXY_UP].closed = true;
    flow_clear(&j->flow[PROXY_DOWN]);
}

void proxy_pass(struct proxy *p, struct joint *j, enum proxy_way way,
    const char *data, size_t len)
{
    struct flow *flow = &j->flow[way];
    struct chunk *chunk = calloc(1, sizeof(*chunk));

    if (!chunk)
        abort();
    chunk->due_ns = test_now_ns() + p->way[way].delay_ns;
    bytes_add(&chunk->bytes, data, len);
    *flow->end = chunk;
    flow->end = &chunk->next;
}

/* Takes in what the sender of that way has sent. */
static void take_in(struct proxy *p, struct joint *j, enum proxy_way way)
{
    char data[CHUNK];
    ssize_t n = recv(j->fd[way], data, sizeof(data), 0);
    struct flow *flow = &j->flow[way];

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0 && !p->reader) { /* reset by one side: the other sees it too */
        j->cut = j->reset = true;
        return;
    }
    if (n <= 0) {
        flow->closed = true;
        return;
    }
    p->way[way].bytes += (uint64_t)n;
    if (p->way[way].dropped || (j->stranded && way == PROXY_DOWN))
        return;
    if (!p->reader)
        proxy_pass(p, j, way, data, (size_t)n);
    else if (!p->reader->read(p, j, way, data, (size_t)n))
        j->cut = true;
}

/* Passes on what is due. When all has been passed and the sender has closed,
 * so is the receiver's side. */
static void pass_on(struct proxy *p, struct joint *j, enum proxy_way way)
{
    struct way *rule = &p->way[way];
    struct flow *flow = &j->flow[way];
    int to = j->fd[1 - way];
    uint64_t now = test_now_ns();
    bool held = proxy_is_held(p, j, way);

    if (way == PROXY_UP)
        j->unheard = j->unheard && held;
    if (j->unheard && flow->closed)
        j->cut = true;
    if (j->stranded && way == PROXY_UP && !j->delivers)
        return;
    while (!j->cut && !held && flow->first && flow->first->due_ns <= now) {
        struct chunk *chunk = flow->first;
        size_t len = chunk->bytes.len;
        if (rule->cutting && len > rule->cut_after - flow->passed)
            len = rule->cut_after - flow->passed;
        ssize_t n = len ? send(to, chunk->bytes.data, len, MSG_NOSIGNAL) : 0;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0 && p->reader && way == PROXY_DOWN) {
            flow_clear(flow); /* the client has gone; its commands are there */
            return;
        }
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
        if (!flow->first)
            flow->end = &flow->first;
        bytes_free(&chunk->bytes);
        free(chunk);
    }
    bool may_close = way == PROXY_DOWN ||
                     (!j->stranded && !(p->reader && p->reader->is_busy(j)));
    if (flow->closed && !flow->first && !held && may_close)
        j->cut = true;
}

/* How long until the next chunk is due; false: none waits for its time. */
static bool next_due(const struct proxy *p, struct timespec *wait)
{
    uint64_t now = test_now_ns(), next = UINT64_MAX;

    for (size_t i = 0; i < PAIRS; i++)
        for (int w = 0; w < 2 && p->joints[i].used; w++) {
            const struct chunk *chunk = p->joints[i].flow[w].first;
            if (!chunk || proxy_is_held(p, &p->joints[i], (enum proxy_way)w))
                continue;
            /* One that is due already waits for its receiver's room. */
            uint64_t left = chunk->due_ns > now ? chunk->due_ns - now : 5000000;
            next = left < next ? left : next;
        }
    wait->tv_sec = (time_t)(next / 1000000000);
    wait->tv_nsec = (long)(next % 1000000000);
    return next != UINT64_MAX;
}

static size_t fill(const struct proxy *p, struct pollfd *fds)
{
    size_t count = 0;

    fds[count++] = (struct pollfd){p->wake[0], POLLIN, 0};
    for (int i = 0; i < 2; i++)
        fds[count++] =
            (struct pollfd){p->shut ? -1 : p->listeners[i], POLLIN, 0};
    for (size_t i = 0; i < PAIRS; i++)
        for (int w = 0; w < 2; w++) {
            const struct joint *j = &p->joints[i];
            bool ask = j->used && !j->flow[w].closed;
            fds[count++] = (struct pollfd){ask ? j->fd[w] : -1, POLLIN, 0};
        }
    return count;
}

static void listen_or_not(struct proxy *p)
{
    if (p->refused == p->shut)
        return;
    p->shut = p->refused;
    if (p->shut)
        close(p->listeners[0]);
    else
        p->listeners[0] = local_listen_unix(p->path);
    if (p->listeners[1] < 0)
        p->listeners[1] = local_listen_tcp(&p->port);
    else if (!local_refuse_tcp(p->listeners[1], p->shut))
        abort();
    for (int i = p->shut; i < 2; i++)
        if (fcntl(p->listeners[i], F_SETFL, O_NONBLOCK) != 0)
            abort();
}

static void obey(struct proxy *p)
{
    listen_or_not(p);
    for (size_t i = 0; i < PAIRS; i++) {
        struct joint *j = &p->joints[i];
        if (j->used && j->stranded && j->fd[PROXY_UP] >= 0)
            joint_strand(j);
    }
    for (size_t i = 0; i < PAIRS; i++)
        for (int w = 0; w < 2 && p->joints[i].used; w++)
            pass_on(p, &p->joints[i], (enum proxy_way)w);
    for (size_t i = 0; i < PAIRS; i++)
        if (p->joints[i].used && (p->joints[i].cut || p->stopping))
            joint_close(p, &p->joints[i]);
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
        struct timespec wait;
        bool waits = next_due(p, &wait);
        pthread_mutex_unlock(&p->lock);
        if (ppoll(fds, count, waits ? &wait : NULL, NULL) < 0 && errno != EINTR)
            abort();
        pthread_mutex_lock(&p->lock);
        if (fds[0].revents != 0 && read(p->wake[0], drain, sizeof(drain)) < 0 &&
            errno != EAGAIN)
            abort();
        for (size_t i = 3; i < count; i++)
            if (fds[i].revents != 0)
                take_in(
                    p, &p->joints[(i - 3) / 2], (enum proxy_way)((i - 3) % 2));
        for (int i = 0; i < 2 && !p->refused; i++) {
            int fd = fds[1 + i].revents == 0
                         ? -1
                         : accept4(p->listeners[i], NULL, NULL, SOCK_CLOEXEC);
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

    if (!p || pipe2(p->wake, O_CLOEXEC | O_NONBLOCK) != 0)
        abort();
    snprintf(p->target, sizeof(p->target), "%s", path ? path : "");
    p->target_port = port;
    local_dir_make(p->dir);
    local_path(p->path, p->dir, "proxy.sock");
    p->listeners[1] = -1;
    p->shut = true;
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
    proxy_carry_out(p);
    pthread_mutex_unlock(&p->lock);
    snprintf(p->url, sizeof(p->url), "unix://%s", p->path);
    snprintf(p->tcp_url, sizeof(p->tcp_url), "redis://127.0.0.1:%u",
        (unsigned)p->port);
    return p;
}

void proxy_stop(struct proxy *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->stopping = p->refused = true;
    wake(p);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    close(p->listeners[1]);
    close(p->wake[0]);
    close(p->wake[1]);
    local_dir_remove(p->dir);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

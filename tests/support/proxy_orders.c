/* SPDX-License-Identifier: MIT */
/* What a test orders of the proxy, or asks it. */
#include "support/proxy_inner.h"

#include <stdio.h>
#include <string.h>

#include "support/redis.h"

enum { AWAIT_MS = 30000 };

struct proxy *proxy_to(const struct redis *r, bool tcp)
{
    bool tls = r->tls_always;
    struct proxy *p = proxy_start(tcp || tls ? NULL : r->path, r->port);

    if (tls) {
        snprintf(p->tcp_url, sizeof(p->tcp_url), "rediss://127.0.0.1:%u",
            (unsigned)p->port);
        snprintf(p->url, sizeof(p->url), "%s", p->tcp_url);
    }
    return p;
}

const char *proxy_url(const struct proxy *p)
{
    return p->url;
}

const char *proxy_tcp_url(const struct proxy *p)
{
    return p->tcp_url;
}

const char *proxy_address(const struct proxy *p)
{
    return strstr(p->tcp_url, "://") + 3;
}

void proxy_delay_us(struct proxy *p, enum proxy_way way, uint64_t us)
{
    pthread_mutex_lock(&p->lock);
    p->way[way].delay_ns = us * 1000;
    pthread_mutex_unlock(&p->lock);
}

void proxy_delay(struct proxy *p, enum proxy_way way, int ms)
{
    proxy_delay_us(p, way, (uint64_t)ms * 1000);
}

void proxy_hold(struct proxy *p, enum proxy_way way, bool held)
{
    pthread_mutex_lock(&p->lock);
    p->way[way].held = held;
    proxy_carry_out(p);
    pthread_mutex_unlock(&p->lock);
}

void proxy_hold_from(
    struct proxy *p, enum proxy_way way, uint8_t source, bool held)
{
    pthread_mutex_lock(&p->lock);
    p->way[way].held_from[source] = held;
    proxy_carry_out(p);
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
    proxy_carry_out(p);
    pthread_mutex_unlock(&p->lock);
}

void proxy_strand(struct proxy *p)
{
    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < PAIRS; i++)
        p->joints[i].stranded = p->joints[i].used;
    proxy_carry_out(p);
    pthread_mutex_unlock(&p->lock);
}

void proxy_deliver(struct proxy *p)
{
    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < PAIRS; i++)
        p->joints[i].delivers = p->joints[i].used && p->joints[i].stranded;
    proxy_carry_out(p);
    pthread_mutex_unlock(&p->lock);
}

void proxy_lead(struct proxy *p, const char *path)
{
    pthread_mutex_lock(&p->lock);
    snprintf(p->target, sizeof(p->target), "%s", path);
    pthread_mutex_unlock(&p->lock);
}

void proxy_refuse(struct proxy *p, bool refused)
{
    pthread_mutex_lock(&p->lock);
    p->refused = refused;
    proxy_carry_out(p);
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

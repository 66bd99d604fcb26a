/* SPDX-License-Identifier: MIT */
/*
 * What the tests of dialling share: an endpoint, a driver, and listeners that
 * do not answer. Names are answered here, when the test says so.
 */
#ifndef NXLOCK_TESTS_DIAL_RIG_H
#define NXLOCK_TESTS_DIAL_RIG_H

#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/deadline.h"
#include "net/dial.h"
#include "net/socket.h"
#include "support/local.h"

#define BUDGET (2 * NS_PER_S)

int __real_getaddrinfo(const char *host, const char *service,
    const struct addrinfo *hints, struct addrinfo **list);
int __wrap_getaddrinfo(const char *host, const char *service,
    const struct addrinfo *hints, struct addrinfo **list);

static sem_t allowed; /* waited for before a look-up answers */
static atomic_uint look_ups;

int __wrap_getaddrinfo(const char *host, const char *service,
    const struct addrinfo *hints, struct addrinfo **list)
{
    if (hints->ai_flags & AI_NUMERICHOST)
        return __real_getaddrinfo(host, service, hints, list);
    atomic_fetch_add(&look_ups, 1);
    sem_wait(&allowed);
    struct addrinfo numeric = *hints;
    numeric.ai_flags |= AI_NUMERICHOST;
    if (strcmp(host, "here.test") == 0)
        return __real_getaddrinfo("127.0.0.1", service, &numeric, list);
    if (strcmp(host, "two.test") == 0) {
        struct addrinfo *second = NULL;
        int rc = __real_getaddrinfo("127.0.0.1", service, &numeric, list);
        rc = rc ? rc
                : __real_getaddrinfo("127.0.0.2", service, &numeric, &second);
        if (rc == 0)
            (*list)->ai_next = second;
        return rc;
    }
    return EAI_NONAME;
}

static struct dial dial;
static struct endpoint url_of_it;
static struct target to;
static struct text error;
static struct transport made;

static inline void aim(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

static inline void aim(const char *format, ...)
{
    char url[256];
    va_list args;
    va_start(args, format);
    vsnprintf(url, sizeof(url), format, args);
    va_end(args);
    endpoint_free(&url_of_it);
    url_of_it =
        (struct endpoint){.settings = {.timeout_ms = 2000, .keepalive_s = 15}};
    assert_int_equal(url_parse(&url_of_it, url, &error), URL_OK);
    to = target_of(&url_of_it);
    text_clear(&error);
}

static inline int set_up(void **state)
{
    (void)state;
    dial = (struct dial){.kind = &transport_plain, .fd = -1};
    made = TRANSPORT_CLOSED;
    atomic_store(&look_ups, 0);
    return sem_init(&allowed, 0, 0);
}

static inline int tear_down(void **state)
{
    (void)state;
    dial_free(&dial);
    endpoint_free(&url_of_it);
    url_of_it = (struct endpoint){0};
    return 0;
}

static inline enum dial_state start(uint64_t now)
{
    return dial_start(&dial, &to, now, now + BUDGET, &made, &error);
}

/* Polls and steps as a driver does, to the end. */
static inline enum dial_state drive(enum dial_state state)
{
    while (state == DIAL_WAIT) {
        assert_true(dial_busy(&dial));
        struct pollfd waiting = {.fd = dial.fd, .events = dial_events(&dial)};
        uint64_t now = clock_now();
        poll(&waiting, 1, deadline_poll_ms(dial_deadline(&dial), now));
        state = dial_step(&dial, &to, clock_now(), &made, &error);
    }
    assert_false(dial_busy(&dial));
    assert_int_equal(dial_deadline(&dial), NEVER);
    return state;
}

static inline void assert_connected_to(int listener)
{
    struct pollfd waiting = {.fd = listener, .events = POLLIN};
    assert_true(made.fd >= 0 && fcntl(made.fd, F_GETFL) & O_NONBLOCK);
    assert_int_equal(poll(&waiting, 1, 10000), 1);
    int peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(peer >= 0);
    assert_int_equal(send(peer, "x", 1, 0), 1);
    waiting.fd = made.fd;
    assert_int_equal(poll(&waiting, 1, 10000), 1);
    close(peer);
    transport_close(&made);
    close(listener);
}

/* Nobody listens there, and nobody will. */
static inline uint16_t closed_port(void)
{
    uint16_t port = 0;
    int listener = local_listen_tcp(&port);
    assert_true(listener >= 0);
    close(listener);
    return port;
}

/* Of ::1 at that port; -1 where there is no IPv6. */
static inline int listen_v6(uint16_t port)
{
    struct sockaddr_in6 at = {.sin6_family = AF_INET6};
    int one = 1, s = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    at.sin6_addr = in6addr_loopback;
    at.sin6_port = htons(port);
    if (s < 0)
        return -1;
    setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
    if (bind(s, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(s, 4) < 0) {
        close(s);
        return -1;
    }
    return s;
}

struct full {
    int listener, waiting[8];
    uint16_t port;
};

/* A listener on 127.0.0.host that answers no more: its queue is full. port 0:
 * any. */
static inline struct full fill_at(unsigned host, uint16_t port)
{
    struct full f = {.port = 0};
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t len = sizeof(at);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + host);
    at.sin_port = htons(port);
    f.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(f.listener, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(f.listener, 0), 0);
    assert_int_equal(getsockname(f.listener, (struct sockaddr *)&at, &len), 0);
    f.port = ntohs(at.sin_port);
    for (int i = 0; i < 8; i++) {
        f.waiting[i] =
            socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        int rc = connect(f.waiting[i], (struct sockaddr *)&at, sizeof(at));
        assert_true(rc == 0 || errno == EINPROGRESS);
    }
    return f;
}

static inline struct full fill(void)
{
    return fill_at(1, 0);
}

static inline void empty(struct full *f)
{
    for (int i = 0; i < 8; i++)
        close(f->waiting[i]);
    close(f->listener);
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A server in threads of the test program that does harm: each connection gets
 * the next scene of a list, and all later ones get the last. Scenes use OpenSSL
 * with blocking calls, and pass on to the group's redis-server what they do not
 * want to spoil. Whatever a scene can read is kept in `heard`.
 */
#ifndef NXLOCK_TESTS_LIVE_HOSTILE_RIG_H
#define NXLOCK_TESTS_LIVE_HOSTILE_RIG_H

#include "live/live_rig.h"

#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include "support/certs.h"
#include "support/redis_tls.h"

#define VISITS_MAX 64
#define PASSWORD "correct-horse"

struct hostile;

struct visit {
    struct hostile *h;
    int fd;
    unsigned number;
    bool over;
    pthread_t thread;
};

typedef void scene(struct visit *v);

struct hostile {
    int listener;
    uint16_t port;
    scene *const *scenes; /* up to NULL */
    pthread_t thread;
    pthread_mutex_t mutex; /* for what follows */
    bool stopping;
    unsigned visits, refused;
    struct visit visit[VISITS_MAX];
    char heard[1 << 16]; /* as text */
    size_t heard_len;
};

static struct hostile hostile;

static inline void hostile_hears(struct visit *v, const void *bytes, size_t len)
{
    struct hostile *h = v->h;
    pthread_mutex_lock(&h->mutex);
    if (len > sizeof(h->heard) - 1 - h->heard_len)
        len = sizeof(h->heard) - 1 - h->heard_len;
    memcpy(h->heard + h->heard_len, bytes, len);
    h->heard_len += len;
    pthread_mutex_unlock(&h->mutex);
}

static inline bool hostile_heard(struct hostile *h, const char *text)
{
    pthread_mutex_lock(&h->mutex);
    bool found = memmem(h->heard, h->heard_len, text, strlen(text));
    pthread_mutex_unlock(&h->mutex);
    return found;
}

static inline void hostile_forget(struct hostile *h)
{
    pthread_mutex_lock(&h->mutex);
    h->heard_len = 0;
    pthread_mutex_unlock(&h->mutex);
}

static inline unsigned hostile_visits(struct hostile *h)
{
    pthread_mutex_lock(&h->mutex);
    unsigned n = h->visits;
    pthread_mutex_unlock(&h->mutex);
    return n;
}

/* ----------------------------------------------------------- what scenes use
 */

/* Is the test still on? For scenes that go on sending. */
static inline bool visit_goes_on(struct visit *v)
{
    pthread_mutex_lock(&v->h->mutex);
    bool on = !v->h->stopping;
    pthread_mutex_unlock(&v->h->mutex);
    return on;
}

/* Reads and keeps what comes, as it comes, until the client closes. */
static inline void visit_listen(struct visit *v)
{
    char bytes[4096];
    ssize_t n;
    while ((n = recv(v->fd, bytes, sizeof(bytes), 0)) > 0)
        hostile_hears(v, bytes, (size_t)n);
}

/* Reads once. */
static inline void visit_hear_hello(struct visit *v)
{
    char bytes[4096];
    ssize_t n = recv(v->fd, bytes, sizeof(bytes), 0);
    if (n > 0)
        hostile_hears(v, bytes, (size_t)n);
}

/* The handshake with a certificate of certs.h. version 0: the newest. NULL: it
 * has failed. */
static inline SSL *visit_secure(struct visit *v, const char *name, int version)
{
    char path[LOCAL_PATH + 64], key[LOCAL_PATH + 64];
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    snprintf(path, sizeof(path), "%s/%s.pem", server.dir, name);
    snprintf(key, sizeof(key), "%s/%s.key", server.dir, name);
    if (SSL_CTX_use_certificate_chain_file(ctx, path) != 1 ||
        SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1)
        abort();
    SSL_CTX_set_max_proto_version(ctx, version);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL *ssl = SSL_new(ctx);
    SSL_CTX_free(ctx);
    SSL_set_fd(ssl, v->fd);
    if (SSL_accept(ssl) == 1)
        return ssl;
    SSL_free(ssl);
    return NULL;
}

/* False: one side has closed. */
static inline bool visit_pass(struct visit *v, SSL *ssl, int redis)
{
    char bytes[4096];
    struct pollfd fds[2] = {
        {.fd = v->fd, .events = POLLIN}, {.fd = redis, .events = POLLIN}};
    if (!SSL_pending(ssl) && poll(fds, 2, -1) < 0)
        return false;
    if (SSL_pending(ssl) || fds[0].revents) {
        int n = SSL_read(ssl, bytes, sizeof(bytes));
        if (n <= 0 || !local_send(redis, bytes, (size_t)n))
            return false;
        hostile_hears(v, bytes, (size_t)n);
    }
    if (fds[1].revents) {
        ssize_t n = recv(redis, bytes, sizeof(bytes), 0);
        if (n <= 0 || SSL_write(ssl, bytes, (int)n) != (int)n)
            return false;
    }
    return true;
}

/* Honest from here on. */
static inline void visit_bridge(struct visit *v, SSL *ssl)
{
    int redis = local_connect(server.path, 0);
    while (redis >= 0 && visit_pass(v, ssl, redis))
        ;
    if (redis >= 0)
        close(redis);
}

/* ------------------------------------------------------------------- its life
 */

static inline void *visit_run(void *argument)
{
    struct visit *v = argument;
    scene *const *next = v->h->scenes;
    sigset_t pipe; /* OpenSSL raises it; the library must not */
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, NULL);
    for (unsigned i = 0; i < v->number && next[1]; i++)
        next++;
    (*next)(v);
    pthread_mutex_lock(&v->h->mutex);
    shutdown(v->fd, SHUT_RDWR);
    close(v->fd);
    v->over = true;
    pthread_mutex_unlock(&v->h->mutex);
    return NULL;
}

static inline void *hostile_run(void *argument)
{
    struct hostile *h = argument;
    int fd;
    while ((fd = accept4(h->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        pthread_mutex_lock(&h->mutex);
        if (h->stopping || h->visits == VISITS_MAX) {
            h->refused++;
            close(fd);
        } else {
            struct visit *v = &h->visit[h->visits];
            *v = (struct visit){.h = h, .fd = fd, .number = h->visits};
            if (pthread_create(&v->thread, NULL, visit_run, v) != 0)
                abort();
            h->visits++;
        }
        pthread_mutex_unlock(&h->mutex);
    }
    return NULL;
}

static inline void hostile_start(scene *const *scenes)
{
    struct hostile *h = &hostile;
    OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL);
    memset(h, 0, sizeof(*h));
    pthread_mutex_init(&h->mutex, NULL);
    h->scenes = scenes;
    h->listener = local_listen_tcp(&h->port);
    assert_true(h->listener >= 0);
    assert_int_equal(pthread_create(&h->thread, NULL, hostile_run, h), 0);
}

/* Closes the connections that there are. */
static inline void hostile_cut(struct hostile *h)
{
    pthread_mutex_lock(&h->mutex);
    for (unsigned i = 0; i < h->visits; i++)
        if (!h->visit[i].over)
            shutdown(h->visit[i].fd, SHUT_RDWR);
    pthread_mutex_unlock(&h->mutex);
}

static inline void hostile_stop(void)
{
    struct hostile *h = &hostile;
    pthread_mutex_lock(&h->mutex);
    h->stopping = true;
    pthread_mutex_unlock(&h->mutex);
    shutdown(h->listener, SHUT_RDWR);
    pthread_join(h->thread, NULL);
    close(h->listener);
    hostile_cut(h);
    for (unsigned i = 0; i < h->visits; i++)
        pthread_join(h->visit[i].thread, NULL);
}

/* With the password in it. */
static inline void hostile_url(char *url, size_t room, const char *parameters)
{
    int n = snprintf(url, room,
        "rediss://:" PASSWORD "@127.0.0.1:%u?cacert=%s/ca.pem&%s",
        (unsigned)hostile.port, server.dir, parameters);
    assert_true(n > 0 && (size_t)n < room);
}

static inline nxl_client *hostile_client(const char *parameters)
{
    char url[512];
    hostile_url(url, sizeof(url), parameters);
    return client_at(url);
}

/* Of this process, with all threads. */
static inline int64_t cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

#endif

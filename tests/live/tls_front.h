/* SPDX-License-Identifier: MIT */
/*
 * A process that speaks TLS in front of a real server and does on order what no
 * redis-server does: new keys, more session tickets, small records, an end
 * without a goodbye. A test that includes this includes <openssl/ssl.h> too, so
 * that it is built only where there is OpenSSL.
 */
#ifndef NXLOCK_TESTS_LIVE_TLS_FRONT_H
#define NXLOCK_TESTS_LIVE_TLS_FRONT_H

#include "live/tls_rig.h"

#include <openssl/ssl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum front_order {
    FRONT_NONE,
    FRONT_NEW_KEYS, /* asks for the peer's too */
    FRONT_TICKETS,
    FRONT_GARBAGE, /* bytes that are no record */
    FRONT_UNASKED, /* a reply that nobody asked for */
    FRONT_GOODBYE, /* close_notify; the connection stays open */
    FRONT_CLOSE,   /* without a close_notify */
    FRONT_RESET,
};

#define FRONT_LINKS 8

struct front {
    pid_t pid;
    uint16_t port;
    struct front_shared {
        _Atomic int order; /* FRONT_NONE: it has been carried out */
        _Atomic int accepted, open;
        _Atomic int goodbyes; /* connections that a close_notify ended */
    } * shared;
};

/* --------------------------------------------------------- in the process */

struct front_link {
    SSL *ssl; /* NULL: none */
    int fd, server;
};

static struct {
    struct front_shared *shared;
    struct front_link links[FRONT_LINKS];
    SSL_CTX *context;
    int listener;
} in_front;

static inline void front_end(struct front_link *l)
{
    if (SSL_get_shutdown(l->ssl) & SSL_RECEIVED_SHUTDOWN)
        in_front.shared->goodbyes++;
    SSL_free(l->ssl);
    close(l->fd);
    close(l->server);
    *l = (struct front_link){.ssl = NULL};
    in_front.shared->open--;
}

static inline void front_accept(void)
{
    struct front_link *l = in_front.links;
    while (l->ssl)
        l++;
    l->fd = accept4(in_front.listener, NULL, NULL, SOCK_CLOEXEC);
    l->server = local_connect(server.path, 0);
    l->ssl = SSL_new(in_front.context);
    SSL_set_fd(l->ssl, l->fd);
    in_front.shared->accepted++;
    in_front.shared->open++;
    local_no_delay(l->fd);
    if (SSL_accept(l->ssl) != 1)
        front_end(l);
}

/* From one side to the other. False: the connection has ended. */
static inline bool front_pass(struct front_link *l, bool up)
{
    char bytes[65536];
    if (up) {
        int n = SSL_read(l->ssl, bytes, sizeof(bytes));
        return n > 0 ? local_send(l->server, bytes, (size_t)n)
                     : SSL_get_error(l->ssl, n) == SSL_ERROR_WANT_READ;
    }
    ssize_t n = recv(l->server, bytes, sizeof(bytes), 0);
    return n > 0 && SSL_write(l->ssl, bytes, (int)n) == n;
}

static inline void front_obey_at(struct front_link *l, enum front_order order)
{
    bool ends = order == FRONT_CLOSE || order == FRONT_RESET;
    if (order == FRONT_NEW_KEYS)
        SSL_key_update(l->ssl, SSL_KEY_UPDATE_REQUESTED);
    if (order == FRONT_TICKETS)
        SSL_new_session_ticket(l->ssl);
    if (order == FRONT_NEW_KEYS || order == FRONT_TICKETS)
        SSL_do_handshake(l->ssl);
    if (order == FRONT_GARBAGE)
        (void)local_send(l->fd, "-ERR no record\r\n", 16);
    if (order == FRONT_UNASKED)
        SSL_write(l->ssl, "+OK\r\n", 5);
    if (order == FRONT_GOODBYE)
        SSL_shutdown(l->ssl);
    if (order == FRONT_RESET)
        local_make_reset(l->fd);
    if (ends)
        front_end(l);
}

static inline void front_obey(void)
{
    enum front_order order = (enum front_order)in_front.shared->order;
    if (order == FRONT_NONE)
        return;
    for (size_t i = 0; i < FRONT_LINKS; i++)
        if (in_front.links[i].ssl)
            front_obey_at(&in_front.links[i], order);
    in_front.shared->order = FRONT_NONE;
}

static inline void front_turn(void)
{
    struct pollfd fds[1 + 2 * FRONT_LINKS] = {
        {.fd = in_front.listener, .events = POLLIN}};
    for (size_t i = 0; i < FRONT_LINKS; i++) {
        struct front_link *l = &in_front.links[i];
        fds[1 + 2 * i].fd = l->ssl ? l->fd : -1;
        fds[2 + 2 * i].fd = l->ssl ? l->server : -1;
        fds[1 + 2 * i].events = fds[2 + 2 * i].events = POLLIN;
    }
    if (poll(fds, 1 + 2 * FRONT_LINKS, 2) < 0)
        _exit(1);
    for (size_t i = 0; i < 2 * FRONT_LINKS; i++) {
        struct front_link *l = &in_front.links[i / 2];
        if (fds[1 + i].revents && l->ssl && !front_pass(l, i % 2 == 0))
            front_end(l);
    }
    if (fds[0].revents)
        front_accept();
    front_obey();
}

static inline void front_run(unsigned record_most)
{
    char certificate[2 * LOCAL_PATH], key[2 * LOCAL_PATH];
    tls_expand(certificate, sizeof(certificate), "@/server.pem");
    tls_expand(key, sizeof(key), "@/server.key");
    signal(SIGPIPE, SIG_IGN);
    in_front.context = SSL_CTX_new(TLS_server_method());
    if (SSL_CTX_use_certificate_chain_file(in_front.context, certificate) !=
            1 ||
        SSL_CTX_use_PrivateKey_file(in_front.context, key, SSL_FILETYPE_PEM) !=
            1)
        _exit(1);
    SSL_CTX_clear_mode(in_front.context, SSL_MODE_AUTO_RETRY);
    SSL_CTX_set_max_send_fragment(in_front.context, record_most);
    for (;;)
        front_turn();
}

/* ------------------------------------------------------------ in the test */

/* Its records have at most so many bytes, 512 to 16384. */
static inline void front_start(struct front *f, unsigned record_most)
{
    *f = (struct front){.pid = 0};
    f->shared = mmap(NULL, sizeof(*f->shared), PROT_READ | PROT_WRITE,
        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(f->shared != MAP_FAILED);
    in_front.listener = local_listen_tcp(&f->port);
    in_front.shared = f->shared;
    assert_true(in_front.listener >= 0);
    f->pid = test_fork();
    if (f->pid == 0)
        front_run(record_most);
    close(in_front.listener);
}

static inline void front_stop(struct front *f)
{
    kill(f->pid, SIGKILL);
    waitpid(f->pid, NULL, 0);
    munmap(f->shared, sizeof(*f->shared));
}

/* At all connections; returns when it has been carried out. */
static inline void front_order(struct front *f, enum front_order order)
{
    f->shared->order = order;
    assert_eventually(f->shared->order == FRONT_NONE);
}

static inline nxl_client *front_client(
    const struct front *f, const char *parameters)
{
    char url[TLS_URL];
    tls_url(url, "127.0.0.1", f->port, parameters);
    return client_at(url);
}

#endif

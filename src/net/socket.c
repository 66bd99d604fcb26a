/* SPDX-License-Identifier: MIT */
/*
 * Opens TCP and unix sockets, and finds out when they are connected.
 *
 * Invariant: no call here blocks, raises a signal or leaks a descriptor into
 * another program, and -1 or FAILED always comes with a cause.
 */
#include "net/socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PROBES 3
#define PROBE_INTERVAL_MAX_S 75
#define USER_TIMEOUT_MIN_S 20

static int open_socket(int family, struct text *error)
{
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        int cause = errno;
        text_clear(error);
        text_addf(error, "cannot create a socket: %s", strerror(cause));
        errno = cause;
    }
    return fd;
}

static void set_option(int fd, int level, int name, int value)
{
    /* Without an option that the kernel does not know, the connection notices
     * trouble later, but works. */
    (void)setsockopt(fd, level, name, &value, sizeof(value));
}

/* Keepalive probes keep a router's NAT mapping alive and detect a dead peer on
 * an idle connection. TCP_USER_TIMEOUT ends a connection whose bytes are not
 * acknowledged. It also overrides the number of probes, so it is set to the
 * time that these probes take, and to at least 20 s: the caller's deadline says
 * how long to wait for an answer, and the kernel must not turn a slow network
 * into a lost connection before that. */
static void tune_tcp(int fd, uint64_t keepalive_s)
{
    int idle_s = keepalive_s < 32767 ? (int)keepalive_s : 32767;
    int interval_s = idle_s / PROBES;

    if (interval_s < 1)
        interval_s = 1;
    if (interval_s > PROBE_INTERVAL_MAX_S)
        interval_s = PROBE_INTERVAL_MAX_S;
    int dead_s = idle_s + PROBES * interval_s;
    if (dead_s < USER_TIMEOUT_MIN_S)
        dead_s = USER_TIMEOUT_MIN_S;

    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, idle_s);
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, interval_s);
    set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, PROBES);
    set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, dead_s * 1000);
}

/* Closes fd and completes *error, which begins with "cannot connect". */
static int close_failed(int fd, int cause, struct text *error)
{
    text_addf(error, ": %s", strerror(cause));
    close(fd);
    errno = cause;
    return -1;
}

int socket_open_tcp(
    const struct address *address, uint64_t keepalive_s, struct text *error)
{
    const void *bytes = &address->bytes;
    int fd = open_socket(address->bytes.ss_family, error);

    if (fd < 0)
        return -1;
    tune_tcp(fd, keepalive_s);
    /* An interrupted connect goes on, like one in progress. */
    if (connect(fd, bytes, address->len) == 0 || errno == EINPROGRESS ||
        errno == EINTR)
        return fd;

    int cause = errno;
    text_set(error, "cannot connect to ");
    address_show(address, error);
    return close_failed(fd, cause, error);
}

int socket_open_unix(const char *path, struct text *error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const void *bytes = &address;
    size_t len = strlen(path);
    int result;

    if (len == 0 || len >= sizeof(address.sun_path)) {
        text_clear(error);
        text_addf(error,
            "the path of a unix socket must have 1 to %zu "
            "bytes",
            sizeof(address.sun_path) - 1);
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(address.sun_path, path, len);
    int fd = open_socket(AF_UNIX, error);
    if (fd < 0)
        return -1;
    do
        result = connect(fd, bytes, sizeof(address));
    while (result < 0 && errno == EINTR);
    if (result == 0)
        return fd;

    int cause = errno;
    text_set(error, "cannot connect"); /* the server's name has the path */
    if (cause == EAGAIN)
        text_add(error, " (the server's queue of new connections is full)");
    return close_failed(fd, cause, error);
}

/* TCP may choose the server's own port, if it is free, for this end too, and
 * then connects to itself. */
static bool is_itself(
    const struct sockaddr_storage *own, const struct sockaddr_storage *peer)
{
    const void *a = own, *b = peer;

    if (own->ss_family != peer->ss_family)
        return false;
    if (own->ss_family == AF_INET) {
        const struct sockaddr_in *x = a, *y = b;
        return x->sin_port == y->sin_port &&
               x->sin_addr.s_addr == y->sin_addr.s_addr;
    }
    if (own->ss_family == AF_INET6) {
        const struct sockaddr_in6 *x = a, *y = b;
        return x->sin6_port == y->sin6_port &&
               x->sin6_scope_id == y->sin6_scope_id &&
               memcmp(&x->sin6_addr, &y->sin6_addr, sizeof(x->sin6_addr)) == 0;
    }
    return false;
}

/* Returns 0 if connected, else the cause. Only for a socket that is writable or
 * has failed. */
static int connect_result(int fd)
{
    struct sockaddr_storage own = {0}, peer = {0};
    void *own_bytes = &own, *peer_bytes = &peer;
    socklen_t own_len = sizeof(own), peer_len = sizeof(peer);
    int cause = 0;
    socklen_t cause_len = sizeof(cause);

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &cause, &cause_len) < 0)
        return errno;
    if (cause != 0)
        return cause;
    /* The kernel reports a cause only once. Without one, having a peer proves
     * that the socket is connected. */
    if (getpeername(fd, peer_bytes, &peer_len) < 0 ||
        getsockname(fd, own_bytes, &own_len) < 0)
        return errno;
    return is_itself(&own, &peer) ? ECONNREFUSED : 0;
}

enum socket_state socket_connected(int fd, struct text *error)
{
    struct pollfd waiting = {.fd = fd, .events = POLLOUT};
    int ready;

    /* SO_ERROR is 0 while a connection is being made as well. */
    do
        ready = poll(&waiting, 1, 0);
    while (ready < 0 && errno == EINTR);
    if (ready == 0)
        return SOCKET_CONNECTING;
    int cause = ready < 0 ? errno : connect_result(fd);
    if (cause == 0)
        return SOCKET_CONNECTED;
    text_clear(error);
    text_addf(error, "cannot connect: %s", strerror(cause));
    errno = cause;
    return SOCKET_FAILED;
}

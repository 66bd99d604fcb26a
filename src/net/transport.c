/* SPDX-License-Identifier: MIT */
/* What all transports share, and the plain one, which hands bytes to the
 * socket. */
#include "net/transport.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

bool transport_open(struct transport *t, const struct transport_kind *kind,
    int fd, const struct target *to, struct text *error)
{
    *t = (struct transport){.kind = kind, .fd = fd};
    if (!kind->open || kind->open(t, to, error))
        return true;
    close(fd);
    *t = (struct transport){.fd = -1, .fault = t->fault};
    return false;
}

enum transport_step transport_handshake(struct transport *t, struct text *error)
{
    return t->kind->handshake ? t->kind->handshake(t, error) : TRANSPORT_READY;
}

enum transport_news transport_news(struct transport *t)
{
    if (t->fd < 0)
        return TRANSPORT_OVER;
    return t->pending ? TRANSPORT_TALKS : t->kind->news(t);
}

static bool is_local(const struct sockaddr_storage *address)
{
    const void *bytes = address;

    if (address->ss_family == AF_INET) {
        const struct sockaddr_in *four = bytes;
        return ntohl(four->sin_addr.s_addr) >> 24 == 127;
    }
    if (address->ss_family == AF_INET6) {
        const struct sockaddr_in6 *six = bytes;
        const struct in6_addr *number = &six->sin6_addr;
        return IN6_IS_ADDR_LOOPBACK(number) ||
               (IN6_IS_ADDR_V4MAPPED(number) && number->s6_addr[12] == 127);
    }
    return address->ss_family == AF_UNIX;
}

struct transport_facts transport_facts(const struct transport *t)
{
    struct transport_facts facts = {.local = false};
    struct sockaddr_storage peer = {0};
    socklen_t len = sizeof(peer);
    void *bytes = &peer;

    facts.local = getpeername(t->fd, bytes, &len) == 0 && is_local(&peer);
    if (t->kind->facts)
        t->kind->facts(t, &facts);
    return facts;
}

void transport_close(struct transport *t)
{
    if (t->fd < 0)
        return;
    if (t->kind->close)
        t->kind->close(t);
    close(t->fd);
    *t = TRANSPORT_CLOSED;
}

void transport_close_in_child(struct transport *t)
{
    if (t->fd >= 0)
        close(t->fd);
    *t = TRANSPORT_CLOSED;
}

/* -------------------------------------------------------------- plain bytes */

static bool is_not_now(int cause)
{
    return cause == EAGAIN || cause == EWOULDBLOCK;
}

ssize_t plain_send(struct transport *t, const void *bytes, size_t len)
{
    ssize_t count;

    do
        count = send(t->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (count < 0 && errno == EINTR);
    return count < 0 && is_not_now(errno) ? 0 : count;
}

ssize_t plain_receive(struct transport *t, void *bytes, size_t room)
{
    ssize_t count;

    if (room == 0)
        return 0;
    do
        count = recv(t->fd, bytes, room, MSG_DONTWAIT);
    while (count < 0 && errno == EINTR);
    if (count > 0)
        return count;
    if (count < 0 && is_not_now(errno))
        return 0;
    if (count == 0)
        errno = 0;
    return -1;
}

static enum transport_news plain_news(struct transport *t)
{
    struct pollfd look = {.fd = t->fd, .events = POLLIN | POLLRDHUP};
    int ready;

    do
        ready = poll(&look, 1, 0);
    while (ready < 0 && errno == EINTR);
    if (ready < 0 || (look.revents & ~POLLIN))
        return TRANSPORT_OVER;
    return ready > 0 ? TRANSPORT_TALKS : TRANSPORT_QUIET;
}

const struct transport_kind transport_plain = {
    .send = plain_send, .receive = plain_receive, .news = plain_news};

/* SPDX-License-Identifier: MIT */
/*
 * The epoll set of a client. Invariant: it holds open descriptors of this
 * client only.
 */
#include "net/poller.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

static int control(
    const struct poller *p, int how, int fd, short events, unsigned key)
{
    struct epoll_event event = {.data = {.u32 = key}};
    event.events = (events & POLLIN ? (uint32_t)EPOLLIN : 0u) |
                   (events & POLLOUT ? (uint32_t)EPOLLOUT : 0u);
    return epoll_ctl(p->fd, how, fd, &event);
}

bool poller_add(const struct poller *p, int fd, short events, unsigned key)
{
    return !p || control(p, EPOLL_CTL_ADD, fd, events, key) == 0;
}

bool poller_change(const struct poller *p, int fd, short events, unsigned key)
{
    return !p || control(p, EPOLL_CTL_MOD, fd, events, key) == 0;
}

void poller_explain(struct text *why)
{
    const char *cause = strerrordesc_np(errno);
    bool full = errno == ENOSPC;
    text_clear(why);
    text_addf(why, "cannot add a descriptor to epoll: %s%s", cause,
        full ? " (raise fs.epoll.max_user_watches)" : "");
}

void poller_remove(const struct poller *p, int fd)
{
    if (p && fd >= 0)
        control(p, EPOLL_CTL_DEL, fd, 0, 0);
}

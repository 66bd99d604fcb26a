/* SPDX-License-Identifier: MIT */
/* Keeps: the set holds open descriptors of this client only. */
#include "net/watch.h"

#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

static int control(
    const struct watch *w, int how, int fd, short events, unsigned key)
{
    struct epoll_event event = {.data = {.u32 = key}};
    event.events = (events & POLLIN ? (uint32_t)EPOLLIN : 0u) |
                   (events & POLLOUT ? (uint32_t)EPOLLOUT : 0u);
    return epoll_ctl(w->fd, how, fd, &event);
}

bool watch_add(const struct watch *w, int fd, short events, unsigned key)
{
    return !w || control(w, EPOLL_CTL_ADD, fd, events, key) == 0;
}

void watch_change(const struct watch *w, int fd, short events, unsigned key)
{
    if (w)
        control(w, EPOLL_CTL_MOD, fd, events, key);
}

void watch_drop(const struct watch *w, int fd)
{
    if (w && fd >= 0)
        control(w, EPOLL_CTL_DEL, fd, 0, 0);
}

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
#include <unistd.h>

static int control(
    int set, int how, int fd, short events, struct source *source)
{
    struct epoll_event event = {.data = {.ptr = source}};
    event.events = (events & POLLIN ? (uint32_t)EPOLLIN : 0u) |
                   (events & POLLOUT ? (uint32_t)EPOLLOUT : 0u);
    return epoll_ctl(set, how, fd, &event);
}

/* ---------------------------------------------------- what is in the set */

/* Its index, or the count if it is not there. */
static unsigned find(const struct poller_set *w, int fd)
{
    unsigned i = 0;
    while (i < w->count && w->list[i].fd != fd)
        i++;
    return i;
}

/* False: there is no room. */
static bool note(
    const struct poller *p, int fd, short events, struct source *source)
{
    struct poller_set *w = p->members;
    if (!w)
        return true;
    unsigned i = find(w, fd);
    if (i == POLLER_MAX) {
        errno = ENOSPC;
        return false;
    }
    w->list[i].fd = fd;
    w->list[i].events = events;
    w->list[i].source = source;
    w->count += i == w->count;
    return true;
}

static void forget(const struct poller *p, int fd)
{
    struct poller_set *w = p->members;
    unsigned i = w ? find(w, fd) : 0;
    if (w && i < w->count)
        w->list[i] = w->list[--w->count];
}

/* --------------------------------------------------------- its functions */

bool poller_add(
    const struct poller *p, int fd, short events, struct source *source)
{
    if (!p)
        return true;
    if (!note(p, fd, events, source))
        return false;
    if (control(p->fd, EPOLL_CTL_ADD, fd, events, source) == 0)
        return true;
    forget(p, fd);
    return false;
}

bool poller_change(
    const struct poller *p, int fd, short events, struct source *source)
{
    if (!p)
        return true;
    (void)note(p, fd, events, source);
    return control(p->fd, EPOLL_CTL_MOD, fd, events, source) == 0;
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
    if (!p || fd < 0)
        return;
    forget(p, fd);
    control(p->fd, EPOLL_CTL_DEL, fd, 0, NULL);
}

bool poller_replace(struct poller *p, int ready)
{
    const struct poller_set *w = p->members;
    int set = epoll_create1(EPOLL_CLOEXEC);
    bool done = set >= 0;
    for (unsigned i = 0; done && i < w->count; i++)
        done = control(set, EPOLL_CTL_ADD, w->list[i].fd, w->list[i].events,
                   w->list[i].source) == 0;
    done = done && control(p->fd, EPOLL_CTL_ADD, ready, POLLIN, NULL) == 0;
    if (done)
        p->fd = set;
    else if (set >= 0)
        close(set);
    return done;
}

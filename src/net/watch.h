/* SPDX-License-Identifier: MIT */
/*
 * The set of descriptors a client waits for (epoll). A descriptor is put in
 * where it is opened and taken out before it is closed: if a fork()ed child
 * still has it, closing alone would leave it in the set for ever.
 *
 * A watch of NULL is fine everywhere and does nothing.
 */
#ifndef NXLOCK_NET_WATCH_H
#define NXLOCK_NET_WATCH_H

#include <stdbool.h>

struct watch {
    int fd;
};

/* events as for poll(); key comes back in epoll_event.data.u32. false: the
 * system refused. */
bool watch_add(const struct watch *w, int fd, short events, unsigned key);
void watch_change(const struct watch *w, int fd, short events, unsigned key);
/* Harmless for fd < 0. */
void watch_drop(const struct watch *w, int fd);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The epoll set of a client. Code that opens a descriptor adds it, and removes
 * it before closing it: while a fork()ed child still has the descriptor,
 * closing it does not remove it from the set.
 *
 * Without a poller (NULL) every function succeeds and does nothing.
 */
#ifndef NXLOCK_NET_POLLER_H
#define NXLOCK_NET_POLLER_H

#include <stdbool.h>

#include "base/text.h"

/* What a descriptor belongs to: a member of that object, which stays where it
 * is while the descriptor is in the set. The client knows the kinds. */
struct source;

/* More than a client has. */
#define POLLER_MAX 64

/* What is in the set. */
struct poller_set {
    unsigned count;
    struct {
        int fd;
        short events;
        struct source *source;
    } list[POLLER_MAX];
};

struct poller {
    int fd;
    struct poller_set *members; /* NULL: it is never replaced */
};

/* events as for poll(); source comes back in epoll_event.data.ptr. false: the
 * system refused; errno says why. */
bool poller_add(
    const struct poller *p, int fd, short events, struct source *source);
bool poller_change(
    const struct poller *p, int fd, short events, struct source *source);
/* Sets why to such a refusal, by errno. It is FAULT_SYSTEM. */
void poller_explain(struct text *why);
/* Harmless for fd < 0. */
void poller_remove(const struct poller *p, int fd);

/* Replaces p->fd by a new set of the same descriptors. ready, which is always
 * readable, is added to the former set, so a thread that waits for that one, or
 * is about to, returns at once; it has to close it. False: the system refused,
 * and nothing has changed. */
bool poller_replace(struct poller *p, int ready);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Keeps: at most one descriptor is open, and it is d->fd. A socket's is
 * closed on every way out but DIAL_CONNECTED; a look-up's stays, unwatched,
 * until the look-up is over or dial_free. Nothing here blocks.
 */
#include "net/dial.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/deadline.h"
#include "net/socket.h"

/* That a name is not known is believed for so long after the attempt that
 * asked. What it leads to is always tried: that shows whether it is true. */
#define FAILURE_KEEPS (10 * NS_PER_S)

short dial_events(const struct dial *d)
{
    return d->stage == DIAL_LOOKING_UP ? POLLIN : POLLOUT;
}

static enum dial_state fail(struct dial *d)
{
    dial_cancel(d);
    return DIAL_FAILED;
}

/* A socket was not to be had: was that ours to mend? */
static void blame(struct dial *d)
{
    d->starved = errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
                 errno == ENOBUFS;
}

/* Tries the remaining addresses until one connects or takes its time. */
static enum dial_state try_next(struct dial *d, const struct endpoint *to,
    uint64_t now, int *fd, struct text *error)
{
    d->stage = DIAL_TRYING;
    while (d->next < d->found.count) {
        const struct address *address = &d->found.list[d->next++];
        uint64_t shares = d->found.count - d->next + 1;
        d->address_end =
            deadline_after(now, deadline_left(d->end, now) / shares);
        int s = socket_open_tcp(address, to->settings.keepalive_s, error);
        if (s < 0) {
            blame(d);
            continue;
        }
        switch (socket_connected(s, error)) {
        case SOCKET_CONNECTED:
            d->stage = DIAL_IDLE;
            *fd = s;
            return DIAL_CONNECTED;
        case SOCKET_CONNECTING:
            if (watch_add(d->watch, s, dial_events(d), d->key)) {
                d->fd = s;
                return DIAL_WAIT;
            }
            text_clear(error);
            text_add(error, "the system watches no more descriptors");
            close(s);
            break;
        case SOCKET_FAILED:
            close(s);
        }
    }
    return fail(d);
}

/* Begins a look-up, or goes on with the one of an attempt given up. */
static enum resolve_state look_up(struct dial *d, const struct endpoint *to,
    bool is_late, struct text *error)
{
    if (d->job) {
        enum resolve_state state = resolve_poll(d->job, &d->found, error);
        if (state != RESOLVE_FAILED || !is_late)
            return state;
        d->job = NULL;
    }
    return resolve_start(
        to->host, to->port, &d->found, &d->job, &d->fd, error);
}

/* "/run/redis.sock/1", where redis:// would have a database. */
static bool ends_in_number(const char *path)
{
    const char *last = strrchr(path, '/') + 1;

    return *last && last[strspn(last, "0123456789")] == '\0';
}

enum dial_state dial_start(struct dial *d, const struct endpoint *to,
    uint64_t now, uint64_t end, int *fd, struct text *error)
{
    bool is_late = now > deadline_after(d->end, FAILURE_KEEPS);
    *d = (struct dial){.watch = d->watch, .key = d->key, .job = d->job,
        .fd = d->job ? d->fd : -1, .end = end, .address_end = NEVER};
    if (to->path) {
        *fd = socket_open_unix(to->path, error);
        if (*fd < 0)
            blame(d);
        if (*fd < 0 && ends_in_number(to->path))
            text_add(error, " (a database is written ?db=N after the path)");
        return *fd >= 0 ? DIAL_CONNECTED : DIAL_FAILED;
    }
    switch (look_up(d, to, is_late, error)) {
    case RESOLVE_DONE:
        d->job = NULL;
        d->fd = -1;
        return try_next(d, to, now, fd, error);
    case RESOLVE_WAIT:
        d->stage = DIAL_LOOKING_UP;
        if (watch_add(d->watch, d->fd, dial_events(d), d->key))
            return DIAL_WAIT;
        text_clear(error);
        text_add(error, "the system watches no more descriptors");
        return fail(d);
    case RESOLVE_FAILED:
        d->job = NULL;
        d->fd = -1;
        break;
    }
    return fail(d);
}

static enum dial_state step_look_up(struct dial *d, const struct endpoint *to,
    uint64_t now, int *fd, struct text *error)
{
    watch_drop(d->watch, d->fd); /* it may be closed by what follows */
    enum resolve_state state = resolve_poll(d->job, &d->found, error);
    if (state == RESOLVE_WAIT &&
        watch_add(d->watch, d->fd, dial_events(d), d->key))
        return DIAL_WAIT;
    if (state == RESOLVE_WAIT)
        return fail(d);
    d->job = NULL;
    d->fd = -1;
    if (state == RESOLVE_FAILED)
        return fail(d);
    return try_next(d, to, now, fd, error);
}

enum dial_state dial_step(struct dial *d, const struct endpoint *to,
    uint64_t now, int *fd, struct text *error)
{
    if (now >= d->end) {
        text_clear(error);
        text_addf(error, d->stage == DIAL_LOOKING_UP
                ? "the host name was not looked up within %llu ms"
                : "no answer to connecting within %llu ms",
            (unsigned long long)to->settings.timeout_ms);
        return fail(d);
    }
    if (d->stage == DIAL_LOOKING_UP)
        return step_look_up(d, to, now, fd, error);
    switch (socket_connected(d->fd, error)) {
    case SOCKET_CONNECTED:
        watch_drop(d->watch, d->fd);
        *fd = d->fd;
        d->fd = -1;
        d->stage = DIAL_IDLE;
        return DIAL_CONNECTED;
    case SOCKET_CONNECTING:
        if (now < d->address_end)
            return DIAL_WAIT;
        text_clear(error);
        text_add(error, "no answer to connecting");
        break;
    case SOCKET_FAILED:
        break;
    }
    watch_drop(d->watch, d->fd);
    close(d->fd);
    d->fd = -1;
    return try_next(d, to, now, fd, error);
}

void dial_cancel(struct dial *d)
{
    if (d->stage != DIAL_IDLE)
        watch_drop(d->watch, d->fd);
    if (d->stage == DIAL_TRYING && d->fd >= 0)
        close(d->fd);
    d->stage = DIAL_IDLE;
    if (!d->job)
        d->fd = -1;
}

void dial_free(struct dial *d)
{
    dial_cancel(d);
    resolve_abandon(d->job); /* the descriptor is the look-up's */
    d->job = NULL;
    d->fd = -1;
}

uint64_t dial_deadline(const struct dial *d)
{
    return dial_busy(d) ? earlier(d->end, d->address_end) : NEVER;
}

/* SPDX-License-Identifier: MIT */
/*
 * Connects to an endpoint: look-up, then connecting and the handshake of the
 * transport for one address after the other.
 *
 * Invariant: at most one descriptor is open, and it is d->fd. A socket is
 * closed on every way out except DIAL_CONNECTED; the descriptor of a look-up
 * stays open, unpolled, until the look-up is over or dial_free(). Nothing here
 * blocks.
 */
#include "net/dial.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/deadline.h"
#include "net/socket.h"

/* A look-up that outlived its attempt may fail: for how long after that attempt
 * its failure still counts. Addresses that it found always count: trying them
 * shows whether they are right. */
#define FAILURE_LASTS (10 * NS_PER_S)

short dial_events(const struct dial *d)
{
    const struct transport *t = &d->transport;
    if (d->stage == DIAL_SECURING)
        return (short)((t->wants_read ? POLLIN : 0) |
                       (t->wants_write ? POLLOUT : 0));
    return d->stage == DIAL_LOOKING_UP ? POLLIN : POLLOUT;
}

static enum dial_state fail(struct dial *d)
{
    if (d->fault == FAULT_NONE)
        d->fault = FAULT_UNREACHABLE;
    dial_cancel(d);
    return DIAL_FAILED;
}

/* Notes why one address failed. Of several, the gravest failure is reported, or
 * the last one. */
static void note_failure(struct dial *d, enum fault fault,
    const struct text *words, struct text *error)
{
    if (d->fault != fault && fault_worse(d->fault, fault) == d->fault)
        return;
    d->fault = fault;
    *error = *words;
}

/* The class of a failure to create a socket, by errno. */
static enum fault socket_fault(void)
{
    bool starved = errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
                   errno == ENOBUFS;
    return starved ? FAULT_SYSTEM : FAULT_UNREACHABLE;
}

/* Explains that epoll refused the descriptor; errno says why. */
static void explain_no_poll(struct text *error)
{
    int cause = errno;
    text_clear(error);
    text_addf(error, "cannot add descriptor to epoll: %s", strerror(cause));
}

/* Ends the attempt at one address: removes its descriptor from the poller and
 * closes it. */
static void drop_attempt(struct dial *d)
{
    poller_remove(d->poller, d->fd);
    if (d->stage == DIAL_SECURING)
        transport_close(&d->transport);
    else if (d->fd >= 0)
        close(d->fd);
    d->fd = -1;
}

/* Goes on with the transport's handshake. FAILED: call drop_attempt(). */
static enum dial_state step_handshake(
    struct dial *d, struct transport *made, struct text *error)
{
    enum fault fault = FAULT_UNREACHABLE;
    struct text words;
    switch (transport_handshake(&d->transport, &words)) {
    case TRANSPORT_READY:
        *made = d->transport;
        d->transport = TRANSPORT_CLOSED;
        d->fd = -1;
        d->stage = DIAL_IDLE;
        return DIAL_CONNECTED;
    case TRANSPORT_WAITS:
        if (poller_add(d->poller, d->fd, dial_events(d), d->key))
            return DIAL_WAIT;
        explain_no_poll(&words);
        break;
    case TRANSPORT_FAILED:
        fault = transport_fault(&d->transport);
        break;
    }
    note_failure(d, fault, &words, error);
    return DIAL_FAILED;
}

/* Begins the transport's handshake. fd is connected and in no poller; d now
 * owns it. */
static enum dial_state secure(struct dial *d, const struct endpoint *to, int fd,
    struct transport *made, struct text *error)
{
    struct text words;
    d->fd = -1;
    if (!transport_open(&d->transport, d->kind, fd, to, &words)) {
        note_failure(d, transport_fault(&d->transport), &words, error);
        return DIAL_FAILED;
    }
    d->stage = DIAL_SECURING;
    d->fd = fd;
    enum dial_state state = step_handshake(d, made, error);
    if (state == DIAL_FAILED)
        drop_attempt(d);
    return state;
}

/* Tries the remaining addresses until one connects or takes its time. */
static enum dial_state try_next(struct dial *d, const struct endpoint *to,
    uint64_t now, struct transport *made, struct text *error)
{
    enum dial_state state;
    while (d->next < d->found.count) {
        const struct address *address = &d->found.list[d->next++];
        d->stage = DIAL_TRYING;
        uint64_t shares = d->found.count - d->next + 1;
        d->address_end =
            deadline_after(now, deadline_left(d->end, now) / shares);
        struct text words;
        int s = socket_open_tcp(address, to->settings.keepalive_s, &words);
        if (s < 0) {
            note_failure(d, socket_fault(), &words, error);
            continue;
        }
        switch (socket_connected(s, &words)) {
        case SOCKET_CONNECTED:
            state = secure(d, to, s, made, error);
            if (state != DIAL_FAILED)
                return state;
            break;
        case SOCKET_CONNECTING:
            if (poller_add(d->poller, s, dial_events(d), d->key)) {
                d->fd = s;
                return DIAL_WAIT;
            }
            explain_no_poll(&words);
            note_failure(d, FAULT_UNREACHABLE, &words, error);
            close(s);
            break;
        case SOCKET_FAILED:
            note_failure(d, FAULT_UNREACHABLE, &words, error);
            close(s);
        }
    }
    return fail(d);
}

/* Begins a look-up, or goes on with that of an earlier attempt. */
static enum resolve_state look_up(
    struct dial *d, const struct endpoint *to, bool is_late, struct text *error)
{
    if (d->job) {
        enum resolve_state state = resolve_poll(d->job, &d->found, error);
        if (state != RESOLVE_FAILED || !is_late)
            return state;
        d->job = NULL;
    }
    return resolve_start(to->host, to->port, &d->found, &d->job, &d->fd, error);
}

/* "/run/redis.sock/1", where redis:// would have a database. */
static bool ends_in_number(const char *path)
{
    const char *last = strrchr(path, '/') + 1;

    return *last && last[strspn(last, "0123456789")] == '\0';
}

static enum dial_state start_unix(struct dial *d, const struct endpoint *to,
    struct transport *made, struct text *error)
{
    int fd = socket_open_unix(to->path, error);
    if (fd < 0) {
        d->fault = socket_fault();
        if (ends_in_number(to->path))
            text_add(error, " (write the database as ?db=N after the path)");
        return DIAL_FAILED;
    }
    enum dial_state state = secure(d, to, fd, made, error);
    return state == DIAL_FAILED ? fail(d) : state;
}

enum dial_state dial_start(struct dial *d, const struct endpoint *to,
    uint64_t now, uint64_t end, struct transport *made, struct text *error)
{
    bool is_late = now > deadline_after(d->end, FAILURE_LASTS);
    *d = (struct dial){.kind = d->kind,
        .poller = d->poller,
        .key = d->key,
        .job = d->job,
        .fd = d->job ? d->fd : -1,
        .transport = TRANSPORT_CLOSED,
        .end = end,
        .address_end = NEVER};
    if (to->path)
        return start_unix(d, to, made, error);
    switch (look_up(d, to, is_late, error)) {
    case RESOLVE_DONE:
        d->job = NULL;
        d->fd = -1;
        return try_next(d, to, now, made, error);
    case RESOLVE_WAIT:
        d->stage = DIAL_LOOKING_UP;
        if (poller_add(d->poller, d->fd, dial_events(d), d->key))
            return DIAL_WAIT;
        explain_no_poll(error);
        return fail(d);
    case RESOLVE_FAILED:
        d->job = NULL;
        d->fd = -1;
        break;
    }
    return fail(d);
}

static enum dial_state step_look_up(struct dial *d, const struct endpoint *to,
    uint64_t now, struct transport *made, struct text *error)
{
    poller_remove(d->poller, d->fd); /* it may be closed by what follows */
    enum resolve_state state = resolve_poll(d->job, &d->found, error);
    if (state == RESOLVE_WAIT &&
        poller_add(d->poller, d->fd, dial_events(d), d->key))
        return DIAL_WAIT;
    if (state == RESOLVE_WAIT) {
        explain_no_poll(error);
        return fail(d);
    }
    d->job = NULL;
    d->fd = -1;
    if (state == RESOLVE_FAILED)
        return fail(d);
    return try_next(d, to, now, made, error);
}

/* Goes on with the attempt under way. FAILED: call drop_attempt(). */
static enum dial_state step_attempt(struct dial *d, const struct endpoint *to,
    struct transport *made, struct text *error)
{
    if (d->stage == DIAL_SECURING) {
        poller_remove(d->poller, d->fd); /* what it wants may change */
        return step_handshake(d, made, error);
    }
    int fd = d->fd;
    struct text words;
    switch (socket_connected(fd, &words)) {
    case SOCKET_CONNECTED:
        poller_remove(d->poller, fd);
        return secure(d, to, fd, made, error);
    case SOCKET_CONNECTING:
        return DIAL_WAIT;
    case SOCKET_FAILED:
        note_failure(d, FAULT_UNREACHABLE, &words, error);
        break;
    }
    return DIAL_FAILED;
}

/* Reports what has not come in time. */
static void note_silence(struct dial *d, uint64_t within_ms, struct text *error)
{
    const char *silence = "no answer to the connection attempt";
    struct text words;

    if (d->stage == DIAL_LOOKING_UP)
        silence = "the host name was not resolved";
    if (d->stage == DIAL_SECURING)
        silence = d->transport.silence
                      ? d->transport.silence
                      : "no answer to the transport's handshake";
    text_set(&words, silence);
    if (within_ms) {
        text_add(&words, " within ");
        text_add_duration(&words, within_ms, false);
    }
    note_failure(d, FAULT_UNREACHABLE, &words, error);
}

enum dial_state dial_step(struct dial *d, const struct endpoint *to,
    uint64_t now, struct transport *made, struct text *error)
{
    if (now >= d->end) {
        note_silence(d, to->settings.timeout_ms, error);
        return fail(d);
    }
    if (d->stage == DIAL_LOOKING_UP)
        return step_look_up(d, to, now, made, error);
    enum dial_state state = step_attempt(d, to, made, error);
    if (state == DIAL_CONNECTED || (state == DIAL_WAIT && now < d->address_end))
        return state;
    if (state == DIAL_WAIT)
        note_silence(d, 0, error);
    drop_attempt(d);
    return try_next(d, to, now, made, error);
}

void dial_cancel(struct dial *d)
{
    if (d->stage == DIAL_TRYING || d->stage == DIAL_SECURING)
        drop_attempt(d);
    else if (d->stage == DIAL_LOOKING_UP)
        poller_remove(d->poller, d->fd);
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

void dial_close_in_child(struct dial *d)
{
    if (d->fd >= 0)
        close(d->fd);
    d->fd = -1;
}

uint64_t dial_deadline(const struct dial *d)
{
    return dial_busy(d) ? earlier(d->end, d->address_end) : NEVER;
}

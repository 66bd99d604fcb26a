/* SPDX-License-Identifier: MIT */
/*
 * Connects to a target: look-up, then connecting and the handshake of the
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
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/deadline.h"
#include "net/socket.h"

/* A look-up that outlived its attempt may fail: for how long after that attempt
 * its failure still counts. Addresses that it found always count: trying them
 * shows whether they are right. (A former primary that still answers there is
 * found out by name_check.h and by its age: core/eligibility.h.) */
#define FAILURE_LASTS (10 * NS_PER_S)

short dial_events(const struct dial *d)
{
    const struct transport *t = &d->transport;
    if (d->stage == DIAL_SECURING)
        return (short)((t->wants_read ? POLLIN : 0) |
                       (t->wants_write ? POLLOUT : 0));
    return d->stage == DIAL_LOOKING_UP ? POLLIN : POLLOUT;
}

static enum dial_state fail(struct dial *d, struct text *error)
{
    if (d->fault == FAULT_NONE)
        d->fault = FAULT_UNREACHABLE;
    text_set(error, d->why.data + d->named);
    dial_cancel(d);
    return DIAL_FAILED;
}

/* The descriptor of a look-up cannot be polled; errno says why. */
static enum dial_state fail_to_poll(struct dial *d, struct text *error)
{
    poller_explain(&d->why);
    d->fault = FAULT_SYSTEM;
    return fail(d, error);
}

/* Notes why one address failed, after it had reached that stage. Of several,
 * those count that failed most gravely, then those that got furthest; if these
 * have different causes, all are reported, with their addresses. */
static void note_failure(struct dial *d, unsigned address, int reached,
    enum fault fault, const struct text *words)
{
    bool several = d->found.count > 1;
    struct text name;
    if (d->fault != fault ? fault_worse(d->fault, fault) == d->fault
                          : reached < d->reached)
        return;
    if (d->fault != fault || reached > d->reached)
        text_clear(&d->why);
    if (strstr(d->why.data, words->data))
        return;
    text_clear(&name);
    if (several)
        address_show(&d->found.list[address], &name);
    bool has_name = several && !strstr(words->data, name.data);
    if (d->why.len > 0)
        text_add(&d->why, "; ");
    d->named = d->why.len == 0 && has_name ? name.len + 2 : 0;
    if (has_name)
        text_addf(&d->why, "%s: ", name.data);
    text_add(&d->why, words->data);
    d->fault = fault;
    d->reached = reached;
}

static void note_present(
    struct dial *d, enum fault fault, const struct text *words)
{
    note_failure(d, d->current, (int)d->stage, fault, words);
}

/* The class of a failure to create a socket, by errno. */
static enum fault socket_fault(void)
{
    bool starved = errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
                   errno == ENOBUFS;
    return starved ? FAULT_SYSTEM : FAULT_UNREACHABLE;
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
static enum dial_state step_handshake(struct dial *d, struct transport *made)
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
        if (poller_add(d->poller, d->fd, dial_events(d), d->source))
            return DIAL_WAIT;
        fault = FAULT_SYSTEM;
        poller_explain(&words);
        break;
    case TRANSPORT_FAILED:
        fault = transport_fault(&d->transport);
        break;
    }
    note_present(d, fault, &words);
    return DIAL_FAILED;
}

/* Begins the transport's handshake. fd is connected and in no poller; d now
 * owns it. */
static enum dial_state secure(
    struct dial *d, const struct target *to, int fd, struct transport *made)
{
    struct text words;
    d->fd = -1;
    d->stage = DIAL_SECURING;
    if (!transport_open(&d->transport, d->kind, fd, to, &words)) {
        note_present(d, transport_fault(&d->transport), &words);
        return DIAL_FAILED;
    }
    d->fd = fd;
    enum dial_state state = step_handshake(d, made);
    if (state == DIAL_FAILED)
        drop_attempt(d);
    return state;
}

/* A socket that is being connected to an address, or is connected. */
struct opened {
    int fd;
    unsigned address;
    bool connected;
};

/* Opens a socket to the next address that does not fail at once. False: there
 * is none. */
static bool open_next(
    struct dial *d, const struct target *to, struct opened *opened)
{
    while (d->untried) {
        unsigned address = (unsigned)__builtin_ctz(d->untried);
        struct text words;
        d->untried &= d->untried - 1;
        int s = socket_open_tcp(
            &d->found.list[address], to->settings->keepalive_s, &words);
        enum fault fault = s < 0 ? socket_fault() : FAULT_UNREACHABLE;
        enum socket_state state =
            s < 0 ? SOCKET_FAILED : socket_connected(s, &words);
        *opened = (struct opened){s, address, state == SOCKET_CONNECTED};
        if (state != SOCKET_FAILED)
            return true;
        note_failure(d, address, DIAL_TRYING, fault, &words);
        if (s >= 0)
            close(s);
    }
    return false;
}

/* Goes on with that socket. FAILED: it is closed, and the cause noted. */
static enum dial_state use(struct dial *d, const struct target *to,
    uint64_t now, const struct opened *opened, struct transport *made)
{
    struct text words;
    uint64_t shares = (uint64_t)__builtin_popcount(d->untried) + 1;
    d->current = opened->address;
    d->stage = DIAL_TRYING;
    d->address_end = deadline_after(now, deadline_left(d->end, now) / shares);
    if (opened->connected)
        return secure(d, to, opened->fd, made);
    if (poller_add(d->poller, opened->fd, dial_events(d), d->source)) {
        d->fd = opened->fd;
        return DIAL_WAIT;
    }
    poller_explain(&words);
    note_present(d, FAULT_SYSTEM, &words);
    close(opened->fd);
    return DIAL_FAILED;
}

/* Tries the remaining addresses until one connects or does not answer at once;
 * then, while time is left, tries those again that were silent. */
static enum dial_state try_next(struct dial *d, const struct target *to,
    uint64_t now, struct transport *made, struct text *error)
{
    do {
        struct opened opened;
        while (open_next(d, to, &opened)) {
            enum dial_state state = use(d, to, now, &opened, made);
            if (state != DIAL_FAILED)
                return state;
        }
        d->untried = d->unanswered;
        d->unanswered = 0;
    } while (d->untried && now < d->end);
    return fail(d, error);
}

static int compare_addresses(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct address));
}

/* Of all addresses leaves the nth. */
static void leave_one(struct dial *d, unsigned nth)
{
    qsort(d->found.list, d->found.count, sizeof(d->found.list[0]),
        compare_addresses);
    d->untried &= nth <= d->found.count ? 1U << (nth - 1) : 0;
    if (!d->untried)
        text_addf(&d->why, "the host has %zu addresses", d->found.count);
}

static enum dial_state try_all(struct dial *d, const struct target *to,
    uint64_t now, struct transport *made, struct text *error)
{
    d->untried = (1U << d->found.count) - 1;
    if (to->nth)
        leave_one(d, to->nth);
    return try_next(d, to, now, made, error);
}

/* Sentinels may have named another primary since the last attempt. */
static void drop_look_up_of_another(struct dial *d, const struct target *to)
{
    const struct server_address *at = to->address;
    if (!d->job || (at->host && resolve_is_of(d->job, at->host, at->port)))
        return;
    resolve_abandon(d->job);
    d->job = NULL;
}

/* Begins a look-up, or goes on with that of an earlier attempt. */
static enum resolve_state look_up(
    struct dial *d, const struct target *to, bool is_late)
{
    if (d->job) {
        enum resolve_state state = resolve_poll(d->job, &d->found, &d->why);
        if (state != RESOLVE_FAILED || !is_late)
            return state;
        d->job = NULL;
    }
    return resolve_start(to->address->host, to->address->port, &d->found,
        &d->job, &d->fd, &d->why);
}

/* "/run/redis.sock/1", where redis:// would have a database. */
static bool ends_in_number(const char *path)
{
    const char *last = strrchr(path, '/') + 1;

    return *last && last[strspn(last, "0123456789")] == '\0';
}

static enum dial_state start_unix(struct dial *d, const struct target *to,
    struct transport *made, struct text *error)
{
    int fd = socket_open_unix(to->address->path, error);
    if (fd < 0) {
        d->fault = socket_fault();
        if (ends_in_number(to->address->path))
            text_add(error, " (write the database as ?db=N after the path)");
        return DIAL_FAILED;
    }
    enum dial_state state = secure(d, to, fd, made);
    return state == DIAL_FAILED ? fail(d, error) : state;
}

enum dial_state dial_start(struct dial *d, const struct target *to,
    uint64_t now, uint64_t end, struct transport *made, struct text *error)
{
    bool is_late = now > deadline_after(d->end, FAILURE_LASTS);
    drop_look_up_of_another(d, to);
    *d = (struct dial){.kind = d->kind,
        .poller = d->poller,
        .source = d->source,
        .job = d->job,
        .fd = d->job ? d->fd : -1,
        .transport = TRANSPORT_CLOSED,
        .end = end,
        .address_end = NEVER};
    if (to->address->path)
        return start_unix(d, to, made, error);
    switch (look_up(d, to, is_late)) {
    case RESOLVE_DONE:
        d->job = NULL;
        d->fd = -1;
        return try_all(d, to, now, made, error);
    case RESOLVE_WAIT:
        d->stage = DIAL_LOOKING_UP;
        if (poller_add(d->poller, d->fd, dial_events(d), d->source))
            return DIAL_WAIT;
        return fail_to_poll(d, error);
    case RESOLVE_FAILED:
        d->job = NULL;
        d->fd = -1;
        break;
    }
    return fail(d, error);
}

static enum dial_state step_look_up(struct dial *d, const struct target *to,
    uint64_t now, struct transport *made, struct text *error)
{
    poller_remove(d->poller, d->fd); /* it may be closed by what follows */
    enum resolve_state state = resolve_poll(d->job, &d->found, &d->why);
    if (state == RESOLVE_WAIT &&
        poller_add(d->poller, d->fd, dial_events(d), d->source))
        return DIAL_WAIT;
    if (state == RESOLVE_WAIT)
        return fail_to_poll(d, error);
    d->job = NULL;
    d->fd = -1;
    if (state == RESOLVE_FAILED)
        return fail(d, error);
    return try_all(d, to, now, made, error);
}

/* Goes on with the attempt under way. FAILED: call drop_attempt(). */
static enum dial_state step_attempt(
    struct dial *d, const struct target *to, struct transport *made)
{
    if (d->stage == DIAL_SECURING) {
        poller_remove(d->poller, d->fd); /* what it wants may change */
        return step_handshake(d, made);
    }
    int fd = d->fd;
    struct text words;
    switch (socket_connected(fd, &words)) {
    case SOCKET_CONNECTED:
        poller_remove(d->poller, fd);
        return secure(d, to, fd, made);
    case SOCKET_CONNECTING:
        return DIAL_WAIT;
    case SOCKET_FAILED:
        note_present(d, FAULT_UNREACHABLE, &words);
        break;
    }
    return DIAL_FAILED;
}

/* What did not arrive in time. */
static const char *silence_of(const struct dial *d)
{
    if (d->stage == DIAL_LOOKING_UP)
        return "the host name was not resolved";
    if (d->stage != DIAL_SECURING)
        return "no answer to the connection attempt";
    return d->transport.silence ? d->transport.silence
                                : "no answer to the transport's handshake";
}

static void note_silence(struct dial *d)
{
    struct text words;
    text_set(&words, silence_of(d));
    note_present(d, FAULT_UNREACHABLE, &words);
}

bool dial_explain(const struct dial *d, struct text *text)
{
    struct dial now = *d;
    if (!dial_busy(d) || d->why.len == 0)
        return false;
    note_silence(&now);
    text_add(text, now.why.data + now.named);
    return true;
}

static enum dial_state time_out(
    struct dial *d, uint64_t timeout_ms, struct text *error)
{
    note_silence(d);
    if (strcmp(d->why.data + d->named, silence_of(d)) == 0) {
        text_add(&d->why, " within ");
        text_add_duration(&d->why, timeout_ms, false);
    }
    return fail(d, error);
}

/* The present address has used its share of the time. If the others fail at
 * once, it also gets theirs; else it is tried again after them, if time is
 * left.
 */
static enum dial_state end_share(struct dial *d, const struct target *to,
    uint64_t now, struct transport *made, struct text *error)
{
    struct opened opened;
    if (!open_next(d, to, &opened)) {
        d->address_end = d->end;
        return DIAL_WAIT;
    }
    note_silence(d);
    d->unanswered |= 1U << d->current;
    drop_attempt(d);
    enum dial_state state = use(d, to, now, &opened, made);
    return state == DIAL_FAILED ? try_next(d, to, now, made, error) : state;
}

enum dial_state dial_step(struct dial *d, const struct target *to, uint64_t now,
    struct transport *made, struct text *error)
{
    if (now >= d->end)
        return time_out(d, to->settings->timeout_ms, error);
    if (d->stage == DIAL_LOOKING_UP)
        return step_look_up(d, to, now, made, error);
    enum dial_state state = step_attempt(d, to, made);
    if (state == DIAL_CONNECTED || (state == DIAL_WAIT && now < d->address_end))
        return state;
    if (state == DIAL_WAIT)
        return end_share(d, to, now, made, error);
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

/* SPDX-License-Identifier: MIT */
/*
 * Writes messages to readers that may be slow, and keeps what does not fit.
 *
 * Invariant: nothing but outbox_end() waits for a reader, because a lease has
 * to be renewed and a command to be stopped in time; and one is dropped
 * without a trace only if its reader is gone.
 */
#include "cli/report/outbox.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nxlock.h>

#include "cli/clock.h"

/* Of an outlet. What is said last matters most, so older messages make room. */
#define KEPT_MAX 65536
/* A reader that reads a little now and then is not waited for longer. */
#define END_MAX (30 * NS_PER_S)
/* The delay between two attempts of outbox_end(). */
#define AGAIN_MS 20
/* While another process is inside write(), poll() reports that a terminal
 * cannot be written: wait until that process is done. That takes microseconds,
 * unless it is preempted. Not longer, and not again before it has taken one,
 * because a terminal may also be stopped (Ctrl-S), and a lease about to end. */
#define TERMINAL_WAIT_MS 20

/* What a pipe or a terminal takes at least once poll() says that it takes any.
 */
#define TAKEN_AT_ONCE 256

struct held {
    struct held *next;
    size_t length, written;
    char text[];
};

static struct outlet *outlets;
/* The process whose messages they are: those of a parent are not ours. */
static pid_t owner;

static void drop_first(struct outlet *outlet)
{
    struct held *held = outlet->first;

    outlet->first = held->next;
    outlet->bytes -= held->length;
    free(held);
}

static void empty(struct outlet *outlet)
{
    while (outlet->first)
        drop_first(outlet);
    outlet->dropped = 0;
}

static void disown_after_fork(void)
{
    if (owner == getpid())
        return;
    owner = getpid();
    for (struct outlet *outlet = outlets; outlet; outlet = outlet->next)
        empty(outlet);
}

bool outbox_forget(struct outlet *outlet)
{
    disown_after_fork();
    bool any = outlet->first;
    empty(outlet);
    return any;
}

/* Is there room? Also true if the reader is gone: then writing fails. */
static int poll_outlet(struct outlet *outlet, bool wait, short *revents)
{
    struct pollfd out = {outlet->fd, POLLOUT, 0};
    bool terminal = isatty(outlet->fd);
    int ready = poll(&out, 1, 0);

    if (ready == 0 && wait && terminal && !outlet->stopped)
        ready = poll(&out, 1, TERMINAL_WAIT_MS);
    outlet->stopped = terminal && ready == 0;
    *revents = out.revents;
    return ready;
}

ssize_t outbox_put(int fd, const char *data, size_t length)
{
    struct pollfd out = {fd, POLLOUT, 0};
    char path[32];
    struct stat info;
    int again = -1, flags = fcntl(fd, F_GETFL);

    if (flags < 0 || fstat(fd, &info) != 0)
        return -1;
    if (S_ISSOCK(info.st_mode))
        return send(fd, data, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    bool may_block = S_ISFIFO(info.st_mode) || isatty(fd);
    /* In place of a closed output there is /dev/null, read-only. */
    if (!may_block || (flags & O_ACCMODE) == O_RDONLY)
        return write(fd, data, length);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    again = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (again < 0 && poll(&out, 1, 0) == 0) {
        errno = EAGAIN;
        return -1;
    }
    if (again < 0 && length > TAKEN_AT_ONCE)
        length = TAKEN_AT_ONCE;
    ssize_t put = write(again < 0 ? fd : again, data, length);
    int error = errno;
    if (again >= 0)
        close(again);
    errno = error;
    return put;
}

/* A pipe that poll() reports as writable has room for PIPE_BUF bytes, more than
 * a message. To one without a reader nothing is written: SIGPIPE would end us
 * with the lock held. */
static ssize_t write_stream(
    struct outlet *outlet, const char *data, size_t length, bool wait)
{
    short revents;

    if (poll_outlet(outlet, wait, &revents) == 0) {
        errno = EAGAIN;
        return -1;
    }
    if (revents != POLLOUT) {
        errno = EPIPE;
        return -1;
    }
    return outbox_put(outlet->fd, data, length);
}

/* How much of it was taken now; below 0: nothing will ever be. */
static ssize_t attempt(
    struct outlet *outlet, const char *data, size_t length, bool wait)
{
    ssize_t put;

    if (outlet->to)
        put = sendto(outlet->fd, data, length, MSG_DONTWAIT | MSG_NOSIGNAL,
            (const struct sockaddr *)outlet->to, sizeof(*outlet->to));
    else
        put = write_stream(outlet, data, length, wait);
    return put < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOBUFS)
               ? 0
               : put;
}

static void note_loss(const struct outlet *outlet, int why)
{
    if (outlet->lost)
        outlet->lost(why);
}

/* Writes how many messages were dropped, if any were. False: not now. */
static bool write_dropped(struct outlet *outlet)
{
    char text[128];

    if (outlet->dropped == 0 || outlet->to)
        return true;
    int length = snprintf(text, sizeof(text),
        "nxlock: messages lost here, because nothing read them in time: %zu\n",
        outlet->dropped);
    if (attempt(outlet, text, (size_t)length, false) == 0)
        return false;
    outlet->dropped = 0;
    return true;
}

/* Writes what is taken now. True: some of it was, or never will be. */
static bool flush_outlet(struct outlet *outlet)
{
    bool any = false;

    while (outlet->first && write_dropped(outlet)) {
        struct held *held = outlet->first;
        ssize_t put = attempt(outlet, held->text + held->written,
            held->length - held->written, false);
        if (put == 0)
            break;
        any = true;
        if (put < 0)
            note_loss(outlet, errno);
        else
            held->written += (size_t)put;
        if (put < 0 || held->written == held->length)
            drop_first(outlet);
    }
    return any;
}

static void keep(struct outlet *outlet, const char *text, size_t length)
{
    struct held *held = malloc(sizeof(*held) + length);

    if (!held) {
        note_loss(outlet, ENOMEM);
        return;
    }
    *held = (struct held){.length = length};
    memcpy(held->text, text, length);
    if (outlet->first)
        outlet->last->next = held;
    else
        outlet->first = held;
    outlet->last = held;
    outlet->bytes += length;
    while (outlet->bytes > KEPT_MAX) {
        drop_first(outlet);
        outlet->dropped++;
        note_loss(outlet, EAGAIN);
    }
}

static void add_outlet(struct outlet *outlet)
{
    for (const struct outlet *o = outlets; o; o = o->next) {
        if (o == outlet)
            return;
    }
    outlet->next = outlets;
    outlets = outlet;
}

void outbox_write(struct outlet *outlet, const char *text, size_t length)
{
    disown_after_fork();
    add_outlet(outlet);
    (void)flush_outlet(outlet);
    ssize_t put = outlet->first ? 0 : attempt(outlet, text, length, true);
    if (put < 0)
        note_loss(outlet, errno);
    else if ((size_t)put < length)
        keep(outlet, text + put, length - (size_t)put);
}

void outbox_turn(void)
{
    disown_after_fork();
    for (struct outlet *outlet = outlets; outlet; outlet = outlet->next)
        (void)flush_outlet(outlet);
}

/* Writes what all of them take now. True: some of it was. */
static bool flush_all(bool *left)
{
    bool any = false;

    *left = false;
    for (struct outlet *outlet = outlets; outlet; outlet = outlet->next) {
        any = flush_outlet(outlet) || any;
        *left = *left || outlet->first;
    }
    return any;
}

void outbox_end(uint64_t patience)
{
    uint64_t now = nxl_now_ns();
    uint64_t end = now + END_MAX;
    uint64_t give_up = now + patience;

    disown_after_fork();
    for (bool left;;) {
        bool any = flush_all(&left);
        now = nxl_now_ns();
        if (any)
            give_up = now + patience;
        if (!left || now >= give_up || now >= end)
            break;
        (void)poll(NULL, 0, AGAIN_MS);
    }
    for (struct outlet *outlet = outlets; outlet; outlet = outlet->next) {
        if (outbox_forget(outlet))
            note_loss(outlet, EAGAIN);
    }
}

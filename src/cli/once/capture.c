/* SPDX-License-Identifier: MIT */
/*
 * Keeps what a command prints, and passes it on.
 *
 * Invariant: until the command has ended, nothing here blocks, whoever reads
 * the output or does not: the lease is renewed from the same loop. While some
 * of the output is still to be passed on, no more of it is read, so that the
 * command waits for its reader as it would without nxlock.
 */
#include "cli/once/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/report/outbox.h"

#define CHUNK 65536

static bool add_bytes(struct bytes *bytes, const char *data, size_t length)
{
    size_t room = bytes->room;

    while (room < bytes->length + length)
        room = room > 0 ? 2 * room : CHUNK;
    if (room != bytes->room) {
        char *more = realloc(bytes->data, room);
        if (!more)
            return false;
        bytes->data = more;
        bytes->room = room;
    }
    memcpy(bytes->data + bytes->length, data, length);
    bytes->length += length;
    return true;
}

static void free_bytes(struct bytes *bytes)
{
    free(bytes->data);
    *bytes = (struct bytes){NULL, 0, 0};
}

int capture_open(struct capture *capture, bool passes)
{
    int ends[2];

    *capture = (struct capture){.end = -1, .in = -1, .out = -1};
    if (pipe2(ends, O_CLOEXEC) != 0)
        return errno;
    capture->in = ends[0];
    capture->end = ends[1];
    (void)fcntl(capture->in, F_SETFL, O_NONBLOCK);
    if (passes)
        capture->out = STDOUT_FILENO;
    return 0;
}

void capture_started(struct capture *capture)
{
    if (capture->end >= 0)
        close(capture->end);
    capture->end = -1;
}

static bool is_passing(const struct capture *capture)
{
    return capture->pending.length > capture->passed;
}

void capture_poll(
    const struct capture *capture, struct pollfd *in, struct pollfd *out)
{
    bool passing = is_passing(capture);

    *in = (struct pollfd){passing ? -1 : capture->in, POLLIN, 0};
    *out = (struct pollfd){passing ? capture->out : -1, POLLOUT, 0};
}

static void stop_passing(struct capture *capture, int error)
{
    capture->error = error;
    free_bytes(&capture->pending);
    capture->passed = 0;
}

/* Passes on what the output takes now. */
static void pass_on(struct capture *capture)
{
    while (is_passing(capture)) {
        ssize_t put =
            outbox_put(capture->out, capture->pending.data + capture->passed,
                capture->pending.length - capture->passed);
        if (put < 0 && errno == EAGAIN)
            return;
        if (put >= 0)
            capture->passed += (size_t)put;
        else if (errno != EINTR)
            stop_passing(capture, errno);
    }
    capture->pending.length = capture->passed = 0;
}

/* Keeps all of it or nothing: half an output would pass for a whole one. */
static void keep(struct capture *capture, const char *data, size_t length)
{
    if (capture->result_omitted)
        return;
    if (capture->kept.length + length <= NXL_ONCE_RESULT_MAX &&
        add_bytes(&capture->kept, data, length))
        return;
    capture->result_omitted = true;
    free_bytes(&capture->kept);
}

/* Reads once, at most so much. Returns how much; 0: there is nothing to read.
 */
static size_t read_some(struct capture *capture, size_t most)
{
    char data[CHUNK];
    ssize_t got;

    do
        got = read(capture->in, data, most < CHUNK ? most : CHUNK);
    while (got < 0 && errno == EINTR);
    if (got == 0) {
        close(capture->in);
        capture->in = -1;
    }
    if (got <= 0)
        return 0;
    keep(capture, data, (size_t)got);
    if (capture->out >= 0 && capture->error == 0 &&
        !add_bytes(&capture->pending, data, (size_t)got))
        stop_passing(capture, ENOMEM);
    return (size_t)got;
}

void capture_turn(struct capture *capture)
{
    pass_on(capture);
    if (capture->in >= 0 && !is_passing(capture) &&
        read_some(capture, CHUNK) > 0)
        pass_on(capture);
}

void capture_drain(struct capture *capture)
{
    int left = 0;

    /* What is in the pipe now: a process that was left behind may go on. */
    if (capture->in >= 0 && ioctl(capture->in, FIONREAD, &left) != 0)
        left = 0;
    while (left > 0) {
        size_t got = read_some(capture, (size_t)left);
        if (got == 0)
            break;
        left -= (int)got;
    }
    pass_on(capture);
}

/* What happens to the lock now is no concern of CMD, which has ended. Unread
 * events would keep poll() from waiting. */
static void drop_events(struct session *session)
{
    nxl_event event;

    while (nxl_client_next_event(session->client, &event))
        ;
}

bool capture_flush(
    struct capture *capture, struct session *session, uint64_t until)
{
    while (is_passing(capture)) {
        if (nxl_now_ns() >= until) {
            stop_passing(capture, ETIMEDOUT);
            break;
        }
        drop_events(session);
        session_poll_nothing(session);
        session->also[0] = (struct pollfd){capture->out, POLLOUT, 0};
        (void)session_turn(session, until);
        session_poll_nothing(session);
        pass_on(capture);
        int signo = session_signal_ending(session);
        if (signo != 0 && is_passing(capture)) {
            session->caught = signo;
            stop_passing(capture, EINTR);
        }
    }
    errno = capture->error;
    return capture->error == 0;
}

void capture_close(struct capture *capture)
{
    capture_started(capture);
    if (capture->in >= 0)
        close(capture->in);
    capture->in = capture->out = -1;
    free_bytes(&capture->kept);
    free_bytes(&capture->pending);
}

bool capture_print(struct session *session, const char *data, size_t length)
{
    struct capture capture = {.end = -1, .in = -1, .out = STDOUT_FILENO};

    if (length > 0 && !add_bytes(&capture.pending, data, length))
        stop_passing(&capture, ENOMEM);
    pass_on(&capture);
    bool ok = capture_flush(&capture, session, NEVER);
    int error = errno;
    capture_close(&capture);
    errno = error;
    return ok;
}

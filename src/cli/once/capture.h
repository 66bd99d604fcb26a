/* SPDX-License-Identifier: MIT */
/*
 * Keeps what a command prints to its standard output, and passes it on as it
 * comes.
 */
#ifndef NXLOCK_CLI_ONCE_CAPTURE_H
#define NXLOCK_CLI_ONCE_CAPTURE_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

#include "cli/run/session.h"

struct bytes {
    char *data;
    size_t length, room;
};

struct capture {
    int end;             /* of the pipe, for the command; -1: closed */
    int in;              /* ours; -1: closed */
    int out;             /* where it is passed on; -1: nowhere */
    int error;           /* errno, if it could not be passed on; 0: it could */
    bool result_omitted; /* it is longer than NXL_ONCE_RESULT_MAX */
    struct bytes kept;
    struct bytes pending; /* not passed on yet: */
    size_t passed;        /* of these */
};

/* passes: to standard output, else it is only kept. 0, or an errno. Call
 * capture_close() in both cases. */
int capture_open(struct capture *capture, bool passes);

/* The command was started, or cannot be: closes its end. */
void capture_started(struct capture *capture);

/* What to wait for before the next capture_turn(). */
void capture_poll(
    const struct capture *capture, struct pollfd *in, struct pollfd *out);
/* Reads and passes on. Does not block. */
void capture_turn(struct capture *capture);

/* After the command's end: reads the rest. What processes that it left behind
 * print from now on is lost. */
void capture_drain(struct capture *capture);
/* Passes the rest on; blocks as long as nobody reads, until a signal arrives,
 * which is stored in session->caught, or until that time of nxl_now_ns(). The
 * lock is renewed meanwhile. False: it could not all be passed on, now or
 * earlier, and errno says why. */
bool capture_flush(
    struct capture *capture, struct session *session, uint64_t until);

void capture_close(struct capture *capture);

/* Prints length bytes as capture_flush() does. */
bool capture_print(struct session *session, const char *data, size_t length);

#endif

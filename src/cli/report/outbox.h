/* SPDX-License-Identifier: MIT */
/*
 * Messages for readers that may be slow: standard error, and the log.
 */
#ifndef NXLOCK_CLI_REPORT_OUTBOX_H
#define NXLOCK_CLI_REPORT_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/un.h>

/* How long outbox_end() waits for a reader that reads nothing at all. */
#define OUTBOX_PATIENCE (5000000000ULL)

/* Where messages go. Static: it is still needed at the end of the process. */
struct outlet {
    int fd;
    /* Where each message is sent as a datagram; NULL: it is written to a pipe,
     * a terminal, a stream socket or a file. */
    const struct sockaddr_un *to;
    void (*lost)(int why); /* a message was lost; an errno. NULL: nothing */
    /* Of outbox.c: */
    struct held *first, *last; /* messages that are kept */
    size_t bytes;              /* of these */
    size_t dropped;            /* messages that were dropped before them */
    bool stopped;              /* a terminal that takes nothing */
    struct outlet *next;
};

/* Writes a message, of at most PIPE_BUF bytes. Does not block: one that is not
 * taken now is kept, and written before the next one, by outbox_turn() or by
 * outbox_end(). If the reader is gone, the message is dropped. */
void outbox_write(struct outlet *outlet, const char *text, size_t length);

/* Writes what is taken now. Other processes share the descriptor, so between
 * poll() and a write they may take the room that there was, and the descriptor
 * must not be made non-blocking. So a pipe or a terminal is opened once more,
 * for one write. One that belongs to another user, say, cannot be opened: it
 * gets a little after poll(), and only then this may block. Returns how much
 * was taken; -1: nothing, and errno says why, EAGAIN if there was no room. */
ssize_t outbox_put(int fd, const char *data, size_t length);

/* Writes what was kept and is taken now. Does not block. */
void outbox_turn(void);

/* Drops what was kept. False: nothing. */
bool outbox_forget(struct outlet *outlet);

/* Before this process ends, and after it has released everything: writes what
 * was kept, until all is written or nothing was taken for that many ns. */
void outbox_end(uint64_t patience);

#endif

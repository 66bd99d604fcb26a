/* SPDX-License-Identifier: MIT */
/*
 * A question to one server, see nxl_client_ask(): an operation of a handle
 * that nobody else has and that locks nothing, so that time-outs, threads and
 * the end of a client are the same as for every other call.
 */
#ifndef NXLOCK_API_ASK_H
#define NXLOCK_API_ASK_H

#include "api/client.h"

struct question {
    unsigned server;
    const struct slice *words;
    size_t count;
    struct leaves leaves;
    bool again; /* it has been lost with its connection once */
};

/* May this be asked? Then NULL, else why not: words for a message in which
 * the command stands before them. */
const char *ask_refusal(const struct slice *words, size_t count);

/* All need the client's mutex. */
int ask_begin(struct nxl_lock *lock, struct question *ask, uint64_t now);
void ask_outcome(
    struct operation *op, const struct completion *c, uint64_t now);
void ask_late(struct operation *op, uint64_t now);
void ask_cancel(struct operation *op, uint64_t now);

#endif

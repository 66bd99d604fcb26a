/* SPDX-License-Identifier: MIT */
/* What errmsg says: the server, its words, the remedy, in that order. */
#ifndef NXLOCK_API_MESSAGE_H
#define NXLOCK_API_MESSAGE_H

#include "api/client.h"

#define MESSAGE_FORKED                                                         \
    "this handle was made before fork(); make a new client in the child"

enum nxl_result result_of_fault(enum fault fault);
int result_of(const struct operation *op, enum verdict verdict);

/* A server gave no decision. */
void message_fault(struct nxl_lock *lock, const struct server *server,
    const struct outcome *outcome);

/* Nothing was heard of it: how far it got. */
void message_add_silence(struct text *t, const struct server *server);

/* A server's part in the present operation. */
void message_note(
    struct nxl_lock *lock, unsigned server, const struct outcome *outcome);

/* Adds what the last operation met at one of several servers, or nothing. */
void message_at(
    const struct nxl_lock *lock, unsigned server, struct text *text);

/* Adds which servers need somebody to mend them, and why, although others were
 * enough; *young: some are only to be waited for. False: there are none. */
bool message_minority(
    const struct nxl_lock *lock, bool *young, struct text *text);

/* The operation is over with result; completes or replaces what
 * message_fault left. */
void message_result(struct nxl_lock *lock, enum fault fault);

/* A call was refused: words without a full stop. Returns NXL_E_INVALID. */
int message_invalid(struct text *message, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif

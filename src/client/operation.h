/* SPDX-License-Identifier: MIT */
/*
 * An operation: one verb, one request at each server, and notes on the results
 * for messages. Its type, not the operation, knows who started it and what the
 * outcomes mean. All calls need the client's mutex.
 *
 * Invariant: a request is never sent while the one before it is under way.
 */
#ifndef NXLOCK_CLIENT_OPERATION_H
#define NXLOCK_CLIENT_OPERATION_H

#include "client/client.h"

struct operation;

/* What a kind of operation does; one table row for each kind. */
struct operation_type {
    void (*outcome)(struct operation *op, unsigned server,
        const struct outcome *outcome, uint64_t now);
    void (*tick)(struct operation *op, uint64_t now); /* its timer is due */
};

/* How one server answered the present operation, or the last one. */
struct note {
    enum { NOTE_NONE, NOTE_ASKED, NOTE_YES, NOTE_NO, NOTE_FAULT } kind;
    enum fault fault;
    char words[208]; /* FAULT: for people */
};

/* Requests without an answer that may have been applied; see unanswered.h. */
struct unanswered {
    unsigned servers; /* by bits */
    unsigned first;   /* the server that words are about */
    unsigned round;
    char words[192];
};

struct operation {
    const struct operation_type *type;
    struct nxl_client *client;
    struct verb verb;
    struct kept_commands *kept; /* NULL: commands are formatted each time */
    struct timer timer;
    const char *name;         /* of its requests, for messages */
    unsigned round;           /* of requests; see unanswered.h */
    struct note *notes;       /* one a server */
    struct request *requests; /* likewise */
    struct unanswered unanswered, unanswered_now; /* _now: of this round */
    struct text message;
};

/* Initialises an operation on key. False: out of memory; call operation_free()
 * in any case. */
bool operation_init(struct operation *op, const struct operation_type *type,
    struct nxl_client *client, struct slice key);
void operation_free(struct operation *op);

/* A new operation begins: the notes on the last one are cleared. */
void operation_begin(struct operation *op, const char *name);

/* Sends op->verb to server. */
void operation_send(struct operation *op, unsigned server, uint64_t now);

/* Notes the outcome for a server, whether the server or the library decided
 * it. */
void operation_note(
    struct operation *op, unsigned server, const struct outcome *outcome);

/* Cancels the request at server. undo: the token must not stay there. True: no
 * byte of the request had been sent. */
bool operation_abandon(
    struct operation *op, unsigned server, bool undo, uint64_t now);

/* The number of servers with that kind of note. */
unsigned operation_notes(const struct operation *op, int kind);

#endif

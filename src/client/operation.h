/* SPDX-License-Identifier: MIT */
/*
 * An operation: one verb, one request at each server, and notes on the results
 * for messages. Its type, not the operation, knows who started it and what the
 * outcomes mean. All calls need the client's mutex.
 *
 * Invariant: a request is never sent while the one before it is under way;
 * nothing but words for people is allocated after operation_init(). The
 * requests of all servers point to the same verb: it is only written for the
 * next round, whose kind of verb is the same or begins when no request is under
 * way.
 */
#ifndef NXLOCK_CLIENT_OPERATION_H
#define NXLOCK_CLIENT_OPERATION_H

#include "client/client.h"

struct operation;

/* What a kind of operation does; one table row for each kind. */
struct operation_type {
    void (*outcome)(struct operation *op, unsigned server,
        const struct outcome *outcome, uint64_t now);
    /* Its timer is due; or was due, and the call has ended since. */
    void (*tick)(struct operation *op, uint64_t now);
};

/* How one server answered the present operation, or the last one. */
struct note {
    enum { NOTE_NONE, NOTE_ASKED, NOTE_YES, NOTE_NO, NOTE_FAULT } kind;
    enum fault fault;
    char *words; /* see note_words(); allocated with the first fault */
};

/* Requests without an answer that may have been applied; see unanswered.h. */
struct unanswered {
    struct unanswered_round {
        unsigned servers; /* by bits */
        unsigned first;   /* the server that words are about */
        unsigned round;
        bool applied; /* there; but it does not count */
        char words[192];
    } now, last; /* now: of the present round. last: see the invariant there */
};

struct operation {
    const struct operation_type *type;
    struct nxl_client *client;
    struct verb verb;
    struct command_cache *cache; /* NULL: commands are formatted each time */
    struct timer timer;
    const char *name;              /* of its requests, for messages */
    unsigned round;                /* of requests; see unanswered.h */
    bool errmsg_lost;              /* there was no memory for it */
    struct note *notes;            /* one a server */
    struct request *requests;      /* likewise */
    struct unanswered *unanswered; /* NULL: all were answered, or no memory */
    struct text *errmsg;           /* see operation_errmsg(); NULL: none yet */
};

/* Initialises an operation on key. False: out of memory; call operation_free()
 * in any case. */
bool operation_init(struct operation *op, const struct operation_type *type,
    struct nxl_client *client, struct slice key);
void operation_free(struct operation *op);

/* A new operation begins: the notes on the last one are cleared. */
void operation_begin(struct operation *op, const char *name);

/* Does a request need a spare cleaner (net/spare.h)? */
enum spare_need {
    SPARE_UNNEEDED,
    SPARE_WANTED, /* it is reserved if there is memory */
    SPARE_NEEDED  /* the request must not be sent without */
};

/* Sends op->verb to server. False: there is no memory for the spare. */
bool operation_send(
    struct operation *op, unsigned server, enum spare_need need, uint64_t now);

/* Notes the outcome for a server, whether the server or the library decided
 * it. */
void operation_note(
    struct operation *op, unsigned server, const struct outcome *outcome);

/* Cancels the request at server. undo: the token must not stay there. True: it
 * has certainly changed nothing there, see server_cancel(). */
bool operation_abandon(
    struct operation *op, unsigned server, bool undo, uint64_t now);

/* FAULT: the reason, for people. */
const char *note_words(const struct note *note);

/* The message, to be written to. It takes no memory before it is first asked
 * for; without memory, operation_words() says so instead of what is written. */
struct text *operation_errmsg(struct operation *op);
/* The same with that text; an empty one takes no memory. */
void operation_set_errmsg(struct operation *op, const struct text *message);
/* The message as it is now. */
const char *operation_words(const struct operation *op);

/* The number of servers with that kind of note. */
unsigned operation_count_notes(const struct operation *op, int kind);

#endif

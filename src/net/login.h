/* SPDX-License-Identifier: MIT */
/*
 * User and password for the connections to one server: from its URL, from a
 * file, or from a callback of the program. A file and a callback are asked
 * again for each connection. A callback that takes longer than an attempt to
 * connect is kept for the next attempt, so that it can finish, and there is
 * never more than one.
 */
#ifndef NXLOCK_NET_LOGIN_H
#define NXLOCK_NET_LOGIN_H

#include "base/redact.h"
#include "config/params.h"
#include "model/fault.h"
#include "net/job.h"
#include "net/poller.h"

struct login {
    const struct login_settings *settings; /* of the server's URL */
    unsigned server;                       /* its number, for the callback */
    const struct poller *poller;           /* outlives every start */
    struct source *source;
    /* In use: data NULL if there is none. Valid until the next start. */
    struct slice user, password;
    struct slice former;   /* the password before it; its echo may still come */
    struct login_job *job; /* the callback under way; it outlives attempts */
    bool busy;             /* an attempt waits for it */
    uint64_t refused_until; /* the server has refused the ones in use; so long
                             * nothing but other ones is worth a connection */
    bool after_refusal;     /* these have replaced refused ones */
    enum fault fault;       /* FAILED: its class */
};

enum login_state { LOGIN_READY, LOGIN_WAIT, LOGIN_FAILED };

/* settings must outlive it. */
void login_init(
    struct login *l, const struct login_settings *settings, unsigned server);
/* Frees everything. A callback under way goes on: see login_detach(). */
void login_free(struct login *l);
/* In a fork()ed child: only closes the descriptor. */
void login_close_in_child(struct login *l);

/* Is there a password, or a source of one, so that AUTH has to be sent? */
bool login_is_needed(const struct login *l);

/* Fetches the credentials for a connection. WAIT: call login_step() when the
 * poller reports its source. FAILED: *error says why, with secrets hidden; if
 * the class is FAULT_DENIED, they are still those that the server has refused,
 * and *error is unchanged. */
enum login_state login_start(struct login *l, const struct secrets *secrets,
    uint64_t now, struct text *error);
enum login_state login_step(struct login *l, const struct secrets *secrets,
    uint64_t now, struct text *error);
/* Gives up this attempt, but keeps a callback under way. */
void login_cancel(struct login *l);

/* The server has refused them. True: connect again, because a file or callback
 * may have other ones by now; if not, the next start fails. Only once in a
 * row. */
bool login_note_refusal(struct login *l, uint64_t now);
/* A new request waits for the connection. True: drops a callback's result that
 * was not used yet and would only confirm a refusal, so start again: both may
 * be out of date. */
bool login_drop_stale(struct login *l, uint64_t now);
/* The server has accepted them. */
void login_note_success(struct login *l);

/* Takes out the callback under way, whose job the caller waits for and drops.
 * NULL: there is none. */
struct job *login_detach(struct login *l);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * One lock on one client, driven together with the signals of this process
 * from one poll loop.
 */
#ifndef NXLOCK_CLI_RUN_SESSION_H
#define NXLOCK_CLI_RUN_SESSION_H

#include <poll.h>
#include <signal.h>

#include <nxlock.h>

#include "cli/args.h"
#include "cli/clock.h"

/* The last renewal of the session's lock. */
struct renewal {
    unsigned tries; /* renewals that have ended */
    bool unread;    /* renewal_status_turn() has not seen the result yet */
    int result;
    int64_t left_ms; /* what was left of the lease then */
    char why[512];
};

struct session {
    const struct args *args;
    nxl_client *client;
    nxl_client *asker; /* see session_asker(); NULL: not made */
    nxl_lock *lock;
    /* While the session is about one name of several, see session_about(). */
    struct args one;
    const struct args *all;      /* NULL: it is about all of them */
    nxl_lock *all_lock;          /* see session_enter(); NULL: it is lock */
    sigset_t inherited;          /* the mask this process was started with */
    sigset_t watched;            /* the signals that arrive at signals */
    struct sigaction endured[4]; /* as they were before they were ignored */
    int signals;                 /* descriptor; -1: none */
    int timer;                   /* descriptor; -1: poll's own time-out only */
    struct pollfd also[3];       /* more to poll; fd -1: none */
    struct sigaction chld;       /* SIGCHLD as it was, once expects_child */
    bool expects_child;
    struct renewal renewal; /* run: the last renewal */
    int caught;             /* the first signal that ended a wait, or 0 */
    const char *label;      /* of the lock */
    bool fenced;            /* run: the lock gets a fencing token */
    char unfenced[512];     /* run: why it gets none; "": it gets one */
    char refused[512];      /* how the last attempt to acquire failed, or "" */
    uint64_t granted;       /* when the lock was acquired, of nxl_now_ns() */
};

/* Before session_open(), which does the same, if that may not be reached:
 * session_close() can be called then. */
void session_init(struct session *session, const struct args *args);

/* Creates client and lock; label is that of nxl_lock_options, and must outlive
 * the session. From here on signals that would end the process are read from
 * the session, except those that were ignored. 0, or an exit code after
 * reporting why; call session_close() in both cases. */
int session_open(
    struct session *session, const struct args *args, const char *label);

/* The same for commands that use the blocking API: signals keep their effect,
 * because no lock could be left behind. Without a NAME, and for list, there is
 * no lock handle. */
int session_open_plain(struct session *session, const struct args *args);

/* Frees everything; a held lock is released. If a keyboard signal ended a wait,
 * ends this process by that signal, so that a script around it ends too. */
void session_close(struct session *session);

/* Does the command draw a fencing token, if the server can? With permits
 * several holders are right at once; and readers over several servers have no
 * number in common. */
bool session_may_fence(const struct session *session);

/* Replaces the lock, which is not held, by one without a fencing token, because
 * of why. Returns a result of nxl_lock_new(). */
int session_drop_fence(struct session *session, const char *why);

/* With several names: from now on args are about name i alone, so that a
 * message, or a question about its key, is about that one. The lock remains
 * that of all names. */
void session_about(struct session *session, size_t i);

/* Undoes that. */
void session_about_all(struct session *session);

/* The same, and the session's lock is a handle of that name alone, which does
 * not hold it: for what a handle of several names cannot do. With one name,
 * nothing changes. A result of nxl_lock_new(). Call session_leave() even after
 * a failure. */
int session_enter(struct session *session, size_t i);
void session_leave(struct session *session);

/* A client for queries, which need the blocking API: the session's own, or a
 * second one, made when it is needed first. Not while a lock is held or waited
 * for: queries block. NULL: no memory. */
nxl_client *session_asker(struct session *session);

/* Does a signal end a process by default, other than those that a bug in the
 * process causes (SEGV, ABRT ...)? */
bool session_signal_ends(int signo);

/* In a new process: restores the signals that the session ignores. */
void session_unignore(const struct session *session);

/* When nothing is held any more, nor will be: signals end the process again, so
 * that it may block. */
void session_unblock_signals(const struct session *session);

/* Waits until standard output is writable. False: a signal came first, or the
 * time until has come. */
bool session_can_print(struct session *session, uint64_t until);

/* Reads signo from the session too. */
void session_watch(struct session *session, int signo);

/* The next signal that arrived, or 0. Does not block. */
int session_signal(struct session *session);
/* Reads all of them: the first that would end a process, or 0. */
int session_signal_ending(struct session *session);

/* Clears session->also. */
void session_poll_nothing(struct session *session);

/* Sleeps until the library has something to do (and does it), a signal
 * arrives or wake_ns of nxl_now_ns() is reached. NXL_OK, or what
 * nxl_client_process() returned. */
int session_turn(struct session *session, uint64_t wake_ns);

/* Waits for the result of a call that a ..._start() began; started is what that
 * returned. A signal cancels the call and is stored in session->caught. */
int session_finish(struct session *session, int started);
/* The same, but a signal only sets *signalled. */
int session_await(struct session *session, int started, bool *signalled);

/* If a signal has arrived, cancels what is in progress on the lock and stores
 * the signal in session->caught. */
void session_cancel_on_signal(struct session *session);

/* The exit code after a signal cancelled something, or 0. */
int session_interrupted(const struct session *session);

/* Reports why an attempt to do what failed, unless a signal ended it. Returns
 * the exit code. */
int session_failed(struct session *session, const char *what, int result);

/* Ends the process without freeing the lock, which would release it. Reports
 * the end before. */
_Noreturn void session_leave_held(const struct session *session, int code);

/* Reports a failed attempt to do what, with the lock's error message. */
void session_complain(struct session *session, const char *what, int result);

#endif

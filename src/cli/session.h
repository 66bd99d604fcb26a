/* SPDX-License-Identifier: MIT */
/*
 * One lock on one client, driven together with the signals of this process
 * from one poll loop.
 */
#ifndef NXLOCK_CLI_SESSION_H
#define NXLOCK_CLI_SESSION_H

#include <signal.h>

#include <nxlock.h>

#include "cli/args.h"
#include "cli/clock.h"
#include "cli/urls.h"

/* The last renewal of the session's lock. */
struct renewal {
    unsigned tries; /* that are over */
    int result;
    int64_t left_ms; /* of the lease, then */
    char why[256];
};

struct session {
    const struct args *args;
    nxl_client *client;
    nxl_lock *lock;
    sigset_t inherited;          /* the mask this process was started with */
    sigset_t watched;            /* the signals that arrive at signals */
    struct sigaction endured[4]; /* as they were before they were ignored */
    int signals;                 /* descriptor; -1: none */
    int timer;                   /* descriptor; -1: poll's own time-out only */
    int also;                    /* descriptor to wake for, too; -1: none */
    struct renewal renewal;      /* of run, whose lock is kept alive */
    int caught;                  /* the first signal that ended a wait, or 0 */
    const char *label;           /* of the lock */
    bool fenced;                 /* the lock draws numbers */
    bool down;        /* the last acquire found no server to decide */
    bool unlocked;    /* it works on without the lock */
    uint64_t granted; /* when the lock was acquired, of nxl_now_ns() */
};

/* The URLs of args, with the parameters of the options. False: no memory. */
bool session_urls(const struct args *args, struct url_list *list);

/* Makes client and lock; label as nxl_lock_options, which has to stay. From
 * here on the signals that end a process by a person's or the system's wish
 * are read from the session, except those that the caller ignores. 0, or an
 * exit code after saying why; session_close() is due in both cases. */
int session_open(
    struct session *session, const struct args *args, const char *label);

/* For commands that only ask, by the blocking door: signals stay as they were,
 * for there is nothing that one could leave behind. Without a NAME, and for
 * list, there is no lock. */
int session_open_plain(struct session *session, const struct args *args);

/* Frees everything; a lock that is held is released. If the keyboard ended a
 * wait, ends this process by that signal, for the sake of the script around. */
void session_close(struct session *session);

/* Exchanges the lock, which is not held, for one that draws no fencing
 * number. A result of nxl_lock_new(). */
int session_drop_fence(struct session *session);

/* Does a signal end a process by default, and is no fault of its own? */
bool session_signal_ends(int signo);

/* In a new process: puts back what the session ignores. */
void session_unignore(const struct session *session);

/* Waits until standard output takes bytes. False: a signal came before, or
 * the time until. */
bool session_can_print(struct session *session, uint64_t until);

/* Reads signo from the session too. */
void session_watch(struct session *session, int signo);

/* The next signal that arrived, or 0. Does not block. */
int session_signal(struct session *session);

/* Sleeps until the library has something to do (and does it), a signal
 * arrives or wake_ns of nxl_now_ns() is reached. NXL_OK, or what
 * nxl_client_process() returned. */
int session_turn(struct session *session, uint64_t wake_ns);

/* Drives what a ..._start() returned to its result. A signal cancels it and
 * is kept in session->caught. */
int session_finish(struct session *session, int started);

/* A signal that has arrived cancels what is in progress on the lock and is
 * kept in session->caught. */
void session_cancel_on_signal(struct session *session);

/* The exit code after a signal cancelled something, or 0. */
int session_interrupted(const struct session *session);

/* Says why what was attempted failed, unless a signal ended it; the exit
 * code. */
int session_failed(struct session *session, const char *what, int result);

/* Ends the process without ending the lock: closing would release it. */
_Noreturn void session_leave_held(int code);

/* Says what became of an attempt on the lock, in the lock's words. */
void session_complain(struct session *session, const char *what, int result);

/* May it say what is no error? Cron mails whatever a job prints: so only to a
 * terminal, or with -v. */
bool session_talks(const struct session *session);

#endif

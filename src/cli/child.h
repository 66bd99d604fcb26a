/* SPDX-License-Identifier: MIT */
/*
 * The command that runs under the lock: a process group of its own, with the
 * terminal if we have it.
 */
#ifndef NXLOCK_CLI_CHILD_H
#define NXLOCK_CLI_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "cli/session.h"

struct child {
    pid_t pid;        /* and its process group */
    int told;         /* descriptor that tells why exec failed */
    int exec_error;   /* once reaped: that errno; 0: it was executed */
    int code;         /* once reaped: 0-255, or 128 + signal */
    int stop_signal;  /* once stopped: by what */
    int tty;          /* descriptor of our terminal, or -1 */
    bool terminal;    /* it is to have that */
    bool stopped;     /* and has not been continued by us */
    int typed;        /* the keyboard's signal that we passed on, or 0 */
    int keyboard;     /* once reaped: the keyboard's signal that ended it */
    bool had_terminal; /* likewise: it got that one, and we did not */
};

enum child_state {
    CHILD_RUNS,
    CHILD_STOPPED, /* told once for every stop */
    CHILD_ENDED    /* not reaped yet: its group's number is still its own */
};

/* Starts words[0] with the signal mask and dispositions that the session found
 * and, for SIGCHLD, which the caller blocks, *chld. 0, or an errno. */
int child_start(struct child *child, char **words,
    const struct session *session, const struct sigaction *chld);

/* Does not block. */
enum child_state child_poll(struct child *child);

/* Sends signo to the whole group; one that would otherwise wait until a
 * stopped group runs again is followed by SIGCONT when wake is set. */
void child_signal(const struct child *child, int signo, bool wake);

/* After CHILD_STOPPED: stops this process as the shell expects it, if the
 * stop came from a terminal, and returns when it runs again: true if the
 * group should be continued. */
bool child_follow_stop(struct child *child);
/* Continues a stopped group, with the terminal if it had it. */
void child_resume(struct child *child);

/* After CHILD_ENDED: takes the terminal back and reaps. */
void child_reap(struct child *child);

/* What the keyboard ended should end the script, too, that we are a line of.
 * Where the command had the terminal, nobody else got the signal. Does not
 * come back if it ends us. */
void child_pass_keyboard(const struct child *child);

#endif

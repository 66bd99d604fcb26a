/* SPDX-License-Identifier: MIT */
/*
 * The command that runs under the lock, seen from nxlock: its watchdog, what
 * that tells, and the terminal.
 */
#ifndef NXLOCK_CLI_CHILD_H
#define NXLOCK_CLI_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/descendants.h"
#include "cli/watchdog.h"

struct child {
    pid_t watchdog;       /* our child; 0: it is not there */
    pid_t pid;            /* of the command, and of its process group */
    int line;             /* our end of the socket */
    struct spared spared; /* children of ours that are others' */
    bool ended;           /* the command; code says how */
    bool gone;            /* all that it had started, too: the end */
    bool taken_over;      /* the watchdog is not there: we kill what is left: */
    struct left left;     /* so much */
    int no_process;       /* errno, if it could not be started at all */
    int exec_error;       /* errno; 0: it was executed */
    int code;             /* once ended: 0-255, or 128 + signal */
    int tty;              /* descriptor of our terminal, or -1 */
    bool terminal;        /* the command is to have it */
    uint64_t woken;       /* how many of our orders continue the group */
    int typed;            /* the keyboard's signal that we passed on, or 0 */
    int keyboard;         /* once ended: the keyboard's signal that did it */
    bool had_terminal;    /* likewise: it got that one, and we did not */
};

/* Before anything else. */
void child_init(struct child *child);

/* Starts the watchdog, and through it the command; completes plan with the
 * terminal and the socket, and closes both ends of its pipe. 0, or an
 * errno. */
int child_start(struct child *child, struct watchdog_plan *plan);

/* The next note of the watchdog's: an enum news, with *number; 0: none for now.
 * What concerns the terminal, and the end, is kept here. A stop that an order
 * of ours has ended, or is about to end, is not told. Once gone it is over with
 * the watchdog. NEWS_GONE comes always, also when the watchdog is killed. */
int child_news(struct child *child, int *number);

/* Tells the watchdog; it may be frozen, or not be there. */
void child_order(
    struct child *child, enum order order, int number, uint64_t time);

/* Kills the watchdog, and then, in this and the following calls, everything. It
 * is to be called again and again until gone; line is closed. */
void child_take_over(struct child *child);

/* After NEWS_HALTED with that signal: stops this process as the shell expects
 * it, if the stop came from a terminal, and returns when it runs again: true
 * if the group should be continued. */
bool child_follow_stop(struct child *child, int signo);
/* Continues a stopped group, with the terminal if it had it. */
void child_resume(struct child *child);

/* Frees what is left; the watchdog ends. */
void child_close(struct child *child);

/* What the keyboard ended should end the script, too, that we are a line of.
 * If the command had the terminal, no other process got the signal. Does not
 * come back if it ends us. */
void child_pass_keyboard(const struct child *child);

#endif

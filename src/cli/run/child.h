/* SPDX-License-Identifier: MIT */
/*
 * The command that runs under the lock, as nxlock sees it: its watchdog, the
 * watchdog's notes, and the terminal.
 */
#ifndef NXLOCK_CLI_RUN_CHILD_H
#define NXLOCK_CLI_RUN_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/run/descendants.h"
#include "cli/run/watchdog.h"

struct child {
    pid_t watchdog;       /* our child; 0: none */
    pid_t pid;            /* of the command, and of its process group */
    int channel;          /* our end of the socket */
    struct spared spared; /* children that this process had before */
    bool ended;           /* the command has ended; code says how */
    bool gone;            /* so has everything that it started */
    bool taken_over;      /* no watchdog: this process kills what is left */
    struct left left;     /* taken_over: what was left at the last look */
    int no_process;       /* errno, if it could not be started at all */
    int exec_error;       /* errno; 0: it was executed */
    int code;             /* once ended: 0-255, or 128 + signal */
    bool signalled;       /* once ended: by a signal */
    int tty;              /* descriptor of our terminal, or -1 */
    bool terminal;        /* the command should have the terminal */
    uint64_t woken;       /* how many of our orders continued the group */
    int passed;           /* the signal that we passed on last, or 0 */
    int typed;            /* the same if the keyboard sent it, or 0 */
    int keyboard;         /* once ended: the keyboard signal that ended it */
    bool had_terminal;    /* once ended: it had the terminal, we did not */
};

/* Before anything else. */
void child_init(struct child *child);

/* Starts the watchdog, and through it the command; completes plan with the
 * terminal and the socket. 0, or an errno. */
int child_start(struct child *child, struct watchdog_plan *plan);

/* Returns the watchdog's next note, an enum news, with *number; 0: none for
 * now. Updates *child with what it says about the command's end and the
 * terminal. A stop that one of our orders has ended, or is about to end, is
 * left out. NEWS_GONE always comes, even if the watchdog is killed; after it
 * there is no watchdog. */
int child_news(struct child *child, int *number);

/* Sends an order to the watchdog. Does not block; the order is dropped if the
 * watchdog does not read, or is gone. */
void child_order(
    struct child *child, enum order order, int number, uint64_t time);

/* Kills the watchdog and the descendants that are visible. Call it again until
 * child->gone, because processes may have been missed. Closes channel. */
void child_take_over(struct child *child);

/* After NEWS_HALTED with that signal: if the stop came from a terminal, stops
 * this process too, as a shell expects, and returns when it is continued. True
 * if the group should then be continued. */
bool child_follow_stop(struct child *child, int signo);
/* Continues a stopped group, and gives it the terminal if it had it. */
void child_resume(struct child *child);

/* Closes the descriptors, which ends the watchdog. */
void child_close(struct child *child);

/* If a keyboard signal ended the command, ends this process by the same signal,
 * so that a shell script around it ends too. If the command had the terminal,
 * the rest of our group gets the signal as well. Does not return then. */
void child_pass_keyboard(const struct child *child);

#endif

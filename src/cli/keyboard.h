/* SPDX-License-Identifier: MIT */
/*
 * Ctrl-C and Ctrl-\: a shell script goes on after a line of it that exits, and
 * ends with one that the keyboard's signal ended.
 */
#ifndef NXLOCK_CLI_KEYBOARD_H
#define NXLOCK_CLI_KEYBOARD_H

#include <stdbool.h>
#include <sys/types.h>

/* SIGINT or SIGQUIT while our group has the terminal: it is the keyboard's. */
bool keyboard_sent(int signo);

/* Ends this process by the signal, 0 for target: its whole group with it. Does
 * nothing for signo 0. */
void keyboard_end(pid_t target, int signo);

/* Does with target what signo does by default, and comes back when that was a
 * stop which is over. */
void raise_default(pid_t target, int signo);

#endif

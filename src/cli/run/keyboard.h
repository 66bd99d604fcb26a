/* SPDX-License-Identifier: MIT */
/*
 * Ctrl-C and Ctrl-\: a shell script continues if a command in it exits, but
 * ends if a signal from the keyboard ended the command. So nxlock must end by
 * that signal too.
 */
#ifndef NXLOCK_CLI_RUN_KEYBOARD_H
#define NXLOCK_CLI_RUN_KEYBOARD_H

#include <stdbool.h>
#include <sys/types.h>

/* Did the keyboard send it? So it is taken for SIGINT or SIGQUIT while our
 * process group has the terminal. */
bool keyboard_sent(int signo);

/* Ends target by the signal, without a core dump; 0: the process group of this
 * process. Does nothing for signo 0. */
void keyboard_end(pid_t target, int signo);

/* Signals target with the default action of signo in this process. Returns if
 * that was a stop, and this process has been continued. */
void raise_default(pid_t target, int signo);

/* Gives the terminal tty to a process group. */
void give_terminal(int tty, pid_t group);

#endif

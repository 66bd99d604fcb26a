/* SPDX-License-Identifier: MIT */
/*
 * Ends this process by a signal from the keyboard, as a shell expects.
 *
 * Invariant: this process takes the default action of a signal only here, after
 * everything else is done.
 */
#include "cli/run/keyboard.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/report/outbox.h"

bool keyboard_sent(int signo)
{
    if (signo != SIGINT && signo != SIGQUIT)
        return false;
    int tty = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (tty < 0)
        return false;
    bool ours = tcgetpgrp(tty) == getpgrp();
    close(tty);
    return ours;
}

void raise_default(pid_t target, int signo)
{
    struct sigaction plain;
    struct sigaction own;
    sigset_t set;
    sigset_t before;

    memset(&plain, 0, sizeof(plain));
    plain.sa_handler = SIG_DFL;
    sigemptyset(&plain.sa_mask);
    sigaction(signo, &plain, &own);
    kill(target, signo);
    sigemptyset(&set);
    sigaddset(&set, signo);
    sigprocmask(SIG_UNBLOCK, &set, &before);
    sigprocmask(SIG_SETMASK, &before, NULL);
    sigaction(signo, &own, NULL);
}

void keyboard_end(pid_t target, int signo)
{
    static const struct rlimit no_core = {0, 0};

    if (signo == 0)
        return;
    outbox_end(OUTBOX_PATIENCE);
    (void)setrlimit(RLIMIT_CORE, &no_core);
    raise_default(target, signo);
}

void give_terminal(int tty, pid_t group)
{
    sigset_t output;
    sigset_t before;

    /* This process may be in the background: unless SIGTTOU is blocked,
     * tcsetpgrp() would stop it. */
    sigemptyset(&output);
    sigaddset(&output, SIGTTOU);
    sigprocmask(SIG_BLOCK, &output, &before);
    (void)tcsetpgrp(tty, group);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

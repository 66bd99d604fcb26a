/* SPDX-License-Identifier: MIT */
/*
 * The command that runs under the lock, as nxlock sees it, through its
 * watchdog.
 *
 * Invariant: the end of the command is reported only when nothing of it is
 * running, even if its watchdog was killed; and the terminal is ours again by
 * then.
 */
#include "cli/run/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/run/keyboard.h"
#include "cli/report/report.h"

static bool terminal_is_with(const struct child *child, pid_t group)
{
    return child->tty >= 0 && tcgetpgrp(child->tty) == group;
}

static int fork_watchdog(struct child *child, struct watchdog_plan *plan)
{
    int ends[2];

    if (!descendants_spare(&child->spared))
        return ENOMEM;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return errno;
    plan->channel = ends[1];
    /* If the watchdog dies, this process inherits its children. */
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    child->watchdog = fork();
    if (child->watchdog == 0) {
        close(ends[0]);
        watchdog_work(plan);
    }
    int why = child->watchdog < 0 ? errno : 0;
    close(ends[1]);
    child->channel = ends[0];
    if (why != 0)
        child->watchdog = 0;
    return why;
}

void child_init(struct child *child)
{
    memset(child, 0, sizeof(*child));
    child->channel = -1;
    child->tty = -1;
}

int child_start(struct child *child, struct watchdog_plan *plan)
{
    child->tty = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
    /* A pipe at the output leads to a process in our own group, a pager
     * perhaps, which needs the terminal; then the command gets it when it asks.
     */
    child->terminal = terminal_is_with(child, getpgrp()) &&
                      isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    plan->tty = child->tty;
    plan->terminal = child->terminal;
    return fork_watchdog(child, plan);
}

void child_order(
    struct child *child, enum order order, int number, uint64_t time)
{
    struct note note = {(int)order, number, time};

    if (order == ORDER_SIGNAL)
        child->passed = number;
    if (child->channel >= 0 && send(child->channel, &note, sizeof(note),
                                   MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
        child->woken += order_continues(&note);
}

/* The watchdog should end on its own, but it may have been stopped. It has not
 * been reaped, so its pid cannot belong to another process. */
static void end_watchdog(struct child *child)
{
    if (child->watchdog == 0)
        return;
    kill(child->watchdog, SIGKILL);
    while (waitpid(child->watchdog, NULL, 0) < 0 && errno == EINTR)
        ;
    child->watchdog = 0;
}

static void take_terminal(struct child *child)
{
    if (child->pid == 0 || !terminal_is_with(child, child->pid))
        return;
    child->had_terminal = true;
    give_terminal(child->tty, getpgrp());
}

/* in_group: a signal that ended it went to its whole group. The keyboard's
 * does; so does one that we passed on, but that was sent to us alone. */
static void command_ended(struct child *child, int status, bool in_group)
{
    int signo = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

    child->ended = true;
    take_terminal(child);
    child->signalled = signo != 0;
    child->code = signo != 0 ? EXIT_SIGNAL + signo : WEXITSTATUS(status);
    bool typed = signo == child->typed ||
                 (child->had_terminal && in_group && signo != child->passed);
    if (typed && (signo == SIGINT || signo == SIGQUIT))
        child->keyboard = signo;
}

static void take_note(struct child *child, const struct note *note)
{
    switch ((enum news)note->kind) {
    case NEWS_STARTED:
        child->pid = (pid_t)note->number;
        break;
    case NEWS_NO_PROCESS:
        child->no_process = note->number;
        child->gone = true;
        break;
    case NEWS_NOT_RUN:
        child->exec_error = note->number;
        break;
    case NEWS_ENDED:
        command_ended(child, note->number, note->time != 0);
        break;
    case NEWS_GONE:
        child->gone = true;
        break;
    case NEWS_HALTED:
    case NEWS_STOPPING:
        break;
    }
    if (child->gone)
        end_watchdog(child);
}

/* Has the command been continued since it stopped? Following the stop now would
 * stop this process while the command runs, or after it has ended. */
static bool is_stale(const struct child *child, const struct note *note)
{
    return note->kind == NEWS_HALTED && note->time != child->woken;
}

int child_news(struct child *child, int *number)
{
    struct note note;
    ssize_t got;

    *number = 0;
    if (child->gone || child->taken_over)
        return 0;
    /* ECONNRESET comes once if the watchdog ended with orders unread. What it
     * sent before that can still be received. */
    do
        got = recv(child->channel, &note, sizeof(note), MSG_DONTWAIT);
    while (got < 0 ? errno == EINTR || errno == ECONNRESET
                   : got == (ssize_t)sizeof(note) && is_stale(child, &note));
    if (got == (ssize_t)sizeof(note)) {
        take_note(child, &note);
        *number = note.number;
        return note.kind;
    }
    if (got < 0 && errno == EAGAIN)
        return 0;
    child_take_over(child);
    return child->gone ? NEWS_GONE : 0;
}

/* Killing the group needs no /proc. A child that has not been reaped keeps its
 * pid, and its group the same number. */
static void kill_group(const struct child *child)
{
    siginfo_t info;

    if (child->pid > 0 && waitid(P_PID, (id_t)child->pid, &info,
                              WEXITED | WNOHANG | WNOWAIT | __WALL) == 0)
        kill(-child->pid, SIGKILL);
}

void child_take_over(struct child *child)
{
    child->taken_over = true;
    end_watchdog(child);
    /* Reading /proc needs a descriptor, and this may be the last one. */
    if (child->channel >= 0)
        close(child->channel);
    child->channel = -1;
    take_terminal(child);
    kill_group(child);
    descendants_kill(&child->spared, &child->left);
    child->gone = child->left.count == 0;
}

bool child_follow_stop(struct child *child, int signo)
{
    bool wants_terminal = signo == SIGTTIN || signo == SIGTTOU;
    bool from_terminal = signo == SIGTSTP || wants_terminal;
    bool had_terminal = terminal_is_with(child, child->pid);
    static const struct timespec at_once = {0, 0};
    sigset_t own;

    if (wants_terminal && terminal_is_with(child, getpgrp())) {
        child->terminal = true;
        return true;
    }
    if (!from_terminal && !had_terminal)
        return false; /* kill -STOP, not the terminal: do not follow it */
    if (had_terminal)
        give_terminal(child->tty, getpgrp());
    /* The terminal stopped the child's group only. Without nxlock it would have
     * stopped the rest of our job too, so stop that (only this process if the
     * command did not have the terminal). The kernel discards the signal if no
     * process could continue us. */
    raise_default(had_terminal ? 0 : getpid(), from_terminal ? signo : SIGTSTP);
    /* The CONT that ended our stop is not for the command. */
    sigemptyset(&own);
    sigaddset(&own, SIGCONT);
    (void)sigtimedwait(&own, NULL, &at_once);
    child->terminal = terminal_is_with(child, getpgrp());
    /* A command that reads the terminal from the background would only stop
     * again. */
    return signo == SIGTSTP || child->terminal;
}

void child_resume(struct child *child)
{
    if (child->terminal)
        give_terminal(child->tty, child->pid);
    child_order(child, ORDER_RESUME, 0, 0);
}

void child_close(struct child *child)
{
    if (child->channel >= 0)
        close(child->channel);
    if (child->tty >= 0)
        close(child->tty);
    child->channel = child->tty = -1;
    descendants_free(&child->spared);
}

void child_pass_keyboard(const struct child *child)
{
    keyboard_end(child->had_terminal ? 0 : getpid(), child->keyboard);
}

/* SPDX-License-Identifier: MIT */
/*
 * Keeps: the group is only signalled while its leader is not reaped, so a
 * signal never reaches a stranger; and the command starts with the mask and
 * dispositions that this process was started with.
 */
#include "cli/child.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/keyboard.h"
#include "cli/report.h"

/* Gives the terminal to a process group. The one who gives may be in the
 * background: without the mask it would be stopped for that. */
static void give_terminal(const struct child *child, pid_t group)
{
    sigset_t output;
    sigset_t before;

    sigemptyset(&output);
    sigaddset(&output, SIGTTOU);
    sigprocmask(SIG_BLOCK, &output, &before);
    (void)tcsetpgrp(child->tty, group);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

static bool terminal_is_with(const struct child *child, pid_t group)
{
    return child->tty >= 0 && tcgetpgrp(child->tty) == group;
}

_Noreturn static void become(const struct child *child, char **words,
    const struct session *session, const struct sigaction *chld, pid_t parent,
    int told)
{
    setpgid(0, 0);
    if (child->terminal)
        give_terminal(child, getpid());
    /* If nxlock is killed outright nobody renews the lease any more. */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(EXIT_INTERNAL);
    sigaction(SIGCHLD, chld, NULL);
    session_unignore(session);
    sigprocmask(SIG_SETMASK, &session->inherited, NULL);
    execvp(words[0], words);
    int why = errno;
    while (write(told, &why, sizeof(why)) < 0 && errno == EINTR)
        ;
    _exit(why == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUN);
}

int child_start(struct child *child, char **words,
    const struct session *session, const struct sigaction *chld)
{
    int ends[2];
    pid_t parent = getpid();

    memset(child, 0, sizeof(*child));
    child->tty = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
    /* A pipe at the output leads to somebody in our own group, a pager perhaps,
     * which needs the terminal; then the command gets it when it asks. */
    child->terminal = terminal_is_with(child, getpgrp()) &&
                      isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return errno;
    child->pid = fork();
    if (child->pid < 0) {
        int why = errno;
        close(ends[0]);
        close(ends[1]);
        return why;
    }
    if (child->pid == 0)
        become(child, words, session, chld, parent, ends[1]);
    close(ends[1]);
    child->told = ends[0];
    /* Both sides do it, so that neither can be too early. */
    setpgid(child->pid, child->pid);
    if (child->terminal)
        give_terminal(child, child->pid);
    return 0;
}

enum child_state child_poll(struct child *child)
{
    siginfo_t info;

    info.si_pid = 0;
    if (waitid(P_PID, (id_t)child->pid, &info,
            WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0)
        return CHILD_ENDED;
    info.si_pid = 0;
    if (waitid(P_PID, (id_t)child->pid, &info, WSTOPPED | WNOHANG) == 0 &&
        info.si_pid != 0) {
        child->stop_signal = info.si_status;
        return CHILD_STOPPED;
    }
    return CHILD_RUNS;
}

void child_signal(const struct child *child, int signo, bool wake)
{
    kill(-child->pid, signo);
    if (wake)
        kill(-child->pid, SIGCONT);
}

bool child_follow_stop(struct child *child)
{
    int signo = child->stop_signal;
    bool wants_terminal = signo == SIGTTIN || signo == SIGTTOU;
    bool from_terminal = signo == SIGTSTP || wants_terminal;
    bool had_terminal = terminal_is_with(child, child->pid);

    child->stopped = true;
    if (wants_terminal && terminal_is_with(child, getpgrp())) {
        child->terminal = true;
        return true;
    }
    if (!from_terminal && !had_terminal)
        return false; /* somebody's kill -STOP: that is between the two */
    if (had_terminal)
        give_terminal(child, getpgrp());
    /* The terminal stopped the child's group only; the rest of our job would
     * have been stopped with it. Without a terminal that is not ours to do.
     * Where nobody could continue us, the system discards the signal. */
    suffer(had_terminal ? 0 : getpid(), from_terminal ? signo : SIGTSTP);
    child->terminal = terminal_is_with(child, getpgrp());
    /* Who wants to read from the background would only stop again. */
    return signo == SIGTSTP || child->terminal;
}

void child_resume(struct child *child)
{
    if (child->terminal)
        give_terminal(child, child->pid);
    child->stopped = false;
    kill(-child->pid, SIGCONT);
}

void child_reap(struct child *child)
{
    int status = 0;
    int why;

    child->had_terminal = terminal_is_with(child, child->pid);
    if (child->had_terminal)
        give_terminal(child, getpgrp());
    while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
        ;
    child->code = WIFSIGNALED(status) ? EXIT_SIGNAL + WTERMSIG(status)
                                      : WEXITSTATUS(status);
    int signo = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (child->had_terminal ? signo == SIGINT || signo == SIGQUIT
                            : signo == child->typed)
        child->keyboard = signo;
    if (read(child->told, &why, sizeof(why)) == (ssize_t)sizeof(why))
        child->exec_error = why;
    close(child->told);
    if (child->tty >= 0)
        close(child->tty);
}

void child_pass_keyboard(const struct child *child)
{
    keyboard_end(child->had_terminal ? 0 : getpid(), child->keyboard);
}

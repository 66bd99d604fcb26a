/* SPDX-License-Identifier: MIT */
/*
 * Keeps: nothing of the command runs at the end of the lease that the guard
 * knows of, nor for longer than a grace without nxlock; and the group is only
 * signalled while its leader is not reaped, so a signal never reaches a
 * stranger.
 *
 * It stays in the session of the command: from another one it would make that
 * group an orphaned one, which no terminal can stop (Ctrl-Z).
 */
#include "cli/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/family.h"
#include "cli/report.h"

/* What the command left behind may be about to end, a tee at the end of its
 * output for example. */
#define LINGER (200 * NS_PER_MS)
/* Between two rounds of KILL; doubled while somebody does not end, whom we may
 * not signal perhaps. */
#define ROUND_MIN (2 * NS_PER_MS)
#define ROUND_MAX (128 * NS_PER_MS)

struct guard {
    const struct guard_plan *plan;
    int signals;       /* descriptor */
    int timer;         /* descriptor */
    int lost;          /* descriptor: the end that only we have; -1: closed */
    pid_t leader;      /* of the command's group */
    bool leader_here;  /* it is not reaped, so its number is its own */
    bool alone;        /* nxlock is gone */
    bool stopping;
    bool killing;
    bool over;         /* nothing is left to do */
    uint64_t deadline;
    uint64_t at_most;  /* NEVER: no limit */
    uint64_t linger;   /* when what is left behind gets its TERM, or NEVER */
    uint64_t kill_at;  /* NEVER: no stop is under way */
    uint64_t round;    /* ns until the next round of KILL */
    int halted;        /* signal of a NEWS_HALTED that is not sent yet, or 0 */
    bool untold;       /* NEWS_ENDED is not sent yet: */
    int status;
};

void give_terminal(int tty, pid_t group)
{
    sigset_t output;
    sigset_t before;

    /* The one who gives may be in the background: without the mask it would
     * be stopped for that. */
    sigemptyset(&output);
    sigaddset(&output, SIGTTOU);
    sigprocmask(SIG_BLOCK, &output, &before);
    (void)tcsetpgrp(tty, group);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

/* Never waits: nxlock may be frozen. False: it could not be sent. */
static bool tell(const struct guard_plan *plan, enum news kind, int number)
{
    struct note note = {(int)kind, number, 0};

    return send(plan->line, &note, sizeof(note),
               MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof(note);
}

/* That the command was stopped may come without end while nxlock does not
 * read; only the last one matters. A socket is writable while most of its
 * buffer is free: the rest is for what comes once. */
static void tell_halted(struct guard *guard)
{
    struct pollfd line = {guard->plan->line, POLLOUT, 0};

    if (guard->halted != 0 && poll(&line, 1, 0) == 1 &&
        tell(guard->plan, NEWS_HALTED, guard->halted))
        guard->halted = 0;
}

/* What decides the code is sent in any case. Nothing of the command runs any
 * more, so this may wait for a frozen nxlock; its death ends it. */
static void tell_end(const struct guard *guard)
{
    const struct note notes[] = {
        {NEWS_ENDED, guard->status, 0}, {NEWS_GONE, 0, 0}};

    for (size_t i = guard->untold ? 0 : 1; i < 2; i++) {
        while (send(guard->plan->line, &notes[i], sizeof(notes[i]),
                   MSG_NOSIGNAL) < 0 &&
               (errno == ENOBUFS || errno == ENOMEM))
            (void)poll(NULL, 0, (int)(ROUND_MIN / NS_PER_MS));
    }
}

_Noreturn static void become(const struct guard_plan *plan, pid_t parent)
{
    setpgid(0, 0);
    if (plan->terminal)
        give_terminal(plan->tty, getpid());
    /* If somebody kills the guard, nobody may be there who stops it. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_INTERNAL);
    fcntl(plan->lost[0], F_SETFD, 0);
    sigaction(SIGCHLD, plan->chld, NULL);
    session_unignore(plan->session);
    sigprocmask(SIG_SETMASK, &plan->session->inherited, NULL);
    execvp(plan->words[0], plan->words);
    int why = errno;
    tell(plan, NEWS_NOT_RUN, why);
    _exit(why == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUN);
}

/* Closes what was inherited, above all nxlock's end of the socket and the
 * caller's pipes: who reads those waits for their end. */
static void keep_only(const int *kept, size_t count)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int from = STDERR_FILENO + 1;

    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        (void)(null >= 0 ? dup2(null, fd) : close(fd));
    /* kept is sorted. */
    for (size_t i = 0; i <= count; i++) {
        unsigned to = i < count ? (unsigned)kept[i] - 1 : ~0U;
#if defined(SYS_close_range)
        if ((unsigned)from > to ||
            syscall(SYS_close_range, (unsigned)from, to, 0) == 0) {
            from = i < count ? kept[i] + 1 : from;
            continue;
        }
#endif
        long last = sysconf(_SC_OPEN_MAX);
        for (int fd = from; (unsigned)fd <= to && fd < last; fd++)
            close(fd);
        from = i < count ? kept[i] + 1 : from;
    }
}

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static bool begin(struct guard *guard)
{
    const struct guard_plan *plan = guard->plan;
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    setpgid(0, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    /* Who kills all that are called nxlock is not to hit both. */
    prctl(PR_SET_NAME, "nxl-guard");
    sigemptyset(&all);
    sigaddset(&all, SIGCHLD);
    guard->signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    guard->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    pid_t self = getpid();
    if (guard->signals >= 0 && guard->timer >= 0)
        guard->leader = fork();
    if (guard->leader < 0) {
        tell(plan, NEWS_NO_PROCESS, errno);
        return false;
    }
    if (guard->leader == 0)
        become(plan, self);
    guard->leader_here = true;
    /* Both sides do it, so that neither can be too early. */
    setpgid(guard->leader, guard->leader);
    int kept[] = {plan->line, guard->signals, guard->timer, guard->lost};
    qsort(kept, sizeof(kept) / sizeof(kept[0]), sizeof(kept[0]), by_number);
    keep_only(kept, sizeof(kept) / sizeof(kept[0]));
    tell(plan, NEWS_STARTED, guard->leader);
    return true;
}

/* Ends the command's illusion that it is alone. */
static void tell_lost(struct guard *guard)
{
    if (guard->lost >= 0)
        close(guard->lost);
    guard->lost = -1;
}

static void to_group(const struct guard *guard, int signo, bool wake)
{
    if (!guard->leader_here)
        return;
    kill(-guard->leader, signo);
    if (wake)
        kill(-guard->leader, SIGCONT);
}

static void stop(struct guard *guard, enum reason reason)
{
    int signo = SIGTERM;

    if (reason == REASON_LEASE || reason == REASON_ALONE)
        tell_lost(guard);
    if (reason == REASON_LEASE && guard->plan->lost_signal != 0)
        signo = guard->plan->lost_signal;
    if (guard->stopping)
        return;
    guard->stopping = true;
    guard->kill_at = nxl_now_ns() + guard->plan->grace;
    tell(guard->plan, NEWS_STOPPING, (int)reason);
    to_group(guard, signo, true);
    family_signal(signo, guard->leader_here ? guard->leader : 0);
}

/* The lease is lost. */
static void lose(struct guard *guard)
{
    if (guard->plan->lost_signal != 0) {
        stop(guard, REASON_LEASE);
    } else if (guard->lost >= 0) {
        tell_lost(guard);
        tell(guard->plan, NEWS_STOPPING, REASON_LEASE);
    }
}

static void obey(struct guard *guard, const struct note *note)
{
    switch ((enum order)note->kind) {
    case ORDER_DEADLINE:
        if (note->time > guard->deadline)
            guard->deadline = note->time;
        break;
    case ORDER_SIGNAL:
        to_group(guard, note->number, note->time != 0);
        break;
    case ORDER_RESUME:
        to_group(guard, SIGCONT, false);
        break;
    case ORDER_STOP:
        if (note->number == REASON_LEASE)
            lose(guard);
        else
            stop(guard, (enum reason)note->number);
        break;
    case ORDER_KILL:
        guard->killing = true;
        break;
    }
}

static void take_orders(struct guard *guard)
{
    struct note note;

    while (!guard->alone) {
        ssize_t got =
            recv(guard->plan->line, &note, sizeof(note), MSG_DONTWAIT);
        if (got == (ssize_t)sizeof(note))
            obey(guard, &note);
        else if (got < 0 && errno == EAGAIN)
            return;
        else if (got >= 0 || (errno != EINTR && errno != ECONNRESET))
            guard->alone = true;
    }
    /* Nobody renews the lease any more, nor waits for the command. */
    stop(guard, REASON_ALONE);
}

static void reap(struct guard *guard)
{
    struct signalfd_siginfo info;
    int status;
    pid_t pid;

    while (read(guard->signals, &info, sizeof(info)) > 0)
        ;
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED | __WALL)) >
           0) {
        if (pid != guard->leader || !guard->leader_here)
            continue;
        if (WIFSTOPPED(status)) {
            guard->halted = WSTOPSIG(status);
            continue;
        }
        guard->leader_here = false;
        guard->halted = 0;
        guard->status = status;
        guard->untold = !tell(guard->plan, NEWS_ENDED, status);
        uint64_t wait = guard->plan->grace < LINGER ? guard->plan->grace
                                                    : LINGER;
        guard->linger = nxl_now_ns() + wait;
    }
    guard->over = pid < 0 && errno == ECHILD;
    tell_halted(guard);
    if (!guard->leader_here && guard->plan->leave && !guard->stopping &&
        !guard->killing)
        guard->over = true;
}

/* When the lease counts as lost; a lost one that stops nothing is used up to
 * its end. */
static uint64_t lost_at(const struct guard *guard)
{
    const struct guard_plan *plan = guard->plan;

    if (guard->deadline == NEVER || guard->lost < 0)
        return NEVER;
    return guard->deadline - plan->margin -
           (plan->lost_signal != 0 ? plan->grace : 0);
}

/* When everything is killed. */
static uint64_t end_at(const struct guard *guard)
{
    uint64_t end = guard->deadline == NEVER ||
                           (guard->plan->lost_signal == 0 && !guard->alone)
                       ? NEVER
                       : guard->deadline - guard->plan->margin;

    return guard->kill_at < end ? guard->kill_at : end;
}

static void watch_clock(struct guard *guard)
{
    uint64_t now = nxl_now_ns();

    if (now >= lost_at(guard))
        lose(guard);
    if (!guard->stopping && guard->leader_here && now >= guard->at_most)
        stop(guard, REASON_AT_MOST);
    if (!guard->stopping && now >= guard->linger)
        stop(guard, REASON_LEFT_OVER);
    if (now >= end_at(guard))
        guard->killing = true;
    if (guard->killing) {
        struct left left;
        to_group(guard, SIGKILL, false);
        family_kill(NULL, &left);
        if (guard->round < ROUND_MAX)
            guard->round *= 2;
    }
}

static uint64_t next_wake(const struct guard *guard)
{
    uint64_t wake = end_at(guard);

    if (guard->killing)
        return nxl_now_ns() + guard->round;
    if (lost_at(guard) < wake)
        wake = lost_at(guard);
    if (!guard->stopping && guard->leader_here && guard->at_most < wake)
        wake = guard->at_most;
    if (!guard->stopping && guard->linger < wake)
        wake = guard->linger;
    return wake;
}

static void sleep_until(const struct guard *guard, uint64_t wake)
{
    struct pollfd fds[] = {{guard->signals, POLLIN, 0},
        {guard->timer, POLLIN, 0},
        {guard->alone ? -1 : guard->plan->line,
            guard->halted != 0 ? POLLIN | POLLOUT : POLLIN, 0}};

    timer_wake_at(guard->timer, wake);
    (void)poll(fds, 3, -1);
}

_Noreturn void guard_work(const struct guard_plan *plan)
{
    struct guard guard = {.plan = plan,
        .lost = plan->lost[1],
        .leader = -1,
        .deadline = plan->deadline,
        .at_most = NEVER,
        .linger = NEVER,
        .kill_at = NEVER,
        .round = ROUND_MIN};

    if (!begin(&guard))
        _exit(EXIT_INTERNAL);
    if (plan->at_most != NEVER)
        guard.at_most = nxl_now_ns() + plan->at_most;
    for (;;) {
        reap(&guard);
        if (guard.over)
            break;
        take_orders(&guard);
        watch_clock(&guard);
        sleep_until(&guard, next_wake(&guard));
    }
    tell_end(&guard);
    _exit(EXIT_DONE);
}

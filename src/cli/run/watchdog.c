/* SPDX-License-Identifier: MIT */
/*
 * The watchdog: runs and stops the command.
 *
 * Invariant: no process of the command is running at the end of the last lease
 * that the watchdog knows, or for longer than the grace after nxlock has died.
 * The group is signalled only before its leader is reaped, so a signal never
 * reaches an unrelated process.
 *
 * The watchdog stays in the command's session: a parent in another session
 * would make the command's process group an orphaned one, which Ctrl-Z cannot
 * stop.
 */
#include "cli/run/watchdog.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/run/descendants.h"
#include "cli/run/descriptors.h"
#include "cli/report/event.h"
#include "cli/report/event_log.h"
#include "cli/run/keyboard.h"
#include "cli/run/loss.h"
#include "cli/report/outbox.h"
#include "cli/report/report.h"
#include "cli/run/signal_probe.h"

/* How long processes that the command left behind may still run: some end on
 * their own, such as a tee that writes the last output. */
#define LINGER (200 * NS_PER_MS)
/* The delay between two rounds of KILL; doubled while a process does not end,
 * perhaps because we may not signal it. */
#define ROUND_MIN (2 * NS_PER_MS)
#define ROUND_MAX (128 * NS_PER_MS)

struct watchdog {
    const struct watchdog_plan *plan;
    int signals;      /* descriptor */
    int timer;        /* descriptor */
    int lost;         /* our end of the pipe for NXLOCK_LOST_FD; -1: closed */
    pid_t leader;     /* of the command's group */
    bool leader_here; /* not reaped yet, so its pid is not reused */
    pid_t probe;      /* in the same group, or 0 */
    bool alone;       /* nxlock has died */
    int stopping;     /* why, an enum reason; 0: not yet */
    bool killing;
    bool over; /* nothing is left to do */
    uint64_t deadline;
    bool reported;    /* the loss of the lock */
    uint64_t at_most; /* NEVER: no limit */
    uint64_t linger;  /* when left-over processes get TERM, or NEVER */
    uint64_t kill_at; /* end of the grace; NEVER: nothing is being stopped */
    uint64_t round;   /* ns until the next round of KILL */
    int halted;       /* the signal of an unsent NEWS_HALTED, or 0 */
    uint64_t woken;   /* how many orders have continued the group */
    bool end_unsent;  /* NEWS_ENDED has not been sent: */
    int status;
    uint64_t in_group; /* the signal that ended it went to its whole group */
};

/* Never waits: nxlock may be frozen. False: it could not be sent. */
static bool send_note(const struct watchdog_plan *plan, const struct note *note)
{
    return send(plan->channel, note, sizeof(*note),
               MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof(*note);
}

static bool send_news(
    const struct watchdog_plan *plan, enum news kind, int number)
{
    return send_note(plan, &(struct note){(int)kind, number, 0});
}

/* The command may stop and continue any number of times while nxlock does not
 * read, and only the last stop matters. So this is sent only while most of the
 * socket's buffer is free (POLLOUT): the rest is for notes that come once. */
static void send_halted(struct watchdog *watchdog)
{
    struct pollfd channel = {watchdog->plan->channel, POLLOUT, 0};
    struct note note = {NEWS_HALTED, watchdog->halted, watchdog->woken};

    if (watchdog->halted != 0 && poll(&channel, 1, 0) == 1 &&
        send_note(watchdog->plan, &note))
        watchdog->halted = 0;
}

/* Sends how the command ended, and whether processes that it left behind were
 * stopped; both decide the exit code. All its processes have ended, so this may
 * block while nxlock is stopped; it fails if nxlock dies. */
static void send_end(const struct watchdog *watchdog)
{
    const struct note notes[] = {
        {NEWS_ENDED, watchdog->status, watchdog->in_group},
        {NEWS_GONE, watchdog->stopping == REASON_LEFT_OVER, 0}};

    for (size_t i = watchdog->end_unsent ? 0 : 1; i < 2; i++) {
        while (send(watchdog->plan->channel, &notes[i], sizeof(notes[i]),
                   MSG_NOSIGNAL) < 0 &&
               (errno == ENOBUFS || errno == ENOMEM))
            (void)poll(NULL, 0, (int)(ROUND_MIN / NS_PER_MS));
    }
}

static bool redirect(const struct watchdog_plan *plan)
{
    int null = plan->no_input ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;

    return (!plan->no_input || (null >= 0 && dup2(null, STDIN_FILENO) >= 0)) &&
           (plan->output < 0 || dup2(plan->output, STDOUT_FILENO) >= 0);
}

/* probed: a pipe that ends when the group has a probe. */
_Noreturn static void exec_command(
    const struct watchdog_plan *plan, pid_t parent, const int *probed)
{
    char byte;

    setpgid(0, 0);
    close(probed[1]);
    (void)!read(probed[0], &byte, 1);
    if (plan->terminal)
        give_terminal(plan->tty, getpid());
    /* If the watchdog is killed, no other process may be left to stop CMD. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_INTERNAL);
    fcntl(plan->lost[0], F_SETFD, 0);
    sigaction(SIGCHLD, &plan->session->chld, NULL);
    session_unignore(plan->session);
    sigprocmask(SIG_SETMASK, &plan->session->inherited, NULL);
    if (redirect(plan))
        execvp(plan->words[0], plan->words);
    int why = errno;
    send_news(plan, NEWS_NOT_RUN, why);
    _exit(why == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUN);
}

static bool start_leader(struct watchdog *watchdog)
{
    const struct watchdog_plan *plan = watchdog->plan;
    int probed[2];
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    setpgid(0, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    /* "killall nxlock" should not hit both processes. */
    prctl(PR_SET_NAME, "nxl-watchdog");
    sigemptyset(&all);
    sigaddset(&all, SIGCHLD);
    watchdog->signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    watchdog->timer =
        timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    pid_t self = getpid();
    if (watchdog->signals >= 0 && watchdog->timer >= 0 &&
        pipe2(probed, O_CLOEXEC) == 0)
        watchdog->leader = fork();
    if (watchdog->leader < 0) {
        send_news(plan, NEWS_NO_PROCESS, errno);
        return false;
    }
    if (watchdog->leader == 0)
        exec_command(plan, self, probed);
    watchdog->leader_here = true;
    /* Parent and child both do this, so that it is done before either goes on.
     */
    setpgid(watchdog->leader, watchdog->leader);
    if (plan->tty >= 0)
        watchdog->probe = signal_probe_start(watchdog->leader);
    /* Above all, nxlock's end of the socket is closed, and the caller's pipes,
     * whose readers wait for the end of file. */
    int kept[] = {plan->channel, watchdog->signals, watchdog->timer,
        watchdog->lost, event_log_fd()};
    descriptors_close_others(kept, sizeof(kept) / sizeof(kept[0]));
    send_news(plan, NEWS_STARTED, watchdog->leader);
    return true;
}

/* Makes NXLOCK_LOST_FD of the command readable. */
static void signal_lost(struct watchdog *watchdog)
{
    if (watchdog->lost >= 0)
        close(watchdog->lost);
    watchdog->lost = -1;
}

/* nxlock may be stopped or dead, and could not log it, or not in time. What the
 * log does not take now is left to nxlock, unless that is dead: UNLOGGED, or 0.
 * After the signals, which must not wait for a log. */
static int log_loss(struct watchdog *watchdog, const char *why)
{
    loss_report(&watchdog->reported, watchdog->plan->session,
        watchdog->plan->words, why,
        watchdog->alone || !watchdog->plan->only_warns, false);
    return !watchdog->alone && event_log_forget() ? UNLOGGED : 0;
}

static void signal_group(const struct watchdog *watchdog, int signo, bool wake)
{
    if (!watchdog->leader_here)
        return;
    kill(-watchdog->leader, signo);
    if (wake)
        kill(-watchdog->leader, SIGCONT);
}

static void stop_command(struct watchdog *watchdog, enum reason reason)
{
    if (reason == REASON_LEASE || reason == REASON_ALONE)
        signal_lost(watchdog);
    if (watchdog->stopping)
        return;
    watchdog->stopping = (int)reason;
    watchdog->kill_at = nxl_now_ns() + watchdog->plan->grace;
    signal_group(watchdog, SIGTERM, true);
    descendants_signal(SIGTERM, watchdog->leader_here ? watchdog->leader : 0);
    int more = reason == REASON_LEASE ? log_loss(watchdog, LOSS_IS_LATE) : 0;
    send_news(watchdog->plan, NEWS_STOPPING, (int)reason | more);
}

/* The lease is lost. */
static void lose_lease(struct watchdog *watchdog)
{
    if (!watchdog->plan->only_warns) {
        stop_command(watchdog, REASON_LEASE);
    } else if (watchdog->lost >= 0) {
        signal_lost(watchdog);
        int more = log_loss(watchdog, LOSS_IS_LATE);
        send_news(watchdog->plan, NEWS_STOPPING, REASON_LEASE | more);
    }
}

static void take_order(struct watchdog *watchdog, const struct note *note)
{
    if (order_continues(note)) {
        watchdog->woken++;
        watchdog->halted = 0;
    }
    switch ((enum order)note->kind) {
    case ORDER_DEADLINE:
        if (note->time > watchdog->deadline)
            watchdog->deadline = note->time;
        break;
    case ORDER_SIGNAL:
        signal_group(watchdog, note->number, note->time != 0);
        break;
    case ORDER_RESUME:
        signal_group(watchdog, SIGCONT, false);
        break;
    case ORDER_STOP:
        watchdog->reported = true; /* by nxlock */
        if (note->number == REASON_LEASE)
            lose_lease(watchdog);
        else
            stop_command(watchdog, (enum reason)note->number);
        break;
    case ORDER_KILL:
        watchdog->killing = true;
        break;
    }
}

static void take_orders(struct watchdog *watchdog)
{
    struct note note;

    while (!watchdog->alone) {
        ssize_t got =
            recv(watchdog->plan->channel, &note, sizeof(note), MSG_DONTWAIT);
        if (got == (ssize_t)sizeof(note))
            take_order(watchdog, &note);
        else if (got < 0 && errno == EAGAIN)
            return;
        else if (got >= 0 || (errno != EINTR && errno != ECONNRESET))
            watchdog->alone = true;
    }
    /* nxlock has died: the lease is no longer renewed. */
    stop_command(watchdog, REASON_ALONE);
    (void)log_loss(watchdog, "nxlock was killed");
}

static void reap(struct watchdog *watchdog)
{
    struct signalfd_siginfo info;
    int status;
    pid_t pid;

    while (read(watchdog->signals, &info, sizeof(info)) > 0)
        ;
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED | __WALL)) > 0) {
        if (pid == watchdog->probe && !WIFSTOPPED(status))
            watchdog->probe = 0;
        if (pid != watchdog->leader || !watchdog->leader_here)
            continue;
        if (WIFSTOPPED(status)) {
            watchdog->halted = WSTOPSIG(status);
            continue;
        }
        watchdog->leader_here = false;
        watchdog->halted = 0;
        watchdog->status = status;
        watchdog->in_group =
            WIFSIGNALED(status) &&
            signal_probe_saw(watchdog->probe, WTERMSIG(status));
        signal_probe_end(watchdog->probe);
        watchdog->probe = 0;
        watchdog->end_unsent = !send_note(watchdog->plan,
            &(struct note){NEWS_ENDED, status, watchdog->in_group});
        uint64_t wait =
            watchdog->plan->grace < LINGER ? watchdog->plan->grace : LINGER;
        watchdog->linger = nxl_now_ns() + wait;
    }
    watchdog->over = pid < 0 && errno == ECHILD;
    send_halted(watchdog);
    if (!watchdog->leader_here && watchdog->plan->leave &&
        !watchdog->stopping && !watchdog->killing)
        watchdog->over = true;
}

/* When the lease counts as lost: early enough for the grace or, if a loss stops
 * nothing (--on-lost warn), just before its end. */
static uint64_t lost_at(const struct watchdog *watchdog)
{
    const struct watchdog_plan *plan = watchdog->plan;

    if (watchdog->lost < 0)
        return NEVER;
    return watchdog->deadline - plan->margin -
           (plan->only_warns ? 0 : plan->grace);
}

/* When everything is killed. */
static uint64_t end_at(const struct watchdog *watchdog)
{
    uint64_t end = watchdog->plan->only_warns && !watchdog->alone
                       ? NEVER
                       : watchdog->deadline - watchdog->plan->margin;

    return watchdog->kill_at < end ? watchdog->kill_at : end;
}

static void watch_clock(struct watchdog *watchdog)
{
    uint64_t now = nxl_now_ns();

    if (now >= lost_at(watchdog)) {
        lose_lease(watchdog);
        (void)log_loss(watchdog, LOSS_IS_LATE);
    }
    if (!watchdog->stopping && watchdog->leader_here &&
        now >= watchdog->at_most)
        stop_command(watchdog, REASON_AT_MOST);
    if (!watchdog->stopping && now >= watchdog->linger)
        stop_command(watchdog, REASON_LEFT_OVER);
    if (now >= end_at(watchdog))
        watchdog->killing = true;
    if (watchdog->killing) {
        struct left left;
        signal_group(watchdog, SIGKILL, false);
        descendants_kill(NULL, &left);
        if (watchdog->round < ROUND_MAX)
            watchdog->round *= 2;
    }
}

static uint64_t watchdog_next_wake(const struct watchdog *watchdog)
{
    uint64_t wake = end_at(watchdog);

    if (watchdog->killing)
        return nxl_now_ns() + watchdog->round;
    if (lost_at(watchdog) < wake)
        wake = lost_at(watchdog);
    if (!watchdog->stopping && watchdog->leader_here &&
        watchdog->at_most < wake)
        wake = watchdog->at_most;
    if (!watchdog->stopping && watchdog->linger < wake)
        wake = watchdog->linger;
    return wake;
}

static void watchdog_sleep(const struct watchdog *watchdog, uint64_t wake)
{
    struct pollfd fds[] = {{watchdog->signals, POLLIN, 0},
        {watchdog->timer, POLLIN, 0},
        {watchdog->alone ? -1 : watchdog->plan->channel,
            watchdog->halted != 0 ? POLLIN | POLLOUT : POLLIN, 0}};

    timer_wake_at(watchdog->timer, wake);
    (void)poll(fds, 3, -1);
}

_Noreturn void watchdog_work(const struct watchdog_plan *plan)
{
    struct watchdog watchdog = {.plan = plan,
        .lost = plan->lost[1],
        .leader = -1,
        .deadline = plan->deadline,
        .at_most = NEVER,
        .linger = NEVER,
        .kill_at = NEVER,
        .round = ROUND_MIN};

    if (!start_leader(&watchdog))
        _exit(EXIT_INTERNAL);
    if (plan->at_most != NEVER)
        watchdog.at_most = nxl_now_ns() + plan->at_most;
    for (;;) {
        reap(&watchdog);
        if (watchdog.over)
            break;
        take_orders(&watchdog);
        watch_clock(&watchdog);
        watchdog_sleep(&watchdog, watchdog_next_wake(&watchdog));
    }
    send_end(&watchdog);
    if (watchdog.alone)
        event_end(EXIT_LOST);
    outbox_end(OUTBOX_PATIENCE);
    _exit(EXIT_DONE);
}

/* SPDX-License-Identifier: MIT */
/*
 * A job: runs a command under the session's lock, through the watchdog.
 *
 * Invariant: the command runs only while the lease is valid, and the end of the
 * job is reported only after everything that the command started has ended. The
 * watchdog stops it in time; this process renews the lease, tells the watchdog
 * the new deadline, and takes over if the watchdog fails.
 */
#include "cli/run/job.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/report/duration.h"
#include "cli/report/event.h"
#include "cli/run/explain.h"
#include "cli/report/metrics.h"
#include "cli/run/keyboard.h"
#include "cli/run/loss.h"
#include "cli/names.h"
#include "cli/report/report.h"
#include "cli/run/timing.h"

/* The delay between two calls of child_take_over(); doubled while no process
 * ends. */
#define ROUND_MIN (1 * NS_PER_MS)
#define ROUND_MAX (128 * NS_PER_MS)

static uint64_t ms_as_ns(int64_t ms)
{
    return (uint64_t)ms * NS_PER_MS;
}

/* Is this CMD, and not --check? */
static bool runs_command(const struct job *job)
{
    return job->words == job->args->child;
}

static void report_loss(struct job *job, const char *why, bool logged)
{
    loss_report(&job->lost, job->session, job->words, why,
        job->args->run.on_lost == LOST_KILLS, logged);
}

static void report_start(struct job *job)
{
    struct event event = {.kind = EVENT_STARTED, .pid = job->child.pid};

    if (runs_command(job))
        event_report(event, "started %s, process %ld", job->words[0],
            (long)job->child.pid);
}

static void report_end(const struct job *job)
{
    const struct child *child = &job->child;
    struct event event = {.kind = EVENT_COMMAND_ENDED,
        .pid = child->pid,
        .code = child->ended ? job_code(job) : EXIT_SIGNAL + SIGKILL,
        .why = child->exec_error != 0 ? strerror(child->exec_error) : NULL,
        .ran_ms = ms_between(job->started, nxl_now_ns())};
    char text[DURATION_ROOM], how[64];

    if (!runs_command(job))
        return;
    if (!child->ended)
        snprintf(how, sizeof(how), "was killed");
    else if (job->at_most)
        snprintf(how, sizeof(how), "was stopped by --at-most");
    else if (child->exec_error != 0)
        snprintf(how, sizeof(how), "could not be executed");
    else if (child->signalled)
        snprintf(how, sizeof(how), "was ended by signal %d",
            child->code - EXIT_SIGNAL);
    else
        snprintf(how, sizeof(how), "ended with exit code %d", child->code);
    event_report(event, "%s %s after %s", job->words[0], how,
        duration_rough(text, event.ran_ms));
}

static void stop_for_loss(struct job *job, const char *why)
{
    report_loss(job, why, false);
    child_order(&job->child, ORDER_STOP, REASON_LEASE, 0);
}

/* Takes the watchdog's note that it stops the command, and reports why. */
static void note_stopping(struct job *job, int number)
{
    const struct args *args = job->args;

    switch ((enum reason)(number & ~UNLOGGED)) {
    case REASON_LEASE:
        report_loss(job, LOSS_IS_LATE, !(number & UNLOGGED));
        job->stopping = args->run.on_lost == LOST_KILLS;
        return;
    case REASON_AT_MOST:
        job->at_most = true;
        say("stopping %s after --at-most %s", job->words[0], args->run.at_most);
        break;
    case REASON_LEFT_OVER:
        /* Reported even without a terminal: otherwise a cron job would exit
         * with 0, and nobody would know why its daemon is gone. */
        job->left_over = true;
        event_report((struct event){.kind = EVENT_FAILED},
            "%s has left processes behind; stopping them: let it wait for "
            "them, or let them run on with --leave-descendants",
            job->words[0]);
        break;
    case REASON_ALONE:
        break;
    }
    job->stopping = true;
}

/* Reads the watchdog's notes. Returns the signal that stopped the command for
 * now, or 0. */
static int take_news(struct job *job)
{
    int halted = 0;
    int number;

    for (int news; (news = child_news(&job->child, &number)) != 0;) {
        if (news == NEWS_STARTED)
            report_start(job);
        else if (news == NEWS_STOPPING)
            note_stopping(job, number);
        else if (news == NEWS_HALTED)
            halted = number;
        else if (news == NEWS_GONE && number != 0 && !job->left_over)
            note_stopping(job, REASON_LEFT_OVER);
    }
    if (job->child.taken_over && !job->unwatched) {
        job->unwatched = true;
        if (!job->child.ended)
            event_report((struct event){.kind = EVENT_LOST},
                "the watchdog of %s was killed; killing %s, so that it does "
                "not outlive the lock",
                job->words[0], job->words[0]);
    }
    return job->child.ended || job->child.taken_over ? 0 : halted;
}

/* When this process takes over because the watchdog has not acted; it may have
 * been stopped. */
static uint64_t take_over_at(const struct job *job)
{
    if (job->args->run.on_lost == LOST_WARNS)
        return NEVER;
    return job->renewal.deadline - job->margin / 2;
}

/* Reported once: a process cannot be ended, and may never end. */
static void report_stuck(struct job *job)
{
    const struct left *left = &job->child.left;

    if (job->stuck)
        return;
    job->stuck = true;
    if (left->pid == 0)
        say("cannot find what %s has left behind, as /proc does not show it; "
            "waiting for its end",
            job->words[0]);
    else
        say("cannot end process %ld, which %s has left behind: %s; waiting "
            "for its end",
            (long)left->pid, job->words[0],
            left->error != 0     ? "it runs as another user"
            : left->state == 'Z' ? "a debugger holds what is left of it"
                                 : "it does not react to KILL");
}

/* Kills what is left. The next round comes soon if a process has ended since
 * the last one. */
static void take_over_watchdog(struct job *job)
{
    struct left before = job->child.left;

    child_take_over(&job->child);
    if (job->child.gone)
        return;
    if (job->round == 0 || before.count != job->child.left.count ||
        before.pid != job->child.left.pid)
        job->round = ROUND_MIN;
    else if (job->round < ROUND_MAX)
        job->round *= 2;
    else
        report_stuck(job);
}

static void check_watchdog(struct job *job)
{
    if (job->child.gone)
        return;
    if (!job->child.taken_over && nxl_now_ns() < take_over_at(job))
        return;
    /* If this process was stopped, the watchdog may have acted meanwhile. */
    if (!job->child.taken_over)
        (void)take_news(job);
    if (job->child.gone)
        return;
    if (!job->child.taken_over)
        report_loss(job,
            "the lease is ending and the watchdog does not respond", false);
    job->unwatched = true;
    take_over_watchdog(job);
}

static void follow_lease(struct job *job)
{
    renewal_status_turn(&job->renewal);
    if (job->renewal.lost && !job->lost)
        stop_for_loss(job, job->renewal.why);
    if (job->renewal.deadline != job->deadline_sent && !job->lost) {
        job->deadline_sent = job->renewal.deadline;
        child_order(&job->child, ORDER_DEADLINE, 0, job->deadline_sent);
    }
}

static uint64_t job_next_wake(const struct job *job)
{
    if (job->child.taken_over)
        return nxl_now_ns() + job->round;
    return take_over_at(job);
}

static void pass_signals_on(struct job *job)
{
    for (int signo; (signo = session_signal(job->session)) != 0;) {
        if (keyboard_sent(signo))
            job->child.typed = signo;
        /* The command has already had a TERM, so this is the second one. */
        if (job->stopping && (signo == SIGTERM || signo == SIGINT))
            child_order(&job->child, ORDER_KILL, 0, 0);
        else if (signo == SIGCONT)
            child_order(&job->child, ORDER_RESUME, 0, 0);
        else /* and CONT, so that a stopped command acts on it */
            child_order(
                &job->child, ORDER_SIGNAL, signo, session_signal_ends(signo));
    }
}

/* What the session polls beside its own. */
static void poll_also(struct job *job)
{
    struct session *session = job->session;

    session_poll_nothing(session);
    session->also[0].fd = job->child.channel;
    if (job->capture)
        capture_poll(job->capture, &session->also[1], &session->also[2]);
}

/* Until nothing of the command is left. */
static void supervise(struct job *job)
{
    while (!job->child.gone) {
        bool resume = false;
        int halted = take_news(job);
        if (job->child.gone)
            break;
        if (halted != 0)
            resume = child_follow_stop(&job->child, halted);
        follow_lease(job);
        check_watchdog(job);
        /* We may have been stopped for longer than the lease. */
        if (resume && !job->lost)
            child_resume(&job->child);
        if (job->child.gone)
            break;
        poll_also(job);
        if (session_turn(job->session, job_next_wake(job)) != NXL_OK &&
            !job->lost)
            stop_for_loss(job, "internal error");
        if (job->capture)
            capture_turn(job->capture);
        pass_signals_on(job);
    }
    session_poll_nothing(job->session);
}

/* Sets SIGCHLD to its default action, because with SIG_IGN children could not
 * be waited for; the command will get what it was. Also reads the signals that
 * are only passed on. */
static void expect_child(struct job *job)
{
    static const int passed_on[] = {SIGTSTP, SIGCONT, SIGWINCH};
    struct session *session = job->session;
    struct sigaction plain;

    if (session->expects_child)
        return;
    session->expects_child = true;
    memset(&plain, 0, sizeof(plain));
    plain.sa_handler = SIG_DFL;
    sigemptyset(&plain.sa_mask);
    sigaction(SIGCHLD, &plain, &session->chld);
    for (size_t i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++) {
        struct sigaction action;
        if (sigaction(passed_on[i], NULL, &action) == 0 &&
            action.sa_handler != SIG_IGN)
            session_watch(session, passed_on[i]);
    }
}

/* False: a signal came, or the lease is about to expire; *code says which. */
static bool may_start(struct job *job, int *code)
{
    const struct args *args = job->args;

    int signo = session_signal_ending(job->session);
    if (signo != 0) {
        job->session->caught = signo;
        *code = EXIT_SIGNAL + signo;
        return false;
    }
    renewal_status_start(&job->renewal, job->session);
    job->deadline_sent = job->renewal.deadline;
    job->margin = ms_as_ns(timing_margin_ms(args));
    if (nxl_now_ns() + ms_as_ns(args->run.grace_ms) + job->margin >=
        job->renewal.deadline) {
        event_report((struct event){.kind = EVENT_FAILED},
            "cannot run %s: '%s' %s acquired too late, the lease is ending",
            job->words[0], args->shown, names_word(args, "was", "were"));
        *code = EXIT_UNAVAILABLE;
        return false;
    }
    return true;
}

/* Starts the command according to the plan, which has the pipe already. 0, or
 * the exit code. */
static int start_as_planned(struct job *job, struct watchdog_plan *plan)
{
    int code = 0;

    expect_child(job);
    if (!environ_set(job->session, job->attempt, plan->lost[0])) {
        say("out of memory");
        return EXIT_INTERNAL;
    }
    if (!may_start(job, &code))
        return code;
    plan->deadline = job->renewal.deadline;
    plan->margin = job->margin;
    if (!descendants_visible())
        say("warning: /proc does not show the processes here: what %s starts "
            "outside its process group cannot be stopped, and may continue "
            "when the lock is lost; mount /proc",
            job->words[0]);
    job->started = nxl_now_ns();
    int why = child_start(&job->child, plan);
    return why != 0 ? explain_no_process(why) : 0;
}

static int start_command(struct job *job)
{
    const struct args *args = job->args;
    struct watchdog_plan plan = {.words = job->words,
        .session = job->session,
        .grace = ms_as_ns(args->run.grace_ms),
        .at_most =
            args->run.at_most_ms > 0 ? ms_as_ns(args->run.at_most_ms) : NEVER,
        .only_warns = args->run.on_lost == LOST_WARNS,
        .leave = args->run.leave,
        .output = job->capture ? job->capture->end : -1,
        .no_input = job->no_input};

    if (pipe2(plan.lost, O_CLOEXEC) != 0)
        return explain_no_process(errno);
    int code = start_as_planned(job, &plan);
    /* The watchdog alone keeps the end that is written to. */
    close(plan.lost[0]);
    close(plan.lost[1]);
    return code;
}

void job_init(struct job *job, const struct args *args, struct session *session,
    char **words)
{
    memset(job, 0, sizeof(*job));
    job->args = args;
    job->session = session;
    job->words = words;
    child_init(&job->child);
}

bool job_run(struct job *job, int *code)
{
    *code = start_command(job);
    if (job->capture)
        capture_started(job->capture);
    if (*code != 0)
        return false;
    supervise(job);
    if (job->capture)
        capture_drain(job->capture);
    if (job->child.no_process == 0)
        report_end(job);
    else
        *code = explain_no_process(job->child.no_process);
    return job->child.no_process == 0;
}

int job_not_executed(const struct job *job)
{
    if (job->child.exec_error == 0)
        return 0;
    explain_not_run(job->args, job->words, job->child.exec_error);
    return job->child.code;
}

bool job_lost(const struct job *job)
{
    return job->lost || job->unwatched;
}

int job_code(const struct job *job)
{
    return job->at_most ? EXIT_AT_MOST : job->child.code;
}

int job_open(struct job *job, struct args *args, struct session *session,
    char label[LABEL_ROOM])
{
    int code = timing_settle(args);

    job_init(job, args, session, args->child);
    if (code != 0)
        return code;
    code = session_open(
        session, args, label_make(label, (long)getpid(), args->child[0]));
    if (code != 0)
        return code;
    metrics_begin(args, session->client);
    return timing_check(args);
}

void job_end(struct job *job, int code)
{
    event_end(code);
    child_close(&job->child);
    session_close(job->session);
    child_pass_keyboard(&job->child);
}

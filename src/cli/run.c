/* SPDX-License-Identifier: MIT */
/*
 * The command run: acquires, runs a command through the watchdog, renews and
 * releases.
 *
 * Invariant: the command runs only while the lease is valid, and the lock is
 * released only after everything that the command started has ended. The
 * watchdog stops it in time; this process renews the lease, tells the watchdog
 * the new deadline, and takes over if the watchdog fails.
 */
#include "cli/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/child.h"
#include "cli/environ.h"
#include "cli/every.h"
#include "cli/explain.h"
#include "cli/keyboard.h"
#include "cli/label.h"
#include "cli/renewal_status.h"
#include "cli/report.h"
#include "cli/timing.h"

/* The delay between two calls of child_take_over(); doubled while no process
 * ends. */
#define ROUND_MIN (1 * NS_PER_MS)
#define ROUND_MAX (128 * NS_PER_MS)

struct run {
    const struct args *args;
    struct session session;
    struct renewal_status renewal;
    struct child child;
    uint64_t margin;
    uint64_t deadline_sent; /* the deadline that the watchdog knows */
    bool lost;              /* the lock was lost, which was reported */
    bool at_most;           /* the command is being stopped by --at-most */
    bool stopping;          /* the command is being stopped; TERM was sent */
    bool unwatched;         /* the watchdog was killed */
    uint64_t round; /* ns until the next child_take_over(); 0: not begun */
    bool stuck;     /* a process cannot be ended; it was reported */
};

static uint64_t ms_as_ns(int64_t ms)
{
    return (uint64_t)ms * NS_PER_MS;
}

/* Reports the loss of the lock, once. */
static void report_loss(struct run *run, const char *why)
{
    if (run->lost)
        return;
    run->lost = true;
    say("lost '%s': %s; %s%s", run->args->shown, why,
        run->args->run.on_lost == ON_LOST_WARN
            ? "--on-lost warn, still running: "
            : "stopping ",
        run->args->child[0]);
}

static void stop_for_loss(struct run *run, const char *why)
{
    report_loss(run, why);
    child_order(&run->child, ORDER_STOP, REASON_LEASE, 0);
}

/* Takes the watchdog's note that it stops the command, and reports why. */
static void note_stopping(struct run *run, enum reason reason)
{
    const struct args *args = run->args;

    switch (reason) {
    case REASON_LEASE:
        report_loss(run, "it could not be renewed in time");
        run->stopping = args->run.on_lost != ON_LOST_WARN;
        return;
    case REASON_AT_MOST:
        run->at_most = true;
        say("stopping %s after --at-most %s", args->child[0],
            args->run.at_most);
        break;
    case REASON_LEFT_OVER:
        /* Reported even without a terminal: otherwise a cron job would exit
         * with 0, and nobody would know why its daemon is gone. */
        say("%s has left processes behind; stopping them "
            "(--leave-descendants keeps them)",
            args->child[0]);
        break;
    case REASON_ALONE:
        break;
    }
    run->stopping = true;
}

/* Reads the watchdog's notes. Returns the signal that stopped the command for
 * now, or 0. */
static int take_news(struct run *run)
{
    int halted = 0;
    int number;

    for (int news; (news = child_news(&run->child, &number)) != 0;) {
        if (news == NEWS_STOPPING)
            note_stopping(run, (enum reason)number);
        else if (news == NEWS_HALTED)
            halted = number;
    }
    if (run->child.taken_over && !run->unwatched) {
        run->unwatched = true;
        if (!run->child.ended)
            say("the watchdog of %s was killed; killing %s, so that it does "
                "not outlive the lock",
                run->args->child[0], run->args->child[0]);
    }
    return run->child.ended || run->child.taken_over ? 0 : halted;
}

/* When this process takes over because the watchdog has not acted; it may have
 * been stopped. */
static uint64_t take_over_at(const struct run *run)
{
    if (run->renewal.deadline == NEVER ||
        run->args->run.on_lost == ON_LOST_WARN)
        return NEVER;
    return run->renewal.deadline - run->margin / 2;
}

/* Reported once: a process cannot be ended, and may never end. */
static void report_stuck(struct run *run)
{
    const struct left *left = &run->child.left;

    if (run->stuck)
        return;
    run->stuck = true;
    if (left->pid == 0)
        say("cannot find what %s has left behind, as /proc does not show it; "
            "waiting for its end",
            run->args->child[0]);
    else
        say("cannot end process %ld, which %s has left behind: %s; waiting "
            "for its end",
            (long)left->pid, run->args->child[0],
            left->error != 0     ? "it runs as another user"
            : left->state == 'Z' ? "a debugger holds what is left of it"
                                 : "it does not react to KILL");
}

/* Kills what is left. The next round comes soon if a process has ended since
 * the last one. */
static void take_over_watchdog(struct run *run)
{
    struct left before = run->child.left;

    child_take_over(&run->child);
    if (run->child.gone)
        return;
    if (run->round == 0 || before.count != run->child.left.count ||
        before.pid != run->child.left.pid)
        run->round = ROUND_MIN;
    else if (run->round < ROUND_MAX)
        run->round *= 2;
    else
        report_stuck(run);
}

static void check_watchdog(struct run *run)
{
    if (run->child.gone)
        return;
    if (!run->child.taken_over && nxl_now_ns() < take_over_at(run))
        return;
    /* If this process was stopped, the watchdog may have acted meanwhile. */
    if (!run->child.taken_over)
        (void)take_news(run);
    if (run->child.gone)
        return;
    if (!run->child.taken_over)
        report_loss(
            run, "the lease is ending and the watchdog does not respond");
    run->unwatched = true;
    take_over_watchdog(run);
}

static void follow_lease(struct run *run)
{
    renewal_status_turn(&run->renewal);
    if (run->renewal.lost && !run->lost)
        stop_for_loss(run, run->renewal.why);
    if (run->renewal.deadline != run->deadline_sent && !run->lost) {
        run->deadline_sent = run->renewal.deadline;
        child_order(&run->child, ORDER_DEADLINE, 0, run->deadline_sent);
    }
}

static uint64_t run_next_wake(const struct run *run)
{
    if (run->child.taken_over)
        return nxl_now_ns() + run->round;
    return take_over_at(run);
}

static void pass_signals_on(struct run *run)
{
    for (int signo; (signo = session_signal(&run->session)) != 0;) {
        if (keyboard_sent(signo))
            run->child.typed = signo;
        /* The command has already had a TERM, so this is the second one. */
        if (run->stopping && (signo == SIGTERM || signo == SIGINT))
            child_order(&run->child, ORDER_KILL, 0, 0);
        else if (signo == SIGCONT)
            child_order(&run->child, ORDER_RESUME, 0, 0);
        else /* and CONT, so that a stopped command acts on it */
            child_order(
                &run->child, ORDER_SIGNAL, signo, session_signal_ends(signo));
    }
}

/* Until nothing of the command is left. */
static void supervise(struct run *run)
{
    while (!run->child.gone) {
        bool resume = false;
        int halted = take_news(run);
        if (run->child.gone)
            break;
        if (halted != 0)
            resume = child_follow_stop(&run->child, halted);
        follow_lease(run);
        check_watchdog(run);
        /* We may have been stopped for longer than the lease. */
        if (resume && !run->lost)
            child_resume(&run->child);
        if (run->child.gone)
            break;
        run->session.also = run->child.line;
        if (session_turn(&run->session, run_next_wake(run)) != NXL_OK &&
            !run->lost)
            stop_for_loss(run, "internal error");
        pass_signals_on(run);
    }
    run->session.also = -1;
}

/* Sets SIGCHLD to its default action, because with SIG_IGN children could not
 * be waited for; *own is what the command will get. Also reads the signals that
 * are only passed on. */
static void expect_child(struct run *run, struct sigaction *own)
{
    static const int passed_on[] = {SIGTSTP, SIGCONT, SIGWINCH};
    struct sigaction plain;

    memset(&plain, 0, sizeof(plain));
    plain.sa_handler = SIG_DFL;
    sigemptyset(&plain.sa_mask);
    sigaction(SIGCHLD, &plain, own);
    for (size_t i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++) {
        struct sigaction action;
        if (sigaction(passed_on[i], NULL, &action) == 0 &&
            action.sa_handler != SIG_IGN)
            session_watch(&run->session, passed_on[i]);
    }
}

/* False: a signal came, or the lease is about to expire; *code says which. */
static bool may_start(struct run *run, int *code)
{
    const struct args *args = run->args;

    for (int signo; (signo = session_signal(&run->session)) != 0;) {
        if (session_signal_ends(signo)) {
            run->session.caught = signo;
            *code = EXIT_SIGNAL + signo;
            return false;
        }
    }
    renewal_status_start(&run->renewal, &run->session);
    run->deadline_sent = run->renewal.deadline;
    run->margin = ms_as_ns(timing_margin_ms(args));
    if (run->renewal.deadline != NEVER &&
        nxl_now_ns() + ms_as_ns(args->run.grace_ms) + run->margin >=
            run->renewal.deadline) {
        say("cannot run %s: '%s' was acquired too late, its lease is ending",
            args->child[0], args->shown);
        *code = EXIT_UNAVAILABLE;
        return false;
    }
    return true;
}

/* Starts the command. False: it was not, and *code is the exit code. */
static bool start_command(struct run *run, int *code)
{
    const struct args *args = run->args;
    struct sigaction chld;
    struct watchdog_plan plan = {.words = args->child,
        .session = &run->session,
        .chld = &chld,
        .grace = ms_as_ns(args->run.grace_ms),
        .at_most =
            args->run.at_most_ms > 0 ? ms_as_ns(args->run.at_most_ms) : NEVER,
        .lost_signal = args->run.on_lost,
        .leave = args->run.leave};

    if (pipe2(plan.lost, O_CLOEXEC) != 0) {
        *code = explain_no_process(errno);
        return false;
    }
    expect_child(run, &chld);
    bool ok = environ_set(&run->session, plan.lost[0]);
    if (!ok) {
        say("out of memory");
        *code = EXIT_INTERNAL;
    }
    if (!ok || !may_start(run, code)) {
        close(plan.lost[0]);
        close(plan.lost[1]);
        return false;
    }
    plan.deadline = run->renewal.deadline;
    plan.margin = run->margin;
    if (!descendants_visible())
        say("warning: /proc does not show the processes here: what %s starts "
            "outside its process group cannot be stopped, and may continue "
            "when the lock is lost; mount /proc",
            args->child[0]);
    int why = child_start(&run->child, &plan);
    if (why != 0)
        *code = explain_no_process(why);
    return why == 0;
}

/* The exit code, after the release; rc is the result of that. */
static int exit_code_of_run(struct run *run, int rc, bool held)
{
    const struct args *args = run->args;
    const struct child *child = &run->child;

    if (child->no_process != 0)
        return explain_no_process(child->no_process);
    if (child->exec_error != 0) {
        explain_not_run(args, child->exec_error);
        return child->code;
    }
    if (run->lost || run->unwatched)
        return EXIT_LOST;
    int code = run->at_most ? EXIT_AT_MOST : child->code;
    if (rc == NXL_OK)
        return code;
    if (rc == NXL_LOST || rc == NXL_E_INVALID || !held) {
        say("lost '%s' before %s ended", args->shown, args->child[0]);
        return EXIT_LOST;
    }
    const char *why = nxl_lock_errmsg(run->session.lock);
    int64_t left_ms = args->run.at_least_ms > args->ttl_ms
                          ? args->run.at_least_ms
                          : args->ttl_ms;
    say("cannot release '%s': %s; it expires within %lld s", args->shown,
        why[0] != '\0' ? why : nxl_strerror(rc),
        (long long)(left_ms + 999) / 1000);
    return code;
}

/* Releases the lock after the command has ended. Returns the exit code. */
static int finish_run(struct run *run)
{
    const struct run_args *options = &run->args->run;
    bool held = nxl_now_ns() < run->renewal.deadline;
    int rc = renewal_status_end(&run->renewal);
    int code = exit_code_of_run(run, rc, held);

    bool counts = run->child.no_process == 0 && run->child.exec_error == 0 &&
                  !(options->retry_failed && code != 0);

    if (!counts && options->every_ms > 0)
        every_give_back();
    if (!counts && options->at_least_ms > 0)
        renewal_status_clear(&run->renewal);
    renewal_status_report_end(&run->renewal, rc, !counts);
    return code;
}

/* Applies --on-down after a failed acquire. True: run the command anyway. */
static bool may_do_without(struct run *run, int *code)
{
    int on_down = run->args->run.on_down;

    if (!run->session.down || on_down == DOWN_FAILS)
        return false;
    if (on_down == DOWN_SKIPS) {
        say("--on-down skip: not running %s", run->args->child[0]);
        *code = EXIT_DONE;
        return false;
    }
    say("--on-down run: running %s without the lock", run->args->child[0]);
    run->session.unlocked = true;
    return true;
}

static bool acquired(struct run *run, int *code)
{
    if (!acquire_for(&run->session, code))
        return may_do_without(run, code);
    return run->args->run.every_ms == 0 || every_record(&run->session, code);
}

int command_run(const struct args *given)
{
    struct args args = *given;
    struct run run;
    char label[LABEL_ROOM];

    memset(&run, 0, sizeof(run));
    run.args = &args;
    child_init(&run.child);
    int code = timing_settle(&args);
    if (code != 0)
        return code;
    code = session_open(
        &run.session, &args, label_make(label, (long)getpid(), args.child[0]));
    if (code == 0)
        code = timing_check(&args);
    if (code == 0 && acquired(&run, &code)) {
        if (start_command(&run, &code)) {
            supervise(&run);
            code = finish_run(&run);
        } else if (args.run.every_ms > 0) {
            every_give_back();
        }
    }
    renewal_status_give_back(&run.session);
    child_close(&run.child);
    session_close(&run.session);
    child_pass_keyboard(&run.child);
    return code;
}

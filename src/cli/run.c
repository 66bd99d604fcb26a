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

/* Between two rounds of what child_take_over() does; doubled while nobody
 * ends. */
#define ROUND_MIN (1 * NS_PER_MS)
#define ROUND_MAX (128 * NS_PER_MS)

struct run {
    const struct args *args;
    struct session session;
    struct renewal_status renewal;
    struct child child;
    uint64_t margin;
    uint64_t told;  /* the deadline that the watchdog knows */
    bool lost;      /* the lock; it was said */
    bool at_most;   /* the command is being stopped for its time */
    bool stopping;  /* for whatever reason; TERM was sent */
    bool unwatched; /* the watchdog was killed */
    uint64_t round; /* ns until child_take_over() again; 0: not yet */
    bool stuck;     /* a process cannot be ended; it was reported */
};

static uint64_t ms_to_ns(int64_t ms)
{
    return (uint64_t)ms * NS_PER_MS;
}

/* Said once. */
static void lost(struct run *run, const char *why)
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

static void lose(struct run *run, const char *why)
{
    lost(run, why);
    child_order(&run->child, ORDER_STOP, REASON_LEASE, 0);
}

/* The watchdog stops the command, for one reason or another. */
static void stopping(struct run *run, enum reason reason)
{
    const struct args *args = run->args;

    switch (reason) {
    case REASON_LEASE:
        lost(run, "it could not be renewed in time");
        run->stopping = args->run.on_lost != ON_LOST_WARN;
        return;
    case REASON_AT_MOST:
        run->at_most = true;
        say("stopping %s after --at-most %s", args->child[0],
            args->run.at_most);
        break;
    case REASON_LEFT_OVER:
        /* Even without a terminal: this ends a daemon, and its cron job
         * exits with 0. */
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
            stopping(run, (enum reason)number);
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

/* The last resort, if the watchdog does not do its work, stopped by somebody
 * perhaps. */
static uint64_t take_over_at(const struct run *run)
{
    if (run->renewal.deadline == NEVER ||
        run->args->run.on_lost == ON_LOST_WARN)
        return NEVER;
    return run->renewal.deadline - run->margin / 2;
}

/* Reported once: a process cannot be ended, and may never end. */
static void stuck(struct run *run)
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

/* Once more, and soon if a process has ended since the last time. */
static void take_over(struct run *run)
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
        stuck(run);
}

static void check_watchdog(struct run *run)
{
    if (run->child.gone)
        return;
    if (!run->child.taken_over && nxl_now_ns() < take_over_at(run))
        return;
    /* We may have been stopped, and the watchdog may have done it meanwhile. */
    if (!run->child.taken_over)
        (void)take_news(run);
    if (run->child.gone)
        return;
    if (!run->child.taken_over)
        lost(run, "the lease is ending and the watchdog does not respond");
    run->unwatched = true;
    take_over(run);
}

static void follow_lease(struct run *run)
{
    renewal_status_turn(&run->renewal);
    if (run->renewal.lost && !run->lost)
        lose(run, run->renewal.why);
    if (run->renewal.deadline != run->told && !run->lost) {
        run->told = run->renewal.deadline;
        child_order(&run->child, ORDER_DEADLINE, 0, run->told);
    }
}

static uint64_t next_wake(const struct run *run)
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
        /* It has had its TERM, so this is the second one. */
        if (run->stopping && (signo == SIGTERM || signo == SIGINT))
            child_order(&run->child, ORDER_KILL, 0, 0);
        else if (signo == SIGCONT)
            child_order(&run->child, ORDER_RESUME, 0, 0);
        else /* a stopped one is to act on what may end it */
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
        /* It may have been stopped for longer than the lease. */
        if (resume && !run->lost)
            child_resume(&run->child);
        if (run->child.gone)
            break;
        run->session.also = run->child.line;
        if (session_turn(&run->session, next_wake(run)) != NXL_OK && !run->lost)
            lose(run, "internal error");
        pass_signals_on(run);
    }
    run->session.also = -1;
}

/* The command's own disposition for SIGCHLD goes to *own; ours must not
 * discard the news of the watchdog. */
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
    run->told = run->renewal.deadline;
    run->margin = ms_to_ns(timing_margin_ms(args));
    if (run->renewal.deadline != NEVER &&
        nxl_now_ns() + ms_to_ns(args->run.grace_ms) + run->margin >=
            run->renewal.deadline) {
        say("cannot run %s: '%s' was acquired too late, its lease is ending",
            args->child[0], args->shown);
        *code = EXIT_UNAVAILABLE;
        return false;
    }
    return true;
}

/* Starts the command. False: it was not, and *code is the exit code. */
static bool start(struct run *run, int *code)
{
    const struct args *args = run->args;
    struct sigaction chld;
    struct watchdog_plan plan = {.words = args->child,
        .session = &run->session,
        .chld = &chld,
        .grace = ms_to_ns(args->run.grace_ms),
        .at_most =
            args->run.at_most_ms > 0 ? ms_to_ns(args->run.at_most_ms) : NEVER,
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

/* After the lock was given back; rc is the result of that. */
static int code_of(struct run *run, int rc, bool held)
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

/* Gives the lock back after the command has ended; the exit code. */
static int finish(struct run *run)
{
    const struct run_args *options = &run->args->run;
    bool held = nxl_now_ns() < run->renewal.deadline;
    int rc = renewal_status_end(&run->renewal);
    int code = code_of(run, rc, held);

    bool counts = run->child.no_process == 0 && run->child.exec_error == 0 &&
                  !(options->retry_failed && code != 0);

    if (!counts && options->every_ms > 0)
        every_give_back();
    if (!counts && options->at_least_ms > 0)
        renewal_status_clear(&run->renewal);
    renewal_status_report_end(&run->renewal, rc, !counts);
    return code;
}

/* What is to be done without a server. True: the command is to be run. */
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
        if (start(&run, &code)) {
            supervise(&run);
            code = finish(&run);
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

/* SPDX-License-Identifier: MIT */
/*
 * Keeps: the command runs only while the lease stands. It is started after a
 * last look at the deadline, told to stop a grace before the deadline that
 * the server last confirmed, and killed at it.
 */
#include "cli/commands.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/child.h"
#include "cli/keyboard.h"
#include "cli/label.h"
#include "cli/report.h"
#include "cli/secret.h"

#define NS_PER_MS UINT64_C(1000000)
#define GRACE_MAX_MS 5000
#define RETRY_MAX_MS 1000

struct run {
    const struct args *args;
    struct session session;
    struct child child;
    uint64_t deadline;  /* the last confirmed end of the lease */
    uint64_t grace;     /* ns between TERM and KILL */
    uint64_t renew_at;  /* when the next extend is due */
    uint64_t kill_at;   /* set once the lock is lost; 0: killed already */
    bool extending;     /* its event has not come yet */
    bool failing;       /* the last extend failed, and that was said */
    bool lost;          /* the command is being stopped */
};

static uint64_t ms_to_ns(int64_t ms)
{
    return (uint64_t)ms * NS_PER_MS;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The lock is lost or as good as: stops the command. */
static void stop_command(struct run *run, const char *why)
{
    run->lost = true;
    run->kill_at = nxl_now_ns() + run->grace;
    if (run->deadline < run->kill_at)
        run->kill_at = run->deadline;
    child_signal(&run->child, SIGTERM, true);
    say("lost '%s': %s; stopping %s", run->args->shown, why,
        run->args->child[0]);
}

static void extend_failed(struct run *run, int rc)
{
    int64_t retry_ms = smaller(run->args->ttl_ms / 10, RETRY_MAX_MS);
    const char *why = nxl_lock_errmsg(run->session.lock);

    run->renew_at = nxl_now_ns() + ms_to_ns(retry_ms);
    if (run->failing)
        return;
    run->failing = true;
    say("cannot renew '%s': %s; trying again for %lld s", run->args->shown,
        why[0] != '\0' ? why : nxl_strerror(rc),
        (long long)(nxl_lock_remaining_ms(run->session.lock) / 1000));
}

static void extend_done(struct run *run, int rc)
{
    nxl_lock *lock = run->session.lock;

    if (rc == NXL_OK) {
        uint64_t deadline = nxl_lock_deadline(lock);
        if (deadline > run->deadline)
            run->deadline = deadline;
        if (run->failing)
            say("renewed '%s' after all", run->args->shown);
        run->failing = false;
    } else if (run->lost) {
        /* Known already. */
    } else if (rc == NXL_LOST) {
        stop_command(run, "it ran out or was removed at the server");
    } else {
        extend_failed(run, rc);
    }
}

static void take_events(struct run *run)
{
    nxl_event event;

    while (nxl_client_next_event(run->session.client, &event)) {
        run->extending = false;
        extend_done(run, event.result);
    }
}

static void renew(struct run *run)
{
    uint64_t now = nxl_now_ns();

    if (run->lost || run->extending || now < run->renew_at)
        return;
    /* From the start of this one, so that the rate does not depend on how
     * long the answer takes. */
    run->renew_at = now + ms_to_ns(run->args->ttl_ms) / 3;
    int rc = nxl_lock_extend_start(run->session.lock, run->args->ttl_ms);
    if (rc == NXL_PENDING)
        run->extending = true;
    else
        extend_done(run, rc);
}

/* Acts on what the clock says. */
static void watch_lease(struct run *run)
{
    uint64_t now = nxl_now_ns();

    if (!run->lost && now + run->grace >= run->deadline)
        stop_command(run, "it could not be renewed in time");
    if (run->lost && run->kill_at != 0 && now >= run->kill_at) {
        child_signal(&run->child, SIGKILL, false);
        run->kill_at = 0;
    }
}

static uint64_t next_wake(const struct run *run)
{
    if (run->lost)
        return run->kill_at != 0 ? run->kill_at : NEVER;
    uint64_t wake = run->deadline - run->grace;
    return !run->extending && run->renew_at < wake ? run->renew_at : wake;
}

static void pass_signals_on(struct run *run)
{
    for (int signo; (signo = session_signal(&run->session)) != 0;) {
        bool ends = signo != SIGCHLD && signo != SIGTSTP;
        if (keyboard_sent(signo))
            run->child.typed = signo;
        if (signo != SIGCHLD)
            child_signal(&run->child, signo, ends && run->child.stopped);
    }
}

/* Until the command has ended. */
static void supervise(struct run *run)
{
    enum child_state state;

    while ((state = child_poll(&run->child)) != CHILD_ENDED) {
        bool resume = false;
        if (state == CHILD_STOPPED)
            resume = child_follow_stop(&run->child);
        take_events(run);
        watch_lease(run);
        renew(run);
        /* It may have been stopped for longer than the lease. */
        if (resume && !run->lost)
            child_resume(&run->child);
        if (session_turn(&run->session, next_wake(run)) != NXL_OK &&
            !run->lost)
            stop_command(run, "internal error");
        pass_signals_on(run);
    }
    /* What it left behind in its group must not work on without the lock. */
    if (run->lost)
        child_signal(&run->child, SIGKILL, false);
    child_reap(&run->child);
}

/* A command around this one may hold what one inside it asks for: the tokens
 * of all around go into NXLOCK_OUTER. */
static bool set_outer(void)
{
    const char *token = getenv("NXLOCK_TOKEN");
    const char *outer = getenv("NXLOCK_OUTER");
    char *all = NULL;

    if (token == NULL)
        return true;
    if (asprintf(&all, "%s %s", outer != NULL ? outer : "", token) < 0)
        return false;
    bool ok = setenv("NXLOCK_OUTER", all, 1) == 0;
    free(all);
    return ok;
}

static int set_environment(struct run *run)
{
    char ttl[32];

    snprintf(ttl, sizeof(ttl), "%lld", (long long)run->args->ttl_ms);
    if (set_outer() && setenv("NXLOCK_NAME", run->args->name, 1) == 0 &&
        setenv("NXLOCK_TOKEN", nxl_lock_token(run->session.lock), 1) == 0 &&
        setenv("NXLOCK_TTL_MS", ttl, 1) == 0)
        return 0;
    say("out of memory");
    return EXIT_INTERNAL;
}

/* The command's own disposition for SIGCHLD goes to *own; ours must not
 * discard the news. */
static void expect_child(struct run *run, struct sigaction *own)
{
    struct sigaction plain;

    memset(&plain, 0, sizeof(plain));
    plain.sa_handler = SIG_DFL;
    sigemptyset(&plain.sa_mask);
    sigaction(SIGCHLD, &plain, own);
    session_watch(&run->session, SIGCHLD);
    struct sigaction stop;
    if (sigaction(SIGTSTP, NULL, &stop) == 0 && stop.sa_handler != SIG_IGN)
        session_watch(&run->session, SIGTSTP);
}

/* Starts the command. False: it was not, and *code is the exit code. */
static bool start(struct run *run, int *code)
{
    struct sigaction chld;

    *code = set_environment(run);
    if (*code != 0)
        return false;
    expect_child(run, &chld);
    for (int signo; (signo = session_signal(&run->session)) != 0;) {
        if (signo != SIGCHLD && signo != SIGTSTP) {
            run->session.caught = signo;
            *code = EXIT_SIGNAL + signo;
            return false;
        }
    }
    run->grace = ms_to_ns(smaller(run->args->ttl_ms / 6, GRACE_MAX_MS));
    run->deadline = nxl_lock_deadline(run->session.lock);
    uint64_t now = nxl_now_ns();
    run->renew_at = now + ms_to_ns(run->args->ttl_ms) / 3;
    if (now + run->grace >= run->deadline) {
        say("cannot run %s: '%s' was granted too late to be of use",
            run->args->child[0], run->args->shown);
        *code = EXIT_UNAVAILABLE;
        return false;
    }
    int why = child_start(
        &run->child, run->args->child, &run->session, &chld);
    if (why != 0) {
        say("cannot start a process: %s", strerror(why));
        *code = EXIT_INTERNAL;
        return false;
    }
    return true;
}

/* Gives the lock back after the command has ended; the exit code. */
static int finish(struct run *run)
{
    struct session *session = &run->session;
    const char *name = run->args->shown;
    bool held = nxl_now_ns() < run->deadline;

    if (run->extending) {
        nxl_lock_cancel(session->lock);
        (void)session_finish(session, NXL_PENDING);
    }
    int rc = session_finish(session, nxl_lock_release_start(session->lock));
    if (run->child.exec_error != 0) {
        char word[DISCREET_ROOM];
        say("cannot run %s: %s", discreet(word, run->args->child[0]),
            strerror(run->child.exec_error));
        return run->child.code;
    }
    if (run->lost)
        return EXIT_LOST;
    if (rc == NXL_OK)
        return run->child.code;
    if (rc == NXL_LOST || rc == NXL_E_INVALID || !held) {
        say("lost '%s' before %s ended", name, run->args->child[0]);
        return EXIT_LOST;
    }
    const char *why = nxl_lock_errmsg(session->lock);
    say("cannot release '%s': %s; it frees itself within %lld s", name,
        why[0] != '\0' ? why : nxl_strerror(rc),
        (long long)(run->args->ttl_ms + 999) / 1000);
    return run->child.code;
}

int command_run(const struct args *args)
{
    struct run run;
    char label[LABEL_ROOM];

    memset(&run, 0, sizeof(run));
    run.args = args;
    int code = session_open(
        &run.session, args, label_make(label, (long)getpid(), args->child[0]));
    if (code == 0 && acquire_for(&run.session, &code) && start(&run, &code)) {
        supervise(&run);
        code = finish(&run);
    }
    session_close(&run.session);
    child_pass_keyboard(&run.child);
    return code;
}

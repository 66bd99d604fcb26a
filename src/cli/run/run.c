/* SPDX-License-Identifier: MIT */
/*
 * The command run: acquires, runs a command, and releases.
 *
 * Invariant: the lock is released only after everything that the command
 * started has ended.
 */
#include "cli/commands.h"

#include <string.h>

#include "cli/report/duration.h"
#include "cli/report/event.h"
#include "cli/run/every.h"
#include "cli/run/job.h"
#include "cli/names.h"
#include "cli/report/report.h"

struct run {
    const struct args *args;
    struct session session;
    struct job job;
};

/* The exit code, after the release; rc is the result of that. */
static int exit_code_of_run(struct run *run, int rc, bool held)
{
    const struct args *args = run->args;
    int code = job_not_executed(&run->job);

    if (code != 0)
        return code;
    if (job_lost(&run->job))
        return EXIT_LOST;
    code = job_code(&run->job);
    if (rc == NXL_OK)
        return code;
    if (rc == NXL_LOST || rc == NXL_E_INVALID || !held) {
        event_report((struct event){.kind = EVENT_LOST},
            "lost '%s' before %s ended", args->shown, args->child[0]);
        return EXIT_LOST;
    }
    const char *why = failure_words(nxl_lock_errmsg(run->session.lock), rc);
    int64_t left_ms = args->run.at_least_ms > args->ttl_ms
                          ? args->run.at_least_ms
                          : args->ttl_ms;
    char left[DURATION_ROOM];
    event_report((struct event){.kind = EVENT_FAILED, .why = why},
        "cannot release '%s': %s; %s within %s", args->shown, why,
        names_word(args, "it expires", "they expire"),
        duration_text(left, left_ms));
    return code;
}

/* Releases the lock after the command has ended, or could not be executed.
 * Returns the exit code. */
static int release(struct run *run)
{
    struct renewal_status *renewal = &run->job.renewal;
    bool nothing_ran = run->job.child.exec_error != 0;
    bool held = nxl_now_ns() < renewal->deadline;
    int rc = renewal_status_end(renewal);
    int code = exit_code_of_run(run, rc, held);

    if (nothing_ran && run->args->run.at_least_ms > 0)
        renewal_status_clear(renewal);
    renewal_status_report_end(renewal, rc, nothing_ran);
    return code;
}

/* What CMD protects cannot tell a holder whose lease has expired from the next
 * one, and CMD may rely on that. */
static void report_unfenced(const struct session *session)
{
    const char *why = session->unfenced;
    bool several = names_several(session->args);

    if (session->fenced || !session_may_fence(session))
        return;
    event_report((struct event){.kind = EVENT_UNFENCED, .why = why},
        "'%s' %s: %s", session->args->shown,
        several ? "have no fencing tokens, so no NXLOCK_FENCE_N is set"
                : "has no fencing token, so NXLOCK_FENCE is not set",
        why);
}

/* Runs the command and releases the lock. A run counts for --every and
 * --at-least once the command was executed, whatever its end. Returns the exit
 * code. */
static int run_and_release(struct run *run)
{
    int code;

    report_unfenced(&run->session);
    bool started = job_run(&run->job, &code);

    if (started)
        code = release(run);
    if ((!started || run->job.child.exec_error != 0) &&
        run->args->run.every_ms > 0)
        every_give_back();
    return code;
}

int subcommand_run(const struct args *given)
{
    struct args args = *given;
    struct run run;
    char label[LABEL_ROOM];

    memset(&run, 0, sizeof(run));
    run.args = &args;
    session_init(&run.session, &args);
    int code = job_open(&run.job, &args, &run.session, label);
    if (code == 0 && acquire_for(&run.session, &code) &&
        (args.run.every_ms == 0 || every_mark(&run.session, &code)))
        code = run_and_release(&run);
    renewal_status_give_back(&run.session);
    job_end(&run.job, code);
    return code;
}

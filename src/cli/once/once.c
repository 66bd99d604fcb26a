/* SPDX-License-Identifier: MIT */
/*
 * The command once: runs a command unless a record says that it was done, and
 * records its outcome.
 *
 * Invariant: CMD is started only after its beginning is on record, and what
 * came of that is recorded before nxlock exits. That nothing happened is said
 * only of a command that was not started, or whose exit code says so; that it
 * is done, only after all that CMD printed was passed on.
 */
#include "cli/commands.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/report/duration.h"
#include "cli/report/event.h"
#include "cli/run/explain.h"
#include "cli/run/job.h"
#include "cli/once/once_check.h"
#include "cli/once/once_record.h"
#include "cli/once/once_words.h"
#include "cli/report/report.h"
#include "cli/once/verdict.h"

struct once {
    const struct args *args;
    struct session session;
    struct beginning beginning;
    struct capture capture;
    struct job job;
};

/* Records the outcome. Returns a result of verdict_tell(). */
static int tell(struct once *once, const struct verdict *verdict)
{
    once->beginning.begun = false;
    return verdict_tell(&once->session, verdict);
}

/* Records that nothing happened, as CMD was not started. */
static void take_back(struct once *once, int code)
{
    struct verdict verdict = {.kind = NXL_ONCE_FAILED, .code = code};

    if (once->beginning.begun)
        (void)tell(once, &verdict);
}

/* Prints a result. Returns code, or that of a failure. */
static int print_result(
    struct once *once, const char *data, size_t length, int code)
{
    if (once->args->work.quiet || capture_print(&once->session, data, length))
        return code;
    if (once->session.caught != 0)
        return session_interrupted(&once->session);
    const char *why = strerror(errno);
    event_report((struct event){.kind = EVENT_FAILED, .why = why},
        "cannot print the output of '%s' again: %s", once->args->shown, why);
    return EXIT_INTERNAL;
}

static int replay(struct once *once, const nxl_record *record)
{
    const struct args *args = once->args;
    char words[RECORD_WORDS];

    event_report(
        (struct event){.kind = EVENT_SKIPPED, .result = RESULT_DONE_BEFORE},
        "'%s' is %s; not running %s", args->shown,
        record_words(words, record, false), args->child[0]);
    if (record->result_length == NXL_ONCE_NOT_KEPT) {
        if (!args->work.quiet)
            say("'%s' was done, but its output was too long to be kept, and "
                "cannot be shown again",
                args->shown);
        return record->code;
    }
    return print_result(
        once, record->result, record->result_length, record->code);
}

/* Reports why nothing was begun. Returns the exit code. */
static int report_record(struct once *once)
{
    nxl_record record = NXL_RECORD_INIT;
    int result = once->beginning.result;

    if (nxl_once_record(once->session.lock, &record) != NXL_OK) {
        session_complain(&once->session, "begin", result);
        return result == NXL_DOUBT ? EXIT_DOUBT : EXIT_INTERNAL;
    }
    if (result == NXL_DONE)
        return replay(once, &record);
    if (result == NXL_MISMATCH) {
        say_mismatch(&once->session, &record);
        return EXIT_OTHER_WORK;
    }
    say_doubt(&once->session, &record);
    return EXIT_DOUBT;
}

/* What an exit code of CMD means. */
static int verdict_of_code(const struct once_args *work, int code)
{
    return work->done_on.has[code]    ? NXL_ONCE_DONE
           : work->retry_on.has[code] ? NXL_ONCE_FAILED
                                      : NXL_ONCE_DOUBT;
}

/* What the end of CMD means, after its output was passed on. The exit code is
 * that of CMD, unless that would mean something else to the caller. */
static struct verdict verdict_of(const struct once *once)
{
    const struct job *job = &once->job;
    struct verdict verdict = {.kind = NXL_ONCE_DOUBT, .code = job_code(job)};

    if (job->child.exec_error != 0)
        return (struct verdict){
            .kind = NXL_ONCE_FAILED, .code = job_not_executed(job)};
    if (job_lost(job))
        verdict.code = EXIT_LOST;
    if (job_lost(job) || job->at_most || job->child.signalled)
        return verdict;
    int kind = verdict_of_code(&once->args->work, verdict.code);
    /* A part of the work was stopped, so CMD's code speaks only for the rest.
     */
    bool says_more = kind != NXL_ONCE_DOUBT && job->left_over;
    if (says_more || (kind == NXL_ONCE_DOUBT && verdict.code == EXIT_DONE))
        verdict.code = EXIT_DOUBT;
    else if (kind == NXL_ONCE_DONE && once->capture.error != 0)
        verdict.code = session_interrupted(&once->session) != 0
                           ? session_interrupted(&once->session)
                           : EXIT_INTERNAL;
    else
        verdict.kind = kind;
    return verdict;
}

/* After it was recorded: says what the next run will find, if that is not what
 * one would expect. */
static void report_verdict(const struct once *once, int kind)
{
    const struct args *args = once->args;
    nxl_record record = NXL_RECORD_INIT;

    /* Begun: an earlier attempt, which is still in doubt. */
    if (nxl_once_record(once->session.lock, &record) == NXL_OK &&
        (record.state == NXL_ONCE_DOUBT || record.state == NXL_ONCE_BEGUN))
        say_doubt(&once->session, &record);
    else if (kind == NXL_ONCE_DONE && once->capture.result_omitted)
        say("the output of %s is longer than 1 MiB: it is not kept, and cannot "
            "be shown again",
            once->job.words[0]);
    else if (args->verbose)
        say("recorded '%s' as %s", args->shown,
            kind == NXL_ONCE_DONE ? "done" : "not done");
}

/* How long the reader of the last output gets at least, though --at-most has
 * stopped CMD. */
#define READER_MIN (5 * NS_PER_S)

/* Waits for the reader, but not for longer than CMD itself might have. */
static void pass_rest_on(struct once *once)
{
    const struct args *args = once->args;
    uint64_t until = NEVER;

    if (args->run.at_most_ms > 0) {
        uint64_t least = nxl_now_ns() + READER_MIN;
        until = once->job.started + (uint64_t)args->run.at_most_ms * NS_PER_MS;
        until = until > least ? until : least;
    }
    if (capture_flush(&once->capture, &once->session, until))
        return;
    const char *why =
        once->session.caught != 0 ? "a signal ended the wait for its reader"
        : errno == ETIMEDOUT      ? "it was not read before --at-most was over"
        : errno == EPIPE ? "its reader ended before it had read everything; "
                           "use one that reads to the end"
                         : strerror(errno);
    event_report((struct event){.kind = EVENT_FAILED, .why = why},
        "cannot pass on what %s printed: %s", once->job.words[0], why);
}

/* After CMD has ended. Returns the exit code. */
static int finish(struct once *once)
{
    const struct capture *capture = &once->capture;

    pass_rest_on(once);
    struct verdict verdict = verdict_of(once);
    if (verdict.kind == NXL_ONCE_DONE) {
        verdict.data = capture->result_omitted ? NULL : capture->kept.data;
        verdict.length =
            capture->result_omitted ? NXL_ONCE_NOT_KEPT : capture->kept.length;
    }
    int rc = tell(once, &verdict);
    if (rc == NXL_OK)
        report_verdict(once, verdict.kind);
    if (once->session.caught != 0)
        return session_interrupted(&once->session);
    return rc == NXL_OK || once->job.child.exec_error != 0 ? verdict.code
                                                           : EXIT_LOST;
}

static int run_command(struct once *once)
{
    int code;
    int error = capture_open(&once->capture, true);

    once->job.attempt = &once->beginning.attempt;
    once->job.capture = &once->capture;
    if (error != 0)
        code = explain_no_process(error);
    else if (job_run(&once->job, &code))
        code = finish(once);
    capture_close(&once->capture);
    return code;
}

/* The check said yes. */
static int finish_for_others(
    struct once *once, const char *result, size_t length)
{
    struct verdict verdict = {
        .kind = NXL_ONCE_DONE, .data = result, .length = length};

    if (tell(once, &verdict) != NXL_OK)
        return EXIT_DOUBT;
    if (once->args->verbose)
        say("--check says that '%s' was done", once->args->shown);
    return print_result(once, result, length, EXIT_DONE);
}

/* The check did not help. kind: NXL_ONCE_FAILED, nothing is known that was not
 * known before; or NXL_ONCE_DOUBT. */
static int leave_in_doubt(struct once *once, int kind)
{
    struct verdict verdict = {.kind = kind, .code = EXIT_DOUBT};

    if (tell(once, &verdict) == NXL_OK)
        report_verdict(once, verdict.kind);
    return once->session.caught != 0 ? session_interrupted(&once->session)
                                     : EXIT_DOUBT;
}

/* Asks --check about earlier attempts. True: they did not happen; otherwise
 * *code is the exit code. */
static bool is_cleared(struct once *once, int *code)
{
    struct attempt *attempt = &once->beginning.attempt;
    struct verdict clear = {.kind = NXL_ONCE_CLEAR};
    struct capture capture;
    size_t from;

    enum checked checked = once_check(&once->session, attempt, &capture, &from);
    bool cleared = checked == CHECKED_NOT_DONE &&
                   verdict_tell(&once->session, &clear) == NXL_OK;
    if (checked == CHECKED_DONE)
        *code = finish_for_others(
            once, capture.kept.data + from, capture.kept.length - from);
    else if (!cleared)
        *code = leave_in_doubt(once,
            checked == CHECKED_UNKNOWN ? NXL_ONCE_FAILED : NXL_ONCE_DOUBT);
    capture_close(&capture);
    if (cleared) {
        attempt->doubts = 0;
        attempt->since[0] = attempt->by[0] = '\0';
    }
    return cleared;
}

static int work(struct once *once)
{
    int code;

    if (once->beginning.result != NXL_OK)
        return report_record(once);
    if (once->args->work.check && once->beginning.attempt.doubts > 0 &&
        !is_cleared(once, &code))
        return code;
    return run_command(once);
}

/* The record is kept at least for a lease, so that a run that waits finds it.
 */
static int check_keep(const struct args *args)
{
    const struct once_args *once = &args->work;
    char text[DURATION_ROOM];

    if (once->keep && once->keep_ms < args->ttl_ms) {
        say("--keep %s is shorter than the lease, so a run that waits could "
            "miss the record: use --keep %s or more, or a shorter --ttl",
            once->keep, duration_text(text, args->ttl_ms));
        return EXIT_USAGE;
    }
    return 0;
}

static int run_once(struct args *args)
{
    struct once once = {
        .args = args, .beginning.options = NXL_ONCE_OPTIONS_INIT};
    nxl_once_options *options = &once.beginning.options;
    char label[LABEL_ROOM];

    options->mode = args->work.check || args->work.on_doubt == NXL_ONCE_RETRY
                        ? NXL_ONCE_RETRY
                        : NXL_ONCE_HALT;
    options->fingerprint = args->work.fingerprint;
    options->keep_ms = args->work.keep_ms;
    session_init(&once.session, args);
    int code = job_open(&once.job, args, &once.session, label);
    if (code == 0 && acquire_once(&once.session, &once.beginning, &code))
        code = work(&once);
    take_back(&once, code);
    job_end(&once.job, code);
    return code;
}

int subcommand_once(const struct args *given)
{
    struct args args = *given;
    int code = check_keep(&args);

    if (code != 0)
        return code;
    return args.work.action != ONCE_RUN ? once_record(&args) : run_once(&args);
}

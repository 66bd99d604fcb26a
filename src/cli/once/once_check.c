/* SPDX-License-Identifier: MIT */
/*
 * --check of once.
 *
 * Invariant: only an exit code of 0 together with a first line "yes" or "no",
 * while the lock is held, is an answer. An exit code alone is not: a command
 * that cannot find out ends with 1 as well.
 */
#include "cli/once/once_check.h"

#include <string.h>

#include "cli/run/job.h"
#include "cli/report/report.h"

static bool first_line_is(
    const struct capture *capture, const char *word, size_t *from)
{
    const struct bytes *kept = &capture->kept;
    size_t length = strlen(word);

    if (kept->length < length || memcmp(kept->data, word, length) != 0)
        return false;
    if (kept->length > length && kept->data[length] != '\n')
        return false;
    *from = kept->length > length ? length + 1 : length;
    return true;
}

/* Why it is no answer that the check ended so; NULL: it may be one. */
static const char *why_unknown(
    const struct job *job, const struct capture *capture)
{
    if (job_lost(job))
        return "the lock was lost meanwhile";
    if (job->at_most)
        return "it was stopped by --at-most";
    if (job->child.signalled)
        return "a signal ended it";
    if (job->child.code != 0)
        return "its exit code is not 0";
    if (job->left_over)
        return "it left processes behind, which were stopped";
    if (capture->result_omitted)
        return "it printed more than 1 MiB";
    return NULL;
}

static enum checked answer_of(
    const struct session *session, const struct job *job, size_t *from)
{
    const struct capture *capture = job->capture;
    const char *why = why_unknown(job, capture);

    if (!why && first_line_is(capture, "yes", from))
        return CHECKED_DONE;
    if (!why && first_line_is(capture, "no", from))
        return CHECKED_NOT_DONE;
    say("--check does not say whether '%s' was done: %s", session->args->shown,
        why ? why : "the first line that it printed is neither yes nor no");
    return CHECKED_UNKNOWN;
}

enum checked once_check(struct session *session, const struct attempt *attempt,
    struct capture *capture, size_t *from)
{
    static char shell[] = "/bin/sh", flag[] = "-c";
    /* exec does not write. */
    char *words[] = {shell, flag, (char *)session->args->work.check, NULL};
    enum checked answer = CHECKED_UNKNOWN;
    struct job job;
    int code;

    job_init(&job, session->args, session, words);
    job.attempt = attempt;
    job.no_input = true;
    job.capture = capture;
    int error = capture_open(capture, false);
    if (error != 0)
        say("cannot run --check: %s", strerror(error));
    else if (job_run(&job, &code) && job_not_executed(&job) == 0)
        answer = answer_of(session, &job, from);
    child_close(&job.child);
    return answer;
}

/* SPDX-License-Identifier: MIT */
/*
 * A job: a command that runs under the session's lock.
 */
#ifndef NXLOCK_CLI_RUN_JOB_H
#define NXLOCK_CLI_RUN_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/once/capture.h"
#include "cli/run/child.h"
#include "cli/run/environ.h"
#include "cli/run/label.h"
#include "cli/run/renewal_status.h"

struct job {
    const struct args *args;
    struct session *session;
    char **words; /* the command, ends with NULL */
    /* Of once; NULL: none. Both must outlive the job. */
    const struct attempt *attempt;
    struct capture *capture; /* gets the command's standard output */
    bool no_input;           /* standard input is /dev/null */
    struct renewal_status renewal;
    struct child child;
    uint64_t margin;
    uint64_t started;       /* when its process was, of nxl_now_ns() */
    uint64_t deadline_sent; /* the deadline that the watchdog knows */
    bool lost;              /* the lock was lost, which was reported */
    bool at_most;           /* the command is being stopped by --at-most */
    bool left_over;         /* what it left behind was stopped */
    bool stopping;          /* the command is being stopped; TERM was sent */
    bool unwatched;         /* the watchdog was killed */
    uint64_t round; /* ns until the next child_take_over(); 0: not begun */
    bool stuck;     /* a process cannot be ended; it was reported */
};

/* Opens the session for CMD of args, completes their times, and checks them. 0,
 * or an exit code after reporting why; call job_end() in both cases. */
int job_open(struct job *job, struct args *args, struct session *session,
    char label[LABEL_ROOM]);

/* Reports the end, and closes both. If a keyboard signal ended the command,
 * ends this process by it. */
void job_end(struct job *job, int code);

/* Instead of job_open(), for another command under a session that is open; the
 * caller calls child_close(). */
void job_init(struct job *job, const struct args *args, struct session *session,
    char **words);

/* Runs the command until nothing of it is left, and renews the lock meanwhile.
 * False: it was not started, and *code is the exit code, after reporting why.
 */
bool job_run(struct job *job, int *code);

/* After it ran: the exit code of a command that could not be executed, which is
 * explained, or 0. */
int job_not_executed(const struct job *job);

/* Was the lock lost while it ran? Then nothing is known of its work. */
bool job_lost(const struct job *job);

/* The exit code of one that was executed, and did not lose the lock. */
int job_code(const struct job *job);

#endif

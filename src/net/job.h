/* SPDX-License-Identifier: MIT */
/*
 * Work that may block, in a detached thread of its own with all signals
 * blocked. The caller polls a descriptor instead of waiting. If the caller
 * gives up, the thread ends on its own.
 */
#ifndef NXLOCK_NET_JOB_H
#define NXLOCK_NET_JOB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

/* The first member of what the work needs and finds. */
struct job {
    void (*work)(struct job *job); /* called once, in the thread */
    /* Frees the job and everything around it; in whichever thread is last. */
    void (*dispose)(struct job *job);
    int fd; /* readable when the work is done; do not read or close it */
    atomic_uint shares;
    atomic_bool over;
    pid_t pid; /* a fork()ed child has the job but not the thread */
};

/* Starts the work. Returns 0, or why not as an errno value; then the job is
 * still the caller's to free. */
int job_start(struct job *job);

/* Is the work done? Only then may its results be read. */
bool job_over(const struct job *job);

/* Blocks until the work is done. Not for a fork()ed child. */
void job_wait(const struct job *job);

/* The caller needs the job no longer. Also for a fork()ed child. */
void job_drop(struct job *job);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Work in a thread of its own.
 *
 * Invariant: the caller and the thread each hold one reference to the job, and
 * dropping the last one closes its descriptor and frees it. So a thread that
 * outlives its caller never writes to a descriptor that has been reused. The
 * thread writes the results before it sets `over`; the caller reads them only
 * after that.
 */
#include "net/job.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void dispose(struct job *job)
{
    close(job->fd);
    job->dispose(job);
}

static void drop_reference(struct job *job)
{
    if (atomic_fetch_sub(&job->shares, 1) == 1)
        dispose(job);
}

static void *thread_main(void *argument)
{
    struct job *job = argument;
    uint64_t one = 1;

    job->work(job);
    /* The work may have forked, and the child may have returned from it too.
     * The descriptor is the same in both processes. */
    if (job->pid != getpid())
        return NULL;
    atomic_store(&job->over, true);
    while (write(job->fd, &one, sizeof(one)) < 0 && errno == EINTR)
        continue;
    drop_reference(job);
    return NULL;
}

/* Returns 0 or an errno value. The stack has the default size of the program's
 * threads: the work runs code of others (modules of getaddrinfo(), a callback),
 * and the program's thread-local storage has to fit in it too. */
static int start_thread(struct job *job)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;

    int failure = pthread_attr_init(&attributes);
    if (failure != 0)
        return failure;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);

    /* A thread inherits the signal mask of its creator. Block all signals, so
     * that this one never takes the program's. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failure = pthread_create(&thread, &attributes, thread_main, job);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return failure;
}

int job_start(struct job *job)
{
    job->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (job->fd < 0)
        return errno;
    atomic_init(&job->shares, 2);
    atomic_init(&job->over, false);
    job->pid = getpid();
    int failure = start_thread(job);
    if (failure != 0)
        close(job->fd);
    return failure;
}

bool job_over(const struct job *job)
{
    return atomic_load(&job->over);
}

void job_wait(const struct job *job)
{
    struct pollfd over = {.fd = job->fd, .events = POLLIN};

    while (!job_over(job))
        (void)poll(&over, 1, -1);
}

void job_drop(struct job *job)
{
    /* In a fork()ed child there is no thread to drop its reference. */
    if (job->pid != getpid())
        dispose(job);
    else
        drop_reference(job);
}

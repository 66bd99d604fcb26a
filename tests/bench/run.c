/* SPDX-License-Identifier: MIT */
/* Every measurement runs in a child process of its own: its heap, its
 * threads, its processor time and its placement are nobody else's, and one
 * that hangs or crashes costs one sample. Connection and warm-up happen in
 * the child before its window opens. The parent sleeps meanwhile. */
#include "bench.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a measurement may take beyond its window before it counts as hung. */
#define PATIENCE_MS 20000

static const struct {
    const char *name;
    bench_runner *run;
    int width;
    const char *base;
    bool unpinned_too;
} kinds[] = {
    {"floor:argv", floor_argv, 1, NULL, false},
    /* The same once more: how far its ratio is from 1 is this run's noise. */
    {"floor:again", floor_argv, 1, "floor:argv", false},
    {"nxlock", subject_cycle, 1, "floor:argv", false},
    {"floor:pipe1000", floor_pipe, 1000, NULL, false},
    {"floor:sten1000", floor_stencil, 1000, "floor:pipe1000", false},
    {"nxlock:loop1000", subject_loop, 1000, "floor:pipe1000", false},
    {"nxlock:threads1", subject_threads, 1, NULL, true},
    {"nxlock:threads4", subject_threads, 4, "nxlock:threads1", true},
    {"nxlock:threads16", subject_threads, 16, "nxlock:threads1", true},
};

const struct variant *plan_find(
    const struct plan *plan, const char *name, bool over_unix, bool pinned)
{
    for (int i = 0; i < plan->count; i++) {
        const struct variant *v = &plan->variants[i];

        if (v->over_unix == over_unix && v->pinned == pinned &&
            strcmp(v->name, name) == 0)
            return v;
    }
    return NULL;
}

const struct variant *plan_base(
    const struct plan *plan, const struct variant *v)
{
    if (!v->base)
        return NULL;
    return plan_find(plan, v->base, v->over_unix, v->pinned);
}

static int add(struct plan *plan, size_t kind, bool over_unix, bool pinned)
{
    struct variant *v = &plan->variants[plan->count++];

    v->name = kinds[kind].name;
    v->run = kinds[kind].run;
    v->width = kinds[kind].width;
    v->base = kinds[kind].base;
    v->over_unix = over_unix;
    v->pinned = pinned;
    v->wanted = !plan->only || strstr(v->name, plan->only);
    v->samples = calloc((size_t)plan->rounds, sizeof(*v->samples));
    return v->samples ? 0 : -1;
}

static int add_transport(struct plan *plan, bool over_unix)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (add(plan, i, over_unix, plan->pin))
            return -1;
    }
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (!plan->pin || !kinds[i].unpinned_too)
            continue;
        if (add(plan, i, over_unix, false))
            return -1;
    }
    return 0;
}

int plan_make(struct plan *plan)
{
    int wanted = 0;

    if ((plan->server->port && add_transport(plan, false)) ||
        (plan->server->unix_path[0] && add_transport(plan, true))) {
        fprintf(stderr, "nxlock-bench: out of memory\n");
        return -1;
    }
    /* A ratio needs its base, wanted or not. */
    for (int i = plan->count - 1; i >= 0; i--) {
        const struct variant *base = plan_base(plan, &plan->variants[i]);

        if (base && plan->variants[i].wanted)
            plan->variants[base - plan->variants].wanted = true;
        wanted += plan->variants[i].wanted;
    }
    if (wanted == 0)
        fprintf(stderr, "nxlock-bench: no variant is named *%s*\n", plan->only);
    return wanted > 0 ? 0 : -1;
}

void plan_free(struct plan *plan)
{
    for (int i = 0; i < plan->count; i++)
        free(plan->variants[i].samples);
}

static void child_main(const struct plan *plan, const struct variant *v, int fd)
{
    const struct server *server = plan->server;
    struct sample sample = {.ok = false};
    struct task task = {
        .host = server->host,
        .port = server->port,
        .unix_path = v->over_unix ? server->unix_path : NULL,
        .url = v->over_unix ? server->unix_url : server->tcp_url,
        .width = v->width,
        .window_ns = plan->window_ns,
    };
    sigset_t none;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (sched_setaffinity(
            0, sizeof(plan->all), v->pinned ? &plan->one : &plan->all))
        sample_fail(&sample, "sched_setaffinity: %s", strerror(errno));
    else if (v->run(&task, &sample) != 0)
        sample.ok = false;
    if (write(fd, &sample, sizeof(sample)) != (ssize_t)sizeof(sample))
        _exit(1);
    _exit(0);
}

/* Waits for the child's sample. Returns 1 when a signal asks us to stop. */
static int collect(
    const struct plan *plan, pid_t child, int fd, int stop, struct sample *out)
{
    struct pollfd fds[2] = {{fd, POLLIN, 0}, {stop, POLLIN, 0}};
    int timeout_ms = PATIENCE_MS + (int)(plan->window_ns / 1000000);
    int ready;
    int status = 0;

    do {
        ready = poll(fds, 2, timeout_ms);
    } while (ready < 0 && errno == EINTR);
    if (ready <= 0 || fds[1].revents) {
        sample_fail(out, "hung");
        kill(child, SIGKILL);
    } else if (read(fd, out, sizeof(*out)) != (ssize_t)sizeof(*out)) {
        sample_fail(out, "ended without a result");
    }
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status) && ready > 0 && !fds[1].revents)
        sample_fail(out, "ended by signal %d", WTERMSIG(status));
    return ready > 0 && fds[1].revents ? 1 : 0;
}

static int measure(
    const struct plan *plan, const struct variant *v, int round, int stop)
{
    struct sample *sample = &v->samples[round];
    int fds[2];
    pid_t child;
    int rc;

    if (server_place(plan->server, v->pinned ? &plan->one : &plan->all))
        return sample_fail(sample, "cannot place the server");
    if (pipe(fds))
        return sample_fail(sample, "pipe: %s", strerror(errno));
    fflush(NULL);
    child = fork();
    if (child == 0) {
        close(fds[0]);
        child_main(plan, v, fds[1]);
    }
    close(fds[1]);
    if (child < 0)
        rc = sample_fail(sample, "fork: %s", strerror(errno));
    else
        rc = collect(plan, child, fds[0], stop, sample);
    close(fds[0]);
    if (rc == 0 && !sample->ok && round == 0)
        fprintf(stderr, "\rnxlock-bench: %s, %s, %s: %s\n", v->name,
            v->over_unix ? "unix" : "tcp", v->pinned ? "same" : "none",
            sample->error);
    return rc;
}

int plan_run(struct plan *plan)
{
    sigset_t signals;
    int stop;
    int rc = 0;

    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    stop = signalfd(-1, &signals, SFD_CLOEXEC);
    for (int round = 0; round < plan->rounds && rc == 0; round++) {
        fprintf(stderr, "\rround %d of %d ", round + 1, plan->rounds);
        /* The order rotates: no variant always follows the same load. */
        for (int i = 0; i < plan->count && rc == 0; i++) {
            int at = (i + round) % plan->count;

            if (plan->variants[at].wanted &&
                measure(plan, &plan->variants[at], round, stop) == 1)
                rc = 1;
        }
        if (rc == 0)
            plan->done++;
    }
    fprintf(stderr, "\r%*s\r", 40, "");
    if (stop >= 0)
        close(stop);
    return rc;
}

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

/* Where a kind is measured. */
enum {
    PLAIN = 1, /* over TCP and a unix socket, on one cpu */
    FREE = 2,  /* the same, and not placed */
    TLS = 4,   /* over TLS and TCP, on one cpu and on two */
};

static const struct {
    const char *name;
    bench_runner *run;
    int width;
    const char *base;
    int where;
} kinds[] = {
    {"floor:argv", floor_argv, 1, NULL, PLAIN},
    /* The same once more: how far its ratio is from 1 is this run's noise. */
    {"floor:again", floor_argv, 1, "floor:argv", PLAIN},
    {"nxlock", subject_cycle, 1, "floor:argv", PLAIN | TLS},
    {"floor:pipe1000", floor_pipe, 1000, NULL, PLAIN},
    {"nxlock:loop128", subject_loop, 128, NULL, TLS},
    {"nxlock:loop1000", subject_loop, 1000, "floor:pipe1000", PLAIN | TLS},
    {"nxlock:threads1", subject_threads, 1, NULL, PLAIN | FREE},
    {"nxlock:threads4", subject_threads, 4, "nxlock:threads1", PLAIN | FREE},
    {"nxlock:threads16", subject_threads, 16, "nxlock:threads1",
        PLAIN | FREE | TLS},
    {"nxlock:connect", subject_connect, 1, NULL, TLS},
};

const char *const over_names[OVERS] = {"tcp", "unix", "tls"};
const char *const pin_names[] = {"same", "two", "none"};

bool plan_has(const struct plan *plan, enum over over)
{
    return over != OVER_TLS || plan->server->tls_port != 0;
}

const struct variant *plan_find(
    const struct plan *plan, const char *name, enum over over, enum pin pin)
{
    for (int i = 0; i < plan->count; i++) {
        const struct variant *v = &plan->variants[i];

        if (v->over == over && v->pin == pin && strcmp(v->name, name) == 0)
            return v;
    }
    return NULL;
}

const struct variant *plan_base(
    const struct plan *plan, const struct variant *v)
{
    if (!v->base)
        return NULL;
    return plan_find(plan, v->base, v->base_over, v->pin);
}

/* Once only, though PLAIN and TLS both ask for it. */
static int add(struct plan *plan, size_t kind, enum over over, enum pin pin)
{
    struct variant *v = &plan->variants[plan->count];

    if (!plan_has(plan, over) || plan_find(plan, kinds[kind].name, over, pin))
        return 0;
    plan->count++;
    v->name = kinds[kind].name;
    v->run = kinds[kind].run;
    v->width = kinds[kind].width;
    v->base = over == OVER_TLS ? v->name : kinds[kind].base;
    v->base_over = over == OVER_TLS ? OVER_TCP : over;
    v->pin = pin;
    v->over = over;
    v->wanted = (!plan->only || strstr(v->name, plan->only)) &&
                (plan->only_over < 0 || plan->only_over == (int)over);
    v->samples = calloc((size_t)plan->rounds, sizeof(*v->samples));
    return v->samples ? 0 : -1;
}

/* Every kind that belongs to one of these places. */
static int add_all(struct plan *plan, int where, enum over over, enum pin pin)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if ((kinds[i].where & where) && add(plan, i, over, pin))
            return -1;
    }
    return 0;
}

static int add_plain(struct plan *plan, enum over over)
{
    return add_all(plan, PLAIN, over, PIN_SAME) ||
                   add_all(plan, FREE, over, PIN_NONE)
               ? -1
               : 0;
}

static int add_tls(struct plan *plan)
{
    bool two = CPU_COUNT(&plan->other) > 0;

    if (!plan_has(plan, OVER_TLS))
        return 0;
    for (enum over over = OVER_TCP; over < OVERS; over += OVER_TLS) {
        if (add_all(plan, TLS, over, PIN_SAME) ||
            (two && add_all(plan, TLS, over, PIN_TWO)))
            return -1;
    }
    return 0;
}

int plan_make(struct plan *plan)
{
    int wanted = 0;

    if (add_plain(plan, OVER_TCP) || add_plain(plan, OVER_UNIX) ||
        add_tls(plan)) {
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
        fprintf(stderr, "nxlock-bench: there is no such variant\n");
    return wanted > 0 ? 0 : -1;
}

void plan_free(struct plan *plan)
{
    for (int i = 0; i < plan->count; i++)
        free(plan->variants[i].samples);
}

static void child_main(const struct plan *plan, const struct variant *v, int fd)
{
    const struct redis *server = plan->server;
    const char *urls[OVERS] = {server->url, server->unix_url, server->tls_url};
    struct sample sample = {.ok = false};
    struct task task = {
        .host = "127.0.0.1",
        .port = server->plain_port,
        .unix_path = v->over == OVER_UNIX ? server->path : NULL,
        .url = urls[v->over],
        .width = v->width,
        .server = server->pid,
        .window_ns = plan->window_ns,
    };
    sigset_t none;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (sched_setaffinity(
            0, sizeof(plan->all), v->pin == PIN_NONE ? &plan->all : &plan->one))
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
    const cpu_set_t *servers[] = {&plan->one, &plan->other, &plan->all};
    struct sample *sample = &v->samples[round];
    int fds[2];
    pid_t child;
    int rc;

    if (server_place(plan->server, servers[v->pin]))
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
            over_names[v->over], pin_names[v->pin], sample->error);
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

/* SPDX-License-Identifier: MIT */
/* The library, measured through its public header only, in the ways a
 * program uses it: one lock, a thousand in an event loop, many threads on one
 * client. A cycle counts only when acquire and release both said NXL_OK. */
#include "bench.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nxlock.h>

#define WARM_CLIENTS 10

static nxl_client *subject_client(
    const struct task *task, struct sample *sample)
{
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    nxl_client *client = NULL;
    char error[160] = "";
    int rc;

    options.errbuf = error;
    options.errbuf_size = sizeof(error);
    rc = nxl_client_new(&client, task->url, &options);
    if (rc != NXL_OK)
        sample_fail(sample, "nxl_client_new: %s", error);
    return client;
}

static nxl_lock *subject_lock(
    nxl_client *client, int i, void *user, struct sample *sample)
{
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    char name[BENCH_NAME_SIZE];
    nxl_lock *lock = NULL;

    bench_name(name, i);
    options.ttl_ms = strtol(BENCH_TTL, NULL, 10);
    options.user = user;
    if (nxl_lock_new(&lock, client, name, &options) != NXL_OK)
        sample_fail(sample, "nxl_lock_new: %s", nxl_client_errmsg(client));
    return lock;
}

static int lock_fail(
    struct sample *sample, const char *what, nxl_lock *lock, int result)
{
    return sample_fail(sample, "%s: %s; %s", what, nxl_strerror(result),
        nxl_lock_errmsg(lock));
}

static int one_cycle(nxl_lock *lock, struct sample *sample)
{
    int rc = nxl_lock_acquire(lock, 0);

    if (rc != NXL_OK)
        return lock_fail(sample, "acquire", lock, rc);
    rc = nxl_lock_release(lock);
    if (rc != NXL_OK)
        return lock_fail(sample, "release", lock, rc);
    return 0;
}

/* Cycles until deadline_ns; returns how many, and their end in *now. */
static uint64_t many_cycles(nxl_lock *lock, uint64_t deadline_ns,
    struct histogram *histogram, uint64_t *now, struct sample *sample)
{
    uint64_t cycles = 0;

    while (*now < deadline_ns) {
        uint64_t before = *now;

        if (one_cycle(lock, sample))
            break;
        *now = bench_now_ns();
        histogram_add(histogram, *now - before);
        cycles++;
    }
    return cycles;
}

static int warm_up(nxl_lock *lock, struct sample *sample)
{
    for (int i = 0; i < BENCH_WARM; i++) {
        if (one_cycle(lock, sample))
            return -1;
    }
    return 0;
}

/* One lock, the blocking door: the uncontended cycle. */
int subject_cycle(const struct task *task, struct sample *sample)
{
    struct histogram histogram = {0};
    nxl_client *client = subject_client(task, sample);
    nxl_lock *lock = NULL;
    struct meter meter;
    uint64_t cycles;
    uint64_t now;
    int rc = -1;

    if (!client)
        return -1;
    lock = subject_lock(client, 0, NULL, sample);
    if (lock && warm_up(lock, sample) == 0) {
        meter_begin(&meter, task);
        now = meter.begin_ns;
        cycles = many_cycles(lock, meter.deadline_ns, &histogram, &now, sample);
        meter_end(&meter, now);
        if (!sample->error[0]) {
            meter_report(&meter, cycles, &histogram, sample);
            rc = 0;
        }
    }
    nxl_lock_free(lock);
    nxl_client_free(client);
    return rc;
}

/* A client, its first lock, and the end of both; in *took_ns what passed until
 * the lock was held. */
static int one_client(
    const struct task *task, uint64_t *took_ns, struct sample *sample)
{
    uint64_t before = bench_now_ns();
    nxl_client *client = subject_client(task, sample);
    nxl_lock *lock = client ? subject_lock(client, 0, NULL, sample) : NULL;
    int rc = -1;

    if (lock) {
        int result = nxl_lock_acquire(lock, 0);

        *took_ns = bench_now_ns() - before;
        if (result != NXL_OK)
            lock_fail(sample, "acquire", lock, result);
        else if ((result = nxl_lock_release(lock)) != NXL_OK)
            lock_fail(sample, "release", lock, result);
        else
            rc = 0;
    }
    nxl_lock_free(lock);
    nxl_client_free(client);
    return rc;
}

/* A client for each cycle. Its latency ends when the lock is held. */
int subject_connect(const struct task *task, struct sample *sample)
{
    struct histogram histogram = {0};
    struct meter meter;
    uint64_t cycles = 0;
    uint64_t now;
    uint64_t took_ns;

    for (int i = 0; i < WARM_CLIENTS; i++) {
        if (one_client(task, &took_ns, sample))
            return -1;
    }
    meter_begin(&meter, task);
    do {
        if (one_client(task, &took_ns, sample))
            return -1;
        histogram_add(&histogram, took_ns);
        cycles++;
        now = bench_now_ns();
    } while (now < meter.deadline_ns);
    meter_end(&meter, now);
    meter_report(&meter, cycles, &histogram, sample);
    return 0;
}

/* ------------------------------------------------------ non-blocking door */

struct looped {
    nxl_lock *lock;
    uint64_t since_ns;
};

struct loop {
    nxl_client *client;
    struct looped *locks;
    int width;
    int active;
    bool stopping;
    uint64_t cycles;
    struct histogram histogram;
};

static int loop_acquire(
    struct looped *looped, uint64_t now, struct sample *sample)
{
    int rc = nxl_lock_acquire_start(looped->lock, 0);

    looped->since_ns = now;
    if (rc != NXL_PENDING)
        return lock_fail(sample, "acquire_start", looped->lock, rc);
    return 0;
}

static int loop_event(struct loop *loop, const nxl_event *event, uint64_t now,
    struct sample *sample)
{
    struct looped *looped = event->user;
    int rc;

    if (event->operation == NXL_OP_ACQUIRE) {
        if (event->result != NXL_OK)
            return lock_fail(sample, "acquire", event->lock, event->result);
        rc = nxl_lock_release_start(event->lock);
        if (rc != NXL_PENDING)
            return lock_fail(sample, "release_start", event->lock, rc);
        return 0;
    }
    if (event->operation != NXL_OP_RELEASE || event->result != NXL_OK)
        return lock_fail(sample, "release", event->lock, event->result);
    histogram_add(&loop->histogram, now - looped->since_ns);
    loop->cycles++;
    if (!loop->stopping)
        return loop_acquire(looped, now, sample);
    loop->active--;
    return 0;
}

/* One turn of an event loop, as a program would write it. Reads the clock
 * once, as the pipelined floor does once a read. */
static int loop_turn(struct loop *loop, uint64_t *now, struct sample *sample)
{
    struct pollfd fds[8];
    nxl_event event;
    size_t count;
    int timeout_ms;
    int rc;

    count = nxl_client_pollfds(loop->client, fds, 8, &timeout_ms);
    if (count > 8)
        return sample_fail(sample, "%zu descriptors", count);
    poll(fds, (nfds_t)count, timeout_ms);
    rc = nxl_client_process(loop->client);
    if (rc != NXL_OK)
        return sample_fail(sample, "process: %s", nxl_strerror(rc));
    *now = bench_now_ns();
    while (nxl_client_next_event(loop->client, &event)) {
        if (loop_event(loop, &event, *now, sample))
            return -1;
    }
    return 0;
}

static int loop_measure(
    const struct task *task, struct loop *loop, struct sample *sample)
{
    struct meter meter;
    uint64_t now = bench_now_ns();

    for (int i = 0; i < loop->width; i++) {
        struct looped *looped = &loop->locks[i];

        looped->lock = subject_lock(loop->client, i, looped, sample);
        if (!looped->lock || loop_acquire(looped, now, sample))
            return -1;
    }
    loop->active = loop->width;
    while (loop->cycles < 2 * (uint64_t)loop->width) {
        if (loop_turn(loop, &now, sample))
            return -1;
    }
    memset(&loop->histogram, 0, sizeof(loop->histogram));
    loop->cycles = 0;
    meter_begin(&meter, task);
    do {
        if (loop_turn(loop, &now, sample))
            return -1;
    } while (now < meter.deadline_ns);
    meter_end(&meter, now);
    meter_report(&meter, loop->cycles, &loop->histogram, sample);

    loop->stopping = true;
    while (loop->active > 0) {
        if (loop_turn(loop, &now, sample))
            return -1;
    }
    return 0;
}

/* task->width locks in flight on one client. */
int subject_loop(const struct task *task, struct sample *sample)
{
    struct loop loop = {0};
    int rc = -1;

    loop.width = task->width;
    loop.client = subject_client(task, sample);
    if (!loop.client)
        return -1;
    loop.locks = calloc((size_t)task->width, sizeof(*loop.locks));
    if (loop.locks)
        rc = loop_measure(task, &loop, sample);
    else
        sample_fail(sample, "out of memory");
    for (int i = 0; loop.locks && i < task->width; i++)
        nxl_lock_free(loop.locks[i].lock);
    free(loop.locks);
    nxl_client_free(loop.client);
    return rc;
}

/* ---------------------------------------------------------------- threads */

/* All meet at warm, then at go; in between the main thread reads the meter
 * and sets the deadline. */
struct gate {
    pthread_barrier_t warm;
    pthread_barrier_t go;
    struct meter meter;
};

struct worker {
    struct gate *gate;
    nxl_lock *lock;
    pthread_t thread;
    uint64_t cycles;
    uint64_t allocs;
    uint64_t end_ns;
    struct histogram histogram;
    struct sample sample; /* for its error text */
};

static void *worker_main(void *argument)
{
    struct worker *worker = argument;
    struct gate *gate = worker->gate;

    /* A worker that fails still comes to both meetings. */
    warm_up(worker->lock, &worker->sample);
    pthread_barrier_wait(&gate->warm);
    pthread_barrier_wait(&gate->go);
    if (worker->sample.error[0])
        return NULL;
    worker->allocs = allocs_made();
    worker->end_ns = bench_now_ns();
    worker->cycles = many_cycles(worker->lock, gate->meter.deadline_ns,
        &worker->histogram, &worker->end_ns, &worker->sample);
    worker->allocs = allocs_made() - worker->allocs;
    return NULL;
}

/* Adds the workers up. */
static int gather(
    struct gate *gate, struct worker *workers, int width, struct sample *sample)
{
    struct worker *first = &workers[0];
    uint64_t own = gate->meter.end_ns;

    gate->meter.allocs = 0;
    gate->meter.end_ns = 0;
    for (int i = 0; i < width; i++) {
        struct worker *worker = &workers[i];

        if (worker->sample.error[0])
            return sample_fail(
                sample, "thread %d: %.160s", i, worker->sample.error);
        gate->meter.allocs += worker->allocs;
        if (worker->end_ns > gate->meter.end_ns)
            gate->meter.end_ns = worker->end_ns;
        if (worker != first) {
            first->cycles += worker->cycles;
            histogram_merge(&first->histogram, &worker->histogram);
        }
    }
    if (gate->meter.end_ns <= gate->meter.begin_ns)
        gate->meter.end_ns = own;
    meter_report(&gate->meter, first->cycles, &first->histogram, sample);
    return 0;
}

static int threads_measure(const struct task *task, nxl_client *client,
    struct worker *workers, struct sample *sample)
{
    struct gate gate;
    unsigned all = (unsigned)task->width + 1;

    if (pthread_barrier_init(&gate.warm, NULL, all) ||
        pthread_barrier_init(&gate.go, NULL, all))
        return sample_fail(sample, "cannot make a barrier");
    for (int i = 0; i < task->width; i++) {
        workers[i].gate = &gate;
        workers[i].lock = subject_lock(client, i, NULL, sample);
        if (!workers[i].lock)
            return -1;
    }
    for (int i = 0; i < task->width; i++) {
        /* The others would wait for ever; this process ends with us. */
        if (pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]))
            return sample_fail(sample, "cannot start thread %d", i);
    }
    pthread_barrier_wait(&gate.warm);
    meter_begin(&gate.meter, task);
    pthread_barrier_wait(&gate.go);
    for (int i = 0; i < task->width; i++)
        pthread_join(workers[i].thread, NULL);
    meter_end(&gate.meter, bench_now_ns());
    for (int i = 0; i < task->width; i++)
        nxl_lock_free(workers[i].lock);
    nxl_client_free(client);
    return gather(&gate, workers, task->width, sample);
}

/* task->width threads on one client, each with a lock of its own. */
int subject_threads(const struct task *task, struct sample *sample)
{
    nxl_client *client = subject_client(task, sample);
    struct worker *workers;
    int rc = -1;

    if (!client)
        return -1;
    workers = calloc((size_t)task->width, sizeof(*workers));
    if (workers)
        rc = threads_measure(task, client, workers, sample);
    else
        sample_fail(sample, "out of memory");
    /* After a failure threads may still use these: the process ends now. */
    if (rc == 0)
        free(workers);
    return rc;
}

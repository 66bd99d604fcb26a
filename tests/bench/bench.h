/* SPDX-License-Identifier: MIT */
/* What the files of the benchmark share. A task says what to measure and
 * where, a sample what one measurement found; floors and subjects fill the
 * same sample through the same meter, so that their ratio means something. */
#ifndef NXLOCK_BENCH_H
#define NXLOCK_BENCH_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "support/redis.h"

/* The lease of every lock here, floor and subject alike. */
#define BENCH_TTL "30000"
/* Cycles before the window opens: connection, script and caches are warm. */
#define BENCH_WARM 300
#define BENCH_MAX_ROUNDS 1000

/* ------------------------------------------------------------------ stats */

/* Latencies in 64 steps per doubling: 1.6 % wide, no memory per cycle. */
#define HISTOGRAM_BINS 2432

struct histogram {
    uint64_t count;
    uint32_t bins[HISTOGRAM_BINS];
};

struct sample {
    bool ok;
    double rate;     /* cycles per second */
    double p50_us;   /* per cycle */
    double p99_us;   /* per cycle */
    double cpu_us;   /* of the client process, per cycle */
    double both_us;  /* the same and the server's */
    double switches; /* voluntary context switches, per cycle */
    double allocs;   /* malloc, calloc and realloc, per cycle; -1 unknown */
    int threads;     /* in the client process, the most that were seen */
    char error[200]; /* when not ok */
};

struct task;

struct meter {
    const struct task *task;
    uint64_t begin_ns;
    uint64_t end_ns;
    uint64_t deadline_ns;
    uint64_t allocs;
    int64_t server_us; /* processor time */
    struct rusage usage;
    int threads;
};

uint64_t bench_now_ns(void);

void histogram_add(struct histogram *histogram, uint64_t ns);
void histogram_merge(struct histogram *into, const struct histogram *from);
double histogram_us(const struct histogram *histogram, double quantile);

/* Opens the window, which is over at meter->deadline_ns. */
void meter_begin(struct meter *meter, const struct task *task);
/* Closes it. Allocations are those of this thread since meter_begin(). */
void meter_end(struct meter *meter, uint64_t end_ns);
/* What the window held, per cycle. */
void meter_report(const struct meter *meter, uint64_t cycles,
    const struct histogram *histogram, struct sample *sample);

double median_of(const double *values, int count);

/* Writes sample->error and returns -1. */
int sample_fail(struct sample *sample, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* How often this thread has called malloc, calloc and realloc. */
uint64_t allocs_made(void);
bool allocs_known(void);

/* ------------------------------------------------------------------ tasks */

struct task {
    const char *unix_path; /* NULL: TCP */
    const char *host;
    int port;
    const char *url; /* the same place, for nxl_client_new() */
    int width;       /* locks in flight, or threads */
    pid_t server;
    uint64_t window_ns;
};

typedef int bench_runner(const struct task *task, struct sample *sample);

bench_runner floor_argv;
bench_runner floor_pipe;
bench_runner subject_cycle;
bench_runner subject_connect;
bench_runner subject_loop;
bench_runner subject_threads;

/* The script that releases a lock. */
extern const char bench_release[];

/* The name of the i-th lock of this measurement; of one length for all. */
#define BENCH_NAME_SIZE 40
void bench_name(char name[BENCH_NAME_SIZE], int i);

/* ----------------------------------------------------------------- server */

/* Every thread of it on these processors. */
int server_place(const struct redis *server, const cpu_set_t *cpus);
#define BENCH_VERSION_SIZE 64
void server_version(struct redis *server, char version[BENCH_VERSION_SIZE]);

/* A number that an option has; false: it is none, or out of bounds. */
bool bench_number(const char *text, double low, double high, double *out);

/* -------------------------------------------------------------------- run */

enum over { OVER_TCP, OVER_UNIX, OVER_TLS, OVERS };
enum pin { PIN_SAME, PIN_TWO, PIN_NONE };

struct variant {
    const char *name;
    bench_runner *run;
    int width;
    const char *base; /* the ratio is to this one; NULL: none */
    enum over base_over;
    enum pin pin;
    enum over over;
    bool wanted;
    struct sample *samples; /* one a round */
};

#define MAX_VARIANTS 64

struct plan {
    struct redis *server;
    struct variant variants[MAX_VARIANTS];
    int count;
    int rounds; /* asked for */
    int done;   /* complete */
    uint64_t window_ns;
    cpu_set_t all;
    cpu_set_t one;
    cpu_set_t other;  /* for the server alone; empty: there is one cpu */
    const char *only; /* part of a name; NULL: every variant */
    int only_over;    /* an enum over; -1: every transport */
};

extern const char *const over_names[OVERS];
extern const char *const pin_names[];

bool plan_has(const struct plan *plan, enum over over);

/* Fills the variants; -1 after a message. */
int plan_make(struct plan *plan);
void plan_free(struct plan *plan);
/* Measures round by round; stops early when SIGINT or SIGTERM arrives. */
int plan_run(struct plan *plan);
/* The variant that v is compared with, or NULL. */
const struct variant *plan_base(
    const struct plan *plan, const struct variant *v);
const struct variant *plan_find(
    const struct plan *plan, const char *name, enum over over, enum pin pin);

/* Prints the table and the goals. Returns how many variants failed. */
int report_print(const struct plan *plan);

#endif

/* SPDX-License-Identifier: MIT */
/* Every number of a measurement is taken here and nowhere else, in the same
 * way for floors and subjects: nothing allocates between meter_begin() and
 * meter_end(). */
#include "bench.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

uint64_t bench_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

void histogram_add(struct histogram *histogram, uint64_t ns)
{
    unsigned shift = 0;
    uint64_t bin;

    if (ns >= 128)
        shift = 57U - (unsigned)__builtin_clzll(ns);
    bin = (uint64_t)shift * 64 + (ns >> shift);
    if (bin >= HISTOGRAM_BINS)
        bin = HISTOGRAM_BINS - 1;
    histogram->bins[bin]++;
    histogram->count++;
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
    for (int i = 0; i < HISTOGRAM_BINS; i++)
        into->bins[i] += from->bins[i];
    into->count += from->count;
}

double histogram_us(const struct histogram *histogram, double quantile)
{
    double wanted = quantile * (double)histogram->count;
    double seen = 0;
    int bin = 0;
    int shift;

    while (bin < HISTOGRAM_BINS - 1) {
        seen += histogram->bins[bin];
        if (seen > 0 && seen >= wanted)
            break;
        bin++;
    }
    shift = bin < 128 ? 0 : bin / 64 - 1;
    return ((double)(bin - shift * 64) + 0.5) * (double)((uint64_t)1 << shift) /
           1000;
}

/* How many threads this process has; 0 when the system does not tell. */
static int threads_now(void)
{
    char line[128];
    int threads = 0;
    FILE *status = fopen("/proc/self/status", "r");

    if (!status)
        return 0;
    while (fgets(line, sizeof(line), status)) {
        if (sscanf(line, "Threads: %d", &threads) == 1)
            break;
    }
    fclose(status);
    return threads;
}

/* The processor time of the server, all its threads. */
static int64_t server_us(const struct task *task)
{
    struct timespec time;
    clockid_t clock;

    if (clock_getcpuclockid(task->server, &clock) ||
        clock_gettime(clock, &time))
        return 0;
    return (int64_t)time.tv_sec * 1000000 + (int64_t)time.tv_nsec / 1000;
}

void meter_begin(struct meter *meter, const struct task *task)
{
    meter->task = task;
    meter->threads = threads_now();
    meter->server_us = server_us(task);
    getrusage(RUSAGE_SELF, &meter->usage);
    meter->allocs = allocs_made();
    meter->begin_ns = bench_now_ns();
    meter->deadline_ns = meter->begin_ns + task->window_ns;
}

static int64_t us_of(struct timeval value)
{
    return (int64_t)value.tv_sec * 1000000 + (int64_t)value.tv_usec;
}

void meter_end(struct meter *meter, uint64_t end_ns)
{
    struct rusage before = meter->usage;
    struct rusage *usage = &meter->usage;
    int threads;
    int64_t us;

    meter->end_ns = end_ns;
    meter->allocs = allocs_made() - meter->allocs;
    getrusage(RUSAGE_SELF, usage);
    meter->server_us = server_us(meter->task) - meter->server_us;
    us = us_of(usage->ru_utime) + us_of(usage->ru_stime) -
         us_of(before.ru_utime) - us_of(before.ru_stime);
    usage->ru_utime = (struct timeval){us / 1000000, us % 1000000};
    usage->ru_stime = (struct timeval){0, 0};
    usage->ru_nvcsw -= before.ru_nvcsw;
    threads = threads_now();
    if (threads > meter->threads)
        meter->threads = threads;
}

void meter_report(const struct meter *meter, uint64_t cycles,
    const struct histogram *histogram, struct sample *sample)
{
    double n = cycles > 0 ? (double)cycles : 1;

    sample->ok = cycles > 0;
    if (!sample->ok)
        sample_fail(sample, "not one cycle was done in the window");
    sample->rate =
        (double)cycles * 1e9 / (double)(meter->end_ns - meter->begin_ns);
    sample->p50_us = histogram_us(histogram, 0.50);
    sample->p99_us = histogram_us(histogram, 0.99);
    sample->cpu_us = (double)us_of(meter->usage.ru_utime) / n;
    sample->both_us = sample->cpu_us + (double)meter->server_us / n;
    sample->switches = (double)meter->usage.ru_nvcsw / n;
    sample->allocs = allocs_known() ? (double)meter->allocs / n : -1;
    sample->threads = meter->threads;
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;

    return (a > b) - (a < b);
}

double median_of(const double *values, int count)
{
    double sorted[BENCH_MAX_ROUNDS];
    int half = count / 2;

    if (count <= 0)
        return 0;
    memcpy(sorted, values, (size_t)count * sizeof(*sorted));
    qsort(sorted, (size_t)count, sizeof(*sorted), compare);
    if (count % 2 == 1)
        return sorted[half];
    return (sorted[half - 1] + sorted[half]) / 2;
}

int sample_fail(struct sample *sample, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(sample->error, sizeof(sample->error), format, args);
    va_end(args);
    sample->ok = false;
    return -1;
}

void bench_name(char name[BENCH_NAME_SIZE], int i)
{
    /* The process is in the name: measurements never meet each other's
     * locks, even on a server somebody else uses. */
    snprintf(name, BENCH_NAME_SIZE, "nxlock-bench:%07d:%04d", (int)getpid(), i);
}

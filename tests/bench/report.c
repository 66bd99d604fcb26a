/* SPDX-License-Identifier: MIT */
/* Turns samples into the table and the verdicts. A ratio is always taken
 * within one round and the median of those is quoted: the machine's changes
 * of speed hit both sides of a round, and one bad round moves no median. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <nxlock.h>

enum column { RATE, P50, P99, CPU, SWITCHES, ALLOCS, THREADS };

static double value_of(const struct sample *sample, enum column column)
{
    switch (column) {
    case RATE:
        return sample->rate;
    case P50:
        return sample->p50_us;
    case P99:
        return sample->p99_us;
    case CPU:
        return sample->cpu_us;
    case SWITCHES:
        return sample->switches;
    case ALLOCS:
        return sample->allocs;
    case THREADS:
        break;
    }
    return (double)sample->threads;
}

struct spread {
    int count;
    double median;
    double min;
    double max;
};

/* Over the rounds in which v, and base if there is one, were measured. */
static struct spread spread_of(const struct plan *plan, const struct variant *v,
    const struct variant *base, enum column column)
{
    struct spread spread = {0, 0, 0, 0};
    double values[BENCH_MAX_ROUNDS];

    for (int i = 0; i < plan->done; i++) {
        double value;

        if (!v->samples[i].ok || (base && !base->samples[i].ok))
            continue;
        value = value_of(&v->samples[i], column);
        if (base)
            value /= value_of(&base->samples[i], column);
        if (spread.count == 0 || value < spread.min)
            spread.min = value;
        if (spread.count == 0 || value > spread.max)
            spread.max = value;
        values[spread.count++] = value;
    }
    spread.median = median_of(values, spread.count);
    return spread;
}

static void print_number(
    const struct plan *plan, const struct variant *v, enum column column)
{
    struct spread spread = spread_of(plan, v, NULL, column);

    if (column == ALLOCS && spread.median < 0)
        printf(" %8s", "-");
    else if (column == THREADS)
        printf(" %8.0f", spread.max);
    else
        printf(" %8.*f", column == P50 || column == P99 ? 1 : 2, spread.median);
}

static const char *first_error(const struct plan *plan, const struct variant *v)
{
    for (int i = 0; i < plan->done; i++) {
        if (!v->samples[i].ok)
            return v->samples[i].error;
    }
    return NULL;
}

static void print_row(const struct plan *plan, const struct variant *v)
{
    const struct variant *base = plan_base(plan, v);
    struct spread rate = spread_of(plan, v, NULL, RATE);
    const char *error = first_error(plan, v);
    char text[64] = "-";

    printf("%-4s %-4s %-16s", v->over_unix ? "unix" : "tcp",
        v->pinned ? "same" : "none", v->name);
    if (rate.count == 0) {
        printf(" failed: %s\n", error ? error : "no complete round");
        return;
    }
    printf(" %8.0f [%6.0f-%6.0f]", rate.median, rate.min, rate.max);
    if (base) {
        struct spread ratio = spread_of(plan, v, base, RATE);

        if (ratio.count > 0)
            snprintf(text, sizeof(text), "%.3f [%.3f-%.3f]", ratio.median,
                ratio.min, ratio.max);
    }
    printf(" %22s", text);
    for (enum column column = P50; column <= THREADS; column++)
        print_number(plan, v, column);
    if (base)
        printf("  ratio to %s", base->name);
    if (error)
        printf("  (%d rounds failed: %s)", plan->done - rate.count, error);
    printf("\n");
}

static void print_head(const struct plan *plan)
{
    struct utsname system;
    double load = 0;

    getloadavg(&load, 1);
    if (uname(&system))
        memset(&system, 0, sizeof(system));
    printf("nxlock %s, %s, %s %s %s, %ld cpus, load %.1f\n", nxl_version(),
        plan->server->version, system.sysname, system.release, system.machine,
        sysconf(_SC_NPROCESSORS_ONLN), load);
    printf("%d rounds of %.2f s; median [min-max] over the rounds; "
           "TTL %s ms\n\n",
        plan->done, (double)plan->window_ns / 1e9, BENCH_TTL);
    printf("%-4s %-4s %-16s %24s %22s %8s %8s %8s %8s %8s %8s\n", "over", "pin",
        "variant", "cycles/s", "ratio", "p50 us", "p99 us", "CPU us",
        "switches", "allocs", "threads");
}

static const struct goal {
    const char *text;
    const char *variant;
    bool relative; /* to its base, else as it is */
    enum column column;
    bool at_least;
    double bound[2]; /* TCP, unix */
    enum { AS_GIVEN, UNPINNED, PINNED } pin;
} goals[] = {
    {"uncontended cycles/s, to floor:argv", "nxlock", true, RATE, true,
        {0.95, 1.05}, AS_GIVEN},
    {"uncontended client CPU per cycle, to floor:argv", "nxlock", true, CPU,
        false, {1.15, 1.15}, AS_GIVEN},
    {"allocations per cycle", "nxlock", false, ALLOCS, false, {2, 2}, AS_GIVEN},
    {"threads in the uncontended run", "nxlock", false, THREADS, false, {1, 1},
        AS_GIVEN},
    {"1000 in flight, to floor:pipe1000", "nxlock:loop1000", true, RATE, true,
        {0.85, 0.85}, AS_GIVEN},
    {"16 threads, to 1 thread, unpinned", "nxlock:threads16", true, RATE, true,
        {3, 3}, UNPINNED},
    {"16 threads, to 1 thread, one cpu", "nxlock:threads16", true, RATE, true,
        {1.1, 1.1}, PINNED},
};

static void print_goal(
    const struct plan *plan, const struct goal *goal, bool over_unix)
{
    bool pinned = goal->pin == AS_GIVEN ? plan->pin : goal->pin == PINNED;
    const struct variant *v = plan_find(plan, goal->variant, over_unix, pinned);
    const struct variant *base =
        v && goal->relative ? plan_base(plan, v) : NULL;
    double bound = goal->bound[over_unix];
    struct spread spread = {0, 0, 0, 0};
    double value;
    bool met;

    if (v)
        spread = spread_of(plan, v, base, goal->column);
    value = goal->column == THREADS ? spread.max : spread.median;
    printf("%-4s %-48s %s %.2f ", over_unix ? "unix" : "tcp", goal->text,
        goal->at_least ? ">=" : "<=", bound);
    /* Threads read as 0 where /proc is missing, allocations as -1. */
    if (spread.count == 0 || value < 0 ||
        (goal->column == THREADS && value == 0)) {
        printf("%8s  not measured\n", "-");
        return;
    }
    met = goal->at_least ? value >= bound : value <= bound;
    printf("%8.3f  %s", value, met ? "met" : "NOT met");
    if (spread.count < plan->done)
        printf(", but in %d of %d rounds only", spread.count, plan->done);
    printf("\n");
}

/* The same floor twice is 1 on a quiet machine; single rounds of such a one
 * were seen between 0.9 and 1.2. */
static void print_noise(const struct plan *plan, bool over_unix)
{
    const struct variant *v =
        plan_find(plan, "floor:again", over_unix, plan->pin);
    const struct variant *base = v ? plan_base(plan, v) : NULL;
    struct spread spread;

    if (!base)
        return;
    spread = spread_of(plan, v, base, RATE);
    if (spread.count == 0 || (spread.min >= 0.8 && spread.max <= 1.25))
        return;
    printf("note: over %s floor:again was %.2f to %.2f times itself: the "
           "machine was busy,\n      verdicts near their bound mean little\n",
        over_unix ? "unix" : "tcp", spread.min, spread.max);
}

int report_print(const struct plan *plan)
{
    int failed = 0;

    print_head(plan);
    for (int i = 0; i < plan->count; i++) {
        if (!plan->variants[i].wanted)
            continue;
        print_row(plan, &plan->variants[i]);
        failed += first_error(plan, &plan->variants[i]) != NULL;
    }
    printf("\ngoals\n");
    for (int over_unix = 0; over_unix < 2; over_unix++) {
        if (over_unix ? !plan->server->unix_path[0] : !plan->server->port)
            continue;
        for (size_t i = 0; i < sizeof(goals) / sizeof(goals[0]); i++)
            print_goal(plan, &goals[i], over_unix);
    }
    print_noise(plan, false);
    print_noise(plan, true);
    if (plan->done < 15)
        printf("note: a criterion of 5 %% needs 15 rounds or more\n");
    if (!plan->pin)
        printf("note: without --pin same the placement decides, not the "
               "code\n");
    return failed;
}

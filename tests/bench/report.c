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

enum column { RATE, P50, P99, CPU, BOTH, SWITCHES, ALLOCS, THREADS };

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
    case BOTH:
        return sample->both_us;
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

enum relation { AS_IS, RATIO, MORE };

/* Over the rounds in which v, and base if there is one, were measured. */
static struct spread spread_of(const struct plan *plan, const struct variant *v,
    const struct variant *base, enum relation relation, enum column column)
{
    struct spread spread = {0, 0, 0, 0};
    double values[BENCH_MAX_ROUNDS];

    for (int i = 0; i < plan->done; i++) {
        double value;

        if (!v->samples[i].ok || (base && !base->samples[i].ok))
            continue;
        value = value_of(&v->samples[i], column);
        if (base && relation == RATIO)
            value /= value_of(&base->samples[i], column);
        else if (base && relation == MORE)
            value -= value_of(&base->samples[i], column);
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
    struct spread spread = spread_of(plan, v, NULL, AS_IS, column);

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
    struct spread rate = spread_of(plan, v, NULL, AS_IS, RATE);
    const char *error = first_error(plan, v);
    char text[64] = "-";

    printf("%-4s %-4s %-16s", over_names[v->over], pin_names[v->pin], v->name);
    if (rate.count == 0) {
        printf(" failed: %s\n", error ? error : "no complete round");
        return;
    }
    printf(" %8.0f [%6.0f-%6.0f]", rate.median, rate.min, rate.max);
    if (base) {
        struct spread ratio = spread_of(plan, v, base, RATIO, RATE);

        if (ratio.count > 0)
            snprintf(text, sizeof(text), "%.3f [%.3f-%.3f]", ratio.median,
                ratio.min, ratio.max);
    }
    printf(" %22s", text);
    for (enum column column = P50; column <= THREADS; column++)
        print_number(plan, v, column);
    if (base)
        printf("  ratio to %s%s", base->name,
            base->over == v->over ? "" : " over tcp");
    if (error)
        printf("  (%d rounds failed: %s)", plan->done - rate.count, error);
    printf("\n");
}

static void print_head(const struct plan *plan)
{
    char version[BENCH_VERSION_SIZE];
    struct utsname system;
    double load = 0;

    getloadavg(&load, 1);
    server_version(plan->server, version);
    if (uname(&system))
        memset(&system, 0, sizeof(system));
    printf("nxlock %s, %s, %s %s %s, %ld cpus, load %.1f\n", nxl_version(),
        version, system.sysname, system.release, system.machine,
        sysconf(_SC_NPROCESSORS_ONLN), load);
    printf("%d rounds of %.2f s; median [min-max] over the rounds; "
           "TTL %s ms\n\n",
        plan->done, (double)plan->window_ns / 1e9, BENCH_TTL);
    printf("%-4s %-4s %-16s %24s %22s %8s %8s %8s %8s %8s %8s %8s\n", "over",
        "pin", "variant", "cycles/s", "ratio", "p50 us", "p99 us", "CPU us",
        "both us", "switches", "allocs", "threads");
}

static const struct goal {
    const char *text;
    const char *variant;
    enum relation relation; /* to its base */
    enum column column;
    bool at_least;
    double bound[OVERS]; /* 0: no goal */
    enum pin pin;
} goals[] = {
    {"uncontended cycles/s, to floor:argv", "nxlock", RATIO, RATE, true,
        {0.95, 1.05}, PIN_SAME},
    {"uncontended client CPU per cycle, to floor:argv", "nxlock", RATIO, CPU,
        false, {1.15, 1.15}, PIN_SAME},
    {"allocations per cycle", "nxlock", AS_IS, ALLOCS, false, {2, 2}, PIN_SAME},
    {"threads in the uncontended run", "nxlock", AS_IS, THREADS, false, {1, 1},
        PIN_SAME},
    {"1000 in flight, to floor:pipe1000", "nxlock:loop1000", RATIO, RATE, true,
        {0.85, 0.85}, PIN_SAME},
    {"16 threads, to 1 thread, unpinned", "nxlock:threads16", RATIO, RATE, true,
        {3, 3}, PIN_NONE},
    {"16 threads, to 1 thread, one cpu", "nxlock:threads16", RATIO, RATE, true,
        {1.1, 1.1}, PIN_SAME},
    {"uncontended client CPU per cycle, to plain", "nxlock", RATIO, CPU, false,
        {[OVER_TLS] = 1.25}, PIN_SAME},
    {"uncontended client CPU per cycle, two cpus", "nxlock", RATIO, CPU, false,
        {[OVER_TLS] = 1.25}, PIN_TWO},
    {"128 in flight, client CPU, to plain", "nxlock:loop128", RATIO, CPU, false,
        {[OVER_TLS] = 1.35}, PIN_SAME},
    {"128 in flight, client CPU, two cpus", "nxlock:loop128", RATIO, CPU, false,
        {[OVER_TLS] = 1.35}, PIN_TWO},
    {"connect and first lock, us more than plain", "nxlock:connect", MORE, P50,
        false, {[OVER_TLS] = 3000}, PIN_SAME},
    {"connect and first lock, us more, two cpus", "nxlock:connect", MORE, P50,
        false, {[OVER_TLS] = 3000}, PIN_TWO},
};

static void print_goal(
    const struct plan *plan, const struct goal *goal, enum over over)
{
    const struct variant *v = plan_find(plan, goal->variant, over, goal->pin);
    const struct variant *base = v ? plan_base(plan, v) : NULL;
    double bound = goal->bound[over];
    struct spread spread = {0, 0, 0, 0};
    double value;
    bool met;

    if (goal->relation == AS_IS)
        base = NULL;
    if (v)
        spread = spread_of(plan, v, base, goal->relation, goal->column);
    value = goal->column == THREADS ? spread.max : spread.median;
    printf("%-4s %-48s %s %.2f ", over_names[over], goal->text,
        goal->at_least ? ">=" : "<=", bound);
    /* Threads read as 0 where /proc is missing, allocations as -1. */
    if (spread.count == 0 || (value < 0 && goal->relation != MORE) ||
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

/* How much more TLS takes, in wall time and in processor time. */
static void print_tls(const struct plan *plan)
{
    static const enum column columns[] = {RATE, CPU, BOTH};

    printf("\n%-4s %-16s %24s %24s %24s %24s\n", "pin", "TLS / plain", "wall",
        "client CPU", "CPU of both", "p50, us more");
    for (int i = 0; i < plan->count; i++) {
        const struct variant *v = &plan->variants[i];
        const struct variant *base = plan_base(plan, v);
        struct spread more;

        if (v->over != OVER_TLS || !v->wanted || !base)
            continue;
        printf("%-4s %-16s", pin_names[v->pin], v->name);
        for (size_t j = 0; j < sizeof(columns) / sizeof(columns[0]); j++) {
            struct spread s = columns[j] == RATE
                                  ? spread_of(plan, base, v, RATIO, RATE)
                                  : spread_of(plan, v, base, RATIO, columns[j]);

            printf("    %6.3f [%5.3f-%5.3f]", s.median, s.min, s.max);
        }
        more = spread_of(plan, v, base, MORE, P50);
        printf(" %8.1f [%6.1f-%6.1f]\n", more.median, more.min, more.max);
    }
}

/* The same floor twice is 1 on a quiet machine; single rounds of such a one
 * were seen between 0.9 and 1.2. */
static void print_noise(const struct plan *plan, enum over over)
{
    const struct variant *v = plan_find(plan, "floor:again", over, PIN_SAME);
    const struct variant *base = v ? plan_base(plan, v) : NULL;
    struct spread spread;

    if (!base)
        return;
    spread = spread_of(plan, v, base, RATIO, RATE);
    if (spread.count == 0 || (spread.min >= 0.8 && spread.max <= 1.25))
        return;
    printf("note: over %s floor:again was %.2f to %.2f times itself: the "
           "machine was busy,\n      verdicts near their bound mean little\n",
        over_names[over], spread.min, spread.max);
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
    if (plan_has(plan, OVER_TLS))
        print_tls(plan);
    printf("\ngoals\n");
    for (enum over over = 0; over < OVERS; over++) {
        if (!plan_has(plan, over))
            continue;
        for (size_t i = 0; i < sizeof(goals) / sizeof(goals[0]); i++) {
            if (goals[i].bound[over] > 0)
                print_goal(plan, &goals[i], over);
        }
    }
    print_noise(plan, OVER_TCP);
    print_noise(plan, OVER_UNIX);
    if (plan->done < 15)
        printf("note: a criterion of 5 %% needs 15 rounds or more\n");
    return failed;
}

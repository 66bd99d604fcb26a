/* SPDX-License-Identifier: MIT */
/*
 * nxlock-sim: plays seeds. The same arguments always give the same history.
 * The first seed that fails is told last, made small, with the command that
 * plays it again.
 */
#include <stddef.h>
#include <time.h>

#include "sim/arguments.h"
#include "sim/shrink.h"

/* What failed first of all. */
static struct options first;

static void print_replay(const struct arguments *a, const struct options *o)
{
    fputs("replay: ", stdout);
    arguments_print(a, o, stdout);
}

/* What is left of it when all that does not matter is left out; or, where
 * nothing can be, its end. */
static void tell_story(const struct arguments *a)
{
    static struct events kept;
    struct options told = first;
    printf("\n--- seed %llu of %u server%s, ", (unsigned long long)first.seed,
        first.servers, first.servers == 1 ? "" : "s");
    if (shrink(&told, &kept)) {
        printf("with the fewest events that break it so, %zu:\n", kept.count);
        told.aloud = true;
    } else {
        printf("which cannot be made small, the end of it:\n");
        told = first;
    }
    world_run(&told, stdout);
    print_replay(a, &told);
    puts("tests/sim/README.md explains the words.");
}

/* ... as it happens. */
static bool tells(const struct arguments *a)
{
    return a->options.aloud || a->options.only;
}

static void print_broken(const struct arguments *a, const struct report *r)
{
    if (!tells(a))
        report_print(r, &a->options, stdout);
    print_replay(a, &a->options);
    if (tells(a))
        puts("tests/sim/README.md explains the words.");
    else if (first.servers == 0)
        first = a->options;
    fflush(stdout);
}

/* ----------------------------------------------------------------- summary */

struct summary {
    struct world_sum sum;
    struct world_most most;
    uint64_t waited_long; /* seeds with more than half of the bound of I6 */
};

/* Both are nothing but numbers. */
#define NUMBERS(type) (sizeof(type) / sizeof(uint64_t))

static void add(struct summary *all, const struct report *r)
{
    const uint64_t *sum = (const uint64_t *)&r->sum;
    const uint64_t *most = (const uint64_t *)&r->most;
    uint64_t *all_sum = (uint64_t *)&all->sum;
    uint64_t *all_most = (uint64_t *)&all->most;
    for (size_t i = 0; i < NUMBERS(struct world_sum); i++)
        all_sum[i] += sum[i];
    for (size_t i = 0; i < NUMBERS(struct world_most); i++)
        all_most[i] = later(all_most[i], most[i]);
    all->waited_long += r->most.waited >= 50;
}

#define SUM(name) offsetof(struct summary, sum.name)
#define MOST(name) offsetof(struct summary, most.name)

static const struct {
    const char *words;
    size_t at;
} shown[] = {
    {"%llu grants", SUM(grants)},
    {"%llu in line", SUM(lined)},
    {"%llu fences", SUM(fences)},
    {"%llu renewals", SUM(renewals)},
    {"%llu losses", SUM(losses)},
    {"%llu handed over", SUM(handed)},
    {"%llu expired", SUM(expired)},
    {"%llu troubles", SUM(troubles)},
    {"%llu strays", SUM(strays)},
    {"%llu requests of waiters", SUM(asked)},
    {"lines of up to %llu", MOST(in_line)},
    {"%llu gaps", SUM(gaps)},
    {"%llu grants to strangers", SUM(turns_outside)},
    {"%llu grants beside others", SUM(beside)},
    {"up to %llu holders at once", MOST(holders)},
    {"%llu exclusive grants beside readers", SUM(alone)},
    {"for which somebody waited up to %llu ms", MOST(starved_ms)},
    {"%llu times several names were held together", SUM(together)},
    {"%llu begun", SUM(begun)},
    {"%llu taken back", SUM(unbegun)},
    {"%llu done", SUM(acts)},
    {"%llu late", SUM(late)},
    {"%llu found done", SUM(done)},
    {"%llu in doubt", SUM(in_doubt)},
    {"waits up to %llu %% of the bound", MOST(waited)},
    {"%llu seeds with more than half of it",
        offsetof(struct summary, waited_long)},
    {"%llu steps", SUM(steps)},
};

/* What there was, and the hash of all histories. */
static void print_summary(const struct arguments *a, const struct summary *all,
    double ms, uint64_t hash)
{
    printf("%u servers, seeds %llu-%llu: ", a->options.servers,
        (unsigned long long)a->from,
        (unsigned long long)(a->from + a->count - 1));
    for (size_t i = 0; i < sizeof(shown) / sizeof(*shown); i++) {
        const void *at = (const char *)all + shown[i].at;
        unsigned long long number = *(const uint64_t *)at;
        if (number) {
            printf(shown[i].words, number);
            fputs(", ", stdout);
        }
    }
    printf("%.0f a second; hash %016llx\n",
        ms > 0 ? (double)all->sum.steps * 1000 / ms : 0,
        (unsigned long long)hash);
}

static int play(struct arguments *a)
{
    struct summary all = {0};
    uint64_t hash = 0, failed = 0, too_few = 0;
    clock_t began = clock();
    for (uint64_t i = 0; i < a->count; i++) {
        a->options.seed = a->from + i;
        struct report r =
            world_run(&a->options, tells(a) && !failed ? stdout : NULL);
        add(&all, &r);
        hash = hash * 31 + r.hash;
        if (r.broken && failed++ == 0)
            print_broken(a, &r);
        if (r.too_few && !r.broken && too_few++ == 0)
            printf("seed %llu: only %llu grants and %llu troubles\n",
                (unsigned long long)a->options.seed,
                (unsigned long long)r.sum.grants,
                (unsigned long long)r.sum.troubles);
    }
    print_summary(
        a, &all, (double)(clock() - began) * 1000 / CLOCKS_PER_SEC, hash);
    if (failed || too_few)
        printf("%llu seeds failed, %llu had too little in them\n",
            (unsigned long long)failed, (unsigned long long)too_few);
    return failed || too_few ? 1 : 0;
}

int main(int argc, char **argv)
{
    static struct arguments a;
    int code = 0;
    switch (arguments_read(&a, argc, argv)) {
    case ARGUMENTS_HELP:
        return 0;
    case ARGUMENTS_WRONG:
        return 2;
    case ARGUMENTS_READ:
        break;
    }
    for (unsigned i = 0; i < a.servers_count; i++) {
        a.options.servers = a.servers[i];
        code |= play(&a);
    }
    if (first.servers != 0)
        tell_story(&a);
    return code;
}

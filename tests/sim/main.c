/* SPDX-License-Identifier: MIT */
/*
 * nxlock-sim: plays seeds. The same arguments always give the same history.
 * The first seed that fails is told last, made small, with the command that
 * plays it again.
 */
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

/* What the worlds had in them of work that must be done once. */
static void print_work(const struct report *all)
{
    printf("%llu begun, %llu taken back, %llu done, %llu late, %llu found "
           "done, %llu in doubt\n",
        (unsigned long long)all->begun, (unsigned long long)all->unbegun,
        (unsigned long long)all->acts, (unsigned long long)all->late,
        (unsigned long long)all->done,
        (unsigned long long)all->earlier_token_possible);
}

/* ... and of lines. */
static void print_crowd(const struct report *all)
{
    printf("%llu gaps, %llu grants to strangers, %llu requests of waiters, "
           "lines of up to %u\n",
        (unsigned long long)all->gaps, (unsigned long long)all->turns_outside,
        (unsigned long long)all->asked, all->longest_line);
}

/* ... and of locks that several held. */
static void print_permits(const struct report *all)
{
    printf("%llu grants beside others, up to %u holders at once, %llu gaps, "
           "%llu grants to strangers, lines of up to %u\n",
        (unsigned long long)all->beside, all->most_holders,
        (unsigned long long)all->gaps, (unsigned long long)all->turns_outside,
        all->longest_line);
}

/* ... and of readers. */
static void print_readers(const struct report *all)
{
    printf("%llu shared grants, up to %u holders at once, %llu exclusive ones, "
           "for which somebody waited up to %u ms\n",
        (unsigned long long)all->beside, all->most_holders,
        (unsigned long long)all->alone, all->starved_ms);
}

static void print_several(const struct report *all)
{
    printf("%llu times several names were held together\n",
        (unsigned long long)all->together);
}

static void add_work(struct report *all, const struct report *r)
{
    all->gaps += r->gaps;
    all->turns_outside += r->turns_outside;
    all->asked += r->asked;
    if (r->longest_line > all->longest_line)
        all->longest_line = r->longest_line;
    all->beside += r->beside;
    all->together += r->together;
    if (r->most_holders > all->most_holders)
        all->most_holders = r->most_holders;
    all->alone += r->alone;
    if (r->starved_ms > all->starved_ms)
        all->starved_ms = r->starved_ms;
    all->begun += r->begun;
    all->unbegun += r->unbegun;
    all->acts += r->acts;
    all->late += r->late;
    all->done += r->done;
    all->earlier_token_possible += r->earlier_token_possible;
}

static int play(struct arguments *a)
{
    uint64_t grants = 0, fences = 0, renewals = 0, losses = 0;
    uint64_t troubles = 0, steps = 0, strays = 0, hash = 0;
    uint64_t handed = 0, expired = 0, lined = 0;
    uint64_t failed = 0, too_few = 0, waited_long = 0;
    unsigned waited = 0;
    struct report all = {0};
    clock_t began = clock();
    for (uint64_t i = 0; i < a->count; i++) {
        uint64_t seed = a->from + i;
        a->options.seed = seed;
        struct report r =
            world_run(&a->options, tells(a) && !failed ? stdout : NULL);
        grants += r.grants;
        fences += r.fences;
        renewals += r.renewals;
        losses += r.losses;
        troubles += r.troubles;
        steps += r.steps;
        strays += r.strays;
        handed += r.handed;
        expired += r.expired;
        lined += r.lined;
        add_work(&all, &r);
        hash = hash * 31 + r.hash;
        waited = r.waited > waited ? r.waited : waited;
        waited_long += r.waited >= 50;
        if (r.broken && failed++ == 0)
            print_broken(a, &r);
        if (r.too_few && !r.broken && too_few++ == 0)
            printf("seed %llu: only %llu grants and %llu troubles\n",
                (unsigned long long)seed, (unsigned long long)r.grants,
                (unsigned long long)r.troubles);
    }
    double ms = (double)(clock() - began) * 1000 / CLOCKS_PER_SEC;
    printf(
        "%u servers, seeds %llu-%llu: %llu grants, %llu in line, %llu fences, "
        "%llu renewals, %llu losses, %llu handed over, %llu expired, "
        "%llu troubles, %llu strays, "
        "waits up to %u %% of the bound, %llu seeds with more than half of it, "
        "%llu steps, %.0f a second; hash %016llx\n",
        a->options.servers, (unsigned long long)a->from,
        (unsigned long long)(a->from + a->count - 1),
        (unsigned long long)grants, (unsigned long long)lined,
        (unsigned long long)fences, (unsigned long long)renewals,
        (unsigned long long)losses, (unsigned long long)handed,
        (unsigned long long)expired, (unsigned long long)troubles,
        (unsigned long long)strays, waited, (unsigned long long)waited_long,
        (unsigned long long)steps, ms > 0 ? (double)steps * 1000 / ms : 0,
        (unsigned long long)hash);
    if (a->options.once)
        print_work(&all);
    if (a->options.crowd)
        print_crowd(&all);
    if (a->options.permits)
        print_permits(&all);
    if (a->options.readers)
        print_readers(&all);
    if (a->options.several)
        print_several(&all);
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

/* SPDX-License-Identifier: MIT */
/*
 * nxlock-sim: plays seeds. The same arguments always give the same history;
 * a seed that fails is printed with its last steps and the command that plays
 * it again.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim/shrink.h"

static const char help[] =
    "usage: nxlock-sim [--seed S | --seeds COUNT [--from S]] [--servers N]...\n"
    "                  [--faults LIST] [--without GUARD]... [--only I]...\n"
    "                  [--grants MIN] [--troubles MIN] [-v]\n"
    "                  [--lasts NS] [--events LIST]\n"
    "without --servers: 1, 3, 4 and 5 servers, one after the other\n"
    "LIST: names with commas, or all, clean (default), none\n";

struct arguments {
    struct options options;
    uint64_t from, count;
    unsigned servers[MAX_SERVERS];
    unsigned servers_count;
    const char *faults;
    const char *without[8];
    unsigned without_count;
};

static void print_names(void)
{
    fputs("faults:", stderr);
    for (unsigned i = 0; i < TROUBLES; i++)
        fprintf(stderr, " %s", trouble_name((enum trouble)i));
    fputs("\nguards:", stderr);
    for (unsigned i = 0; guard_name(i); i++)
        fprintf(stderr, " %s", guard_name(i));
    fputs("\n", stderr);
}

static bool number(const char *text, uint64_t most, uint64_t *out)
{
    char *end;
    if (*text < '0' || *text > '9')
        return false;
    *out = strtoull(text, &end, 10);
    return *end == '\0' && *out <= most;
}

static bool invariant(struct arguments *a, const char *text)
{
    uint64_t i;
    if (*text == 'I')
        text++;
    if (!number(text, 31, &i))
        return false;
    if (a->options.checked == ALL_INVARIANTS)
        a->options.checked = 0;
    a->options.checked |= INVARIANT(i);
    return true;
}

static struct events chosen;

static bool events(struct arguments *a, const char *list)
{
    a->options.only = &chosen;
    while (*list != '\0') {
        size_t len = strcspn(list, ",");
        if (chosen.count == EVENTS_MAX ||
            !event_parse(list, len, &chosen.id[chosen.count++]))
            return false;
        list += len + (list[len] == ',');
    }
    return true;
}

static bool take(struct arguments *a, const char *option, const char *value)
{
    uint64_t n = 0;
    bool good = true;
    if (strcmp(option, "--seed") == 0) {
        good = number(value, UINT64_MAX, &a->from);
        a->count = 1;
    } else if (strcmp(option, "--seeds") == 0) {
        good = number(value, UINT32_MAX, &a->count) && a->count > 0;
    } else if (strcmp(option, "--from") == 0) {
        good = number(value, UINT64_MAX, &a->from);
    } else if (strcmp(option, "--servers") == 0) {
        good = a->servers_count < MAX_SERVERS &&
               number(value, MAX_SERVERS, &n) && n > 0;
        if (good)
            a->servers[a->servers_count++] = (unsigned)n;
    } else if (strcmp(option, "--faults") == 0) {
        a->faults = value;
        good = troubles_parse(value, &a->options.troubles);
    } else if (strcmp(option, "--without") == 0) {
        good = a->without_count < 8 && guard_turn_off(value);
        if (good)
            a->without[a->without_count++] = value;
    } else if (strcmp(option, "--only") == 0) {
        good = invariant(a, value);
    } else if (strcmp(option, "--grants") == 0) {
        good = number(value, UINT32_MAX, &n);
        a->options.least_grants = (unsigned)n;
    } else if (strcmp(option, "--lasts") == 0) {
        good = number(value, UINT64_MAX, &a->options.lasts_ns);
    } else if (strcmp(option, "--events") == 0) {
        good = events(a, value);
    } else if (strcmp(option, "--troubles") == 0) {
        good = number(value, UINT32_MAX, &n);
        a->options.least_troubles = (unsigned)n;
    } else {
        good = false;
    }
    return good;
}

static void print_replay(const struct arguments *a, uint64_t seed)
{
    printf("replay: nxlock-sim --seed %llu --servers %u",
        (unsigned long long)seed, a->options.servers);
    if (a->faults)
        printf(" --faults %s", a->faults);
    for (unsigned i = 0; i < a->without_count; i++)
        printf(" --without %s", a->without[i]);
    if (a->options.checked != ALL_INVARIANTS)
        for (unsigned i = 1; i < 32; i++)
            if (a->options.checked & INVARIANT(i))
                printf(" --only I%u", i);
}

/* What is left of it when all that does not matter is left out. */
static void tell_story(const struct arguments *a, uint64_t seed)
{
    static struct events kept;
    struct options small = a->options;
    small.seed = seed;
    shrink(&small, &kept);
    printf("--- the same with the fewest events, %zu:\n", kept.count);
    small.aloud = true;
    world_run(&small, stdout);
    print_replay(a, seed);
    printf(" --lasts %llu --events ", (unsigned long long)small.lasts_ns);
    for (size_t i = 0; i < kept.count; i++) {
        fputs(i ? "," : "", stdout);
        event_print(kept.id[i], stdout);
    }
    printf(" -v\n");
}

static int play(struct arguments *a)
{
    uint64_t grants = 0, fences = 0, renewals = 0, losses = 0;
    uint64_t troubles = 0, steps = 0, strays = 0, hash = 0;
    uint64_t failed = 0, too_few = 0, waited_long = 0;
    unsigned waited = 0;
    clock_t began = clock();
    for (uint64_t i = 0; i < a->count; i++) {
        uint64_t seed = a->from + i;
        a->options.seed = seed;
        struct report r = world_run(&a->options, failed ? NULL : stdout);
        grants += r.grants;
        fences += r.fences;
        renewals += r.renewals;
        losses += r.losses;
        troubles += r.troubles;
        steps += r.steps;
        strays += r.strays;
        hash = hash * 31 + r.hash;
        waited = r.waited > waited ? r.waited : waited;
        waited_long += r.waited >= 50;
        if (r.broken && failed++ == 0) {
            print_replay(a, seed);
            printf(" -v\n");
            if (!a->options.only && !a->options.aloud)
                tell_story(a, seed);
        }
        if (r.too_few && !r.broken && too_few++ == 0)
            printf("seed %llu: only %llu grants and %llu troubles\n",
                (unsigned long long)seed, (unsigned long long)r.grants,
                (unsigned long long)r.troubles);
    }
    double ms = (double)(clock() - began) * 1000 / CLOCKS_PER_SEC;
    printf(
        "%u servers, seeds %llu-%llu: %llu grants, %llu fences, "
        "%llu renewals, %llu losses, %llu troubles, %llu strays, "
        "waits up to %u %% of the bound, %llu seeds with more than half of it, "
        "%llu steps, %.0f a second; hash %016llx\n",
        a->options.servers, (unsigned long long)a->from,
        (unsigned long long)(a->from + a->count - 1),
        (unsigned long long)grants,
        (unsigned long long)fences, (unsigned long long)renewals,
        (unsigned long long)losses, (unsigned long long)troubles,
        (unsigned long long)strays, waited, (unsigned long long)waited_long,
        (unsigned long long)steps,
        ms > 0 ? (double)steps * 1000 / ms : 0, (unsigned long long)hash);
    if (failed || too_few)
        printf("%llu seeds failed, %llu had too little in them\n",
            (unsigned long long)failed, (unsigned long long)too_few);
    return failed || too_few ? 1 : 0;
}

int main(int argc, char **argv)
{
    static const unsigned all[] = {1, 3, 4, 5};
    struct arguments a = {.options = OPTIONS_INIT, .from = 1, .count = 1};
    int code = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-v") == 0) {
            a.options.aloud = true;
        } else if (i + 1 == argc || !take(&a, argv[i], argv[i + 1])) {
            fputs(help, stderr);
            print_names();
            return 2;
        } else {
            i++;
        }
    }
    if (a.servers_count == 0) {
        a.servers_count = sizeof all / sizeof all[0];
        memcpy(a.servers, all, sizeof all);
    }
    for (unsigned i = 0; i < a.servers_count; i++) {
        a.options.servers = a.servers[i];
        code |= play(&a);
    }
    return code;
}

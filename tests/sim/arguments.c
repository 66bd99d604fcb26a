/* SPDX-License-Identifier: MIT */
/*
 * Invariant: nothing is taken for what it is not. A value that cannot be read
 * whole is refused, with what is allowed.
 */
#include "sim/arguments.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/shrink.h"

_Static_assert(MAX_SERVERS == 15, "what is told of --servers");

static const char help[] =
    "usage: nxlock-sim [OPTION]...\n"
    "Plays simulated worlds, each of one seed, and looks whether an invariant "
    "breaks.\n"
    "The first that does is made small and told at the end. Exits with 0: none "
    "did,\n"
    "1: one did, or there was too little in one, 2: wrong arguments.\n\n"
    "  --seed S          plays one seed; else 1\n"
    "  --seeds COUNT     plays so many\n"
    "  --from S          ... from this one on; else from 1\n"
    "  --servers N       of so many servers; again: of others as well; else "
    "of\n"
    "                    1, 3, 4 and 5\n"
    "  --faults LIST     what goes wrong: names with commas between them (see\n"
    "                    below); else clean\n"
    "  --without GUARD   turns a guard off (see below); again: others, too\n"
    "  --only I          checks this invariant (see below) and no other; "
    "again:\n"
    "                    others, too\n"
    "  --lasts NS        a world ends after so many virtual nanoseconds, "
    "whatever\n"
    "                    was in it\n"
    "  --events LIST     only these happen: troubles (T7) and what workers "
    "begin\n"
    "                    (c1.0#3), with commas between them, or none\n"
    "  --work KIND       what programs do, and what befalls them (see below)\n"
    "  -v                tells each step\n"
    "  -h, --help        this\n"
    "\n"
    "Kinds of worlds (--work); permits, crowd and sentinels have one server, "
    "unless\n"
    "--servers says otherwise:\n"
    "  locks             of one holder\n"
    "  once              work that must be done once, with one server, which\n"
    "                    forgets nothing, unless --faults says so\n"
    "  crowd             30 to 300 workers wait in line, for one name most of\n"
    "                    them, and programs outside the line poll\n"
    "  permits           locks that several hold (with more servers: shared "
    "and\n"
    "                    exclusive ones)\n"
    "  readers           many share a lock, and one or two that want it alone\n"
    "                    wait without a line\n"
    "  several           handles of several names\n"
    "  failover          replicas take over\n"
    "  replicas          ... and have to have what clients write "
    "(wait_replicas)\n"
    "  sentinels         Sentinels promote replicas, and say which server is\n"
    "                    the primary\n"
    "  permits-failover, permits-replicas, permits-sentinels\n"
    "                    locks that several hold, where replicas take over\n";

/* In the order of the options. */
enum option_number {
    OPTION_SEED,
    OPTION_SEEDS,
    OPTION_FROM,
    OPTION_SERVERS,
    OPTION_FAULTS,
    OPTION_WITHOUT,
    OPTION_ONLY,
    OPTION_LASTS,
    OPTION_EVENTS,
    OPTION_WORK
};

static const struct option options[] = {
    {"seed", required_argument, NULL, OPTION_SEED},
    {"seeds", required_argument, NULL, OPTION_SEEDS},
    {"from", required_argument, NULL, OPTION_FROM},
    {"servers", required_argument, NULL, OPTION_SERVERS},
    {"faults", required_argument, NULL, OPTION_FAULTS},
    {"without", required_argument, NULL, OPTION_WITHOUT},
    {"only", required_argument, NULL, OPTION_ONLY},
    {"lasts", required_argument, NULL, OPTION_LASTS},
    {"events", required_argument, NULL, OPTION_EVENTS},
    {"work", required_argument, NULL, OPTION_WORK},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static const char *const allowed[] = {
    [OPTION_SEED] = "0 to 2^64 - 1",
    [OPTION_SEEDS] = "1 to 2^32 - 1",
    [OPTION_FROM] = "0 to 2^64 - 2^32",
    [OPTION_SERVERS] = "1 to 15",
    [OPTION_FAULTS] = "names with commas between them, of those in --help",
    [OPTION_WITHOUT] = "a guard of --help",
    [OPTION_ONLY] = "an invariant of --help",
    [OPTION_LASTS] = "1 to 2^63 - 1",
    [OPTION_EVENTS] =
        "none, or names like T7 and c1.0#3 with commas between them",
    [OPTION_WORK] = "a kind of --help",
};

/* ------------------------------------------------------------------ values */

static bool number(
    const char *text, uint64_t least, uint64_t most, uint64_t *out)
{
    char *end;
    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return *end == '\0' && errno == 0 && *out >= least && *out <= most;
}

static bool take_servers(struct arguments *a, const char *value)
{
    uint64_t n;
    if (!number(value, 1, MAX_SERVERS, &n))
        return false;
    for (unsigned i = 0; i < a->servers_count; i++)
        if (a->servers[i] == n)
            return true;
    a->servers[a->servers_count++] = (unsigned)n;
    return true;
}

static bool take_without(struct arguments *a, const char *value)
{
    if (a->without_count == sizeof(a->without) / sizeof(*a->without) ||
        !guard_turn_off(value))
        return false;
    a->without[a->without_count++] = value;
    return true;
}

static bool take_only(struct arguments *a, const char *value)
{
    unsigned i = 1;
    while (i < INVARIANTS && strcmp(invariant_names[i], value) != 0)
        i++;
    if (i == INVARIANTS)
        return false;
    if (a->options.checked == ALL_INVARIANTS)
        a->options.checked = 0;
    a->options.checked |= INVARIANT(i);
    return true;
}

static bool take_events(struct arguments *a, const char *value)
{
    static struct events chosen;
    a->options.only = &chosen;
    chosen.count = 0;
    if (strcmp(value, "none") == 0)
        return true;
    for (bool more = true; more;) {
        size_t len = strcspn(value, ",");
        if (chosen.count == EVENTS_MAX ||
            !event_parse(value, len, &chosen.id[chosen.count++]))
            return false;
        more = value[len] == ',';
        value += len + 1;
    }
    return true;
}

static bool take(
    struct arguments *a, enum option_number option, const char *value)
{
    switch (option) {
    case OPTION_SEED:
        a->count = 1;
        return number(value, 0, UINT64_MAX, &a->from);
    case OPTION_SEEDS:
        return number(value, 1, UINT32_MAX, &a->count);
    case OPTION_FROM:
        return number(value, 0, UINT64_MAX - UINT32_MAX, &a->from);
    case OPTION_SERVERS:
        return take_servers(a, value);
    case OPTION_FAULTS:
        a->faults = value;
        return troubles_parse(value, &a->options.troubles);
    case OPTION_WITHOUT:
        return take_without(a, value);
    case OPTION_ONLY:
        return take_only(a, value);
    case OPTION_LASTS:
        return number(value, 1, UINT64_MAX / 2, &a->options.lasts_ns);
    case OPTION_EVENTS:
        return take_events(a, value);
    case OPTION_WORK:
        a->options.kind = world_kind(value);
        return a->options.kind;
    }
    return false;
}

/* ----------------------------------------------------------------- reading */

static void print_help(void)
{
    fputs(help, stdout);
    puts("\nFaults (--faults), and in place of their names: all, none, and "
         "clean, which is\nall but skew and apart. These are beyond what the "
         "guarantees allow: with them\nI1 or I2 may break.");
    troubles_print();
    puts("\nGuards (--without):");
    guards_print();
    puts("What one prevents may show with some faults alone (adopt: --faults "
         "rewind), or\nnot here but in tests with real servers (kill, "
         "lapsed):\ntests/guards/README.md says how each was found.");
    puts("\nInvariants (--only; tests/sim/checker.h has them whole):");
#define PRINT_OF_LIST(name, says) printf("  %-17s %s\n", #name, says);
    INVARIANT_LIST(PRINT_OF_LIST)
    puts("\nThe words of a story are explained in tests/sim/README.md.");
}

static enum arguments_result wrong_usage(void)
{
    fputs("nxlock-sim --help explains the options.\n", stderr);
    return ARGUMENTS_WRONG;
}

/* What was not said. */
static void complete(struct arguments *a)
{
    static const unsigned counts[] = {1, 3, 4, 5};
    const struct world_kind *kind = a->options.kind;
    if (a->servers_count == 0 &&
        (kind->crowd || kind->sentinels || kind->permits))
        a->servers[a->servers_count++] = 1;
    if (a->servers_count == 0) {
        a->servers_count = sizeof(counts) / sizeof(*counts);
        memcpy(a->servers, counts, sizeof(counts));
    }
    if (kind->once && !a->faults)
        a->options.troubles &= ~FORGETFUL_TROUBLES;
}

enum arguments_result arguments_read(struct arguments *a, int argc, char **argv)
{
    int option;
    *a = (struct arguments){.options = OPTIONS_INIT, .from = 1, .count = 1};
    while ((option = getopt_long(argc, argv, "hv", options, NULL)) != -1) {
        if (option == 'h') {
            print_help();
            return ARGUMENTS_HELP;
        }
        if (option == 'v') {
            a->options.aloud = true;
        } else if (option == '?') {
            return wrong_usage();
        } else if (!take(a, (enum option_number)option, optarg)) {
            fprintf(stderr, "nxlock-sim: --%s \"%s\": allowed is %s\n",
                options[option].name, optarg, allowed[option]);
            return wrong_usage();
        }
    }
    if (optind < argc) {
        fprintf(stderr, "nxlock-sim: \"%s\" is no option\n", argv[optind]);
        return wrong_usage();
    }
    complete(a);
    return ARGUMENTS_READ;
}

/* ----------------------------------------------------------------- writing */

void arguments_print(
    const struct arguments *a, const struct options *o, FILE *out)
{
    fprintf(
        out, "nxlock-sim --seed %" PRIu64 " --servers %u", o->seed, o->servers);
    if (o->kind != world_kinds)
        fprintf(out, " --work %s", o->kind->name);
    if (a->faults)
        fprintf(out, " --faults %s", a->faults);
    for (unsigned i = 0; i < a->without_count; i++)
        fprintf(out, " --without %s", a->without[i]);
    for (unsigned i = 1; o->checked != ALL_INVARIANTS && i < INVARIANTS; i++)
        if (o->checked & INVARIANT(i))
            fprintf(out, " --only %s", invariant_names[i]);
    if (o->lasts_ns)
        fprintf(out, " --lasts %" PRIu64, o->lasts_ns);
    for (size_t i = 0; o->only && i < o->only->count; i++) {
        fputs(i ? "," : " --events ", out);
        event_print(o->only->id[i], out);
    }
    if (o->only && o->only->count == 0)
        fputs(" --events none", out);
    fputs(" -v\n", out);
}

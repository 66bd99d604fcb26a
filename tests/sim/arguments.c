/* SPDX-License-Identifier: MIT */
/*
 * Keeps: nothing is taken for what it is not. What cannot be read whole, or
 * contradicts what was said before, is refused, with what is allowed.
 */
#include "sim/arguments.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/shrink.h"

_Static_assert(MAX_SERVERS == 15, "what is told of --servers");

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

static bool take_seed(struct arguments *a, const char *value)
{
    a->count = 1;
    return number(value, 0, UINT64_MAX, &a->from);
}

static bool take_seeds(struct arguments *a, const char *value)
{
    return number(value, 1, UINT32_MAX, &a->count);
}

static bool take_from(struct arguments *a, const char *value)
{
    return number(value, 0, UINT64_MAX, &a->from);
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

static bool take_faults(struct arguments *a, const char *value)
{
    a->faults = value;
    return troubles_parse(value, &a->options.troubles);
}

static bool take_without(struct arguments *a, const char *value)
{
    for (unsigned i = 0; i < a->without_count; i++)
        if (strcmp(a->without[i], value) == 0)
            return true;
    if (!guard_turn_off(value))
        return false;
    a->without[a->without_count++] = value;
    return true;
}

/* NULL: there is none of that number. */
static const char *invariant_words(enum invariant which)
{
    switch (which) {
    case I1:
        return "two never hold a name at once";
    case I2:
        return "fencing numbers grow";
    case I3:
        return "no lease is counted on for longer than the servers allow";
    case I4:
        return "nobody deletes another one's key";
    case I5:
        return "no key stands that nobody works with or owes";
    case I6:
        return "a free name is granted within its bound";
    case I8:
        return "a result that is told is true";
    case I9:
        return "a loss is told before the deadline";
    case I10:
        return "a server is not asked twice at once";
    case I11:
        return "who says that a lock is busy has a witness";
    case I12:
        return "a token joins a line once";
    case I14:
        return "nobody turns round and round while time stands still";
    case I15:
        return "a living waiter keeps its place in line";
    case I16:
        return "a dead waiter is not granted the lock";
    case I17:
        return "waiters ask no more often than is documented";
    case I18:
        return "programs outside the line get their turn";
    case I19:
        return "what is told as held or recorded is on enough replicas";
    case I20:
        return "a failover of so many servers loses none of that";
    case I21:
        return "who waits without a line beside holders is granted the lock";
    case O1:
        return "work is not begun again before it is known what came of it";
    case O2:
        return "work that was begun is found as busy or in doubt";
    case O3:
        return "who repeats work that is in doubt is told so";
    case O4:
        return "what was done stays done";
    case O5:
        return "the first result is replayed";
    }
    return NULL;
}

static bool take_only(struct arguments *a, const char *value)
{
    uint64_t i, first = *value == 'O' ? O1 - 1 : 0;
    if (*value == 'I' || *value == 'O')
        value++;
    if (!number(value, 1, 31 - first, &i))
        return false;
    i += first;
    if (!invariant_words((enum invariant)i) || (first == 0 && i >= O1))
        return false;
    if (a->options.checked == ALL_INVARIANTS)
        a->options.checked = 0;
    a->options.checked |= INVARIANT(i);
    return true;
}

static bool take_lasts(struct arguments *a, const char *value)
{
    return number(value, 1, UINT64_MAX / 2, &a->options.lasts_ns);
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

static const struct work_kind {
    const char *name;
    bool once, crowd, permits, readers, several, failover, replicas, sentinels;
} work_kinds[] = {
    {.name = "once", .once = true},
    {.name = "crowd", .crowd = true},
    {.name = "permits", .permits = true},
    {.name = "readers", .readers = true},
    {.name = "several", .several = true},
    {.name = "failover", .failover = true},
    {.name = "replicas", .replicas = true},
    {.name = "sentinels", .sentinels = true},
    {.name = "permits-failover", .permits = true, .failover = true},
    {.name = "permits-replicas", .permits = true, .replicas = true},
    {.name = "permits-sentinels", .permits = true, .sentinels = true},
};

#define WORK_KINDS (sizeof(work_kinds) / sizeof(*work_kinds))

static void set_work(struct options *o, const struct work_kind *k)
{
    o->once = k->once;
    o->crowd = k->crowd;
    o->permits = k->permits;
    o->readers = k->readers;
    o->several = k->several;
    o->failover = k->failover;
    o->replicas = k->replicas;
    o->sentinels = k->sentinels;
}

/* NULL: locks, one holder each. */
static const char *work_of(const struct options *o)
{
    for (size_t i = 0; i < WORK_KINDS; i++) {
        const struct work_kind *k = &work_kinds[i];
        if (o->once == k->once && o->crowd == k->crowd &&
            o->permits == k->permits && o->readers == k->readers &&
            o->several == k->several && o->failover == k->failover &&
            o->replicas == k->replicas && o->sentinels == k->sentinels)
            return k->name;
    }
    return NULL;
}

static bool take_work(struct arguments *a, const char *value)
{
    for (size_t i = 0; i < WORK_KINDS; i++) {
        if (strcmp(work_kinds[i].name, value) == 0) {
            set_work(&a->options, &work_kinds[i]);
            return true;
        }
    }
    return false;
}

static bool take_aloud(struct arguments *a, const char *value)
{
    (void)value;
    a->options.aloud = true;
    return true;
}

/* ----------------------------------------------------------------- options */

enum { NO_LIST, FAULTS, GUARD_LIST, INVARIANTS };

static const struct option {
    const char *name;
    const char *value; /* NULL: it takes none */
    const char *words, *allowed;
    bool (*take)(struct arguments *a, const char *value);
    int list; /* of names that are allowed */
    bool again;
} all[] = {
    {"--seed", "S", "plays one seed; else 1", "0 to 2^64 - 1", take_seed,
        NO_LIST, false},
    {"--seeds", "COUNT", "plays so many", "1 to 2^32 - 1", take_seeds, NO_LIST,
        false},
    {"--from", "S", "... from this one on; else from 1", "0 to 2^64 - 1",
        take_from, NO_LIST, false},
    {"--servers", "N",
        "of so many servers; again: of others as well; else of\n"
        "1, 3, 4 and 5",
        "1 to 15", take_servers, NO_LIST, true},
    {"--faults", "LIST",
        "what goes wrong: names with commas between them (see\n"
        "below); else clean",
        "names with commas between them, of", take_faults, FAULTS, false},
    {"--without", "GUARD", "turns a guard off (see below); again: others, too",
        "one of", take_without, GUARD_LIST, true},
    {"--only", "I",
        "checks this invariant (see below) and no other; again:\n"
        "others, too",
        "one of", take_only, INVARIANTS, true},
    {"--lasts", "NS",
        "a world ends after so many virtual nanoseconds, whatever\n"
        "was in it",
        "1 to 2^63 - 1", take_lasts, NO_LIST, false},
    {"--events", "LIST",
        "only these happen: troubles (T7) and what workers begin\n"
        "(c1.0#3), with commas between them, or none",
        "none, or names like T7 and c1.0#3 with commas between them",
        take_events, NO_LIST, false},
    {"--work", "KIND",
        "failover: replicas take over; replicas: and have to have\n"
        "what clients write (wait_replicas). With one server: once:\n"
        "programs do work that must be done once, and no server\n"
        "forgets, unless --faults says so; crowd: 30 to 300\n"
        "workers wait in line, for one name most of them, and\n"
        "programs outside the line poll; sentinels: Sentinels\n"
        "promote replicas, and say which server is the primary;\n"
        "permits: locks that several hold (with more servers: shared\n"
        "and exclusive ones); readers: many share a lock, and one or\n"
        "two that want it alone wait without a line;\n"
        "permits-failover, permits-replicas, permits-sentinels:\n"
        "locks that several hold, where replicas take over; several:\n"
        "handles of several names",
        "once, crowd, failover, replicas, sentinels, permits, readers,\n"
        "several, permits-failover, permits-replicas, permits-sentinels",
        take_work, NO_LIST, false},
    {"-v", NULL, "tells each step", NULL, take_aloud, NO_LIST, true},
};

#define OPTIONS (sizeof(all) / sizeof(*all))

static void print_option(const struct option *o)
{
    char head[40];
    snprintf(head, sizeof(head), "%s%s%s", o->name, o->value ? " " : "",
        o->value ? o->value : "");
    printf("  %-17s ", head);
    for (const char *at = o->words; *at; at++) {
        putchar(*at);
        if (*at == '\n')
            printf("%20s", "");
    }
    putchar('\n');
}

static void print_help(void)
{
    puts("usage: nxlock-sim [OPTION]...\n"
         "Plays simulated worlds, each of one seed, and looks whether an "
         "invariant breaks.\n"
         "The first that does is made small and told at the end. Exits with 0: "
         "none did,\n"
         "1: one did, or there was too little in one, 2: wrong arguments.\n");
    for (size_t i = 0; i < OPTIONS; i++)
        print_option(&all[i]);
    puts("  -h, --help        this");
    puts("\nFaults (--faults), and in place of their names: all, none, and "
         "clean, which is\nall but skew and apart. These are beyond what the "
         "guarantees allow: with them\nI1 or I2 may break.");
    for (unsigned i = 0; i < TROUBLES; i++)
        printf("  %-17s %s\n", trouble_name((enum trouble)i),
            trouble_words((enum trouble)i));
    puts("\nGuards (--without):");
    for (unsigned i = 0; guard_name(i); i++)
        printf("  %-17s %s\n", guard_name(i), guard_words(i));
    puts("What one prevents may show with some faults alone (adopt: --faults "
         "rewind), or\nnot here but in tests with real servers (kill, "
         "lapsed):\ntests/guards/README.md says how each was found.");
    puts("\nInvariants (--only; tests/sim/checker.h has them whole):");
    for (unsigned i = 1; i < 32; i++)
        if (invariant_words((enum invariant)i))
            printf("  %c%-16u %s\n", INVARIANT_LETTER(i), INVARIANT_NUMBER(i),
                invariant_words((enum invariant)i));
    puts("\nThe words of a story are explained in tests/sim/README.md.");
}

static void print_list(int list)
{
    if (list == FAULTS) {
        fputs(" all, clean, none", stderr);
        for (unsigned i = 0; i < TROUBLES; i++)
            fprintf(stderr, ", %s", trouble_name((enum trouble)i));
    } else if (list == GUARD_LIST) {
        for (unsigned i = 0; guard_name(i); i++)
            fprintf(stderr, "%s %s", i ? "," : "", guard_name(i));
    } else if (list == INVARIANTS) {
        for (unsigned i = 1; i < 32; i++)
            if (invariant_words((enum invariant)i))
                fprintf(stderr, "%s %c%u", i > 1 ? "," : "",
                    INVARIANT_LETTER(i), INVARIANT_NUMBER(i));
    }
}

/* ----------------------------------------------------------------- reading */

static enum arguments_result wrong(void)
{
    fputs("nxlock-sim --help explains the options.\n", stderr);
    return ARGUMENTS_WRONG;
}

static enum arguments_result not_allowed(
    const struct option *o, const char *value)
{
    if (value)
        fprintf(stderr, "nxlock-sim: %s \"%s\": allowed is ", o->name, value);
    else
        fprintf(stderr, "nxlock-sim: %s needs a value: ", o->name);
    fputs(o->allowed, stderr);
    print_list(o->list);
    fputs("\n", stderr);
    return wrong();
}

static const struct option *option_of(const char *name)
{
    for (size_t i = 0; i < OPTIONS; i++)
        if (strcmp(all[i].name, name) == 0)
            return &all[i];
    return NULL;
}

static bool given(unsigned mask, const char *name)
{
    return mask & 1u << (option_of(name) - all);
}

static enum arguments_result contradicts(
    const struct arguments *a, unsigned mask)
{
    bool range = given(mask, "--seeds") || given(mask, "--from");
    if (given(mask, "--seed") && range) {
        fputs("nxlock-sim: --seed is one; --seeds and --from are for more\n",
            stderr);
        return wrong();
    }
    if (a->count - 1 > UINT64_MAX - a->from) {
        fprintf(stderr,
            "nxlock-sim: --from %" PRIu64 " --seeds %" PRIu64
            ": the last seed there is is 2^64 - 1\n",
            a->from, a->count);
        return wrong();
    }
    return ARGUMENTS_READ;
}

enum arguments_result arguments_read(struct arguments *a, int argc, char **argv)
{
    static const unsigned counts[] = {1, 3, 4, 5};
    unsigned mask = 0;
    *a = (struct arguments){.options = OPTIONS_INIT, .from = 1, .count = 1};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help();
            return ARGUMENTS_HELP;
        }
        const struct option *o = option_of(argv[i]);
        if (!o) {
            fprintf(stderr, "nxlock-sim: there is no option \"%s\"\n", argv[i]);
            return wrong();
        }
        const char *value = o->value ? argv[++i] : NULL;
        if (o->value && !value)
            return not_allowed(o, NULL);
        if (!o->again && given(mask, o->name)) {
            fprintf(stderr, "nxlock-sim: %s was given twice\n", o->name);
            return wrong();
        }
        mask |= 1u << (o - all);
        if (!o->take(a, value))
            return not_allowed(o, value);
    }
    bool one = a->options.crowd || a->options.sentinels || a->options.permits;
    if (a->servers_count == 0 && one)
        a->servers[a->servers_count++] = 1;
    if (a->servers_count == 0) {
        a->servers_count = sizeof(counts) / sizeof(*counts);
        memcpy(a->servers, counts, sizeof(counts));
    }
    if (a->options.once && !a->faults)
        a->options.troubles &= ~FORGETFUL_TROUBLES;
    return contradicts(a, mask);
}

/* ----------------------------------------------------------------- writing */

static void print_events(const struct events *events, FILE *out)
{
    fputs(events->count ? " --events " : " --events none", out);
    for (size_t i = 0; i < events->count; i++) {
        fputs(i ? "," : "", out);
        event_print(events->id[i], out);
    }
}

void arguments_print(
    const struct arguments *a, const struct options *options, FILE *out)
{
    fprintf(out, "nxlock-sim --seed %" PRIu64 " --servers %u", options->seed,
        options->servers);
    if (work_of(options))
        fprintf(out, " --work %s", work_of(options));
    if (a->faults)
        fprintf(out, " --faults %s", a->faults);
    for (unsigned i = 0; i < a->without_count; i++)
        fprintf(out, " --without %s", a->without[i]);
    for (unsigned i = 1; i < 32; i++)
        if (options->checked != ALL_INVARIANTS &&
            options->checked & INVARIANT(i))
            fprintf(
                out, " --only %c%u", INVARIANT_LETTER(i), INVARIANT_NUMBER(i));
    if (options->lasts_ns)
        fprintf(out, " --lasts %" PRIu64, options->lasts_ns);
    if (options->only)
        print_events(options->only, out);
    fputs(" -v\n", out);
}

/* SPDX-License-Identifier: MIT */
/*
 * Delta debugging: ever smaller pieces of what happens are left out while the
 * world still breaks. (Zeller's ddmin, over the complement.) Keeps: what is
 * left is a world that was played and broke, and no single event of it can be
 * left out, unless that would take too long to find.
 */
#include "sim/shrink.h"

#include <string.h>

/* Then it is small enough. */
#define PLAYS_MOST 3000

/* Does it still break without these as well? Then they go. */
static bool breaks_without(struct options *options, unsigned which,
    struct events *kept, size_t from, size_t count)
{
    static struct events fewer, happened;
    fewer.count = happened.count = 0;
    for (size_t i = 0; i < kept->count; i++)
        if (i < from || i >= from + count)
            fewer.id[fewer.count++] = kept->id[i];
    options->only = &fewer;
    options->happened = &happened;
    if (world_run(options, NULL).broken != which)
        return false;
    *kept = happened;
    return true;
}

void shrink(struct options *options, struct events *kept)
{
    struct options trial = *options;
    trial.aloud = false;
    trial.happened = kept;
    kept->count = 0;
    struct report report = world_run(&trial, NULL);
    trial.lasts_ns = options->lasts_ns = report.virtual_ns;
    unsigned plays = 0;
    bool any = true;
    for (size_t piece = kept->count; any || piece > 1;) {
        piece = piece > 1 ? piece / 2 : 1;
        any = false;
        for (size_t at = 0; at < kept->count && plays++ < PLAYS_MOST;) {
            if (breaks_without(&trial, report.broken, kept, at, piece))
                any = true;
            else
                at += piece;
        }
    }
    options->only = kept;
}

void event_print(uint64_t id, FILE *out)
{
    unsigned long long n = id >> 8;
    if ((id & 0xff) == 0xff)
        fprintf(out, "T%llu", n);
    else
        fprintf(out, "c%u.%u#%llu", (unsigned)(id >> 4 & 0xf),
            (unsigned)(id & 0xf), n);
}

bool event_parse(const char *text, size_t len, uint64_t *id)
{
    char word[40];
    unsigned process, worker;
    unsigned long long n;
    int end = 0;
    if (len >= sizeof word)
        return false;
    memcpy(word, text, len);
    word[len] = '\0';
    if (sscanf(word, "T%llu%n", &n, &end) == 1 && (size_t)end == len) {
        *id = EVENT_TROUBLE(n);
        return true;
    }
    if (sscanf(word, "c%u.%u#%llu%n", &process, &worker, &n, &end) != 3 ||
        (size_t)end != len || process >= PROCESSES_MAX ||
        worker >= WORKERS_MAX)
        return false;
    *id = EVENT_BEGIN(process, worker, n);
    return true;
}

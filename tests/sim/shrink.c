/* SPDX-License-Identifier: MIT */
/*
 * Delta debugging: ever smaller pieces of what happens are left out while the
 * world still breaks. (Zeller's ddmin, over the complement.) Keeps: what is
 * left is a world that was played and broke as the whole one did, and no
 * single event of it can be left out, unless that would take too long to find.
 */
#include "sim/shrink.h"

#include <string.h>

/* Then it is small enough: after so many steps of worlds. */
#define STEPS_MAX UINT64_C(4000000)

static const char *past_digits(const char *text)
{
    while (*text >= '0' && *text <= '9')
        text++;
    return text;
}

bool same_failure(const struct report *one, const struct report *other)
{
    const char *a = one->why, *b = other->why;
    if (one->broken != other->broken)
        return false;
    do {
        a = past_digits(a);
        b = past_digits(b);
        if (*a != *b)
            return false;
        b++;
    } while (*a++ != '\0');
    return true;
}

/* Does it still break without these as well? Then they go. */
static bool breaks_without(struct options *options, const struct report *whole,
    struct events *kept, size_t from, size_t count, uint64_t *steps)
{
    static struct events fewer, happened;
    fewer.count = happened.count = 0;
    for (size_t i = 0; i < kept->count; i++)
        if (i < from || i >= from + count)
            fewer.id[fewer.count++] = kept->id[i];
    options->only = &fewer;
    options->happened = &happened;
    struct report report = world_run(options, NULL);
    *steps += report.sum.steps;
    if (!same_failure(&report, whole))
        return false;
    *kept = happened;
    return true;
}

bool shrink(struct options *options, struct events *kept)
{
    struct options trial = *options;
    trial.aloud = false;
    trial.happened = kept;
    kept->count = 0;
    struct report report = world_run(&trial, NULL);
    trial.lasts_ns = options->lasts_ns = report.virtual_ns;
    options->only = kept;
    /* Time alone ends it from now on, and not all events may be known. */
    uint64_t steps = 0;
    if (!breaks_without(&trial, &report, kept, kept->count, 0, &steps))
        return false;
    bool any = true;
    for (size_t piece = kept->count; any || piece > 1;) {
        piece = piece > 1 ? piece / 2 : 1;
        any = false;
        for (size_t at = 0; at < kept->count && steps < STEPS_MAX;) {
            if (breaks_without(&trial, &report, kept, at, piece, &steps))
                any = true;
            else
                at += piece;
        }
    }
    return true;
}

#define EVENT_LENGTH 40

static void event_text(uint64_t id, char text[EVENT_LENGTH])
{
    unsigned long long n = id << 8 >> 16;
    if ((id & 0xff) == 0xff)
        snprintf(text, EVENT_LENGTH, "T%llu", n);
    else
        snprintf(text, EVENT_LENGTH, "c%u.%u#%llu",
            (unsigned)(id >> 56 << 4 | (id >> 4 & 0xf)), (unsigned)(id & 0xf),
            n);
}

void event_print(uint64_t id, FILE *out)
{
    char text[EVENT_LENGTH];
    event_text(id, text);
    fputs(text, out);
}

/* What is not written the very same way is none. */
bool event_parse(const char *text, size_t len, uint64_t *id)
{
    char word[EVENT_LENGTH], same[EVENT_LENGTH];
    unsigned process, worker;
    unsigned long long n;
    if (len >= sizeof(word))
        return false;
    memcpy(word, text, len);
    word[len] = '\0';
    if (sscanf(word, "T%llu", &n) == 1)
        *id = EVENT_TROUBLE(n);
    else if (sscanf(word, "c%u.%u#%llu", &process, &worker, &n) == 3 &&
             process < PROCESSES_MAX && worker < WORKERS_MAX)
        *id = EVENT_BEGIN(process, worker, n);
    else
        return false;
    event_text(*id, same);
    return strcmp(word, same) == 0;
}

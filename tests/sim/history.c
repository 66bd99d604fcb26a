/* SPDX-License-Identifier: MIT */
/* The hash covers time, words and numbers of every step, and no address. */
#include "sim/history.h"

#include "base/deadline.h"

static uint64_t mixed(uint64_t hash, uint64_t number)
{
    hash = (hash ^ number) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ (hash >> 29);
}

static uint64_t mixed_text(uint64_t hash, const char *text)
{
    for (; text && *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash;
}

static void print_step(const struct step *s, FILE *out)
{
    typedef unsigned long long number;
    fprintf(out, "%9llu.%06llu  ", (number)(s->at / NS_PER_MS),
        (number)(s->at % NS_PER_MS));
    fprintf(out, s->format, (number)s->number[0], (number)s->number[1],
        (number)s->number[2], (number)s->number[3], (number)s->number[4]);
    fprintf(out, s->word ? " %s\n" : "\n", s->word);
}

void history_add(struct history *h, const struct step *step)
{
    h->hash = mixed(h->hash, step->at);
    h->hash = mixed_text(h->hash, step->format);
    h->hash = mixed_text(h->hash, step->word);
    for (unsigned i = 0; i < STEP_NUMBERS; i++)
        h->hash = mixed(h->hash, step->number[i]);
    h->kept[h->steps++ % HISTORY_KEPT] = *step;
    if (h->aloud)
        print_step(step, stdout);
}

void history_print(const struct history *h, unsigned most, FILE *out)
{
    uint64_t first = h->steps > HISTORY_KEPT ? h->steps - HISTORY_KEPT : 0;
    if (h->steps - first > most)
        first = h->steps - most;
    for (uint64_t i = first; i < h->steps; i++)
        print_step(&h->kept[i % HISTORY_KEPT], out);
}

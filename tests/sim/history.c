/* SPDX-License-Identifier: MIT */
/* The hash covers time, words and numbers of every step, and no address. */
#include "sim/history.h"

#include <string.h>

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

static void print_ms(uint64_t ns, int width, FILE *out)
{
    fprintf(out, "%*llu.%06llu", width, (unsigned long long)(ns / NS_PER_MS),
        (unsigned long long)(ns % NS_PER_MS));
}

/* Nanoseconds are for the hash; whoever reads has all times in ms. */
static void print_text(const char *text, const uint64_t *number, FILE *out)
{
    static const char verb[] = "%llu", ns[] = "%llu ns";
    while (*text != '\0') {
        if (strncmp(text, ns, sizeof(ns) - 1) == 0) {
            print_ms(*number++, 0, out);
            fputs(" ms", out);
            text += sizeof(ns) - 1;
        } else if (strncmp(text, verb, sizeof(verb) - 1) == 0) {
            fprintf(out, "%llu", (unsigned long long)*number++);
            text += sizeof(verb) - 1;
        } else {
            putc(*text++, out);
        }
    }
}

static void print_step(const struct step *s, FILE *out)
{
    print_ms(s->at, 9, out);
    fputs("  ", out);
    print_text(s->format, s->number, out);
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

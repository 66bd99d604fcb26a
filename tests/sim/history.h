/* SPDX-License-Identifier: MIT */
/*
 * What happened, step by step. All of it goes into one number, so that two
 * runs can be compared; the last steps are kept, to be shown when an
 * invariant is broken. Steps are formatted only when they are printed.
 */
#ifndef NXLOCK_SIM_HISTORY_H
#define NXLOCK_SIM_HISTORY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define HISTORY_KEPT 256
#define STEP_NUMBERS 5

struct step {
    uint64_t at;
    const char *format; /* of numbers, all %llu; "%llu ns" is told in ms */
    const char *word;   /* printed behind it; may be NULL */
    uint64_t number[STEP_NUMBERS];
};

struct history {
    uint64_t hash, steps;
    bool aloud; /* print each step as it happens */
    struct step kept[HISTORY_KEPT];
};

void history_add(struct history *h, const struct step *step);
/* The last steps, oldest first. */
void history_print(const struct history *h, unsigned most, FILE *out);

/* note(w, "c%llu asks s%llu:", "set", client, server) */
#define note(w, text, word, ...)                                               \
    history_add(                                                               \
        &(w)->history, &(struct step){(w)->now, text, word, {__VA_ARGS__}})

#endif

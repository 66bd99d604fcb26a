/* SPDX-License-Identifier: MIT */
/*
 * Inputs made of a corpus and a dictionary by chance. What comes depends on
 * the files and the seed alone.
 */
#ifndef NXLOCK_TESTS_FUZZ_MUTATE_H
#define NXLOCK_TESTS_FUZZ_MUTATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* So that any input can be given in hexadecimal as one argument. */
#define INPUT_MAX 49152

struct bytes {
    uint8_t *data;
    size_t size;
};

struct pool {
    struct bytes *item;
    size_t count;
};

struct mutator {
    struct pool corpus; /* in the order of the files' names */
    struct pool words;
    uint64_t state;
    struct bytes out, scratch; /* INPUT_MAX bytes of room */
};

/* folder: the corpus, flat. words: a dictionary as libFuzzer takes it. False:
 * one cannot be read or has nothing in it, which has been said. */
bool mutator_open(
    struct mutator *m, const char *folder, const char *words, uint64_t seed);
void mutator_close(struct mutator *m);

/* Valid until the next call. */
const struct bytes *mutator_next(struct mutator *m);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Runs a target without libFuzzer: every file of its corpus, then inputs made
 * of them by chance, the same for the same seed.
 *
 *     fuzz_TARGET CORPUS DICTIONARY [RUNS [SEED]]
 *     fuzz_TARGET -x HEX        one input, as a failure has shown it
 *
 * Fails when the target does, when an input takes too long, and when all
 * inputs or none were taken for good: then one side was never looked at.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "fuzz/mutate.h"

#define RUNS 30000
#define FULL_RUNS 100000 /* with NXLOCK_FULL=1 */
#define SEED 1
#define INPUT_SECONDS 20

/* A sanitizer ends the program by itself. */
void __sanitizer_set_death_callback(void (*callback)(void))
    __attribute__((weak));

static const uint8_t *input;
static size_t input_size;
static char origin[512]; /* of the input, for people */

static void put(const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t done = write(STDERR_FILENO, bytes, size);
        if (done <= 0)
            return;
        bytes += done;
        size -= (size_t)done;
    }
}

/* Nothing here may allocate: it runs in a signal handler. */
static void show_input(void)
{
    static const char digits[] = "0123456789abcdef";
    static const char replay[] = "\nto run it again: -x ";

    put(origin, strlen(origin));
    put(replay, sizeof(replay) - 1);
    for (size_t i = 0; i < input_size; i++) {
        char hex[2] = {digits[input[i] >> 4], digits[input[i] & 15]};
        put(hex, sizeof(hex));
    }
    put("\n", 1);
}

static void on_signal(int signo)
{
    static const char late[] = "the input takes too long\n";

    if (signo == SIGALRM)
        put(late, sizeof(late) - 1);
    show_input();
    signal(signo, SIG_DFL);
    raise(signo);
}

static void watch(void)
{
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};

    signal(SIGABRT, on_signal);
    signal(SIGALRM, on_signal);
    if (__sanitizer_set_death_callback) {
        __sanitizer_set_death_callback(show_input);
        return;
    }
    for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++)
        signal(fatal[i], on_signal);
}

static void run(const struct bytes *bytes)
{
    /* Exactly as large as it is, for a sanitizer's sake. */
    uint8_t *copy = malloc(bytes->size > 0 ? bytes->size : 1);

    if (!copy)
        exit(1);
    if (bytes->size > 0)
        memcpy(copy, bytes->data, bytes->size);
    input = copy;
    input_size = bytes->size;
    alarm(INPUT_SECONDS);
    LLVMFuzzerTestOneInput(copy, bytes->size);
    alarm(0);
    input_size = 0;
    free(copy);
}

static int from_hex(const char *hex)
{
    struct bytes bytes = {.size = strlen(hex) / 2};
    unsigned byte;

    bytes.data = malloc(bytes.size + 1);
    for (size_t i = 0; i < bytes.size; i++) {
        if (!bytes.data || sscanf(hex + 2 * i, "%2x", &byte) != 1) {
            fprintf(stderr, "-x takes hexadecimal digits\n");
            return 2;
        }
        bytes.data[i] = (uint8_t)byte;
    }
    snprintf(origin, sizeof(origin), "of the command line");
    run(&bytes);
    printf("%s\n", fuzz_accepted > 0 ? "accepted" : "rejected");
    free(bytes.data);
    return 0;
}

static int drive(const char *folder, const char *words, unsigned long runs,
    unsigned long long seed)
{
    struct mutator m;

    if (!mutator_open(&m, folder, words, seed))
        return 1;
    for (size_t i = 0; i < m.corpus.count; i++) {
        snprintf(origin, sizeof(origin), "file %zu of %s, sorted by name",
            i + 1, folder);
        run(&m.corpus.item[i]);
    }
    printf("%zu files, %zu words: %lu accepted, %lu rejected\n", m.corpus.count,
        m.words.count, fuzz_accepted, fuzz_rejected);
    bool lopsided = fuzz_accepted == 0 || fuzz_rejected == 0;
    fuzz_accepted = fuzz_rejected = 0;
    printf("%lu inputs from seed %llu: ", runs, seed);
    fflush(stdout);
    for (unsigned long i = 0; i < runs; i++) {
        snprintf(origin, sizeof(origin), "input %lu from seed %llu", i, seed);
        run(mutator_next(&m));
    }
    printf("%lu accepted, %lu rejected\n", fuzz_accepted, fuzz_rejected);
    mutator_close(&m);
    if (lopsided || fuzz_accepted == 0 || fuzz_rejected == 0) {
        fprintf(stderr, "only one side was explored\n");
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    watch();
    if (argc == 3 && strcmp(argv[1], "-x") == 0)
        return from_hex(argv[2]);
    if (argc < 3 || argc > 5) {
        fprintf(stderr,
            "usage: %s CORPUS DICTIONARY [RUNS [SEED]]\n"
            "       %s -x HEX\n",
            argv[0], argv[0]);
        return 2;
    }
    unsigned long runs = getenv("NXLOCK_FULL") ? FULL_RUNS : RUNS;
    return drive(argv[1], argv[2], argc > 3 ? strtoul(argv[3], NULL, 10) : runs,
        argc > 4 ? strtoull(argv[4], NULL, 10) : SEED);
}

/* SPDX-License-Identifier: MIT */
/*
 * What the command tells its caller: one line to standard error, and a code.
 */
#ifndef NXLOCK_CLI_REPORT_H
#define NXLOCK_CLI_REPORT_H

#include <stdbool.h>
#include <stddef.h>

/* Where sysexits.h has a number for it, that number; 126 and above as the
 * shell. The codes of the child share this space. */
enum exit_code {
    EXIT_DONE = 0,
    EXIT_FREE = 1,         /* status, unlock: the lock is free */
    EXIT_WARNED = 1,       /* doctor: it works, but */
    EXIT_USAGE = 64,       /* the command line */
    EXIT_UNAVAILABLE = 69, /* no answer, or a refusal; nothing was started */
    EXIT_INTERNAL = 70,    /* memory, descriptors, a fault of ours */
    EXIT_BUSY = 75,        /* another process holds it; -E replaces this */
    EXIT_DENIED = 77,      /* password, user or rights */
    EXIT_CONFIG = 78,      /* the URL */
    EXIT_LOST = 79,        /* the lock was lost */
    EXIT_AT_MOST = 124,    /* run: the time of --at-most was over */
    EXIT_NO_PROCESS = 125, /* run: no process could be made for CMD */
    EXIT_NOT_RUN = 126,    /* CMD was found but cannot be executed */
    EXIT_NOT_FOUND = 127,  /* CMD was not found */
    EXIT_SIGNAL = 128      /* + its number */
};

/* "nxlock: ..." and a newline, in one write, which does not block: where
 * there is no reader, nothing is printed. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Puts '?' for every control character. */
void clean_text(char *text, size_t length);

/* The exit code for a result of the library that ended an attempt; busy is
 * the code for NXL_BUSY. */
int exit_code_for(int result, int busy);

/* What is closest to a misspelt word, among the candidates shown to it. */
struct nearest {
    const char *word;
    const char *best; /* NULL: nothing is close */
    size_t distance;
};

void nearest_start(struct nearest *nearest, const char *word);
/* candidate must outlive *nearest; '_' and '-' count as the same. */
void nearest_consider(struct nearest *nearest, const char *candidate);

/* Copies length bytes of text into out, zero-ended and cut to size, with a
 * '?' for every byte that is not printable ASCII. Returns out. */
const char *printable(char *out, size_t size, const char *text, size_t length);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What the command tells its caller: messages on standard error, and a code.
 */
#ifndef NXLOCK_CLI_REPORT_REPORT_H
#define NXLOCK_CLI_REPORT_REPORT_H

#include <stdbool.h>
#include <stddef.h>

/* The numbers of sysexits.h where it has one; from 126 on as in a shell. run
 * also returns the codes of its command. */
enum exit_code {
    EXIT_DONE = 0,
    EXIT_FREE = 1,         /* status, unlock: the lock is free; once: there
                            * is no such record */
    EXIT_WARNED = 1,       /* doctor: it works, with a warning */
    EXIT_USAGE = 64,       /* the command line */
    EXIT_OTHER_WORK = 65,  /* once: the record has another fingerprint */
    EXIT_UNAVAILABLE = 69, /* no answer, or a refusal; nothing was started */
    EXIT_INTERNAL = 70,    /* out of memory or descriptors, or a bug */
    EXIT_BUSY = 75,        /* another process holds it; -E replaces this */
    EXIT_DOUBT = 76,       /* once: nobody knows whether it was done */
    EXIT_DENIED = 77,      /* password, user or rights */
    EXIT_CONFIG = 78,      /* the URL */
    EXIT_LOST = 79,        /* the lock was lost; once: or the verdict */
    EXIT_AT_MOST = 124,    /* run: stopped by --at-most */
    EXIT_NO_PROCESS = 125, /* run: cannot create a process for CMD */
    EXIT_NOT_RUN = 126,    /* CMD was found but cannot be executed */
    EXIT_NOT_FOUND = 127,  /* CMD was not found */
    EXIT_SIGNAL = 128      /* + its number */
};

/* Prints "nxlock: ..." and a newline to standard error, in one write that does
 * not block. A message that is not read now is kept for outbox_end(). */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Flushes standard output. Reports it if something could not be printed, now or
 * earlier, and returns EXIT_INTERNAL; otherwise EXIT_DONE. */
int report_output(void);

/* Replaces every control character with '?'. */
void clean_text(char *text, size_t length);

/* The exit code for a result of the library; busy is the one for NXL_BUSY. */
int exit_code_for(int result, int busy);

/* Why it failed: the words for it, or if there are none, what the result
 * means. */
const char *failure_words(const char *words, int result);

/* No server could decide, but that may change: it may help to ask again. */
bool result_may_pass(int result);

/* Finds the candidate that is closest to a misspelt word. */
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

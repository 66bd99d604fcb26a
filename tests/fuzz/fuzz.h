/* SPDX-License-Identifier: MIT */
/*
 * What every target is made of. A target is one LLVMFuzzerTestOneInput() that
 * checks what must hold for any input at all; it is run by drive.c in every
 * build and by libFuzzer where the option "fuzz" is set.
 */
#ifndef NXLOCK_TESTS_FUZZ_H
#define NXLOCK_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the program, which shows the input. */
_Noreturn void fuzz_fail(const char *file, int line, const char *what);
#define CHECK(condition)                                                       \
    ((condition) ? (void)0 : fuzz_fail(__FILE__, __LINE__, #condition))

/* Called once for an input: was it taken for good? A target that only ever
 * meets one of both explores nothing. */
void fuzz_count(bool accepted);
extern unsigned long fuzz_accepted, fuzz_rejected;

/* A zero-ended copy of exactly the size it needs, so that a sanitizer sees
 * every byte read beyond it. */
char *fuzz_copy(const void *data, size_t size);

/* The same of bytes in which a byte 1 stands for a hundred 'x', so that a
 * short input reaches a high limit. At most max bytes; *len receives how
 * many. */
char *fuzz_expand(const uint8_t *data, size_t size, size_t max, size_t *len);

/* The length of the text that is there: up to a zero byte, and without the
 * newline at the end of a corpus file. */
size_t fuzz_text_len(const char *data, size_t size);

bool fuzz_same(const char *a, const char *b); /* either may be NULL */

/* Every byte is printable ASCII. */
bool fuzz_printable(const char *text);

#endif

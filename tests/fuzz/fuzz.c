/* SPDX-License-Identifier: MIT */
/* Shared by the targets; see fuzz.h. */
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MANY 1
#define MANY_COUNT 100

unsigned long fuzz_accepted, fuzz_rejected;

void fuzz_fail(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: this does not hold: %s\n", file, line, what);
    abort();
}

void fuzz_count(bool accepted)
{
    if (accepted)
        fuzz_accepted++;
    else
        fuzz_rejected++;
}

char *fuzz_copy(const void *data, size_t size)
{
    char *copy = malloc(size + 1);

    if (!copy)
        fuzz_fail(__FILE__, __LINE__, "there is memory");
    if (size > 0)
        memcpy(copy, data, size);
    copy[size] = '\0';
    return copy;
}

char *fuzz_expand(const uint8_t *data, size_t size, size_t max, size_t *len)
{
    size_t total = 0;

    for (size_t i = 0; i < size; i++)
        total += data[i] == MANY ? MANY_COUNT : 1;
    if (total > max)
        total = max;
    char *text = malloc(total + 1);
    if (!text)
        fuzz_fail(__FILE__, __LINE__, "there is memory");
    size_t at = 0;
    for (size_t i = 0; at < total; i++) {
        size_t count = data[i] == MANY ? MANY_COUNT : 1;
        if (count > total - at)
            count = total - at;
        memset(text + at, data[i] == MANY ? 'x' : data[i], count);
        at += count;
    }
    text[total] = '\0';
    *len = total;
    return text;
}

size_t fuzz_text_len(const char *data, size_t size)
{
    size_t len = size > 0 ? strnlen(data, size) : 0;

    return len > 0 && len == size && data[len - 1] == '\n' ? len - 1 : len;
}

bool fuzz_same(const char *a, const char *b)
{
    return !a || !b ? a == b : strcmp(a, b) == 0;
}

bool fuzz_printable(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text < ' ' || *text > '~')
            return false;
    }
    return true;
}

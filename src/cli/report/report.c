/* SPDX-License-Identifier: MIT */
/*
 * Messages, exit codes, and suggestions for misspelt words.
 *
 * Invariant: a message has no newline but its last byte and is one write, so
 * that those of several processes do not mix; and every result of the library
 * has one exit code.
 */
#include "cli/report/report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <nxlock.h>

#include "cli/report/outbox.h"

/* A word that needs more edits than this is not a slip of the fingers. */
#define NEAR_ENOUGH 2
#define WORD_MAX 32

static struct outlet to_stderr = {.fd = STDERR_FILENO};

int report_output(void)
{
    /* The errno of an earlier write is gone. */
    if (ferror(stdout))
        say("cannot print all of it: standard output was closed, or is full");
    else if (fflush(stdout) != 0)
        say("cannot print: %s", strerror(errno));
    else
        return EXIT_DONE;
    return EXIT_INTERNAL;
}

void clean_text(char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)text[i];
        unsigned char next = i + 1 < length ? (unsigned char)text[i + 1] : 0;
        /* C0, DEL, and C1 in UTF-8. */
        if (byte == 0xc2 && next >= 0x80 && next < 0xa0)
            text[i] = text[i + 1] = '?';
        else if (byte < ' ' || byte == 0x7f)
            text[i] = '?';
    }
}

void say(const char *format, ...)
{
    char text[2048] = "nxlock: ";
    size_t start = strlen(text);
    size_t room = sizeof(text) - start - 1;
    va_list arguments;

    va_start(arguments, format);
    int wanted = vsnprintf(text + start, room, format, arguments);
    va_end(arguments);
    if (wanted < 0)
        return;
    size_t length = (size_t)wanted < room ? (size_t)wanted : room - 1;
    clean_text(text + start, length); /* a name may hold anything */
    text[start + length] = '\n';
    outbox_write(&to_stderr, text, start + length + 1);
}

int exit_code_for(int result, int busy)
{
    switch (result) {
    case NXL_OK:
        return EXIT_DONE;
    case NXL_BUSY:
        return busy;
    case NXL_LOST:
        return EXIT_LOST;
    case NXL_FREE:
        return EXIT_FREE;
    case NXL_E_DENIED:
        return EXIT_DENIED;
    case NXL_E_URL:
        return EXIT_CONFIG;
    case NXL_E_INVALID:
    case NXL_E_NOMEM:
    case NXL_E_SYSTEM:
    case NXL_E_FORKED:
        return EXIT_INTERNAL;
    default:
        return EXIT_UNAVAILABLE;
    }
}

const char *failure_words(const char *words, int result)
{
    return words[0] != '\0' ? words : nxl_strerror(result);
}

bool result_may_pass(int result)
{
    return result == NXL_E_UNREACHABLE || result == NXL_E_REFUSED ||
           result == NXL_UNKNOWN;
}

void nearest_start(struct nearest *nearest, const char *word)
{
    nearest->word = word;
    nearest->best = NULL;
    nearest->distance = NEAR_ENOUGH + 1;
}

static bool same_letter(char a, char b)
{
    return a == b || (a == '_' && b == '-') || (a == '-' && b == '_');
}

/* Insertions, deletions, replacements and swaps of neighbours that lead from
 * a to b, both at most WORD_MAX long. */
static size_t edit_distance(
    const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t edits[WORD_MAX + 1][WORD_MAX + 1];

    for (size_t j = 0; j <= b_len; j++)
        edits[0][j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        edits[i][0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t differs = same_letter(a[i - 1], b[j - 1]) ? 0 : 1;
            size_t least = edits[i - 1][j - 1] + differs;
            if (edits[i - 1][j] + 1 < least)
                least = edits[i - 1][j] + 1;
            if (edits[i][j - 1] + 1 < least)
                least = edits[i][j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
                a[i - 2] == b[j - 1] && edits[i - 2][j - 2] + 1 < least)
                least = edits[i - 2][j - 2] + 1;
            edits[i][j] = least;
        }
    }
    return edits[a_len][b_len];
}

void nearest_consider(struct nearest *nearest, const char *candidate)
{
    size_t word_len = strlen(nearest->word);
    size_t len = strlen(candidate);

    if (word_len == 0 || word_len > WORD_MAX || len > WORD_MAX)
        return;
    size_t found = edit_distance(nearest->word, word_len, candidate, len);
    /* As many edits as a word is long turn it into any other. */
    if (found < nearest->distance && found < len && found < word_len) {
        nearest->distance = found;
        nearest->best = candidate;
    }
}

const char *printable(char *out, size_t size, const char *text, size_t length)
{
    size_t i;

    for (i = 0; i < length && i + 1 < size; i++)
        out[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
    out[i] = '\0';
    return out;
}

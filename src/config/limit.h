/* SPDX-License-Identifier: MIT */
/*
 * What an option may be, and the check of a value against it: the same for an
 * option that is written in a URL and for a member of a structure. The limits
 * themselves are in the rows of config/params.c.
 */
#ifndef NXLOCK_CONFIG_LIMIT_H
#define NXLOCK_CONFIG_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

enum limit_kind {
    LIMIT_NUMBER,
    LIMIT_TEXT,  /* any bytes */
    LIMIT_ASCII, /* one word of printable ASCII */
    LIMIT_WORD,  /* one of a few words; in a structure their numbers, from 0 */
    LIMIT_SWITCH /* 1 or 0 */
};

struct limit {
    const char *name;
    enum limit_kind kind;
    /* TEXT, ASCII: the number of bytes. high INT64_MAX: there is no limit. */
    int64_t low, high;
    int64_t default_value;    /* the default, unless it is a text */
    const char *const *words; /* WORD: for 0 to high */
    const char *why;          /* where the bounds come from; NULL: fixed */
};

/* Adds what is valid: "must be a number from 10 to 600000". */
void limit_describe(const struct limit *limit, struct text *text);

/* Reads the value of any kind but TEXT and ASCII, as it is written in a URL.
 * False: it is not valid. */
bool limit_read(const struct limit *limit, const char *text, uint64_t *value);

/* Checks the number that a structure has for an option. False: *error names the
 * option, the value and what is valid. */
bool limit_number(const struct limit *limit, int64_t value, struct text *error);

/* The same for a text, which *error quotes; it may be NULL. */
bool limit_text(
    const struct limit *limit, const char *value, struct text *error);

/* Decimal digits only, at most high: false for anything else. */
bool read_number(const char *digits, uint64_t high, uint64_t *value);

#endif

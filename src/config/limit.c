/* SPDX-License-Identifier: MIT */
/*
 * Checks values of options against their limits.
 *
 * Invariant: a value out of its limits is refused; nothing is rounded or cut to
 * fit. What is valid is described in the same words whatever the value came
 * from.
 */
#include "config/limit.h"

#include <string.h>

#include "model/token.h"

/* numbered: the words with their numbers, for a structure. */
static void add_words(
    const struct limit *limit, bool numbered, struct text *text)
{
    text_add(text, "must be ");
    for (int64_t i = 0; i <= limit->high; i++) {
        const char *join = i == 0 ? "" : i == limit->high ? " or " : ", ";
        if (numbered)
            text_addf(text, "%s%lld (%s)", join, (long long)i, limit->words[i]);
        else
            text_addf(text, "%s%s", join, limit->words[i]);
    }
}

static void describe(
    const struct limit *limit, bool numbered, struct text *text)
{
    long long low = limit->low, high = limit->high;

    switch (limit->kind) {
    case LIMIT_NUMBER:
        if (limit->high == INT64_MAX)
            text_addf(text, "must be a number of at least %lld", low);
        else
            text_addf(text, "must be a number from %lld to %lld", low, high);
        break;
    case LIMIT_TEXT:
        text_addf(text, "must have %lld to %lld bytes", low, high);
        break;
    case LIMIT_ASCII:
        text_addf(text,
            "must be one word of printable ASCII, %lld to %lld bytes", low,
            high);
        break;
    case LIMIT_WORD:
        add_words(limit, numbered, text);
        break;
    case LIMIT_SWITCH:
        text_add(text, "must be 1 (on) or 0 (off)");
        break;
    }
    if (limit->why)
        text_addf(text, " (%s)", limit->why);
}

void limit_describe(const struct limit *limit, struct text *text)
{
    describe(limit, false, text);
}

bool read_number(const char *digits, uint64_t high, uint64_t *value)
{
    uint64_t sum = 0;

    if (!*digits)
        return false;
    for (; *digits; digits++) {
        if (*digits < '0' || *digits > '9')
            return false;
        uint64_t digit = (uint64_t)(*digits - '0');
        if (digit > high || sum > (high - digit) / 10)
            return false;
        sum = sum * 10 + digit;
    }
    *value = sum;
    return true;
}

bool limit_read(const struct limit *limit, const char *text, uint64_t *value)
{
    uint64_t low = (uint64_t)limit->low, high = (uint64_t)limit->high;
    uint64_t number = 0;

    if (limit->kind == LIMIT_WORD) {
        while (number <= high && strcmp(text, limit->words[number]) != 0)
            number++;
        if (number > high)
            return false;
    } else if (!read_number(text, high, &number) || number < low) {
        return false;
    }
    *value = number;
    return true;
}

bool limit_number(const struct limit *limit, int64_t value, struct text *error)
{
    if (value >= limit->low && value <= limit->high)
        return true;
    text_clear(error);
    text_addf(error, "%s is %lld; it ", limit->name, (long long)value);
    describe(limit, true, error);
    return false;
}

bool limit_text(
    const struct limit *limit, const char *value, struct text *error)
{
    size_t len = strlen(value), high = (size_t)limit->high;

    if (limit->kind == LIMIT_ASCII ? word_valid(value, high)
                                   : len >= (size_t)limit->low && len <= high)
        return true;
    if (!error)
        return false;
    text_clear(error);
    if (len > high) {
        text_addf(error, "%s has %zu bytes", limit->name, len);
    } else {
        text_addf(error, "%s is '", limit->name);
        text_add_foreign_raw(error, slice_of(value), high);
        text_add(error, "'");
    }
    text_add(error, "; it ");
    describe(limit, true, error);
    return false;
}

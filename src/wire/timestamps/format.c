/* SPDX-License-Identifier: MIT */
/*
 * Writes and reads the values of the timestamp scheme. Invariant: a value
 * counts as a time only if it certainly is one, because a value that is
 * mistaken for a past time gets overwritten.
 */
#include "wire/timestamps/format.h"

#include <inttypes.h>
#include <stdio.h>

#include "model/token.h"
#include "wire/timestamps/timestamps.h"

#define FIRST_S INT64_C(1000000000) /* 1e9: September 2001 */
#define END_S INT64_C(100000000000) /* 1e11: the year 5138 */
#define UUID_BYTES 16
/* Longer values are not times; they were read only in part. */
#define VALUE_MAX (STAMP_ROOM - 1)

_Static_assert(STAMP_BLANKS == 8 * UUID_BYTES, "a blank for each bit");

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void read_uuid(unsigned char number[UUID_BYTES], struct slice token)
{
    size_t nibbles = 0;

    memset(number, 0, UUID_BYTES);
    for (size_t i = 0; i < UUID_TEXT; i++) {
        int digit = hex_value(token.data[i]);
        if (digit < 0)
            continue; /* '-' */
        number[nibbles / 2] = (unsigned char)(number[nibbles / 2] << 4 | digit);
        nibbles++;
    }
}

/* The highest bit first. */
static void write_blanks(char out[STAMP_BLANKS], struct slice token)
{
    unsigned char number[UUID_BYTES];

    read_uuid(number, token);
    for (size_t i = 0; i < STAMP_BLANKS; i++)
        out[i] = number[i / 8] >> (7 - i % 8) & 1 ? '\t' : ' ';
}

int64_t stamp_end(int64_t end_ms)
{
    return (end_ms + 999) / 1000 + 1;
}

size_t stamp_format(char out[STAMP_ROOM], struct slice token, int64_t end_s)
{
    if (end_s < FIRST_S || end_s >= END_S)
        return 0;
    size_t len = (size_t)snprintf(out, STAMP_ROOM, "%" PRId64, end_s);
    write_blanks(out + len, token);
    len += STAMP_BLANKS;
    out[len] = '\0';
    return len;
}

static size_t digits_at(struct slice s, size_t at)
{
    size_t n = 0;
    while (at + n < s.len && s.data[at + n] >= '0' && s.data[at + n] <= '9')
        n++;
    return n;
}

static size_t blanks_at(struct slice s, size_t at)
{
    size_t n = 0;
    while (at + n < s.len && (s.data[at + n] == ' ' || s.data[at + n] == '\t'))
        n++;
    return n;
}

enum stamp_kind stamp_parse(struct slice value, int64_t *end_s)
{
    size_t whole = digits_at(value, 0);
    int64_t seconds = 0;
    bool more = false;

    if (value.len > VALUE_MAX || whole < 10 || whole > 11 ||
        value.data[0] == '0')
        return STAMP_NONE;
    for (size_t i = 0; i < whole; i++)
        seconds = seconds * 10 + (value.data[i] - '0');
    *end_s = seconds;
    if (whole == value.len)
        return STAMP_FOREIGN;
    if (value.len - whole == STAMP_BLANKS &&
        blanks_at(value, whole) == STAMP_BLANKS)
        return STAMP_OURS;
    size_t fraction = digits_at(value, whole + 1);
    if (value.data[whole] != '.' || fraction == 0 ||
        whole + 1 + fraction != value.len)
        return STAMP_NONE;
    for (size_t i = whole + 1; i < value.len; i++)
        more = more || value.data[i] != '0';
    *end_s += more;
    return STAMP_FOREIGN;
}

bool stamp_is_of(struct slice value, struct slice token)
{
    char uuid[STAMP_BLANKS];
    int64_t end_s;

    if (!token_valid(token) || stamp_parse(value, &end_s) != STAMP_OURS)
        return false;
    write_blanks(uuid, token);
    return memcmp(value.data + value.len - STAMP_BLANKS, uuid, STAMP_BLANKS) ==
           0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Durations. What is accepted and what it is worth is computed a second time
 * here, in another way: the grammar first, then whole units and thousandths
 * of one apart.
 */
#include "cli/report/duration.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"

#define CAP_MS (INT64_C(3650) * 24 * 3600 * 1000) /* ten years */
#define UNTOUCHED INT64_C(-4242)
#define DIGITS "0123456789"

static const struct unit {
    const char *name;
    int64_t ms;
} units[] = {
    {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
#define UNITS (sizeof(units) / sizeof(units[0]))

/* The thousandths that are left of a unit after the point; more than three
 * digits are too fine to matter. */
static int64_t fraction(const char *digits, size_t count)
{
    int64_t sum = 0;

    for (size_t i = 0; i < 3; i++)
        sum = sum * 10 + (i < count ? digits[i] - '0' : 0);
    return sum;
}

/* What text means; below 0: it is no duration. */
static int64_t meaning(const char *text)
{
    size_t whole = strspn(text, DIGITS);
    size_t point = text[whole] == '.' ? 1 : 0;
    size_t part = point ? strspn(text + whole + 1, DIGITS) : 0;
    const char *name = text + whole + point + part;
    int64_t ms = strcmp(name, "") == 0 ? 1000 : 0;
    int64_t sum = 0;

    for (size_t i = 0; i < UNITS; i++) {
        if (strcmp(name, units[i].name) == 0)
            ms = units[i].ms;
    }
    if (whole == 0 || (point && part == 0) || ms == 0)
        return -1;
    for (size_t i = 0; i < whole && sum <= CAP_MS; i++)
        sum = sum * 10 + (text[i] - '0');
    if (sum > CAP_MS / ms)
        return -1;
    sum = sum * ms + fraction(text + whole + point, part) * ms / 1000;
    return sum > CAP_MS ? -1 : sum;
}

/* It means what it says; if it is none, the result is left as it was. */
static bool check(const char *text)
{
    int64_t expected = meaning(text), ms = UNTOUCHED;
    bool good = duration_parse(text, &ms);

    CHECK(good == (expected >= 0));
    CHECK(ms == (good ? expected : UNTOUCHED));
    return good;
}

static void check_joined(
    const char *before, const char *text, size_t len, const char *after)
{
    char *joined;

    CHECK(asprintf(&joined, "%s%.*s%s", before, (int)len, text, after) >= 0);
    (void)check(joined);
    free(joined);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const before[] = {"0", " ", "+", "-", "."};
    static const char *const after[] = {" ", ".", "x", "S", "0x", "-"};
    size_t len = fuzz_text_len((const char *)data, size);
    char *text = fuzz_copy(data, len);

    len = strlen(text);
    for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++)
        check_joined(before[i], text, len, "");
    for (size_t i = 0; i < sizeof(after) / sizeof(after[0]); i++)
        check_joined("", text, len, after[i]);
    for (size_t i = 0; i < UNITS; i++)
        check_joined("", text, strspn(text, DIGITS "."), units[i].name);
    fuzz_count(check(text));
    free(text);
    return 0;
}

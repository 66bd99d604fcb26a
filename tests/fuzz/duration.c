/* SPDX-License-Identifier: MIT */
/*
 * Durations. What is accepted and what it is worth is computed a second time
 * here, in another way: the grammar first, then whole units and thousandths
 * of one apart.
 */
#include "cli/report/duration.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"

#define CAP_MS (INT64_C(3650) * 24 * 3600 * 1000) /* ten years */
#define UNTOUCHED INT64_C(-4242)
#define DIGITS "0123456789"

/* In ascending order. */
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

static bool parse(const char *text, int64_t *ms)
{
    *ms = UNTOUCHED;
    bool good = duration_parse(text, ms);

    CHECK(good ? *ms >= 0 && *ms <= CAP_MS : *ms == UNTOUCHED);
    return good;
}

/* The same number of a larger unit is never less, and is good only if that
 * of every smaller unit is. */
static void check_units(const char *number, size_t len)
{
    char *text = malloc(len + 3);
    int64_t last = 0, bare;
    bool good = true;

    CHECK(text != NULL);
    memcpy(text, number, len);
    for (size_t i = 0; i < UNITS; i++) {
        int64_t ms;
        strcpy(text + len, units[i].name);
        if (!parse(text, &ms)) {
            good = false;
            continue;
        }
        CHECK(good);
        CHECK(ms >= last);
        last = ms;
        if (units[i].ms == 1000) {
            text[len] = '\0';
            CHECK(parse(text, &bare) && bare == ms);
        }
    }
    free(text);
}

/* What must not change the meaning, and what must end it. */
static void check_around(const char *text, size_t len, int64_t ms)
{
    static const char *const before[] = {" ", "+", "-", "."};
    static const char *const after[] = {" ", ".", "x", "S", "0x", "-"};
    char *more = malloc(len + 3);
    int64_t again;

    CHECK(more != NULL);
    memcpy(more, "0", 1);
    memcpy(more + 1, text, len + 1);
    CHECK(parse(more, &again) && again == ms);
    for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
        more[0] = before[i][0];
        CHECK(!parse(more, &again));
    }
    for (size_t i = 0; i < sizeof(after) / sizeof(after[0]); i++) {
        memcpy(more, text, len);
        strcpy(more + len, after[i]);
        CHECK(!parse(more, &again));
    }
    free(more);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t len = fuzz_text_len((const char *)data, size);
    char *text = fuzz_copy(data, len);
    int64_t ms;

    bool good = parse(text, &ms);
    int64_t expected = meaning(text);
    CHECK(good == (expected >= 0));
    if (good) {
        CHECK(ms == expected);
        check_around(text, len, ms);
    }
    if (text[0] >= '0' && text[0] <= '9')
        check_units(text, strspn(text, DIGITS "."));
    fuzz_count(good);
    free(text);
    return 0;
}

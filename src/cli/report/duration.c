/* SPDX-License-Identifier: MIT */
/*
 * Durations as people write them.
 *
 * Invariant: duration_text() writes every duration of the command, rounded or
 * not, and duration_parse() reads it back as the same number of milliseconds.
 */
#include "cli/report/duration.h"

#include <stdio.h>
#include <string.h>

/* Longer than any lease or wait that makes sense: ten years. */
#define DURATION_MAX_MS (INT64_C(3650) * 24 * 3600 * 1000)

/* From here on, 21.6h is easier to read than 1296m. */
#define WHOLE_MAX 120

/* The number at *text in thousandths of unit, read up to its end. */
static bool number_scaled(const char **text, int64_t *thousandths)
{
    const char *at = *text;
    int64_t whole = 0;
    int64_t part = 0;
    int64_t weight = 100;

    if (*at < '0' || *at > '9')
        return false;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (whole > DURATION_MAX_MS / 10)
            return false;
        whole = whole * 10 + (*at - '0');
    }
    if (*at == '.') {
        at++;
        if (*at < '0' || *at > '9')
            return false;
        for (; *at >= '0' && *at <= '9'; at++) {
            part += (*at - '0') * weight;
            weight /= 10;
        }
    }
    *text = at;
    *thousandths = whole * 1000 + part;
    return true;
}

static const struct unit {
    const char *name;
    int64_t ms;
} units[] = {{"d", 24 * 3600 * 1000}, {"h", 3600 * 1000}, {"m", 60 * 1000},
    {"s", 1000}, {"ms", 1}, {"", 1000}};
/* Those that are written, from the largest one on; seconds are the last. */
#define WRITTEN 4

bool duration_parse(const char *text, int64_t *ms)
{
    int64_t thousandths;

    if (!number_scaled(&text, &thousandths))
        return false;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(text, units[i].name) != 0)
            continue;
        if (thousandths / 1000 > DURATION_MAX_MS / units[i].ms)
            return false;
        int64_t sum = thousandths / 1000 * units[i].ms +
                      thousandths % 1000 * units[i].ms / 1000;
        if (sum > DURATION_MAX_MS)
            return false;
        *ms = sum;
        return true;
    }
    return false;
}

/* Writes ms, which is a whole number of thousandths of the unit. */
static const char *write_in(char *out, int64_t ms, const struct unit *unit)
{
    int length = snprintf(out, DURATION_ROOM, "%lld.%03d",
        (long long)(ms / unit->ms), (int)(ms % unit->ms * 1000 / unit->ms));

    while (out[length - 1] == '0')
        length--;
    if (out[length - 1] == '.')
        length--;
    snprintf(out + length, DURATION_ROOM - (size_t)length, "%s", unit->name);
    return out;
}

const char *duration_text(char *out, int64_t ms)
{
    if (ms < 1000) {
        snprintf(
            out, DURATION_ROOM, "%lld%s", (long long)ms, ms == 0 ? "s" : "ms");
        return out;
    }
    for (size_t i = 0; i < WRITTEN; i++)
        if (ms % units[i].ms == 0 && ms / units[i].ms < WHOLE_MAX)
            return write_in(out, ms, &units[i]);
    for (size_t i = 0; i < WRITTEN; i++)
        if (ms >= units[i].ms && ms % (units[i].ms / 10) == 0)
            return write_in(out, ms, &units[i]);
    return write_in(out, ms, &units[WRITTEN - 1]);
}

int64_t duration_round(int64_t ms, bool up)
{
    int64_t step = ms < 1000                        ? 1
                   : ms < INT64_C(2) * 60 * 1000    ? 100
                   : ms < INT64_C(2) * 3600 * 1000  ? 60 * 1000
                   : ms < INT64_C(48) * 3600 * 1000 ? 360 * 1000
                                                    : 24 * 360 * 1000;

    return (ms + (up ? step - 1 : 0)) / step * step;
}

const char *duration_left(char *out, int64_t ms)
{
    int64_t s = ms > 0 ? (ms + 999) / 1000 : 0;

    return duration_text(out, duration_round(s * 1000, true));
}

const char *duration_rough(char *out, int64_t ms)
{
    return duration_text(out, duration_round(ms > 0 ? ms : 0, false));
}

/* SPDX-License-Identifier: MIT */
/* Writes dates. */
#include "cli/report/date.h"

#include <time.h>

static const char *format(char *out, int64_t unix_s, const char *how)
{
    time_t at = (time_t)unix_s;
    struct tm tm;

    if (!gmtime_r(&at, &tm) || strftime(out, DATE_ROOM, how, &tm) == 0)
        out[0] = '\0';
    return out;
}

const char *date_words(char *out, int64_t unix_s)
{
    return format(out, unix_s, "%Y-%m-%d %H:%M:%S UTC");
}

const char *date_rfc3339(char *out, int64_t unix_s)
{
    return format(out, unix_s, "%Y-%m-%dT%H:%M:%SZ");
}

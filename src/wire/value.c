/* SPDX-License-Identifier: MIT */
/*
 * Whose lock a value is, and when it ends. Invariant: a value counts as a time
 * only if it certainly is one.
 */
#include "wire/value.h"

#include "wire/timestamps/timestamps.h"

bool value_is_of(struct slice value, struct slice token)
{
    return slice_equal(value, token) || stamp_is_of(value, token);
}

bool value_tells_end(struct slice value, int64_t *end_s)
{
    return stamp_parse(value, end_s) != STAMP_NONE;
}

bool value_of_tells_end(struct slice value, struct slice token, bool interop)
{
    int64_t end_s;

    if (token.len > 0)
        return stamp_is_of(value, token);
    enum stamp_kind kind = stamp_parse(value, &end_s);
    return kind == STAMP_OURS || (kind == STAMP_FOREIGN && interop);
}

size_t value_shown(struct slice value)
{
    size_t seconds = 0;
    int64_t end_s;

    if (stamp_parse(value, &end_s) != STAMP_OURS)
        return value.len;
    while (value.data[seconds] >= '0' && value.data[seconds] <= '9')
        seconds++;
    return seconds;
}

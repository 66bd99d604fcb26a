/* SPDX-License-Identifier: MIT */
/* The command for the marker key, and its reply. */
#include "wire/marker.h"

#include <inttypes.h>
#include <stdio.h>

#include "wire/command.h"

bool marker_append(
    struct buf *out, struct slice marker, const char *replid, int64_t age_ms)
{
    char ms[24];
    snprintf(ms, sizeof(ms), "%" PRId64, age_ms);
    const struct slice argv[] = {slice_of("EVAL"), scripts[SCRIPT_MARKER].body,
        slice_of("1"), marker, slice_of(replid), slice_of(ms)};
    return command_append(out, sizeof(argv) / sizeof(argv[0]), argv);
}

void marker_take(struct facts *f, const struct reply *reply)
{
    f->marker_refused = reply->kind == REPLY_ERROR;
    if (reply->kind == REPLY_INTEGER && reply->integer / 1000 > f->primary_s)
        f->primary_s = reply->integer / 1000;
}

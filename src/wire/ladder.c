/* SPDX-License-Identifier: MIT */
/*
 * The table of all rungs. Keeps: none of them deletes without comparing, nor
 * changes a key in a step whose predecessor's reply was not seen.
 */
#include "wire/ladder.h"

#include "wire/rung.h"

/* clang-format off */
static const struct rung acquire[] = {
    {.name = "SET NX PX", .climb = ON_UNSUPPORTED,
        .encode = native_set, .reply = native_acquired},
    {.name = "SETNX script", .climb = ON_REFUSED,
        .encode = scripted_encode, .reply = native_acquired},
    {.name = "SETNX + GETSET timestamps (weaker promises)",
        .climb = ON_REFUSED, .watched = &stamped_watched,
        .encode = stamped_encode, .reply = stamped_reply},
    {.name = "SETNX + GETSET timestamps without WATCH (weakest promises)",
        .climb = ON_REFUSED, .bare = true,
        .encode = stamped_encode, .reply = stamped_reply},
};
static const struct rung extend[] = {
    {.name = "scripts", .climb = ON_REFUSED,
        .encode = scripted_encode, .reply = scripted_extended},
    {.name = "WATCH", .climb = ON_REFUSED, .watched = &watched_token,
        .encode = watched_encode, .reply = watched_reply},
    /* Last: between its two steps another handle may prolong the same token,
     * which it would then shorten; EXEC would notice. */
    {.name = "SET IFEQ", .climb = ON_REFUSED,
        .encode = native_set_ifeq, .reply = native_extended},
    {.name = "timestamps", .climb = ON_REFUSED, .watched = &stamped_watched,
        .encode = stamped_encode, .reply = stamped_reply},
    {.name = "timestamps without WATCH", .climb = ON_REFUSED, .bare = true,
        .encode = stamped_encode, .reply = stamped_reply},
};
static const struct rung release[] = {
    {.name = "scripts", .climb = ON_REFUSED, .at_once = true,
        .encode = scripted_encode, .reply = scripted_released},
    {.name = "DELEX", .climb = ON_REFUSED, .at_once = true,
        .encode = native_delex, .reply = native_released},
    {.name = "DELIFEQ", .climb = ON_REFUSED, .at_once = true,
        .encode = native_delifeq, .reply = native_released},
    {.name = "WATCH", .climb = ON_REFUSED, .watched = &watched_token,
        .encode = watched_encode, .reply = watched_reply},
    {.name = "timestamps", .climb = ON_REFUSED, .watched = &stamped_watched,
        .encode = stamped_encode, .reply = stamped_reply},
    {.name = "timestamps without WATCH", .climb = ON_REFUSED, .bare = true,
        .encode = stamped_encode, .reply = stamped_reply},
};
/* A time in the value cannot be shortened: who holds by one keeps nothing. */
static const struct rung keep[] = {
    {.name = "scripts", .climb = ON_REFUSED,
        .encode = scripted_encode, .reply = scripted_released},
    {.name = "WATCH", .climb = ON_REFUSED, .watched = &watched_token,
        .encode = watched_encode, .reply = watched_reply},
};
static const struct rung inspect[] = {
    {.name = "scripts", .climb = ON_REFUSED,
        .encode = scripted_encode, .reply = scripted_inspected},
    {.name = "GETRANGE", .climb = ON_REFUSED,
        .encode = native_read, .reply = native_inspected},
    {.name = "timestamps", .climb = ON_REFUSED,
        .encode = stamped_encode, .reply = stamped_reply},
};
/* clang-format on */

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static const struct {
    const struct rung *rows;
    unsigned count;
    unsigned stamps; /* from here on they are those of timestamps */
    unsigned bare;   /* ... without WATCH: only by order of the client */
} tables[VERB_KINDS] = {
    [VERB_ACQUIRE] = {acquire, ROWS(acquire), 2, 3},
    [VERB_EXTEND] = {extend, ROWS(extend), 3, 4},
    [VERB_RELEASE] = {release, ROWS(release), 4, 5},
    [VERB_INSPECT] = {inspect, ROWS(inspect), 2, 3},
    [VERB_KEEP] = {keep, ROWS(keep), 2, 2},
};

void ladder_begin(struct ladder *ladder)
{
    *ladder = (struct ladder){.stamps = ladder->stamps,
        .interop = ladder->interop,
        .max_ttl_ms = ladder->max_ttl_ms,
        .doubted = ladder->doubted,
        .connection = ladder->connection + 1};
}

const struct rung *ladder_rung(enum verb_kind kind, unsigned i)
{
    return i < tables[kind].count ? &tables[kind].rows[i] : NULL;
}

unsigned ladder_rungs(enum verb_kind kind)
{
    return tables[kind].count;
}

struct ladder_range ladder_range(
    const struct ladder *ladder, enum verb_kind kind, bool stamped)
{
    bool looks = kind == VERB_ACQUIRE || kind == VERB_INSPECT;
    struct ladder_range range = {0, tables[kind].stamps,
        ladder->stamps ? tables[kind].count : tables[kind].bare};

    if (kind == VERB_KEEP)
        ;
    else if (stamped || (looks && ladder->stamps))
        range.first = tables[kind].stamps;
    else if (kind == VERB_EXTEND) /* a token stands there as it is */
        range.end = tables[kind].stamps;
    else if (kind == VERB_RELEASE) /* compared with whatever stands there */
        range.end = tables[kind].bare;
    return range;
}

bool ladder_weak(const struct ladder *ladder)
{
    return ladder->at[VERB_ACQUIRE] >= tables[VERB_ACQUIRE].stamps;
}

void ladder_describe(const struct ladder *ladder, struct text *text)
{
    const char *lengthens = extend[ladder->at[VERB_EXTEND]].name;
    const char *ends = release[ladder->at[VERB_RELEASE]].name;

    /* A program that only looks has not learnt how to release. */
    if (ladder->at[VERB_RELEASE] == 0 && ladder->at[VERB_INSPECT] > 0)
        ends = lengthens = "scripts refused";

    unsigned set = ladder->at[VERB_ACQUIRE];
    if (ladder->stamps && set < tables[VERB_ACQUIRE].stamps)
        set = tables[VERB_ACQUIRE].stamps;
    /* SETNX needs no WATCH; the others tell that there is none. */
    if (set >= tables[VERB_ACQUIRE].stamps &&
        (ladder->unwatched ||
            ladder->stamped_at[VERB_EXTEND] >= tables[VERB_EXTEND].bare ||
            ladder->stamped_at[VERB_RELEASE] >= tables[VERB_RELEASE].bare))
        set = tables[VERB_ACQUIRE].bare;
    text_add(text, acquire[set].name);
    if (set >= tables[VERB_ACQUIRE].stamps)
        return;
    text_addf(text, " + %s", ends);
    if (strcmp(lengthens, ends) != 0)
        text_addf(text, " + %s", lengthens);
}

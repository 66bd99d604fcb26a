/* SPDX-License-Identifier: MIT */
/*
 * The table of all rungs. Keeps: none of them deletes without comparing, nor
 * changes a key in a step whose predecessor's reply was not seen.
 */
#include "wire/ladder.h"

#include "wire/rung.h"

static const struct rung acquire[] = {
    {"SET NX PX", ON_UNSUPPORTED, false, false, native_set, native_acquired},
    {"SETNX script", ON_REFUSED, false, false, scripted_encode,
        native_acquired},
};
static const struct rung extend[] = {
    {"scripts", ON_REFUSED, false, false, scripted_encode, scripted_extended},
    {"WATCH", ON_REFUSED, true, false, watched_encode, watched_reply},
    /* Last: between its two steps another handle may prolong the same token,
     * which it would then shorten; EXEC would notice. */
    {"SET IFEQ", ON_REFUSED, false, false, native_set_ifeq, native_extended},
};
static const struct rung release[] = {
    {"scripts", ON_REFUSED, false, true, scripted_encode, scripted_released},
    {"DELEX", ON_REFUSED, false, true, native_delex, native_released},
    {"DELIFEQ", ON_REFUSED, false, true, native_delifeq, native_released},
    {"WATCH", ON_REFUSED, true, false, watched_encode, watched_reply},
};
static const struct rung inspect[] = {
    {"scripts", ON_REFUSED, false, false, scripted_encode, scripted_inspected},
    {"GETRANGE", ON_REFUSED, false, false, native_read, native_inspected},
};

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static const struct {
    const struct rung *rows;
    unsigned count;
} tables[VERB_KINDS] = {
    [VERB_ACQUIRE] = {acquire, ROWS(acquire)},
    [VERB_EXTEND] = {extend, ROWS(extend)},
    [VERB_RELEASE] = {release, ROWS(release)},
    [VERB_INSPECT] = {inspect, ROWS(inspect)},
};

void ladder_begin(struct ladder *ladder)
{
    *ladder = (struct ladder){.connection = ladder->connection + 1};
}

const struct rung *ladder_rung(enum verb_kind kind, unsigned i)
{
    return i < tables[kind].count ? &tables[kind].rows[i] : NULL;
}

unsigned ladder_rungs(enum verb_kind kind)
{
    return tables[kind].count;
}

void ladder_describe(const struct ladder *ladder, struct text *text)
{
    const char *lengthens = extend[ladder->at[VERB_EXTEND]].name;
    const char *ends = release[ladder->at[VERB_RELEASE]].name;

    /* A program that only looks has not learnt how to release. */
    if (ladder->at[VERB_RELEASE] == 0 && ladder->at[VERB_INSPECT] > 0)
        ends = lengthens = "scripts refused";

    text_add(text, acquire[ladder->at[VERB_ACQUIRE]].name);
    text_addf(text, " + %s", ends);
    if (strcmp(lengthens, ends) != 0)
        text_addf(text, " + %s", lengthens);
}

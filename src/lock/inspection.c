/* SPDX-License-Identifier: MIT */
/*
 * Copies what an inspection found, and chooses what to report.
 *
 * Invariant: left_ms is no longer than a majority keeps the value; where no
 * value has a majority, the one that most servers have is shown.
 */
#include "lock/inspection.h"

#include <stdlib.h>

#include "model/token.h"
#include "wire/value.h"

struct inspection *inspection_new(unsigned servers)
{
    return calloc(
        1, sizeof(struct inspection) + servers * sizeof(nxl_holder *));
}

void inspection_free(struct inspection *found, unsigned servers)
{
    for (unsigned i = 0; found && i < servers; i++)
        free(found->by_server[i]);
    if (found && found->listed) {
        reply_values_free(found->listed);
        free(found->listed);
    }
    free(found);
}

bool inspection_list(struct inspection *found)
{
    if (!found->listed)
        found->listed = calloc(1, sizeof(*found->listed));
    return found->listed;
}

bool inspection_note(struct inspection *found, unsigned server,
    const struct outcome *outcome, bool ours)
{
    nxl_holder *seen = found->by_server[server];
    if (!seen)
        seen = found->by_server[server] = malloc(sizeof(*seen));
    if (!seen)
        return false;
    size_t len = outcome->value.len;
    *seen = (struct nxl_holder){.size = sizeof(*seen)};
    seen->truncated = len >= sizeof(seen->value);
    if (seen->truncated)
        len = sizeof(seen->value) - 1;
    memcpy(seen->value, outcome->value.data, len);
    seen->value_length = len;
    seen->left_ms = outcome->left_ms;
    if (!value_tells_end(outcome->value, &seen->value_ends_s))
        seen->value_ends_s = 0;
    seen->ours = ours;
    return true;
}

static bool same_value(const nxl_holder *a, const nxl_holder *b)
{
    return slice_equal((struct slice){a->value, a->value_length},
        (struct slice){b->value, b->value_length});
}

static bool outlasts(int64_t a, int64_t b)
{
    return b != LEFT_FOREVER && (a == LEFT_FOREVER || a > b);
}

/* Counts the servers with that value. *left_ms: how long a quorum of them keeps
 * it, or all of them if they are fewer. */
static unsigned count_holders(const struct inspection *found,
    const struct note *notes, unsigned servers, const nxl_holder *of,
    int64_t *left_ms)
{
    int64_t left[MAX_SERVERS];
    unsigned count = 0;
    for (unsigned i = 0; i < servers; i++) {
        const nxl_holder *here = found->by_server[i];
        if (notes[i].kind != NOTE_YES || !same_value(here, of))
            continue;
        unsigned at = count++;
        for (; at > 0 && outlasts(here->left_ms, left[at - 1]); at--)
            left[at] = left[at - 1];
        left[at] = here->left_ms;
    }
    unsigned quorum = quorum_of(servers);
    *left_ms = left[(count < quorum ? count : quorum) - 1];
    return count;
}

void inspection_choose(
    struct inspection *found, const struct note *notes, unsigned servers)
{
    unsigned most = 0;
    for (unsigned i = 0; i < servers; i++) {
        int64_t left_ms;
        if (notes[i].kind != NOTE_YES)
            continue;
        unsigned count =
            count_holders(found, notes, servers, found->by_server[i], &left_ms);
        if (count <= most)
            continue;
        most = count;
        found->chosen = found->by_server[i];
        found->left_ms = left_ms;
    }
}

/* SPDX-License-Identifier: MIT */
/* The holders of a lock, as one inspection has found them. */
#include "cli/holders.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/duration.h"

#define FIRST_ROOM 8
/* The library shows no more of them. */
#define SHOWN_MOST 1000

/* ---------------------------------------------------------------- reading */

static void add(struct holders *holders, const nxl_holder *holder)
{
    int64_t left_ms = holder->left_ms, permits = holder->permits;

    holders->count++;
    holders->used += holder->weight > 0 ? holder->weight : 1;
    if (permits > 0 && (holders->permits == 0 || permits < holders->permits))
        holders->permits = permits;
    if (left_ms >= 0 && (holders->least_ms < 0 || left_ms < holders->least_ms))
        holders->least_ms = left_ms;
}

/* The label points into the value, wherever that is copied to. */
static void move_holder(nxl_holder *to, const nxl_holder *from)
{
    *to = *from;
    if (from->label)
        to->label = to->value + (from->label - from->value);
}

/* Makes the list as long as it is needed. False: no memory. */
static bool make_room(struct holders *holders)
{
    size_t count = holders->count;
    size_t room = count < FIRST_ROOM ? FIRST_ROOM : 2 * count;

    if (count >= FIRST_ROOM ? (count & (count - 1)) != 0
                            : holders->list != NULL)
        return true;
    nxl_holder *list = malloc(room * sizeof(*list));
    if (!list)
        return false;
    for (size_t i = 0; i < count; i++)
        move_holder(&list[i], &holders->list[i]);
    free(holders->list);
    holders->list = list;
    return true;
}

static int read_list(struct holders *holders, const nxl_lock *lock)
{
    for (size_t i = 0;; i++) {
        if (!make_room(holders))
            return NXL_E_NOMEM;
        nxl_holder *holder = &holders->list[holders->count];
        *holder = (nxl_holder)NXL_HOLDER_INIT;
        int rc = nxl_lock_holder_at(lock, 0, i, holder);
        if (rc != NXL_OK) {
            holders->partial = rc != NXL_FREE || i == SHOWN_MOST;
            return NXL_OK;
        }
        add(holders, holder);
    }
}

int holders_read(struct holders *holders, const nxl_lock *lock)
{
    *holders = (struct holders){.first = NXL_HOLDER_INIT, .least_ms = -1};
    int rc = nxl_lock_holder(lock, &holders->first);
    if (rc != NXL_OK)
        return rc;
    holders->shared = holders->first.weight > 0;
    if (!holders->shared) {
        add(holders, &holders->first);
        return NXL_OK;
    }
    rc = read_list(holders, lock);
    if (rc != NXL_OK)
        holders_free(holders);
    return rc;
}

/* Takes the result of an inspection. */
static int take_result(struct holders *holders, const nxl_lock *lock, int rc)
{
    *holders = (struct holders){.first = NXL_HOLDER_INIT, .least_ms = -1};
    return rc == NXL_OK ? holders_read(holders, lock) : rc;
}

int holders_ask(struct session *session, struct holders *holders)
{
    int rc = session_finish(session, nxl_lock_inspect_start(session->lock));

    return take_result(holders, session->lock, rc);
}

int holders_look(struct holders *holders, nxl_lock *lock)
{
    return take_result(holders, lock, nxl_lock_inspect(lock, NULL));
}

void holders_free(struct holders *holders)
{
    free(holders->list);
    holders->list = NULL;
    holders->count = 0;
}

/* ------------------------------------------------------------------- room */

bool holders_leave_room(const struct holders *holders, const struct args *args)
{
    int64_t weight = args->weight > 0 ? args->weight : 1;

    if (holders->count == 0 || holder_is_over(&holders->first))
        return true;
    if (!holders->shared || !args_share(args))
        return false;
    if (args->permits > 1 && holders->used + weight > args->permits)
        return false;
    return holders->permits == 0 || holders->used + weight <= holders->permits;
}

bool holders_around(const struct holders *holders, const struct args *args)
{
    struct holders around = {.shared = holders->shared, .least_ms = -1};

    if (!holders->shared)
        return holder_is_around(&holders->first);
    for (size_t i = 0; i < holders->count; i++) {
        if (holder_is_around(&holders->list[i]))
            add(&around, &holders->list[i]);
    }
    return around.count > 0 && !holders_leave_room(&around, args);
}

/* ------------------------------------------------------------------ words */

const char *holders_share(char *out, int64_t used, int64_t permits)
{
    if (permits == 0)
        snprintf(out, HOLDERS_SHARE, "shared");
    else
        snprintf(out, HOLDERS_SHARE, "%" PRId64 " of %" PRId64 " permits", used,
            permits);
    return out;
}

const char *holders_who(char *out, const struct holders *holders)
{
    if (holders->count == 1 && !holders->partial)
        return holder_who(out, &holders->first);
    snprintf(out, HOLDER_WHO, "%s%zu holders",
        holders->partial ? "at least " : "", holders->count);
    return out;
}

const char *holders_words(char *out, const struct holders *holders)
{
    char who[HOLDER_WHO], share[HOLDERS_SHARE], left[DURATION_ROOM];

    if (!holders->shared)
        return holder_words(out, &holders->first);
    holders_who(who, holders);
    holders_share(share, holders->used, holders->permits);
    if (holders->count == 1 && !holders->partial)
        snprintf(out, HOLDER_WORDS, "held by %s, %s, %s left", who, share,
            duration_left(left, holders->first.left_ms));
    else
        snprintf(out, HOLDER_WORDS, "held by %s, %s", who, share);
    return out;
}

/* SPDX-License-Identifier: MIT */
/* The holders of a lock, as one inspection has found them. */
#include "cli/look/holders.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report/duration.h"
#include "cli/report/report.h"

#define FIRST_ROOM 8
/* The library shows no more of them. */
#define SHOWN_MOST 1000

/* ---------------------------------------------------------------- reading */

static void add(struct holders *holders, const nxl_holder *holder)
{
    struct holding *held = &holders->held;
    int64_t left_ms = holder->left_ms, permits = holder->permits;

    held->count++;
    held->used += holder->weight > 0 ? holder->weight : 1;
    if (permits > 0 && (held->permits == 0 || permits < held->permits))
        held->permits = permits;
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
    size_t count = holders->held.count;
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

/* Was it found on an earlier server? */
static bool is_listed(const struct holders *holders, const nxl_holder *holder)
{
    size_t i = 0;

    while (i < holders->held.count &&
           !nxl_holder_is(&holders->list[i], holder->value))
        i++;
    return i < holders->held.count;
}

/* Adds those of one server. */
static int read_server(
    struct holders *holders, const nxl_lock *lock, size_t server)
{
    for (size_t i = 0;; i++) {
        if (!make_room(holders))
            return NXL_E_NOMEM;
        nxl_holder *holder = &holders->list[holders->held.count];
        *holder = (nxl_holder)NXL_HOLDER_INIT;
        int rc = nxl_lock_holder_at(lock, server, i, holder);
        if (rc != NXL_OK) {
            holders->held.partial |= i == SHOWN_MOST || rc == NXL_E_NOMEM;
            return NXL_OK;
        }
        if (server == 0 || !is_listed(holders, holder))
            add(holders, holder);
    }
}

static int read_list(struct holders *holders, const nxl_lock *lock)
{
    int rc = NXL_OK;

    /* Each of several servers shows only one of its holders. */
    holders->held.partial = holders->servers > 1;
    for (size_t i = 0; rc == NXL_OK && i < holders->servers; i++)
        rc = read_server(holders, lock, i);
    return rc;
}

int holders_take(struct holders *holders, struct session *session,
    const nxl_lock *lock, int result)
{
    *holders = (struct holders){.first = NXL_HOLDER_INIT,
        .servers = nxl_client_servers(session->client),
        .least_ms = -1};
    if (result == NXL_OK)
        result = nxl_lock_holder(lock, &holders->first);
    if (result != NXL_OK)
        return result;
    holders->shared = holders->first.weight > 0;
    if (!holders->shared) {
        add(holders, &holders->first);
        return NXL_OK;
    }
    result = read_list(holders, lock);
    if (result != NXL_OK)
        holders_free(holders);
    return result;
}

int holders_ask(struct session *session, struct holders *holders)
{
    int rc = session_finish(session, nxl_lock_inspect_start(session->lock));

    return holders_take(holders, session, session->lock, rc);
}

int holders_look(struct session *session, struct holders *holders)
{
    return holders_take(
        holders, session, session->lock, nxl_lock_inspect(session->lock, NULL));
}

void holders_free(struct holders *holders)
{
    free(holders->list);
    holders->list = NULL;
    holders->held.count = 0;
}

const nxl_holder *holders_at(const struct holders *holders, size_t i)
{
    return holders->shared ? &holders->list[i] : &holders->first;
}

void holders_keep(struct holders *holders, size_t i)
{
    nxl_holder kept;

    if (!holders->shared)
        return;
    move_holder(&kept, &holders->list[i]);
    move_holder(&holders->first, &kept);
    move_holder(&holders->list[0], &kept);
    holders->held = (struct holding){0};
    holders->least_ms = -1;
    add(holders, &kept);
}

void holders_subtract(struct holders *holders, int64_t ms)
{
    holder_subtract(&holders->first, ms);
    for (size_t i = 0; holders->shared && i < holders->held.count; i++)
        holder_subtract(&holders->list[i], ms);
}

/* ------------------------------------------------------------------- room */

struct share holders_wanted(const struct args *args)
{
    struct share none = {0, 0};

    if (!args_share(args))
        return none;
    return (struct share){
        args->weight > 0 ? (uint32_t)args->weight : 1, (uint32_t)args->permits};
}

bool holders_leave_room(const struct holders *holders, struct share wanted)
{
    int64_t used = holders->held.used + wanted.weight;

    if (holders->held.count == 0 || holder_is_over(&holders->first))
        return true;
    if (!holders->shared || wanted.weight == 0)
        return false;
    return (wanted.permits == 0 || used <= wanted.permits) &&
           (holders->held.permits == 0 || used <= holders->held.permits);
}

bool holders_around(const struct holders *holders, struct share wanted)
{
    struct holders around = {.shared = holders->shared, .least_ms = -1};

    if (!holders->shared)
        return holder_is_around(&holders->first);
    for (size_t i = 0; i < holders->held.count; i++) {
        if (holder_is_around(&holders->list[i]))
            add(&around, &holders->list[i]);
    }
    return around.held.count > 0 && !holders_leave_room(&around, wanted);
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
    if (holders->held.count == 1 && !holders->held.partial)
        return holder_who(out, &holders->first);
    snprintf(out, HOLDER_WHO, "%s%zu holder%s",
        holders->held.partial ? "at least " : "", holders->held.count,
        holders->held.count == 1 ? "" : "s");
    return out;
}

const char *holders_owner(char *out, const struct holders *holders)
{
    char who[HOLDER_WHO], share[HOLDERS_SHARE];
    const struct holding *held = &holders->held;

    holders_who(who, holders);
    snprintf(out, HOLDER_WORDS, "%s%s%s", who, holders->shared ? ", " : "",
        holders->shared ? holders_share(share, held->used, held->permits) : "");
    return out;
}

const char *holders_words(char *out, const struct holders *holders)
{
    char owner[HOLDER_WORDS], left[DURATION_ROOM];
    bool one = holders->held.count == 1 && !holders->held.partial;

    if (!holders->shared)
        return holder_words(out, &holders->first);
    duration_left(left, holders->first.left_ms);
    snprintf(out, HOLDER_WORDS, "held by %s%s%s%s",
        holders_owner(owner, holders), one ? ", " : "", one ? left : "",
        one ? " left" : "");
    return out;
}

const char *holders_row(
    char *out, const struct holders *holders, const nxl_holder *holder)
{
    char who[HOLDER_WHO], share[HOLDERS_SHARE], left[DURATION_ROOM];

    if (holder->permits != holders->held.permits)
        holders_share(share, holder->weight, holder->permits);
    else if (holder->permits == 0)
        share[0] = '\0';
    else
        snprintf(share, sizeof(share), "%" PRId64 " %s", holder->weight,
            holder->weight == 1 ? "permit" : "permits");
    if (!holder->label)
        snprintf(who, sizeof(who), "(no label)");
    else
        holder_who(who, holder);
    snprintf(out, HOLDER_WORDS, "%.*s %s%s%s, %s left", TOKEN_SHOWN,
        holder->value, who, share[0] == '\0' ? "" : ", ", share,
        duration_left(left, holder->left_ms));
    return out;
}

void holders_json_share(struct json *json, const nxl_holder *holder)
{
    if (holder->weight > 0)
        json_number(json, "weight", holder->weight);
    if (holder->permits > 0)
        json_number(json, "permits", holder->permits);
}

void holders_json_held(struct json *json, const struct holding *held)
{
    const char *kind = held->permits > 0 ? "permits" : "shared";

    json_string(json, "kind", kind);
    json_number(json, "permits_held", held->used);
    if (held->permits > 0)
        json_number(json, "permits", held->permits);
    if (held->partial)
        json_true(json, "more_holders");
}

void holders_json(struct json *json, const struct holders *holders)
{
    struct json item;

    holders_json_held(json, &holders->held);
    json_list_begin(json, "holders");
    for (size_t i = 0; i < holders->held.count; i++) {
        const nxl_holder *holder = &holders->list[i];
        json_item(json, &item, i == 0);
        holder_json(&item, holder);
        holders_json_share(&item, holder);
        json_item_end(&item);
    }
    json_list_end(json);
}

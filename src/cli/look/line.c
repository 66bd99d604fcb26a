/* SPDX-License-Identifier: MIT */
/*
 * Shows who waits in line for a lock.
 *
 * Invariant: what is printed here is not enough to take a waiter's place, and
 * the line is only read, so looking at it changes nobody's turn.
 */
#include "cli/look/line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/private.h"
#include "cli/answer.h"
#include "cli/report/duration.h"
#include "cli/look/holders.h"
#include "cli/name.h"
#include "wire/waiter.h"

#define US_PER_S 1000000

#define LAST_READ "999" /* of the waiters, from 0 */

/* ----------------------------------------------------------------- reading */

/* The line's key; the caller frees it. NULL: no memory. */
static char *line_key(struct session *session)
{
    char *key = NULL, *line;

    if (asprintf(&key, "%s%s", nxl_client_prefix(session->client),
            session->args->name) < 0)
        return NULL;
    line = name_companion(key, COMPANION_LINE);
    free(key);
    return line;
}

static void read_waiter(struct line_waiter *waiter, struct slice member,
    struct slice score, int64_t now)
{
    struct waiter read;

    waiter_read(&read, member, score, now);
    holder_make(
        &waiter->who, read.token.len > 0 ? read.token : slice_of("?"), -1);
    waiter->seen_ms = read.silent_ms;
    waiter->dead = read.dead;
}

/* The answers in the order of the questions. */
enum { ANSWER_COUNT, ANSWER_LIST, ANSWER_TIME, ANSWERS };

/* False: an answer is not what a server says. */
static bool read_answers(
    struct line *line, struct answer *const *answers, int64_t count)
{
    int64_t s, us;
    size_t items = answer_count(answers[ANSWER_LIST]);

    if (!answer_number(answers[ANSWER_TIME], 0, EXACT_MAX, &s) ||
        !answer_number(answers[ANSWER_TIME], 1, US_PER_S, &us))
        return false;
    int64_t now = waiter_tick(s, us);
    for (size_t i = 0; i + 1 < items; i += 2) {
        struct slice member = answer_slice(answers[ANSWER_LIST], i);
        struct slice score = answer_slice(answers[ANSWER_LIST], i + 1);
        struct line_waiter other; /* not copied: a waiter points into itself */
        bool shown = line->shown < LINE_SHOWN;
        struct line_waiter *waiter = shown ? &line->list[line->shown] : &other;
        if (!member.data || !score.data)
            return false;
        read_waiter(waiter, member, score, now);
        line->dead += waiter->dead;
        line->shown += shown;
    }
    /* It may have changed between the two. */
    line->count = count > (int64_t)items / 2 ? (size_t)count : items / 2;
    return true;
}

static void set_unknown(struct line *line, const char *why)
{
    memset(line, 0, sizeof(*line));
    snprintf(line->unknown, sizeof(line->unknown), "%s", why);
}

static void read_line(nxl_client *client, const char *key, struct line *line)
{
    const char *words[ANSWERS][5] = {{"ZCARD", key},
        {"ZRANGE", key, "0", LAST_READ, "WITHSCORES"}, {"TIME"}};
    const size_t counts[ANSWERS] = {2, 5, 1};
    struct answer *answers[ANSWERS] = {NULL};
    int64_t count = 1;
    bool ok = true, odd = false;

    for (size_t i = 0; ok && !odd && count > 0 && i < ANSWERS; i++) {
        ok = client_ask(client, 0, counts[i], words[i], NULL, &answers[i]) ==
             NXL_OK;
        odd = ok && i == ANSWER_COUNT &&
              (!answer_number(answers[i], 0, EXACT_MAX, &count) || count < 0);
    }
    if (!ok)
        set_unknown(line, nxl_client_errmsg(client));
    else if (odd || (count > 0 && !read_answers(line, answers, count)))
        set_unknown(line, "its answers are not those of a Redis server");
    for (size_t i = 0; i < ANSWERS; i++)
        answer_free(answers[i]);
}

void line_read(struct session *session, struct line *line)
{
    memset(line, 0, sizeof(*line));
    if (nxl_client_servers(session->client) > 1)
        return;
    nxl_client *client = session_asker(session);
    char *key = line_key(session);
    if (client && key)
        read_line(client, key, line);
    else
        snprintf(line->unknown, sizeof(line->unknown), "out of memory");
    free(key);
}

size_t line_waiting(const struct line *line)
{
    return line->count - line->dead;
}

const char *line_words(char *out, const struct line *line)
{
    out[0] = '\0';
    if (line_waiting(line) > 0)
        snprintf(out, LINE_WORDS, ", %zu waiting", line_waiting(line));
    return out;
}

/* ---------------------------------------------------------------- printing */

void line_print(const struct line *line)
{
    char who[HOLDER_WHO], ago[DURATION_ROOM], share[HOLDERS_SHARE];

    if (line->unknown[0] != '\0') {
        printf("  line unknown: %s\n", line->unknown);
        return;
    }
    if (line->count == 0)
        return;
    printf("  line: %zu waiting\n", line_waiting(line));
    for (size_t i = 0; i < line->shown; i++) {
        const struct line_waiter *waiter = &line->list[i];
        bool shares = waiter->who.weight > 0;
        printf("    %zu. %s%s%s, seen %s ago%s\n", i + 1,
            holder_who(who, &waiter->who), shares ? ", " : "",
            shares
                ? holders_share(share, waiter->who.weight, waiter->who.permits)
                : "",
            duration_rough(ago, waiter->seen_ms),
            waiter->dead ? ": dead, will be passed over" : "");
    }
    if (line->count > line->shown)
        printf("    and %zu more\n", line->count - line->shown);
}

void line_json(struct json *json, const struct line *line)
{
    struct json item;

    if (line->unknown[0] != '\0') {
        json_null(json, "waiting");
        json_string(json, "waiting_unknown", line->unknown);
        return;
    }
    json_number(json, "waiting", (int64_t)line_waiting(line));
    json_list_begin(json, "line");
    for (size_t i = 0; i < line->shown; i++) {
        json_item(json, &item, i == 0);
        json_number(&item, "place", (int64_t)i + 1);
        holder_json_who(&item, &line->list[i].who);
        holders_json_share(&item, &line->list[i].who);
        json_number(&item, "seen_ms", line->list[i].seen_ms);
        if (line->list[i].dead)
            json_true(&item, "dead");
        json_item_end(&item);
    }
    json_list_end(json);
}

/* ------------------------------------------------------------- how it waits */

const char *line_polls(char *out, const struct session *session)
{
    nxl_server_facts facts = NXL_SERVER_FACTS_INIT;

    out[0] = '\0';
    if (nxl_client_server_facts(session->client, 0, &facts) == NXL_OK &&
        facts.waiting[0] != '\0' && !facts.in_line)
        snprintf(out, LINE_POLLS, "; waits %s", facts.waiting);
    return out;
}

/* SPDX-License-Identifier: MIT */
/*
 * Finds out since when a lock is held: its fencing token, if that is the time
 * of the grant. Invariant: the answer is never a guess. It is known if:
 *
 * - The grant drew a number: its token says so (a UUID of version 8).
 * - The counter shows that number: it is raised only by a grant, for which the
 *   key has to be free, and the key held this token before and after the
 *   counter was read.
 * - The number is the time of the grant, and not the previous number plus one
 *   (which it is if the clock is behind the counter): the script that wrote the
 *   counter also set its TTL, so its expiry shows when it was written.
 */
#include "cli/since.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/answer.h"
#include "cli/holder.h"
#include "cli/name.h"
#include "cli/report.h"

#define VERSION_AT 14 /* of a UUID, as text */
#define VERSION_DRAWN '8'
#define US_PER_MS 1000
#define US_PER_S 1000000
/* A counter expires this long after it was written, or after twice max_ttl_ms
 * if that is more. */
#define KEEP_LEAST_MS (INT64_C(24) * 3600 * 1000)
/* PTTL and TIME are read one after the other; and only seconds are shown. */
#define TOLERANCE_US US_PER_S

/* No sum or product of what a server says overflows. */
#define NOW_MOST_S INT64_C(1000000000000)
#define LEFT_MOST_MS INT64_C(1000000000000000)

struct reading {
    int64_t number;  /* 0: there is none */
    int64_t left_ms; /* of the counter */
    int64_t now_us;  /* of the server's clock */
};

struct finder {
    nxl_client *client;
    const nxl_holder *holder;
    char *key, *counter;
    struct since *since;
};

static void set_unknown(struct since *since, const char *why)
{
    since->at_s = 0;
    snprintf(since->unknown, sizeof(since->unknown), "%s", why);
}

/* Sends one command to one server; words ends with NULL. The caller frees the
 * answer. NULL: no answer, and the reason is in finder->since. */
static nxl_answer *ask_server(
    struct finder *finder, size_t server, const char *const *words)
{
    nxl_answer *answer = NULL;
    size_t count = 0;

    while (words[count])
        count++;
    if (nxl_client_ask(finder->client, server, count, words, NULL, &answer) !=
        NXL_OK)
        set_unknown(finder->since, nxl_client_errmsg(finder->client));
    return answer;
}

/* 0: it is no number from 1 to most, as of a key that has no expiry. */
static int64_t number_of(const nxl_answer *answer, size_t item, int64_t most)
{
    int64_t number;

    return answer_number(answer, item, most, &number) && number > 0 ? number
                                                                    : 0;
}

/* Does the server still have the value that was seen? */
static bool still_there(struct finder *finder, size_t server)
{
    const char *words[] = {"GETRANGE", finder->key, "0", "511", NULL};
    nxl_answer *answer = ask_server(finder, server, words);
    size_t size = 0;
    const char *value = answer ? nxl_answer_item(answer, 0, &size) : NULL;
    bool same = value && size == finder->holder->value_length &&
                memcmp(value, finder->holder->value, size) == 0;

    if (answer && !same)
        set_unknown(finder->since, "another process has just acquired it");
    nxl_answer_free(answer);
    return same;
}

/* Reads the counter. False: impossible, and the reason is in finder->since. */
static bool read_counter(
    struct finder *finder, size_t server, struct reading *reading)
{
    const char *number[] = {"GETRANGE", finder->counter, "0", "16", NULL};
    const char *left[] = {"PTTL", finder->counter, NULL};
    const char *now[] = {"TIME", NULL};
    nxl_answer *answers[3] = {NULL};
    size_t size = 0;

    answers[0] = ask_server(finder, server, number);
    if (answers[0])
        answers[1] = ask_server(finder, server, left);
    if (answers[1])
        answers[2] = ask_server(finder, server, now);
    bool ok = answers[2] != NULL;
    const char *text = ok ? nxl_answer_item(answers[0], 0, &size) : NULL;
    bool digits =
        text && size > 0 && size <= 16 && strspn(text, "0123456789") == size;
    *reading = (struct reading){
        .number = digits ? number_of(answers[0], 0, INT64_MAX) : 0,
        .left_ms = number_of(answers[1], 0, LEFT_MOST_MS),
        .now_us = number_of(answers[2], 0, NOW_MOST_S) * US_PER_S +
                  number_of(answers[2], 1, US_PER_S)};
    for (size_t i = 0; i < 3; i++)
        nxl_answer_free(answers[i]);
    return ok;
}

/* Is the number the time at which the counter was written? If not, sets the
 * reason. The number is never below that time, so the counter can expire later
 * than expected only if a longer lease set its TTL. */
static bool is_time(const struct finder *finder, const struct reading *reading)
{
    const int64_t keeps_ms[] = {
        KEEP_LEAST_MS, 2 * nxl_client_max_ttl_ms(finder->client)};
    bool longer = reading->left_ms > 0;

    for (size_t i = 0; reading->left_ms > 0 && i < 2; i++) {
        int64_t written_us =
            reading->now_us + (reading->left_ms - keeps_ms[i]) * US_PER_MS;
        int64_t apart_us = written_us - reading->number;
        if (apart_us > -TOLERANCE_US && apart_us < TOLERANCE_US)
            return true;
        longer = longer && apart_us > 0;
    }
    set_unknown(finder->since,
        longer ? "this or an earlier run of that name had a longer lease, so "
                 "its fencing counter is kept longer than expected"
               : "its fencing token is not a time of the server's clock");
    return false;
}

/* The number of the grant is the highest among the servers that hold the lock,
 * because the others are raised to it. */
static void find_start(struct finder *finder, const struct session *session)
{
    int64_t highest = 0;
    bool is_known = false;

    set_unknown(finder->since, "");
    for (size_t i = 0; i < nxl_client_servers(session->client); i++) {
        nxl_holder seen;
        struct reading reading;
        if (nxl_lock_holder_at(session->lock, i, &seen) != NXL_OK ||
            seen.value_length != finder->holder->value_length ||
            memcmp(seen.value, finder->holder->value, seen.value_length) != 0)
            continue;
        if (!read_counter(finder, i, &reading) || !still_there(finder, i) ||
            reading.number == 0 || reading.number < highest)
            continue;
        is_known = is_time(finder, &reading) ||
                   (is_known && reading.number == highest);
        highest = reading.number;
    }
    if (is_known)
        finder->since->at_s = highest / US_PER_S;
    else if (highest == 0 && finder->since->unknown[0] == '\0')
        set_unknown(finder->since,
            "its fencing counter has expired, a day or more after it was "
            "last used");
}

void since_find(
    struct session *session, const nxl_holder *holder, struct since *since)
{
    struct finder finder = {.holder = holder, .since = since};

    if (!holder_has_token(holder)) {
        set_unknown(since, "another program holds it, or it is a unix time");
        return;
    }
    if (holder->value[VERSION_AT] != VERSION_DRAWN) {
        set_unknown(since, "acquired without a fencing token");
        return;
    }
    set_unknown(since, "out of memory");
    finder.client = session_asker(session);
    if (finder.client && name_keys(nxl_client_prefix(finder.client),
                             session->args->name, &finder.key, &finder.counter))
        find_start(&finder, session);
    free(finder.key);
    free(finder.counter);
}

static const char *format_time(
    char *out, const struct since *since, const char *how)
{
    time_t at = (time_t)since->at_s;
    struct tm tm;

    if (!gmtime_r(&at, &tm) || strftime(out, SINCE_ROOM, how, &tm) == 0)
        out[0] = '\0';
    return out;
}

const char *since_words(char *out, const struct since *since)
{
    return format_time(out, since, "%Y-%m-%d %H:%M:%S UTC");
}

const char *since_rfc3339(char *out, const struct since *since)
{
    return format_time(out, since, "%Y-%m-%dT%H:%M:%SZ");
}

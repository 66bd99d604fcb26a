/* SPDX-License-Identifier: MIT */
/*
 * Reads records of nxlock once by their keys and first lines, without a lock
 * for each of them. docs/wire.md has the form of the line.
 *
 * Invariant: what is not exactly of that form is no record.
 */
#include "cli/found_record.h"

#include <stdio.h>
#include <string.h>

#include "cli/date.h"
#include "cli/name.h"
#include "cli/secret.h"

#define SUFFIX ":once"
#define MS_PER_S 1000

static bool is_wrapped(const char *key, size_t length)
{
    return length > 2 && key[0] == '{' && key[length - 1] == '}' &&
           !name_tagged(key + 1, length - 2);
}

bool found_record_name(const char *prefix, const char *key, size_t length,
    const char **name, size_t *name_length)
{
    size_t suffix = strlen(SUFFIX), below = strlen(prefix);

    if (length <= suffix || memcmp(key + length - suffix, SUFFIX, suffix) != 0)
        return false;
    length -= suffix;
    if (is_wrapped(key, length)) { /* {KEY}:once */
        key++;
        length -= 2;
    } else if (key[length - 1] == ':' && name_tagged(key, length - 1)) {
        length--; /* KEY::once */
    } else {
        return false;
    }
    if (length <= below || memcmp(key, prefix, below) != 0)
        return false;
    *name = key + below;
    *name_length = length - below;
    return true;
}

static bool is_state(const char *word)
{
    return strcmp(word, "begun") == 0 || strcmp(word, "doubt") == 0 ||
           strcmp(word, "done") == 0 || strcmp(word, "failed") == 0;
}

bool found_record_parse(const char *line, struct found_record *r)
{
    int used = 0;

    /* STATE TOKEN FENCE ATTEMPT DOUBTS FIRST SINCE ENDED CODE LATE KEEP
     * FINGERPRINT SIZE */
    int count = sscanf(line,
        "once1 %7s %191s %*u %lld %lld %*u %lld %lld %d %*u %*u %*s %*d%n",
        r->state, r->token, &r->attempt, &r->doubts, &r->since_ms, &r->ended_ms,
        &r->code, &used);
    return count == 7 && used > 0 && line[used] == '\0' && is_state(r->state) &&
           is_token(r->token);
}

bool found_record_begun(const struct found_record *r)
{
    return strcmp(r->state, "begun") == 0;
}

bool found_record_ended(const struct found_record *r)
{
    return strcmp(r->state, "done") == 0 || strcmp(r->state, "failed") == 0;
}

void found_record_json(struct json *json, const struct found_record *r)
{
    char at[DATE_ROOM];

    json_number(json, "attempt", r->attempt);
    json_number(json, "doubts", r->doubts);
    date_rfc3339(at, r->since_ms / MS_PER_S);
    json_text(json, "began", at, strlen(at));
    if (r->ended_ms == 0)
        return;
    date_rfc3339(at, r->ended_ms / MS_PER_S);
    json_text(json, "ended", at, strlen(at));
    json_number(json, "code", r->code);
}

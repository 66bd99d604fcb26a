/* SPDX-License-Identifier: MIT */
/*
 * Describes the holder of a lock, for people and as JSON.
 *
 * Invariant: what is printed here is not enough to release the lock.
 */
#include "cli/look/holder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report/date.h"
#include "cli/report/duration.h"
#include "cli/look/foreign.h"
#include "cli/run/label.h"
#include "cli/report/report.h"
#include "cli/servers/secret.h"
#include "model/token.h"
#include "wire/value.h"

/* How much of a foreign value is shown: enough to recognize it. */
#define HOLDER_DATA_SHOWN 40

int holder_ask(struct session *session, nxl_holder *holder)
{
    int rc = session_finish(session, nxl_lock_inspect_start(session->lock));

    *holder = (nxl_holder)NXL_HOLDER_INIT;
    return rc == NXL_OK ? nxl_lock_holder(session->lock, holder) : rc;
}

void holder_make(nxl_holder *holder, struct slice token, int64_t left_ms)
{
    *holder = (nxl_holder)NXL_HOLDER_INIT;
    snprintf(holder->value, sizeof(holder->value), "%.*s", (int)token.len,
        token.data);
    holder->value_length = strlen(holder->value);
    holder->left_ms = left_ms;
    struct share share = token_share(token);
    holder->weight = share.weight;
    holder->permits = share.permits;
    const char *at = strchr(holder->value, '@');
    holder->label = at ? at + 1 : NULL;
}

void holder_subtract(nxl_holder *holder, int64_t ms)
{
    if (holder->left_ms > 0)
        holder->left_ms = holder->left_ms > ms ? holder->left_ms - ms : 1;
}

bool holder_is_over(const nxl_holder *holder)
{
    return holder->value_ends_s != 0 && holder->left_ms == 0;
}

bool holder_has_token(const nxl_holder *holder)
{
    return strlen(holder->value) == holder->value_length &&
           is_token(holder->value);
}

bool holder_is_data(const nxl_holder *holder)
{
    return !holder_has_token(holder) && holder->left_ms < 0 &&
           holder->value_ends_s == 0;
}

const char *holder_data_words(char *out, const nxl_holder *holder)
{
    char who[HOLDER_WHO];
    size_t length = holder->value_length;
    const char *value = foreign_bytes(holder->value, &length);
    bool is_long = value == holder->value && length > HOLDER_DATA_SHOWN;
    bool cut = is_long || (value == holder->value && holder->truncated);

    printable(who, sizeof(who), value, is_long ? HOLDER_DATA_SHOWN : length);
    snprintf(out, HOLDER_WORDS,
        "holds '%s%s': not a lock, and it never expires", who,
        cut ? "..." : "");
    return out;
}

bool holder_is_around(const nxl_holder *holder)
{
    const char *outer = getenv("NXLOCK_OUTER");
    bool is = nxl_holder_is(holder, getenv("NXLOCK_TOKEN"));
    char *copy = outer ? strdup(outer) : NULL;
    char *rest = copy;

    for (char *one; !is && (one = strsep(&rest, " "));)
        is = nxl_holder_is(holder, one);
    free(copy);
    return is;
}

/* How many bytes of a value that is no token may be shown. */
static size_t shown_length(const nxl_holder *holder)
{
    return value_shown((struct slice){holder->value, holder->value_length});
}

/* Describes when the lock ends. If the value is a unix time and the key has no
 * TTL, nobody takes it over without interop=1; whether the time has passed,
 * only the server's clock could tell. */
static void describe_ending(char *out, size_t size, const nxl_holder *holder)
{
    char when[DATE_ROOM], text[DURATION_ROOM];

    date_words(when, holder->value_ends_s);
    if (holder->left_ms < 0 && holder->value_ends_s != 0)
        snprintf(out, size,
            "never expires; as a unix time it is %s: with interop=1 it "
            "is taken over once it is past",
            when);
    else if (holder->left_ms < 0)
        snprintf(out, size, "never expires");
    else if (holder_is_over(holder))
        snprintf(out, size, "expired %s", when);
    else
        snprintf(out, size, "%s left", duration_left(text, holder->left_ms));
}

const char *holder_who(char *out, const nxl_holder *holder)
{
    bool is_token = holder_has_token(holder);
    const char *who = holder->label ? holder->label : holder->value;
    size_t length = holder->label ? strlen(who)
                    : is_token    ? TOKEN_SHOWN
                                  : shown_length(holder);

    who = foreign_bytes(who, &length);
    printable(out, HOLDER_WHO, who, length);
    if (is_token && !holder->label)
        snprintf(out + length, HOLDER_WHO - length, "... (no label)");
    return out;
}

const char *holder_words(char *out, const nxl_holder *holder)
{
    char who[HOLDER_WHO];
    char left[128];

    holder_who(who, holder);
    describe_ending(left, sizeof(left), holder);
    snprintf(out, HOLDER_WORDS, "%s %s, %s",
        holder_is_over(holder) ? "free, left by" : "held by", who, left);
    return out;
}

/* Writes a text that came from a server. */
static void json_foreign(
    struct json *json, const char *name, const char *text, size_t length)
{
    text = foreign_bytes(text, &length);
    json_text(json, name, text, length);
}

void holder_json_who(struct json *json, const nxl_holder *holder)
{
    struct label_parts parts;

    if (!holder_has_token(holder)) {
        json_foreign(json, "value", holder->value, shown_length(holder));
        if (holder->truncated)
            json_true(json, "truncated");
        return;
    }
    if (holder->label) {
        const char *label = foreign(holder->label);
        json_string(json, "label", label);
        if (label_read(label, &parts)) {
            json_text(json, "host", label, parts.host);
            json_number(json, "pid", parts.pid);
            json_string(json, "program", parts.program);
        }
    }
    json_foreign(json, "owner", holder->value, TOKEN_SHOWN);
}

void holder_json(struct json *json, const nxl_holder *holder)
{
    holder_json_who(json, holder);
    if (holder->value_ends_s != 0)
        json_number(json, "value_ends_s", holder->value_ends_s);
    if (holder->left_ms >= 0)
        json_number(json, "left_ms", holder->left_ms);
    else
        json_null(json, "left_ms");
}

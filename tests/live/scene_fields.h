/* SPDX-License-Identifier: MIT */
/*
 * What steps lead to, and the structures of the library whose fields a scene
 * names: one row for each field.
 */
#ifndef NXLOCK_TESTS_LIVE_SCENE_FIELDS_H
#define NXLOCK_TESTS_LIVE_SCENE_FIELDS_H

#include "live/scene_text.h"

static void give(struct outcome *o, struct word value)
{
    o->value = value;
    if (!o->message)
        o->message = value.text;
}

static void give_number(struct outcome *o, int64_t number)
{
    give(o, word_number(number));
}

static void give_text(struct outcome *o, const char *text)
{
    o->none = text == NULL;
    give(o, word_text(text ? text : ""));
}

static void give_flag(struct outcome *o, bool flag)
{
    give_text(o, flag ? "yes" : "no");
}

/* ------------------------------------------------------------------ fields */

struct field {
    const char *name;
    size_t offset;
    enum {
        TEXT,
        FLAG,
        INT,
        INT64,
        UINT64,
        POINTER, /* to a text */
        VERSION,
        STATE,
        SOFTWARE,
        ROLE,
        VERDICT
    } type;
    size_t length; /* the offset of a text's length; 0: it is zero-terminated */
};

#define FIELD(of, field, kind)                                                 \
    {                                                                          \
        .name = #field, .offset = offsetof(of, field), .type = kind            \
    }
/* Of any bytes; the field field_length says how many. */
#define BYTES(of, field, kind)                                                 \
    {                                                                          \
        .name = #field, .offset = offsetof(of, field), .type = kind,           \
        .length = offsetof(of, field##_length)                                 \
    }

static const struct field lock_options[] = {
    FIELD(nxl_lock_options, ttl_ms, INT64),
    FIELD(nxl_lock_options, retry_min_ms, INT64),
    FIELD(nxl_lock_options, retry_max_ms, INT64),
    FIELD(nxl_lock_options, min_hold_ms, INT64),
    FIELD(nxl_lock_options, max_hold_ms, INT64),
    FIELD(nxl_lock_options, permits, INT64),
    FIELD(nxl_lock_options, weight, INT64),
    FIELD(nxl_lock_options, name_length, UINT64),
    FIELD(nxl_lock_options, fence, INT),
    FIELD(nxl_lock_options, renew, INT),
    FIELD(nxl_lock_options, shared, INT),
    FIELD(nxl_lock_options, label, POINTER),
    {.name = NULL},
};

static const struct field holder_fields[] = {
    BYTES(nxl_holder, value, TEXT),
    FIELD(nxl_holder, value_length, UINT64),
    FIELD(nxl_holder, truncated, FLAG),
    FIELD(nxl_holder, ours, FLAG),
    FIELD(nxl_holder, label, POINTER),
    FIELD(nxl_holder, left_ms, INT64),
    FIELD(nxl_holder, value_ends_s, INT64),
    FIELD(nxl_holder, weight, INT64),
    FIELD(nxl_holder, permits, INT64),
    {.name = NULL},
};

static const struct field facts_fields[] = {
    FIELD(nxl_server_facts, state, STATE),
    FIELD(nxl_server_facts, url, TEXT),
    FIELD(nxl_server_facts, software, SOFTWARE),
    FIELD(nxl_server_facts, version, VERSION),
    FIELD(nxl_server_facts, role, ROLE),
    FIELD(nxl_server_facts, strategy, TEXT),
    FIELD(nxl_server_facts, scripts, FLAG),
    FIELD(nxl_server_facts, votes, FLAG),
    FIELD(nxl_server_facts, no_vote, TEXT),
    FIELD(nxl_server_facts, guarded, FLAG),
    FIELD(nxl_server_facts, error, TEXT),
    FIELD(nxl_server_facts, sentinel, FLAG),
    FIELD(nxl_server_facts, no_database, FLAG),
    FIELD(nxl_server_facts, logged_in, FLAG),
    FIELD(nxl_server_facts, sends_password, FLAG),
    FIELD(nxl_server_facts, in_line, FLAG),
    FIELD(nxl_server_facts, waiting, TEXT),
    FIELD(nxl_server_facts, records, TEXT),
    FIELD(nxl_server_facts, replicas, INT),
    FIELD(nxl_server_facts, quarantine_ms, INT64),
    {.name = NULL},
};

static const struct field record_fields[] = {
    FIELD(nxl_record, state, VERDICT),
    FIELD(nxl_record, token, POINTER),
    FIELD(nxl_record, label, POINTER),
    FIELD(nxl_record, fence, UINT64),
    FIELD(nxl_record, attempt, INT64),
    FIELD(nxl_record, doubts, INT64),
    FIELD(nxl_record, late, INT64),
    FIELD(nxl_record, first_ms, INT64),
    FIELD(nxl_record, since_ms, INT64),
    FIELD(nxl_record, ended_ms, INT64),
    FIELD(nxl_record, code, INT),
    FIELD(nxl_record, fingerprint, POINTER),
    FIELD(nxl_record, result_length, UINT64),
    BYTES(nxl_record, result, POINTER),
    {.name = NULL},
};

#define COUNTER(name) FIELD(nxl_stats, name, UINT64)
static const struct field stats_fields[] = {COUNTER(grants), COUNTER(busy),
    COUNTER(unknown), COUNTER(unreachable), COUNTER(refused),
    COUNTER(cancelled), COUNTER(recorded), COUNTER(attempts), COUNTER(waits),
    COUNTER(wait.count), COUNTER(wait.sum_ns), COUNTER(hold.count),
    COUNTER(hold.sum_ns), COUNTER(releases), COUNTER(unanswered),
    COUNTER(renewals), COUNTER(renewal_failures), COUNTER(least_slack_ms),
    COUNTER(losses), COUNTER(losses_expired), COUNTER(losses_removed),
    COUNTER(losses_taken), COUNTER(losses_unreachable), COUNTER(connections),
    COUNTER(reconnects), COUNTER(cleanups), COUNTER(failovers),
    COUNTER(quarantine_ms), COUNTER(unconfirmed), {.name = NULL}};

/* The words of what is a number there. */
static const char *const words_of[][5] = {
    [STATE] = {"down", "connecting", "up"},
    [SOFTWARE] = {"unknown", "redis", "valkey", "keydb"},
    [ROLE] = {"unknown", "primary", "replica", "active replica"},
    [VERDICT] = {NULL, "begun", "doubt", "done", "failed"},
};

/* The row of that name, or NULL. */
static const struct field *find_field(
    const struct field *fields, const char *name)
{
    while (fields->name && strcmp(fields->name, name) != 0)
        fields++;
    return fields->name ? fields : NULL;
}

static void give_bytes(struct outcome *o, const char *text, size_t length)
{
    o->none = !text;
    give(o, word_of(text ? text : "", text ? length : 0));
}

/* The field that the next word names. False: there is none of that name. */
static bool give_field(struct outcome *o, const struct field *fields,
    const void *structure, struct words *words)
{
    if (!has(words)) { /* what is expected is behind "with" */
        give_text(o, "");
        return true;
    }
    const struct field *field = find_field(fields, words->at->text);
    if (!field)
        return false;
    words->at++;
    const char *at = (const char *)structure + field->offset;
    const char *text = field->type == POINTER ? *(const char *const *)at : at;
    if (field->length)
        give_bytes(o, text,
            *(const size_t *)((const char *)structure + field->length));
    else if (field->type == TEXT || field->type == POINTER)
        give_text(o, text);
    else if (field->type == FLAG)
        give_flag(o, *(const bool *)at);
    else if (field->type == VERSION)
        give_text(o, formatted("%d.%d.%d", ((const int *)at)[0],
                         ((const int *)at)[1], ((const int *)at)[2]));
    else if (field->type >= STATE)
        give_text(o, words_of[field->type][*(const int *)at]);
    else if (field->type == INT)
        give_number(o, *(const int *)at);
    else
        give_number(o, *(const int64_t *)at);
    return true;
}

/* False: there is no field of that name. */
static bool set_field(const struct field *fields, void *structure,
    const char *name, const char *value)
{
    const struct field *field = find_field(fields, name);
    if (!field)
        return false;
    char *at = (char *)structure + field->offset;
    if (field->type == POINTER)
        *(const char **)at = value;
    else if (field->type == INT)
        *(int *)at = (int)strtoll(value, NULL, 10);
    else
        *(int64_t *)at = strtoll(value, NULL, 10);
    return true;
}

#endif

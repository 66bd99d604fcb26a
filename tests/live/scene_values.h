/* SPDX-License-Identifier: MIT */
/* The values that a scene can ask handles and clients for. */
#ifndef NXLOCK_TESTS_LIVE_SCENE_VALUES_H
#define NXLOCK_TESTS_LIVE_SCENE_VALUES_H

#include "api/private.h"
#include "live/scene_world.h"

/* A number that comes next, from 1, as an index; or 0. */
static size_t index_if_any(struct words *words)
{
    if (!has(words) || !is_number(words->at->text))
        return 0;
    int64_t number = number_of(take(words));
    if (number < 1)
        file_error("numbers begin with 1");
    return (size_t)number - 1;
}

/* "server 2" at the end, as an index; or 0. */
static size_t server_if_any(struct words *words)
{
    if (!accept(words, "of"))
        return 0;
    if (!accept(words, "server"))
        file_error("of what server?");
    return index_if_any(words);
}

/* ----------------------------------------------------------------- structs */

struct field {
    const char *name;
    size_t offset;
    enum {
        TEXT,
        FLAG,
        INT,
        INT64,
        UINT64,
        LABEL, /* a pointer to a text */
        VERSION,
        STATE,
        SOFTWARE,
        ROLE,
        VERDICT
    } type;
};

#define FIELD(of, name, type)                                                  \
    {                                                                          \
#name, offsetof(of, name), type                                        \
    }

/* Of a handle, and of no structure. */
static const struct field own_values[] = {
    {.name = "held"},
    {.name = "remaining"},
    {.name = "deadline"},
    {.name = "message"},
    {.name = NULL},
};

static const struct field holder_fields[] = {
    FIELD(nxl_holder, value_length, UINT64),
    FIELD(nxl_holder, truncated, FLAG),
    FIELD(nxl_holder, ours, FLAG),
    FIELD(nxl_holder, label, LABEL),
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
    FIELD(nxl_record, token, LABEL),
    FIELD(nxl_record, label, LABEL),
    FIELD(nxl_record, fence, UINT64),
    FIELD(nxl_record, attempt, INT64),
    FIELD(nxl_record, doubts, INT64),
    FIELD(nxl_record, late, INT64),
    FIELD(nxl_record, first_ms, INT64),
    FIELD(nxl_record, since_ms, INT64),
    FIELD(nxl_record, ended_ms, INT64),
    FIELD(nxl_record, code, INT),
    FIELD(nxl_record, fingerprint, LABEL),
    FIELD(nxl_record, result_length, UINT64),
    FIELD(nxl_record, result, LABEL), /* of any bytes */
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

static bool has_field(const struct field *fields, const char *name)
{
    while (fields->name && strcmp(fields->name, name) != 0)
        fields++;
    return fields->name;
}

static void give_version(struct outcome *o, const int version[3])
{
    char text[64];
    snprintf(
        text, sizeof(text), "%d.%d.%d", version[0], version[1], version[2]);
    give_text(o, text);
}

static void give_field(struct outcome *o, const struct field *fields,
    const void *structure, struct words *words)
{
    if (!has(words)) { /* what is expected is behind "with" */
        give_text(o, "");
        return;
    }
    const char *name = take(words)->text;
    while (fields->name && strcmp(fields->name, name) != 0)
        fields++;
    if (!fields->name)
        file_error("there is no %s", name);
    const void *at = (const char *)structure + fields->offset;
    if (fields->type == TEXT)
        give_text(o, at);
    else if (fields->type == LABEL)
        give_text(o, *(const char *const *)at);
    else if (fields->type == FLAG)
        give_flag(o, *(const bool *)at);
    else if (fields->type == VERSION)
        give_version(o, at);
    else if (fields->type >= STATE)
        give_text(o, words_of[fields->type][*(const int *)at]);
    else if (fields->type == INT)
        give_number(o, *(const int *)at);
    else
        give_number(o, *(const int64_t *)at);
}

/* ------------------------------------------------------------------ values */

static void read_holder(struct thing *t, struct words *words, struct outcome *o)
{
    nxl_holder holder = t->seen;
    bool at_server = accept(words, "at") && accept(words, "server");
    size_t server_at = at_server ? index_if_any(words) : 0;
    size_t index = at_server ? 0 : index_if_any(words);
    int result = NXL_OK;
    if (at_server || index > 0)
        result = nxl_lock_holder_at(t->lock, server_at, index, &holder);
    if (at_server && !has(words)) {
        give_result(o, result, "");
        return;
    }
    if (result != NXL_OK) {
        words->at = words->end;
        give_text(o, NULL);
        return;
    }
    if (accept(words, "value")) /* of any bytes */
        give(o, word_of(holder.value, holder.value_length));
    else
        give_field(o, holder_fields, &holder, words);
}

/* Without a field: whether there is one. */
static void read_record(struct thing *t, struct words *words, struct outcome *o)
{
    nxl_record r = NXL_RECORD_INIT;
    int result = nxl_once_record(t->lock, &r);
    if (!has(words) || result == NXL_E_INVALID) {
        words->at = words->end;
        give_text(o, result_name(result));
        o->fields = "record ";
    } else if (accept(words, "result")) {
        o->none = !r.result;
        give(o,
            word_of(r.result ? r.result : "", r.result ? r.result_length : 0));
    } else {
        give_field(o, record_fields, &r, words);
    }
}

static bool read_lock(struct thing *t, struct words *words, struct outcome *o)
{
    static const char *const losses[] = {
        NULL, "EXPIRED", "REMOVED", "TAKEN", "UNREACHABLE"};
    if (accept(words, "token")) {
        give_text(o, nxl_lock_token(t->lock));
    } else if (accept(words, "held")) {
        give_flag(o, nxl_lock_held(t->lock));
    } else if (accept(words, "remaining")) {
        give_number(o, nxl_lock_remaining_ms(t->lock));
    } else if (accept(words, "deadline")) {
        give_number(o, (int64_t)nxl_lock_deadline(t->lock));
    } else if (accept(words, "fence")) {
        give_number(o, (int64_t)(has(words) ? nxl_lock_fence_of(
                                                  t->lock, index_if_any(words))
                                            : nxl_lock_fence(t->lock)));
    } else if (accept(words, "message")) {
        if (next_is(words, "of"))
            give_text(o, nxl_lock_errmsg_at(t->lock, server_if_any(words)));
        else
            give_text(o, nxl_lock_errmsg(t->lock));
    } else if (accept(words, "loss")) {
        give_text(o, losses[nxl_lock_loss(t->lock, t->loss, sizeof(t->loss))]);
        o->message = t->loss;
    } else if (accept(words, "running")) {
        give_flag(o, t->running);
    } else if (accept(words, "names")) {
        give_number(o, (int64_t)nxl_lock_names(t->lock));
    } else if (accept(words, "name")) {
        size_t length;
        const char *name = nxl_lock_name(t->lock, index_if_any(words), &length);
        o->none = !name;
        give(o, word_of(name ? name : "", length));
    } else if (accept(words, "holder")) {
        read_holder(t, words, o);
    } else if (accept(words, "record")) {
        read_record(t, words, o);
    } else {
        return false;
    }
    return true;
}

static void read_facts(
    nxl_client *client, struct words *words, struct outcome *o)
{
    nxl_server_facts facts = NXL_SERVER_FACTS_INIT;
    struct words field = {words->at, words->at};
    if (has(words) && !next_is(words, "of"))
        field.end = words->at++ + 1;
    if (nxl_client_server_facts(client, server_if_any(words), &facts) != NXL_OK)
        file_error("there is no such server");
    o->fields = "facts ";
    give_field(o, facts_fields, &facts, &field);
}

static void read_description(
    nxl_client *client, bool connected, struct outcome *o)
{
    char *text = pool_take(8192);
    int64_t count = 0;
    nxl_client_describe(client, text, 8192);
    for (const char *at = text; (at = strstr(at, ", connected")); at++)
        count++;
    if (connected)
        give_number(o, count);
    else
        give_text(o, text);
}

static bool read_client(struct thing *t, struct words *words, struct outcome *o)
{
    nxl_stats stats;
    if (accept(words, "event")) {
        give_event(o, t);
    } else if (accept(words, "lost")) {
        struct pollfd fd = {nxl_client_loss_fd(t->client), POLLIN, 0};
        give_flag(o, poll(&fd, 1, 0) == 1);
    } else if (accept(words, "holds")) {
        const struct word *name = take(words);
        give_number(
            o, (int64_t)nxl_client_holds(t->client, name->text, name->length));
    } else if (next_is(words, "connected") || next_is(words, "description")) {
        read_description(t->client, word_is(take(words), "connected"), o);
    } else if (accept(words, "hides")) {
        const struct word *word = take(words);
        size_t length = word->length;
        give_flag(
            o, client_shown(t->client, word->text, &length) != word->text);
    } else if (accept(words, "turns")) {
        give_number(o, t->turns);
    } else if (accept(words, "message")) {
        give_text(o, nxl_client_errmsg(t->client));
    } else if (accept(words, "prefix")) {
        give_text(o, nxl_client_prefix(t->client));
    } else if (accept(words, "servers")) {
        give_number(o, (int64_t)nxl_client_servers(t->client));
    } else if (accept(words, "warnings")) {
        o->message = t->warning;
        give_number(o, t->warnings);
    } else if (accept(words, "stats")) {
        o->fields = "stats ";
        assert_int_equal(
            nxl_client_stats(t->client, &stats, sizeof(stats)), NXL_OK);
        give_field(o, stats_fields, &stats, words);
    } else if (accept(words, "facts")) {
        read_facts(t->client, words, o);
    } else {
        return false;
    }
    return true;
}

static bool others_are_zero(const struct outcome *outcome, struct words named)
{
    nxl_stats stats;
    const struct field *field;
    assert_int_equal(
        nxl_client_stats(outcome->subject->client, &stats, sizeof(stats)),
        NXL_OK);
    for (field = stats_fields; field->name; field++) {
        bool is_named = field->offset >= offsetof(nxl_stats, connections) ||
                        strstr(field->name, "sum_ns");
        for (const struct word *word = named.at; word < named.end; word++)
            is_named |= word_is(word, field->name);
        uint64_t value =
            *(const uint64_t *)((const char *)&stats + field->offset);
        if (!is_named && value != 0)
            return mismatch(
                "%s is %llu", field->name, (unsigned long long)value);
    }
    return true;
}

#endif

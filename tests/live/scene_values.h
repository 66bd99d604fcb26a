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

/* ------------------------------------------------------------------ values */

static bool read_holder(struct thing *t, struct words *words, struct outcome *o)
{
    nxl_holder holder = t->seen;
    bool at_server = accept(words, "at") && accept(words, "server");
    size_t server_at = at_server ? index_if_any(words) : 0;
    size_t index = at_server ? 0 : index_if_any(words);
    int result = NXL_OK;
    if (has(words) && !find_field(holder_fields, words->at->text))
        return false;
    if (at_server || index > 0)
        result = nxl_lock_holder_at(t->lock, server_at, index, &holder);
    if (at_server && !has(words)) {
        give_result(o, result, "");
        return true;
    }
    if (result == NXL_OK)
        return give_field(o, holder_fields, &holder, words);
    words->at = words->end;
    give_text(o, NULL);
    return true;
}

/* Without a field: whether there is one. */
static bool read_record(struct thing *t, struct words *words, struct outcome *o)
{
    nxl_record r = NXL_RECORD_INIT;
    int result = nxl_once_record(t->lock, &r);
    if (has(words) && !find_field(record_fields, words->at->text))
        return false;
    if (has(words) && result != NXL_E_INVALID)
        return give_field(o, record_fields, &r, words);
    words->at = words->end;
    give_text(o, result_name(result));
    o->fields = "record %s";
    return true;
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
        give_bytes(o, name, length);
    } else if (accept(words, "holder")) {
        return read_holder(t, words, o);
    } else if (accept(words, "record")) {
        return read_record(t, words, o);
    } else {
        return false;
    }
    return true;
}

static bool read_facts(
    nxl_client *client, struct words *words, struct outcome *o)
{
    nxl_server_facts facts = NXL_SERVER_FACTS_INIT;
    struct words field = {words->at, words->at};
    if (has(words) && !next_is(words, "of")) {
        if (!find_field(facts_fields, words->at->text))
            return false;
        field.end = ++words->at;
    }
    if (nxl_client_server_facts(client, server_if_any(words), &facts) != NXL_OK)
        file_error("there is no such server");
    o->fields = "facts %s";
    return give_field(o, facts_fields, &facts, &field);
}

static void read_description(
    nxl_client *client, struct words *words, struct outcome *o)
{
    char *text = pool_take(8192);
    if (next_is(words, "of"))
        nxl_client_describe_server(client, server_if_any(words), text, 8192);
    else
        nxl_client_describe(client, text, 8192);
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
    } else if (accept(words, "connected")) {
        give_number(o, (int64_t)count_connected(t->client));
    } else if (accept(words, "description")) {
        read_description(t->client, words, o);
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
        o->fields = "stats %s";
        assert_int_equal(
            nxl_client_stats(t->client, &stats, sizeof(stats)), NXL_OK);
        return give_field(o, stats_fields, &stats, words);
    } else if (accept(words, "facts")) {
        return read_facts(t->client, words, o);
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

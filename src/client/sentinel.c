/* SPDX-License-Identifier: MIT */
/*
 * Asks one Sentinel, and reads its answers.
 *
 * Invariant: an answer that is not understood names nobody.
 */
#include "client/sentinel.h"

#include <stdlib.h>

#include "base/deadline.h"

static void make_question(
    struct question *q, struct sentinel *of, const char *what)
{
    q->words[0] = slice_of("SENTINEL");
    q->words[1] = slice_of(what);
    q->words[2] = slice_of(of->endpoint->sentinels->service);
    q->verb = (struct verb){.kind = VERB_QUERY,
        .args = q->words,
        .arg_count = 3,
        .values = &q->values};
    q->request.server = &of->server;
    q->request.owner = of;
    list_init(&q->request.node);
}

struct sentinel *sentinel_new(struct nodes *nodes, const struct endpoint *e,
    unsigned listed, unsigned nth)
{
    struct sentinel *st = calloc(1, sizeof(*st));
    if (!st)
        return NULL;
    st->endpoint = e;
    st->host_index = listed;
    st->address_index = nth;
    st->settings = e->settings;
    settings_become_sentinels(&st->settings);
    const struct target to = {&e->sentinels->at[listed], &st->settings,
        e->sentinels->tls ? e->tls : NULL, e->server, nth};
    server_init(&st->server, &to, true, (uint64_t)(uintptr_t)st);
    st->server.handshake_terms.sentinel = true;
    server_share_secrets(&st->server, &nodes->secrets);
    st->server.spares = &nodes->spares;
    st->source.kind = SOURCE_SENTINEL;
    server_set_poller(&st->server, nodes->poller, &st->source);
    make_question(&st->questions[ASK_ADDRESS], st, "get-master-addr-by-name");
    make_question(&st->questions[ASK_DETAILS], st, "master");
    make_question(&st->questions[ASK_OTHERS], st, "sentinels");
    return st;
}

void sentinel_free(struct sentinel *st)
{
    for (unsigned k = 0; k < QUESTIONS; k++) {
        request_free(&st->questions[k].request);
        reply_values_free(&st->questions[k].values);
    }
    server_free(&st->server);
    free(st);
}

static void submit(
    struct sentinel *st, enum sentinel_question which, uint64_t now)
{
    struct question *q = &st->questions[which];
    reply_values_clear(&q->values);
    q->pending = true;
    st->asked_at = now;
    server_submit(&q->request, &q->verb, NULL, now);
}

void sentinel_ask(struct sentinel *st, uint64_t now)
{
    submit(st, ASK_ADDRESS, now);
    submit(st, ASK_DETAILS, now);
}

void sentinel_ask_others(struct sentinel *st, uint64_t now)
{
    submit(st, ASK_OTHERS, now);
}

/* ------------------------------------------------------------- its answers */

/* The value behind that name in a list of names and values; NULL: none. */
static struct slice field(const struct reply_values *values, const char *name)
{
    for (size_t i = 0; i + 1 < values->count; i += 2)
        if (slice_equal(reply_values_at(values, i), slice_of(name)))
            return reply_values_at(values, i + 1);
    return (struct slice){NULL, 0};
}

/* A zero byte follows the text. */
static bool to_number(struct slice text, uint64_t *number)
{
    if (!text.data || text.len == 0 || text.len > 18 ||
        strspn(text.data, "0123456789") != text.len)
        return false;
    *number = strtoull(text.data, NULL, 10);
    return true;
}

static bool read_field(
    const struct reply_values *values, const char *name, uint64_t *number)
{
    return to_number(field(values, name), number);
}

static bool read_address(
    const struct reply_values *values, struct sentinel_view *v)
{
    struct slice host = reply_values_at(values, 0);
    struct slice digits = reply_values_at(values, 1);
    uint64_t port = 0;
    if (values->count != 2 || !host.data || !digits.data || host.len == 0 ||
        host.len >= sizeof(v->host) || memchr(host.data, '\0', host.len) ||
        !to_number(digits, &port) || port == 0 || port > 65535)
        return false;
    memcpy(v->host, host.data, host.len);
    v->host[host.len] = '\0';
    v->port = (uint16_t)port;
    return true;
}

/* Since when it has named that address: since it has reported to be a primary,
 * if that is what the Sentinel has been told about. */
static void read_since(const struct reply_values *values,
    struct sentinel_view *v, uint64_t heard_at)
{
    uint64_t port = 0, ms = 0;
    bool same = slice_equal(field(values, "ip"), slice_of(v->host)) &&
                read_field(values, "port", &port) && port == v->port &&
                slice_equal(field(values, "role-reported"), slice_of("master"));
    if (!same || !read_field(values, "role-reported-time", &ms))
        ms = 0;
    v->since = confirm_since(heard_at, ms_to_ns(ms));
}

static void refuse(struct sentinel *st, enum fault fault)
{
    st->failed = true;
    st->fault = fault;
    text_clear(&st->why);
}

static void unknown_service(struct sentinel *st)
{
    const char *services = st->server.handshake.why;
    refuse(st, FAULT_WRONG_SENTINELS);
    text_add(&st->why, "it knows no service '");
    text_add_foreign(&st->why, slice_of(st->endpoint->sentinels->service));
    text_add(&st->why, "'; it monitors ");
    redact_add(&st->why, slice_of(services[0] ? services : "none"), FOREIGN_MAX,
        st->server.secrets);
}

/* All its questions are answered. */
static void take_view(
    struct sentinel *st, struct sentinel_view *view, uint64_t now)
{
    const struct reply_values *address = &st->questions[ASK_ADDRESS].values;
    const struct reply_values *details = &st->questions[ASK_DETAILS].values;
    struct sentinel_view seen = {
        .asked_at = st->questions[ASK_ADDRESS].request.sent_at};
    uint64_t others = 0;
    memcpy(seen.id, st->server.facts.run_id, sizeof(seen.id));
    if (!read_address(address, &seen) ||
        !read_field(details, "num-other-sentinels", &others)) {
        refuse(st, FAULT_NOT_REDIS);
        text_add(&st->why, "its answer to SENTINEL was not understood");
        return;
    }
    seen.others = others < 1000 ? (unsigned)others : 1000;
    read_since(details, &seen, now);
    st->failed = false;
    confirm_take(view, &seen);
}

static bool is_unknown_service(
    const struct sentinel *st, const struct outcome *outcome)
{
    const struct reply_values *address = &st->questions[ASK_ADDRESS].values;
    return outcome->kind == OUTCOME_FAULT
               ? slice_starts(outcome->text, "ERR No such master")
               : address->count > 0 && !reply_values_at(address, 0).data;
}

void sentinel_take(struct sentinel *st, const struct request *request,
    const struct outcome *outcome, struct sentinel_view *view, uint64_t now)
{
    for (unsigned k = 0; k < QUESTIONS; k++)
        if (&st->questions[k].request == request)
            st->questions[k].pending = false;
    if (request == &st->questions[ASK_OTHERS].request)
        return; /* what it says goes into a message, if there is one */
    if (is_unknown_service(st, outcome)) {
        unknown_service(st);
        view->asked_at = 0;
    } else if (outcome->kind == OUTCOME_FAULT) {
        refuse(st, outcome->fault);
        text_add_foreign(&st->why, outcome->text);
        st->tried_addresses = 0; /* the host may have other addresses by now */
    } else if (!sentinel_is_pending(st) &&
               st->questions[ASK_ADDRESS].values.count > 0) {
        take_view(st, view, now);
    }
}

const char *sentinel_reason(const struct sentinel *st)
{
    if (st->failed)
        return st->why.data;
    if (!sentinel_is_pending(st))
        return NULL;
    const char *silence = st->server.state == SERVER_CONNECTING
                              ? st->server.dial.transport.silence
                              : NULL;
    return silence ? silence : "no answer";
}

void sentinel_add_others(const struct sentinel *st, struct text *text)
{
    const struct reply_values *v = &st->questions[ASK_OTHERS].values;
    const struct secrets *secrets = st->server.secrets;
    const char *join = " knows ";
    for (size_t i = 0; i + 3 < v->count; i++) {
        if (!slice_equal(reply_values_at(v, i), slice_of("ip")) ||
            !slice_equal(reply_values_at(v, i + 2), slice_of("port")))
            continue;
        if (*join == ' ') {
            text_add(text, "; ");
            text_add(text, st->server.to.address->name.data);
        }
        text_add(text, join);
        redact_add(text, reply_values_at(v, i + 1), FOREIGN_MAX, secrets);
        text_add(text, ":");
        redact_add(text, reply_values_at(v, i + 3), FOREIGN_MAX, secrets);
        join = ", ";
    }
}

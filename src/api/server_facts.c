/* SPDX-License-Identifier: MIT */
/*
 * What is known about a server: a structure for programs, and the line for
 * people, which prints that structure.
 *
 * Invariant: no member holds a secret. What a server says of itself is given
 * as a number, and its words only as the client's messages show them.
 */
#include <stdio.h>

#include "api/private.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "client/voters.h"
#include "client/sentinel.h"
#include "client/sentinel_watch.h"
#include "core/lease.h"
#include "lock/waiting.h"
#include "lock/warning.h"
#include "wire/strategies.h"

/* The setting's number is copied to the fact unchanged. */
_Static_assert((int)TLS_VERIFY_FULL == (int)NXL_TLS_VERIFY_FULL &&
                   (int)TLS_VERIFY_CA == (int)NXL_TLS_VERIFY_CA &&
                   (int)TLS_VERIFY_NONE == (int)NXL_TLS_VERIFY_NONE,
    "both enums have the same values");

static int state_of(const struct server *s)
{
    if (s->state == SERVER_UP)
        return NXL_SERVER_UP;
    return s->state == SERVER_DOWN ? NXL_SERVER_DOWN : NXL_SERVER_CONNECTING;
}

static int software_of(const struct facts *f)
{
    if (strcmp(f->software, "valkey") == 0)
        return NXL_SOFTWARE_VALKEY;
    if (strcmp(f->software, "keydb") == 0)
        return NXL_SOFTWARE_KEYDB;
    return strcmp(f->software, "redis") == 0 ? NXL_SOFTWARE_REDIS
                                             : NXL_SOFTWARE_UNKNOWN;
}

static int role_of(const struct facts *f)
{
    static const struct {
        const char *word;
        int role;
    } roles[] = {{"master", NXL_ROLE_PRIMARY}, {"primary", NXL_ROLE_PRIMARY},
        {"slave", NXL_ROLE_REPLICA}, {"replica", NXL_ROLE_REPLICA},
        {"active-replica", NXL_ROLE_ACTIVE_REPLICA}};

    for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
        if (strcmp(f->role, roles[i].word) == 0)
            return roles[i].role;
    }
    return NXL_ROLE_UNKNOWN;
}

static void add_voting(
    const struct node *n, uint64_t now, nxl_server_facts *facts)
{
    struct text words;

    text_clear(&words);
    voters_explain(n, now, &words);
    facts->votes = words.len == 0;
    text_copy(&words, facts->no_vote, sizeof(facts->no_vote));
    facts->guarded = n->client->guards_restarts;
    facts->failover_guarded = n->client->guards_failover;
    facts->replicas = n->server.facts.replicas;
    facts->quarantine_ms = (int64_t)voters_quarantine_ms(n, now);
}

static void add_strategy(const struct server *s, nxl_server_facts *facts)
{
    struct text words;

    if (s->state != SERVER_UP)
        return;
    if (strategies_are_known(&s->dialect)) {
        text_clear(&words);
        strategies_describe(&s->dialect, &words);
        text_copy(&words, facts->strategy, sizeof(facts->strategy));
    }
    facts->scripts = strategies_are_scripts(&s->dialect);
}

static void add_waiting(const struct node *n, nxl_server_facts *facts)
{
    struct text words;

    if (n->server.state != SERVER_UP)
        return;
    text_clear(&words);
    facts->in_line = waiting_describe(n, &words);
    text_copy(&words, facts->waiting, sizeof(facts->waiting));
}

static void add_records(const struct server *s, nxl_server_facts *facts)
{
    struct text words;

    text_clear(&words);
    warning_of_records(s, &words);
    text_copy(&words, facts->records, sizeof(facts->records));
}

static void add_sentinels(
    const struct node *n, uint64_t now, nxl_server_facts *facts)
{
    uint64_t at = n->voter.eligibility.confirmed_at;
    unsigned naming, listed;

    facts->confirmed_ms = -1;
    if (!n->client->sentinel_watch)
        return;
    sentinel_watch_count(n->client->sentinel_watch, &naming, &listed);
    facts->sentinels = (int)listed;
    facts->sentinels_naming = (int)naming;
    if (at)
        facts->confirmed_ms = (int64_t)(elapsed(at, now) / NS_PER_MS);
}

static void add_error(const struct server *s, nxl_server_facts *facts)
{
    if (s->state != SERVER_DOWN)
        return;
    text_copy(&s->why, facts->error, sizeof(facts->error));
    facts->sentinel = s->why_fault == FAULT_IS_SENTINEL;
    facts->no_database = s->why_fault == FAULT_NO_DATABASE;
}

static void add_connection(const struct server *s, nxl_server_facts *facts)
{
    if (s->state != SERVER_UP)
        return;
    struct transport_facts known = transport_facts(&s->conn.transport);
    facts->tls = known.encrypted;
    if (known.encrypted) {
        snprintf(facts->tls_version, sizeof(facts->tls_version), "%s",
            known.version);
        facts->tls_verify = (int)s->to.settings->verify;
    }
    facts->certificate_ends_s = known.ends_s;
    facts->own_certificate_ends_s = known.own_ends_s;
    facts->local = known.local;
}

static void fill(const struct node *n, nxl_server_facts *facts)
{
    const struct nxl_client *client = n->client;
    const struct server *s = &n->server;
    uint64_t now = clock_now();

    facts->state = state_of(s);
    text_copy(&s->to.address->name, facts->url, sizeof(facts->url));
    facts->software = software_of(&s->facts);
    (void)sscanf(s->facts.version, "%9d.%9d.%9d", &facts->version[0],
        &facts->version[1], &facts->version[2]);
    facts->role = role_of(&s->facts);
    facts->cluster = s->facts.cluster;
    facts->unfit = eligibility_unfit(&n->voter.eligibility);
    add_strategy(s, facts);
    add_waiting(n, facts);
    add_voting(n, now, facts);
    add_sentinels(n, now, facts);
    add_records(s, facts);
    add_error(s, facts);
    add_connection(s, facts);
    facts->timeout_ms = (int64_t)(client->timeout_ns / NS_PER_MS);
    facts->min_ttl_ms = lease_least_ttl_ms(client->drift_ppm);
    facts->max_ttl_ms = client->max_ttl_ms;
    facts->logged_in = s->logged_in;
    facts->sends_password = login_is_needed(&s->login);
}

int nxl_client_server_facts(
    nxl_client *client, size_t server, nxl_server_facts *facts)
{
    nxl_server_facts all = NXL_SERVER_FACTS_INIT;

    if (!client || !facts || facts->size < offsetof(nxl_server_facts, url) ||
        server >= client->server_count)
        return NXL_E_INVALID;
    if (client_forked(client))
        return NXL_E_FORKED;
    size_t size = facts->size < sizeof(all) ? facts->size : sizeof(all);
    pthread_mutex_lock(&client->mutex);
    fill(nodes_at(&client->nodes, (unsigned)server), &all);
    pthread_mutex_unlock(&client->mutex);
    all.size = facts->size;
    memcpy(facts, &all, size);
    return NXL_OK;
}

bool client_sentinel(nxl_client *client, size_t i, struct sentinel_facts *facts)
{
    const struct sentinel_watch *w = client->sentinel_watch;
    struct text named, why;

    pthread_mutex_lock(&client->mutex);
    bool found = w && i < w->count;
    if (found) {
        const struct server *s = &w->list[i]->server;
        bool up = s->state == SERVER_UP;
        struct transport_facts known =
            up ? transport_facts(&s->conn.transport)
               : (struct transport_facts){.local = true};
        sentinel_watch_explain(w, (unsigned)i, &named, &why);
        text_copy(&s->to.address->name, facts->at, sizeof(facts->at));
        text_copy(&named, facts->primary, sizeof(facts->primary));
        text_copy(&why, facts->why, sizeof(facts->why));
        facts->is_spare = sentinel_watch_is_spare(w, (unsigned)i);
        facts->agrees = sentinel_watch_agrees(w, (unsigned)i);
        facts->in_clear =
            login_is_needed(&s->login) && !known.encrypted && !known.local;
        facts->knows = w->confirm.views[i].others + 1;
    }
    pthread_mutex_unlock(&client->mutex);
    return found;
}

/* -------------------------------------------------------------- for people */

static void add_software(const nxl_server_facts *facts, struct text *t)
{
    static const char *const names[] = {
        [NXL_SOFTWARE_UNKNOWN] = "other software",
        [NXL_SOFTWARE_REDIS] = "redis",
        [NXL_SOFTWARE_VALKEY] = "valkey",
        [NXL_SOFTWARE_KEYDB] = "keydb"};
    const int *version = facts->version;
    bool known = version[0] || version[1] || version[2];

    if (!known && facts->software == NXL_SOFTWARE_UNKNOWN)
        return;
    text_addf(t, ", %s", names[facts->software]);
    if (known)
        text_addf(t, " %d.%d.%d", version[0], version[1], version[2]);
}

static void add_naming(const nxl_server_facts *facts, struct text *t)
{
    if (!facts->sentinels)
        return;
    text_addf(t, ", named by %d of %d Sentinel%s", facts->sentinels_naming,
        facts->sentinels, facts->sentinels == 1 ? "" : "s");
    if (facts->confirmed_ms < 0)
        return;
    text_add(t, " ");
    text_add_duration(t, (uint64_t)facts->confirmed_ms, false);
    text_add(t, " ago");
}

static void line_of(const nxl_server_facts *facts, struct text *t)
{
    static const char *const states[] = {[NXL_SERVER_DOWN] = "not connected",
        [NXL_SERVER_CONNECTING] = "connecting",
        [NXL_SERVER_UP] = "connected"};
    static const char *const roles[] = {[NXL_ROLE_UNKNOWN] = "",
        [NXL_ROLE_PRIMARY] = ", role primary",
        [NXL_ROLE_REPLICA] = ", role replica",
        [NXL_ROLE_ACTIVE_REPLICA] = ", role active replica"};

    text_set(t, facts->url);
    text_addf(t, ", %s", states[facts->state]);
    if (facts->tls)
        text_addf(t, " by %s", facts->tls_version);
    add_software(facts, t);
    text_add(t, roles[facts->role]);
    add_naming(facts, t);
    if (facts->cluster)
        text_add(t, ", Redis Cluster node");
    if (facts->strategy[0])
        text_addf(t, ", lock commands %s", facts->strategy);
    /* That it would poll is known before the first wait. */
    if (facts->waiting[0] && (!facts->in_line || facts->strategy[0]))
        text_addf(t, ", waits %s", facts->waiting);
    if (!facts->votes)
        text_addf(t, "; no vote: %s", facts->no_vote);
    if (facts->records[0])
        text_addf(t, "; records: %s", facts->records);
    if (facts->error[0])
        text_addf(t, "; last: %s", facts->error);
}

/* Collects the lines, as far as there is room, and counts what was wanted. */
struct sink {
    char *text;
    size_t size, wanted;
};

static void put(struct sink *sink, const char *words, size_t len)
{
    if (sink->wanted < sink->size) {
        size_t room = sink->size - sink->wanted - 1;
        size_t part = len < room ? len : room;
        memcpy(sink->text + sink->wanted, words, part);
        sink->text[sink->wanted + part] = '\0';
    }
    sink->wanted += len;
}

/* The lines of servers from ... end - 1. */
static size_t describe(
    nxl_client *client, size_t from, size_t end, char *text, size_t size)
{
    struct sink sink = {text, size, 0};
    put(&sink, "", 0);
    if (!client || client_forked(client))
        return 0;
    pthread_mutex_lock(&client->mutex);
    for (size_t i = from; i < end && i < client->server_count; i++) {
        if (i > from)
            put(&sink, "\n", 1);
        nxl_server_facts facts = NXL_SERVER_FACTS_INIT;
        struct text line;
        fill(nodes_at(&client->nodes, (unsigned)i), &facts);
        line_of(&facts, &line);
        put(&sink, line.data, line.len);
    }
    pthread_mutex_unlock(&client->mutex);
    return sink.wanted;
}

size_t nxl_client_describe(nxl_client *client, char *text, size_t size)
{
    return describe(client, 0, MAX_SERVERS, text, size);
}

size_t nxl_client_describe_server(
    nxl_client *client, size_t server, char *text, size_t size)
{
    return describe(client, server, server + 1, text, size);
}

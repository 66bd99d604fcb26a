/* SPDX-License-Identifier: MIT */
/*
 * Returns what is known about one server, as a structure for programs.
 *
 * Invariant: no member holds a secret. What a server says of itself is given
 * as a number, and its words only as the client's messages show them.
 */
#include <stdio.h>

#include "api/waiting.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "client/voters.h"
#include "core/lease.h"
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

static void add_voting(const struct nxl_client *client, unsigned server,
    uint64_t now, nxl_server_facts *facts)
{
    struct text words;

    text_clear(&words);
    voters_words(client, server, now, &words);
    facts->votes = words.len == 0;
    text_copy(&words, facts->no_vote, sizeof(facts->no_vote));
    facts->guarded = client->guard;
}

static void add_strategy(const struct server *s, nxl_server_facts *facts)
{
    struct text words;

    if (s->state != SERVER_UP)
        return;
    text_clear(&words);
    strategies_describe(&s->dialect, &words);
    text_copy(&words, facts->strategy, sizeof(facts->strategy));
    /* The first way to release is a script, but a program that only inspects
     * has not tried it yet; its way to inspect, a script too, must be the first
     * as well. */
    facts->scripts = !strategies_weak(&s->dialect) &&
                     s->dialect.at[VERB_RELEASE] == 0 &&
                     s->dialect.at[VERB_INSPECT] == 0;
}

static void add_waiting(
    const struct nxl_client *client, unsigned server, nxl_server_facts *facts)
{
    struct text words;

    if (client->servers[server].state != SERVER_UP)
        return;
    text_clear(&words);
    facts->in_line = waiting_describe(client, &words);
    text_copy(&words, facts->waiting, sizeof(facts->waiting));
}

static void add_error(const struct server *s, nxl_server_facts *facts)
{
    if (s->state != SERVER_DOWN)
        return;
    text_copy(&s->why, facts->error, sizeof(facts->error));
    facts->sentinel = s->why_fault == FAULT_SENTINEL;
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
        facts->tls_verify = (int)s->endpoint.settings.verify;
    }
    facts->certificate_ends_s = known.ends_s;
    facts->own_certificate_ends_s = known.own_ends_s;
    facts->local = known.local;
}

static void fill(
    const struct nxl_client *client, unsigned server, nxl_server_facts *facts)
{
    const struct server *s = &client->servers[server];

    facts->state = state_of(s);
    text_copy(&s->endpoint.name, facts->url, sizeof(facts->url));
    facts->software = software_of(&s->facts);
    (void)sscanf(s->facts.version, "%9d.%9d.%9d", &facts->version[0],
        &facts->version[1], &facts->version[2]);
    facts->role = role_of(&s->facts);
    facts->cluster = s->facts.cluster;
    facts->unfit = eligibility_unfit(&client->voters[server].eligibility);
    add_strategy(s, facts);
    add_waiting(client, server, facts);
    add_voting(client, server, clock_now(), facts);
    add_error(s, facts);
    add_connection(s, facts);
    facts->timeout_ms = (int64_t)(client->timeout_ns / NS_PER_MS);
    facts->min_ttl_ms = lease_least_ttl_ms(client->drift_ppm);
    facts->max_ttl_ms = client->max_ttl_ms;
    facts->logged_in = s->logged_in;
    facts->sends_password = login_is_sent(&s->login);
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
    fill(client, (unsigned)server, &all);
    pthread_mutex_unlock(&client->mutex);
    all.size = facts->size;
    memcpy(facts, &all, size);
    return NXL_OK;
}

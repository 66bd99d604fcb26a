/* SPDX-License-Identifier: MIT */
/*
 * Asks servers: that of a URL, the Sentinels that the URL lists, and the
 * replicas, one of which a failover makes the primary.
 *
 * Invariant: nothing is changed at any of them. A password goes to a replica,
 * whose address the primary names, only over TLS or on this machine.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/answer.h"
#include "cli/clock.h"
#include "cli/doctor/doctor_state.h"
#include "cli/look/foreign.h"
#include "cli/report/report.h"

#define WORDS_MAX 8
#define SECONDS_MOST (INT64_C(1) << 40)
#define MOST 8  /* services of a Sentinel that are looked at */
#define LOOKS 4 /* connections, to find a load balancer */
#define PEER_INIT                                                              \
    (struct peer)                                                              \
    {                                                                          \
        .facts = NXL_SERVER_FACTS_INIT                                         \
    }

/* ----------------------------------------------------------------- a server */

int peer_ask(const struct peer *peer, const char *text, const char *last,
    struct answer **answer)
{
    const char *words[WORDS_MAX];
    char copy[64];
    size_t count = 0;

    snprintf(copy, sizeof(copy), "%s", text);
    for (char *rest = copy, *word; (word = strsep(&rest, " "));)
        words[count++] = word;
    if (last)
        words[count++] = last;
    return client_ask(peer->client, peer->number, count, words, NULL, answer);
}

const char *peer_field(
    const struct peer *peer, const char *name, char out[FIELD_ROOM])
{
    const char *at = answer_item(peer->info, 0, NULL);
    size_t length = strlen(name);

    out[0] = '\0';
    for (; at; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (strncmp(at, name, length) == 0 && at[length] == ':') {
            at += length + 1;
            snprintf(out, FIELD_ROOM, "%.*s", (int)strcspn(at, "\r\n"), at);
            return out;
        }
    }
    return out;
}

int64_t peer_number(const struct peer *peer, const char *name)
{
    char text[FIELD_ROOM];
    int64_t number;

    return number_read(peer_field(peer, name, text), EXACT_MAX, &number)
               ? number
               : -1;
}

/* The server's time in microseconds since 1970; -1: it does not tell. */
static int64_t peer_time_us(const struct peer *peer)
{
    struct answer *answer;
    int64_t s, us;
    bool told = peer_ask(peer, "TIME", NULL, &answer) == NXL_OK &&
                answer_number(answer, 0, SECONDS_MOST, &s) &&
                answer_number(answer, 1, US_PER_S, &us);

    answer_free(answer);
    return told ? s * US_PER_S + us : -1;
}

const char *peer_why(const struct peer *peer)
{
    const char *why = peer->client ? nxl_client_errmsg(peer->client) : "";
    size_t length = strlen(peer->facts.url);

    if (strncmp(why, peer->facts.url, length) == 0 &&
        strncmp(why + length, ": ", 2) == 0)
        why += length + 2;
    return failure_words(why, peer->result);
}

bool peer_in_clear(const struct peer *peer)
{
    const nxl_server_facts *facts = &peer->facts;

    return facts->state == NXL_SERVER_UP && facts->sends_password &&
           !facts->tls && !facts->local;
}

bool peer_read(struct peer *peer)
{
    answer_free(peer->info);
    peer->read_at = nxl_now_ns();
    peer->result = peer_ask(peer, "INFO", NULL, &peer->info);
    /* Only now is it known which server Sentinels name. */
    (void)nxl_client_server_facts(peer->client, peer->number, &peer->facts);
    return peer->result == NXL_OK || peer->facts.logged_in;
}

static void peer_free(struct peer *peer)
{
    answer_free(peer->info);
    nxl_client_free(peer->client);
}

static nxl_client_options options_of(const struct doctor *d)
{
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;

    options.timeout_ms = d->args->timeout_ms;
    return options;
}

/* Is it another server, and not just the same after a restart? */
static bool is_another(const struct peer *one, const struct peer *other)
{
    char id[FIELD_ROOM], other_id[FIELD_ROOM];
    int64_t passed_s = ms_between(one->read_at, nxl_now_ns()) / MS_PER_S;

    peer_field(one, "run_id", id);
    peer_field(other, "run_id", other_id);
    return id[0] != '\0' && other_id[0] != '\0' && strcmp(id, other_id) != 0 &&
           peer_number(other, "uptime_in_seconds") > passed_s + 1;
}

bool doctor_leads_elsewhere(struct doctor *d)
{
    nxl_client_options options = options_of(d);
    bool another = false;

    for (int i = 0; i < LOOKS && !another && d->own.facts.sentinels == 0; i++) {
        struct peer peer = PEER_INIT;
        peer.number = d->own.number;
        another =
            nxl_client_new_urls(&peer.client, (const char *const *)d->urls.urls,
                d->urls.count, &options) == NXL_OK &&
            peer_read(&peer) && is_another(&d->own, &peer);
        peer_free(&peer);
    }
    return another;
}

/* ---------------------------------------------------------------- Sentinels */

/* Reads "master0:name=SERVICE,status=ok,address=10.0.0.2:6379,slaves=1,
 * sentinels=3", which counts the Sentinel itself. */
static bool read_service(struct doctor *d, const struct peer *peer,
    const char *service, struct companion_server *s)
{
    char field[32], line[FIELD_ROOM];
    size_t length = strlen(service);

    for (unsigned i = 0; i < MOST; i++) {
        snprintf(field, sizeof(field), "master%u", i);
        peer_field(peer, field, line);
        const char *address = strstr(line, ",address=");
        const char *count = strstr(line, ",sentinels=");
        if (!address || !count || strncmp(line, "name=", 5) != 0 ||
            strncmp(line + 5, service, length) != 0 || line[5 + length] != ',')
            continue;
        address += strlen(",address=");
        snprintf(s->named, sizeof(s->named), "%.*s", (int)strcspn(address, ","),
            foreign(address));
        int64_t known = strtoll(count + strlen(",sentinels="), NULL, 10);
        d->sentinels = known > d->sentinels ? known : d->sentinels;
        return true;
    }
    return false;
}

void doctor_ask_sentinel(struct doctor *d, size_t i)
{
    nxl_client_options options = options_of(d);
    struct companion_server *s = &d->other;
    struct peer peer = PEER_INIT;
    char service[URL_VALUE_ROOM];

    *s = (struct companion_server){.answers = false};
    peer.result = NXL_E_NOMEM;
    if (url_sentinel(d->url, i, s->at, sizeof(s->at)) &&
        url_text(d->url, "service", service, sizeof(service)))
        peer.result = client_new_sentinel(&peer.client, d->url, i, 0, &options);
    if (peer.result == NXL_OK)
        (void)peer_read(&peer);
    s->answers = peer.info && read_service(d, &peer, service, s);
    snprintf(s->why, sizeof(s->why), "%s",
        peer.info ? "it does not know the service" : peer_why(&peer));
    s->in_clear = peer_in_clear(&peer);
    if (d->primary[0] == '\0')
        memcpy(d->primary, s->named, sizeof(s->named));
    peer_free(&peer);
}

/* ----------------------------------------------------------------- replicas */

/* A client for the replica, with the user, the password and the TLS parameters
 * of the primary's URL, but without guards, for which a client may write. */
static nxl_client *connect_to(struct doctor *d, struct companion_server *r,
    const char *host, const char *port)
{
    static const char *const guards[] = {
        "guard_failover", "guard_restarts", "durable"};
    nxl_client_options options = options_of(d);
    bool safe = url_facts(d->url).encrypts && !url_facts(d->url).trusts_anybody;
    bool is_here = strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0;
    nxl_client *client = NULL;
    struct url_list list;

    if (url_names_password(d->url) && !safe && !is_here) {
        snprintf(r->why, sizeof(r->why),
            "the password would be sent there without TLS");
        return NULL;
    }
    options.guard_restarts = NXL_GUARD_OFF;
    options.errbuf = r->why;
    options.errbuf_size = sizeof(r->why);
    if (!url_list_make(&list, &d->url, 1, NULL))
        return NULL;
    for (size_t i = 0; i < sizeof(guards) / sizeof(guards[0]); i++)
        url_list_drop(&list, guards[i]);
    if (!url_list_lead(&list, 0, host, port) ||
        nxl_client_new(&client, list.urls[0], &options) != NXL_OK)
        client = NULL;
    url_list_free(&list);
    return client;
}

/* From "slave0:ip=10.0.0.2,port=6379,state=online,..." in INFO. */
bool doctor_ask_replica(struct doctor *d, unsigned i)
{
    struct companion_server *r = &d->other;
    char field[32], line[FIELD_ROOM], host[104], port[8];
    struct peer peer = PEER_INIT;

    *r = (struct companion_server){.answers = false};
    snprintf(field, sizeof(field), "slave%u", i);
    peer_field(&d->own, field, line);
    if (sscanf(line, "ip=%100[-.:_A-Za-z0-9],port=%5[0-9],", host, port) != 2)
        return false;
    snprintf(r->at, sizeof(r->at), "%s:%s", host, port);
    peer.client = connect_to(d, r, host, port);
    if (!peer.client)
        return true;
    if (peer_read(&peer)) {
        r->priority = peer_number(&peer, "slave_priority");
        int64_t before = peer_time_us(&d->own);
        int64_t there = peer_time_us(&peer);
        int64_t after = peer_time_us(&d->own);
        r->answers = before >= 0 && there >= 0 && after >= 0;
        r->ahead_us = there > after    ? there - after
                      : there < before ? there - before
                                       : 0;
    }
    r->denies = peer.result == NXL_E_DENIED;
    snprintf(r->why, sizeof(r->why), "%s", peer_why(&peer));
    peer_free(&peer);
    return true;
}

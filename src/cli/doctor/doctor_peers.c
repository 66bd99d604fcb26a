/* SPDX-License-Identifier: MIT */
/*
 * Asks servers: that of a URL, and its replicas, one of which a failover makes
 * the primary.
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
    if (another) /* whatever else is wrong there: the URL is */
        diagnostic_code(&d->diagnostics, EXIT_CONFIG);
    return another;
}

/* ----------------------------------------------------------------- replicas */

/* A client for the replica, with the login and the TLS of the primary's URL. */
static nxl_client *connect_to(struct doctor *d, const char *host, unsigned port)
{
    struct replica *r = &d->replica;
    nxl_client_options options = options_of(d);
    bool safe = url_facts(d->url).encrypts && !url_facts(d->url).trusts_anybody;
    bool is_here = strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0;
    nxl_client *client = NULL;

    options.errbuf = r->unknown;
    options.errbuf_size = sizeof(r->unknown);
    if (url_facts(d->url).names_password && !safe && !is_here)
        snprintf(r->unknown, sizeof(r->unknown),
            "the password would be sent there without TLS");
    else
        (void)!client_new_replica(
            &client, d->url, host, (uint16_t)port, &options);
    return client;
}

/* Its clock, between two looks at the primary's. False: it is unknown. */
static bool compare_clocks(struct doctor *d, const struct peer *peer)
{
    int64_t before = peer_time_us(&d->own);
    int64_t there = peer_time_us(peer);
    int64_t after = peer_time_us(&d->own);

    d->replica.ahead_us = there > after    ? there - after
                          : there < before ? there - before
                                           : 0;
    return before >= 0 && there >= 0 && after >= 0;
}

/* From "slave0:ip=10.0.0.2,port=6379,state=online,..." in INFO. */
bool doctor_ask_replica(struct doctor *d, unsigned i)
{
    struct replica *r = &d->replica;
    char field[32], line[FIELD_ROOM], host[104];
    unsigned port;
    struct peer peer = PEER_INIT;

    *r = (struct replica){.priority = -1};
    snprintf(field, sizeof(field), "slave%u", i);
    peer_field(&d->own, field, line);
    if (sscanf(line, "ip=%100[-.:_A-Za-z0-9],port=%5u,", host, &port) != 2 ||
        port > UINT16_MAX)
        return false;
    snprintf(r->at, sizeof(r->at), "%s:%u", host, port);
    peer.client = connect_to(d, host, port);
    if (!peer.client)
        return true;
    bool known = peer_read(&peer) && compare_clocks(d, &peer);
    r->priority = peer_number(&peer, "slave_priority");
    if (!known)
        snprintf(r->unknown, sizeof(r->unknown), "%s", peer_why(&peer));
    peer_free(&peer);
    return true;
}

/* SPDX-License-Identifier: MIT */
/*
 * Queries a Sentinel for what it knows of the service.
 *
 * Invariant: what it does not say is unknown, and nothing is changed there.
 */
#include "cli/doctor/doctor_sentinel.h"

#include <stdio.h>
#include <string.h>

#include "cli/answer.h"
#include "cli/servers/connect.h"
#include "cli/look/foreign.h"
#include "cli/report/report.h"

#define NUMBER_MOST (INT64_C(1) << 53)

/* The value behind name, in an answer of names and values; "": none. */
static const char *field(const struct answer *answer, const char *name)
{
    for (size_t i = 0; i + 1 < answer_count(answer); i += 2) {
        const char *is = answer_item(answer, i, NULL);
        const char *value = answer_item(answer, i + 1, NULL);
        if (is && value && strcmp(is, name) == 0)
            return value;
    }
    return "";
}

static int64_t number(const struct answer *answer, const char *name)
{
    int64_t value;

    return number_read(field(answer, name), NUMBER_MOST, &value) ? value : -1;
}

static void read_details(
    struct doctor_sentinel *s, const struct answer *details)
{
    const char *flags = field(details, "flags");

    s->heard_ms = number(details, "last-ok-ping-reply");
    s->others = number(details, "num-other-sentinels");
    s->quorum = number(details, "quorum");
    s->epoch = number(details, "config-epoch");
    s->suspects = strstr(flags, "s_down") || strstr(flags, "disconnected");
}

/* IPv6 in brackets. */
static void put_address(
    char *out, size_t size, const char *host, const char *port)
{
    bool v6 = strchr(host, ':');

    snprintf(out, size, "%s%s%s:%s", v6 ? "[" : "", foreign(host),
        v6 ? "]" : "", foreign(port));
}

/* False: it did not answer, and *s says why. */
static bool ask(struct doctor *d, const char *what, const char *service,
    struct doctor_sentinel *s, struct answer **answer)
{
    s->result = doctor_ask(d, 0, answer, "SENTINEL", what, service, NULL);
    if (s->result == NXL_OK)
        return true;
    snprintf(
        s->why, sizeof(s->why), "%s", failure_words(doctor_why(d), s->result));
    return false;
}

static bool ask_primary(
    struct doctor *d, const char *service, struct doctor_sentinel *s)
{
    struct answer *answer;

    if (!ask(d, "get-master-addr-by-name", service, s, &answer))
        return false;
    const char *host = answer_item(answer, 0, NULL);
    const char *port = answer_item(answer, 1, NULL);
    if (host && port)
        put_address(s->primary, sizeof(s->primary), host, port);
    else
        snprintf(
            s->why, sizeof(s->why), "it knows no service '%.400s'", service);
    s->result = host && port ? NXL_OK : NXL_E_URL;
    answer_free(answer);
    return host && port;
}

/* d is for this Sentinel. */
static void ask_all(
    struct doctor *d, const char *service, struct doctor_sentinel *s)
{
    struct answer *details, *info;

    if (!ask_primary(d, service, s) || !ask(d, "master", service, s, &details))
        return;
    read_details(s, details);
    answer_free(details);
    /* Needed for messages only. */
    (void)doctor_ask(d, 0, &s->known, "SENTINEL", "sentinels", service, NULL);
    if (doctor_ask(d, 0, &info, "INFO", "server", NULL) == NXL_OK)
        doctor_field(info, "run_id", s->id);
    answer_free(info);
    s->answered = true;
}

size_t doctor_sentinel_ask(
    struct doctor *d, size_t i, unsigned nth, struct doctor_sentinel *s)
{
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    char service[URL_VALUE_ROOM];
    struct doctor other = *d;
    struct url_list list;
    size_t addresses = 0;

    *s = (struct doctor_sentinel){.result = NXL_E_NOMEM,
        .heard_ms = -1,
        .others = -1,
        .quorum = -1,
        .epoch = -1,
        .why = "out of memory"};
    if (!connect_urls(d->args, &list))
        return 0;
    options.timeout_ms = d->args->timeout_ms;
    options.errbuf = s->why;
    options.errbuf_size = sizeof(s->why);
    if (url_sentinel(list.urls[0], i, s->at, sizeof(s->at)) &&
        url_text(list.urls[0], "service", service, sizeof(service)))
        s->result =
            client_new_sentinel(&other.client, list.urls[0], i, nth, &options);
    if (!url_text(list.urls[0], "sentinel_user", s->user, sizeof(s->user)))
        snprintf(s->user, sizeof(s->user), "default");
    url_list_free(&list);
    if (s->result != NXL_OK)
        return 0;
    other.diagnostics.server = s->at;
    ask_all(&other, service, s);
    s->denied = s->result == NXL_E_DENIED && strstr(s->why, "NOPERM");
    nxl_server_facts facts = doctor_facts(&other, 0);
    s->in_clear = facts.sends_password && facts.state == NXL_SERVER_UP &&
                  !facts.tls && !facts.local;
    addresses = client_addresses(other.client);
    nxl_client_free(other.client);
    return addresses;
}

void doctor_sentinel_free(struct doctor_sentinel *s)
{
    answer_free(s->known);
    s->known = NULL;
}

bool doctor_sentinel_other(
    const struct doctor_sentinel *s, size_t number, char out[SENTINEL_AT])
{
    const char *host = NULL;
    size_t found = 0;

    /* A list of names and values for each of them, one behind the other. */
    for (size_t i = 0; i + 1 < answer_count(s->known); i += 2) {
        const char *name = answer_item(s->known, i, NULL);
        const char *value = answer_item(s->known, i + 1, NULL);
        if (!name || !value)
            continue;
        if (strcmp(name, "ip") == 0)
            host = value;
        if (strcmp(name, "port") != 0 || !host || found++ < number)
            continue;
        put_address(out, SENTINEL_AT, host, value);
        return true;
    }
    return false;
}

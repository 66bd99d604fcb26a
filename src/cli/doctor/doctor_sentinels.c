/* SPDX-License-Identifier: MIT */
/*
 * Checks the Sentinels that a URL lists: whether each answers and names the
 * same primary, whether all of them are listed, and whether they are enough.
 * Whether a majority agrees is seen by the trial of a lock.
 *
 * Invariant: nothing is changed at a Sentinel.
 */
#include <stdio.h>
#include <string.h>

#include "cli/answer.h"
#include "cli/doctor/doctor_state.h"
#include "cli/look/foreign.h"
#include "cli/report/report.h"

#define FEW 3

/* ---------------------------------------------------------- one after another
 */

/* The value behind name, in an answer of names and values; "": none. */
static const char *value_of(const struct answer *answer, const char *name)
{
    for (size_t i = 0; i + 1 < answer_count(answer); i += 2) {
        const char *is = answer_item(answer, i, NULL);
        const char *value = answer_item(answer, i + 1, NULL);
        if (is && value && strcmp(is, name) == 0)
            return value;
    }
    return "";
}

static int64_t number_of(const struct answer *answer, const char *name)
{
    int64_t number;
    bool known = number_read(value_of(answer, name), EXACT_MAX, &number);

    return known ? number : -1;
}

/* Asks a Sentinel for the service; d is for the Sentinel. */
static int ask_service(
    struct doctor *d, const char *service, struct sentinels *s)
{
    struct answer *answer;
    int rc = doctor_ask(d, "SENTINEL master", service, &answer);

    if (rc != NXL_OK)
        return rc;
    const char *host = value_of(answer, "ip");
    bool v6 = strchr(host, ':');
    int64_t known = number_of(answer, "num-other-sentinels") + 1;
    snprintf(s->named, sizeof(s->named), "%s%s%s:%s", v6 ? "[" : "",
        foreign(host), v6 ? "]" : "", foreign(value_of(answer, "port")));
    if (s->primary[0] == '\0')
        snprintf(s->primary, sizeof(s->primary), "%s", s->named);
    s->quorum = number_of(answer, "quorum");
    s->known = known > s->known ? known : s->known;
    answer_free(answer);
    return NXL_OK;
}

/* Asks Sentinel i of the URL. */
static void ask(struct doctor *d, size_t i, struct sentinels *s)
{
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    const char *url = d->urls.urls[d->server];
    struct doctor other = {.facts = NXL_SERVER_FACTS_INIT};
    char service[URL_VALUE_ROOM];
    int rc = NXL_E_NOMEM;

    options.timeout_ms = d->args->timeout_ms;
    s->named[0] = '\0';
    if (url_sentinel(url, i, s->at, sizeof(s->at)) &&
        url_text(url, "service", service, sizeof(service)))
        rc = client_new_sentinel(&other.client, url, i, 0, &options);
    if (rc == NXL_OK)
        rc = ask_service(&other, service, s);
    snprintf(s->why, sizeof(s->why), "%s",
        failure_words(other.client ? doctor_why(&other) : "", rc));
    (void)nxl_client_server_facts(other.client, 0, &other.facts);
    s->in_clear = doctor_in_clear(&other.facts);
    nxl_client_free(other.client);
}

/* --------------------------------------------------------------- the checks */

static bool is_silent(struct doctor *d)
{
    return d->sentinels.named[0] == '\0' &&
           doctor_detail(d, "%s", d->sentinels.why);
}

static bool differs(struct doctor *d)
{
    return strcmp(d->sentinels.named, d->sentinels.primary) != 0 &&
           doctor_detail(
               d, "%s, not %s", d->sentinels.named, d->sentinels.primary);
}

static bool names_primary(struct doctor *d)
{
    return doctor_detail(d, "%s", d->sentinels.named);
}

/* A failover begins when a quorum of those that know each other takes the
 * primary for down. */
static bool has_odd_quorum(struct doctor *d)
{
    const struct sentinels *s = &d->sentinels;
    bool odd = s->quorum > s->known || s->quorum < s->known / 2 + 1;

    return s->named[0] != '\0' && odd &&
           doctor_detail(d, "%lld", (long long)s->quorum);
}

static bool sends_in_clear(struct doctor *d)
{
    return d->sentinels.in_clear;
}

static bool lists_not_all(struct doctor *d)
{
    return d->facts.sentinels < d->sentinels.known &&
           doctor_detail(d, "%d of %lld", d->facts.sentinels,
               (long long)d->sentinels.known);
}

static bool are_few(struct doctor *d)
{
    return d->facts.sentinels < FEW && d->sentinels.known < FEW;
}

static const struct check each[] = {
    {"sentinel", is_silent, LEVEL_WARN, 0, "does not count", NULL},
    {"sentinel", differs, LEVEL_WARN, 0, "disagrees about the primary",
        "during a failover, wait; otherwise check the network between the "
        "Sentinels, or correct one: SENTINEL REMOVE SERVICE, then SENTINEL "
        "MONITOR SERVICE HOST PORT QUORUM"},
    {"sentinel", names_primary, LEVEL_OK, 0, "names", NULL},
    {"quorum", has_odd_quorum, LEVEL_WARN, 0,
        "below a majority it lets Sentinels that are cut off begin a failover, "
        "above their number it prevents any",
        "SENTINEL SET SERVICE quorum N, a majority, at each of them"},
    {"password", sends_in_clear, LEVEL_WARN, 0,
        "it is sent to another machine without TLS: whoever is in between can "
        "read it",
        "write rediss+sentinel:// or sentinel_tls=1, or use a tunnel"},
};

static const struct check together[] = {
    {"sentinels", lists_not_all, LEVEL_WARN, 0,
        "the URL does not list all of them, but a majority of all must answer",
        "list all in the URL of all programs, by addresses that clients can "
        "reach (sentinel announce-ip)"},
    {"sentinels", are_few, LEVEL_WARN, 0,
        "while one of so few is down, no lock is granted and no failover "
        "begins",
        "run three or more, each on its own machine"},
};

void doctor_sentinels(struct doctor *d)
{
    size_t hosts = url_facts(d->urls.urls[d->server]).sentinels;
    const char *server = d->diagnostics.server;

    for (size_t i = 0; i < hosts; i++) {
        ask(d, i, &d->sentinels);
        d->diagnostics.server = d->sentinels.at;
        DOCTOR_JUDGE(d, each);
    }
    d->diagnostics.server = NULL;
    if (hosts > 0)
        DOCTOR_JUDGE(d, together);
    d->diagnostics.server = server;
}

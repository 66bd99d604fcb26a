/* SPDX-License-Identifier: MIT */
/*
 * Checks what a failover would do to locks: how long they pause, what a primary
 * does that is cut off from its replicas, whether the clocks of the replicas
 * agree with its own, and which of them is promoted. docs/failover.md has the
 * reasons.
 *
 * Invariant: nothing is changed on any server. A password goes to a replica,
 * whose address the primary names, only where doctor does not warn of sending
 * it: over TLS, or on this machine.
 */
#include "cli/doctor/doctor_failover.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/private.h"
#include "cli/answer.h"
#include "cli/servers/connect.h"
#include "cli/doctor/doctor_clock.h"
#include "cli/doctor/doctor_replicas.h"
#include "cli/report/duration.h"
#include "cli/look/foreign.h"

#define LAG_S 2 /* that docs/failover.md recommends */
#define FAR_TIMES 10
/* After a planned failover a pause of a second makes up for a clock that is
 * ahead by less; see "Planned changes" in docs/failover.md. */
#define AHEAD_US (6 * US_PER_MS)
#define BEHIND_US US_PER_S
#define COMPARED 8 /* replicas of a server */
#define IN ", at the primary and its replicas, in their configuration files too"

/* ------------------------------------------------------------ cut off */

static bool has_config(struct doctor *d, size_t server, const char *name,
    const char *old_name, int64_t *value)
{
    char text[DOCTOR_FIELD];

    return (doctor_config(d, server, name, text) ||
               doctor_config(d, server, old_name, text)) &&
           number_read(text, INT32_MAX, value);
}

/* A primary stops its writes while it has too few replicas, if that is
 * configured; then INFO counts those that are good enough. */
static void check_cut_off(
    struct doctor *d, size_t server, const struct answer *info, long replicas)
{
    char good[DOCTOR_FIELD];
    bool guarded = doctor_facts(d, server).failover_guarded;
    char lag[DURATION_ROOM];
    int64_t lag_s;

    if (doctor_field(info, "min_slaves_good_slaves", good)[0] == '\0' &&
        doctor_facts(d, server).sentinels > 0 && guarded)
        diagnostic(&d->diagnostics, LEVEL_NOTE, "replicas",
            "CONFIG SET min-replicas-to-write 1, and min-replicas-max-lag 2" IN,
            "min-replicas-to-write is 0: a primary that is cut off from its "
            "replica%s goes on taking writes; what nxlock is granted there "
            "does not count, because no majority of the Sentinels names it",
            replicas == 1 ? "" : "s");
    else if (doctor_field(info, "min_slaves_good_slaves", good)[0] == '\0')
        diagnostic(&d->diagnostics, LEVEL_WARN, "replicas",
            "CONFIG SET min-replicas-to-write 1, and min-replicas-max-lag 2" IN
            "; locks then need a replica that answers",
            "min-replicas-to-write is 0: a primary that is cut off from its "
            "replica%s goes on granting locks to clients that still reach it, "
            "beside its successor%s",
            replicas == 1 ? "" : "s",
            guarded ? ", which guard_failover does not cover" : "");
    else if (!has_config(d, server, "min-replicas-max-lag",
                 "min-slaves-max-lag", &lag_s))
        diagnostic(&d->diagnostics, LEVEL_NOTE, "replicas", NULL,
            "a primary that is cut off from its replicas stops granting locks; "
            "after how long is unknown (min-replicas-max-lag, CONFIG GET)");
    else
        diagnostic(&d->diagnostics, lag_s > LAG_S ? LEVEL_NOTE : LEVEL_OK,
            "replicas",
            lag_s > LAG_S ? "CONFIG SET min-replicas-max-lag 2, or make sure "
                            "that no failover is faster than that"
                          : NULL,
            "a primary that is cut off from its replicas stops granting locks "
            "after %s (min-replicas-max-lag)",
            duration_text(lag, lag_s * 1000));
}

/* -------------------------------------------------------------- the pause */

/* How long locks pause, and whether the leases in use need that. */
static void check_pause(struct doctor *d, size_t server)
{
    nxl_server_facts facts = doctor_facts(d, server);
    const char *after = facts.failover_guarded ? "failover" : "restart";
    const char *what = d->servers > 1 ? "has no vote" : "grants no lock";
    char most[DURATION_ROOM], ttl[DURATION_ROOM];

    if (!facts.guarded)
        return;
    duration_text(most, facts.max_ttl_ms);
    duration_text(ttl, d->args->ttl_ms);
    if (facts.max_ttl_ms / FAR_TIMES > d->args->ttl_ms)
        diagnostic(&d->diagnostics, LEVEL_NOTE, "pause",
            "set max_ttl_ms to the longest lease in use, the same in the URLs "
            "of all programs",
            "after a %s it %s for a little longer than max_ttl_ms, which is "
            "%s; with leases of %s (%s) less would do",
            after, what, most, ttl,
            d->args->ttl ? "--ttl" : "the default of --ttl");
    else
        diagnostic(&d->diagnostics, LEVEL_OK, "pause", NULL,
            "after a %s it %s for a little longer than max_ttl_ms (%s)", after,
            what, most);
}

/* ----------------------------------------------------------------- each
 * replica */

struct replica {
    char host[DOCTOR_FIELD];
    char port[DOCTOR_FIELD];
};

/* "slave0:ip=10.0.0.2,port=6379,state=online,..." False: there is no such
 * replica. Without a host: INFO does not tell a usable address. */
static bool find_replica(
    const struct answer *info, unsigned number, struct replica *r)
{
    char name[32], line[DOCTOR_FIELD];
    unsigned port;

    snprintf(name, sizeof(name), "slave%u", number);
    doctor_field(info, name, line);
    r->host[0] = '\0';
    if (line[0] == '\0')
        return false;
    if (sscanf(line, "ip=%100[-.:_A-Za-z0-9],port=%5u,", r->host, &port) != 2 ||
        port == 0)
        r->host[0] = '\0';
    else
        snprintf(r->port, sizeof(r->port), "%u", port);
    return true;
}

static bool is_here(const struct replica *r)
{
    return strncmp(r->host, "127.", 4) == 0 || strcmp(r->host, "::1") == 0;
}

/* A client for the replica, with the user, the password and the TLS parameters
 * of the primary's URL, but without guards, for which a client may write. NULL:
 * *why says why not. */
static nxl_client *replica_client(
    struct doctor *d, size_t server, const struct replica *r, const char **why)
{
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    nxl_client *client = NULL;
    struct url_list list;

    *why = "out of memory";
    if (!connect_urls(d->args, &list))
        return NULL;
    const char *url = list.urls[server];
    bool safe = url_facts(url).encrypts && !url_facts(url).trusts_anybody;
    if (url_names_password(url) && !safe && !is_here(r)) {
        *why = "the password would be sent there without TLS";
    } else if (url_list_lead(&list, server, r->host, r->port)) {
        url_list_drop(&list, "guard_failover");
        url_list_drop(&list, "guard_restarts");
        url_list_drop(&list, "durable");
        url = list.urls[server];
        options.timeout_ms = d->args->timeout_ms;
        options.guard_restarts = NXL_GUARD_OFF;
        *why = "its URL cannot be made of the primary's";
        if (nxl_client_new(&client, url, &options) != NXL_OK)
            client = NULL;
    }
    url_list_free(&list);
    return client;
}

static void report_lead(
    struct doctor *d, bool guarded, const char *name, struct clock_lead lead)
{
    char by[DURATION_ROOM], within[DURATION_ROOM];
    const char *way = lead.ahead_us < 0 ? "behind" : "ahead of";
    int64_t far = llabs(lead.ahead_us) - lead.unsure_us;
    bool ahead = lead.ahead_us > 0 && far >= AHEAD_US;
    bool behind = lead.ahead_us < 0 && far >= BEHIND_US;

    duration_text(by, llabs(lead.ahead_us) / US_PER_MS);
    duration_text(within, lead.unsure_us / US_PER_MS + 1);
    if (ahead || behind)
        diagnostic(&d->diagnostics, LEVEL_WARN, "clock",
            "synchronize the clocks of both servers with NTP",
            "the replica %s is %s %s the primary: after a failover to it %s",
            name, by, way,
            behind    ? "a fencing token may be smaller than the one before"
            : guarded ? "locks end that much too early, so even after FAILOVER "
                        "they pause for longer than 1s"
                      : "locks end that much too early, while their holders "
                        "count on them");
    else
        diagnostic(&d->diagnostics,
            llabs(lead.ahead_us) + lead.unsure_us < AHEAD_US ? LEVEL_OK
                                                             : LEVEL_NOTE,
            "clock", NULL, "the replica %s is %s %s the primary, to within %s",
            name, by, way, within);
}

static void report_not_checked(
    struct doctor *d, const char *name, const char *why)
{
    diagnostic(&d->diagnostics, LEVEL_NOTE, "clock", NULL,
        "of the replica %s: not checked: %s", name, why);
}

/* Compares the replica's clock with the primary's, and reads its priority. */
static void check_replica(struct doctor *d, size_t server,
    const struct replica *r, struct replica_priorities *priorities)
{
    struct clock_lead here, there;
    struct doctor other = *d;
    char name[2 * DOCTOR_FIELD];
    const char *why;

    snprintf(name, sizeof(name), "%s:%s", r->host, r->port);
    other.client = replica_client(d, server, r, &why);
    if (!other.client) {
        report_not_checked(d, name, why);
        priorities->unknown++;
        return;
    }
    doctor_priority(&other, priorities);
    if (!doctor_clock_lead(&other, 0, &there))
        report_not_checked(d, name, nxl_client_errmsg(other.client));
    else if (!doctor_clock_lead(d, server, &here))
        report_not_checked(d, name, doctor_why(d));
    else
        report_lead(d, doctor_facts(d, server).failover_guarded, name,
            (struct clock_lead){there.ahead_us - here.ahead_us,
                there.unsure_us + here.unsure_us});
    nxl_client_free(other.client);
}

static void check_each(
    struct doctor *d, size_t server, const struct answer *info)
{
    struct replica_priorities priorities = {0};
    struct replica replica;

    for (unsigned i = 0; find_replica(info, i, &replica); i++) {
        if (i == COMPARED) {
            diagnostic(&d->diagnostics, LEVEL_NOTE, "clock", NULL,
                "of the first %d replicas only", COMPARED);
            break;
        }
        if (replica.host[0] != '\0') {
            check_replica(d, server, &replica, &priorities);
            continue;
        }
        priorities.unknown++;
        diagnostic(&d->diagnostics, LEVEL_NOTE, "clock", NULL,
            "of replica %u: not checked: INFO does not tell its address", i);
    }
    if (doctor_wait_replicas(d, server) > 0)
        doctor_priorities(d, server, &priorities);
}

void doctor_failover(struct doctor *d, size_t server, const struct answer *info)
{
    char text[DOCTOR_FIELD];
    nxl_server_facts facts = doctor_facts(d, server);

    if (facts.role != NXL_ROLE_PRIMARY || facts.unfit)
        return;
    long replicas =
        strtol(doctor_field(info, "connected_slaves", text), NULL, 10);
    doctor_replicas(d, server, info);
    if (replicas > 0) {
        check_cut_off(d, server, info, replicas);
        check_each(d, server, info);
    }
    check_pause(d, server);
    doctor_durability(d, server, info);
}

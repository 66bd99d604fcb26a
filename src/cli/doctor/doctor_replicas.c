/* SPDX-License-Identifier: MIT */
/*
 * Checks the replicas, one of which a failover makes the primary: whether their
 * clocks agree with the primary's, and whether the one that is promoted has
 * what wait_replicas counted.
 *
 * Invariant: nothing is changed on a replica. A password goes to one, whose
 * address the primary names, only over TLS or on this machine.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/doctor/doctor_state.h"
#include "cli/report/duration.h"

#define MOST 8 /* replicas that are asked */
/* After a planned failover a pause of a second makes up for a clock that is
 * ahead by less; see "Planned changes" in docs/failover.md. */
#define AHEAD_US (6 * US_PER_MS)
#define BEHIND_US US_PER_S

/* Finds "slave0:ip=10.0.0.2,port=6379,state=online,...". */
static bool find(struct doctor *d, unsigned number)
{
    struct replica *r = &d->replica;
    char name[32], line[FIELD_ROOM];

    snprintf(name, sizeof(name), "slave%u", number);
    doctor_field(d->info, name, line);
    *r = (struct replica){0};
    return sscanf(line, "ip=%100[-.:_A-Za-z0-9],port=%5[0-9],", r->host,
               r->port) == 2;
}

static bool is_here(const char *host)
{
    return strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0;
}

/* A client for the replica, with the user, the password and the TLS parameters
 * of the primary's URL, but without guards, for which a client may write. */
static nxl_client *connect_to(struct doctor *d, struct replica *r)
{
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    const char *url = d->urls.urls[d->server];
    bool safe = url_facts(url).encrypts && !url_facts(url).trusts_anybody;
    nxl_client *client = NULL;
    struct url_list list;

    if (url_names_password(url) && !safe && !is_here(r->host)) {
        snprintf(r->why, sizeof(r->why),
            "the password would be sent there without TLS");
        return NULL;
    }
    options.timeout_ms = d->args->timeout_ms;
    options.guard_restarts = NXL_GUARD_OFF;
    options.errbuf = r->why;
    options.errbuf_size = sizeof(r->why);
    if (!url_list_make(&list, &url, 1, NULL))
        return NULL;
    url_list_drop(&list, "guard_failover");
    url_list_drop(&list, "guard_restarts");
    url_list_drop(&list, "durable");
    if (!url_list_lead(&list, 0, r->host, r->port) ||
        nxl_client_new(&client, list.urls[0], &options) != NXL_OK)
        client = NULL;
    url_list_free(&list);
    return client;
}

/* Reads its priority, and its clock between two looks at the primary's. */
static void ask(struct doctor *d, struct replica *r)
{
    struct doctor other = {.facts = NXL_SERVER_FACTS_INIT};

    other.client = connect_to(d, r);
    if (!other.client)
        return;
    if (doctor_read(&other, 0)) {
        r->priority = doctor_number(other.info, "slave_priority");
        int64_t before = doctor_time_us(d);
        int64_t there = doctor_time_us(&other);
        int64_t after = doctor_time_us(d);
        r->answers = before >= 0 && there >= 0 && after >= 0;
        r->ahead_us = there > after    ? there - after
                      : there < before ? there - before
                                       : 0;
    }
    r->denies = other.result == NXL_E_DENIED;
    snprintf(r->why, sizeof(r->why), "%s", doctor_why(&other));
    answer_free(other.info);
    nxl_client_free(other.client);
}

static bool is_silent(struct doctor *d)
{
    return !d->replica.answers && doctor_detail(d, "%s:%s: %s", d->replica.host,
                                      d->replica.port, d->replica.why);
}

static bool is_denying(struct doctor *d)
{
    return d->replica.denies && is_silent(d);
}

static bool compared(struct doctor *d)
{
    char by[DURATION_ROOM];

    return doctor_detail(d, "%s:%s, by %s", d->replica.host, d->replica.port,
        duration_rough(by, llabs(d->replica.ahead_us) / US_PER_MS));
}

static bool is_ahead(struct doctor *d)
{
    return d->replica.ahead_us >= AHEAD_US && compared(d);
}

static bool is_behind(struct doctor *d)
{
    return d->replica.ahead_us <= -BEHIND_US && compared(d);
}

static const struct check each[] = {
    {"clock", is_denying, LEVEL_NOTE, 0, "of a replica: unknown",
        "give each replica the same users, passwords and permissions as the "
        "primary: after a failover clients need them there"},
    {"clock", is_silent, LEVEL_NOTE, 0, "of a replica: unknown",
        "if clients cannot reach it either, set replica-announce-ip: after a "
        "failover they need its address"},
    {"clock", is_ahead, LEVEL_WARN, 0,
        "a replica is ahead of the primary: after a failover locks end that "
        "much too early, while their holders count on them",
        "synchronize the clocks of both servers with NTP"},
    {"clock", is_behind, LEVEL_WARN, 0,
        "a replica is behind the primary: after a failover a fencing token may "
        "be smaller than the one before",
        "synchronize the clocks of both servers with NTP"},
};

/* Sentinels promote the replica with the smallest priority, also if it lacks
 * what others have confirmed to WAIT; one with 0 never. */
static void judge_priorities(struct doctor *d, bool equal, int64_t never)
{
    int64_t waits = url_facts(d->urls.urls[d->server]).wait_replicas;

    if (waits > 0 && (!equal || never >= waits))
        diagnostic(&d->diagnostics, LEVEL_WARN, "replica-priority",
            "CONFIG SET replica-priority 100 at each replica, in its "
            "configuration file too",
            "it is not the same at all replicas (0: never promoted), so the "
            "one that is promoted may lack locks that wait_replicas=%lld "
            "others have confirmed",
            (long long)waits);
}

void doctor_replicas(struct doctor *d)
{
    int64_t first = 0, never = 0;
    bool equal = true;

    for (unsigned i = 0; i < MOST && find(d, i); i++) {
        ask(d, &d->replica);
        DOCTOR_JUDGE(d, each);
        int64_t priority = d->replica.priority;
        never += d->replica.answers && priority == 0;
        if (priority <= 0)
            continue;
        equal = equal && (first == 0 || priority == first);
        first = priority;
    }
    judge_priorities(d, equal, never);
}

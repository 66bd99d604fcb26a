/* SPDX-License-Identifier: MIT */
/*
 * The checks of one server: what it says of itself that can let two clients
 * hold one lock, or that stops all of them.
 *
 * Invariant: nothing is changed on the server, and what it does not say is
 * never reported as ok.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/answer.h"
#include "cli/clock.h"
#include "cli/doctor/doctor_state.h"
#include "cli/look/foreign.h"
#include "cli/report/duration.h"
#include "cli/report/report.h"

#define IN_FILE ", in the server's configuration file too"
#define APART_US US_PER_S
#define LOOKS 4                    /* connections, to find a load balancer */
#define HELLO "__sentinel__:hello" /* Sentinels subscribe to it at a server */

/* --------------------------------------------------------------- the role */

static bool waits_to_vote(struct doctor *d)
{
    return d->facts.quarantine_ms > 0 &&
           doctor_detail(d, "%s", d->facts.no_vote);
}

static bool has_no_vote(struct doctor *d)
{
    return (d->facts.unfit || !d->facts.votes) &&
           doctor_detail(d, "%s", d->facts.no_vote);
}

static bool may_fail_over(struct doctor *d)
{
    return d->facts.replicas > 0 && !d->facts.failover_guarded &&
           doctor_detail(d, "%d", d->facts.replicas);
}

/* Is it another server than the one that was asked before, and not just the
 * same after a restart? */
static bool is_another(const struct doctor *d, const struct doctor *other)
{
    char id[FIELD_ROOM], other_id[FIELD_ROOM];
    int64_t passed_s = (int64_t)((nxl_now_ns() - d->read_at) / NS_PER_S);

    doctor_field(d->info, "run_id", id);
    doctor_field(other->info, "run_id", other_id);
    return id[0] != '\0' && other_id[0] != '\0' && strcmp(id, other_id) != 0 &&
           doctor_number(other->info, "uptime_in_seconds") > passed_s + 1;
}

/* Does a new connection lead to another server, as a load balancer does? */
static bool leads_elsewhere(struct doctor *d)
{
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    bool another = false;

    options.timeout_ms = d->args->timeout_ms;
    for (int i = 0; i < LOOKS && !another && d->facts.sentinels == 0; i++) {
        struct doctor other = {.facts = NXL_SERVER_FACTS_INIT};
        if (nxl_client_new_urls(&other.client,
                (const char *const *)d->urls.urls, d->urls.count,
                &options) != NXL_OK)
            break;
        another = doctor_read(&other, d->server) && is_another(d, &other);
        answer_free(other.info);
        nxl_client_free(other.client);
    }
    return another;
}

/* Do Sentinels watch a server whose URL does not name them? */
static bool is_watched(struct doctor *d)
{
    struct answer *answer;
    int64_t count = 0;

    if (d->facts.failover_guarded || d->facts.sentinels > 0 ||
        d->urls.count > 1)
        return false;
    if (doctor_ask(d, "PUBSUB NUMSUB", HELLO, &answer) == NXL_OK)
        (void)answer_number(answer, 1, INT32_MAX, &count);
    answer_free(answer);
    return count > 0 && doctor_detail(d, "%lld", (long long)count);
}

/* --------------------------------------------------------------- cut off */

/* A primary stops its writes while it has too few replicas, if that is
 * configured; then INFO counts those that are good enough. */
static bool goes_on_alone(struct doctor *d)
{
    bool confirmed = d->facts.sentinels > 0 && d->facts.failover_guarded;

    return d->facts.replicas > 0 && !confirmed &&
           doctor_number(d->info, "min_slaves_good_slaves") < 0;
}

/* ----------------------------------------------------- what makes it forget */

static bool hides_policy(struct doctor *d)
{
    char policy[FIELD_ROOM];

    return doctor_field(d->info, "maxmemory_policy", policy)[0] == '\0';
}

static bool evicts(struct doctor *d)
{
    char policy[FIELD_ROOM];

    doctor_field(d->info, "maxmemory_policy", policy);
    return strcmp(policy, "noeviction") != 0 &&
           doctor_detail(d, "%s", foreign(policy));
}

static bool hides_aof(struct doctor *d)
{
    return doctor_number(d->info, "aof_enabled") < 0;
}

static bool has_aof(struct doctor *d)
{
    return doctor_number(d->info, "aof_enabled") == 1;
}

static bool loses_records(struct doctor *d)
{
    return d->args->records && !has_aof(d);
}

static bool loses_locks(struct doctor *d)
{
    return !has_aof(d) && !d->facts.guarded;
}

static bool loses_last_second(struct doctor *d)
{
    return has_aof(d) && !url_facts(d->urls.urls[d->server]).wait_aof &&
           strcmp(d->appendfsync, "always") != 0 &&
           doctor_detail(d, "appendfsync %s", foreign(d->appendfsync));
}

static bool loses_last_records(struct doctor *d)
{
    return d->args->records && loses_last_second(d);
}

/* ----------------------------------------------------------- the connection */

static bool is_unverified(struct doctor *d)
{
    return d->facts.tls && d->facts.tls_verify != NXL_TLS_VERIFY_FULL &&
           doctor_detail(d, "verify=%s",
               d->facts.tls_verify == NXL_TLS_VERIFY_CA ? "ca" : "none");
}

static bool is_in_clear(struct doctor *d)
{
    return doctor_in_clear(&d->facts);
}

/* ---------------------------------------------------------------- the clock */

static int64_t local_us(void)
{
    struct timespec now;

    timespec_get(&now, TIME_UTC);
    return now.tv_sec * US_PER_S + now.tv_nsec / 1000;
}

static bool has_own_time(struct doctor *d)
{
    return !url_has_parameter(d->urls.urls[d->server], "scheme");
}

static bool is_apart(struct doctor *d)
{
    char by[DURATION_ROOM];
    int64_t before = local_us(), there = doctor_time_us(d), after = local_us();

    if (there >= before - APART_US && there <= after + APART_US)
        return false;
    if (there < 0)
        return doctor_detail(d, "unknown");
    return doctor_detail(d, "it is %s %s",
        duration_rough(by, llabs(there - before) / US_PER_MS),
        there < before ? "behind" : "ahead");
}

/* ---------------------------------------------------------------- the table */

static const struct check checks[] = {
    {"role", waits_to_vote, LEVEL_WARN, 0, "no lock is granted here yet",
        "wait; with a smaller max_ttl_ms in the URL of all programs the pause "
        "is shorter"},
    {"role", has_no_vote, LEVEL_FAIL, EXIT_UNAVAILABLE,
        "no lock is granted here", NULL},
    {"role", may_fail_over, LEVEL_WARN, 0,
        "a failover may lose locks and records, because replication is "
        "asynchronous, and then two clients can hold one lock; replicas",
        "write guard_failover=on in the URL of all programs "
        "(docs/failover.md), or use several independent servers "
        "(docs/redlock.md)"},
    {"address", leads_elsewhere, LEVEL_FAIL, EXIT_CONFIG,
        "connections to this address reach different servers, so two clients "
        "can hold one lock",
        "give an address that leads to one server, not to a load balancer"},
    {"sentinels", is_watched, LEVEL_WARN, 0,
        "Sentinels watch this server, but the URL does not name them: after a "
        "failover it leads to the former primary, and two clients can hold one "
        "lock; Sentinels",
        "write redis+sentinel://HOST,HOST,HOST/SERVICE in all programs "
        "(docs/failover.md)"},
    {"cut off", goes_on_alone, LEVEL_WARN, 0,
        "a primary that is cut off from its replicas goes on granting locks "
        "beside its successor (min-replicas-to-write 0), also with "
        "guard_failover",
        "CONFIG SET min-replicas-to-write 1, and min-replicas-max-lag "
        "2" IN_FILE "; locks then need a replica that answers"},
    {"eviction", hides_policy, LEVEL_NOTE, 0, "maxmemory-policy unknown", NULL},
    {"eviction", evicts, LEVEL_WARN, 0,
        "when memory is full, held locks and records may be evicted, and then "
        "two clients can hold one lock; maxmemory-policy",
        "CONFIG SET maxmemory-policy noeviction" IN_FILE
        ", or use a separate server for locks"},
    {"eviction", NULL, LEVEL_OK, 0, "no lock is evicted (noeviction)", NULL},
    {"persistence", hides_aof, LEVEL_WARN, 0, "append-only file: unknown",
        NULL},
    {"persistence", loses_records, LEVEL_FAIL, EXIT_UNAVAILABLE,
        "no append-only file: a restart loses records, and work that was done "
        "may be done again",
        "CONFIG SET appendonly yes, and appendfsync always" IN_FILE},
    {"persistence", loses_locks, LEVEL_WARN, 0,
        "no append-only file: a restart loses locks (or those since the last "
        "snapshot), and two clients can hold one lock",
        "CONFIG SET appendonly yes, and appendfsync always" IN_FILE
        "; or add guard_restarts=on to the URL of all programs"},
    {"persistence", loses_last_records, LEVEL_WARN, 0,
        "a crash of the machine may lose the records of the last second or so",
        "CONFIG SET appendfsync always" IN_FILE},
    {"persistence", loses_last_second, LEVEL_NOTE, 0,
        "a crash of the machine may lose the locks of the last second or so",
        NULL},
    {"persistence", has_aof, LEVEL_OK, 0,
        "append-only file, with an fsync before each answer", NULL},
    {"persistence", NULL, LEVEL_NOTE, 0,
        "no append-only file: after a restart no lock is granted until the "
        "lost ones have expired (guard_restarts)",
        NULL},
    {"tls", is_unverified, LEVEL_WARN, 0,
        "the server's certificate or its name is not verified, so whoever is "
        "in between can grant locks",
        "remove verify (--insecure), and name the server's CA with "
        "cacert=FILE"},
    {"password", is_in_clear, LEVEL_WARN, 0,
        "it is sent to another machine without TLS: whoever is in between can "
        "read it, and remove locks",
        "write rediss:// if the server has a port for TLS, or use a tunnel"},
    {"clock", has_own_time, LEVEL_OK, 0, NULL, NULL},
    {"clock", is_apart, LEVEL_WARN, 0,
        "locks of scheme=timestamp are shared with programs that use their own "
        "clocks, and the server's differs from this machine's",
        "synchronize both clocks with NTP"},
};

void doctor_server(struct doctor *d)
{
    struct answer *answer;

    (void)!doctor_ask(d, "CONFIG GET", "appendfsync", &answer);
    const char *often = answer_item(answer, 1, NULL);
    snprintf(d->appendfsync, sizeof(d->appendfsync), "%s",
        often ? often : "unknown");
    answer_free(answer);
    DOCTOR_JUDGE(d, checks);
}

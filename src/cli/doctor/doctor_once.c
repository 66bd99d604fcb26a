/* SPDX-License-Identifier: MIT */
/*
 * Checks whether a server suits the records of nxlock once. A lock that is
 * forgotten costs the rest of its lease; a record that is forgotten lets work
 * be done twice days later. So what is worth a note for locks may be a failure
 * here.
 *
 * Invariant: nothing is changed on the server, and what it does not say is
 * never reported as ok.
 */
#include "cli/doctor/doctor_once.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/doctor/doctor_replicas.h"
#include "cli/look/foreign.h"
#include "cli/report/report.h"

#define WHAT "once"
/* A server that is fuller than this may soon refuse to record what was done. */
#define FULL_PERCENT 90

#define IN_FILE ", in the server's configuration file too"

static void report_unfit(
    struct doctor *d, int code, const char *remedy, const char *words)
{
    diagnostic(&d->diagnostics, LEVEL_FAIL, WHAT, remedy, "%s", words);
    diagnostic_code(&d->diagnostics, code);
}

/* Each check is true if it found nothing. */

static bool keeps_over_restarts(
    struct doctor *d, size_t server, const struct answer *info)
{
    char aof[DOCTOR_FIELD], often[DOCTOR_FIELD];

    doctor_field(info, "aof_enabled", aof);
    if (strcmp(aof, "0") == 0) {
        report_unfit(d, EXIT_UNAVAILABLE,
            "CONFIG SET appendonly yes, and appendfsync always" IN_FILE,
            "no append-only file: a restart loses every record, and work that "
            "was done may be done again");
        return false;
    }
    if (aof[0] == '\0') {
        diagnostic(&d->diagnostics, LEVEL_WARN, WHAT, NULL,
            "whether there is an append-only file is unknown: without one a "
            "restart loses every record");
        return false;
    }
    if (!doctor_config(d, server, "appendfsync", often))
        snprintf(often, sizeof(often), "unknown");
    if (strcmp(often, "always") == 0 ||
        (strcmp(often, "everysec") == 0 && doctor_wait_aof(d, server)))
        return true;
    diagnostic(&d->diagnostics, LEVEL_WARN, WHAT,
        "CONFIG SET appendfsync always" IN_FILE,
        "append-only file, fsync %s: a crash of the machine may lose the "
        "records of the last second or so",
        foreign(often));
    return false;
}

static bool evicts_nothing(
    struct doctor *d, size_t server, const struct answer *info)
{
    static const char remedy[] =
        "CONFIG SET maxmemory-policy noeviction" IN_FILE;
    char policy[DOCTOR_FIELD];

    if (doctor_field(info, "maxmemory_policy", policy)[0] == '\0' &&
        !doctor_config(d, server, "maxmemory-policy", policy)) {
        diagnostic(&d->diagnostics, LEVEL_WARN, WHAT, NULL,
            "maxmemory-policy unknown: records may be evicted");
        return false;
    }
    if (strcmp(policy, "noeviction") == 0)
        return true;
    diagnostic(&d->diagnostics, LEVEL_WARN, WHAT, remedy,
        "%s: when memory is full, %s may be evicted, and then the work may be "
        "done again",
        foreign(policy),
        strncmp(policy, "allkeys-", 8) == 0 ? "any record"
                                            : "records of what was done");
    return false;
}

static bool has_room(struct doctor *d, const struct answer *info)
{
    char used[DOCTOR_FIELD], limit[DOCTOR_FIELD];
    double most = strtod(doctor_field(info, "maxmemory", limit), NULL);
    double now = strtod(doctor_field(info, "used_memory", used), NULL);

    if (most <= 0 || now * 100 <= most * FULL_PERCENT)
        return true;
    diagnostic(&d->diagnostics, LEVEL_WARN, WHAT,
        "raise maxmemory, or use a separate server for records",
        "%.0f %% of maxmemory is used: when it is full, the server refuses to "
        "record that work was done, which leaves it in doubt",
        100 * now / most);
    return false;
}

static bool survives_failovers(
    struct doctor *d, size_t server, const struct answer *info)
{
    static const char remedy[] =
        "write wait_replicas=1 in the URL of all programs (2 if two servers "
        "may fail at once), or use a separate server without replicas for "
        "records";
    static const char more_replicas[] =
        "have more replicas than wait_replicas says";
    struct replica_count count = doctor_replica_count(info);
    int64_t waits = doctor_wait_replicas(d, server);
    const char *s = count.connected == 1 ? "" : "s";

    if (waits < 0 && doctor_facts(d, server).failover_guarded) {
        report_unfit(d, EXIT_CONFIG, remedy,
            "wait_replicas is not in the URL: a failover may lose records, so "
            "with guard_failover nxlock once is refused");
        return false;
    }
    if (waits > count.in_sync) {
        report_unfit(d, EXIT_UNAVAILABLE, more_replicas,
            "fewer replicas are in sync than wait_replicas says: nothing is "
            "recorded");
        return false;
    }
    if (waits > 0 && waits == count.in_sync)
        diagnostic(&d->diagnostics, LEVEL_WARN, WHAT, more_replicas,
            "wait_replicas is %lld, of %ld replica%s: while one is away, "
            "nothing is recorded",
            (long long)waits, count.connected, s);
    else if (waits <= 0 && count.connected > 0)
        diagnostic(&d->diagnostics, LEVEL_WARN, WHAT, remedy,
            "a primary with %ld replica%s: replication is asynchronous, so a "
            "failover may lose the last records",
            count.connected, s);
    else
        return true;
    return false;
}

/* Scripts that read the clock before they write need Redis 3.2. */
static bool knows_scripts(struct doctor *d, const struct answer *info)
{
    char version[DOCTOR_FIELD];
    unsigned major = 0, minor = 0;

    if (sscanf(doctor_field(info, "redis_version", version), "%u.%u", &major,
            &minor) != 2 ||
        major > 3 || (major == 3 && minor >= 2))
        return true;
    report_unfit(d, EXIT_UNAVAILABLE, "use Redis 3.2 or later, or any Valkey",
        "the server is too old: records need Redis 3.2");
    return false;
}

/* Until when, and what loses it earlier. */
static void report_kept(struct doctor *d, size_t server)
{
    long long waits = doctor_wait_replicas(d, server);
    const char *when = doctor_wait_aof(d, server)
                           ? "before a record counts (wait_aof)"
                           : "always";

    if (waits > 0)
        diagnostic(&d->diagnostics, LEVEL_OK, WHAT, NULL,
            "append-only file, fsync %s, noeviction, wait_replicas=%lld: a "
            "record is kept until it expires, unless %lld servers fail at once "
            "or a replica that lacks it is promoted",
            when, waits, waits + 1);
    else
        diagnostic(&d->diagnostics, LEVEL_OK, WHAT, NULL,
            "append-only file, fsync %s, noeviction: a record is kept until it "
            "expires",
            when);
}

void doctor_once(struct doctor *d, size_t server, const struct answer *info)
{
    bool kept = keeps_over_restarts(d, server, info);
    bool stays = evicts_nothing(d, server, info);
    bool safe = survives_failovers(d, server, info);
    bool room = has_room(d, info);
    bool knows = knows_scripts(d, info);

    if (kept && stays && safe && room && knows)
        report_kept(d, server);
}

void doctor_once_servers(struct doctor *d)
{
    if (d->servers > 1)
        report_unfit(d, EXIT_CONFIG,
            "give the URL of one of them, with an append-only file",
            "several servers keep no records: nxlock once needs one server");
}

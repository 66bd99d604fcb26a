/* SPDX-License-Identifier: MIT */
/*
 * Checks whether a primary has the replicas that wait_replicas of the URL
 * needs, and whether the one that has the most data is promoted; and says in
 * one sentence how durable what the server grants is.
 *
 * Invariant: nothing is changed on any server, and what a server does not say
 * is never reported as ok.
 */
#include "cli/doctor/doctor_replicas.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/servers/connect.h"
#include "cli/look/foreign.h"
#include "cli/report/report.h"

/* A replica answers once a second. */
#define LATE_S 2
#define WAIT_REMEDY                                                            \
    "wait_replicas=1 in the URL of all programs (2 if two servers may fail "   \
    "at once) if a failover must lose nothing"

/* -------------------------------------------------------- what the URL says */

int64_t doctor_wait_replicas(const struct doctor *d, size_t server)
{
    struct url_list list;

    if (!connect_urls(d->args, &list))
        return -1;
    int64_t replicas = url_facts(list.urls[server]).wait_replicas;
    url_list_free(&list);
    return replicas;
}

bool doctor_wait_aof(const struct doctor *d, size_t server)
{
    struct url_list list;

    if (!connect_urls(d->args, &list))
        return false;
    bool waits = url_facts(list.urls[server]).wait_aof;
    url_list_free(&list);
    return waits;
}

/* ------------------------------------------------- the replicas there are */

/* "slave0:ip=10.0.0.2,port=6379,state=online,offset=14,lag=1". Before Redis
 * 2.8 there is no lag. */
static bool is_in_sync(const char *line)
{
    const char *lag = strstr(line, ",lag=");

    return strstr(line, ",state=online") &&
           (!lag || strtol(lag + strlen(",lag="), NULL, 10) <= LATE_S);
}

struct replica_count doctor_replica_count(const struct answer *info)
{
    char name[32], line[DOCTOR_FIELD];
    struct replica_count count = {0};

    doctor_field(info, "connected_slaves", line);
    count.connected = strtol(line, NULL, 10);
    for (unsigned i = 0;; i++) {
        snprintf(name, sizeof(name), "slave%u", i);
        if (doctor_field(info, name, line)[0] == '\0')
            return count;
        count.in_sync += is_in_sync(line);
    }
}

void doctor_replicas(struct doctor *d, size_t server, const struct answer *info)
{
    struct replica_count count = doctor_replica_count(info);
    long long waits = doctor_wait_replicas(d, server);
    const char *s = count.connected == 1 ? "" : "s";
    const char *are = count.in_sync == 1 ? "is" : "are";

    if (waits <= 0)
        return;
    if (waits > count.connected) {
        diagnostic(&d->diagnostics, LEVEL_FAIL, "replicas",
            "connect more replicas, or lower wait_replicas in the URL of all "
            "programs",
            "wait_replicas is %lld, but %ld replica%s connected: no lock is "
            "granted",
            waits, count.connected, count.connected == 1 ? " is" : "s are");
        diagnostic_code(&d->diagnostics, EXIT_UNAVAILABLE);
    } else if (waits > count.in_sync) {
        diagnostic(&d->diagnostics, LEVEL_FAIL, "replicas",
            "wait until INFO replication of the primary has state=online and "
            "a lag of at most 2 for them, or see their logs",
            "wait_replicas is %lld, but of %ld replica%s %ld %s in sync: no "
            "lock is granted",
            waits, count.connected, s, count.in_sync, are);
        diagnostic_code(&d->diagnostics, EXIT_UNAVAILABLE);
    } else if (waits == count.in_sync)
        diagnostic(&d->diagnostics, LEVEL_NOTE, "replicas",
            "have one more replica than wait_replicas says, if locks must be "
            "granted meanwhile",
            "wait_replicas is %lld, and %ld %s in sync: while one is away, no "
            "lock is granted",
            waits, count.in_sync, are);
    else
        diagnostic(&d->diagnostics, LEVEL_OK, "replicas", NULL,
            "wait_replicas is %lld, and %ld are in sync", waits, count.in_sync);
}

/* ------------------------------------------------- which one is promoted */

void doctor_priority(struct doctor *replica, struct replica_priorities *p)
{
    char text[DOCTOR_FIELD] = "";
    struct answer *info;
    int64_t priority;

    if (doctor_ask(replica, 0, &info, "INFO", "replication", NULL) == NXL_OK)
        doctor_field(info, "slave_priority", text);
    answer_free(info);
    if (!number_read(text, INT32_MAX, &priority)) {
        p->unknown++;
        return;
    }
    bool first = p->known++ == p->never;
    if (priority == 0) {
        p->never++;
        return;
    }
    if (first || priority < p->least)
        p->least = priority;
    if (first || priority > p->most)
        p->most = priority;
}

void doctor_priorities(
    struct doctor *d, size_t server, const struct replica_priorities *p)
{
    long long waits = doctor_wait_replicas(d, server);

    if (p->known > p->never && p->least < p->most)
        diagnostic(&d->diagnostics, LEVEL_WARN, "replicas",
            "CONFIG SET replica-priority 100 at each replica, in its "
            "configuration file too",
            "their replica-priority is between %lld and %lld: a Sentinel "
            "promotes the one with the smallest, also if it lacks what %lld "
            "other%s confirmed",
            (long long)p->least, (long long)p->most, waits,
            waits == 1 ? " has" : "s have");
    if (p->never > 0 && waits <= (long long)p->never)
        diagnostic(&d->diagnostics, LEVEL_WARN, "replicas",
            "wait for more replicas than those, or give them the "
            "replica-priority of the others",
            "%u of them %s never promoted (replica-priority 0), but "
            "wait_replicas=%lld counts them: the one that is promoted may lack "
            "what they confirmed",
            p->never, p->never == 1 ? "is" : "are", waits);
    if (p->unknown > 0)
        diagnostic(&d->diagnostics, LEVEL_NOTE, "replicas",
            "make sure that it is the same at all of them",
            "replica-priority unknown for %u: a Sentinel promotes the one with "
            "the smallest, also if it lacks what others confirmed",
            p->unknown);
}

/* ------------------------------------------------------------- durability */

/* What one server keeps; *kept: over a crash of its machine too. */
static const char *one_server(
    struct doctor *d, size_t server, const struct answer *info, bool *kept)
{
    char aof[DOCTOR_FIELD], often[DOCTOR_FIELD], save[DOCTOR_FIELD];

    *kept = false;
    doctor_field(info, "aof_enabled", aof);
    if (strcmp(aof, "1") == 0) {
        bool known = doctor_config(d, server, "appendfsync", often);
        *kept = (known && strcmp(often, "always") == 0) ||
                doctor_wait_aof(d, server);
        return *kept ? "one server's append-only file, with an fsync before "
                       "each answer"
               : known && strcmp(often, "everysec") == 0
                   ? "one server's append-only file, with an fsync every second"
                   : "one server's append-only file, with an fsync now and "
                     "then";
    }
    if (strcmp(aof, "0") != 0 || !doctor_config(d, server, "save", save))
        return NULL;
    return save[0] != '\0' ? "one server's last snapshot"
                           : "one server's memory";
}

static void report_waited(struct doctor *d, size_t server, long long waits)
{
    bool aof = doctor_wait_aof(d, server);

    diagnostic(&d->diagnostics, LEVEL_OK, "durability", NULL,
        "as durable as %s%lld servers (wait_replicas=%lld%s): a lock or record "
        "is lost only if they all fail, or if one is promoted that lacks it",
        aof ? "the append-only files of " : "", waits + 1, waits,
        aof ? ", wait_aof=1" : "");
}

void doctor_durability(
    struct doctor *d, size_t server, const struct answer *info)
{
    struct replica_count count = doctor_replica_count(info);
    long long waits = doctor_wait_replicas(d, server);
    bool kept;

    if (d->servers > 1)
        return; /* a majority of them must have a lock */
    if (waits > 0) {
        if (waits <= count.in_sync)
            report_waited(d, server, waits);
        return;
    }
    const char *as = one_server(d, server, info, &kept);
    if (!as)
        diagnostic(&d->diagnostics, LEVEL_NOTE, "durability", NULL,
            "unknown: the server does not say what it keeps (INFO, CONFIG "
            "GET)");
    else
        diagnostic(&d->diagnostics,
            kept && count.connected == 0 ? LEVEL_OK : LEVEL_NOTE, "durability",
            count.connected > 0 ? WAIT_REMEDY : NULL, "as durable as %s%s", as,
            count.connected > 0
                ? ", and a failover may lose what was granted or recorded last"
                : "");
}

/* SPDX-License-Identifier: MIT */
/*
 * Checks what kind of server it is, and whether locks belong there: a primary,
 * a replica, a node of a Redis Cluster. (A Sentinel already fails in "reach".)
 */
#include "cli/doctor/doctor_role.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/look/foreign.h"
#include "cli/report/report.h"

static void fail(
    struct doctor *d, const nxl_server_facts *facts, const char *remedy)
{
    diagnostic(
        &d->diagnostics, LEVEL_FAIL, "role", remedy, "%s", facts->no_vote);
    diagnostic_code(&d->diagnostics, EXIT_UNAVAILABLE);
}

static void check_cluster(struct doctor *d, const nxl_server_facts *facts)
{
    static const char remedy[] =
        "use a server with cluster-enabled no; nxlock does not support Redis "
        "Cluster";

    if (facts->unfit)
        fail(d, facts, remedy);
    else
        diagnostic(&d->diagnostics, LEVEL_WARN, "role", remedy,
            "a node of a Redis Cluster in which one node serves all slots: "
            "locks work there until another node takes over some");
}

static void check_replica(
    struct doctor *d, size_t server, const struct answer *info)
{
    char host[DOCTOR_FIELD], port[DOCTOR_FIELD];

    if (doctor_facts(d, server).sentinels > 0) {
        diagnostic(&d->diagnostics, LEVEL_FAIL, "role",
            "wait until they name the new primary; next time, send SENTINEL "
            "FAILOVER to a Sentinel, not FAILOVER to a server",
            "a replica, which takes no writes, but the Sentinels still name it "
            "as the primary");
        diagnostic_code(&d->diagnostics, EXIT_UNAVAILABLE);
        return;
    }
    doctor_field(info, "master_host", host);
    doctor_field(info, "master_port", port);
    diagnostic(&d->diagnostics, LEVEL_FAIL, "role",
        "give the URL of the primary",
        "a replica, of %s%s%s: it takes no writes", foreign(host),
        port[0] != '\0' ? ":" : "", foreign(port));
    diagnostic_code(&d->diagnostics, EXIT_UNAVAILABLE);
}

void doctor_role(struct doctor *d, size_t server, const struct answer *info)
{
    char replicas[DOCTOR_FIELD];
    nxl_server_facts facts = doctor_facts(d, server);

    if (facts.cluster) {
        check_cluster(d, &facts);
        return;
    }
    if (facts.role == NXL_ROLE_ACTIVE_REPLICA) {
        fail(d, &facts,
            "set active-replica no, and give every client the URL of the same "
            "server");
        return;
    }
    if (facts.role == NXL_ROLE_REPLICA) {
        check_replica(d, server, info);
        return;
    }
    long count =
        strtol(doctor_field(info, "connected_slaves", replicas), NULL, 10);
    if (count > 0 && facts.failover_guarded)
        diagnostic(&d->diagnostics, LEVEL_OK, "role", NULL,
            "a primary with %ld replica%s: after a failover no lock is granted "
            "until all that it may have lost have expired (guard_failover)",
            count, count == 1 ? "" : "s");
    else if (count > 0)
        diagnostic(&d->diagnostics, LEVEL_WARN, "role",
            "write guard_failover=on in the URL of all programs "
            "(docs/failover.md), or use several independent servers "
            "(docs/redlock.md)",
            "a primary with %ld replica%s: replication is asynchronous, "
            "so a failover may lose a lock",
            count, count == 1 ? "" : "s");
    else if (facts.role == NXL_ROLE_PRIMARY)
        diagnostic(&d->diagnostics, LEVEL_OK, "role", NULL,
            "a primary without replicas");
}

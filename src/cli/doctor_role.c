/* SPDX-License-Identifier: MIT */
/*
 * Checks what kind of server it is, and whether locks belong there: a primary,
 * a replica, a node of a Redis Cluster. (A Sentinel already fails in "reach".)
 */
#include "cli/doctor_role.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report.h"

#define SLOTS 16384 /* of every Redis Cluster */

static bool is_cluster_node(const nxl_answer *info)
{
    char mode[DOCTOR_FIELD], enabled[DOCTOR_FIELD];

    /* Valkey calls it server_mode. */
    return strcmp(doctor_field(info, "redis_mode", mode), "cluster") == 0 ||
           strcmp(doctor_field(info, "server_mode", mode), "cluster") == 0 ||
           strcmp(doctor_field(info, "cluster_enabled", enabled), "1") == 0;
}

static void check_cluster(struct doctor *d, size_t server)
{
    static const char remedy[] =
        "use a server with cluster-enabled no; nxlock does not support Redis "
        "Cluster";
    char state[DOCTOR_FIELD], text[DOCTOR_FIELD];
    nxl_answer *answer;

    (void)doctor_ask(d, server, &answer, "CLUSTER", "INFO", NULL);
    doctor_field(answer, "cluster_state", state);
    long slots =
        strtol(doctor_field(answer, "cluster_slots_assigned", text), NULL, 10);
    long size = strtol(doctor_field(answer, "cluster_size", text), NULL, 10);
    nxl_answer_free(answer);
    if (strcmp(state, "ok") == 0 && size == 1 && slots == SLOTS) {
        diagnostic(&d->diagnostics, LEVEL_WARN, "role", remedy,
            "a node of a Redis Cluster in which one node serves all slots: "
            "locks work there until another node takes over some");
        return;
    }
    if (state[0] != '\0' && slots == 0)
        diagnostic(&d->diagnostics, LEVEL_FAIL, "role", remedy,
            "a node of a Redis Cluster without slots: it refuses every lock");
    else if (state[0] != '\0' && strcmp(state, "ok") != 0)
        diagnostic(&d->diagnostics, LEVEL_FAIL, "role", remedy,
            "a node of a Redis Cluster that is down (cluster_state:%s)", state);
    else
        diagnostic(&d->diagnostics, LEVEL_FAIL, "role", remedy,
            "a node of a Redis Cluster: it refuses the locks whose slots other "
            "nodes serve, and a failover may lose locks");
    diagnostic_code(&d->diagnostics, EXIT_UNAVAILABLE);
}

static void check_replica(struct doctor *d, const nxl_answer *info, bool active)
{
    char host[DOCTOR_FIELD], port[DOCTOR_FIELD];

    doctor_field(info, "master_host", host);
    doctor_field(info, "master_port", port);
    const char *colon = port[0] != '\0' ? ":" : "";
    if (active)
        diagnostic(&d->diagnostics, LEVEL_FAIL, "role",
            "set active-replica no, and give every client the URL of the same "
            "server",
            "an active replica, of %s%s%s: both servers grant locks, and each "
            "overwrites the other's keys, so two clients can hold one lock",
            host, colon, port);
    else
        diagnostic(&d->diagnostics, LEVEL_FAIL, "role",
            "give the URL of the primary",
            "a replica, of %s%s%s: it takes no writes", host, colon, port);
    diagnostic_code(&d->diagnostics, EXIT_UNAVAILABLE);
}

void doctor_role(struct doctor *d, size_t server, const nxl_answer *info)
{
    char role[DOCTOR_FIELD], replicas[DOCTOR_FIELD];

    doctor_field(info, "role", role);
    bool active = strcmp(role, "active-replica") == 0; /* KeyDB */
    if (is_cluster_node(info)) {
        check_cluster(d, server);
        return;
    }
    if (active || strcmp(role, "slave") == 0 || strcmp(role, "replica") == 0) {
        check_replica(d, info, active);
        return;
    }
    long count =
        strtol(doctor_field(info, "connected_slaves", replicas), NULL, 10);
    if (count > 0)
        diagnostic(&d->diagnostics, LEVEL_WARN, "role",
            "do not fail over while locks are held, or use several "
            "independent servers (docs/redlock.md)",
            "a primary with %ld replica%s: replication is asynchronous, "
            "so a failover may lose a lock",
            count, count == 1 ? "" : "s");
    else if (role[0] != '\0')
        diagnostic(&d->diagnostics, LEVEL_OK, "role", NULL,
            "a primary without replicas");
}

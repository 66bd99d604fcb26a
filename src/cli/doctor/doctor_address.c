/* SPDX-License-Identifier: MIT */
/*
 * Checks whether an address always leads to the same server. Behind a load
 * balancer several servers may answer in turn, and each would grant the lock.
 * The check compares the run_id of several new connections.
 */
#include "cli/doctor/doctor_address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/private.h"
#include "cli/servers/connect.h"
#include "cli/look/foreign.h"
#include "cli/report/report.h"
#include "cli/run/session.h"

#define LOOKS 5 /* the first is the connection that doctor has */
#define ID_SHOWN 8

struct look {
    char id[DOCTOR_FIELD]; /* "": not known */
    uint64_t up_s;
};

static void read_look(struct look *look, const struct answer *info)
{
    char up[DOCTOR_FIELD];

    doctor_field(info, "run_id", look->id);
    look->up_s =
        strtoull(doctor_field(info, "uptime_in_seconds", up), NULL, 10);
}

/* Reads INFO over a new connection. */
static int look_again(struct doctor *d, size_t server, struct look *look)
{
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    struct url_list urls;
    struct doctor other = *d;
    struct answer *info = NULL;

    memset(look, 0, sizeof(*look));
    if (!connect_urls(d->args, &urls))
        return NXL_E_NOMEM;
    options.timeout_ms = d->args->timeout_ms;
    options.max_ttl_ms = d->args->max_ttl_ms;
    int rc = nxl_client_new_urls(
        &other.client, (const char *const *)urls.urls, urls.count, &options);
    url_list_free(&urls);
    if (rc != NXL_OK)
        return rc;
    rc = doctor_ask(&other, server, &info, "INFO", NULL);
    if (rc == NXL_OK)
        read_look(look, info);
    answer_free(info);
    nxl_client_free(other.client);
    return rc;
}

/* Did another server answer, not just a restarted one? So it is if its process
 * was running before the first look, or if an earlier run_id comes back. */
static bool is_another(
    const struct look *looks, size_t i, uint64_t since_first_ns)
{
    if (strcmp(looks[i].id, looks[i - 1].id) == 0)
        return false;
    for (size_t j = 0; j < i; j++) {
        if (strcmp(looks[i].id, looks[j].id) == 0)
            return true;
    }
    return looks[i].up_s > since_first_ns / NS_PER_S + 1;
}

void doctor_address(struct doctor *d, size_t server, const struct answer *info)
{
    struct look looks[LOOKS];
    uint64_t first = nxl_now_ns();

    read_look(&looks[0], info);
    for (size_t i = 1; i < LOOKS && looks[0].id[0] != '\0'; i++) {
        int rc = look_again(d, server, &looks[i]);
        if (rc != NXL_OK) {
            diagnostic(&d->diagnostics, LEVEL_NOTE, "address", NULL,
                "another connection failed, so it is unknown whether the "
                "address always leads to the same server: %s",
                nxl_strerror(rc));
            return;
        }
        if (!is_another(looks, i, nxl_now_ns() - first))
            continue;
        if (doctor_facts(d, server).sentinels > 0) {
            diagnostic(&d->diagnostics, LEVEL_NOTE, "address", NULL,
                "the Sentinels named another server during the check");
            return;
        }
        char ids[2][ID_SHOWN + 1];
        snprintf(ids[0], sizeof(ids[0]), "%.*s", ID_SHOWN, looks[i - 1].id);
        snprintf(ids[1], sizeof(ids[1]), "%.*s", ID_SHOWN, looks[i].id);
        diagnostic(&d->diagnostics, LEVEL_FAIL, "address",
            "give an address that leads to one server, not to a load balancer",
            "connections to this address reach different servers (run_id "
            "%s... and %s...), so two clients can hold one lock",
            foreign(ids[0]), foreign(ids[1]));
        diagnostic_code(&d->diagnostics, EXIT_CONFIG);
        return;
    }
    if (looks[0].id[0] == '\0')
        diagnostic(&d->diagnostics, LEVEL_NOTE, "address", NULL,
            "no run_id, so it is unknown whether the address always "
            "leads to the same server");
    else if (strcmp(looks[0].id, looks[LOOKS - 1].id) != 0)
        diagnostic(&d->diagnostics, LEVEL_NOTE, "address", NULL,
            "the server was restarted or replaced during the check");
    else
        diagnostic(&d->diagnostics, LEVEL_OK, "address", NULL,
            "%d connections reached the same server (run_id)", LOOKS);
}

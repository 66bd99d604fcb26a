/* SPDX-License-Identifier: MIT */
/*
 * The command doctor: says where the settings come from, judges what each
 * server says of itself, then tries a real lock.
 *
 * Invariant: a server is reported as suitable only after a lock was really
 * acquired, extended and released there, under a name that nothing else uses;
 * and no key is left behind.
 */
#include "cli/doctor/doctor_state.h"

#include <stdio.h>

#include "cli/commands.h"
#include "cli/report/report.h"
#include "cli/run/session.h"
#include "cli/servers/connect.h"

#define LINE_ROOM 1024

static void examine_server(struct doctor *d, size_t server)
{
    bool reached = doctor_read(d, server);

    d->diagnostics.server = d->facts.url;
    d->reached += reached;
    if (reached) {
        doctor_server(d);
        doctor_rights(d);
        doctor_replicas(d);
    } else {
        diagnostic_failed(&d->diagnostics, "reach", d->result, doctor_why(d));
        if (d->facts.no_database)
            diagnostic_code(&d->diagnostics, EXIT_CONFIG);
    }
    doctor_sentinels(d);
    fflush(stdout);
}

/* What the client knows of the server after the trial. */
static void report_server(struct doctor *d, size_t server)
{
    char line[LINE_ROOM];

    (void)nxl_client_server_facts(d->client, server, &d->facts);
    if (d->facts.state != NXL_SERVER_UP)
        return;
    nxl_client_describe_server(d->client, server, line, sizeof(line));
    diagnostic(&d->diagnostics, d->facts.votes ? LEVEL_OK : LEVEL_NOTE,
        "server", NULL, "%s", line);
}

static void examine(struct doctor *d)
{
    for (size_t i = 0; i < d->urls.count; i++)
        examine_server(d, i);
    d->diagnostics.server = NULL;
    if (d->reached > 0)
        doctor_trial(d);
    for (size_t i = 0; i < d->urls.count; i++)
        report_server(d, i);
}

int subcommand_doctor(const struct args *args)
{
    struct session session;
    int code = session_open_plain(&session, args);

    if (code == 0) {
        struct doctor doctor = {.args = args,
            .client = session.client,
            .facts = NXL_SERVER_FACTS_INIT,
            .diagnostics = {.json = args->json}};
        if (connect_urls(args, &doctor.urls) && doctor_sources(&doctor)) {
            examine(&doctor);
            code = diagnostics_code(&doctor.diagnostics);
        } else {
            say("out of memory");
            code = EXIT_INTERNAL;
        }
        answer_free(doctor.info);
        url_list_free(&doctor.urls);
        if (report_output() != EXIT_DONE)
            code = EXIT_INTERNAL;
    }
    session_close(&session);
    return code;
}

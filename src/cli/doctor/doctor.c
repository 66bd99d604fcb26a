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

static void examine_sentinels(struct doctor *d)
{
    size_t count = url_facts(d->url).sentinels;
    const char *server = d->diagnostics.server;

    d->primary[0] = '\0';
    d->sentinels = 0;
    d->diagnostics.server = d->other.at;
    for (size_t i = 0; i < count; i++) {
        doctor_ask_sentinel(d, i);
        doctor_judge(d, OF_SENTINEL);
    }
    d->diagnostics.server = NULL;
    if (count > 0)
        doctor_judge(d, OF_SENTINELS);
    d->diagnostics.server = server;
}

static void examine_replicas(struct doctor *d)
{
    const char *server = d->diagnostics.server;

    d->priority = d->never = 0;
    d->unequal = false;
    for (unsigned i = 0; i < REPLICAS_MOST && doctor_ask_replica(d, i); i++) {
        int64_t priority = d->other.priority;
        d->diagnostics.server = d->other.at;
        doctor_judge(d, OF_REPLICA);
        d->never += d->other.answers && priority == 0;
        d->unequal |=
            d->priority > 0 && priority > 0 && priority != d->priority;
        if (priority > 0)
            d->priority = priority;
    }
    d->diagnostics.server = server;
    doctor_judge(d, OF_REPLICAS);
}

static void examine_server(struct doctor *d, size_t server)
{
    d->own.number = server;
    d->url = d->urls.urls[server];
    bool reached = peer_read(&d->own);
    d->diagnostics.server = d->own.facts.url;
    d->reached += reached;
    if (reached) {
        doctor_judge(d, OF_SERVER);
        doctor_rights(d);
        examine_replicas(d);
    } else {
        diagnostic_failed(
            &d->diagnostics, "reach", d->own.result, peer_why(&d->own));
        if (d->own.facts.no_database)
            diagnostic_code(&d->diagnostics, EXIT_CONFIG);
    }
    examine_sentinels(d);
    fflush(stdout);
}

/* What the client knows of the server after the trial. */
static void report_server(struct doctor *d, size_t server)
{
    char line[LINE_ROOM];

    (void)nxl_client_server_facts(d->own.client, server, &d->own.facts);
    if (d->own.facts.state != NXL_SERVER_UP)
        return;
    nxl_client_describe_server(d->own.client, server, line, sizeof(line));
    diagnostic(&d->diagnostics, d->own.facts.votes ? LEVEL_OK : LEVEL_NOTE,
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
            .own = {.client = session.client, .facts = NXL_SERVER_FACTS_INIT},
            .diagnostics = {.json = args->json}};
        if (connect_urls(args, &doctor.urls) && doctor_sources(&doctor)) {
            examine(&doctor);
            code = diagnostics_code(&doctor.diagnostics);
        } else {
            say("out of memory");
            code = EXIT_INTERNAL;
        }
        answer_free(doctor.own.info);
        url_list_free(&doctor.urls);
        if (report_output() != EXIT_DONE)
            code = EXIT_INTERNAL;
    }
    session_close(&session);
    return code;
}

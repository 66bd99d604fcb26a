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
#define REPLICAS_MOST 8 /* that are asked */

static void examine_replicas(struct doctor *d)
{
    const char *server = d->diagnostics.server;
    int64_t preferred = 0, seen = 0;

    d->passed_over = 0;
    for (unsigned i = 0; i < REPLICAS_MOST && doctor_ask_replica(d, i); i++) {
        int64_t priority = d->replica.priority;
        d->diagnostics.server = d->replica.at;
        doctor_judge(d, OF_REPLICA);
        if (priority < 0)
            continue;
        if (priority > 0 && (preferred == 0 || priority < preferred)) {
            preferred = priority;
            d->passed_over = seen;
        } else {
            d->passed_over += priority != preferred;
        }
        seen++;
    }
    d->diagnostics.server = server;
}

/* False: it cannot be reached. */
static bool examine_server(struct doctor *d, size_t server)
{
    d->own.number = server;
    d->url = d->urls.urls[server];
    bool reached = peer_read(&d->own);
    d->diagnostics.server = d->own.facts.url;
    if (reached) {
        doctor_rights(d);
        examine_replicas(d);
        doctor_judge(d, OF_SERVER);
    } else {
        diagnostic_failed(
            &d->diagnostics, "reach", d->own.result, peer_why(&d->own));
        if (d->own.facts.no_database)
            diagnostic_code(&d->diagnostics, EXIT_CONFIG);
    }
    fflush(stdout);
    return reached;
}

/* After all else, because a majority of them is enough for that: by then each
 * one has answered that will. */
static void examine_sentinels(struct doctor *d)
{
    d->diagnostics.server = d->sentinel.at;
    for (size_t i = 0; client_sentinel(d->own.client, i, &d->sentinel); i++)
        if (!d->sentinel.is_spare)
            doctor_judge(d, OF_SENTINEL);
    d->diagnostics.server = NULL;
    doctor_judge(d, OF_ALL_SENTINELS);
}

/* What the client knows of the server after the trial. */
static void report_server(struct doctor *d, size_t server)
{
    char line[LINE_ROOM];

    (void)nxl_client_server_facts(d->own.client, server, &d->own.facts);
    if (d->own.facts.state != NXL_SERVER_UP || !d->own.facts.logged_in)
        return;
    nxl_client_describe_server(d->own.client, server, line, sizeof(line));
    diagnostic(&d->diagnostics, d->own.facts.votes ? LEVEL_OK : LEVEL_NOTE,
        "server", NULL, "%s", line);
}

static void examine(struct doctor *d)
{
    bool reached = false;

    for (size_t i = 0; i < d->urls.count; i++)
        reached |= examine_server(d, i);
    d->diagnostics.server = NULL;
    if (reached)
        doctor_trial(d);
    for (size_t i = 0; i < d->urls.count; i++)
        report_server(d, i);
    examine_sentinels(d);
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

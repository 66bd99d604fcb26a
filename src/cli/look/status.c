/* SPDX-License-Identifier: MIT */
/*
 * The command status.
 *
 * Invariant: the exit code and the output agree on whether a name is held, and
 * what could not be found out is never called free.
 */
#include "cli/commands.h"

#include <stdio.h>
#include <string.h>

#include "cli/clock.h"
#include "cli/look/holders.h"
#include "cli/report/json.h"
#include "cli/look/line.h"
#include "cli/look/partial.h"
#include "cli/report/report.h"

/* Of the words about a server. */
#define SERVER_ROOM 512
#define SENTINELS_NS UINT64_C(100000000)

/* holder is NULL if the name is free. */
static void json_state(struct json *json, const nxl_holder *holder)
{
    const char *state = !holder || holder_is_over(holder) ? "free" : "held";

    json_string(json, "state", state);
    if (holder)
        holder_json(json, holder);
}

/* Why the state on server i is unknown; rc is its result. */
static const char *why_unknown(struct session *session, size_t i, int rc)
{
    return failure_words(nxl_lock_errmsg_at(session->lock, i), rc);
}

/* What one of several servers says. */
static void json_server(
    struct json *json, struct session *session, size_t i, uint64_t at)
{
    nxl_holder holder = NXL_HOLDER_INIT;
    char server[SERVER_ROOM];
    int rc = nxl_lock_holder_at(session->lock, i, 0, &holder);

    if (rc == NXL_OK)
        holder_subtract(&holder, ms_between(at, nxl_now_ns()));
    nxl_client_describe_server(session->client, i, server, sizeof(server));
    json_string(json, "server", server);
    if (rc == NXL_OK || rc == NXL_FREE) {
        json_state(json, rc == NXL_OK ? &holder : NULL);
    } else {
        const char *why = why_unknown(session, i, rc);
        json_string(json, "state", "unknown");
        json_string(json, "why", why);
    }
}

/* What was found out about the lock, beside what its servers say. */
struct finding {
    uint64_t at;             /* when the servers said how much is left */
    struct holders *holders; /* NULL: it is free */
    const struct line *line; /* NULL: it was not read */
};

static void print_json(struct session *session, const struct finding *found)
{
    const char *name = session->args->name;
    size_t count = nxl_client_servers(session->client);
    struct json json, item;
    char server[SERVER_ROOM], warning[PARTIAL_WORDS];

    json_begin(&json, stdout);
    json_number(&json, "v", JSON_VERSION);
    json_string(&json, "name", name);
    json_state(&json, found->holders ? &found->holders->first : NULL);
    if (found->holders && found->holders->shared)
        holders_json(&json, found->holders);
    if (found->line)
        line_json(&json, found->line);
    if (count == 1) {
        nxl_client_describe(session->client, server, sizeof(server));
        json_string(&json, "server", server);
        if (partial_words(session->client, warning))
            json_string(&json, "warning", warning);
    } else {
        json_list_begin(&json, "servers");
        for (size_t i = 0; i < count; i++) {
            json_item(&json, &item, i == 0);
            json_server(&item, session, i, found->at);
            json_item_end(&item);
        }
        json_list_end(&json);
    }
    json_end(&json);
}

static const char *state_words(char *out, const nxl_holder *holder)
{
    return holder_is_data(holder) ? holder_data_words(out, holder)
                                  : holder_words(out, holder);
}

static void print_server(struct session *session, size_t i, uint64_t at)
{
    nxl_holder holder = NXL_HOLDER_INIT;
    char server[SERVER_ROOM], words[HOLDER_WORDS];
    int rc = nxl_lock_holder_at(session->lock, i, 0, &holder);

    if (rc == NXL_OK)
        holder_subtract(&holder, ms_between(at, nxl_now_ns()));
    nxl_client_describe_server(session->client, i, server, sizeof(server));
    printf("  server: %s\n", server);
    if (nxl_client_servers(session->client) == 1)
        return;
    if (rc == NXL_OK || rc == NXL_FREE)
        printf("    %s\n", rc == NXL_OK ? state_words(words, &holder) : "free");
    else
        printf("    unknown: %s\n", why_unknown(session, i, rc));
}

/* Prints who holds the lock; a row for each if several may. */
static void print_state(const char *name, const struct finding *found)
{
    const struct holders *holders = found->holders;
    bool shared = holders && holders->shared;
    char words[HOLDER_WORDS], waiting[LINE_WORDS];

    printf("%s%s %s%s\n", name, shared ? ":" : "",
        shared    ? holders_words(words, holders)
        : holders ? state_words(words, &holders->first)
                  : "free",
        found->line ? line_words(waiting, found->line) : "");
    for (size_t i = 0; shared && i < holders->held.count; i++)
        printf("  %s\n", holders_row(words, holders, &holders->list[i]));
}

static void print_words(struct session *session, const struct finding *found)
{
    char warning[PARTIAL_WORDS];

    print_state(session->args->shown, found);
    if (partial_words(session->client, warning))
        printf("  warning: %s\n", warning);
    if (!session->args->verbose)
        return;
    for (size_t i = 0; i < nxl_client_servers(session->client); i++)
        print_server(session, i, found->at);
    if (found->line)
        line_print(found->line);
}

/* A majority is enough for an answer: lets the other Sentinels answer too, so
 * that the words about the server do not say that they name another one. */
static void await_sentinels(struct session *session)
{
    nxl_server_facts facts = NXL_SERVER_FACTS_INIT;
    uint64_t end = nxl_now_ns() + SENTINELS_NS;

    while (nxl_client_server_facts(session->client, 0, &facts) == NXL_OK &&
           facts.sentinels_naming < facts.sentinels && nxl_now_ns() < end &&
           session_turn(session, end) == NXL_OK)
        ;
}

/* Prints the state; seen is NULL if the lock is free. Returns the exit code. */
static int report(struct session *session, struct holders *seen)
{
    const struct args *args = session->args;
    struct finding found = {.holders = seen, .at = nxl_now_ns()};
    struct line line;
    bool held = seen && !holder_is_over(&seen->first);

    /* A second connection, so only where it may find something. */
    if ((held || args->verbose || args->json) &&
        nxl_client_servers(session->client) == 1) {
        line_read(session, &line);
        found.line = &line;
    }
    if (held)
        holders_subtract(seen, ms_between(found.at, nxl_now_ns()));
    if (args->json)
        print_json(session, &found);
    else
        print_words(session, &found);
    return held ? EXIT_DONE : EXIT_FREE;
}

int subcommand_status(const struct args *args)
{
    struct session session;
    struct holders holders = {.first = NXL_HOLDER_INIT};
    int code = session_open(&session, args, NULL);

    if (code == 0) {
        int rc = holders_ask(&session, &holders);
        if (args->verbose || args->json)
            await_sentinels(&session);
        session_unblock_signals(&session);
        if (rc != NXL_OK && rc != NXL_FREE)
            code = session_failed(&session, "look at", rc);
        else
            code = report(&session, rc == NXL_OK ? &holders : NULL);
        if (report_output() != EXIT_DONE)
            code = EXIT_INTERNAL;
        holders_free(&holders);
    }
    session_close(&session);
    return code;
}

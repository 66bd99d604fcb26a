/* SPDX-License-Identifier: MIT */
/*
 * Keeps: whether a name is held is told by the exit code as well, and by both
 * or by neither: what could not be asked is never "free".
 */
#include "cli/commands.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/holder.h"
#include "cli/json.h"
#include "cli/label.h"
#include "cli/report.h"

/* Grows only by members; raised when one changes its meaning. */
#define JSON_VERSION 1

static void json_holder(struct json *json, const nxl_holder *holder)
{
    struct label_parts parts;

    if (!holder_has_token(holder)) {
        json_text(json, "value", holder->value, holder_shown(holder));
        if (holder->truncated)
            json_true(json, "truncated");
    } else {
        if (holder->label != NULL)
            json_text(json, "label", holder->label, strlen(holder->label));
        if (holder->label != NULL && label_read(holder->label, &parts)) {
            json_text(json, "host", holder->label, parts.host);
            json_number(json, "pid", parts.pid);
            json_text(json, "program", parts.program, strlen(parts.program));
        }
        json_text(json, "owner", holder->value, TOKEN_SHOWN);
    }
    if (holder->value_ends_s != 0)
        json_number(json, "value_ends_s", holder->value_ends_s);
    if (holder->left_ms >= 0)
        json_number(json, "left_ms", holder->left_ms);
    else
        json_null(json, "left_ms");
}

/* holder is NULL if the name is free. */
static void print_json(
    const char *name, const nxl_holder *holder, const char *server)
{
    struct json json;

    json_begin(&json, stdout);
    json_number(&json, "v", JSON_VERSION);
    json_text(&json, "name", name, strlen(name));
    if (holder == NULL) {
        json_text(&json, "state", "free", strlen("free"));
    } else {
        json_text(&json, "state", "held", strlen("held"));
        json_holder(&json, holder);
    }
    json_text(&json, "server", server, strlen(server));
    json_end(&json);
}

static void print_words(const struct args *args, const nxl_holder *holder,
    const char *server)
{
    char words[HOLDER_WORDS];

    printf("%s %s\n", args->shown,
        holder == NULL ? "free" : holder_words(words, holder));
    if (args->verbose)
        printf("  server: %s\n", server);
}

int command_status(const struct args *args)
{
    struct session session;
    nxl_holder holder;
    char server[512];
    int code = session_open(&session, args, NULL);

    if (code == 0) {
        int rc = holder_ask(&session, &holder);
        const nxl_holder *seen = rc == NXL_OK ? &holder : NULL;
        nxl_client_describe(session.client, server, sizeof(server));
        if (rc != NXL_OK && rc != NXL_FREE) {
            code = session_failed(&session, "look at", rc);
        } else {
            if (args->json)
                print_json(args->name, seen, server);
            else
                print_words(args, seen, server);
            code = seen != NULL ? EXIT_DONE : EXIT_FREE;
        }
        if (ferror(stdout) || fflush(stdout) != 0) {
            say("cannot print: %s", strerror(errno));
            code = EXIT_INTERNAL;
        }
    }
    session_close(&session);
    return code;
}

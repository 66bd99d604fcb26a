/* SPDX-License-Identifier: MIT */
/* How the parts of doctor ask the servers. */
#include "cli/doctor/doctor_state.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cli/run/session.h"

#define WORDS_MAX 12

int doctor_ask(
    struct doctor *doctor, size_t server, struct answer **answer, ...)
{
    const char *words[WORDS_MAX];
    size_t count = 0;
    va_list arguments;

    va_start(arguments, answer);
    while (
        count < WORDS_MAX && (words[count] = va_arg(arguments, const char *)))
        count++;
    va_end(arguments);
    return client_ask(doctor->client, server, count, words, NULL, answer);
}

void doctor_turn_to(struct doctor *d, size_t server)
{
    nxl_server_facts facts = doctor_facts(d, server);

    snprintf(d->address, sizeof(d->address), "%s", facts.url);
    d->diagnostics.server = d->address;
}

const char *doctor_why(const struct doctor *d)
{
    const char *why = nxl_client_errmsg(d->client);
    const char *server = d->diagnostics.server;
    size_t length = server ? strlen(server) : 0;

    if (length > 0 && strncmp(why, server, length) == 0 &&
        strncmp(why + length, ": ", 2) == 0)
        return why + length + 2;
    return why;
}

const char *doctor_field(
    const struct answer *info, const char *name, char out[DOCTOR_FIELD])
{
    const char *at = answer_item(info, 0, NULL);
    size_t length = strlen(name);

    out[0] = '\0';
    for (; at; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (strncmp(at, name, length) == 0 && at[length] == ':') {
            at += length + 1;
            snprintf(out, DOCTOR_FIELD, "%.*s", (int)strcspn(at, "\r\n"), at);
            return out;
        }
    }
    return out;
}

bool doctor_config(
    struct doctor *d, size_t server, const char *name, char out[DOCTOR_FIELD])
{
    struct answer *answer;

    if (doctor_ask(d, server, &answer, "CONFIG", "GET", name, NULL) != NXL_OK)
        return false;
    /* A peer that echoes commands answers with another name. */
    const char *of = answer_item(answer, 0, NULL);
    const char *value =
        of && strcasecmp(of, name) == 0 ? answer_item(answer, 1, NULL) : NULL;
    snprintf(out, DOCTOR_FIELD, "%s", value ? value : "");
    answer_free(answer);
    return value != NULL;
}

nxl_server_facts doctor_facts(const struct doctor *d, size_t server)
{
    nxl_server_facts facts = NXL_SERVER_FACTS_INIT;

    (void)nxl_client_server_facts(d->client, server, &facts);
    return facts;
}

/* SPDX-License-Identifier: MIT */
/*
 * What doctor knows about the servers so far, and how its parts query them.
 */
#ifndef NXLOCK_CLI_DOCTOR_DOCTOR_STATE_H
#define NXLOCK_CLI_DOCTOR_DOCTOR_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/private.h"
#include "cli/args.h"
#include "cli/report/diagnostic.h"

#define DOCTOR_FIELD 256
#define DOCTOR_ALL SIZE_MAX /* all servers */

struct doctor {
    const struct args *args;
    nxl_client *client;
    struct diagnostics diagnostics;
    char address[512]; /* of the server that the findings are about */
    bool no_acl[NXL_SERVERS_MAX];  /* the server has no ACL command */
    bool let_in[NXL_SERVERS_MAX];  /* reached and logged in */
    bool may_all[NXL_SERVERS_MAX]; /* the user is allowed everything there */
    char user[NXL_SERVERS_MAX][DOCTOR_FIELD]; /* ours there, or "" */
    size_t servers, reached;
    bool lacks_rights; /* permissions that ACL SETUSER can give */
    const char *name;  /* of a lock, or NULL */
    char *key;         /* that lock's key; owned, or NULL */
    char *counter;     /* its fencing counter's key; owned, or NULL */
    char *record;      /* --once: its record's key; owned, or NULL */
};

/* From now on the findings are about this server. Where it is may become known
 * only when Sentinels have said it. */
void doctor_turn_to(struct doctor *doctor, size_t server);

/* What the client knows of a server. */
nxl_server_facts doctor_facts(const struct doctor *doctor, size_t server);

/* The value of a field "name:value" of INFO into out, which is returned; ""
 * when there is none. */
const char *doctor_field(
    const struct answer *info, const char *name, char out[DOCTOR_FIELD]);

/* client_ask() with a list of words that ends with NULL. */
int doctor_ask(struct doctor *doctor, size_t server, struct answer **answer,
    ...) __attribute__((sentinel));

/* Reads a parameter with CONFIG GET; false: the server did not answer. */
bool doctor_config(struct doctor *doctor, size_t server, const char *name,
    char out[DOCTOR_FIELD]);

/* The client's error message, without the address of the server that the
 * findings are about: their rows begin with it. */
const char *doctor_why(const struct doctor *doctor);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What the files of doctor share: servers that are asked, what they said, and
 * the one table of checks that judges it.
 */
#ifndef NXLOCK_CLI_DOCTOR_DOCTOR_STATE_H
#define NXLOCK_CLI_DOCTOR_DOCTOR_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/private.h"
#include "cli/args.h"
#include "cli/report/diagnostic.h"
#include "cli/servers/urls.h"

#define US_PER_S INT64_C(1000000)
#define FIELD_ROOM 256
#define DETAIL_ROOM 768

/* A server that is asked, and what it says of itself. */
struct peer {
    nxl_client *client;
    size_t number; /* of the client's servers */
    nxl_server_facts facts;
    uint64_t read_at;    /* when INFO was asked for, of nxl_now_ns() */
    int result;          /* of that */
    struct answer *info; /* NULL: it was not answered */
};

/* A replica of the server that the findings are about. */
struct replica {
    char at[FIELD_ROOM];
    char unknown[DETAIL_ROOM]; /* why its clock is; "": it is known */
    int64_t priority;          /* -1: unknown */
    int64_t ahead_us;          /* its clock, at least; negative: behind */
};

struct doctor {
    const struct args *args;
    struct url_list urls; /* one for each server */
    struct diagnostics diagnostics;
    struct peer own;                /* the server that the findings are about */
    const char *url;                /* its */
    struct sentinel_facts sentinel; /* each of them in turn */
    struct replica replica;         /* each of its replicas in turn */
    int64_t passed_over; /* replicas that are promoted after others, or never,
                          * whatever they have confirmed */
    /* What a check has found out: shown behind its words. */
    char detail[DETAIL_ROOM];
};

/* What the rows of the table are about. */
enum about { OF_SERVER, OF_SENTINEL, OF_ALL_SENTINELS, OF_REPLICA };

/* Reports what the rows about that find. The rows of one subject follow each
 * other, and the first whose condition holds decides. */
void doctor_judge(struct doctor *doctor, enum about about);

/* Makes replica i doctor->replica: asks its priority, and its clock between two
 * looks at the primary's. False: there is none. */
bool doctor_ask_replica(struct doctor *doctor, unsigned i);
/* Does a new connection lead to another server, as a load balancer does? */
bool doctor_leads_elsewhere(struct doctor *doctor);

/* client_ask() with the words of text, which blanks divide, and then, if it is
 * not NULL, with last as one word. */
int peer_ask(const struct peer *peer, const char *text, const char *last,
    struct answer **answer);

/* Reads INFO and the facts. False: no login. */
bool peer_read(struct peer *peer);

/* The value of a field "name:value" of INFO into out, which is returned; "":
 * there is none. */
const char *peer_field(
    const struct peer *peer, const char *name, char out[FIELD_ROOM]);
/* The same as a number; -1: it is unknown. */
int64_t peer_number(const struct peer *peer, const char *name);

/* The client's error message, without the address that begins each finding. */
const char *peer_why(const struct peer *peer);

/* Reports where each setting comes from. False: no memory. */
bool doctor_sources(struct doctor *doctor);
/* Checks permissions that a trial does not show. */
void doctor_rights(struct doctor *doctor);
/* peer_ask() of the server; reports it with that level if it is not permitted.
 * what: it is asked for. */
int doctor_ask(struct doctor *doctor, enum level level, const char *what,
    const char *text, const char *last, struct answer **answer);
/* Acquires, waits and records. */
void doctor_trial(struct doctor *doctor);

/* The remedy for a result of NXL_E_DENIED: all that doctor and run need. NULL
 * for another result. Valid until the next call. */
const char *doctor_grant(struct doctor *doctor, int result);

#endif

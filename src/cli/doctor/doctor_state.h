/* SPDX-License-Identifier: MIT */
/*
 * What the files of doctor share: what a server says, which is read once and
 * then looked up, and the table of checks that judges it.
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

#define US_PER_MS INT64_C(1000)
#define US_PER_S INT64_C(1000000)
#define FIELD_ROOM 256
#define DETAIL_ROOM 768

/* What the Sentinels of the URL say, and what the last one of them. */
struct sentinels {
    char at[FIELD_ROOM];      /* its address, as the URL has it */
    char named[FIELD_ROOM];   /* the primary that it names; "": no answer */
    char why[DETAIL_ROOM];    /* why it does not answer */
    char primary[FIELD_ROOM]; /* that the first one names */
    int64_t known, quorum; /* how many there are, to the one that knows most */
    bool in_clear;         /* a password is sent to it without TLS */
};

/* A replica of the server. */
struct replica {
    char host[FIELD_ROOM], port[16];
    char why[DETAIL_ROOM]; /* why it does not answer */
    bool answers, denies;
    int64_t priority;
    int64_t ahead_us; /* its clock, at least; negative: behind */
};

struct doctor {
    const struct args *args;
    nxl_client *client;
    struct url_list urls; /* one for each server */
    struct diagnostics diagnostics;
    size_t reached; /* how many servers accepted the login */
    /* Of the server that the findings are about: */
    size_t server;
    nxl_server_facts facts;
    int result;       /* of INFO */
    uint64_t read_at; /* when that was, of nxl_now_ns() */
    struct answer *info;
    char appendfsync[FIELD_ROOM]; /* or "unknown" */
    struct sentinels sentinels;
    struct replica replica;
    /* What a check has found out: shown behind its words, or instead. */
    char detail[DETAIL_ROOM];
};

/* A row of a table of checks. The rows of one subject follow each other, and
 * the first whose condition holds decides. */
struct check {
    const char *subject;
    bool (*holds)(struct doctor *doctor); /* NULL: always */
    enum level level;
    int code;          /* the exit code of a FAIL */
    const char *words; /* NULL: print the detail alone, or nothing */
    const char *remedy;
};

void doctor_judge(
    struct doctor *doctor, const struct check *checks, size_t count);
#define DOCTOR_JUDGE(doctor, checks)                                           \
    doctor_judge(doctor, checks, sizeof(checks) / sizeof((checks)[0]))

/* Sets the detail; true, so that a condition can end with it. */
bool doctor_detail(struct doctor *doctor, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* client_ask() with the words of text, which blanks divide, and then, if it is
 * not NULL, with last as one word. */
int doctor_ask(struct doctor *doctor, const char *text, const char *last,
    struct answer **answer);

/* The value of a field "name:value" of INFO into out, which is returned; "":
 * there is none. */
const char *doctor_field(
    const struct answer *info, const char *name, char out[FIELD_ROOM]);
/* The same as a number; -1: it is unknown. */
int64_t doctor_number(const struct answer *info, const char *name);

/* The server's time in microseconds since 1970; -1: it does not tell. */
int64_t doctor_time_us(struct doctor *doctor);

/* The client's error message, without the address that begins each finding. */
const char *doctor_why(const struct doctor *doctor);

/* Is a password sent to another machine without TLS? */
bool doctor_in_clear(const nxl_server_facts *facts);

/* Turns to a server, and reads what it says of itself. False: no login. */
bool doctor_read(struct doctor *doctor, size_t server);

/* One subject each. */
bool doctor_sources(struct doctor *doctor); /* false: no memory */
void doctor_sentinels(struct doctor *doctor);
void doctor_server(struct doctor *doctor);
void doctor_replicas(struct doctor *doctor);
void doctor_rights(struct doctor *doctor);
void doctor_trial(struct doctor *doctor);

/* The remedy for a result of NXL_E_DENIED: all that doctor and run need. NULL
 * for another result. Valid until the next call. */
const char *doctor_grant(struct doctor *doctor, int result);

#endif

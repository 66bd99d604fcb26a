/* SPDX-License-Identifier: MIT */
/*
 * What a server is like, by what it says of itself. Keeps: nothing is changed
 * at it; and what it did not tell is never called well.
 */
#include "cli/doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/report.h"

#define US_PER_MS 1000
#define US_PER_S INT64_C(1000000)
#define NS_PER_US 1000
#define FIELD_ROOM 128
#define LINE_ROOM 512
#define LOOKS 3 /* at the clock */
/* From here on fencing numbers and timestamps suffer. */
#define APART_US US_PER_S
#define APART_NOTE_US (100 * US_PER_MS)
#define NEVER_US (INT64_MAX / 4)

/* The value of a line "name:value" of INFO; "" when there is none. */
static const char *field(
    const nxl_answer *info, const char *name, char out[FIELD_ROOM])
{
    const char *at = nxl_answer_item(info, 0, NULL);
    size_t length = strlen(name);

    out[0] = '\0';
    for (; at != NULL; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (strncmp(at, name, length) == 0 && at[length] == ':') {
            at += length + 1;
            snprintf(out, FIELD_ROOM, "%.*s", (int)strcspn(at, "\r\n"), at);
            return out;
        }
    }
    return out;
}

/* A parameter of CONFIG GET; false: it did not tell. */
static bool parameter(
    struct doctor *d, size_t server, const char *name, char out[FIELD_ROOM])
{
    nxl_answer *answer;

    if (doctor_ask(d, server, &answer, "CONFIG", "GET", name, NULL) != NXL_OK)
        return false;
    const char *value = nxl_answer_item(answer, 1, NULL);
    snprintf(out, FIELD_ROOM, "%s", value != NULL ? value : "");
    nxl_answer_free(answer);
    return value != NULL;
}

/* ------------------------------------------------------------------ reach */

static void not_reached(struct doctor *d, int rc, const char *why)
{
    if (strstr(why, "DB index") == NULL) {
        finding_failed(&d->findings, "reach", rc, why);
        return;
    }
    finding(&d->findings, LEVEL_FAIL, "database",
        "give a database that it has: /N at the end of the URL, or db=N, "
        "below its setting databases", "%s", why);
    finding_code(&d->findings, EXIT_CONFIG);
}

static bool check_reach(struct doctor *d, size_t server)
{
    nxl_answer *answer;
    uint64_t before = nxl_now_ns(), middle, after;
    int rc = doctor_ask(d, server, &answer, "PING", NULL);

    nxl_answer_free(answer);
    middle = nxl_now_ns();
    if (rc == NXL_OK) {
        rc = doctor_ask(d, server, &answer, "PING", NULL);
        nxl_answer_free(answer);
    }
    after = nxl_now_ns();
    if (rc == NXL_E_DENIED && strstr(nxl_client_errmsg(d->client), "NOPERM"))
        rc = NXL_OK; /* it is there, and who asks is let in */
    if (rc != NXL_OK) {
        not_reached(d, rc, nxl_client_errmsg(d->client));
        return false;
    }
    d->reached++;
    finding(&d->findings, LEVEL_OK, "reach", NULL,
        "connected in %.2f ms, answers in %.2f ms",
        (double)(middle - before) / 1e6, (double)(after - middle) / 1e6);
    return true;
}

/* ------------------------------------------------- what INFO and CONFIG say */

static void check_version(struct doctor *d, const nxl_answer *info)
{
    char version[FIELD_ROOM], name[FIELD_ROOM];
    unsigned major = 0, minor = 0;
    bool valkey = strcmp(field(info, "server_name", name), "valkey") == 0;

    field(info, valkey ? "valkey_version" : "redis_version", version);
    if (sscanf(version, "%u.%u", &major, &minor) != 2)
        finding(&d->findings, LEVEL_NOTE, "version", NULL,
            "it does not tell its version");
    else if (major < 2 || (major == 2 && minor < 6))
        finding(&d->findings, LEVEL_WARN, "version",
            "use Redis 2.6 or later, or any Valkey",
            "Redis %s has no ends of keys with SET and no scripts: locks are "
            "unix times, whose promises are weaker", version);
    else
        finding(&d->findings, LEVEL_OK, "version", NULL, "%s %s",
            valkey ? "Valkey" : "Redis", version);
}

static void check_eviction(
    struct doctor *d, size_t server, const nxl_answer *info)
{
    static const char remedy[] =
        "CONFIG SET maxmemory-policy noeviction, in the server's file too, or "
        "a server of its own for locks";
    char policy[FIELD_ROOM], limit[FIELD_ROOM];

    if (field(info, "maxmemory_policy", policy)[0] == '\0' &&
        !parameter(d, server, "maxmemory-policy", policy)) {
        finding(&d->findings, LEVEL_NOTE, "eviction", NULL,
            "it does not tell its maxmemory-policy");
        return;
    }
    const char *now = strcmp(field(info, "maxmemory", limit), "0") == 0
                          ? " (maxmemory is 0: not before that is set)"
                          : "";
    if (strcmp(policy, "noeviction") == 0)
        finding(&d->findings, LEVEL_OK, "eviction", NULL,
            "noeviction: what is granted stands until its end");
    else if (strncmp(policy, "allkeys-", 8) == 0)
        finding(&d->findings, LEVEL_WARN, "eviction", remedy,
            "%s: when memory is full any key goes, a held lock or a counter "
            "of fencing numbers, and two hold one lock%s", policy, now);
    else
        finding(&d->findings, LEVEL_WARN, "eviction", remedy,
            "%s: when memory is full keys with an end go, which every lock "
            "is, and two hold one lock%s", policy, now);
}

static void check_persistence(
    struct doctor *d, size_t server, const nxl_answer *info)
{
    static const char remedy[] =
        "CONFIG SET appendonly yes, with appendfsync always if no lock may "
        "be forgotten";
    static const char late[] =
        ", so it has no vote until those are over";
    char aof[FIELD_ROOM], often[FIELD_ROOM], save[FIELD_ROOM];
    /* Several servers: one that restarted does not vote until all is over. */
    bool votes_late = d->servers > 1;
    enum level bad = votes_late ? LEVEL_NOTE : LEVEL_WARN;

    field(info, "aof_enabled", aof);
    if (strcmp(aof, "1") == 0) {
        if (!parameter(d, server, "appendfsync", often))
            snprintf(often, sizeof(often), "it does not tell how often");
        if (strcmp(often, "always") == 0)
            finding(&d->findings, LEVEL_OK, "persistence", NULL,
                "append-only file, fsync always: a restart forgets nothing");
        else
            finding(&d->findings, LEVEL_NOTE, "persistence", NULL,
                "append-only file, fsync %s: a crash of the machine may "
                "forget what was granted in the last second or so", often);
    } else if (parameter(d, server, "save", save) && save[0] != '\0') {
        finding(&d->findings, bad, "persistence", remedy,
            "snapshots alone: a crash forgets every lock since the last one%s",
            votes_late ? late : "");
    } else if (aof[0] == '\0') {
        finding(&d->findings, LEVEL_NOTE, "persistence", NULL,
            "it does not tell whether it has an append-only file");
    } else {
        finding(&d->findings, bad, "persistence", remedy,
            "no append-only file: a restart forgets every lock%s",
            votes_late ? late
                       : ", and who asks next holds it beside the first");
    }
}

static void check_role(struct doctor *d, const nxl_answer *info)
{
    char role[FIELD_ROOM], replicas[FIELD_ROOM], host[FIELD_ROOM];

    field(info, "role", role);
    if (strcmp(role, "slave") == 0 || strcmp(role, "replica") == 0) {
        finding(&d->findings, LEVEL_FAIL, "role",
            "give the URL of the primary",
            "a replica, of %s: it takes no writes",
            field(info, "master_host", host));
        finding_code(&d->findings, EXIT_UNAVAILABLE);
        return;
    }
    if (strtol(field(info, "connected_slaves", replicas), NULL, 10) > 0)
        finding(&d->findings, LEVEL_WARN, "role",
            "do not fail over to them while locks stand, or lock over several "
            "independent servers (docs/redlock.md)",
            "a primary with %s replicas: they are told of a lock after it was "
            "granted, so a failover may lose it", replicas);
    else if (role[0] != '\0')
        finding(&d->findings, LEVEL_OK, "role", NULL,
            "a primary without replicas");
}

static bool votes(struct doctor *d, size_t server)
{
    char line[LINE_ROOM];

    nxl_client_describe_server(d->client, server, line, sizeof(line));
    return strstr(line, "; no vote: ") == NULL;
}

static void check_age(struct doctor *d, size_t server, const nxl_answer *info)
{
    char up[FIELD_ROOM], aof[FIELD_ROOM];
    int64_t most_s = nxl_client_max_ttl_ms(d->client) / 1000 + 1;
    bool keeps = strcmp(field(info, "aof_enabled", aof), "1") == 0;

    if (field(info, "uptime_in_seconds", up)[0] == '\0')
        return;
    long long age = strtoll(up, NULL, 10);
    if (age > most_s)
        finding(&d->findings, LEVEL_OK, "age", NULL,
            "up for %lld s, longer than any lock", age);
    else if (d->servers > 1 ? votes(d, server) : keeps)
        finding(&d->findings, LEVEL_NOTE, "age", NULL,
            "restarted %lld s ago%s", age,
            keeps ? ", with an append-only file" : ", and not guarded against");
    else if (d->servers > 1)
        finding(&d->findings, LEVEL_WARN, "age",
            "wait until it votes, or make it keep what it is told (appendonly "
            "yes, appendfsync always) and say so in its URL: durable=1",
            "restarted %lld s ago: it may have forgotten locks, and has no "
            "vote until it is older than any of them, %lld s", age,
            (long long)most_s);
    else
        finding(&d->findings, LEVEL_WARN, "age",
            "wait, or keep what is granted: appendonly yes",
            "restarted %lld s ago: locks of up to %lld s that were granted "
            "before may be forgotten while their holders go on", age,
            (long long)most_s);
}

/* ---------------------------------------------------------------- database */

/* The first database of INFO's "dbN:keys=..." that has any; false: none has. */
static bool some_database(
    const nxl_answer *info, char name[FIELD_ROOM], long long *keys)
{
    const char *at = nxl_answer_item(info, 0, NULL);

    for (; at != NULL && (at = strstr(at, "\ndb")) != NULL; at++) {
        int used = 0;
        if (sscanf(at, "\n%15[db0-9]:keys=%lld%n", name, keys, &used) == 2 &&
            used > 0)
            return true;
    }
    return false;
}

static void check_database(
    struct doctor *d, size_t server, const nxl_answer *info)
{
    char other[FIELD_ROOM];
    long long there, here;
    nxl_answer *answer;
    int rc = doctor_ask(d, server, &answer, "DBSIZE", NULL);
    const char *size = nxl_answer_item(answer, 0, NULL);

    here = size != NULL ? strtoll(size, NULL, 10) : -1;
    nxl_answer_free(answer);
    if (rc != NXL_OK)
        return;
    if (here == 0 && some_database(info, other, &there))
        finding(&d->findings, LEVEL_WARN, "database",
            "if the others' locks are there, give the same database: /N at "
            "the end of the URL, or db=N",
            "the URL's database is empty, while %s is not (%lld): who locks "
            "there does not compete with who locks here", other, there);
    else
        finding(&d->findings, LEVEL_OK, "database", NULL,
            "the URL's database has keys: %lld", here);
}

/* ------------------------------------------------------------------- clock */

static int64_t local_us(void)
{
    struct timespec now;

    timespec_get(&now, TIME_UTC);
    return now.tv_sec * US_PER_S + now.tv_nsec / NS_PER_US;
}

/* How far the server's clock is ahead, known to within *unsure. */
static bool look_at_clock(
    struct doctor *d, size_t server, int64_t *apart, int64_t *unsure)
{
    nxl_answer *answer;
    int64_t before = local_us();
    int rc = doctor_ask(d, server, &answer, "TIME", NULL);
    int64_t after = local_us();
    const char *s = nxl_answer_item(answer, 0, NULL);
    const char *us = nxl_answer_item(answer, 1, NULL);
    bool told = rc == NXL_OK && s != NULL && us != NULL;

    if (told && after >= before) {
        int64_t there =
            strtoll(s, NULL, 10) * US_PER_S + strtoll(us, NULL, 10);
        if (after - before < 2 * *unsure) {
            *apart = there - before - (after - before) / 2;
            *unsure = (after - before) / 2;
        }
    }
    nxl_answer_free(answer);
    return told;
}

static void check_clock(struct doctor *d, size_t server)
{
    int64_t apart = 0, unsure = NEVER_US;

    for (int i = 0; i < LOOKS; i++) {
        if (look_at_clock(d, server, &apart, &unsure))
            continue;
        finding(&d->findings, LEVEL_NOTE, "clock", NULL,
            "it does not tell its time");
        return;
    }
    if (unsure >= NEVER_US) {
        finding(&d->findings, LEVEL_NOTE, "clock", NULL,
            "this machine's was set meanwhile, so they were not compared");
        return;
    }
    int64_t far = (apart < 0 ? -apart : apart) - unsure;
    const char *way = apart < 0 ? "behind" : "ahead of";
    double s = (double)(apart < 0 ? -apart : apart) / 1e6;
    if (far >= APART_US)
        finding(&d->findings, LEVEL_WARN, "clock",
            "let NTP keep both clocks",
            "%.3f s %s this machine's. A lease does not mind, for the "
            "server alone counts it; fencing numbers do when another server "
            "takes over, and so do locks of scheme=timestamp with programs "
            "that use their own clock", s, way);
    else
        finding(&d->findings,
            far >= APART_NOTE_US || unsure >= APART_US ? LEVEL_NOTE : LEVEL_OK,
            "clock", NULL, "%.3f s %s this machine's, to within %.3f s", s,
            way, (double)unsure / 1e6);
}

/* What a server needs to vote at all, and doctor to tell anything. */
static void no_info(struct doctor *d, int rc)
{
    bool several = d->servers > 1;

    finding(&d->findings, several ? LEVEL_FAIL : LEVEL_WARN, "rights",
        "ACL SETUSER USER +info",
        "INFO is refused: role, restarts, eviction and persistence are not "
        "known%s: %s", several ? ", and it has no vote" : "",
        nxl_client_errmsg(d->client));
    if (several)
        finding_code(&d->findings, exit_code_for(rc, EXIT_DENIED));
}

void doctor_server(struct doctor *doctor, size_t server)
{
    nxl_answer *info;

    if (!check_reach(doctor, server))
        return;
    int rc = doctor_ask(doctor, server, &info, "INFO", NULL);
    if (rc != NXL_OK)
        no_info(doctor, rc);
    doctor_rights(doctor, server);
    if (rc == NXL_OK) {
        check_version(doctor, info);
        check_role(doctor, info);
        check_age(doctor, server, info);
    }
    check_eviction(doctor, server, info);
    check_persistence(doctor, server, info);
    check_database(doctor, server, info);
    check_clock(doctor, server);
    nxl_answer_free(info);
}

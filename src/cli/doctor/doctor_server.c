/* SPDX-License-Identifier: MIT */
/*
 * Checks a server by what it says about itself: INFO and CONFIG.
 *
 * Invariant: nothing is changed on the server, and what it does not say is
 * never reported as ok.
 */
#include "cli/doctor/doctor_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/private.h"
#include "cli/answer.h"
#include "cli/doctor/doctor_address.h"
#include "cli/doctor/doctor_clock.h"
#include "cli/doctor/doctor_failover.h"
#include "cli/doctor/doctor_once.h"
#include "cli/doctor/doctor_rights.h"
#include "cli/doctor/doctor_role.h"
#include "cli/doctor/doctor_sentinels.h"
#include "cli/doctor/doctor_tls.h"
#include "cli/report/duration.h"
#include "cli/look/foreign.h"
#include "cli/report/report.h"

#define LINE_ROOM 512
/* No product of what a server says overflows. */
#define TIME_MOST_S INT64_C(1000000000000)

/* ------------------------------------------------------------------ reach */

static void report_unreached(
    struct doctor *d, size_t server, int rc, const char *why)
{
    nxl_server_facts facts = doctor_facts(d, server);

    diagnostic_failed(&d->diagnostics,
        facts.no_database ? "database"
        : facts.sentinel  ? "role"
                          : "reach",
        rc, why);
    if (facts.no_database)
        diagnostic_code(&d->diagnostics, EXIT_CONFIG);
}

static bool check_reach(struct doctor *d, size_t server)
{
    struct answer *answer;
    uint64_t before = nxl_now_ns(), middle, after;
    int rc = doctor_ask(d, server, &answer, "PING", NULL);

    answer_free(answer);
    middle = nxl_now_ns();
    if (rc == NXL_OK) {
        rc = doctor_ask(d, server, &answer, "PING", NULL);
        answer_free(answer);
    }
    after = nxl_now_ns();
    /* Where Sentinels name it, only now. */
    doctor_turn_to(d, server);
    bool pinged = rc == NXL_OK;
    /* Denied, but logged in: only a permission is missing. */
    if (!pinged && !(rc == NXL_E_DENIED && doctor_facts(d, server).logged_in)) {
        report_unreached(d, server, rc, doctor_why(d));
        return false;
    }
    d->reached++;
    d->let_in[server] = true;
    if (pinged)
        diagnostic(&d->diagnostics, LEVEL_OK, "reach", NULL,
            "connected in %.2fms, answers in %.2fms",
            (double)(middle - before) / 1e6, (double)(after - middle) / 1e6);
    else
        diagnostic(&d->diagnostics, LEVEL_OK, "reach", NULL,
            "connected in %.2fms; PING is not permitted",
            (double)(middle - before) / 1e6);
    return true;
}

/* ------------------------------------------------- what INFO and CONFIG say */

static void check_version(
    struct doctor *d, size_t server, const struct answer *info)
{
    char version[DOCTOR_FIELD];
    unsigned major = 0, minor = 0;
    int software = doctor_facts(d, server).software;
    bool valkey = software == NXL_SOFTWARE_VALKEY;

    doctor_field(info, valkey ? "valkey_version" : "redis_version", version);
    if (sscanf(version, "%u.%u", &major, &minor) != 2)
        diagnostic(
            &d->diagnostics, LEVEL_NOTE, "version", NULL, "version unknown");
    else if (major < 2 || (major == 2 && minor < 6))
        diagnostic(&d->diagnostics, LEVEL_WARN, "version",
            "use Redis 2.6 or later, or any Valkey",
            "Redis %s has neither SET with an expiry nor scripts: locks "
            "are unix times, with weaker guarantees",
            foreign(version));
    else
        diagnostic(&d->diagnostics, LEVEL_OK, "version", NULL, "%s %s%s",
            valkey                           ? "Valkey"
            : software == NXL_SOFTWARE_KEYDB ? "KeyDB"
                                             : "Redis",
            foreign(version),
            strcmp(version, "255.255.255") == 0 ? " (a development build)"
                                                : "");
}

static void check_eviction(
    struct doctor *d, size_t server, const struct answer *info)
{
    static const char remedy[] =
        "CONFIG SET maxmemory-policy noeviction, in the server's "
        "configuration file too, or use a separate server for locks";
    char policy[DOCTOR_FIELD], limit[DOCTOR_FIELD];

    if (doctor_field(info, "maxmemory_policy", policy)[0] == '\0' &&
        !doctor_config(d, server, "maxmemory-policy", policy)) {
        diagnostic(&d->diagnostics, LEVEL_NOTE, "eviction", NULL,
            "maxmemory-policy unknown");
        return;
    }
    const char *now =
        strcmp(doctor_field(info, "maxmemory", limit), "0") == 0
            ? " (maxmemory is 0, so nothing is evicted until that is set)"
            : "";
    if (strcmp(policy, "noeviction") == 0)
        diagnostic(&d->diagnostics, LEVEL_OK, "eviction", NULL,
            "noeviction: no lock is removed before it expires");
    else if (strncmp(policy, "allkeys-", 8) == 0)
        diagnostic(&d->diagnostics, LEVEL_WARN, "eviction", remedy,
            "%s: when memory is full, any key may be evicted, even a "
            "held lock or a fencing counter, and then two clients can "
            "hold one lock%s",
            foreign(policy), now);
    else
        diagnostic(&d->diagnostics, LEVEL_WARN, "eviction", remedy,
            "%s: when memory is full, keys that expire may be evicted, "
            "as every lock does, and then two clients can hold one "
            "lock%s",
            foreign(policy), now);
}

static void report_aof(struct doctor *d, size_t server)
{
    char often[DOCTOR_FIELD];

    if (!doctor_config(d, server, "appendfsync", often))
        snprintf(often, sizeof(often), "unknown");
    if (strcmp(often, "always") == 0)
        diagnostic(&d->diagnostics, LEVEL_OK, "persistence", NULL,
            "append-only file, fsync always: a restart loses nothing");
    else
        diagnostic(&d->diagnostics, LEVEL_NOTE, "persistence", NULL,
            "append-only file, fsync %s: a crash of the machine may "
            "lose the locks of the last second or so",
            foreign(often));
}

static void check_persistence(
    struct doctor *d, size_t server, const struct answer *info)
{
    static const char remedy[] =
        "CONFIG SET appendonly yes, with appendfsync always if no "
        "lock may be lost";
    char aof[DOCTOR_FIELD], save[DOCTOR_FIELD];
    bool guarded = doctor_facts(d, server).guarded;

    if (strcmp(doctor_field(info, "aof_enabled", aof), "1") == 0) {
        report_aof(d, server);
        return;
    }
    bool known = doctor_config(d, server, "save", save);
    if (aof[0] == '\0' && !(known && save[0] != '\0')) {
        diagnostic(&d->diagnostics, LEVEL_NOTE, "persistence", NULL,
            "append-only file: unknown");
        return;
    }
    diagnostic(&d->diagnostics, guarded ? LEVEL_NOTE : LEVEL_WARN,
        "persistence", remedy, "%s%s",
        !known ? "no append-only file, and whether there are snapshots is "
                 "unknown (CONFIG GET): a restart loses every lock, or those "
                 "since the last snapshot"
        : save[0] != '\0'
            ? "snapshots only: a crash loses every lock since the last one"
            : "no append-only file: a restart loses every lock",
        guarded ? ", so it has no vote until they have expired"
                : ", and a second client can then acquire a lock that is still "
                  "held");
}

static void check_age(
    struct doctor *d, size_t server, const struct answer *info)
{
    char up[DOCTOR_FIELD], aof[DOCTOR_FIELD];
    char up_for[DURATION_ROOM], most[DURATION_ROOM];
    int64_t most_ms = nxl_client_max_ttl_ms(d->client);
    bool keeps = strcmp(doctor_field(info, "aof_enabled", aof), "1") == 0;

    if (doctor_field(info, "uptime_in_seconds", up)[0] == '\0')
        return;
    int64_t age_s;
    bool known = number_read(up, TIME_MOST_S, &age_s);
    duration_rough(up_for, known ? age_s * 1000 : 0);
    duration_text(most, most_ms);
    if (!known)
        diagnostic(&d->diagnostics, LEVEL_NOTE, "age", NULL,
            "unknown: INFO reports an uptime of '%s' s", foreign(up));
    else if (age_s > most_ms / 1000 + 1)
        diagnostic(&d->diagnostics, LEVEL_OK, "age", NULL,
            "up for %s, longer than max_ttl_ms (%s)", up_for, most);
    else if (doctor_facts(d, server).guarded && !doctor_facts(d, server).votes)
        diagnostic(&d->diagnostics, LEVEL_WARN, "age",
            "wait until it votes, or make it keep its locks (appendonly yes, "
            "appendfsync always) and say so in its URL: durable=1",
            "restarted %s ago: it may have forgotten locks, and has no vote "
            "until it has been up for longer than any of them, %s",
            up_for, most);
    else if (doctor_facts(d, server).guarded || keeps)
        diagnostic(&d->diagnostics, LEVEL_NOTE, "age", NULL,
            "restarted %s ago%s", up_for,
            keeps ? ", with an append-only file" : "");
    else
        diagnostic(&d->diagnostics, LEVEL_WARN, "age",
            d->servers > 1
                ? "take guard_restarts=off out, or make the server keep its "
                  "locks: appendonly yes"
                : "wait, or make the server keep its locks: appendonly yes",
            "restarted %s ago%s: locks of up to %s that were granted before "
            "may be forgotten while they are still held, and then two clients "
            "can hold one lock",
            up_for, d->servers > 1 ? " with guard_restarts=off" : "", most);
}

/* ---------------------------------------------------------------- database */

/* The first database of INFO's "dbN:keys=..." that has any; false: none has. */
static bool some_database(
    const struct answer *info, char name[DOCTOR_FIELD], long long *keys)
{
    const char *at = answer_item(info, 0, NULL);

    for (; at && (at = strstr(at, "\ndb")); at++) {
        int used = 0;
        if (sscanf(at, "\n%15[db0-9]:keys=%lld%n", name, keys, &used) == 2 &&
            used > 0)
            return true;
    }
    return false;
}

static void check_database(
    struct doctor *d, size_t server, const struct answer *info)
{
    char other[DOCTOR_FIELD];
    long long there;
    int64_t here = 0;
    struct answer *answer;
    int rc = doctor_ask(d, server, &answer, "DBSIZE", NULL);
    bool told = answer_number(answer, 0, EXACT_MAX, &here) && here >= 0;

    answer_free(answer);
    if (!told)
        diagnostic(&d->diagnostics, LEVEL_NOTE, "database", NULL,
            "how many keys it has is unknown: %s",
            rc == NXL_OK ? "the answer to DBSIZE is no number" : doctor_why(d));
    else if (here == 0 && some_database(info, other, &there))
        diagnostic(&d->diagnostics, LEVEL_WARN, "database",
            "if the other clients use that one, choose it too: /N at "
            "the end of the URL, or db=N",
            "the URL's database is empty, but %s has %lld key%s: clients "
            "that lock there do not compete with this one",
            foreign(other), there, there == 1 ? "" : "s");
    else
        diagnostic(&d->diagnostics, LEVEL_OK, "database", NULL,
            "the URL's database has %lld key%s", (long long)here,
            here == 1 ? "" : "s");
}

/* INFO is refused. Without it a server has no vote (among several), and doctor
 * knows little about it. */
static void report_no_info(
    struct doctor *d, size_t server, int rc, const char *why)
{
    bool several = d->servers > 1;

    diagnostic(&d->diagnostics, several ? LEVEL_FAIL : LEVEL_WARN, "rights",
        doctor_remedy(d, server, rc, "+info", false,
            "remove rename-command for INFO from the server's configuration"),
        "INFO is refused: role, restarts, eviction and persistence "
        "are unknown%s: %s",
        several ? ", and it has no vote" : "", why);
    if (several)
        diagnostic_code(&d->diagnostics, exit_code_for(rc, EXIT_DENIED));
}

void doctor_server(struct doctor *doctor, size_t server)
{
    struct answer *info;
    char words[LINE_ROOM];

    if (!check_reach(doctor, server))
        return;
    int rc = doctor_ask(doctor, server, &info, "INFO", NULL);
    snprintf(
        words, sizeof(words), "%s", rc != NXL_OK ? doctor_why(doctor) : "");
    doctor_tls(doctor, server);
    doctor_acl(doctor, server);
    if (rc != NXL_OK)
        report_no_info(doctor, server, rc, words);
    doctor_rights(doctor, server);
    if (rc == NXL_OK) {
        check_version(doctor, server, info);
        doctor_role(doctor, server, info);
        doctor_watched(doctor, server);
        doctor_address(doctor, server, info);
        check_age(doctor, server, info);
    }
    check_eviction(doctor, server, info);
    check_persistence(doctor, server, info);
    if (doctor->args->records)
        doctor_once(doctor, server, info);
    check_database(doctor, server, info);
    doctor_clock(doctor, server);
    doctor_failover(doctor, server, info);
    answer_free(info);
}

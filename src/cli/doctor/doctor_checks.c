/* SPDX-License-Identifier: MIT */
/*
 * The table of checks: what a server, its Sentinels and its replicas say that
 * can let two clients hold one lock, or that stops all of them.
 *
 * Invariant: what a server does not say is never reported as ok.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/answer.h"
#include "cli/doctor/doctor_state.h"
#include "cli/look/foreign.h"
#include "cli/report/duration.h"
#include "cli/report/report.h"

#define IN_FILE ", in the server's configuration file too"
/* After a planned failover a pause of a second makes up for a clock that is
 * ahead by less; see "Planned changes" in docs/failover.md. */
#define AHEAD_US 6000
#define BEHIND_US US_PER_S
#define HELLO "__sentinel__:hello" /* Sentinels subscribe to it at a server */

/* Sets the detail; true, so that a condition can end with it. */
static bool detail(struct doctor *d, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool detail(struct doctor *d, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(d->detail, sizeof(d->detail), format, arguments);
    va_end(arguments);
    return true;
}

/* --------------------------------------------------------------- the role */

static bool waits_to_vote(struct doctor *d)
{
    return d->own.facts.quarantine_ms > 0 &&
           detail(d, "%s", d->own.facts.no_vote);
}

static bool has_no_vote(struct doctor *d)
{
    return (d->own.facts.unfit || !d->own.facts.votes) &&
           detail(d, "%s", d->own.facts.no_vote);
}

static bool may_fail_over(struct doctor *d)
{
    return d->own.facts.replicas > 0 && !d->own.facts.failover_guarded &&
           detail(d, "%d", d->own.facts.replicas);
}

/* Do Sentinels watch a server whose URL does not name them? */
static bool is_watched(struct doctor *d)
{
    const nxl_server_facts *facts = &d->own.facts;
    struct answer *answer;
    int64_t count = 0;

    if (doctor_ask(d, LEVEL_NOTE,
            "finding waiters that have died, and Sentinels that watch it,",
            "PUBSUB NUMSUB", HELLO, &answer) == NXL_OK)
        (void)answer_number(answer, 1, INT32_MAX, &count);
    answer_free(answer);
    return count > 0 && !facts->failover_guarded && facts->sentinels == 0 &&
           d->urls.count == 1 && detail(d, "%lld", (long long)count);
}

/* A primary stops its writes while it has too few replicas, if that is
 * configured; then INFO counts those that are good enough. */
static bool goes_on_alone(struct doctor *d)
{
    const nxl_server_facts *facts = &d->own.facts;
    bool confirmed = facts->sentinels > 0 && facts->failover_guarded;

    return facts->replicas > 0 && !confirmed &&
           peer_number(&d->own, "min_slaves_good_slaves") < 0;
}

/* ----------------------------------------------------- what makes it forget */

static bool evicts(struct doctor *d)
{
    char policy[FIELD_ROOM];

    peer_field(&d->own, "maxmemory_policy", policy);
    return strcmp(policy, "noeviction") != 0 &&
           detail(d, "%s", policy[0] != '\0' ? foreign(policy) : "unknown");
}

static bool hides_aof(struct doctor *d)
{
    return peer_number(&d->own, "aof_enabled") < 0;
}

static bool has_aof(struct doctor *d)
{
    return peer_number(&d->own, "aof_enabled") == 1;
}

static bool loses_all(struct doctor *d)
{
    return !has_aof(d) && !d->own.facts.guarded;
}

static bool loses_records(struct doctor *d)
{
    return !has_aof(d) && d->args->records;
}

static bool loses_last_second(struct doctor *d)
{
    struct answer *answer;

    if (!has_aof(d) || url_facts(d->url).wait_aof)
        return false;
    (void)!doctor_ask(d, LEVEL_NOTE, "reading the configuration", "CONFIG GET",
        "appendfsync", &answer);
    const char *often = answer_item(answer, 1, NULL);
    bool loses = !often || strcmp(often, "always") != 0;
    detail(d, "appendfsync %s", often ? foreign(often) : "unknown");
    answer_free(answer);
    return loses;
}

/* Sentinels promote one of the replicas with the smallest priority, also if it
 * lacks what others have confirmed to WAIT; one with 0 never. */
static bool prefers_one(struct doctor *d)
{
    int64_t waits = url_facts(d->url).wait_replicas;

    return waits > 0 && d->passed_over >= waits;
}

/* ------------------------------------------------------- the connection */

static bool is_unverified(struct doctor *d)
{
    const nxl_server_facts *facts = &d->own.facts;

    return facts->tls && facts->tls_verify != NXL_TLS_VERIFY_FULL &&
           detail(d, "verify=%s",
               facts->tls_verify == NXL_TLS_VERIFY_CA ? "ca" : "none");
}

static bool is_in_clear(struct doctor *d)
{
    const nxl_server_facts *facts = &d->own.facts;

    return facts->state == NXL_SERVER_UP && facts->sends_password &&
           !facts->tls && !facts->local;
}

/* ------------------------------------------------- Sentinels and replicas */

static bool names_nobody(struct doctor *d)
{
    return d->sentinel.primary[0] == '\0' && detail(d, "%s", d->sentinel.why);
}

static bool differs(struct doctor *d)
{
    return !d->sentinel.agrees &&
           detail(d, "%s, not %s", d->sentinel.primary, d->own.facts.url);
}

static bool names_primary(struct doctor *d)
{
    return detail(d, "%s", d->sentinel.primary);
}

static bool sentinel_in_clear(struct doctor *d)
{
    return d->sentinel.in_clear;
}

/* Names all that do. */
static bool know_more(struct doctor *d)
{
    unsigned listed = (unsigned)d->own.facts.sentinels, most = listed;
    struct sentinel_facts one;
    char names[DETAIL_ROOM];
    size_t used = 0;

    for (size_t i = 0; client_sentinel(d->own.client, i, &one); i++) {
        if (one.is_spare || one.knows <= listed || used >= sizeof(names))
            continue;
        most = one.knows > most ? one.knows : most;
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
            used > 0 ? ", " : "", one.at);
    }
    return most > listed && detail(d, "%u of %u, by %s", listed, most, names);
}

static bool hides_clock(struct doctor *d)
{
    return d->replica.unknown[0] != '\0' && detail(d, "%s", d->replica.unknown);
}

static bool has_other_clock(struct doctor *d)
{
    int64_t ahead_us = d->replica.ahead_us;
    char by[DURATION_ROOM];

    return (ahead_us >= AHEAD_US || ahead_us <= -BEHIND_US) &&
           detail(d, "%s %s",
               duration_rough(by, llabs(ahead_us) * 1000 / US_PER_S),
               ahead_us > 0 ? "ahead" : "behind");
}

/* ---------------------------------------------------------------- the table */

#define IN_BETWEEN                                                             \
    "it is sent to another machine without TLS: whoever is in between can "    \
    "read it"

static const struct check {
    enum about about;
    const char *subject;
    bool (*holds)(struct doctor *doctor); /* NULL: always */
    enum level level;
    int once; /* 1: one level worse with --once */
    const char *words, *remedy;
} checks[] = {
    {OF_SERVER, "role", waits_to_vote, LEVEL_WARN, 0,
        "no lock is granted here yet",
        "wait; with a smaller max_ttl_ms in the URL of all programs the pause "
        "is shorter"},
    {OF_SERVER, "role", has_no_vote, LEVEL_FAIL, 0, "no lock is granted here",
        NULL},
    {OF_SERVER, "role", may_fail_over, LEVEL_WARN, 0,
        "a failover may lose locks and records, because replication is "
        "asynchronous, and then two clients can hold one lock; replicas",
        "write guard_failover=on in the URL of all programs "
        "(docs/failover.md), or use several independent servers "
        "(docs/redlock.md)"},
    {OF_SERVER, "address", doctor_leads_elsewhere, LEVEL_FAIL, 0,
        "connections to this address reach different servers, so two clients "
        "can hold one lock",
        "give an address that leads to one server, not to a load balancer"},
    {OF_SERVER, "sentinels", is_watched, LEVEL_WARN, 0,
        "Sentinels watch this server, but the URL does not name them: it does "
        "not follow the primary in a failover, and then two clients can hold "
        "one lock; Sentinels",
        "write redis+sentinel://HOST,HOST,HOST/SERVICE in all programs "
        "(docs/failover.md)"},
    {OF_SERVER, "cut off", goes_on_alone, LEVEL_WARN, 0,
        "a primary that is cut off from its replicas goes on granting locks "
        "beside its successor (min-replicas-to-write 0), also with "
        "guard_failover",
        "CONFIG SET min-replicas-to-write 1, and min-replicas-max-lag 2" IN_FILE
        "; locks then need a replica that answers"},
    {OF_SERVER, "eviction", evicts, LEVEL_WARN, 0,
        "when memory is full, held locks and records may be evicted, and then "
        "two clients can hold one lock; maxmemory-policy",
        "CONFIG SET maxmemory-policy noeviction" IN_FILE
        ", or use a separate server for locks"},
    {OF_SERVER, "eviction", NULL, LEVEL_OK, 0,
        "no lock is evicted (noeviction)", NULL},
    {OF_SERVER, "persistence", hides_aof, LEVEL_WARN, 0,
        "append-only file: unknown", NULL},
    {OF_SERVER, "persistence", loses_all, LEVEL_WARN, 1,
        "no append-only file: a restart loses locks and records (or those "
        "since the last snapshot): two clients can hold one lock, and work "
        "that was done may be done again",
        "CONFIG SET appendonly yes, and appendfsync always" IN_FILE
        "; or, for locks alone, add guard_restarts=on to the URL of all "
        "programs"},
    {OF_SERVER, "persistence", loses_records, LEVEL_WARN, 1,
        "no append-only file: a restart loses records (or those since the "
        "last snapshot), and work that was done may be done again",
        "CONFIG SET appendonly yes, and appendfsync always" IN_FILE},
    {OF_SERVER, "persistence", loses_last_second, LEVEL_NOTE, 1,
        "a crash of the machine may lose the locks and records of the last "
        "second or so",
        "CONFIG SET appendfsync always" IN_FILE},
    {OF_SERVER, "persistence", has_aof, LEVEL_OK, 0,
        "append-only file, with an fsync before each answer", NULL},
    {OF_SERVER, "persistence", NULL, LEVEL_NOTE, 0,
        "no append-only file: after a restart no lock is granted until the "
        "lost ones have expired (guard_restarts)",
        NULL},
    {OF_SERVER, "tls", is_unverified, LEVEL_WARN, 0,
        "the server's certificate or its name is not verified, so whoever is "
        "in between can grant locks",
        "remove verify (--insecure), and name the server's CA with "
        "cacert=FILE"},
    {OF_SERVER, "password", is_in_clear, LEVEL_WARN, 0,
        IN_BETWEEN ", and remove locks",
        "write rediss:// if the server has a port for TLS, or use a tunnel"},
    {OF_SERVER, "replica-priority", prefers_one, LEVEL_WARN, 0,
        "it is not the same at all replicas (0: never promoted), so the one "
        "that is promoted may lack locks that others have confirmed "
        "(wait_replicas)",
        "CONFIG SET replica-priority 100 at each replica" IN_FILE},
    {OF_SENTINEL, "sentinel", names_nobody, LEVEL_WARN, 0, "does not count",
        NULL},
    {OF_SENTINEL, "sentinel", differs, LEVEL_WARN, 0,
        "disagrees about the primary",
        "during a failover, wait; otherwise check the network between the "
        "Sentinels, or correct one: SENTINEL REMOVE SERVICE, then SENTINEL "
        "MONITOR SERVICE HOST PORT QUORUM"},
    {OF_SENTINEL, "sentinel", names_primary, LEVEL_OK, 0, "names", NULL},
    {OF_SENTINEL, "password", sentinel_in_clear, LEVEL_WARN, 0, IN_BETWEEN,
        "write rediss+sentinel:// or sentinel_tls=1, or use a tunnel"},
    {OF_ALL_SENTINELS, "sentinels", know_more, LEVEL_WARN, 0,
        "the URL does not list all of them, but a majority of all must answer",
        "list all in the URL of all programs, by addresses that clients can "
        "reach (sentinel announce-ip)"},
    {OF_REPLICA, "clock", hides_clock, LEVEL_NOTE, 0, "of a replica: unknown",
        "after a failover clients need it: give it the same users, passwords "
        "and permissions as the primary, and an address that they can reach "
        "(replica-announce-ip)"},
    {OF_REPLICA, "clock", has_other_clock, LEVEL_WARN, 0,
        "a replica's clock is not the primary's: if it is ahead, after a "
        "failover locks end that much too early, while their holders count on "
        "them; if it is behind, a fencing token may be smaller than the one "
        "before",
        "synchronize the clocks of both servers with NTP"},
};

static void print(struct doctor *d, const struct check *check)
{
    int level = (int)check->level + (d->args->records ? check->once : 0);

    diagnostic(&d->diagnostics, (enum level)level, check->subject,
        check->remedy, "%s%s%s", check->words, d->detail[0] != '\0' ? ": " : "",
        d->detail);
    if (level == LEVEL_FAIL)
        diagnostic_code(&d->diagnostics, EXIT_UNAVAILABLE);
}

void doctor_judge(struct doctor *d, enum about about)
{
    const char *decided = "";

    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        const struct check *check = &checks[i];
        if (check->about != about || strcmp(check->subject, decided) == 0)
            continue;
        d->detail[0] = '\0';
        if (check->holds && !check->holds(d))
            continue;
        decided = check->subject;
        print(d, check);
    }
}

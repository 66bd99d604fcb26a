/* SPDX-License-Identifier: MIT */
/*
 * Checks the Sentinels that a URL lists: whether each answers, whether they
 * agree, whether all of them are listed, and whether they are enough. A client
 * follows a majority, and grants nothing without one.
 *
 * Invariant: a Sentinel counts once, by its run_id, under however many
 * addresses it is listed.
 */
#include "cli/doctor/doctor_sentinels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/doctor/acl_table.h"
#include "cli/answer.h"
#include "cli/servers/connect.h"
#include "cli/doctor/doctor_sentinel.h"
#include "cli/report/duration.h"
#include "cli/look/foreign.h"
#include "cli/report/report.h"

#define WHAT "sentinels" /* of findings about all of them */
#define MOST 32          /* as many as a client asks */
#define LIST_ROOM 700
#define FEW 3
#define HELLO "__sentinel__:hello" /* Sentinels subscribe to it at a server */

struct sentinels {
    char service[DOCTOR_FIELD];
    struct doctor_sentinel list[MOST];
    size_t count;
    int64_t silent; /* that do not answer */
    int64_t listed; /* each counted once */
    int64_t known;  /* of the service, to the one that knows the most */
    int64_t all;    /* that a majority is counted of, as the client does */
};

static int64_t majority(const struct sentinels *s)
{
    return s->all / 2 + 1;
}

/* Adds the next one to "a, b". */
static void add_to_list(char out[LIST_ROOM], const char *at)
{
    size_t used = strlen(out);

    snprintf(out + used, LIST_ROOM - used, "%s%s", used ? ", " : "", at);
}

/* ------------------------------------------------------------- asking them */

/* The same Sentinel under another address; NULL: there is none before it. */
static const struct doctor_sentinel *twin(
    const struct sentinels *s, const struct doctor_sentinel *of)
{
    for (const struct doctor_sentinel *one = s->list; one < of; one++) {
        if (of->id[0] != '\0' && strcmp(one->id, of->id) == 0)
            return one;
    }
    return NULL;
}

/* "localhost" has two addresses for one Sentinel. */
static bool has_one(const char *at)
{
    return strncasecmp(at, "localhost:", strlen("localhost:")) == 0;
}

/* A host with several addresses is a Sentinel for each that leads to one. */
static void ask_addresses(
    struct doctor *d, struct sentinels *s, size_t i, size_t addresses)
{
    size_t first = s->count;

    for (unsigned nth = 1; nth <= addresses && s->count < MOST; nth++) {
        struct doctor_sentinel *one = &s->list[s->count];
        (void)doctor_sentinel_ask(d, i, nth, one);
        if (one->answered && !twin(s, one))
            s->count++;
        else
            doctor_sentinel_free(one);
    }
    if (s->count == first) /* so that the host is reported */
        (void)doctor_sentinel_ask(d, i, 0, &s->list[s->count++]);
}

static void ask_host(struct doctor *d, struct sentinels *s, size_t i)
{
    struct doctor_sentinel *one = &s->list[s->count];
    size_t addresses = doctor_sentinel_ask(d, i, 0, one);

    if (addresses > 1 && !has_one(one->at)) {
        doctor_sentinel_free(one);
        ask_addresses(d, s, i, addresses);
    } else {
        s->count++;
    }
}

static void ask_all(struct doctor *d, struct sentinels *s, size_t hosts)
{
    for (size_t i = 0; i < hosts && s->count < MOST; i++)
        ask_host(d, s, i);
    for (size_t i = 0; i < s->count; i++) {
        const struct doctor_sentinel *one = &s->list[i];
        s->silent += !one->answered;
        s->listed += !twin(s, one);
        if (one->others + 1 > s->known)
            s->known = one->others + 1;
    }
    s->all = (int64_t)s->count > s->known ? (int64_t)s->count : s->known;
}

/* ----------------------------------------------------------- what they name */

/* How many name the primary that this one names. */
static int64_t agreeing(
    const struct sentinels *s, const struct doctor_sentinel *with)
{
    int64_t count = 0;

    for (size_t i = 0; i < s->count; i++) {
        const struct doctor_sentinel *one = &s->list[i];
        count += one->answered && !twin(s, one) &&
                 strcmp(one->primary, with->primary) == 0;
    }
    return count;
}

/* One that names what most name, with the latest failover; NULL: none
 * answers. */
static const struct doctor_sentinel *leading(const struct sentinels *s)
{
    const struct doctor_sentinel *best = NULL;

    for (size_t i = 0; i < s->count; i++) {
        const struct doctor_sentinel *one = &s->list[i];
        if (!one->answered)
            continue;
        int64_t more = best ? agreeing(s, one) - agreeing(s, best) : 1;
        if (more > 0 || (more == 0 && one->epoch > best->epoch))
            best = one;
    }
    return best;
}

/* It knows nothing yet of the failover after which the others name another
 * primary. */
static bool is_outdated(
    const struct doctor_sentinel *one, const struct doctor_sentinel *best)
{
    return strcmp(one->primary, best->primary) != 0 && one->epoch >= 0 &&
           one->epoch < best->epoch;
}

static void report_silent(struct doctor *d, const struct doctor_sentinel *one)
{
    char remedy[2 * DOCTOR_FIELD];

    snprintf(remedy, sizeof(remedy), "ACL SETUSER %s " ACL_SENTINELS,
        foreign(one->user));
    diagnostic(&d->diagnostics, LEVEL_WARN, "sentinel",
        one->denied ? remedy : NULL, "does not count: %s", one->why);
}

static void report_answer(struct doctor *d, const struct sentinels *s,
    const struct doctor_sentinel *one, const struct doctor_sentinel *best)
{
    char heard[DURATION_ROOM];

    duration_rough(heard, one->heard_ms > 0 ? one->heard_ms : 0);
    if (twin(s, one))
        diagnostic(&d->diagnostics, LEVEL_WARN, "sentinel",
            "list each Sentinel once",
            "is %s by another address: it counts "
            "once",
            twin(s, one)->at);
    else if (is_outdated(one, best))
        diagnostic(&d->diagnostics, LEVEL_WARN, "sentinel",
            "check the network between it, the other Sentinels and the servers",
            "names %s, which is out of date: since then a failover has made %s "
            "the primary, for %s",
            one->primary, best->primary, best->at);
    else if (one->suspects)
        diagnostic(&d->diagnostics, LEVEL_WARN, "sentinel",
            "check the network between it and the primary, and its password "
            "for the servers (sentinel auth-pass)",
            "names %s, which has not answered it for %s", one->primary, heard);
    else
        diagnostic(&d->diagnostics, LEVEL_OK, "sentinel", NULL,
            "names %s, and knows %lld other%s", one->primary,
            (long long)one->others, one->others == 1 ? "" : "s");
}

/* "10.0.0.1:6379 by h1:26379, h2:26379; 10.0.0.2:6379 by h3:26379" */
static void list_opinions(const struct sentinels *s, char out[LIST_ROOM])
{
    out[0] = '\0';
    for (size_t i = 0; i < s->count; i++) {
        const struct doctor_sentinel *one = &s->list[i];
        size_t j = 0, used = strlen(out);
        char by[LIST_ROOM] = "";
        while (j < i && strcmp(s->list[j].primary, one->primary) != 0)
            j++;
        if (!one->answered || j < i)
            continue;
        for (j = i; j < s->count; j++) {
            if (strcmp(s->list[j].primary, one->primary) == 0)
                add_to_list(by, s->list[j].at);
        }
        snprintf(out + used, LIST_ROOM - used, "%s%s by %.400s",
            used ? "; " : "", one->primary, by);
    }
}

static void check_agreement(struct doctor *d, const struct sentinels *s,
    const struct doctor_sentinel *best)
{
    char opinions[LIST_ROOM], remedy[LIST_ROOM];
    bool apart = false;

    for (size_t i = 0; i < s->count; i++) {
        const struct doctor_sentinel *one = &s->list[i];
        apart = apart || (one->answered && !is_outdated(one, best) &&
                             strcmp(one->primary, best->primary) != 0);
    }
    if (apart) {
        list_opinions(s, opinions);
        snprintf(remedy, sizeof(remedy),
            "during a failover, wait; otherwise correct those that are wrong: "
            "SENTINEL REMOVE %s, then SENTINEL MONITOR %s HOST PORT QUORUM",
            s->service, s->service);
        diagnostic(&d->diagnostics, LEVEL_FAIL, WHAT, remedy,
            "they disagree about the primary: %s", opinions);
        diagnostic_code(&d->diagnostics, EXIT_UNAVAILABLE);
    } else if (agreeing(s, best) < majority(s) && s->listed >= majority(s)) {
        diagnostic(&d->diagnostics, LEVEL_FAIL, WHAT,
            "bring back those that do not answer",
            "only %lld of %lld %s %s, and %lld must: no lock is granted",
            (long long)agreeing(s, best), (long long)s->all,
            agreeing(s, best) == 1 ? "names" : "name", best->primary,
            (long long)majority(s));
        diagnostic_code(&d->diagnostics, EXIT_UNAVAILABLE);
    } else if (agreeing(s, best) >= majority(s)) {
        diagnostic(&d->diagnostics, LEVEL_OK, WHAT, NULL,
            "%lld of %lld name %s", (long long)agreeing(s, best),
            (long long)s->all, best->primary);
    }
}

/* --------------------------------------------------------- how many there are
 */

static bool knows(const struct doctor_sentinel *one, const char *at)
{
    char other[SENTINEL_AT];

    for (size_t i = 0; doctor_sentinel_other(one, i, other); i++) {
        if (strcmp(other, at) == 0)
            return true;
    }
    return false;
}

/* No Sentinel lists itself: those that each of them knows are not among those
 * that were asked. */
static void list_missing(const struct sentinels *s,
    const struct doctor_sentinel *first, char out[LIST_ROOM])
{
    char other[SENTINEL_AT];

    out[0] = '\0';
    for (size_t i = 0; doctor_sentinel_other(first, i, other); i++) {
        bool all = true;
        for (size_t j = 0; j < s->count; j++)
            all = all && (!s->list[j].answered || knows(&s->list[j], other));
        if (all)
            add_to_list(out, other);
    }
}

static void check_listed(struct doctor *d, const struct sentinels *s,
    const struct doctor_sentinel *best)
{
    char missing[LIST_ROOM];
    bool few = s->listed < s->known / 2 + 1;

    if (s->listed >= s->known)
        return;
    list_missing(s, best, missing);
    diagnostic(&d->diagnostics, few ? LEVEL_FAIL : LEVEL_WARN, WHAT,
        "list all of them in the URL of all programs, by addresses that can be "
        "reached from here (sentinel announce-ip)",
        "the URL lists %lld of %lld: a majority of all has to name the "
        "primary%s%s%s",
        (long long)s->listed, (long long)s->known,
        missing[0] == '\0' ? ""
        : s->silent > 0    ? "; not listed, or without an answer: "
                           : "; not listed: ",
        missing, few ? "; no lock is granted" : "");
    if (few)
        diagnostic_code(&d->diagnostics, EXIT_CONFIG);
}

static void check_number(struct doctor *d, const struct sentinels *s)
{
    if (s->all < FEW)
        diagnostic(&d->diagnostics, LEVEL_WARN, WHAT,
            "run three or more, on machines of their own",
            s->all == 1
                ? "there is one: while it is down, no lock is granted and no "
                  "failover begins; and it alone says which server is the "
                  "primary"
                : "there are two, and a majority is both: while one is down, "
                  "no lock is granted and no failover begins");
}

/* A failover begins when a quorum of those that know each other takes the
 * primary for down. */
static void check_quorum(struct doctor *d, const struct sentinels *s)
{
    int64_t least = -1, most = -1, needed = s->known / 2 + 1;
    char remedy[2 * DOCTOR_FIELD];

    for (size_t i = 0; i < s->count; i++) {
        int64_t quorum = s->list[i].quorum;
        least = quorum > 0 && (least < 0 || quorum < least) ? quorum : least;
        most = quorum > most ? quorum : most;
    }
    snprintf(remedy, sizeof(remedy),
        "SENTINEL SET %s quorum %lld, at each of them", s->service,
        (long long)needed);
    if (most > s->known)
        diagnostic(&d->diagnostics, LEVEL_WARN, WHAT, remedy,
            "the quorum is %lld, more than there are Sentinels (%lld): no "
            "failover ever begins",
            (long long)most, (long long)s->known);
    else if (least > 0 && least < needed)
        diagnostic(&d->diagnostics, LEVEL_WARN, WHAT, remedy,
            "the quorum is %lld, less than a majority of %lld: %lld "
            "Sentinel%s that cannot reach the primary begin%s a failover "
            "though the others can, and then locks pause",
            (long long)least, (long long)s->known, (long long)least,
            least == 1 ? "" : "s", least == 1 ? "s" : "");
}

static void report(struct doctor *d, const struct sentinels *s)
{
    const struct doctor_sentinel *best = leading(s);

    for (size_t i = 0; i < s->count; i++) {
        const struct doctor_sentinel *one = &s->list[i];
        d->diagnostics.server = one->at;
        if (one->answered)
            report_answer(d, s, one, best);
        else
            report_silent(d, one);
        if (one->in_clear)
            diagnostic(&d->diagnostics, LEVEL_WARN, "password",
                "write rediss+sentinel:// or sentinel_tls=1 if the Sentinels "
                "have a port for TLS, or use a tunnel",
                "it is sent to another machine without TLS: whoever is in "
                "between can read it");
    }
    d->diagnostics.server = NULL;
    if (!best)
        return; /* the server cannot be located, which is reported */
    check_agreement(d, s, best);
    check_listed(d, s, best);
    check_number(d, s);
    check_quorum(d, s);
}

void doctor_sentinels(struct doctor *d)
{
    struct url_list list;
    struct sentinels *s = calloc(1, sizeof(*s));

    if (!s || !connect_urls(d->args, &list)) {
        free(s);
        diagnostic_failed(&d->diagnostics, WHAT, NXL_E_NOMEM, "out of memory");
        return;
    }
    size_t hosts = list.count == 1 ? url_facts(list.urls[0]).sentinels : 0;
    char service[URL_VALUE_ROOM] = "";
    if (hosts > 0)
        (void)url_text(list.urls[0], "service", service, sizeof(service));
    snprintf(s->service, sizeof(s->service), "%.*s", DOCTOR_FIELD - 1, service);
    url_list_free(&list);
    ask_all(d, s, hosts);
    if (hosts > 0)
        report(d, s);
    for (size_t i = 0; i < s->count; i++)
        doctor_sentinel_free(&s->list[i]);
    free(s);
}

/* --------------------------------------------------- without Sentinels in the
 * URL */

void doctor_watched(struct doctor *d, size_t server)
{
    struct answer *answer;
    int64_t count = 0;
    bool guarded = doctor_facts(d, server).failover_guarded;

    if (doctor_facts(d, server).sentinels > 0 || d->servers > 1)
        return;
    int rc = doctor_ask(d, server, &answer, "PUBSUB", "NUMSUB", HELLO, NULL);
    bool known = rc == NXL_OK && answer_number(answer, 1, INT32_MAX, &count);
    answer_free(answer);
    if (!known || count <= 0)
        return;
    diagnostic(&d->diagnostics, guarded ? LEVEL_NOTE : LEVEL_WARN, WHAT,
        "write redis+sentinel://HOST,HOST,HOST/SERVICE in all programs, with "
        "the Sentinels (docs/failover.md)",
        "%lld Sentinel%s watch%s this server: after a failover the URL leads "
        "to a former primary%s",
        (long long)count, count == 1 ? "" : "s", count == 1 ? "es" : "",
        guarded ? ", unless its address moves"
                : ", and two clients can hold one lock");
}

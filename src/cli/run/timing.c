/* SPDX-License-Identifier: MIT */
/*
 * The times of a run: defaults, limits, and whether they fit together.
 *
 * Invariant: after a renewal that failed at the worst moment there is time for
 * another attempt, and then for TERM, the grace and KILL, before the lease
 * expires.
 */
#include "cli/run/timing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/servers/conf.h"
#include "cli/servers/connect.h"
#include "cli/report/duration.h"
#include "cli/names.h"
#include "cli/report/report.h"
#include "cli/run/session.h"
#include "cli/servers/urls.h"
#include "cli/value.h"

#define GRACE_MAX_MS 5000
#define REQUEST_MAX_MS 2000
#define REQUEST_MIN_MS 10
#define MARGIN_MS 250
#define LIMIT_DEFAULT_MS 60000 /* of max_ttl_ms */
#define LIMIT_GUARDED_MS 30000 /* ... where a guard may be on */

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* How long before the end of a lease KILL is sent: a busy machine needs some
 * time to end a process. */
static int64_t margin_of(int64_t ttl_ms)
{
    return larger(ttl_ms / 100, smaller(MARGIN_MS, ttl_ms / 10));
}

int64_t timing_margin_ms(const struct args *args)
{
    return margin_of(args->ttl_ms);
}

/* The time-out of a request, unless a URL gives one. */
static int64_t timeout_of(int64_t ttl_ms)
{
    return larger(smaller(ttl_ms / 10, REQUEST_MAX_MS), REQUEST_MIN_MS);
}

/* The time that a lease must exceed. When several names are granted, up to half
 * of the first one's lease may have been spent waiting for the others. */
static int64_t needs(
    const struct args *args, int64_t ttl_ms, int64_t request_ms)
{
    int64_t spent_ms = names_several(args) ? ttl_ms / 2 : ttl_ms / 3;

    return spent_ms + 2 * request_ms + args->run.grace_ms + margin_of(ttl_ms);
}

/* The first longer lease, in steps of a tenth, that would be enough. */
static int64_t long_enough(const struct args *args)
{
    bool given = args->run.request_ms != args->timeout_ms;
    int64_t ttl_ms = args->ttl_ms;
    int64_t request_ms;

    do {
        ttl_ms += ttl_ms / 10 + 1;
        request_ms = given ? args->run.request_ms : timeout_of(ttl_ms);
    } while (needs(args, ttl_ms, request_ms) >= ttl_ms);
    return ttl_ms;
}

/* Proposes times that fit; spare_ms is the longest grace that does. */
static void make_remedy(
    char *out, size_t size, const struct args *args, int64_t spare_ms)
{
    int64_t ttl_ms = duration_round(long_enough(args), true);
    char grace[64] = "", ttl[96] = "", text[DURATION_ROOM];
    bool allowed = ttl_ms <= args->lease_limit_ms;

    if (spare_ms > 0)
        snprintf(grace, sizeof(grace), "--grace %s or less",
            duration_text(text, duration_round(spare_ms, false)));
    if (allowed)
        snprintf(
            ttl, sizeof(ttl), "--ttl %s or more", duration_text(text, ttl_ms));
    else if (spare_ms <= 0)
        snprintf(ttl, sizeof(ttl), "--ttl %s or more with max_ttl_ms=%lld",
            duration_text(text, ttl_ms), (long long)ttl_ms);
    snprintf(out, size, "%s%s%s", ttl,
        ttl[0] != '\0' && grace[0] != '\0' ? ", or " : "", grace);
}

int timing_check(const struct args *args)
{
    const struct run_args *run = &args->run;
    int64_t sum_ms = needs(args, args->ttl_ms, run->request_ms);
    int64_t spare_ms = args->ttl_ms - 1 - sum_ms + run->grace_ms;
    char remedy[192], what[96] = "", ttl[DURATION_ROOM];
    bool timeout = run->request_ms != args->timeout_ms;

    if (sum_ms < args->ttl_ms)
        return 0;
    make_remedy(remedy, sizeof(remedy), args, spare_ms);
    if (run->grace)
        snprintf(what, sizeof(what), "--grace %s%s", run->grace,
            timeout ? " and " : "");
    if (timeout)
        snprintf(what + strlen(what), sizeof(what) - strlen(what),
            "timeout_ms=%lld", (long long)run->request_ms);
    duration_text(ttl, args->ttl_ms);
    if (!args->ttl && what[0] != '\0')
        say("%s is too long for a lease of %s: use %s", what, ttl, remedy);
    else
        say("%s %s is too short%s%s: use %s",
            args->ttl ? "--ttl" : "a lease of", args->ttl ? args->ttl : ttl,
            what[0] != '\0' ? " for " : " to be renewed in time", what, remedy);
    conf_mention(args, VALUE_DURATION);
    return EXIT_USAGE;
}

/* Returns the longest lease that an option asks for, with the option and its
 * value as they were written. */
static int64_t longest_asked(
    const struct args *args, const char **option, const char **value)
{
    bool least = args->run.at_least_ms > args->ttl_ms;

    *option = least ? "--at-least" : "--ttl";
    *value = least ? args->run.at_least : args->ttl;
    return least ? args->run.at_least_ms : args->ttl_ms;
}

/* The limits that the URLs set. If they set no max_ttl_ms it is MAX_TTL_UNSET,
 * and if they set no timeout_ms it is the one given here. All zero if the URLs
 * are invalid, which session_open() will report. */
#define MAX_TTL_UNSET INT32_MAX

static nxl_server_facts limits_of_urls(
    const struct args *args, int64_t timeout_ms, size_t *servers)
{
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    nxl_server_facts facts = NXL_SERVER_FACTS_INIT;
    nxl_client *client;

    options.max_ttl_ms = MAX_TTL_UNSET;
    options.timeout_ms = timeout_ms;
    if (connect_again(&client, args, &options) == NXL_OK) {
        (void)nxl_client_server_facts(client, 0, &facts);
        *servers = nxl_client_servers(client);
    }
    nxl_client_free(client);
    return facts;
}

static int too_long(
    const struct args *args, const char *option, const char *value, bool given)
{
    char limit[DURATION_ROOM];
    int64_t ms;

    duration_text(limit, args->lease_limit_ms);
    (void)duration_parse(value, &ms);
    if (given)
        say("%s %s is longer than max_ttl_ms=%lld allows: write %s %s or "
            "less, or raise max_ttl_ms for all who use these locks",
            option, value, (long long)args->lease_limit_ms, option, limit);
    else
        say("%s %s is longer than %s, the default limit with Sentinels, "
            "several "
            "servers or a guard, which all clients of a lock must share: write "
            "%s %s or less, or add max_ttl_ms=%lld (%s) to the URLs "
            "wherever these locks are used",
            option, value, limit, option, limit, (long long)ms, value);
    conf_mention(args, VALUE_DURATION);
    return EXIT_USAGE;
}

/* With one server a long --ttl or --at-least raises the limit by itself. Not if
 * a restarted server waits for the longest possible lease before it votes: then
 * all clients must agree on that limit. */
int timing_limit(struct args *args)
{
    const char *option, *value;
    size_t servers = 0;
    nxl_server_facts url = limits_of_urls(args, 0, &servers);
    bool given = url.max_ttl_ms > 0 && url.max_ttl_ms < MAX_TTL_UNSET;

    args->lease_limit_ms = given         ? url.max_ttl_ms
                           : url.guarded ? LIMIT_GUARDED_MS
                           : servers > 1 ? LIMIT_DEFAULT_MS
                                         : INT32_MAX;
    if (!args->ttl && given)
        args->ttl_ms = smaller(args->ttl_ms, url.max_ttl_ms);
    int64_t asked_ms = longest_asked(args, &option, &value);
    if (asked_ms > args->lease_limit_ms && value)
        return too_long(args, option, value, given);
    if (asked_ms > LIMIT_DEFAULT_MS && !given)
        args->max_ttl_ms = asked_ms;
    return 0;
}

int timing_settle(struct args *args)
{
    if (args->run.grace_ms < 0)
        args->run.grace_ms = smaller(args->ttl_ms / 6, GRACE_MAX_MS);
    args->timeout_ms = timeout_of(args->ttl_ms);
    size_t servers = 0;
    nxl_server_facts url = limits_of_urls(args, args->timeout_ms, &servers);
    args->run.request_ms = larger(url.timeout_ms, REQUEST_MIN_MS);
    if (args->run.at_most_ms == 0 ||
        args->run.at_least_ms <= args->run.at_most_ms)
        return 0;
    say("--at-least %s is longer than --at-most %s: write --at-most %s or more",
        args->run.at_least, args->run.at_most, args->run.at_least);
    return EXIT_USAGE;
}

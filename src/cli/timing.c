/* SPDX-License-Identifier: MIT */
/*
 * Keeps: after a renewal that failed at the worst moment there is time for
 * another one, and then for TERM, a grace and KILL, before the lease ends.
 */
#include "cli/timing.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/report.h"
#include "cli/session.h"
#include "cli/urls.h"

#define GRACE_MAX_MS 5000
#define REQUEST_MAX_MS 2000
#define REQUEST_MIN_MS 10
#define MARGIN_MS 250

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Of a lease: a machine at work needs some time to end a process. */
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

/* What a lease has to be longer than. */
static int64_t needs(int64_t ttl_ms, int64_t request_ms, int64_t grace_ms)
{
    return ttl_ms / 3 + 2 * request_ms + grace_ms + margin_of(ttl_ms);
}

/* The next lease in steps of a tenth that would do. */
static int64_t long_enough(const struct args *args)
{
    bool given = args->run.request_ms != args->timeout_ms;
    int64_t ttl_ms = args->ttl_ms;
    int64_t request_ms;

    do {
        ttl_ms += ttl_ms / 10 + 1;
        request_ms = given ? args->run.request_ms : timeout_of(ttl_ms);
    } while (needs(ttl_ms, request_ms, args->run.grace_ms) >= ttl_ms);
    return ttl_ms;
}

/* What to write instead; spare_ms is the longest grace that fits, and
 * longest_ms the longest lease that is allowed. */
static void make_remedy(char *out, size_t size, const struct args *args,
    int64_t spare_ms, int64_t longest_ms)
{
    int64_t ttl_ms = long_enough(args);
    char grace[64] = "", longest[64] = "";

    if (spare_ms > 0)
        snprintf(grace, sizeof(grace), "--grace %lldms at most",
            (long long)spare_ms);
    if (ttl_ms > longest_ms)
        snprintf(longest, sizeof(longest), " with --max-ttl-ms %lld",
            (long long)ttl_ms);
    if (spare_ms > 0 && ttl_ms > longest_ms)
        snprintf(out, size, "%s", grace);
    else
        snprintf(out, size, "%s%s--ttl %lldms at least%s", grace,
            spare_ms > 0 ? ", or " : "", (long long)ttl_ms, longest);
}

int timing_check(const struct args *args, int64_t longest_ms)
{
    const struct run_args *run = &args->run;
    int64_t sum_ms = needs(args->ttl_ms, run->request_ms, run->grace_ms);
    int64_t spare_ms = args->ttl_ms - 1 - sum_ms + run->grace_ms;
    char remedy[192];

    if (sum_ms < args->ttl_ms)
        return 0;
    make_remedy(remedy, sizeof(remedy), args, spare_ms, longest_ms);
    say("a lease of %lld ms cannot be kept: %lld ms until it is renewed, two "
        "requests of timeout_ms %lld, a grace of %lld ms and %lld ms to spare "
        "are %lld ms; write %s",
        (long long)args->ttl_ms, (long long)(args->ttl_ms / 3),
        (long long)run->request_ms, (long long)run->grace_ms,
        (long long)margin_of(args->ttl_ms), (long long)sum_ms, remedy);
    return EXIT_USAGE;
}

/* A parameter of the URLs that is a number; 0: none gives it, or none that can
 * be read, which the library will say. */
static int64_t number_of(const struct url_list *list, const char *name)
{
    char *text = url_list_value(list, name);
    int64_t number = text != NULL ? strtoll(text, NULL, 10) : 0;

    free(text);
    return number > 0 && number < INT32_MAX ? number : 0;
}

/* --at-least is what it takes that a crashed holder blocks others for so long.
 * But where a restarted server waits for the longest lease, that is everybody's
 * to know. */
static void raise_longest(struct args *args, const struct url_list *list)
{
    char *guard = url_list_value(list, "guard_restarts");

    if (args->run.at_least_ms > 2 * DEFAULT_TTL_MS && guard == NULL &&
        list->count == 1 && number_of(list, "max_ttl_ms") == 0)
        args->max_ttl_ms = args->run.at_least_ms;
    free(guard);
}

int timing_settle(struct args *args)
{
    struct url_list list;

    if (!session_urls(args, &list)) {
        say("out of memory");
        return EXIT_INTERNAL;
    }
    int64_t longest_ms = number_of(&list, "max_ttl_ms");
    int64_t given_ms = number_of(&list, "timeout_ms");
    raise_longest(args, &list);
    url_list_free(&list);
    if (args->ttl == NULL && longest_ms > 0)
        args->ttl_ms = smaller(args->ttl_ms, longest_ms);
    if (args->run.grace_ms < 0)
        args->run.grace_ms = smaller(args->ttl_ms / 6, GRACE_MAX_MS);
    args->timeout_ms = timeout_of(args->ttl_ms);
    args->run.request_ms = given_ms > 0 ? given_ms : args->timeout_ms;
    if (args->run.at_most_ms == 0 ||
        args->run.at_least_ms <= args->run.at_most_ms)
        return 0;
    say("--at-least, %lld ms, is more than --at-most, %lld ms; it has to be "
        "the other way round", (long long)args->run.at_least_ms,
        (long long)args->run.at_most_ms);
    return EXIT_USAGE;
}

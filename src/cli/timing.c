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
#define MARGIN_MS 100

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Of a lease: the machine needs some time to end a process. */
static int64_t margin_of(int64_t ttl_ms)
{
    return larger(ttl_ms / 100, smaller(MARGIN_MS, ttl_ms / 10));
}

int64_t timing_margin_ms(const struct args *args)
{
    return margin_of(args->ttl_ms);
}

/* What the command needs beside the renewal period. */
static int64_t needs(const struct args *args)
{
    return args->ttl_ms / 3 + 2 * args->run.request_ms + args->run.grace_ms +
           margin_of(args->ttl_ms);
}

static int too_tight(const struct args *args)
{
    int64_t request_ms = args->run.request_ms;
    int64_t grace_ms = args->ttl_ms - 1 - needs(args) + args->run.grace_ms;
    int64_t longer_ms =
        (2 * request_ms + args->run.grace_ms + MARGIN_MS) * 3 / 2 + 2;
    char remedy[96];

    if (margin_of(longer_ms) > MARGIN_MS)
        longer_ms += longer_ms / 50;
    if (args->run.grace_ms > 0 && grace_ms > 0)
        snprintf(remedy, sizeof(remedy), "--grace %lldms or --ttl %lldms",
            (long long)grace_ms, (long long)longer_ms);
    else
        snprintf(remedy, sizeof(remedy),
            "--ttl %lldms, or less than timeout_ms %lld",
            (long long)longer_ms, (long long)request_ms);
    say("a lease of %lld ms cannot be kept: %lld ms until it is renewed, two "
        "requests of %lld ms, a grace of %lld ms and %lld ms to spare are "
        "%lld ms; write %s",
        (long long)args->ttl_ms, (long long)(args->ttl_ms / 3),
        (long long)request_ms, (long long)args->run.grace_ms,
        (long long)margin_of(args->ttl_ms),
        (long long)needs(args), remedy);
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

int timing_settle(struct args *args)
{
    struct url_list list;

    if (!session_urls(args, &list)) {
        say("out of memory");
        return EXIT_INTERNAL;
    }
    int64_t longest_ms = number_of(&list, "max_ttl_ms");
    int64_t given_ms = number_of(&list, "timeout_ms");
    url_list_free(&list);
    if (args->ttl == NULL && longest_ms > 0)
        args->ttl_ms = smaller(args->ttl_ms, longest_ms);
    if (args->run.grace_ms < 0)
        args->run.grace_ms = smaller(args->ttl_ms / 6, GRACE_MAX_MS);
    args->timeout_ms =
        larger(smaller(args->ttl_ms / 10, REQUEST_MAX_MS), REQUEST_MIN_MS);
    args->run.request_ms = given_ms > 0 ? given_ms : args->timeout_ms;
    if (args->run.at_most_ms == 0 ||
        args->run.at_least_ms <= args->run.at_most_ms)
        return 0;
    say("--at-least, %lld ms, is more than --at-most, %lld ms; it has to be "
        "the other way round", (long long)args->run.at_least_ms,
        (long long)args->run.at_most_ms);
    return EXIT_USAGE;
}

int timing_check(const struct args *args)
{
    return needs(args) >= args->ttl_ms ? too_tight(args) : 0;
}

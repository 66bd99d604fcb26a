/* SPDX-License-Identifier: MIT */
/*
 * --every: records runs, and skips one that is not due.
 *
 * Invariant: a run that began is recorded for nine tenths of the period, even
 * if this process dies; its lock is never freed, since that would release it.
 */
#include "cli/run/every.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/private.h"
#include "cli/servers/connect.h"
#include "cli/report/duration.h"
#include "cli/report/event.h"
#include "cli/look/foreign.h"
#include "cli/name.h"
#include "cli/report/report.h"

/* How long a run is recorded. Not for the whole period: cron jobs do not start
 * at exactly the same moment, clocks differ, and one day a year is an hour
 * shorter; a run that came a second too early would be skipped, and the next
 * one would be a period late. Not for much less either: an hourly cron job with
 * --every 1d, or one that is also started by hand, should run once a day. */
static int64_t window_ms(const struct args *args)
{
    return args->run.every_ms - args->run.every_ms / 10;
}

static struct {
    nxl_client *client;
    nxl_lock *lock;
    char *name; /* NAME:every or {NAME}:every */
} mark;

bool every_is_mark(const char *name, size_t length)
{
    enum companion what;
    struct slice key;

    return companion_of((struct slice){name, length}, &what, &key) &&
           what == COMPANION_EVERY;
}

/* The mark needs a client of its own, because its lease of hours exceeds
 * max_ttl_ms. Without the guards: if a restart loses the mark, the only
 * harm is one more run. */
static int make_mark_client(const struct session *session, int64_t ttl_ms)
{
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    struct url_list list;

    if (!connect_urls(session->args, &list))
        return NXL_E_NOMEM;
    url_list_drop(&list, "max_ttl_ms");
    url_list_drop(&list, "guard_restarts");
    url_list_drop(&list, "guard_failover");
    options.timeout_ms = session->args->timeout_ms;
    options.max_ttl_ms = ttl_ms;
    options.guard_restarts = NXL_GUARD_OFF;
    options.guard_failover = NXL_GUARD_OFF;
    int rc = nxl_client_new_urls(
        &mark.client, (const char *const *)list.urls, list.count, &options);
    url_list_free(&list);
    /* A mark is given back, and never waited for: the keys of a line would be
     * one more permission. */
    if (rc == NXL_OK)
        client_ignore_lines(mark.client);
    return rc;
}

static int acquire_mark(const struct session *session)
{
    const char *name = session->args->name;
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;

    options.ttl_ms = window_ms(session->args);
    options.label = session->label;
    int rc = make_mark_client(session, options.ttl_ms);
    if (rc != NXL_OK)
        return rc;
    mark.name = name_companion(name, COMPANION_EVERY);
    if (!mark.name)
        return NXL_E_NOMEM;
    rc = nxl_lock_new(&mark.lock, mark.client, mark.name, &options);
    return rc == NXL_OK ? nxl_lock_acquire(mark.lock, 0) : rc;
}

/* The mark's TTL comes from the --every of the run that wrote it, which may
 * differ from ours. So it is unknown when that run started. */
static int report_not_due(const struct session *session)
{
    const struct args *args = session->args;
    nxl_holder holder = NXL_HOLDER_INIT;
    char who[160] = "somebody", window[DURATION_ROOM], left[DURATION_ROOM];
    struct event event = {.kind = EVENT_SKIPPED, .result = RESULT_NOT_DUE};

    /* The inspection takes a request. */
    if (!event_is_read(EVENT_SKIPPED) ||
        nxl_lock_inspect(mark.lock, &holder) != NXL_OK) {
        event_report(event, "'%s' is not due; CMD is not started", args->shown);
        return args->busy_code;
    }
    const char *label = holder.label ? foreign(holder.label) : NULL;
    if (label)
        event.holder = printable(who, sizeof(who), label, strlen(label));
    event.left_ms = holder.left_ms;
    duration_text(window, window_ms(args));
    duration_rough(left, holder.left_ms);
    if (holder.left_ms > window_ms(args))
        event_report(event,
            "'%s' is not due; CMD is not started: the last run, by %s, "
            "used a longer period than --every %s; the next run may "
            "start in %s",
            args->shown, who, args->run.every, left);
    else
        event_report(event,
            "'%s' is not due; CMD is not started: %s ran it last, and "
            "--every %s skips runs for %s; the next run may start in %s",
            args->shown, who, args->run.every, window, left);
    return args->busy_code;
}

/* It names the key, for which the user may lack the permission. */
static void report_failure(const struct session *session, int rc)
{
    const char *why =
        failure_words(mark.lock ? nxl_lock_errmsg(mark.lock) : "", rc);
    char key[NAME_SHOWN];

    event_report((struct event){.kind = event_of_failure(rc), .why = why},
        "cannot record a run of '%s' in the key '%s%s': %s",
        session->args->shown, mark.name ? nxl_client_prefix(mark.client) : "",
        name_shown(key, mark.name ? mark.name : ""), why);
    if (mark.client)
        connect_advise(session->args, mark.client, rc);
}

bool every_mark(struct session *session, int *code)
{
    int rc = acquire_mark(session);

    if (rc == NXL_OK)
        return true;
    if (rc == NXL_BUSY) {
        *code = report_not_due(session);
    } else {
        report_failure(session, rc);
        *code = rc > 0 ? EXIT_UNAVAILABLE : exit_code_for(rc, 0);
    }
    every_give_back();
    return false;
}

void every_give_back(void)
{
    nxl_lock_free(mark.lock);
    nxl_client_free(mark.client);
    free(mark.name);
    mark.lock = NULL;
    mark.client = NULL;
    mark.name = NULL;
}

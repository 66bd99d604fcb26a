/* SPDX-License-Identifier: MIT */
/*
 * Keeps: a run that began is recorded until half a period later, also when
 * this process ends; its lock is never freed, for that would release it.
 */
#include "cli/every.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report.h"

static struct {
    nxl_client *client;
    nxl_lock *lock;
} record;

/* As the server hashes names: what stands in the first pair of braces. */
static bool has_tag(const char *name)
{
    const char *open = strchr(name, '{');
    const char *close = open != NULL ? strchr(open, '}') : NULL;

    return close != NULL && close > open + 1;
}

/* A client of its own: for the others of this name a lease of hours is not
 * allowed, and a restart that forgets a record costs one more run, no more. */
static int make_client(const struct session *session, int64_t ttl_ms)
{
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    struct url_list list;

    if (!session_urls(session->args, &list))
        return NXL_E_NOMEM;
    url_list_drop(&list, "max_ttl_ms");
    url_list_drop(&list, "guard_restarts");
    options.timeout_ms = session->args->timeout_ms;
    options.max_ttl_ms = ttl_ms;
    options.guard_restarts = -1;
    int rc = nxl_client_new_urls(&record.client,
        (const char *const *)list.urls, list.count, &options);
    url_list_free(&list);
    return rc;
}

static int acquire(const struct session *session)
{
    const char *name = session->args->name;
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    char *key = NULL;

    options.ttl_ms = session->args->run.every_ms / 2;
    options.label = session->label;
    int rc = make_client(session, options.ttl_ms);
    if (rc != NXL_OK)
        return rc;
    if (asprintf(&key, has_tag(name) ? "%s:every" : "{%s}:every", name) < 0)
        return NXL_E_NOMEM;
    rc = nxl_lock_new(&record.lock, record.client, key, &options);
    free(key);
    return rc == NXL_OK ? nxl_lock_acquire(record.lock, 0) : rc;
}

static int not_due(const struct session *session)
{
    const struct args *args = session->args;
    nxl_holder holder;
    char who[160] = "somebody";

    if (!session_talks(session))
        return args->busy_code;
    if (nxl_lock_inspect(record.lock, &holder) != NXL_OK) {
        say("'%s' is not due", args->shown);
        return args->busy_code;
    }
    if (holder.label != NULL)
        printable(who, sizeof(who), holder.label, strlen(holder.label));
    say("'%s' is not due: %s ran it; a run counts for %lld s more",
        args->shown, who, (long long)((holder.left_ms + 999) / 1000));
    return args->busy_code;
}

bool every_record(struct session *session, int *code)
{
    int rc = acquire(session);

    if (rc == NXL_OK)
        return true;
    if (rc == NXL_BUSY) {
        *code = not_due(session);
    } else {
        const char *why = record.lock != NULL ? nxl_lock_errmsg(record.lock)
                                              : "";
        say("cannot record a run of '%s': %s", session->args->shown,
            why[0] != '\0' ? why : nxl_strerror(rc));
        *code = rc > 0 ? EXIT_UNAVAILABLE : exit_code_for(rc, 0);
    }
    every_give_back();
    return false;
}

void every_give_back(void)
{
    nxl_lock_free(record.lock);
    nxl_client_free(record.client);
    record.lock = NULL;
    record.client = NULL;
}

/* SPDX-License-Identifier: MIT */
/*
 * Sets the environment of the command of run.
 *
 * Invariant: a variable of an enclosing run is never mistaken for one of this
 * run: those that do not apply are unset.
 */
#include "cli/environ.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Adds the enclosing run's token to NXLOCK_OUTER, outermost first: an nxlock
 * inside CMD uses it to recognize a deadlock. */
static bool set_outer(void)
{
    const char *token = getenv("NXLOCK_TOKEN");
    const char *outer = getenv("NXLOCK_OUTER");
    char *all = NULL;

    if (!token)
        return true;
    bool first = !outer || outer[0] == '\0';
    if (asprintf(&all, "%s%s%s", first ? "" : outer, first ? "" : " ", token) <
        0)
        return false;
    bool ok = setenv("NXLOCK_OUTER", all, 1) == 0;
    free(all);
    return ok;
}

static bool set_number_variable(const char *name, unsigned long long number)
{
    char text[32];

    snprintf(text, sizeof(text), "%llu", number);
    return setenv(name, text, 1) == 0;
}

/* "user=...&password=..." of a query, which url_list_make() adds; the caller's
 * to free(). NULL: no memory. */
static char *credentials_of(const char *query)
{
    char *all = calloc(1, strlen(query) + 2);
    size_t length = 0;

    for (const char *at = query; all && *at != '\0';) {
        size_t part = strcspn(at, "&");
        if (strncmp(at, "user=", 5) == 0 || strncmp(at, "password=", 9) == 0) {
            if (length > 0)
                all[length++] = '&';
            memcpy(all + length, at, part);
            length += part;
        }
        at += part + (at[part] == '&');
    }
    return all;
}

/* An nxlock inside CMD must use the same servers, whatever else is set:
 * otherwise both could hold the same name, on different servers. */
static bool set_urls(const struct args *args)
{
    char *query = credentials_of(args->query ? args->query : "");
    struct url_list list;
    bool passes = args->run.pass_url;

    if (!query || !url_list_make(&list, args->urls, args->url_count,
                      passes && query[0] != '\0' ? query : NULL)) {
        free(query);
        return false;
    }
    free(query);
    if (!passes)
        url_list_strip_passwords(&list);
    char *all = url_list_join(&list);
    url_list_free(&list);
    bool ok = all && setenv("NXLOCK_URL", all, 1) == 0;
    free(all);
    if (!args->url_path || passes)
        return ok && unsetenv("NXLOCK_URL_FILE") == 0;
    return ok && setenv("NXLOCK_URL_FILE", args->url_path, 1) == 0;
}

/* The key is the prefix and the name. */
static bool set_key(const struct session *session)
{
    char *key = NULL;

    if (asprintf(&key, "%s%s", nxl_client_prefix(session->client),
            session->args->name) < 0)
        return false;
    bool ok = setenv("NXLOCK_KEY", key, 1) == 0;
    free(key);
    return ok;
}

static bool set_lock(const struct session *session)
{
    uint64_t fence = nxl_lock_fence(session->lock);

    unsetenv("NXLOCK_FENCE");
    return setenv("NXLOCK_HELD", "1", 1) == 0 &&
           setenv("NXLOCK_TOKEN", nxl_lock_token(session->lock), 1) == 0 &&
           (fence == 0 || set_number_variable("NXLOCK_FENCE", fence));
}

static bool set_no_lock(void)
{
    unsetenv("NXLOCK_TOKEN");
    unsetenv("NXLOCK_FENCE");
    return setenv("NXLOCK_HELD", "0", 1) == 0;
}

bool environ_set(const struct session *session, int lost_fd)
{
    const struct args *args = session->args;

    return set_outer() && set_urls(args) && set_key(session) &&
           (session->unlocked ? set_no_lock() : set_lock(session)) &&
           setenv("NXLOCK_NAME", args->name, 1) == 0 &&
           set_number_variable(
               "NXLOCK_TTL_MS", (unsigned long long)args->ttl_ms) &&
           set_number_variable(
               "NXLOCK_SUPERVISOR_PID", (unsigned long long)getpid()) &&
           set_number_variable("NXLOCK_LOST_FD", (unsigned long long)lost_fd);
}

/* SPDX-License-Identifier: MIT */
/*
 * Keeps: nothing of an outer lock's is taken for this one's: what this one
 * has not is unset.
 */
#include "cli/environ.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A command around this one may hold what one inside it asks for: the tokens
 * of all around go into NXLOCK_OUTER, the outermost first. */
static bool set_outer(void)
{
    const char *token = getenv("NXLOCK_TOKEN");
    const char *outer = getenv("NXLOCK_OUTER");
    char *all = NULL;

    if (token == NULL)
        return true;
    bool first = outer == NULL || outer[0] == '\0';
    if (asprintf(&all, "%s%s%s", first ? "" : outer, first ? "" : " ", token) <
        0)
        return false;
    bool ok = setenv("NXLOCK_OUTER", all, 1) == 0;
    free(all);
    return ok;
}

static bool set_number(const char *name, unsigned long long number)
{
    char text[32];

    snprintf(text, sizeof(text), "%llu", number);
    return setenv(name, text, 1) == 0;
}

/* The key is the prefix and the name. */
static bool set_key(const struct args *args)
{
    struct url_list list;
    char *key = NULL;

    if (!session_urls(args, &list))
        return false;
    char *prefix = url_list_value(&list, "prefix");
    url_list_free(&list);
    if (asprintf(&key, "%s%s", prefix != NULL ? prefix : "", args->name) < 0)
        key = NULL;
    bool ok = key != NULL && setenv("NXLOCK_KEY", key, 1) == 0;
    free(prefix);
    free(key);
    return ok;
}

static bool set_lock(const struct session *session)
{
    uint64_t fence = nxl_lock_fence(session->lock);

    unsetenv("NXLOCK_FENCE");
    return setenv("NXLOCK_HELD", "1", 1) == 0 &&
           setenv("NXLOCK_TOKEN", nxl_lock_token(session->lock), 1) == 0 &&
           (fence == 0 || set_number("NXLOCK_FENCE", fence));
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

    return set_outer() && set_key(args) &&
           (session->unlocked ? set_no_lock() : set_lock(session)) &&
           setenv("NXLOCK_NAME", args->name, 1) == 0 &&
           set_number("NXLOCK_TTL_MS", (unsigned long long)args->ttl_ms) &&
           set_number("NXLOCK_SUPERVISOR_PID", (unsigned long long)getpid()) &&
           set_number("NXLOCK_LOST_FD", (unsigned long long)lost_fd);
}

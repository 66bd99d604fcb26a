/* SPDX-License-Identifier: MIT */
/*
 * Sets the environment of the command of run or once.
 *
 * Invariant: a variable of an enclosing run is never mistaken for one of this
 * run: those that do not apply are unset.
 */
#include "cli/run/environ.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/servers/conf.h"
#include "cli/names.h"
#include "cli/table.h"
#include "cli/servers/urls.h"
#include "cli/servers/variables.h"

/* Adds the enclosing run's token to NXLOCK_OUTER, outermost first: an nxlock
 * inside CMD uses it to recognize a deadlock. */
static bool set_outer(const struct session *session)
{
    const char *token = getenv("NXLOCK_TOKEN");
    const char *outer = getenv("NXLOCK_OUTER");
    char *all = NULL;

    if (!token || strcmp(token, nxl_lock_token(session->lock)) == 0)
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

/* Adds the options that belong to a server, with absolute paths. */
static bool add_options(struct url_list *list, const struct args *args)
{
    const struct option *option;
    bool ok = true;

    for (size_t i = 0; ok && (option = option_at(args->command, &i));) {
        const char *value = option_parameter(args, option);
        if (!value || !option_of_server(option))
            continue;
        char *whole =
            option_names_file(option) ? absolute_path(value) : strdup(value);
        ok = whole && url_list_set_all(list, option->variable, whole);
        free(whole);
    }
    return ok;
}

/* An nxlock inside CMD must use the same servers, whatever else is set:
 * otherwise both could hold the same name, on different servers. */
static bool set_urls(const struct args *args)
{
    struct url_list list;
    bool passes = args->run.pass_url;

    if (!url_list_make(&list, args->urls, args->url_count))
        return false;
    if (!passes)
        url_list_strip_passwords(&list);
    /* The file's settings for these servers: an nxlock inside CMD takes the
     * URLs as they are. */
    char *all = add_options(&list, args) && conf_add(args, &list, true)
                    ? url_list_join(&list)
                    : NULL;
    url_list_free(&list);
    bool ok = all && setenv("NXLOCK_URL", all, 1) == 0;
    free(all);
    if (!args->url_path || passes)
        return ok && unsetenv("NXLOCK_URL_FILE") == 0;
    return ok && setenv("NXLOCK_URL_FILE", args->url_path, 1) == 0;
}

/* The key is the prefix and the name. */
static bool set_key(
    const struct session *session, const char *variable, const char *name)
{
    char *key = NULL;

    if (asprintf(&key, "%s%s", nxl_client_prefix(session->client), name) < 0)
        return false;
    bool ok = setenv(variable, key, 1) == 0;
    free(key);
    return ok;
}

/* The variables that each of several names has: PREFIX1 is that of NAME. */
#define NUMBERED_NAME "NXLOCK_NAME_"
#define NUMBERED_KEY "NXLOCK_KEY_"
#define NUMBERED_FENCE "NXLOCK_FENCE_"
#define NUMBERED_ROOM (sizeof(NUMBERED_FENCE) + 20) /* of a size_t */

static const char *numbered(char *out, const char *prefix, size_t number)
{
    snprintf(out, NUMBERED_ROOM, "%s%zu", prefix, number);
    return out;
}

/* Those of an enclosing run that may not apply. */
static void unset_variables(void)
{
    static const char *const names[] = {"NXLOCK_TOKEN", "NXLOCK_FENCE",
        "NXLOCK_NAME_COUNT", "NXLOCK_ONCE_ATTEMPT", "NXLOCK_ONCE_DOUBTS",
        "NXLOCK_ONCE_SINCE", "NXLOCK_ONCE_BY"};
    static const char *const prefixes[] = {
        NUMBERED_NAME, NUMBERED_KEY, NUMBERED_FENCE};
    char variable[NUMBERED_ROOM];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unsetenv(names[i]);
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        for (size_t number = 1; number <= NXL_NAMES_MAX; number++)
            unsetenv(numbered(variable, prefixes[i], number));
    }
}

static bool set_one_of_several(const struct session *session, size_t i)
{
    const char *name = names_at(session->args, i);
    uint64_t fence = nxl_lock_fence_of(session->lock, i);
    char variable[NUMBERED_ROOM];

    return setenv(numbered(variable, NUMBERED_NAME, i + 1), name, 1) == 0 &&
           set_key(session, numbered(variable, NUMBERED_KEY, i + 1), name) &&
           (fence == 0 ||
               set_number_variable(
                   numbered(variable, NUMBERED_FENCE, i + 1), fence));
}

static bool set_names(const struct session *session)
{
    const struct args *args = session->args;
    bool ok = setenv("NXLOCK_NAME", args->name, 1) == 0 &&
              set_key(session, "NXLOCK_KEY", args->name);

    if (!names_several(args))
        return ok;
    for (size_t i = 0; ok && i < names_count(args); i++)
        ok = set_one_of_several(session, i);
    return ok && set_number_variable("NXLOCK_NAME_COUNT", names_count(args));
}

static bool set_lock(const struct session *session)
{
    uint64_t fence = nxl_lock_fence(session->lock);

    return setenv("NXLOCK_TOKEN", nxl_lock_token(session->lock), 1) == 0 &&
           (fence == 0 || set_number_variable("NXLOCK_FENCE", fence));
}

static bool set_attempt(const struct attempt *attempt)
{
    if (!attempt)
        return true;
    return set_number_variable(
               "NXLOCK_ONCE_ATTEMPT", (unsigned long long)attempt->number) &&
           set_number_variable(
               "NXLOCK_ONCE_DOUBTS", (unsigned long long)attempt->doubts) &&
           (attempt->since[0] == '\0' ||
               setenv("NXLOCK_ONCE_SINCE", attempt->since, 1) == 0) &&
           (attempt->by[0] == '\0' ||
               setenv("NXLOCK_ONCE_BY", attempt->by, 1) == 0);
}

bool environ_set(
    const struct session *session, const struct attempt *attempt, int lost_fd)
{
    const struct args *args = session->args;

    if (!set_outer(session))
        return false;
    unset_variables();
    return set_urls(args) && variables_pass(args) && set_names(session) &&
           set_lock(session) && set_attempt(attempt) &&
           set_number_variable(
               "NXLOCK_TTL_MS", (unsigned long long)args->ttl_ms) &&
           set_number_variable(
               "NXLOCK_SUPERVISOR_PID", (unsigned long long)getpid()) &&
           set_number_variable("NXLOCK_LOST_FD", (unsigned long long)lost_fd);
}

/* SPDX-License-Identifier: MIT */
/*
 * Applies the configuration files: defaults for options and for the URLs.
 *
 * Invariant: a file never changes what an option, a variable or a URL of a
 * source before it says. What says how to log in to a server and whom to trust
 * goes to the servers of the same file and of the sources after it only, so
 * that no password reaches another server.
 */
#include "cli/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report.h"
#include "cli/value.h"
#include "cli/variables.h"

/* ---------------------------------------------------------------- options */

static const char **written_value(
    struct args *args, const struct option *option)
{
    return (const char **)((char *)args + option->written);
}

/* Does this command have the option, and was it not given? */
static bool is_default(struct args *args, const struct setting *setting)
{
    const struct option *option = setting->option;
    bool waits = option->member == offsetof(struct args, wait_ms);

    return option->written != 0 &&
           option_find(args->command, '\0', option->name,
               strlen(option->name)) == option &&
           !*written_value(args, option) && !(waits && args->no_wait);
}

int settings_apply(struct args *args)
{
    int code = 0;

    for (size_t i = 0; code == 0 && i < args->settings->count; i++) {
        const struct setting *setting = &args->settings->list[i];
        if (is_default(args, setting))
            code = value_set(
                args, setting->option, setting->where, setting->value);
    }
    return code;
}

const struct setting *settings_origin(
    const struct args *args, const struct option *option)
{
    const char *value = *written_value((struct args *)args, option);

    for (size_t i = 0; i < args->settings->count; i++) {
        /* Compares pointers: an option with equal text is not from a file. */
        if (args->settings->list[i].value == value)
            return &args->settings->list[i];
    }
    return NULL;
}

void settings_mention(const struct args *args, enum value_type type)
{
    const struct option *option;
    const struct setting *setting;

    for (size_t i = 0; (option = option_at(args->command, &i));) {
        if (option->type == type && option->written != 0 &&
            (setting = settings_origin(args, option)))
            say("--%s %s is from %s", option->name, setting->value,
                setting->where);
    }
}

/* --------------------------------------------------------------- the URLs */

/* Does this file name the user? Then its password is for that user only. */
static bool names_user(const struct settings *settings, enum rank rank)
{
    for (size_t i = 0; i < settings->count; i++) {
        const struct setting *setting = &settings->list[i];
        if (setting->rank == rank && setting->option->variable &&
            strcmp(setting->option->variable, "user") == 0)
            return true;
    }
    return false;
}

/* Is the setting, of a kind that belongs to a server, for this URL? */
static bool suits_server(
    const struct args *args, const struct setting *setting, const char *url)
{
    const char *name = setting->option->variable;
    char user[URL_VALUE_ROOM];
    bool has_user = url_user(url, user, sizeof(user));

    if ((int)setting->rank > args->url_rank)
        return false;
    /* Beside a URL of its own file the library reports what does not fit. */
    if (option_of_tls(setting->option) && !url_uses_tls(url) &&
        (int)setting->rank != args->url_rank)
        return false;
    if (strcmp(name, "user") == 0)
        return !has_user;
    if (strcmp(name, "password_file") == 0 && has_user &&
        names_user(args->settings, setting->rank))
        return false;
    if (strcmp(name, "db") == 0 && url_has_database(url))
        return false;
    return variables_leave(args, url, name);
}

static bool any_has(const struct url_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++) {
        if (url_has_parameter(list->urls[i], name))
            return true;
    }
    return false;
}

/* Adds the settings of one file to one URL. It is decided on the URL as it is
 * before. */
static bool add_to_server(const struct args *args, struct url_list *list,
    size_t at, const bool *wanted, enum rank rank)
{
    const struct settings *settings = args->settings;
    char *before = strdup(list->urls[at]);
    bool ok = before;

    for (size_t i = 0; ok && i < settings->count; i++) {
        const struct setting *setting = &settings->list[i];
        if (!wanted[i] || setting->rank != rank)
            continue;
        if (!option_of_server(setting->option) ||
            suits_server(args, setting, before))
            ok = url_list_set(
                list, at, setting->option->variable, setting->value);
    }
    if (before)
        explicit_bzero(before, strlen(before));
    free(before);
    return ok;
}

bool settings_add(
    const struct args *args, struct url_list *list, bool servers_only)
{
    const struct settings *settings = args->settings;
    bool *wanted = calloc(settings->count + 1, sizeof(*wanted));
    bool ok = wanted;

    for (enum rank rank = RANK_USER; ok && rank <= RANK_SYSTEM; rank++) {
        for (size_t i = 0; i < settings->count; i++) {
            const struct option *option = settings->list[i].option;
            /* One URL is enough to set a parameter of all. */
            wanted[i] =
                option->type == VALUE_PARAMETER &&
                (option_of_server(option) ||
                    (!servers_only && !any_has(list, option->variable)));
        }
        for (size_t at = 0; ok && at < list->count; at++)
            ok = !strstr(list->urls[at], "://") || /* the library reports it */
                 add_to_server(args, list, at, wanted, rank);
    }
    free(wanted);
    return ok;
}

const char *settings_used(
    char *out, const struct args *args, const char *message)
{
    out[0] = '\0';
    for (size_t i = 0; i < args->settings->count; i++) {
        const struct setting *setting = &args->settings->list[i];
        size_t used = strlen(out);
        if (setting->option->type == VALUE_PARAMETER &&
            (int)setting->rank <= args->url_rank &&
            (strstr(message, setting->value) ||
                strstr(message, setting->option->variable)))
            snprintf(out + used, SETTINGS_ROOM - used, "%s%s",
                used > 0 ? " and " : "", setting->where);
    }
    return out;
}

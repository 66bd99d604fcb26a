/* SPDX-License-Identifier: MIT */
/*
 * Applies the configuration file: defaults for options and for the URLs.
 *
 * Invariant: the file never changes what an option, a variable or a URL says.
 * What says how to log in to a server and whom to trust goes to the servers
 * that the file names itself and to the default one only, so that no password
 * reaches another server.
 */
#include "cli/servers/conf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report/report.h"
#include "cli/value.h"
#include "cli/servers/variables.h"

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

int conf_apply(struct args *args)
{
    int code = 0;

    for (size_t i = 0; code == 0 && i < args->conf->count; i++) {
        const struct setting *setting = &args->conf->list[i];
        if (is_default(args, setting))
            code = value_set(
                args, setting->option, setting->where, setting->value);
    }
    return code;
}

void conf_mention(const struct args *args, enum value_type type)
{
    for (size_t i = 0; i < args->conf->count; i++) {
        const struct setting *setting = &args->conf->list[i];
        const struct option *option = setting->option;
        /* Compares pointers: an option with equal text is not from a file. */
        if (option->type == type && option->written != 0 &&
            *written_value((struct args *)args, option) == setting->value)
            say("--%s %s is from %s", option->name, setting->value,
                setting->where);
    }
}

/* --------------------------------------------------------------- the URLs */

/* Do the URL and the variables leave it open which password is used? */
static bool leaves_password(const struct args *args, const char *url)
{
    return !args->password && !variable_value(PASSWORD_FILE_VARIABLE) &&
           !url_facts(url).names_password;
}

/* Does the URL leave it open which CA is trusted? verify=none trusts anybody,
 * and the library refuses the two together. */
static bool leaves_ca(const char *url)
{
    return !url_has_parameter(url, "cacert") &&
           !url_has_parameter(url, "cacertdir") &&
           !url_facts(url).trusts_anybody;
}

/* Is the setting, of a kind that belongs to a server, for this URL? */
static bool suits_server(
    const struct args *args, const struct setting *setting, const char *url)
{
    if (args->url_from == URLS_GIVEN)
        return false;
    /* Beside a URL of the file the library reports what does not fit. */
    if (option_of_tls(setting->option) && !url_facts(url).uses_tls &&
        args->url_from != URLS_OF_CONF)
        return false;
    return strcmp(setting->option->variable, "cacert") == 0
               ? leaves_ca(url)
               : leaves_password(args, url);
}

static bool any_has(const struct url_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++) {
        if (url_has_parameter(list->urls[i], name))
            return true;
    }
    return false;
}

/* Adds a setting to the URLs that it is for. */
static bool add_setting(const struct args *args, struct url_list *list,
    const struct setting *setting)
{
    const char *name = setting->option->variable;
    bool of_server = option_of_server(setting->option);

    /* One URL is enough to set a parameter of all. */
    if (!of_server && any_has(list, name))
        return true;
    for (size_t i = 0; i < list->count; i++) {
        /* The library reports what is no URL. */
        if (url_facts(list->urls[i]).valid &&
            (!of_server || suits_server(args, setting, list->urls[i])) &&
            !url_list_set(list, i, name, setting->value))
            return false;
    }
    return true;
}

bool conf_add(const struct args *args, struct url_list *list, bool servers_only)
{
    bool ok = true;

    for (size_t i = 0; ok && i < args->conf->count; i++) {
        const struct setting *setting = &args->conf->list[i];
        if (setting->option->type == VALUE_PARAMETER &&
            (!servers_only || option_of_server(setting->option)))
            ok = add_setting(args, list, setting);
    }
    return ok;
}

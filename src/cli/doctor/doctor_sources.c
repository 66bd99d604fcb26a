/* SPDX-License-Identifier: MIT */
/*
 * Reports where each setting comes from: an option, a variable, a line of the
 * configuration file.
 *
 * Invariant: what is reported was found by the functions that every command
 * uses, and no value is printed, so no password either.
 */
#include "cli/doctor/doctor_state.h"

#include <stdio.h>
#include <string.h>

#include "cli/servers/conf.h"
#include "cli/servers/connect.h"
#include "cli/servers/source.h"
#include "cli/value.h"
#include "cli/servers/variables.h"

static void report(struct doctor *d, const char *name, const char *from)
{
    diagnostic(&d->diagnostics, LEVEL_OK, name, NULL, "from %s", from);
}

/* The line of the configuration file that sets the option, or NULL. */
static const char *conf_origin(
    const struct args *args, const struct option *option)
{
    for (size_t i = 0; i < args->conf->count; i++) {
        if (args->conf->list[i].option == option)
            return args->conf->list[i].where;
    }
    return NULL;
}

/* Where the parameter of a URL comes from; bare is that URL as its source has
 * it. option is the one of the parameter, NULL for the password. */
static const char *parameter_origin(const struct args *args, const char *bare,
    const char *name, const struct option *option)
{
    static char words[SOURCE_ROOM];
    bool is_file = strcmp(name, "password_file") == 0;

    if (url_has_parameter(bare, name))
        return source_words(words, args);
    if (!option)
        return PASSWORD_VARIABLE;
    if (value_has_parameter(args->query, name)) {
        snprintf(words, sizeof(words), "--%s", option->name);
        return words;
    }
    return is_file && variable_value(PASSWORD_FILE_VARIABLE)
               ? PASSWORD_FILE_VARIABLE
               : conf_origin(args, option);
}

/* Reports a parameter of the URLs in use, if one of them has it. */
static void report_parameter(struct doctor *d, const struct url_list *bare,
    const struct url_list *used, const struct option *option)
{
    const char *name = option ? option->variable : "password";
    size_t i = 0;

    while (i < used->count && !url_has_parameter(used->urls[i], name))
        i++;
    if (i == used->count)
        return;
    const char *from = parameter_origin(d->args, bare->urls[i], name, option);
    if (from)
        report(d, option ? option->name : name, from);
}

static bool report_parameters(struct doctor *d)
{
    const struct option *option;
    struct url_list bare, used;

    if (!url_list_make(&bare, d->args->urls, d->args->url_count, NULL))
        return false;
    bool ok = connect_urls(d->args, &used);
    if (ok) {
        report_parameter(d, &bare, &used, NULL);
        for (size_t i = 0; (option = option_at(CMD_DOCTOR, &i));) {
            if (option->type == VALUE_PARAMETER)
                report_parameter(d, &bare, &used, option);
        }
        url_list_free(&used);
    }
    url_list_free(&bare);
    return ok;
}

/* Reports the defaults of other commands that the file sets. */
static void report_defaults(struct doctor *d)
{
    const struct conf *conf = d->args->conf;

    for (size_t i = 0; i < conf->count; i++) {
        if (conf->list[i].option->written != 0)
            report(d, conf->list[i].option->name, conf->list[i].where);
    }
}

bool doctor_sources(struct doctor *d)
{
    char words[SOURCE_ROOM];

    if (source_is_default(d->args))
        diagnostic(&d->diagnostics, LEVEL_OK, "url", NULL,
            FALLBACK_URL ", because none was given");
    else
        report(d, "url", source_words(words, d->args));
    if (!report_parameters(d))
        return false;
    report_defaults(d);
    return true;
}

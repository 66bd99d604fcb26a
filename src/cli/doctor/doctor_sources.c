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

#include "cli/servers/conf_file.h"
#include "cli/servers/connect.h"
#include "cli/servers/source.h"

static void report(
    struct doctor *d, const char *name, const char *dashes, const char *from)
{
    diagnostic(
        &d->diagnostics, LEVEL_OK, name, NULL, "from %s%s", dashes, from);
}

/* Reports a parameter of the URLs in use, if one of them has it. option: of the
 * parameter; NULL: the password. */
static void report_parameter(
    struct doctor *d, const struct url_list *bare, const struct option *option)
{
    const char *name = option ? option->variable : "password";
    char source[SOURCE_ROOM];
    size_t i = 0;

    while (i < d->urls.count && !url_has_parameter(d->urls.urls[i], name))
        i++;
    if (i == d->urls.count)
        return;
    const char *from = source_of(d->args, bare->urls[i], option);
    bool given = option && from == option->name;
    report(d, option ? option->name : name, given ? "--" : "",
        from ? from : source_words(source, d->args));
}

bool doctor_sources(struct doctor *d)
{
    const struct conf *conf = d->args->conf;
    const struct option *option;
    char words[SOURCE_ROOM];
    struct url_list bare;

    if (!url_list_make(&bare, d->args->urls, d->args->url_count))
        return false;
    if (d->args->url_from == URLS_DEFAULT)
        diagnostic(&d->diagnostics, LEVEL_OK, "url", NULL,
            FALLBACK_URL ", because none was given");
    else
        report(d, "url", "", source_words(words, d->args));
    report_parameter(d, &bare, NULL);
    for (size_t i = 0; (option = option_at(CMD_DOCTOR, &i));) {
        if (option->type == VALUE_PARAMETER)
            report_parameter(d, &bare, option);
    }
    url_list_free(&bare);
    /* And the defaults of other commands that the file sets. */
    for (size_t i = 0; i < conf->count; i++) {
        if (conf->list[i].option->written != 0)
            report(d, conf->list[i].option->name, "", conf->list[i].where);
    }
    return true;
}

/* SPDX-License-Identifier: MIT */
/*
 * Creates the client for the servers of a command line.
 *
 * Invariant: if it cannot be created, the message says where the wrong part
 * came from: a URL, an option or a variable.
 */
#include "cli/servers/connect.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/servers/conf.h"
#include "cli/report/diagnostic.h"
#include "cli/help.h"
#include "cli/report/report.h"
#include "cli/servers/source.h"
#include "cli/table.h"
#include "cli/servers/variables.h"

#define WORDS_ROOM 1024
#define WITH_ROOM 640
#define WHY_ROOM 512

static bool add_options(const struct args *args, struct url_list *list)
{
    const struct option *option;
    bool ok = true;

    for (size_t i = 0; ok && (option = option_at(args->command, &i));) {
        const char *value = option_parameter(args, option);
        ok = !value || url_list_set_all(list, option->variable, value);
    }
    return ok;
}

bool connect_urls(const struct args *args, struct url_list *list)
{
    if (!url_list_make(list, args->urls, args->url_count))
        return false;
    if (add_options(args, list) && variables_add(args, list) &&
        conf_add(args, list, false))
        return true;
    url_list_free(list);
    return false;
}

static int make_client(nxl_client **client, const struct url_list *list,
    const nxl_client_options *options)
{
    return nxl_client_new_urls(
        client, (const char *const *)list->urls, list->count, options);
}

/* Reports what is wrong with the URLs: for doctor, that is a finding. */
static void tell(const struct args *args, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void tell(const struct args *args, const char *format, ...)
{
    struct diagnostics findings = {.json = args->json};
    char words[WORDS_ROOM];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(words, sizeof(words), format, arguments);
    va_end(arguments);
    if (args->command == CMD_DOCTOR)
        diagnostic(&findings, LEVEL_FAIL, "url", NULL, "%s", words);
    else
        say("%s", words);
}

/* Does the library say something else of these URLs without the parameter? Then
 * it has to do with what is wrong. */
static bool is_involved(
    const struct url_list *list, const char *parameter, const char *why)
{
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    char other[WHY_ROOM] = "";
    struct url_list without;
    nxl_client *probe = NULL;

    options.errbuf = other;
    options.errbuf_size = sizeof(other);
    if (!url_list_make(&without, (const char *const *)list->urls, list->count))
        return false;
    url_list_drop(&without, parameter);
    (void)!make_client(&probe, &without, &options);
    nxl_client_free(probe);
    url_list_free(&without);
    return strcmp(other, why) != 0;
}

/* Reports what is wrong with the URLs of list, and which parameters have to do
 * with it that are not in a URL. Returns the exit code: it is the command line
 * that is wrong if one of its options is, but not if that names a file or is
 * for TLS. */
static int report_url(const struct args *args, const struct url_list *list,
    const char *why, bool no_password)
{
    const struct option *option;
    char with[WITH_ROOM] = "", source[SOURCE_ROOM];
    bool by_option = false, about_file = false;
    struct url_list bare;

    if (!url_list_make(&bare, args->urls, args->url_count)) {
        say("out of memory");
        return EXIT_INTERNAL;
    }
    for (size_t i = 0; (option = option_at(args->command, &i));) {
        const char *from = option->type == VALUE_PARAMETER
                               ? source_of(args, bare.urls[0], option)
                               : NULL;
        if (!from || !is_involved(list, option->variable, why))
            continue;
        size_t used = strlen(with);
        snprintf(with + used, sizeof(with) - used, "%s%s%s",
            used > 0 ? " and " : " with ", from == option->name ? "--" : "",
            from);
        by_option |= from == option->name;
        about_file |= option_of_tls(option) || option_names_file(option);
    }
    url_list_free(&bare);
    tell(args, "%s%s: %s", source_words(source, args), with, why);
    if (no_password)
        say("put the password into a file (--password-file FILE or "
            "NXLOCK_PASSWORD_FILE), or into NXLOCK_PASSWORD");
    return by_option && !about_file ? EXIT_USAGE : EXIT_CONFIG;
}

static int report_failure(const struct args *args, const struct url_list *list,
    int rc, const char *why)
{
    char source[SOURCE_ROOM];
    bool lacks = false, no_password = false;

    for (size_t i = 0; i < list->count; i++) {
        struct url_facts facts = url_facts(list->urls[i]);
        no_password |= facts.lacks_password;
        lacks |= facts.lacks_password || facts.lacks_sentinel_password;
    }
    if (rc == NXL_E_URL && lacks && source_is_stripped(args)) {
        source_explain();
        return EXIT_DENIED;
    }
    if (rc == NXL_E_URL)
        return report_url(args, list, why, no_password);
    say("%s: %s", source_words(source, args), failure_words(why, rc));
    return rc == NXL_E_INVALID ? EXIT_CONFIG : exit_code_for(rc, EXIT_BUSY);
}

int connect_client(
    nxl_client **client, const struct args *args, nxl_client_options *options)
{
    char why[WHY_ROOM] = "";
    struct url_list list;

    if (!connect_urls(args, &list)) {
        say("out of memory");
        return EXIT_INTERNAL;
    }
    options->errbuf = why;
    options->errbuf_size = sizeof(why);
    int rc = make_client(client, &list, options);
    int code = rc == NXL_OK ? 0 : report_failure(args, &list, rc, why);
    url_list_free(&list);
    return code;
}

int connect_again(nxl_client **client, const struct args *args,
    const nxl_client_options *options)
{
    struct url_list list;

    *client = NULL;
    if (!connect_urls(args, &list))
        return NXL_E_NOMEM;
    int rc = make_client(client, &list, options);
    url_list_free(&list);
    return rc;
}

static void say_default(void)
{
    static bool said;

    if (!said)
        say("no server was given, so " FALLBACK_URL " was used; give one with "
            "-u URL, --url-file FILE, NXLOCK_URL or %s",
            system_config);
    said = true;
}

/* Reports, once, which line of the configuration file names the server. */
static void say_conf(const struct args *args)
{
    static bool said;
    char source[SOURCE_ROOM];

    if (!said)
        say("the URL is from %s", source_words(source, args));
    said = true;
}

/* Has a server accepted the login? Then what it denies is a command or a key.
 */
static bool is_logged_in(nxl_client *client)
{
    nxl_server_facts facts = NXL_SERVER_FACTS_INIT;

    for (size_t i = 0; i < nxl_client_servers(client); i++) {
        if (nxl_client_server_facts(client, i, &facts) == NXL_OK &&
            facts.logged_in)
            return true;
    }
    return false;
}

void connect_advise(const struct args *args, nxl_client *client, int result)
{
    char pasted[NAME_PASTED] = "";

    if (args->name)
        name_pasted(pasted, args->name);
    if (result == NXL_E_DENIED && source_is_stripped(args))
        source_explain();
    else if (result == NXL_E_DENIED && is_logged_in(client))
        say("'nxlock doctor%s%s%s', with the same server and user, names a "
            "missing permission%s; docs/acl.md has all that are needed",
            args->command == CMD_ONCE ? " --once" : "",
            pasted[0] != '\0' ? " " : "", pasted,
            args->run.every ? ", but not that of --every" : "");
    else if (result == NXL_E_UNREACHABLE && args->url_from == URLS_DEFAULT)
        say_default();
    if ((result == NXL_E_UNREACHABLE || result == NXL_E_DENIED) &&
        args->url_from == URLS_OF_CONF)
        say_conf(args);
}

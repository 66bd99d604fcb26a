/* SPDX-License-Identifier: MIT */
/*
 * Finds the URLs of the servers.
 *
 * Invariant: which servers are used is never guessed. Two sources of equal rank
 * that name different servers are an error, and a file that other users can
 * read or replace is not used.
 */
#include "cli/servers/source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/servers/conf.h"
#include "cli/servers/private_file.h"
#include "cli/report/report.h"
#include "cli/table.h"
#include "cli/servers/urls.h"
#include "cli/servers/variables.h"

#define DEFAULT_SOURCE "the default URL"

/* ----------------------------------------------------------------- the file */

/* Makes the lines of text that are URLs the URLs of args, which point into
 * text. */
static int take_lines(struct args *args, char *text)
{
    args->url_count = 0;
    for (char *rest = text, *line; (line = strsep(&rest, "\r\n"));) {
        line = without_blanks(line);
        if (line[0] == '\0' || line[0] == '#')
            continue;
        if (args->url_count == NXL_SERVERS_MAX) {
            say("the URL file %s (%s) has more than %d URLs", args->url_source,
                args->url_file_source, NXL_SERVERS_MAX);
            return EXIT_CONFIG;
        }
        args->urls[args->url_count++] = line;
    }
    if (args->url_count > 0)
        return 0;
    say("the URL file %s (%s) has no URL; write one URL per line",
        args->url_source, args->url_file_source);
    return EXIT_CONFIG;
}

/* from: what names the file. */
static int from_file(struct args *args, const char *path, const char *from)
{
    struct secret_file file;
    const char *why = private_file_read(&file, path, false);

    args->url_source = path;
    args->url_file_source = from;
    if (why) {
        say("cannot use the URL file %s (%s): %s", path, from, why);
        return EXIT_CONFIG;
    }
    args->url_text = file.text;
    args->url_path = absolute_path(path);
    if (!args->url_path) {
        say("cannot find the absolute path of the URL file %s: %s", path,
            strerror(errno));
        return EXIT_INTERNAL;
    }
    return take_lines(args, args->url_text);
}

/* ---------------------------------------------------------- the environment */

/* Texts as one list without passwords; the caller's to free(). NULL: no
 * memory. */
static char *without_passwords(const char *const *texts, size_t count)
{
    struct url_list list;

    if (!url_list_make(&list, texts, count))
        return NULL;
    url_list_strip_passwords(&list);
    char *all = url_list_join(&list);
    url_list_free(&list);
    return all;
}

static void free_text(struct args *args)
{
    if (args->url_text)
        explicit_bzero(args->url_text, strlen(args->url_text));
    free(args->url_text);
    args->url_text = NULL;
    args->url_count = 0;
}

static bool same_text(const char *one, const char *other, const char *name)
{
    char a[URL_VALUE_ROOM] = "", b[URL_VALUE_ROOM] = "";

    url_text(one, name, a, sizeof(a));
    url_text(other, name, b, sizeof(b));
    return strcmp(a, b) == 0;
}

static bool same_users(const char *one, const char *other)
{
    return same_text(one, other, "user") &&
           same_text(one, other, "sentinel_user");
}

/* What the lists name differently, or NULL. */
static const char *difference(
    const struct url_list *here, const struct url_list *there)
{
    const char *what = here->count == there->count ? NULL : "servers";

    for (size_t i = 0; i < here->count && i < there->count; i++) {
        if (!url_same_server(here->urls[i], there->urls[i]))
            what = "servers";
        else if (!what && !same_users(here->urls[i], there->urls[i]))
            what = "users of the same servers";
    }
    return what;
}

/* Gives here the passwords of there. False: no memory. */
static bool copy_passwords(struct url_list *here, const struct url_list *there)
{
    static const char *const names[][2] = {{"password", "password_file"},
        {"sentinel_password", "sentinel_password_file"}};
    char password[URL_VALUE_ROOM];
    bool ok = true;

    for (size_t i = 0; ok && i < 2 * here->count; i++) {
        const char *const *name = names[i % 2];
        const char *to = here->urls[i / 2], *from = there->urls[i / 2];
        if (!url_has_parameter(to, name[0]) &&
            !url_has_parameter(to, name[1]) &&
            url_text(from, name[0], password, sizeof(password)))
            ok = url_list_set(here, i / 2, name[0], password);
    }
    explicit_bzero(password, sizeof(password));
    return ok;
}

/* An enclosing 'nxlock run' takes the passwords out of NXLOCK_URL, and adds its
 * options. If args->urls are the same servers, they are replaced by those of
 * NXLOCK_URL, with the passwords. *different: what they name differently, or
 * NULL. False: no memory. */
static bool take_passwords(struct args *args, const char **different)
{
    const char *url = variable_value("NXLOCK_URL");
    struct url_list here = {NULL, 0}, there = {NULL, 0};
    bool ok = url_list_make(&here, &url, 1) &&
              url_list_make(&there, args->urls, args->url_count);

    *different = ok ? difference(&here, &there) : NULL;
    if (ok && !*different) {
        char *all = copy_passwords(&here, &there) ? url_list_join(&here) : NULL;
        free_text(args);
        args->url_text = all;
        args->urls[args->url_count++] = all;
        ok = all;
    }
    url_list_free(&here);
    url_list_free(&there);
    return ok;
}

static int from_text(struct args *args, const char *url, const char *source)
{
    args->url_source = source;
    /* A copy: a variable is about to be blanked. */
    args->url_text = strdup(url);
    if (!args->url_text) {
        say("out of memory");
        return EXIT_INTERNAL;
    }
    args->urls[args->url_count++] = args->url_text;
    return 0;
}

/* Does an enclosing 'nxlock run' set the variables? */
static bool is_nested(void)
{
    return variable_value("NXLOCK_SUPERVISOR_PID");
}

/* The file of NXLOCK_URL_FILE. Beside NXLOCK_URL only an enclosing run sets it;
 * if they differ, one was changed, and it is unclear which servers are
 * meant. */
static int from_variable_file(struct args *args, const char *path)
{
    bool both = variable_value("NXLOCK_URL");
    const char *different;

    if (both && !is_nested()) {
        say("NXLOCK_URL and NXLOCK_URL_FILE are both set; unset one of them");
        return EXIT_CONFIG;
    }
    int code = from_file(args, path, "NXLOCK_URL_FILE");
    if (code != 0 || !both)
        return code;
    if (!take_passwords(args, &different)) {
        say("out of memory");
        return EXIT_INTERNAL;
    }
    if (!different)
        return 0;
    say("NXLOCK_URL and NXLOCK_URL_FILE (%s) name different %s; unset one of "
        "them",
        path, different);
    return EXIT_CONFIG;
}

/* ------------------------------------------------- the configuration file */

/* Takes the URLs that the file has itself. False: it has none. */
static bool take_conf(struct args *args)
{
    for (size_t i = 0; i < args->conf->count; i++) {
        const struct setting *setting = &args->conf->list[i];
        if (setting->option->type != VALUE_URL)
            continue;
        if (args->url_count == 0)
            args->url_source = setting->where;
        args->urls[args->url_count++] = setting->value;
    }
    return args->url_count > 0;
}

/* The same, or those of the file that it names. */
static int from_conf(struct args *args)
{
    const struct conf *conf = args->conf;
    size_t i = 0;

    args->url_from = URLS_OF_CONF;
    if (take_conf(args))
        return 0;
    while (i < conf->count && !option_is_server(conf->list[i].option))
        i++;
    if (i < conf->count)
        return from_file(args, conf->list[i].value, conf->list[i].where);
    args->url_from = URLS_DEFAULT;
    return from_text(args, FALLBACK_URL, DEFAULT_SOURCE);
}

/* Does any of the URLs name all passwords that it needs? */
static bool names_passwords(const char *const *texts, size_t count)
{
    struct url_list list;
    bool any = false;

    if (!url_list_make(&list, texts, count))
        return true;
    for (size_t i = 0; i < list.count; i++)
        any |= url_facts(list.urls[i]).names_all;
    url_list_free(&list);
    return any;
}

/* Does the configuration file name the servers of NXLOCK_URL, which lacks their
 * passwords? Then it has these, and they are taken. */
static bool same_from_conf(struct args *args)
{
    const char *url = variable_value("NXLOCK_URL"), *different;

    if (!is_nested() || names_passwords(&url, 1) || !take_conf(args))
        return false;
    bool same = take_passwords(args, &different) && !different;
    if (!same)
        free_text(args);
    return same;
}

static int from_elsewhere(struct args *args)
{
    const char *url = variable_value("NXLOCK_URL");
    const char *path = variable_value("NXLOCK_URL_FILE");

    if (path)
        return from_variable_file(args, path);
    if (url)
        return same_from_conf(args) ? 0 : from_text(args, url, "NXLOCK_URL");
    return from_conf(args);
}

/* Overwrites the passwords in place, because /proc/PID/environ shows this
 * memory, for the watchdog too. */
static void blank_environment(void)
{
    static const char name[] = "NXLOCK_URL=";

    for (char **at = environ; at && *at; at++) {
        if (strncmp(*at, name, strlen(name)) != 0)
            continue;
        char *value = *at + strlen(name);
        const char *text = value;
        size_t length = strlen(value);
        char *bare = without_passwords(&text, 1);
        explicit_bzero(value, length);
        if (bare && strlen(bare) <= length)
            memcpy(value, bare, strlen(bare));
        free(bare);
    }
}

/* --------------------------------------------------------- the command line */

/* Copies the URLs, and overwrites their passwords in the command line, which
 * every user can read as long as this process and the watchdog live. */
static int from_command_line(struct args *args)
{
    size_t room = 0;

    args->url_source = "-u";
    for (size_t i = 0; i < args->url_count; i++)
        room += strlen(args->urls[i]) + 1;
    char *to = args->url_text = malloc(room);
    if (!to) {
        say("out of memory");
        return EXIT_INTERNAL;
    }
    for (size_t i = 0; i < args->url_count; i++) {
        char *written = (char *)args->urls[i]; /* of main()'s argv */
        size_t size = strlen(written) + 1;
        memcpy(to, written, size);
        url_hide_passwords(written);
        args->password_shown =
            args->password_shown || memcmp(to, written, size) != 0;
        args->urls[i] = to;
        to += size;
    }
    return 0;
}

int source_settle(struct args *args)
{
    int code = conf_read(args);

    if (code == 0)
        code = conf_apply(args);
    if (code != 0)
        return code;
    if (args->url_file)
        code = from_file(args, args->url_file, "--url-file");
    else if (args->url_count > 0)
        code = from_command_line(args);
    else
        code = from_elsewhere(args);
    if (args->child)
        blank_environment();
    return code != 0 ? code : variables_settle(args);
}

/* ------------------------------------------- inside another nxlock run */

bool source_is_stripped(const struct args *args)
{
    return strcmp(args->url_source, "NXLOCK_URL") == 0 && is_nested() &&
           !args->parameters.password_file && !args->password &&
           !variable_value(PASSWORD_FILE_VARIABLE) &&
           !names_passwords(args->urls, args->url_count);
}

const char *source_words(char *out, const struct args *args)
{
    bool named = args->url_file_source;

    snprintf(out, SOURCE_ROOM, "%s%s%s%s", args->url_source, named ? " (" : "",
        named ? args->url_file_source : "", named ? ")" : "");
    return out;
}

const char *source_of(
    const struct args *args, const char *bare, const struct option *option)
{
    const char *name = option ? option->variable : "password";
    const struct conf *conf = args->conf;

    if (option && option_parameter(args, option))
        return option->name;
    if (url_has_parameter(bare, name))
        return NULL;
    if (!option)
        return args->password ? PASSWORD_VARIABLE : NULL;
    if (strcmp(name, "password_file") == 0 &&
        variable_value(PASSWORD_FILE_VARIABLE))
        return PASSWORD_FILE_VARIABLE;
    for (size_t i = 0; i < conf->count; i++) {
        if (conf->list[i].option == option)
            return conf->list[i].where;
    }
    return NULL;
}

void source_explain(void)
{
    static bool said;

    if (said)
        return;
    said = true;
    say("there is no password: the enclosing 'nxlock run' removed it from "
        "NXLOCK_URL and NXLOCK_PASSWORD; start that one with --url-file FILE, "
        "NXLOCK_PASSWORD_FILE or --pass-url");
}

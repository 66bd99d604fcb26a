/* SPDX-License-Identifier: MIT */
/*
 * Finds the URLs of the servers.
 *
 * Invariant: which servers are used is never guessed. Two sources of equal rank
 * that name different servers are an error, and a file that other users can
 * read or replace is not used.
 */
#include "cli/source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/conf.h"
#include "cli/private_file.h"
#include "cli/report.h"
#include "cli/table.h"
#include "cli/urls.h"
#include "cli/variables.h"

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
    struct private_file file;
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

    if (!url_list_make(&list, texts, count, NULL))
        return NULL;
    url_list_strip_passwords(&list);
    char *all = url_list_join(&list);
    url_list_free(&list);
    return all;
}

/* Takes the users out of URLs without passwords, in place. */
static void drop_users(char *urls)
{
    char *to = urls;

    for (const char *from = urls; *from != '\0';) {
        bool starts = strncmp(from, "://", 3) == 0;
        for (size_t i = 0; starts && i < 3; i++)
            *to++ = *from++;
        size_t user = strcspn(from, "@/?,");
        if (starts && from[user] == '@')
            from += user + 1;
        else if (!starts)
            *to++ = *from++;
    }
    *to = '\0';
}

/* Moves the options that an enclosing 'nxlock run' was given from one URL to
 * another, which is from a file and cannot have them. False: no memory. */
static bool move_options(struct url_list *to, size_t i, char *from)
{
    const struct option *option;
    bool ok = true;

    for (size_t row = 0; ok && (option = option_at(CMD_RUN, &row));) {
        char value[URL_VALUE_ROOM];
        if (option_of_server(option) &&
            !url_has_parameter(to->urls[i], option->variable) &&
            url_parameter(from, option->variable, value, sizeof(value))) {
            ok = url_list_set(to, i, option->variable, value);
            url_drop(from, option->variable);
        }
    }
    return ok;
}

/* The URLs of the file, with those options; they replace args->urls. False: no
 * memory. */
static bool take_options(struct args *args, struct url_list *from)
{
    struct url_list to;
    bool ok = url_list_make(&to, args->urls, args->url_count, NULL);
    char *all = NULL;

    if (!ok)
        return false;
    for (size_t i = 0; ok && i < to.count && i < from->count; i++)
        ok = move_options(&to, i, from->urls[i]);
    if (ok && (all = url_list_join(&to))) {
        free(args->url_text);
        args->url_text = all;
        args->urls[0] = all;
        args->url_count = 1;
    }
    url_list_free(&to);
    return all;
}

/* NXLOCK_URL and NXLOCK_URL_FILE are both set by an enclosing 'nxlock run'. If
 * they differ, one was changed, and it is unclear which servers are meant. */
static int compare_servers(const char *path, char *here, char *there)
{
    if (strcmp(here, there) == 0)
        return 0;
    drop_users(here);
    drop_users(there);
    say("NXLOCK_URL and NXLOCK_URL_FILE (%s) name different %s; unset one of "
        "them",
        path,
        strcmp(here, there) != 0 ? "servers" : "users of the same servers");
    return EXIT_CONFIG;
}

/* The servers of NXLOCK_URL, *here, and those of args->urls, *there, as lists
 * without passwords; the caller's to free(). The options of NXLOCK_URL are
 * given to args->urls. False: no memory, and *here is NULL. */
static bool list_both_servers(struct args *args, char **here, char **there)
{
    const char *url = variable_value("NXLOCK_URL");
    struct url_list list;

    *here = NULL;
    *there = without_passwords(args->urls, args->url_count);
    if (*there && url_list_make(&list, &url, 1, NULL)) {
        url_list_strip_passwords(&list);
        if (take_options(args, &list))
            *here = url_list_join(&list);
        url_list_free(&list);
    }
    return *here;
}

static int check_same_servers(struct args *args, const char *path)
{
    char *here, *there;
    int code = EXIT_INTERNAL;

    if (list_both_servers(args, &here, &there))
        code = compare_servers(path, here, there);
    else
        say("out of memory");
    free(here);
    free(there);
    return code;
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

/* The file of NXLOCK_URL_FILE. */
static int from_variable_file(struct args *args, const char *path)
{
    bool both = variable_value("NXLOCK_URL");

    if (both && !is_nested()) {
        say("NXLOCK_URL and NXLOCK_URL_FILE are both set; unset one of them");
        return EXIT_CONFIG;
    }
    int code = from_file(args, path, "NXLOCK_URL_FILE");
    return code != 0 || !both ? code : check_same_servers(args, path);
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

static bool has_no_password(const char *urls)
{
    struct url_list list;

    if (!url_list_make(&list, &urls, 1, NULL))
        return false;
    bool has = url_list_has_password(&list);
    url_list_free(&list);
    return !has;
}

/* An enclosing 'nxlock run' takes the passwords out of NXLOCK_URL. If the
 * configuration file names the same servers, it has them. True: its URLs are
 * taken. */
static bool same_from_conf(struct args *args)
{
    char *here, *there;

    if (!is_nested() || !has_no_password(variable_value("NXLOCK_URL")) ||
        !take_conf(args))
        return false;
    bool same =
        list_both_servers(args, &here, &there) && strcmp(here, there) == 0;
    free(here);
    free(there);
    if (!same) {
        free(args->url_text);
        args->url_text = NULL;
        args->url_count = 0;
    }
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
    struct url_list list;

    if (strcmp(args->url_source, "NXLOCK_URL") != 0 || !is_nested() ||
        !url_list_make(&list, args->urls, args->url_count, args->query))
        return false;
    bool has = url_list_has_password(&list);
    url_list_free(&list);
    return !has && !args->password && !variable_value(PASSWORD_FILE_VARIABLE);
}

bool source_is_default(const struct args *args)
{
    return args->url_from == URLS_DEFAULT;
}

bool source_is_conf(const struct args *args)
{
    return args->url_from == URLS_OF_CONF;
}

const char *source_words(char *out, const struct args *args)
{
    bool named = args->url_file_source;

    snprintf(out, SOURCE_ROOM, "%s%s%s%s", args->url_source, named ? " (" : "",
        named ? args->url_file_source : "", named ? ")" : "");
    return out;
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

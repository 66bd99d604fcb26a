/* SPDX-License-Identifier: MIT */
/*
 * Reads and checks the configuration file.
 *
 * Invariant: a file that exists is used as a whole, or nothing runs. Skipping
 * it or a line could lead to other servers than those that hold the locks.
 */
#include "cli/servers/conf_file.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/help.h"
#include "cli/servers/private_file.h"
#include "cli/report/report.h"
#include "cli/servers/secret.h"
#include "cli/servers/urls.h"
#include "cli/value.h"
#include "cli/servers/variables.h"

/* Another path for the file, or "none": for tests. */
#define VARIABLE "NXLOCK_CONFIG"

/* The file while it is read. */
struct reading {
    struct conf *conf;
    unsigned line;
    bool has_password;
    struct args scratch; /* takes the values, so that they are checked */
};

static const char *find_path(void)
{
    const char *instead = secure_getenv(VARIABLE);

    if (!instead || instead[0] == '\0')
        return system_config;
    return strcmp(instead, "none") == 0 ? NULL : instead;
}

/* -------------------------------------------------------------- its lines */

static void wrong_line(const struct reading *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void wrong_line(const struct reading *r, const char *format, ...)
{
    char words[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(words, sizeof(words), format, arguments);
    va_end(arguments);
    say("%s:%u: %s", r->conf->path, r->line, words);
}

static void unknown_key(const struct reading *r, const char *key)
{
    const struct option *option;
    struct nearest nearest;
    char shown[DISCREET_ROOM];

    nearest_start(&nearest, key + strspn(key, "-"));
    for (size_t i = 0; (option = option_any(&i));) {
        if (option->in_file)
            nearest_consider(&nearest, option->name);
    }
    discreet(shown, key);
    if (strcmp(key, "password") == 0)
        wrong_line(r,
            "there is no key 'password'; write 'password-file = FILE', or the "
            "password into the url");
    else if (nearest.best)
        wrong_line(
            r, "there is no key '%s'; did you mean '%s'?", shown, nearest.best);
    else
        wrong_line(
            r, "there is no key '%s'; nxlock.conf(5) lists the keys", shown);
}

/* The option of that name that the file may set, or NULL after saying why not.
 */
static const struct option *find_key(const struct reading *r, const char *key)
{
    const struct option *option = option_named(key);

    if (option && option->in_file)
        return option;
    if (option)
        wrong_line(r,
            "'%s' cannot be set in a file; write --%s where it is needed",
            option->name, option->name);
    else
        unknown_key(r, key);
    return NULL;
}

/* Does another line exclude this one? Reports it. */
static bool is_excluded(const struct reading *r, const struct option *option)
{
    for (size_t i = 0; i < r->conf->count; i++) {
        const struct setting *had = &r->conf->list[i];
        if (had->option == option && option->type != VALUE_URL)
            wrong_line(r, "'%s' is in line %u already; write it once",
                option->name, had->line);
        else if (option_is_server(had->option) && option_is_server(option) &&
                 had->option != option)
            wrong_line(r,
                "'%s' excludes the '%s' of line %u; write one of them",
                option->name, had->option->name, had->line);
        else
            continue;
        return true;
    }
    return false;
}

static bool has_password(const char *urls)
{
    struct url_list list;
    bool has = false;

    if (!url_list_make(&list, &urls, 1))
        return true;
    for (size_t i = 0; i < list.count; i++)
        has = has || url_may_have_password(list.urls[i]);
    url_list_free(&list);
    return has;
}

static int add_setting(
    struct reading *r, const struct option *option, const char *value)
{
    struct conf *conf = r->conf;
    struct setting *grown =
        realloc(conf->list, (conf->count + 1) * sizeof(*grown));
    char *where = NULL;

    if (grown)
        conf->list = grown;
    if (!grown || asprintf(&where, "%s line %u", conf->path, r->line) < 0) {
        say("out of memory");
        return EXIT_INTERNAL;
    }
    grown[conf->count++] = (struct setting){option, value, where, r->line};
    return 0;
}

/* Reports what is wrong with the form of a value. False: nothing is. */
static bool is_malformed(
    const struct reading *r, const struct option *option, const char *value)
{
    const char *name = option->name;

    if (value[0] == '\0')
        wrong_line(
            r, "'%s' has no value; write '%s = %s'", name, name, option->value);
    else if (value[0] == '"' || value[0] == '\'')
        wrong_line(r, "write the value of '%s' without quotes", name);
    else if (strstr(value, " #") || strstr(value, "\t#"))
        wrong_line(
            r, "write the comment behind '%s' on a line of its own", name);
    else if (option_names_file(option) && value[0] != '/')
        wrong_line(r,
            "the path of '%s' must begin with '/', because nxlock runs in any "
            "directory",
            name);
    else
        return false;
    return true;
}

static int take_setting(struct reading *r, const char *key, const char *value)
{
    const struct option *option = find_key(r, key);
    char shown[512];

    if (!option || is_excluded(r, option) || is_malformed(r, option, value))
        return EXIT_CONFIG;
    snprintf(shown, sizeof(shown), "%s:%u: %s", r->conf->path, r->line,
        option->name);
    int code = value_set(&r->scratch, option, shown, value);
    if (code != 0)
        return code == EXIT_USAGE ? EXIT_CONFIG : code;
    if (option->type == VALUE_URL && has_password(value))
        r->has_password = true;
    return add_setting(r, option, value);
}

static int take_line(struct reading *r, char *line)
{
    char *key = without_blanks(line);
    char *equals = strchr(key, '=');

    if (key[0] == '\0' || key[0] == '#')
        return 0;
    if (!equals) {
        wrong_line(r, "there is no '='; write: KEY = VALUE, or # COMMENT");
        return EXIT_CONFIG;
    }
    *equals = '\0';
    return take_setting(r, without_blanks(key), without_blanks(equals + 1));
}

static int take_text(struct reading *r, char *text)
{
    int code = 0;

    for (char *rest = text, *line; code == 0 && (line = strsep(&rest, "\n"));) {
        r->line++;
        code = take_line(r, line);
    }
    return code;
}

/* ------------------------------------------------------------ the file */

static int read_file(struct conf *conf)
{
    struct reading r = {.conf = conf};
    struct secret_file found;
    const char *why = private_file_read(&found, conf->path, true);
    bool named = strcmp(conf->path, system_config) != 0;
    int code = EXIT_CONFIG;

    if (why && found.is_absent && !named)
        return 0;
    if (!why) {
        conf->text = found.text;
        conf->length = found.length;
        code = take_text(&r, found.text);
        if (code == 0 && r.has_password && found.is_shared)
            why = PRIVATE_FILE_SHARED ", for root only; or write the password "
                                      "into a file of each user, and name it "
                                      "with NXLOCK_PASSWORD_FILE";
    }
    if (!why)
        return code;
    say("cannot use the configuration file %s: %s%s", conf->path, why,
        found.is_closed ? "; let this user read it" : "");
    return EXIT_CONFIG;
}

int conf_read(struct args *args)
{
    args->conf = calloc(1, sizeof(*args->conf));
    if (!args->conf) {
        say("out of memory");
        return EXIT_INTERNAL;
    }
    args->conf->path = find_path();
    return args->conf->path ? read_file(args->conf) : 0;
}

void conf_free(struct conf *conf)
{
    if (!conf)
        return;
    if (conf->text)
        explicit_bzero(conf->text, conf->length);
    free(conf->text);
    for (size_t i = 0; i < conf->count; i++)
        free(conf->list[i].where);
    free(conf->list);
    free(conf);
}

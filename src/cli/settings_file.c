/* SPDX-License-Identifier: MIT */
/*
 * Finds, reads and checks the configuration files.
 *
 * Invariant: a file that exists is used as a whole, or nothing runs. Skipping a
 * file or a line could lead to other servers than those that hold the locks.
 */
#include "cli/settings_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/private_file.h"
#include "cli/report.h"
#include "cli/secret.h"
#include "cli/value.h"
#include "cli/variables.h"

#define VARIABLE "NXLOCK_CONFIG"

/* One file while it is read. */
struct reading {
    struct settings *settings;
    enum rank rank;
    const char *path;
    unsigned line;
    bool has_password;
    struct args scratch; /* takes the values, so that they are checked */
};

/* ------------------------------------------------------------- which files */

/* May this user look for a file in the folder? After setpriv(1), HOME may be
 * that of another user, who does not permit it. */
static bool is_usable(const char *folder)
{
    return folder && folder[0] == '/' &&
           (faccessat(AT_FDCWD, folder, X_OK, AT_EACCESS) == 0 ||
               errno != EACCES);
}

/* The path of the user's file, the caller's to free(). Without HOME, as in a
 * service of systemd, it is the same file as with it. False: no memory; *path
 * is NULL if the user has no home directory. */
static bool find_user_file(char **path)
{
    const char *config = secure_getenv("XDG_CONFIG_HOME");
    const char *home = secure_getenv("HOME");
    bool xdg = is_usable(config);

    *path = NULL;
    if (!xdg && !is_usable(home)) {
        const struct passwd *user = getpwuid(geteuid());
        home = user && user->pw_dir[0] == '/' ? user->pw_dir : NULL;
    }
    if (!xdg && !home)
        return true;
    if (asprintf(path, "%s%s/nxlock/config", xdg ? config : home,
            xdg ? "" : "/.config") < 0)
        *path = NULL;
    return *path;
}

/* NXLOCK_CONFIG is a file instead of both, or "none". False: no memory. */
static bool find_files(struct settings *settings)
{
    struct settings_file *files = settings->files;
    const char *instead = secure_getenv(VARIABLE);

    if (!instead || instead[0] == '\0')
        return find_user_file(&files[RANK_USER].path) &&
               (files[RANK_SYSTEM].path = strdup(NXLOCK_SYSTEM_CONFIG));
    return strcmp(instead, "none") == 0 ||
           (files[RANK_USER].path = absolute_path(instead));
}

/* -------------------------------------------------------------- their lines */

static void wrong_line(const struct reading *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void wrong_line(const struct reading *r, const char *format, ...)
{
    char words[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(words, sizeof(words), format, arguments);
    va_end(arguments);
    say("%s:%u: %s", r->path, r->line, words);
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
        wrong_line(r,
            "there is no key '%s'; 'nxlock help config' lists the keys", shown);
}

/* The option of that name that a file may set, or NULL after saying why not. */
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

/* Does another line of this file exclude this one? Reports it. */
static bool is_excluded(const struct reading *r, const struct option *option)
{
    for (size_t i = 0; i < r->settings->count; i++) {
        const struct setting *had = &r->settings->list[i];
        if (had->rank != r->rank)
            continue;
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

    if (!url_list_make(&list, &urls, 1, NULL))
        return true;
    for (size_t i = 0; i < list.count; i++)
        has = has || url_has_password(list.urls[i]) ||
              (url_is_muddled(list.urls[i]) && strchr(list.urls[i], '@'));
    url_list_free(&list);
    return has;
}

static int add_setting(
    struct reading *r, const struct option *option, const char *value)
{
    struct settings *settings = r->settings;
    struct setting *grown =
        realloc(settings->list, (settings->count + 1) * sizeof(*grown));
    char *where = NULL;

    if (grown)
        settings->list = grown;
    if (!grown || asprintf(&where, "%s:%u", r->path, r->line) < 0) {
        say("out of memory");
        return EXIT_INTERNAL;
    }
    grown[settings->count++] =
        (struct setting){option, value, where, r->line, r->rank};
    return 0;
}

static int take_setting(struct reading *r, const char *key, char *value)
{
    const struct option *option = find_key(r, key);
    char shown[512];

    if (!option || is_excluded(r, option))
        return EXIT_CONFIG;
    if (value[0] == '\0') {
        wrong_line(r, "'%s' has no value; write '%s = %s'", option->name,
            option->name, option->value);
        return EXIT_CONFIG;
    }
    if (value[0] == '"' || value[0] == '\'') {
        wrong_line(r, "write the value of '%s' without quotes", option->name);
        return EXIT_CONFIG;
    }
    if (strstr(value, " #") || strstr(value, "\t#")) {
        wrong_line(r, "write the comment behind '%s' on a line of its own",
            option->name);
        return EXIT_CONFIG;
    }
    if (option_names_file(option) && value[0] != '/') {
        wrong_line(r,
            "the path of '%s' must begin with '/', because nxlock runs in any "
            "directory",
            option->name);
        return EXIT_CONFIG;
    }
    snprintf(shown, sizeof(shown), "%s:%u: %s", r->path, r->line, option->name);
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

static int read_one(struct settings *settings, enum rank rank)
{
    struct settings_file *file = &settings->files[rank];
    struct reading r = {.settings = settings, .rank = rank, .path = file->path};
    struct private_file found;
    const char *why = private_file_read(&found, file->path, true);
    bool named = variable_value(VARIABLE);
    int code = EXIT_CONFIG;

    if (why && found.is_absent && !named)
        return 0;
    if (!why) {
        file->text = found.text;
        file->length = found.length;
        code = take_text(&r, found.text);
        free(r.scratch.query);
        if (code == 0 && r.has_password && found.is_shared)
            why = PRIVATE_FILE_SHARED;
    }
    if (!why)
        return code;
    say("cannot use the configuration file %s: %s%s", file->path, why,
        named ? " (" VARIABLE " names it)"
        : rank == RANK_SYSTEM && found.is_shared && r.has_password
            ? ", for root only; or move the password to each user's own "
              "~/.config/nxlock/config, as password-file"
        : found.is_closed ? "; let this user read it, or set " VARIABLE "=none"
        : found.is_foreign && rank == RANK_USER
            ? ", or set HOME to your own home directory"
            : "");
    return EXIT_CONFIG;
}

int settings_read(struct args *args)
{
    struct settings *settings = args->settings = calloc(1, sizeof(*settings));
    int code = 0;

    if (!settings || !find_files(settings)) {
        say("out of memory");
        return EXIT_INTERNAL;
    }
    for (enum rank rank = RANK_USER; code == 0 && rank <= RANK_SYSTEM; rank++) {
        if (settings->files[rank].path)
            code = read_one(settings, rank);
    }
    return code;
}

void settings_files_free(struct settings *settings)
{
    if (!settings)
        return;
    for (enum rank rank = RANK_USER; rank <= RANK_SYSTEM; rank++) {
        struct settings_file *file = &settings->files[rank];
        if (file->text)
            explicit_bzero(file->text, file->length);
        free(file->text);
        free(file->path);
    }
    for (size_t i = 0; i < settings->count; i++)
        free(settings->list[i].where);
    free(settings->list);
    free(settings);
}

bool settings_pass(const struct settings *settings)
{
    const char *path = settings->files[RANK_USER].path;

    return !path || !secure_getenv(VARIABLE) ||
           secure_getenv(VARIABLE)[0] == '\0' || setenv(VARIABLE, path, 1) == 0;
}

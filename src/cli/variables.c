/* SPDX-License-Identifier: MIT */
/*
 * The environment variables that complete the URLs.
 *
 * Invariant: a variable never changes what a URL or an option says. What
 * belongs together, a CA or a certificate and its key, comes from one source.
 */
#include "cli/variables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/report.h"

#define PASSWORD "NXLOCK_PASSWORD"
#define PASSWORD_FILE "NXLOCK_PASSWORD_FILE"

/* Each with the parameter that it sets, and the one that it belongs with: a URL
 * that has either gets neither. (NXLOCK_KEY is the lock's key, for CMD.) */
static const struct certificate {
    const char *variable, *name, *beside;
} certificates[] = {
    {"NXLOCK_CACERT", "cacert", "cacertdir"},
    {"NXLOCK_CACERTDIR", "cacertdir", "cacert"},
    {"NXLOCK_CERT", "cert", "key"},
    {"NXLOCK_CERT_KEY", "key", "cert"},
};
#define CERTIFICATES (sizeof(certificates) / sizeof(certificates[0]))

const char *variable_value(const char *name)
{
    const char *value = getenv(name);

    return value && value[0] != '\0' ? value : NULL;
}

char *absolute_path(const char *path)
{
    char *folder = path[0] != '/' ? getcwd(NULL, 0) : NULL;
    char *whole = NULL;

    if (path[0] == '/')
        return strdup(path);
    if (!folder || asprintf(&whole, "%s/%s", folder, path) < 0)
        whole = NULL;
    free(folder);
    return whole;
}

int variables_settle(struct args *args)
{
    const char *password = variable_value(PASSWORD);

    if (password && variable_value(PASSWORD_FILE)) {
        say(PASSWORD " and " PASSWORD_FILE " are both set; unset one of them");
        return EXIT_CONFIG;
    }
    if (password && !(args->password = strdup(password))) {
        say("out of memory");
        return EXIT_INTERNAL;
    }
    if (password && args->child) {
        explicit_bzero((char *)password, strlen(password));
        unsetenv(PASSWORD);
    }
    return 0;
}

/* Does the URL, as it is without variables, leave this to other sources? */
static bool url_leaves(const char *url, const struct certificate *c)
{
    /* verify=none ignores a CA, and the library refuses the two together. */
    char verify[8];
    bool ignored = url_parameter(url, "verify", verify, sizeof(verify)) &&
                   strcmp(verify, "none") == 0 &&
                   strncmp(c->name, "ca", 2) == 0;

    return !ignored && !url_has_parameter(url, c->name) &&
           !url_has_parameter(url, c->beside);
}

/* Does a variable decide this for the URL, as it is without any of them? */
static bool is_missing(const char *url, const struct certificate *c)
{
    return url_uses_tls(url) && variable_value(c->variable) &&
           url_leaves(url, c);
}

static bool add_certificates(struct url_list *list, size_t i)
{
    bool missing[CERTIFICATES];

    for (size_t c = 0; c < CERTIFICATES; c++)
        missing[c] = is_missing(list->urls[i], &certificates[c]);
    for (size_t c = 0; c < CERTIFICATES; c++) {
        if (missing[c] && !url_list_set(list, i, certificates[c].name,
                              variable_value(certificates[c].variable)))
            return false;
    }
    return true;
}

static bool add_password(
    const struct args *args, struct url_list *list, size_t i)
{
    const char *file = variable_value(PASSWORD_FILE);

    if ((!args->password && !file) || url_names_password(list->urls[i]))
        return true;
    return args->password ? url_list_set(list, i, "password", args->password)
                          : url_list_set(list, i, "password_file", file);
}

bool variables_add(const struct args *args, struct url_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        if (!strstr(list->urls[i], "://"))
            continue; /* the library reports it */
        if (!add_certificates(list, i) || !add_password(args, list, i))
            return false;
    }
    return true;
}

static const struct certificate *certificate_named(const char *name)
{
    for (size_t c = 0; c < CERTIFICATES; c++) {
        if (strcmp(certificates[c].name, name) == 0)
            return &certificates[c];
    }
    return NULL;
}

const char *variable_for(const char *name)
{
    const struct certificate *c = certificate_named(name);

    if (strcmp(name, "password_file") == 0)
        return PASSWORD_FILE;
    return c ? c->variable : NULL;
}

bool variables_leave(const struct args *args, const char *url, const char *name)
{
    const struct certificate *c = certificate_named(name);

    if (strcmp(name, "password_file") == 0)
        return !args->password && !variable_value(PASSWORD_FILE) &&
               !url_names_password(url);
    if (!c)
        return !url_has_parameter(url, name);
    return !variable_value(c->variable) &&
           !variable_value(variable_for(c->beside)) && url_leaves(url, c);
}

const char *variables_used(
    char *out, const struct url_list *list, const char *message)
{
    const char *file = variable_value(PASSWORD_FILE);
    bool named = file && strstr(message, file);

    snprintf(out, VARIABLES_ROOM, "%s", named ? PASSWORD_FILE : "");
    for (size_t c = 0; c < CERTIFICATES; c++) {
        size_t i = 0, used = strlen(out);
        while (i < list->count && !is_missing(list->urls[i], &certificates[c]))
            i++;
        if (i < list->count)
            snprintf(out + used, VARIABLES_ROOM - used, "%s%s",
                used > 0 ? " and " : "", certificates[c].variable);
    }
    return out;
}

static bool make_absolute(const char *name)
{
    const char *path = variable_value(name);

    if (!path || path[0] == '/')
        return true;
    char *whole = absolute_path(path);
    bool ok = whole && setenv(name, whole, 1) == 0;
    free(whole);
    return ok;
}

bool variables_pass(const struct args *args)
{
    bool ok = make_absolute(PASSWORD_FILE);

    for (size_t c = 0; ok && c < CERTIFICATES; c++)
        ok = make_absolute(certificates[c].variable);
    if (ok && args->password && args->run.pass_url)
        ok = setenv(PASSWORD, args->password, 1) == 0;
    return ok;
}

/* SPDX-License-Identifier: MIT */
/*
 * The environment variables that complete the URLs.
 *
 * Invariant: a variable never changes what a URL or an option says.
 */
#include "cli/servers/variables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/report/report.h"

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
    const char *password = variable_value(PASSWORD_VARIABLE);

    if (password && variable_value(PASSWORD_FILE_VARIABLE)) {
        say(PASSWORD_VARIABLE " and " PASSWORD_FILE_VARIABLE
                              " are both set; unset one of them");
        return EXIT_CONFIG;
    }
    if (password && !(args->password = strdup(password))) {
        say("out of memory");
        return EXIT_INTERNAL;
    }
    if (password && args->child) {
        explicit_bzero((char *)password, strlen(password));
        unsetenv(PASSWORD_VARIABLE);
    }
    return 0;
}

bool variables_add(const struct args *args, struct url_list *list)
{
    const char *file = variable_value(PASSWORD_FILE_VARIABLE);
    const char *name = args->password ? "password" : "password_file";
    const char *value = args->password ? args->password : file;
    bool ok = true;

    for (size_t i = 0; ok && value && i < list->count; i++) {
        /* The library reports what is no URL. */
        struct url_facts facts = url_facts(list->urls[i]);
        if (facts.valid && !facts.names_password)
            ok = url_list_set(list, i, name, value);
    }
    return ok;
}

bool variables_pass(const struct args *args)
{
    const char *file = variable_value(PASSWORD_FILE_VARIABLE);
    bool ok = true;

    if (file && file[0] != '/') {
        char *whole = absolute_path(file);
        ok = whole && setenv(PASSWORD_FILE_VARIABLE, whole, 1) == 0;
        free(whole);
    }
    if (ok && args->password && args->run.pass_url)
        ok = setenv(PASSWORD_VARIABLE, args->password, 1) == 0;
    return ok;
}

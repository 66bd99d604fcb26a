/* SPDX-License-Identifier: MIT */
/*
 * The environment variables that complete the URLs: certificates for TLS, and
 * the password.
 */
#ifndef NXLOCK_CLI_VARIABLES_H
#define NXLOCK_CLI_VARIABLES_H

#include "cli/args.h"
#include "cli/urls.h"

/* The value of a variable that is set and not empty, or NULL. */
const char *variable_value(const char *name);

/* The absolute form of a path, because CMD may change its directory; the caller
 * frees it. NULL: errno says why. */
char *absolute_path(const char *path);

/* Reads the password into args. For run it also removes it from this process's
 * own environment, which CMD could read in /proc. 0, or an exit code after
 * reporting what is wrong. */
int variables_settle(struct args *args);

/* Adds what the variables say to every URL that lacks it: certificates only to
 * those with TLS. False: no memory. */
bool variables_add(const struct args *args, struct url_list *list);

/* May a file set this parameter of the URL, or the password: do neither the URL
 * nor a variable decide it, or what belongs with it? */
bool variables_leave(
    const struct args *args, const char *url, const char *name);
/* The variable that sets this parameter, or NULL. */
const char *variable_for(const char *name);

/* Copies the names of the variables of which a message about these URLs may
 * speak, as in "NXLOCK_CERT and NXLOCK_CERT_KEY"; "" if there is none: those of
 * certificates that a URL gets, and a password file that the message names.
 * Returns out. */
#define VARIABLES_ROOM 128
const char *variables_used(
    char *out, const struct url_list *list, const char *message);

/* Sets them for CMD: paths are absolute, and the password is there only if
 * --pass-url was given. False: no memory. */
bool variables_pass(const struct args *args);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The environment variables that complete the URLs: those of the password.
 */
#ifndef NXLOCK_CLI_SERVERS_VARIABLES_H
#define NXLOCK_CLI_SERVERS_VARIABLES_H

#include "cli/args.h"
#include "cli/servers/urls.h"

#define PASSWORD_VARIABLE "NXLOCK_PASSWORD"
#define PASSWORD_FILE_VARIABLE "NXLOCK_PASSWORD_FILE"

/* The value of a variable that is set and not empty, or NULL. */
const char *variable_value(const char *name);

/* The absolute form of a path, because CMD may change its directory; the caller
 * frees it. NULL: errno says why. */
char *absolute_path(const char *path);

/* Reads the password into args. For run it also removes it from this process's
 * own environment, which CMD could read in /proc. 0, or an exit code after
 * reporting what is wrong. */
int variables_settle(struct args *args);

/* Adds the password, or its file, to every URL that has neither. False: no
 * memory. */
bool variables_add(const struct args *args, struct url_list *list);

/* Sets them for CMD: the path is absolute, and the password is there only if
 * --pass-url was given. False: no memory. */
bool variables_pass(const struct args *args);

#endif

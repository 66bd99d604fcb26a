/* SPDX-License-Identifier: MIT */
/* Reads a password from a file of its own. */
#ifndef NXLOCK_CONFIG_SECRET_FILE_H
#define NXLOCK_CONFIG_SECRET_FILE_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/text.h"

/* The longest password, without a zero byte at its end. */
#define SECRET_MAX 8192

/* Reads the first line of the file. The caller frees *secret with
 * secret_free(). False: *error says why not; kind names the file in it, as in
 * "password file". */
bool secret_file_read(
    const char *path, const char *kind, char **secret, struct text *error);

/* Does the file belong to another user than this one and root, who could
 * replace it? */
bool secret_file_is_of_other_user(const struct stat *status);
/* Do other users have access to it? Its group may read a file of root. */
bool secret_file_is_open_to_others(const struct stat *status);

#endif

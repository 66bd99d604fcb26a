/* SPDX-License-Identifier: MIT */
/*
 * Reads a small file that says which server is used, and may hold a password.
 */
#ifndef NXLOCK_CLI_SERVERS_PRIVATE_FILE_H
#define NXLOCK_CLI_SERVERS_PRIVATE_FILE_H

#include <stdbool.h>

#include "config/secret_file.h"

/* Why a file with a password is refused if is_shared. */
#define PRIVATE_FILE_SHARED                                                    \
    "other users have access to it, and it may contain a password; chmod 600 " \
    "it"

/* Reads the file. Returns what is wrong with it, for a message, or NULL; then
 * the caller frees file->text. With may_be_shared others may read the file, but
 * never write it. May block as long as a local disk does. */
const char *private_file_read(
    struct secret_file *file, const char *path, bool may_be_shared);

/* A line of such a file, or a part of one, without the blanks around it, which
 * are cut off in place. */
char *without_blanks(char *line);

#endif

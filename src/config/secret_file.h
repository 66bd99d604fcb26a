/* SPDX-License-Identifier: MIT */
/* Reads a file that is a password, or may hold one. */
#ifndef NXLOCK_CONFIG_SECRET_FILE_H
#define NXLOCK_CONFIG_SECRET_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

/* The longest password, without a zero byte at its end. */
#define SECRET_MAX 8192

/* Reads the first line of the file. The caller frees *secret with
 * secret_free(). False: *error says why not; kind names the file in it, as in
 * "password file". */
bool secret_file_read(
    const char *path, const char *kind, char **secret, struct text *error);

struct secret_file {
    /* Set by the caller: how much of it is read at most; and why it is refused
     * if it belongs to another user, and if others have access to it (NULL:
     * they may read it, but never write to it). */
    size_t most;
    const char *foreign, *shared;
    /* What was found. */
    char *text;     /* owned; ends with a zero byte */
    size_t length;  /* of text, without it */
    bool is_shared; /* other users have access to the file */
    bool is_absent; /* there is no such file */
    bool is_closed; /* this user may not read it */
};

/* Reads the file. Returns what is wrong with it, or NULL. Call
 * secret_file_free() in both cases. */
const char *secret_file_load(struct secret_file *file, const char *path);
/* Overwrites the text, and frees it. */
void secret_file_free(struct secret_file *file);

#endif

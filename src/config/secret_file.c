/* SPDX-License-Identifier: MIT */
/*
 * Reads a password from a file of its own.
 *
 * Invariant: a file that another user can read or replace is not used, unless
 * root gave it to a group to read, and every copy of its contents but the
 * result is overwritten.
 */
#include "config/secret_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The longest line, "\r\n", and a zero byte. */
#define ROOM (SECRET_MAX + 3)

bool secret_file_is_of_other_user(const struct stat *status)
{
    return status->st_uid != 0 && status->st_uid != geteuid();
}

bool secret_file_is_open_to_others(const struct stat *status)
{
    mode_t shared = S_IRWXG | S_IRWXO;

    /* What root lets this group read, such as a secret that a container is
     * given, was meant for its members. */
    if (status->st_uid == 0 && geteuid() != 0)
        shared &= ~(mode_t)S_IRGRP;
    return (status->st_mode & shared) != 0;
}

/* What is wrong with the file, or NULL. */
static const char *file_objection(int fd)
{
    struct stat status;

    if (fd < 0 || fstat(fd, &status) != 0)
        return strerrordesc_np(errno);
    if (!S_ISREG(status.st_mode))
        return "it is not a regular file";
    if (secret_file_is_of_other_user(&status))
        return "it belongs to another user, who could replace the password; "
               "chown it";
    if (secret_file_is_open_to_others(&status))
        return "other users have access to it; chmod 600 it";
    return NULL;
}

/* Reads what fits. Returns what went wrong, or NULL. */
static const char *read_start(int fd, char *bytes, size_t *len)
{
    ssize_t got = 1;

    for (*len = 0; got > 0 && *len < ROOM - 1; *len += (size_t)got) {
        got = read(fd, bytes + *len, ROOM - 1 - *len);
        if (got < 0)
            return strerrordesc_np(errno);
    }
    return NULL;
}

/* Ends the first line with a zero byte. Returns what is wrong with it, or
 * NULL. */
static const char *end_line(char *bytes, size_t len)
{
    const char *end = memchr(bytes, '\n', len);
    size_t line = end ? (size_t)(end - bytes) : len;

    if (end && line > 0 && bytes[line - 1] == '\r')
        line--;
    if (line == 0)
        return "its first line is empty; write the password there";
    if (line > SECRET_MAX)
        return "its first line is longer than 8192 bytes";
    if (memchr(bytes, '\0', line))
        return "its first line has a zero byte";
    bytes[line] = '\0';
    return NULL;
}

bool secret_file_read(
    const char *path, const char *kind, char **secret, struct text *error)
{
    char bytes[ROOM];
    size_t len = 0;
    /* O_NONBLOCK: opening a pipe without a writer must not block. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    const char *why = file_objection(fd);

    if (!why)
        why = read_start(fd, bytes, &len);
    if (fd >= 0)
        close(fd);
    if (!why)
        why = end_line(bytes, len);
    if (!why && !(*secret = strdup(bytes)))
        why = strerrordesc_np(ENOMEM);
    explicit_bzero(bytes, sizeof(bytes));
    if (!why)
        return true;
    text_clear(error);
    text_addf(error, "cannot use the %s ", kind);
    text_add_foreign(error, slice_of(path));
    text_addf(error, ": %s", why);
    return false;
}

/* SPDX-License-Identifier: MIT */
/*
 * Reads a file that is a password, or may hold one.
 *
 * Invariant: a file that another user, except root, could have written is not
 * used, nor one that others can read where it says a password, unless root gave
 * it to a group to read; and every copy of its contents but the result is
 * overwritten.
 */
#include "config/secret_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The longest line, and "\r\n". */
#define LINE_ROOM (SECRET_MAX + 2)

/* Do others have access to it? */
static bool is_shared(const struct stat *status)
{
    mode_t shared = S_IRWXG | S_IRWXO;

    /* What root lets this group read, such as a secret that a container is
     * given, was meant for its members. */
    if (status->st_uid == 0 && geteuid() != 0)
        shared &= ~(mode_t)S_IRGRP;
    return (status->st_mode & shared) != 0;
}

/* What is wrong with the file, or NULL. */
static const char *file_objection(struct secret_file *file, int fd)
{
    struct stat status;

    if (fd < 0 || fstat(fd, &status) != 0)
        return strerrordesc_np(errno);
    if (!S_ISREG(status.st_mode))
        return "it is not a regular file";
    if (status.st_uid != 0 && status.st_uid != geteuid())
        return file->foreign;
    file->is_shared = is_shared(&status);
    if (file->is_shared && file->shared)
        return file->shared;
    if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return "other users can write to it, and so replace what it says; "
               "chmod go-w it";
    return NULL;
}

/* Reads what fits. Returns what went wrong, or NULL. */
static const char *read_text(struct secret_file *file, int fd)
{
    ssize_t got = 1;

    file->text = calloc(1, file->most + 1);
    if (!file->text)
        return strerrordesc_np(ENOMEM);
    for (; got > 0 && file->length < file->most; file->length += (size_t)got) {
        got = read(fd, file->text + file->length, file->most - file->length);
        if (got < 0)
            return strerrordesc_np(errno);
    }
    return NULL;
}

const char *secret_file_load(struct secret_file *file, const char *path)
{
    /* O_NONBLOCK: opening a pipe without a writer must not block. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    file->is_absent = fd < 0 && (errno == ENOENT || errno == ENOTDIR);
    file->is_closed = fd < 0 && errno == EACCES;
    const char *why = file_objection(file, fd);
    if (!why)
        why = read_text(file, fd);
    if (fd >= 0)
        close(fd);
    return why;
}

void secret_file_free(struct secret_file *file)
{
    if (file->text)
        explicit_bzero(file->text, file->length);
    free(file->text);
    file->text = NULL;
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
    struct secret_file file = {.most = LINE_ROOM,
        .foreign = "it belongs to another user, who could replace the "
                   "password; chown it",
        .shared = "other users have access to it; chmod 600 it"};
    const char *why = secret_file_load(&file, path);

    if (!why)
        why = end_line(file.text, file.length);
    if (!why && !(*secret = strdup(file.text)))
        why = strerrordesc_np(ENOMEM);
    secret_file_free(&file);
    if (!why)
        return true;
    text_clear(error);
    text_addf(error, "cannot use the %s ", kind);
    text_add_foreign(error, slice_of(path));
    text_addf(error, ": %s", why);
    return false;
}

/* SPDX-License-Identifier: MIT */
/*
 * Reads a small file that says which server is used, and may hold a password.
 *
 * Invariant: what another user, except root, could have written is not used. A
 * file is used as a whole, because some of its servers are not the same as all
 * of them. Who may have access is the library's rule for password files.
 */
#include "cli/servers/private_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/secret_file.h"

#define FILE_MAX 65536
#define TOO_LONG "it is too long (64 KiB at most)"

/* What is wrong with the file, or NULL. */
static const char *file_objection(
    struct private_file *file, const struct stat *status, bool may_be_shared)
{
    if (!S_ISREG(status->st_mode))
        return "it is not a regular file";
    if (secret_file_is_of_other_user(status))
        return "it belongs to another user, who could replace the URL; "
               "chown it";
    file->is_shared = secret_file_is_open_to_others(status);
    if (file->is_shared && !may_be_shared)
        return PRIVATE_FILE_SHARED;
    if ((status->st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return "other users can write to it, and so replace the URL; "
               "chmod go-w it";
    if (status->st_size > FILE_MAX)
        return TOO_LONG;
    return NULL;
}

/* What is wrong with what was read, or NULL. */
static const char *text_objection(const struct private_file *file)
{
    if (file->length > FILE_MAX) /* it has grown, or is one of /proc */
        return TOO_LONG;
    if (strlen(file->text) != file->length)
        return "it is not a text: it has a zero byte";
    return NULL;
}

const char *private_file_read(
    struct private_file *file, const char *path, bool may_be_shared)
{
    struct stat status;
    const char *why = NULL;
    ssize_t got = 0;
    /* O_NONBLOCK: opening a pipe without a writer must not block. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    *file = (struct private_file){.text = NULL};
    file->is_absent = fd < 0 && (errno == ENOENT || errno == ENOTDIR);
    file->is_closed = fd < 0 && errno == EACCES;
    if (fd < 0 || fstat(fd, &status) != 0)
        why = strerror(errno);
    else
        why = file_objection(file, &status, may_be_shared);
    if (!why && !(file->text = calloc(1, FILE_MAX + 2)))
        why = strerror(ENOMEM);
    for (; !why && file->length <= FILE_MAX; file->length += (size_t)got) {
        got = read(fd, file->text + file->length, FILE_MAX + 1 - file->length);
        if (got < 0)
            why = strerror(errno);
        if (got <= 0)
            break;
    }
    if (!why)
        why = text_objection(file);
    if (fd >= 0)
        close(fd);
    if (why && file->text) { /* it may hold a password */
        explicit_bzero(file->text, file->length);
        free(file->text);
        file->text = NULL;
    }
    return why;
}

char *without_blanks(char *line)
{
    static const char blanks[] = " \t\r";
    char *end = line + strlen(line);

    line += strspn(line, blanks);
    while (end > line && strchr(blanks, end[-1]))
        *--end = '\0';
    return line;
}

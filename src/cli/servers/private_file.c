/* SPDX-License-Identifier: MIT */
/*
 * Reads a small file that says which server is used, and may hold a password.
 *
 * Invariant: a file is used as a whole, because some of its servers are not the
 * same as all of them. Who may have access to it: see config/secret_file.h.
 */
#include "cli/servers/private_file.h"

#include <string.h>

#define FILE_MAX 65536

const char *private_file_read(
    struct secret_file *file, const char *path, bool may_be_shared)
{
    *file = (struct secret_file){.most = FILE_MAX + 1,
        .foreign = "it belongs to another user, who could replace the URL; "
                   "chown it",
        .shared = may_be_shared ? NULL : PRIVATE_FILE_SHARED};
    const char *why = secret_file_load(file, path);

    if (!why && file->length > FILE_MAX)
        why = "it is too long (64 KiB at most)";
    else if (!why && strlen(file->text) != file->length)
        why = "it is not a text: it has a zero byte";
    if (why)
        secret_file_free(file);
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

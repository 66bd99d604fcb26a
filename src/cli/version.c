/* SPDX-License-Identifier: MIT */
/*
 * "nxlock --version": the command's version and, where it is not the command's
 * own, the library that the loader has found.
 */
#include "cli/version.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nxlock.h>

#include "cli/installed.h"

/* Whether the file is in the folder, whatever links lead to either. */
static bool is_in(const char *file, const char *folder)
{
    char found[PATH_MAX], wanted[PATH_MAX];

    if (!realpath(file, found) || !realpath(folder, wanted))
        return false;
    char *end = strrchr(found, '/');
    *end = '\0';
    return strcmp(found, wanted) == 0;
}

void version_print(FILE *out)
{
    static const char own[] = NXLOCK_VERSION;
    const char *version = nxl_version();
    Dl_info command, library;

    fprintf(out, "nxlock %s\n", own);
    if (!dladdr(own, &command) || !dladdr(version, &library) ||
        command.dli_fbase == library.dli_fbase)
        return; /* it is linked statically */
    /* A command that is installed where it was configured to be has its library
     * beside it. The loader may find another one: it looks in /usr/local/lib
     * before /usr/lib, and LD_LIBRARY_PATH comes first. A command that was
     * moved, or is not installed, has no place for its library. */
    if (strcmp(version, own) != 0 ||
        (is_in("/proc/self/exe", INSTALLED_BINDIR) &&
            !is_in(library.dli_fname, INSTALLED_LIBDIR)))
        fprintf(out, "libnxlock %s from %s\n", version, library.dli_fname);
}

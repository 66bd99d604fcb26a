/* SPDX-License-Identifier: MIT */
/*
 * Reads the configuration files: the user's and the system's.
 */
#ifndef NXLOCK_CLI_SETTINGS_FILE_H
#define NXLOCK_CLI_SETTINGS_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/table.h"

/* Where a URL or a setting comes from. The lowest one decides. */
enum rank {
    RANK_GIVEN, /* an option or NXLOCK_URL */
    RANK_USER,  /* ~/.config/nxlock/config, or NXLOCK_CONFIG */
    RANK_SYSTEM,
    RANK_FALLBACK /* REDIS_URL, or the default */
};

/* A line of a file. */
struct setting {
    const struct option *option;
    const char *value;
    char *where; /* owned: "/etc/nxlock.conf:3" */
    unsigned line;
    enum rank rank;
};

struct settings_file {
    char *path; /* owned; NULL: there is no such file to look for */
    char *text; /* owned; NULL: the file does not exist */
    size_t length;
};

struct settings {
    struct settings_file files[RANK_SYSTEM + 1]; /* by rank */
    struct setting *list; /* owned; the user's file first, then by line */
    size_t count;
};

/* Reads the files into args->settings. 0, or an exit code after reporting what
 * is wrong. */
int settings_read(struct args *args);
/* settings may be NULL. */
void settings_files_free(struct settings *settings);

/* Makes the path in NXLOCK_CONFIG, if there is one, absolute for CMD. False: no
 * memory. */
bool settings_pass(const struct settings *settings);

#endif

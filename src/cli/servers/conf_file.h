/* SPDX-License-Identifier: MIT */
/*
 * Reads the configuration file of the machine, /etc/nxlock.conf.
 */
#ifndef NXLOCK_CLI_SERVERS_CONF_FILE_H
#define NXLOCK_CLI_SERVERS_CONF_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/table.h"

/* A line of the file. */
struct setting {
    const struct option *option;
    const char *value;
    char *where; /* owned: "/etc/nxlock.conf line 3" */
    unsigned line;
};

struct conf {
    const char *path; /* NULL: no file is read */
    char *text;       /* owned; NULL: the file does not exist */
    size_t length;
    struct setting *list; /* owned; by line */
    size_t count;
};

/* Reads the file into args->conf. 0, or an exit code after reporting what is
 * wrong. */
int conf_read(struct args *args);
/* conf may be NULL. */
void conf_free(struct conf *conf);

#endif

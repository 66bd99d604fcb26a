/* SPDX-License-Identifier: MIT */
/*
 * Where the URLs of the servers come from: -u, --url-file, the environment, the
 * configuration file, or the default.
 */
#ifndef NXLOCK_CLI_SERVERS_SOURCE_H
#define NXLOCK_CLI_SERVERS_SOURCE_H

#include "cli/args.h"
#include "cli/table.h"

#define FALLBACK_URL "redis://127.0.0.1:6379"

/* Reads the configuration file, and fills in its defaults, the URLs of args,
 * and the password of NXLOCK_PASSWORD. It also overwrites passwords in this
 * process's command line and, for run, in its own environment, which CMD could
 * read in /proc. 0, or an exit code after reporting what is wrong. */
int source_settle(struct args *args);

/* Copies the origin of the URLs, as in "/etc/nxlock.conf line 3" or
 * "/etc/app/url (--url-file)". Returns out. */
#define SOURCE_ROOM 512
const char *source_words(char *out, const struct args *args);

/* Where a parameter of the URLs in use comes from: the name of the option, a
 * variable, or a line of the configuration file. NULL: it is in the URL itself,
 * bare, or nowhere. option is the one of the parameter; NULL: the password. */
const char *source_of(
    const struct args *args, const char *bare, const struct option *option);

/* Do the URLs come from an enclosing 'nxlock run', which removed the passwords?
 */
bool source_is_stripped(const struct args *args);
/* Reports that, and what to do, once. */
void source_explain(void);

#endif

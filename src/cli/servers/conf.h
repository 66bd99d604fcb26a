/* SPDX-License-Identifier: MIT */
/*
 * Applies the configuration file: defaults for options and for the URLs.
 */
#ifndef NXLOCK_CLI_SERVERS_CONF_H
#define NXLOCK_CLI_SERVERS_CONF_H

#include "cli/args.h"
#include "cli/servers/conf_file.h"
#include "cli/table.h"
#include "cli/servers/urls.h"

/* Sets the options of args that were not given. 0, or an exit code after
 * reporting what is wrong. */
int conf_apply(struct args *args);
/* After a message about options of this type: reports which of them are from
 * the file. */
void conf_mention(const struct args *args, enum value_type type);

/* Adds to the URLs in use the parameters that neither they nor a variable
 * decide. servers_only: only those that belong to one server, such as its
 * password file, not those of the whole client, such as the prefix. False: no
 * memory. */
bool conf_add(
    const struct args *args, struct url_list *list, bool servers_only);

#endif

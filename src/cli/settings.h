/* SPDX-License-Identifier: MIT */
/*
 * Applies the configuration files: defaults for times and for the URLs.
 */
#ifndef NXLOCK_CLI_SETTINGS_H
#define NXLOCK_CLI_SETTINGS_H

#include "cli/args.h"
#include "cli/settings_file.h"
#include "cli/table.h"
#include "cli/urls.h"

/* Sets the times of args that were not given as options. 0, or an exit code
 * after reporting what is wrong. */
int settings_apply(struct args *args);
/* Does the value of this option, as it was written, come from a file? Returns
 * the setting, or NULL. */
const struct setting *settings_origin(
    const struct args *args, const struct option *option);
/* After a message about options of this type: reports which of them are from a
 * file. */
void settings_mention(const struct args *args, enum value_type type);

/* Adds to the URLs in use the parameters that neither they nor a variable
 * decide. servers_only: only those that belong to one server, such as its user,
 * not those of the whole client, such as the prefix. False: no memory. */
bool settings_add(
    const struct args *args, struct url_list *list, bool servers_only);
/* Copies the origin of the settings that a message of the library about these
 * URLs is about, as in "/etc/nxlock.conf:3"; "" if there is none. Returns
 * out. */
#define SETTINGS_ROOM 512
const char *settings_used(
    char *out, const struct args *args, const char *message);

#endif

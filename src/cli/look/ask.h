/* SPDX-License-Identifier: MIT */
/*
 * Asks the user before something is changed that belongs to others.
 */
#ifndef NXLOCK_CLI_LOOK_ASK_H
#define NXLOCK_CLI_LOOK_ASK_H

#include "cli/args.h"

/* Asks question on the terminal unless --yes is given. 0: yes; or an exit code,
 * after reporting why not. what: what --yes would do, such as "remove it". */
int ask_user(const struct args *args, const char *question, const char *what);

#endif

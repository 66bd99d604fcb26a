/* SPDX-License-Identifier: MIT */
/* Checks what a server permits. */
#ifndef NXLOCK_CLI_DOCTOR_DOCTOR_RIGHTS_H
#define NXLOCK_CLI_DOCTOR_DOCTOR_RIGHTS_H

#include "cli/doctor/doctor_state.h"

/* Finds out whether the server has ACLs, and which user we are there. */
void doctor_acl(struct doctor *doctor, size_t server);

/* The remedy for commands that were refused with result, at one server or at
 * DOCTOR_ALL: ACL SETUSER with the commands and, if keys, the key patterns (in
 * words for a server without ACLs); if the command is unknown, renamed. Valid
 * until the next call. */
const char *doctor_remedy(struct doctor *doctor, size_t server, int result,
    const char *commands, bool keys, const char *renamed);

/* If a permission was missing anywhere: how to get all of them. */
void doctor_all_rights(struct doctor *doctor);

/* Checks the user's permissions for the lock's keys, and for commands of which
 * a trial of a lock shows nothing. */
void doctor_rights(struct doctor *doctor, size_t server);

/* Reports which permissions neither these checks nor the trial have shown. */
void doctor_untried(struct doctor *doctor);

#endif

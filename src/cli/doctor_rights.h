/* SPDX-License-Identifier: MIT */
/* What a server permits. */
#ifndef NXLOCK_CLI_DOCTOR_RIGHTS_H
#define NXLOCK_CLI_DOCTOR_RIGHTS_H

#include "cli/doctor_state.h"

/* Learns whether the server has ACLs, and which user it takes us for. */
void doctor_acl(struct doctor *doctor, size_t server);

/* What to do about commands that were refused with a result (at a server, or
 * at DOCTOR_ALL): when the user lacks the right, give it, with ACL SETUSER only
 * where that exists; keys: give the patterns of the keys too. When the command
 * is unknown, renamed says what to do. Valid until the next call. */
const char *doctor_remedy(struct doctor *doctor, size_t server, int result,
    const char *commands, bool keys, const char *renamed);

/* What the user may do there, as far as it is about the lock's keys. */
void doctor_rights(struct doctor *doctor, size_t server);

#endif

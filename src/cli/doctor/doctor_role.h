/* SPDX-License-Identifier: MIT */
/* The role of a server. */
#ifndef NXLOCK_CLI_DOCTOR_DOCTOR_ROLE_H
#define NXLOCK_CLI_DOCTOR_DOCTOR_ROLE_H

#include "cli/doctor/doctor_state.h"

/* Is it a primary, and nothing but that? */
void doctor_role(
    struct doctor *doctor, size_t server, const struct answer *info);

#endif

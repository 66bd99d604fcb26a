/* SPDX-License-Identifier: MIT */
/* The address of a server. */
#ifndef NXLOCK_CLI_DOCTOR_DOCTOR_ADDRESS_H
#define NXLOCK_CLI_DOCTOR_DOCTOR_ADDRESS_H

#include "cli/doctor/doctor_state.h"

/* Does its address always lead to it? */
void doctor_address(
    struct doctor *doctor, size_t server, const struct answer *info);

#endif

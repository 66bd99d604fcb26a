/* SPDX-License-Identifier: MIT */
/* What one server is like. */
#ifndef NXLOCK_CLI_DOCTOR_DOCTOR_SERVER_H
#define NXLOCK_CLI_DOCTOR_DOCTOR_SERVER_H

#include "cli/doctor/doctor_state.h"

/* All checks of one server. */
void doctor_server(struct doctor *doctor, size_t server);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Whether the Sentinels that a URL lists can say which server is the primary.
 */
#ifndef NXLOCK_CLI_DOCTOR_DOCTOR_SENTINELS_H
#define NXLOCK_CLI_DOCTOR_DOCTOR_SENTINELS_H

#include "cli/doctor/doctor_state.h"

/* Checks the Sentinels that the URL lists, if it does. */
void doctor_sentinels(struct doctor *doctor);

/* Checks whether a server that the URL itself leads to is watched by
 * Sentinels. */
void doctor_watched(struct doctor *doctor, size_t server);

#endif

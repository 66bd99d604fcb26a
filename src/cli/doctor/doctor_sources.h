/* SPDX-License-Identifier: MIT */
/*
 * Reports where each setting comes from.
 */
#ifndef NXLOCK_CLI_DOCTOR_DOCTOR_SOURCES_H
#define NXLOCK_CLI_DOCTOR_DOCTOR_SOURCES_H

#include "cli/doctor/doctor_state.h"

/* Contacts no server. False: no memory. */
bool doctor_sources(struct doctor *d);

#endif

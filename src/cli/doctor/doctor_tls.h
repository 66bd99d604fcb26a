/* SPDX-License-Identifier: MIT */
/* The connection to a server: TLS, certificates and the password. */
#ifndef NXLOCK_CLI_DOCTOR_DOCTOR_TLS_H
#define NXLOCK_CLI_DOCTOR_DOCTOR_TLS_H

#include "cli/doctor/doctor_state.h"

/* Who can read what is sent, and until when do the certificates last? */
void doctor_tls(struct doctor *doctor, size_t server);

#endif

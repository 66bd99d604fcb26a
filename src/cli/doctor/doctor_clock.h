/* SPDX-License-Identifier: MIT */
/* The clock of a server. */
#ifndef NXLOCK_CLI_DOCTOR_DOCTOR_CLOCK_H
#define NXLOCK_CLI_DOCTOR_DOCTOR_CLOCK_H

#include "cli/doctor/doctor_state.h"

#define US_PER_S INT64_C(1000000)
#define US_PER_MS 1000

/* How far a clock is ahead of another one, known to within unsure_us. */
struct clock_lead {
    int64_t ahead_us; /* below 0: it is behind */
    int64_t unsure_us;
};

/* Compares it with this machine's. */
void doctor_clock(struct doctor *doctor, size_t server);

/* How far it is ahead of nxl_now_ns(), which nobody can set. False: it does not
 * tell its time. */
bool doctor_clock_lead(
    struct doctor *doctor, size_t server, struct clock_lead *lead);

#endif

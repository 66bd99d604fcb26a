/* SPDX-License-Identifier: MIT */
/*
 * The fingerprint of once: what the work is about, as a record keeps it.
 */
#ifndef NXLOCK_CLI_FINGERPRINT_H
#define NXLOCK_CLI_FINGERPRINT_H

#include "cli/args.h"

/* SHA-256 as hexadecimal digits. */
#define FINGERPRINT_ROOM 65

/* Writes the fingerprint that --fingerprint or --fingerprint-file asks for into
 * out, of FINGERPRINT_ROOM bytes, or "" if neither is given. 0, or an exit code
 * after reporting why. */
int fingerprint_make(const struct args *args, char *out);

#endif

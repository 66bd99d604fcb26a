/* SPDX-License-Identifier: MIT */
/*
 * The versions of the command and of its library.
 */
#ifndef NXLOCK_CLI_VERSION_H
#define NXLOCK_CLI_VERSION_H

#include <stdio.h>

void version_print(FILE *out);

#endif

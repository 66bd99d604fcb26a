/* SPDX-License-Identifier: MIT */
/* The file descriptors that a new process inherits. */
#ifndef NXLOCK_CLI_RUN_DESCRIPTORS_H
#define NXLOCK_CLI_RUN_DESCRIPTORS_H

#include <stddef.h>

/* In a new process: closes all inherited descriptors except kept; 0 to 2 become
 * /dev/null. Takes as long as the open descriptors are many, whatever the limit
 * on their number. */
void descriptors_close_others(const int *kept, size_t count);

#endif

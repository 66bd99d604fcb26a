/* SPDX-License-Identifier: MIT */
/* Writes the commands that features of the table of permissions need. */
#ifndef NXLOCK_CLI_DOCTOR_ACL_RULES_H
#define NXLOCK_CLI_DOCTOR_ACL_RULES_H

#include <stddef.h>

#include "cli/doctor/acl_table.h"

/* The rules for commands that these features need, as bits, with those that
 * they are in addition to: "+set +evalsha", cut to size. Returns out. */
#define ACL_WORDS 512
const char *acl_words(char *out, size_t size, unsigned features);

#endif

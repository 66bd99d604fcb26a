/* SPDX-License-Identifier: MIT */
/*
 * The options that run alone has.
 */
#ifndef NXLOCK_CLI_OPTION_RUN_H
#define NXLOCK_CLI_OPTION_RUN_H

#include "cli/option.h"

/* Row i of their part of the table; NULL: there are no more. */
const struct option *option_run_row(size_t i);

#endif

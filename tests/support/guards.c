/* SPDX-License-Identifier: MIT */
/* The switches of a library that is compiled with NXLOCK_GUARDS. */
#include "model/guard.h"

bool guard_off[GUARDS];

/* SPDX-License-Identifier: MIT */
/* What a person can do about a fault of a server. */
#ifndef NXLOCK_LOCK_REMEDY_H
#define NXLOCK_LOCK_REMEDY_H

#include "model/fault.h"

/* One clause without a full stop; "" when the server's words say enough. */
const char *remedy_of(enum fault fault);

#endif

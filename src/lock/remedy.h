/* SPDX-License-Identifier: MIT */
/* What a person can do about a fault of a server. */
#ifndef NXLOCK_LOCK_REMEDY_H
#define NXLOCK_LOCK_REMEDY_H

#include "model/fault.h"
#include "net/state.h"

/* One clause without a full stop; "" when the server's words say enough. */
const char *remedy_of(enum fault fault);

/* The same for this server: where one that cannot be reached is may be said by
 * Sentinels instead of the URL. */
const char *remedy_at(enum fault fault, const struct server *s);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A caller's nxl_holder, whose size is that of the header the caller was built
 * with.
 *
 * Invariant: of a caller's holder, no byte behind its size is read or written.
 */
#ifndef NXLOCK_API_HOLDER_H
#define NXLOCK_API_HOLDER_H

#include <stdbool.h>

#include <nxlock.h>

#include "base/text.h"

/* Whether it has the members that every version has: those before label. */
bool holder_has_required_members(const nxl_holder *holder);

/* Likewise, with the result of the call: NXL_OK, or NXL_E_INVALID, explained in
 * message. */
int holder_check(const nxl_holder *holder, struct text *message);

#endif

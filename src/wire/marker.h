/* SPDX-License-Identifier: MIT */
/*
 * The marker key: since when a server has been the primary of its present
 * history. A server does not tell that, so the first client that sees it
 * promoted sets the key for all that come later; see scripts/marker.lua.
 */
#ifndef NXLOCK_WIRE_MARKER_H
#define NXLOCK_WIRE_MARKER_H

#include "base/buf.h"
#include "wire/facts.h"

#define MARKER_NAME "nxl-p" /* after the client's prefix */

/* Appends the command that reads the key, and sets it if need be: replid has
 * been the server's history for age_ms at least. It has one reply. False: no
 * memory. */
bool marker_append(
    struct buf *out, struct slice marker, const char *replid, int64_t age_ms);

/* Takes that reply. */
void marker_take(struct facts *f, const struct reply *reply);

#endif

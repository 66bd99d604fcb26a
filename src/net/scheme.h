/* SPDX-License-Identifier: MIT */
/* Reads the scheme of a URL: does it name a TCP or a unix socket? */
#ifndef NXLOCK_NET_SCHEME_H
#define NXLOCK_NET_SCHEME_H

#include "base/text.h"

/* Reads "redis://", "valkey://" or "unix://" at the start of url. Returns its
 * length and sets *local for a unix socket; or returns 0, and *error says what
 * was found and what to write. */
size_t scheme_read(const char *url, bool *local, struct text *error);

#endif

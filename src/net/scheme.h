/* SPDX-License-Identifier: MIT */
/* The beginning of a URL: which kind of endpoint it names. */
#ifndef NXLOCK_NET_SCHEME_H
#define NXLOCK_NET_SCHEME_H

#include "base/text.h"

/* Reads "redis://", "valkey://" or "unix://" at the head of url. Returns its
 * length, with *local telling a unix socket; or 0 with *error saying what was
 * found and what to write. */
size_t scheme_read(const char *url, bool *local, struct text *error);

#endif

/* SPDX-License-Identifier: MIT */
/* Reads the scheme of a URL: TCP, TLS over TCP, or a unix socket? */
#ifndef NXLOCK_CONFIG_SCHEME_H
#define NXLOCK_CONFIG_SCHEME_H

#include "base/text.h"

enum scheme { SCHEME_UNKNOWN, SCHEME_TCP, SCHEME_TLS, SCHEME_UNIX };

/* Reads "redis://", "valkey://", "rediss://", "valkeys://" or "unix://" at the
 * start of url, and sets *len to its length. UNKNOWN: *error says what was
 * found and what to write. */
enum scheme scheme_read(const char *url, size_t *len, struct text *error);

#endif

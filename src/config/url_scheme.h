/* SPDX-License-Identifier: MIT */
/* Reads the scheme of a URL: TCP, TLS over TCP, a unix socket, or Sentinels? */
#ifndef NXLOCK_CONFIG_URL_SCHEME_H
#define NXLOCK_CONFIG_URL_SCHEME_H

#include "base/text.h"

enum url_scheme {
    URL_SCHEME_UNKNOWN,
    URL_SCHEME_TCP,
    URL_SCHEME_TLS,
    URL_SCHEME_UNIX,
    URL_SCHEME_SENTINEL, /* they know the server, which is reached by TCP */
    URL_SCHEME_SENTINEL_TLS
};

/* What to write for servers that Sentinels monitor. */
#define SENTINEL_URL "redis+sentinel://host:26379/SERVICE"

/* Reads the scheme and "://" at the start of url, and sets *len to their
 * length. UNKNOWN: *error says what was found and what to write. */
enum url_scheme url_scheme_read(
    const char *url, size_t *len, struct text *error);

#endif

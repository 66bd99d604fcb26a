/* SPDX-License-Identifier: MIT */
/*
 * Where a server is and how to talk to it, from a URL:
 *
 *     redis://[user][:password]@host[:port][/db][?parameter=value&...]
 *     unix://[[user][:password]@]/path[?parameter=value&...]
 *
 * valkey:// is redis://. Every part may hold %XX, but not %00. An IPv6 zone
 * is written [fe80::1%25eth0]. The last '@' before the first '/' or '?' ends
 * the credentials, and a path holds none; an empty password is none, and a
 * user without a password is an error, as is anything that would have to be
 * guessed.
 */
#ifndef NXLOCK_NET_URL_H
#define NXLOCK_NET_URL_H

#include <stdint.h>

#include "base/text.h"
#include "net/params.h"

struct endpoint {
    char *host; /* owned; name or address without brackets; NULL: unix */
    char *path; /* owned; unix socket; NULL: TCP */
    uint16_t port;
    struct settings settings;
    unsigned given;   /* rows of the table that the URL set, one bit each */
    struct text name; /* for people: scheme, host, port, db; no credentials */
};

enum url_result { URL_OK, URL_MALFORMED, URL_NO_MEMORY };

/* Fills *endpoint from url; *endpoint.settings holds the defaults (its
 * strings NULL) on entry and may be read on success only. On failure *error
 * says which part was understood how and what to write (never showing a
 * password), and there is nothing to free. */
enum url_result url_parse(
    struct endpoint *endpoint, const char *url, struct text *error);
void endpoint_free(struct endpoint *endpoint);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Parses the URL of a server: where it is and how to talk to it.
 *
 *     redis://[user][:password]@host[:port][/db][?parameter=value&...]
 *     unix://[[user][:password]@]/path[?parameter=value&...]
 *
 * rediss:// is the same over TLS. valkey:// means the same as redis://, and
 * valkeys:// as rediss://. Every part may contain %XX, but not
 * %00. An IPv6 zone is written [fe80::1%25eth0]. The last '@' before the first
 * '/' or '?' ends the credentials; a path must not contain '@'. An empty
 * password means none. A user without a password is an error, as is anything
 * ambiguous.
 */
#ifndef NXLOCK_CONFIG_URL_H
#define NXLOCK_CONFIG_URL_H

#include <stdint.h>

#include "base/text.h"
#include "config/params.h"

struct tls;

struct endpoint {
    char *host; /* owned; name or address without brackets; NULL: unix */
    char *path; /* owned; unix socket; NULL: TCP */
    uint16_t port;
    unsigned server; /* its number in the client's list; set by the user */
    bool needs_tls;  /* the scheme says so */
    struct tls *tls; /* set and freed by the user of url_parse(); NULL: none */
    struct settings settings;
    uint64_t given;   /* rows of the table that the URL sets, by bits */
    struct text name; /* for people: scheme, host, port, db; no credentials */
};

enum url_result { URL_OK, URL_MALFORMED, URL_NO_MEMORY };

/* Fills *endpoint from url. On entry endpoint->settings holds the defaults,
 * with no strings; afterwards it is valid on success only. On failure *error
 * says which part is wrong and what to write instead, without showing a
 * password, and there is nothing to free. */
enum url_result url_parse(
    struct endpoint *endpoint, const char *url, struct text *error);
void endpoint_free(struct endpoint *endpoint);

#endif

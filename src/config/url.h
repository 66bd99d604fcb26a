/* SPDX-License-Identifier: MIT */
/*
 * Parses the URL of a server: where it is and how to talk to it.
 *
 *     redis://[user][:password]@host[:port][/db][?parameter=value&...]
 *     unix://[[user][:password]@]/path[?parameter=value&...]
 *     redis+sentinel://[user][:password]@host[:port],.../SERVICE[/db][?...]
 *
 * rediss:// is the same over TLS. valkey:// means the same as redis://, and
 * valkeys:// as rediss://; each of the four may have +sentinel. A comma divides
 * hosts only there: they are the Sentinels, and user, password and db are the
 * server's. Every part may contain %XX, but not
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

/* Where a server is. */
struct server_address {
    char *host; /* owned; name or address without brackets; NULL: unix */
    char *path; /* owned; unix socket; NULL: TCP */
    uint16_t port;
    struct text name; /* for people: scheme, host, port, db; no credentials */
};

#define SENTINELS_MAX 15

/* The Sentinels that a URL names instead of a server. */
struct sentinels {
    unsigned count;
    /* With a host and a port; the name is "host:26379" or "[::1]:26379". */
    struct server_address at[SENTINELS_MAX];
    char *service; /* owned: the name of the primary that they monitor */
    bool tls;      /* to the Sentinels: sentinel_tls, by default the scheme's */
};

/* What a URL says of one server. A client keeps those of its URLs until its
 * servers and connections are freed, and these refer to them by struct target.
 */
struct endpoint {
    struct server_address address;
    /* Owned; NULL: the URL names the server itself. Otherwise address has no
     * host, path or port until the primary has been located, and its name is
     * that of the URL, without credentials and parameters. */
    struct sentinels *sentinels;
    struct settings settings; /* the login's too */
    struct tls *tls; /* set and freed by the user of url_parse(); NULL: none */
    unsigned server; /* its number in the client's list; set by the user */
    bool needs_tls;  /* the scheme says so */
    /* Rows of the table that parameters of the URL set, by bits. A db in its
     * path is none. */
    uint64_t given;
};

/* What a server needs of them, each for itself: several servers may share
 * settings and TLS, and a server's two connections share its target, so what is
 * at *address may be replaced while neither is being made. Nothing is owned;
 * everything outlives the server. */
struct target {
    const struct server_address *address;
    const struct settings *settings;
    struct tls *tls; /* NULL: none */
    unsigned server;
    /* Of the addresses that the host has, in the order of their bytes, this one
     * alone, counted from 1; 0: any of them. */
    unsigned nth;
};

static inline struct target target_of(const struct endpoint *e)
{
    /* With Sentinels *tls may be for them alone. */
    struct tls *tls = e->sentinels && !e->needs_tls ? NULL : e->tls;
    return (struct target){&e->address, &e->settings, tls, e->server, 0};
}

enum url_result { URL_OK, URL_MALFORMED, URL_NO_MEMORY };

/* Fills *endpoint from url. On entry endpoint->settings holds the defaults,
 * with no strings; afterwards it is valid on success only. On failure *error
 * says which part is wrong and what to write instead, without showing a
 * password, and there is nothing to free. */
enum url_result url_parse(
    struct endpoint *endpoint, const char *url, struct text *error);
void endpoint_free(struct endpoint *endpoint);

/* Changes the settings of a URL to those of a connection to its Sentinels,
 * which have a login of their own. sni is not freed. */
void settings_become_sentinels(struct settings *settings);

/* Makes the endpoint lead by TCP to another server, with the same login and the
 * same parameters but no database, and not by way of Sentinels. It may need no
 * TLS although *tls is set. False: no memory. */
bool endpoint_lead_to(
    struct endpoint *endpoint, const char *host, uint16_t port);

#endif

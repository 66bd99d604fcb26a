/* SPDX-License-Identifier: MIT */
/*
 * The servers of a client, from its URLs: one string with commas or an array.
 */
#ifndef NXLOCK_API_ENDPOINTS_H
#define NXLOCK_API_ENDPOINTS_H

#include <nxlock.h>

#include "config/url.h"
#include "core/machine.h"

struct endpoints {
    unsigned count;
    bool guards_restarts, guards_failover; /* decided for the whole client */
    bool copies_decided; /* wait_replicas is in a URL, or not 0 */
    struct endpoint at[MAX_SERVERS];
};

/* Parses the URLs, with these defaults (which hold no strings). Afterwards
 * options of the whole client are the same in all endpoints. Returns NXL_OK, or
 * an error that *error explains, with nothing to free. */
int endpoints_parse(struct endpoints *e, const char *const *urls, size_t count,
    const struct settings *defaults, struct text *error);

/* The same for one string, split at each comma before a "scheme://". */
int endpoints_split(struct endpoints *e, const char *list,
    const struct settings *defaults, struct text *error);

/* The only server becomes a replica of it: see endpoint_lead_to(). Nothing is
 * guarded there, because that writes. NXL_OK, or NXL_E_NOMEM with *error. */
int endpoints_lead_to(
    struct endpoints *e, const char *host, uint16_t port, struct text *error);

void endpoints_free(struct endpoints *e);

#endif

/* SPDX-License-Identifier: MIT */
/* Which parameters of a URL need or exclude each other. */
#ifndef NXLOCK_CONFIG_COMBINATION_H
#define NXLOCK_CONFIG_COMBINATION_H

#include "config/params.h"

/* How a URL leads to its server. */
struct url_ways {
    bool tls;          /* to the server */
    bool sentinels;    /* by asking them */
    bool sentinel_tls; /* to the Sentinels */
};

/* given has a bit for each row of the table that the URL sets. False: *error
 * says which parameters do not go together, and what to write. */
bool combination_valid(const struct settings *settings, uint64_t given,
    const struct url_ways *ways, struct text *error);

#endif

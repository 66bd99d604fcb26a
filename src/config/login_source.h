/* SPDX-License-Identifier: MIT */
/* A function that supplies user and password for a connection. */
#ifndef NXLOCK_CONFIG_LOGIN_SOURCE_H
#define NXLOCK_CONFIG_LOGIN_SOURCE_H

#include <stdbool.h>

#include "config/secret_file.h"

/* Zero-terminated. A failure leaves in why what is known of its reason, in the
 * words of the program. */
struct login_answer {
    char user[SECRET_MAX + 1]; /* "": that of the URL, if there is one */
    char password[SECRET_MAX + 1];
    char why[256];
};

struct login_source {
    /* May take any time, and is called in a thread of its own. *answer is all
     * zeros. NULL: there is no source. */
    bool (*ask)(const struct login_source *source, unsigned server,
        struct login_answer *answer);
    void (*callback)(void); /* the application's, and its argument */
    void *arg;
    bool sentinel; /* for Sentinels, not for the server */
};

#endif

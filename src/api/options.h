/* SPDX-License-Identifier: MIT */
/*
 * Turns the caller's option structures, whatever their size, into settings,
 * once, at the boundary: in the rest of the library no zero means a default.
 */
#ifndef NXLOCK_API_OPTIONS_H
#define NXLOCK_API_OPTIONS_H

#include "client/client.h"
#include "model/token.h"

/* A larger size means that the structure was not initialised. */
#define OPTIONS_SIZE_MAX 4096

struct lock_settings {
    struct slice name, prefix;
    const char *label;
    void *user;
    uint32_t ttl_ms;
    bool fence, renew;
    uint32_t min_hold_ms;
    uint64_t max_hold_ns; /* NEVER */
    uint64_t retry_first_ns, retry_max_ns;
    struct share share;
    bool name_length_given;
    int refused; /* why the options are wrong: an enum nxl_result */
};

/* False: client->errmsg says what is wrong. *set points into the arguments. */
bool options_lock(struct nxl_client *client, const char *name,
    const nxl_lock_options *options, struct lock_settings *set);

/* The same for one name of several, of that length whatever the options say. */
bool options_one_of_several(struct nxl_client *client, const char *name,
    size_t length, const nxl_lock_options *options, struct lock_settings *set);

/* Copies the members that the caller's structure has. A larger one, of a
 * program built for a newer library, is accepted if all members that we do not
 * know are zero. False: *error says what is wrong; name is the structure's. */
bool options_read(void *mine, size_t my_size, const void *theirs,
    const char *name, struct text *error);

/* Fills the settings a URL may override. false: *error says what is wrong. */
bool options_client(const nxl_client_options *options,
    struct settings *settings, struct text *error);

/* Copies the options of nxl_once_begin() on a lock of that TTL into *o, with
 * the default of keep_ms in place of zero. False: *error says what is wrong. */
bool options_once(const nxl_once_options *options, uint32_t ttl_ms,
    nxl_once_options *o, struct text *error);

/* Does this client allow this TTL? False: *error says why not. */
bool options_ttl(
    const struct nxl_client *client, int64_t ttl_ms, struct text *error);

#endif

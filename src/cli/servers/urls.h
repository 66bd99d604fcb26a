/* SPDX-License-Identifier: MIT */
/*
 * The URLs of a command line or variable, one server each.
 */
#ifndef NXLOCK_CLI_SERVERS_URLS_H
#define NXLOCK_CLI_SERVERS_URLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct url_list {
    char **urls; /* owned, as are its elements */
    size_t count;
};

/* Makes the list from count texts, each split at commas before a "scheme://".
 * False: no memory, and nothing to free. */
bool url_list_make(
    struct url_list *list, const char *const *texts, size_t count);
void url_list_free(struct url_list *list);

/* Takes the parameter out of every URL. */
void url_list_drop(struct url_list *list, const char *name);

/* These parse a URL as the library does, but a user may have no password yet. A
 * malformed URL has none of it; the library reports what is wrong with it. */
struct url_facts {
    bool valid;
    bool encrypts;         /* TLS to the server */
    bool uses_tls;         /* to the server or to its Sentinels */
    bool trusts_anybody;   /* verify=none */
    bool wait_aof;         /* wait_aof=1 */
    int64_t wait_replicas; /* -1: not given */
    /* A password is in the URL, of the server or of the Sentinels; the server's
     * is there, or in a file that it names; and so are all that are needed. */
    bool shows_password, names_password, names_all;
    /* The server, or the Sentinels, have a user without one. */
    bool lacks_password, lacks_sentinel_password;
    uint64_t given; /* parameters, as url_parameter(); also user and
                     * password where these are written without one */
};
struct url_facts url_facts(const char *url);
/* The bit of a parameter. */
uint64_t url_parameter(const char *name);
bool url_has_parameter(const char *url, const char *name);
/* The value of user, password, sentinel_user or sentinel_password. False: the
 * URL does not have it, or it is longer than out. All that the library accepts
 * fit in URL_VALUE_ROOM. */
#define URL_VALUE_ROOM 8193
bool url_text(const char *url, const char *name, char *out, size_t size);
/* Do both have the same scheme, address or Sentinels, and database? */
bool url_same_server(const char *one, const char *other);
/* Is there a password in it, or is it malformed so that there could be? */
bool url_may_have_password(const char *url);
/* Adds name=value to URL i of the list, encoded. False: no memory. */
bool url_list_set(
    struct url_list *list, size_t i, const char *name, const char *value);
/* The same to all of them. */
bool url_list_set_all(
    struct url_list *list, const char *name, const char *value);
/* Writes text, with %XX for bytes that are special in a URL or in the name of a
 * file, into out, whose size is not 0. False: not all of it fits. */
bool url_encode(char *out, size_t size, const char *text);

/* Takes the password out of every URL, wherever it is written. The user
 * stays. */
void url_list_strip_passwords(struct url_list *list);
/* Overwrites the passwords of a text with URLs, which keeps its length. */
void url_hide_passwords(char *text);
/* Joins all URLs with commas, so that url_list_make() splits them again. The
 * caller frees the text. NULL: no memory. */
char *url_list_join(const struct url_list *list);

#endif

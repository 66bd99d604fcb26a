/* SPDX-License-Identifier: MIT */
/*
 * The URLs of a command line or variable, one server each, with the flags'
 * parameters added to every one of them.
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
 * query, "name=value&..." or NULL, is added to each URL. False: no memory, and
 * nothing to free. */
bool url_list_make(struct url_list *list, const char *const *texts,
    size_t count, const char *query);
void url_list_free(struct url_list *list);

/* Makes URL i lead to another server by TCP, with the same user, password and
 * parameters, but to no database. False: no memory. */
bool url_list_lead(
    struct url_list *list, size_t i, const char *host, const char *port);

/* Takes the parameter out of every URL. */
void url_list_drop(struct url_list *list, const char *name);

/* These parse a URL as the library does, but a user may have no password yet. A
 * malformed URL has none of it; the library reports what is wrong with it. */
bool url_is_valid(const char *url);
/* Does the URL ask for TLS, to the server or to its Sentinels? */
bool url_uses_tls(const char *url);
/* To the server? */
bool url_encrypts(const char *url);
/* Does it have the parameter, or the user or the password where these are
 * written without one? */
bool url_has_parameter(const char *url, const char *name);
/* How many Sentinels does the URL list? 0: it leads to the server itself. */
size_t url_sentinels(const char *url);
/* Writes host and port of Sentinel i of the URL into out, cut to size; and the
 * name of the service that the Sentinels monitor, of which all that the library
 * accepts fit in URL_VALUE_ROOM. False: there is none, or no room. */
bool url_sentinel(const char *url, size_t i, char *out, size_t size);
bool url_service(const char *url, char *out, size_t size);
/* The parameter wait_replicas; -1: the URL does not have it. */
int64_t url_wait_replicas(const char *url);
/* Is it wait_aof=1? */
bool url_wait_aof(const char *url);
/* Is it verify=none? */
bool url_trusts_anybody(const char *url);
/* The value of user, password, password_file, sentinel_user, sentinel_password,
 * cacert, key or prefix. False: the URL does not have it, or it is longer than
 * out. All that the library accepts fit in URL_VALUE_ROOM. */
#define URL_VALUE_ROOM 8193
bool url_text(const char *url, const char *name, char *out, size_t size);
/* The scheme, address and database, cut to size: without user, password and
 * parameters. Returns out. */
const char *url_address(char *out, size_t size, const char *url);
/* Do both have the same scheme, address or Sentinels, and database? */
bool url_same_server(const char *one, const char *other);
/* Is there a password in the URL, and does it say where one is? */
bool url_has_password(const char *url);
bool url_names_password(const char *url);
/* Is there one in the URL, of the server or of the Sentinels? */
bool url_shows_password(const char *url);
/* Is there one, or is the URL malformed so that there could be? */
bool url_may_have_password(const char *url);
/* Adds name=value to URL i of the list, encoded. False: no memory. */
bool url_list_set(
    struct url_list *list, size_t i, const char *name, const char *value);
/* Writes value into out, encoded so that it can be the value of a parameter: at
 * most three bytes for each of its bytes, and a zero byte. */
void url_encode(char *out, const char *value);

/* Takes the password out of every URL, wherever it is written. The user
 * stays. */
void url_list_strip_passwords(struct url_list *list);
/* Overwrites the passwords of a text with URLs, which keeps its length. */
void url_hide_passwords(char *text);
/* Does any URL say what its password is, or in which file? With Sentinels,
 * theirs too? */
bool url_list_has_password(const struct url_list *list);
/* Does any URL have a user but no password? It cannot be used to log in. */
bool url_list_lacks_password(const struct url_list *list);
bool url_list_lacks_sentinel_password(const struct url_list *list);
/* Joins all URLs with commas, so that url_list_make() splits them again. The
 * caller frees the text. NULL: no memory. */
char *url_list_join(const struct url_list *list);

#endif

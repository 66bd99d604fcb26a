/* SPDX-License-Identifier: MIT */
/*
 * The URLs of a command line or variable, one server each, with the flags'
 * parameters added to every one of them.
 */
#ifndef NXLOCK_CLI_URLS_H
#define NXLOCK_CLI_URLS_H

#include <stdbool.h>
#include <stddef.h>

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

/* Takes the parameter out of every URL. */
void url_list_drop(struct url_list *list, const char *name);

/* The value of a parameter, decoded. False: the URL does not have it, or it is
 * longer than out. */
bool url_parameter(const char *url, const char *name, char *out, size_t size);
/* The same for the user, wherever it is written. */
bool url_user(const char *url, char *out, size_t size);
/* Does it choose a database other than 0? */
bool url_has_database(const char *url);

/* Takes the password out of every URL, wherever it is written. The user
 * stays. */
void url_list_strip_passwords(struct url_list *list);
/* Does any URL have a password? */
bool url_list_has_password(const struct url_list *list);
/* Does any URL have a user but no password? It cannot be used to log in. */
bool url_list_lacks_password(const struct url_list *list);
/* Joins all URLs with commas, so that url_list_make() splits them again. The
 * caller frees the text. NULL: no memory. */
char *url_list_join(const struct url_list *list);

#endif

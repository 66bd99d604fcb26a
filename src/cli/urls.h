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

/* From count texts, each divided at a comma before a "scheme://". query:
 * "name=value&..." or NULL. False: no memory, and nothing to free. */
bool url_list_make(struct url_list *list, const char *const *texts,
    size_t count, const char *query);
void url_list_free(struct url_list *list);

/* The value of a parameter, decoded, as the first URL has it that gives it;
 * the caller's to free(). NULL: none gives it, or no memory. */
char *url_list_value(const struct url_list *list, const char *name);
/* Takes the parameter out of every URL. */
void url_list_drop(struct url_list *list, const char *name);

#endif

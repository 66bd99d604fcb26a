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

#endif

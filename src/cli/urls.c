/* SPDX-License-Identifier: MIT */
/*
 * Keeps: what the library would take for one URL is one here, so that a flag
 * reaches every server and no password is cut in two.
 */
#include "cli/urls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

static bool begins_url(const char *text)
{
    size_t length = strspn(text, LETTERS "0123456789+-.");

    return strchr(LETTERS, text[0]) != NULL && length > 0 &&
           strncmp(text + length, "://", 3) == 0;
}

/* The comma that ends the first URL of text, or its end. */
static const char *end_of_url(const char *text)
{
    while (*text != '\0' && !(*text == ',' && begins_url(text + 1)))
        text++;
    return text;
}

static bool add(
    struct url_list *list, const char *from, size_t length, const char *query)
{
    char **urls = realloc(list->urls, (list->count + 1) * sizeof(*urls));
    char *url = NULL;
    const char *join = "";

    if (urls == NULL)
        return false;
    list->urls = urls;
    if (query == NULL || length == 0 || from[length - 1] == ',')
        query = ""; /* an empty element is the library's to name */
    else if (memchr(from, '?', length) == NULL)
        join = "?";
    else if (from[length - 1] != '?' && from[length - 1] != '&')
        join = "&";
    if (asprintf(&url, "%.*s%s%s", (int)length, from, join, query) < 0)
        return false;
    list->urls[list->count++] = url;
    return true;
}

bool url_list_make(struct url_list *list, const char *const *texts,
    size_t count, const char *query)
{
    list->urls = NULL;
    list->count = 0;
    for (size_t i = 0; i < count; i++) {
        const char *from = texts[i];
        for (;;) {
            const char *end = end_of_url(from);
            if (!add(list, from, (size_t)(end - from), query)) {
                url_list_free(list);
                return false;
            }
            if (*end == '\0')
                break;
            from = end + 1;
        }
    }
    return true;
}

void url_list_free(struct url_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->urls[i]);
    free(list->urls);
    list->urls = NULL;
    list->count = 0;
}

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

/* "name=value" among the parameters of url, at the value; or NULL. */
static char *find(char *url, const char *name)
{
    size_t length = strlen(name);
    char *at = strchr(url, '?');

    while (at != NULL) {
        at++;
        if (strncmp(at, name, length) == 0 && at[length] == '=')
            return at + length + 1;
        at = strchr(at, '&');
    }
    return NULL;
}

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *at = c != '\0' ? strchr(digits, c) : NULL;

    return at != NULL ? (int)(at - digits) % 16 : -1;
}

char *url_list_value(const struct url_list *list, const char *name)
{
    char *value = NULL;

    for (size_t i = 0; i < list->count && value == NULL; i++)
        value = find(list->urls[i], name);
    if (value == NULL)
        return NULL;
    char *copy = strndup(value, strcspn(value, "&"));
    char *to = copy;
    for (const char *from = copy; copy != NULL && *from != '\0'; from++) {
        int high = *from == '%' ? hex_digit(from[1]) : -1;
        int low = high >= 0 ? hex_digit(from[2]) : -1;
        if (low >= 0)
            from += 2;
        *to++ = low >= 0 ? (char)(high * 16 + low) : *from;
    }
    if (copy != NULL)
        *to = '\0';
    return copy;
}

void url_list_drop(struct url_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++) {
        char *value = find(list->urls[i], name);
        if (value == NULL)
            continue;
        /* With the '&' behind it; one that is left at the end is fine. */
        char *from = value - strlen(name) - 1;
        char *rest = value + strcspn(value, "&");
        if (*rest == '&')
            rest++;
        else if (from[-1] == '&' || from[-1] == '?')
            from--;
        memmove(from, rest, strlen(rest) + 1);
    }
}

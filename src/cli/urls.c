/* SPDX-License-Identifier: MIT */
/*
 * The URLs of a command line or variable.
 *
 * Invariant: the library says where a URL ends, so that an option reaches every
 * server and no password is cut in two.
 */
#include "cli/urls.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <nxlock.h>

#include "api/private.h"

static bool list_add(
    struct url_list *list, const char *from, size_t length, const char *query)
{
    char **urls = realloc(list->urls, (list->count + 1) * sizeof(*urls));
    char *url = NULL;
    const char *join = "";

    if (!urls)
        return false;
    list->urls = urls;
    if (!query || length == 0 || from[length - 1] == ',')
        query = ""; /* the library reports an empty element */
    else if (!memchr(from, '?', length))
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
            const char *end = from + url_length(from);
            if (!list_add(list, from, (size_t)(end - from), query)) {
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
    for (size_t i = 0; i < list->count; i++) {
        explicit_bzero(list->urls[i], strlen(list->urls[i]));
        free(list->urls[i]);
    }
    free(list->urls);
    list->urls = NULL;
    list->count = 0;
}

/* --------------------------------------------------------- its parameters */

#define NEEDS_NO_CODE                                                          \
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."

void url_encode(char *out, const char *value)
{
    static const char hex[] = "0123456789ABCDEF";

    for (; *value != '\0'; value++) {
        unsigned char byte = (unsigned char)*value;
        bool special = !strchr(NEEDS_NO_CODE, *value);
        *out++ = special ? '%' : *value;
        if (special) {
            *out++ = hex[byte >> 4];
            *out++ = hex[byte & 15];
        }
    }
    *out = '\0';
}

/* "name=value" among the parameters of url, at the value; or NULL. */
static char *find_parameter(const char *url, const char *name)
{
    size_t length = strlen(name);
    const char *at = strchr(url, '?');

    while (at) {
        at++;
        if (strncmp(at, name, length) == 0 && at[length] == '=')
            return (char *)at + length + 1;
        at = strchr(at, '&');
    }
    return NULL;
}

bool url_has_parameter(const char *url, const char *name)
{
    return find_parameter(url, name);
}

/* Copies length bytes of a URL, decoded; %XX that is malformed stays, and the
 * library refuses it. */
static bool decode(const char *from, size_t length, char *out, size_t size)
{
    size_t used = 0;

    for (size_t i = 0; i < length; i++) {
        char digits[3] = "";
        char c = from[i];
        if (c == '%' && length - i > 2 &&
            isxdigit((unsigned char)from[i + 1]) &&
            isxdigit((unsigned char)from[i + 2])) {
            memcpy(digits, from + i + 1, 2);
            c = (char)strtoul(digits, NULL, 16);
            i += 2;
        }
        if (used + 1 >= size)
            return false;
        out[used++] = c;
    }
    out[used] = '\0';
    return true;
}

bool url_parameter(const char *url, const char *name, char *out, size_t size)
{
    const char *value = find_parameter(url, name);

    return value && decode(value, strcspn(value, "&"), out, size);
}

bool url_list_set(
    struct url_list *list, size_t i, const char *name, const char *value)
{
    struct url_list one;
    size_t room = strlen(name) + 3 * strlen(value) + 2;
    char *query = malloc(room);
    const char *text = list->urls[i];

    if (!query)
        return false;
    url_encode(query + snprintf(query, room, "%s=", name), value);
    bool made = url_list_make(&one, &text, 1, query);
    explicit_bzero(query, room);
    free(query);
    if (!made)
        return false;
    char *had = list->urls[i];
    list->urls[i] = one.urls[0];
    one.urls[0] = had;
    url_list_free(&one);
    return true;
}

void url_drop(char *url, const char *name)
{
    char *value = find_parameter(url, name);

    if (!value)
        return;
    /* With the '&' behind it; one that is left at the end is fine. */
    char *from = value - strlen(name) - 1;
    char *rest = value + strcspn(value, "&");
    if (*rest == '&')
        rest++;
    else if (from[-1] == '&' || from[-1] == '?')
        from--;
    memmove(from, rest, strlen(rest) + 1);
}

void url_list_drop(struct url_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        url_drop(list->urls[i], name);
}

/* ------------------------------------------------------------- its address */

bool url_uses_tls(const char *url)
{
    return strncasecmp(url, "rediss://", 9) == 0 ||
           strncasecmp(url, "valkeys://", 10) == 0;
}

const char *url_address(char *out, size_t size, const char *url)
{
    const char *host = strstr(url, "://");
    size_t length = strcspn(url, "?");

    host = host ? host + 3 : url;
    /* A '@' in the path of a unix socket is written %40. */
    for (const char *at = host; at < url + length; at++) {
        if (*at == '@')
            host = at + 1;
    }
    const char *scheme_end = strstr(url, "://");
    snprintf(out, size, "%.*s%.*s",
        (int)(scheme_end ? scheme_end + 3 - url : 0), url,
        (int)(url + length - host), host);
    return out;
}

/* ----------------------------------------------------------- its passwords */

/* Finds "user:password" in url: *from is its beginning; returns its end, the
 * last '@' before '/' or '?', as in the library. NULL: there is none. */
static char *credentials(const char *url, char **from)
{
    const char *scheme = strstr(url, "://");

    if (!scheme)
        return NULL;
    *from = (char *)scheme + 3;
    for (char *at = *from + strcspn(*from, "/?"); at > *from; at--) {
        if (at[-1] == '@')
            return at - 1;
    }
    return NULL;
}

bool url_user(const char *url, char *out, size_t size)
{
    char *from = NULL, *at = credentials(url, &from);

    if (url_parameter(url, "user", out, size))
        return true;
    if (!at || at == from || *from == ':')
        return false;
    char *colon = memchr(from, ':', (size_t)(at - from));
    return decode(from, (size_t)((colon ? colon : at) - from), out, size);
}

bool url_has_database(const char *url)
{
    const char *authority = strstr(url, "://");
    const char *number = find_parameter(url, "db");

    if (!number && authority && strncmp(url, "unix:", 5) != 0) {
        number = authority + 3 + strcspn(authority + 3, "/?");
        number += *number == '/';
    }
    return number && strtoul(number, NULL, 10) != 0;
}

void url_list_strip_passwords(struct url_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        char *from, *at = credentials(list->urls[i], &from);
        char *colon = at ? memchr(from, ':', (size_t)(at - from)) : NULL;
        if (colon && colon == from)
            memmove(from, at + 1, strlen(at + 1) + 1);
        else if (colon)
            memmove(colon, at, strlen(at) + 1);
        while (find_parameter(list->urls[i], "password"))
            url_drop(list->urls[i], "password");
    }
}

static void hide(char *from, const char *end)
{
    while (from < end)
        *from++ = '*';
}

void url_hide_passwords(char *text)
{
    for (char *url = text; *url != '\0';) {
        size_t length = url_length(url);
        char *end = url + length, kept = *end;
        char *from, *at;
        *end = '\0';
        at = credentials(url, &from);
        char *colon = at ? memchr(from, ':', (size_t)(at - from)) : NULL;
        if (colon)
            hide(colon + 1, at);
        /* Each of them, although the library refuses the second one. */
        for (char *p = strchr(url, '?'); p; p = strchr(p, '&')) {
            if (strncmp(++p, "password=", 9) == 0)
                hide(p + 9, p + strcspn(p, "&"));
        }
        *end = kept;
        url = kept == ',' ? end + 1 : end;
    }
}

bool url_has_password(const char *url)
{
    char *from, *at = credentials(url, &from);
    char *colon = at ? memchr(from, ':', (size_t)(at - from)) : NULL;

    return (colon && colon + 1 < at) || find_parameter(url, "password");
}

bool url_names_password(const char *url)
{
    return url_has_password(url) || find_parameter(url, "password_file");
}

bool url_is_muddled(const char *url)
{
    char *from, *at = credentials(url, &from);
    const char *scheme = strstr(url, "://");

    if (!scheme)
        return true;
    const char *host = at ? at + 1 : scheme + 3;
    const char *port = host + strcspn(host, host[0] == '[' ? "]/?" : ":/?");
    port += *port == ']';
    if (*port == ':')
        port += 1 + strspn(port + 1, "0123456789");
    return !strchr("/?", *port) || strchr(port, '@');
}

bool url_list_has_password(const struct url_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        if (url_names_password(list->urls[i]))
            return true;
    }
    return false;
}

bool url_list_lacks_password(const struct url_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        char *from, *at = credentials(list->urls[i], &from);
        bool user = (at && at > from && *from != ':') ||
                    find_parameter(list->urls[i], "user");
        if (user && !url_names_password(list->urls[i]))
            return true;
    }
    return false;
}

char *url_list_join(const struct url_list *list)
{
    size_t length = 1;

    for (size_t i = 0; i < list->count; i++)
        length += strlen(list->urls[i]) + 1;
    char *all = malloc(length);
    char *to = all;
    for (size_t i = 0; all && i < list->count; i++) {
        size_t part = strlen(list->urls[i]);
        memcpy(to, list->urls[i], part);
        to += part;
        *to++ = ','; /* the last one is replaced by the zero byte */
    }
    if (all)
        *(to > all ? to - 1 : to) = '\0';
    return all;
}

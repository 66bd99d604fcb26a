/* SPDX-License-Identifier: MIT */
/*
 * Reads the scheme of a URL, and suggests one where it is missing or unknown.
 *
 * Invariant: a message repeats a URL without a scheme only if it can be nothing
 * but an address. A word that could be a password is never shown.
 */
#include "net/scheme.h"

#include <ctype.h>
#include <strings.h>

/* Longer URLs and schemes are not repeated in messages. */
#define REPEAT_MAX 107
#define SCHEME_MAX 40

static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789+-."
                              "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/* "host", "host:1234", "host/5", "host:1234/5". */
static bool is_address(const char *url)
{
    static const char digits[] = "0123456789";

    if (!isalpha((unsigned char)*url) && !isdigit((unsigned char)*url))
        return false;
    if (strspn(url, "0123456789abcdefABCDEF-") >= 18)
        return false; /* a UUID, which may be a token */
    url += strspn(url, letters);
    if (*url == ':' && isdigit((unsigned char)url[1]))
        url += 1 + strspn(url + 1, digits);
    if (*url == '/')
        url += 1 + strspn(url + 1, digits);
    return *url == '\0';
}

static void suggest(const char *url, struct text *error)
{
    bool local = strncasecmp(url, "unix:", 5) == 0;
    const char *path = local ? url + 5 : url;

    text_set(error, "the URL has no scheme; write ");
    if (*path == '/') {
        path += strspn(path, "/") - 1;
        bool repeat = strlen(path) <= REPEAT_MAX && !strpbrk(path, "@?");
        text_add(error, "unix://");
        text_add_foreign(error, slice_of(repeat ? path : "/run/redis.sock"));
    } else if (local) {
        text_add(error, "unix:///run/redis.sock");
    } else if (url[strspn(url, "0123456789")] == '\0' && strlen(url) <= 5) {
        text_addf(error, "redis://localhost:%s", url);
    } else {
        bool repeat = strlen(url) <= REPEAT_MAX && is_address(url);
        text_add(error, "redis://");
        text_add_foreign(error, slice_of(repeat ? url : "localhost:6379"));
    }
}

static bool scheme_is(struct slice scheme, const char *name)
{
    return scheme.len == strlen(name) &&
           strncasecmp(scheme.data, name, scheme.len) == 0;
}

size_t scheme_read(const char *url, bool *local, struct text *error)
{
    struct slice scheme = {url, strspn(url, letters)};

    if (scheme.len == 0 || strncmp(url + scheme.len, "://", 3) != 0) {
        suggest(url, error);
        return 0;
    }
    *local = scheme_is(scheme, "unix");
    if (*local || scheme_is(scheme, "redis") || scheme_is(scheme, "valkey"))
        return scheme.len + 3;
    text_clear(error);
    if (scheme_is(scheme, "rediss") || scheme_is(scheme, "valkeys")) {
        text_add(error, "this build does not support TLS; use redis:// or "
                        "unix:// with the local end of a TLS tunnel");
        return 0;
    }
    text_add(error, "the URL's scheme");
    if (scheme.len <= SCHEME_MAX && !strchr(url, '@')) {
        text_add(error, " '");
        text_add_foreign(error, scheme);
        text_add(error, "'");
    }
    text_add(error, " is unknown; write redis://, valkey:// or unix://");
    return 0;
}

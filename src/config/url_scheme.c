/* SPDX-License-Identifier: MIT */
/*
 * Reads the scheme of a URL, and suggests one where it is missing or unknown.
 *
 * Invariant: a message repeats a URL without a scheme only if it can be nothing
 * but an address. A word that could be a password is never shown.
 */
#include "config/url_scheme.h"

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

static bool scheme_is(struct slice scheme, const char *name)
{
    return scheme.len == strlen(name) &&
           strncasecmp(scheme.data, name, scheme.len) == 0;
}

static const struct scheme {
    const char *name;
    enum url_scheme scheme;
} schemes[] = {{"redis", URL_SCHEME_TCP}, {"valkey", URL_SCHEME_TCP},
    {"rediss", URL_SCHEME_TLS}, {"valkeys", URL_SCHEME_TLS},
    {"unix", URL_SCHEME_UNIX}, {"redis+sentinel", URL_SCHEME_SENTINEL},
    {"valkey+sentinel", URL_SCHEME_SENTINEL},
    {"rediss+sentinel", URL_SCHEME_SENTINEL_TLS},
    {"valkeys+sentinel", URL_SCHEME_SENTINEL_TLS}};

/* The one of that name, or NULL. */
static const struct scheme *find_scheme(struct slice name)
{
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        if (scheme_is(name, schemes[i].name))
            return &schemes[i];
    }
    return NULL;
}

/* Of a URL without a scheme, or with "unix:" and one slash. */
static void suggest(const char *url, struct text *error)
{
    bool local = strncasecmp(url, "unix:", 5) == 0;
    const char *path = local ? url + 5 : url;

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

/* "redis:/host": url is what follows the colon. */
static void suggest_slashes(
    const struct scheme *scheme, const char *url, struct text *error)
{
    const char *rest = url + 1;
    bool repeat = strlen(rest) <= REPEAT_MAX && is_address(rest);

    text_addf(error, "%s://", scheme->name);
    /* Sentinels need a service too: an address alone would be refused. */
    if (strchr(scheme->name, '+'))
        text_add(error, "host:26379/SERVICE");
    else if (repeat)
        text_add_foreign(error, slice_of(rest));
    else
        text_add(error, "localhost:6379");
}

/* Nothing, or no "://", is behind the word that a URL begins with. */
static void report_missing(
    const char *url, struct slice word, struct text *error)
{
    const struct scheme *scheme = find_scheme(word);

    if (!scheme || strncmp(url + word.len, ":/", 2) != 0) {
        text_set(error, "the URL has no scheme; write ");
        suggest(url, error);
        return;
    }
    text_clear(error);
    text_addf(error, "the URL has one slash after '%s:' instead of two; write ",
        scheme->name);
    if (scheme->scheme == URL_SCHEME_UNIX)
        suggest(url, error);
    else
        suggest_slashes(scheme, url + word.len + 1, error);
}

enum url_scheme url_scheme_read(
    const char *url, size_t *len, struct text *error)
{
    struct slice scheme = {url, strspn(url, letters)};

    *len = scheme.len + 3;
    if (scheme.len == 0 || strncmp(url + scheme.len, "://", 3) != 0) {
        report_missing(url, scheme, error);
        return URL_SCHEME_UNKNOWN;
    }
    const struct scheme *known = find_scheme(scheme);
    if (known)
        return known->scheme;
    struct text name;
    text_clear(&name);
    text_add_foreign(&name, scheme);
    text_set(error, "the URL's scheme");
    if (scheme.len <= SCHEME_MAX && !strchr(url, '@')) {
        text_addf(error, " '%s'", name.data);
    }
    if (strcasestr(name.data, "sentinel"))
        text_add(error, " is unknown; for servers that Sentinels monitor "
                        "write " SENTINEL_URL ", or rediss+sentinel:// (TLS)");
    else if (strcasestr(name.data, "cluster"))
        text_add(error, " is not supported: nxlock does not support Redis "
                        "Cluster; use a server with cluster-enabled no, "
                        "redis://HOST:PORT");
    else
        text_add(
            error, " is unknown; write redis://, rediss:// (TLS) or unix://");
    return URL_SCHEME_UNKNOWN;
}

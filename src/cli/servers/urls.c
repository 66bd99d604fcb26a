/* SPDX-License-Identifier: MIT */
/*
 * The URLs of a command line or variable.
 *
 * Invariant: the library says where a URL ends and what it means, so that an
 * option reaches every server and no password is cut in two. The text of a URL
 * is searched here only to change it, and to hide passwords in one that is
 * malformed.
 */
#include "cli/servers/urls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nxlock.h>

#include "api/private.h"
#include "config/url.h"

static bool list_add(struct url_list *list, const char *from, size_t length)
{
    char **urls = realloc(list->urls, (list->count + 1) * sizeof(*urls));

    if (!urls)
        return false;
    list->urls = urls;
    urls[list->count] = strndup(from, length);
    return urls[list->count] && ++list->count > 0;
}

bool url_list_make(
    struct url_list *list, const char *const *texts, size_t count)
{
    list->urls = NULL;
    list->count = 0;
    for (size_t i = 0; i < count; i++) {
        const char *from = texts[i];
        for (;;) {
            const char *end = from + url_length(from);
            if (!list_add(list, from, (size_t)(end - from))) {
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

bool url_encode(char *out, size_t size, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    size_t length = 0;

    out[0] = '\0';
    for (; *text != '\0' && length + 3 < size; text++)
        length += (size_t)snprintf(out + length, size - length,
            strchr(plain, *text) ? "%c" : "%%%02X", (unsigned char)*text);
    return *text == '\0';
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

bool url_list_set(
    struct url_list *list, size_t i, const char *name, const char *value)
{
    char *url = list->urls[i];
    size_t length = strlen(url);
    size_t room = length + strlen(name) + 3 * strlen(value) + 3;
    char last = length > 0 ? url[length - 1] : ',';

    if (last == ',') /* the library reports an empty element */
        return true;
    char *made = malloc(room);
    if (!made)
        return false;
    const char *join = !strchr(url, '?') ? "?" : strchr("?&", last) ? "" : "&";
    size_t used = (size_t)snprintf(made, room, "%s%s%s=", url, join, name);
    (void)url_encode(made + used, room - used, value);
    explicit_bzero(url, length);
    free(url);
    list->urls[i] = made;
    return true;
}

bool url_list_set_all(
    struct url_list *list, const char *name, const char *value)
{
    size_t i = 0;

    while (i < list->count && url_list_set(list, i, name, value))
        i++;
    return i == list->count;
}

static void drop(char *url, const char *name)
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
        drop(list->urls[i], name);
}

/* ----------------------------------------------------------- its passwords */

/* The parameters that are one. */
static const char *const password_names[] = {
    "password", "sentinel_password", NULL};

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

void url_list_strip_passwords(struct url_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        char *from, *at = credentials(list->urls[i], &from);
        char *colon = at ? memchr(from, ':', (size_t)(at - from)) : NULL;
        if (colon && colon == from)
            memmove(from, at + 1, strlen(at + 1) + 1);
        else if (colon)
            memmove(colon, at, strlen(at) + 1);
        for (const char *const *name = password_names; *name; name++)
            while (find_parameter(list->urls[i], *name))
                drop(list->urls[i], *name);
    }
}

/* The value if a parameter with a password begins at text, or NULL. */
static char *value_of_password(char *text)
{
    for (const char *const *name = password_names; *name; name++) {
        size_t length = strlen(*name);
        if (strncmp(text, *name, length) == 0 && text[length] == '=')
            return text + length + 1;
    }
    return NULL;
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
            char *value = value_of_password(++p);
            if (value)
                hide(value, value + strcspn(value, "&"));
        }
        *end = kept;
        url = kept == ',' ? end + 1 : end;
    }
}

/* --------------------------------------------------------- what it means */

/* Stands for the password that is added later. It is never called. */
static bool ask_later(const struct login_source *source, unsigned server,
    struct login_answer *answer)
{
    (void)source;
    (void)server;
    (void)answer;
    return false;
}

/* Parses a URL, whose user may have no password yet. False: it is malformed,
 * which the library reports, or there is no memory; there is nothing to
 * free. */
static bool parse(struct endpoint *endpoint, const char *url)
{
    struct text error;

    *endpoint = (struct endpoint){.settings = {.login.source.ask = ask_later,
                                      .sentinel_login.source.ask = ask_later}};
    text_clear(&error);
    return url_parse(endpoint, url, &error) == URL_OK;
}

static bool gives_either(
    const struct endpoint *e, const char *one, const char *other)
{
    return e->given & (url_parameter(one) | url_parameter(other));
}

static void add_passwords(struct url_facts *facts, const struct endpoint *e)
{
    bool own = gives_either(e, "password", "password_file");
    bool asks = gives_either(e, "sentinel_password", "sentinel_password_file");

    facts->shows_password = gives_either(e, "password", "sentinel_password");
    facts->names_password = own;
    facts->names_all = own && (asks || !e->sentinels);
    facts->lacks_password = !own && gives_either(e, "user", "user");
    facts->lacks_sentinel_password =
        !asks && gives_either(e, "sentinel_user", "sentinel_user");
}

struct url_facts url_facts(const char *url)
{
    struct url_facts facts = {.wait_replicas = -1};
    struct endpoint e;

    if (!parse(&e, url))
        return facts;
    facts.valid = true;
    facts.given = e.given;
    facts.encrypts = e.needs_tls;
    facts.uses_tls = e.needs_tls || (e.sentinels && e.sentinels->tls);
    facts.trusts_anybody = e.settings.verify == TLS_VERIFY_NONE;
    add_passwords(&facts, &e);
    facts.wait_aof = e.settings.wait_aof != 0;
    if (e.given & url_parameter("wait_replicas"))
        facts.wait_replicas = (int64_t)e.settings.wait_replicas;
    endpoint_free(&e);
    return facts;
}

uint64_t url_parameter(const char *name)
{
    return UINT64_C(1) << param_find(slice_of(name));
}

bool url_has_parameter(const char *url, const char *name)
{
    return url_facts(url).given & url_parameter(name);
}

bool url_text(const char *url, const char *name, char *out, size_t size)
{
    struct endpoint e;

    if (!parse(&e, url))
        return false;
    const struct login_settings *own = &e.settings.login;
    const struct login_settings *asks = &e.settings.sentinel_login;
    const struct {
        const char *name, *value;
    } texts[] = {{"user", own->user}, {"password", own->password},
        {"sentinel_user", asks->user}, {"sentinel_password", asks->password}};
    const char *value = NULL;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (strcmp(name, texts[i].name) == 0)
            value = texts[i].value;
    bool fits = value && strlen(value) < size;
    if (fits)
        memcpy(out, value, strlen(value) + 1);
    endpoint_free(&e);
    return fits;
}

/* The names of two URLs may be shortened lists. */
static bool same_sentinels(const struct sentinels *a, const struct sentinels *b)
{
    if (!a || !b)
        return a == b;
    bool same = a->count == b->count && strcmp(a->service, b->service) == 0;
    for (unsigned i = 0; same && i < a->count; i++)
        same = strcmp(a->at[i].name.data, b->at[i].name.data) == 0;
    return same;
}

bool url_same_server(const char *one, const char *other)
{
    struct endpoint a, b;

    if (!parse(&a, one))
        return false;
    bool same = parse(&b, other);
    if (same) {
        same = strcmp(a.address.name.data, b.address.name.data) == 0 &&
               same_sentinels(a.sentinels, b.sentinels);
        endpoint_free(&b);
    }
    endpoint_free(&a);
    return same;
}

bool url_may_have_password(const char *url)
{
    return url_facts(url).shows_password ||
           (!url_facts(url).valid &&
               (strchr(url, '@') || find_parameter(url, "password") ||
                   find_parameter(url, "sentinel_password")));
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

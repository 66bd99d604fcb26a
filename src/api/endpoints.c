/* SPDX-License-Identifier: MIT */
/*
 * Parses the URLs of a client into its list of servers.
 *
 * Invariant: no address is in the list twice, and no two URLs set an option of
 * the whole client differently; a contradiction is refused, never guessed at.
 */
#include "api/endpoints.h"

#include <stdlib.h>
#include <strings.h>

#include "api/private.h"
#include "lock/errmsg.h"
#include "net/replica_wait.h"
#include "net/tls/tls.h"

static int no_memory(struct text *error)
{
    text_set(error, "out of memory: cannot create the client");
    return NXL_E_NOMEM;
}

void endpoints_free(struct endpoints *e)
{
    while (e->count > 0) {
        struct endpoint *last = &e->at[--e->count];
        tls_free(last->tls);
        endpoint_free(last);
    }
}

/* ------------------------------------------------------- one for another */

static bool same_address(
    const struct server_address *a, const struct server_address *b)
{
    if (a->path || b->path)
        return a->path && b->path && strcmp(a->path, b->path) == 0;
    /* A primary that Sentinels have yet to name has no host. */
    return a->host && b->host && a->port == b->port &&
           strcasecmp(a->host, b->host) == 0;
}

static int check_addresses(const struct endpoints *e, struct text *error)
{
    for (unsigned i = 1; i < e->count; i++) {
        for (unsigned j = 0; j < i; j++) {
            if (!same_address(&e->at[i].address, &e->at[j].address))
                continue;
            text_clear(error);
            text_addf(
                error, "URLs %u and %u name the same server, ", j + 1, i + 1);
            text_add(error, e->at[i].address.name.data);
            text_add(error, "; each server has one vote");
            return NXL_E_URL;
        }
    }
    return NXL_OK;
}

static bool gives(const struct endpoint *e, size_t row)
{
    return e->given & UINT64_C(1) << row;
}

/* An option of the whole client that one URL sets applies to all of them. */
static int agree(struct endpoints *e, size_t row, struct text *error)
{
    unsigned first = 0;
    while (first < e->count && !gives(&e->at[first], row))
        first++;
    for (unsigned i = 0; first < e->count && i < e->count; i++) {
        struct settings *own = &e->at[i].settings;
        const struct settings *said = &e->at[first].settings;
        if (i == first || param_equal(row, own, said))
            continue;
        if (gives(&e->at[i], row)) {
            text_clear(error);
            text_addf(error,
                "%s applies to the whole client, but URLs %u and %u set it "
                "differently; set it in one of them",
                url_params[row].name, first + 1, i + 1);
            return NXL_E_URL;
        }
        if (!param_copy(row, own, said))
            return no_memory(error);
    }
    return NXL_OK;
}

/* --------------------------------------------------------------- Sentinels */

static int check_sentinels(const struct endpoints *e, struct text *error)
{
    unsigned i = 0;
    while (i < e->count && !e->at[i].sentinels)
        i++;
    if (i == e->count)
        return NXL_OK;
    if (e->count > 1) {
        text_clear(error);
        text_addf(error,
            "URL %u of %u names Sentinels: one Sentinel service is one "
            "server, and Redlock needs independent servers; list the "
            "Sentinels of a service in one URL, as in "
            "redis+sentinel://h1,h2,h3/SERVICE",
            i + 1, e->count);
        return NXL_E_URL;
    }
    if (e->at[0].settings.scheme == LOCK_SCHEME_TIMESTAMP) {
        text_set(error, "scheme=timestamp does not work with Sentinels: after "
                        "a failover another clock decides which locks have "
                        "expired");
        return NXL_E_URL;
    }
    return NXL_OK;
}

/* ----------------------------------------------------------------- parsing */

/* Says which of several URLs *error is about. */
static void number_error(struct text *error, size_t number, size_t count)
{
    struct text words = *error;
    if (count == 1)
        return;
    text_clear(error);
    text_addf(error, "URL %zu of %zu: ", number, count);
    text_add(error, words.data);
}

/* Is url wrong only because of a comma without a URL after it? Then replaces
 * the message, which would blame the part with the comma. Commas between
 * Sentinels have messages of their own. */
static bool stray_comma(
    const char *url, const struct settings *defaults, struct text *error)
{
    struct text unused = {.len = 0};
    struct endpoint before = {.settings = *defaults};
    const char *last = strrchr(url, '@'); /* a password may hold commas */
    const char *comma = strpbrk(last ? last : url, ",?"); /* as may values */
    size_t len = comma ? (size_t)(comma - url) : 0;
    char *head = comma && *comma == ',' ? strndup(url, len) : NULL;
    bool valid = head && url_parse(&before, head, &unused) == URL_OK;
    bool found = valid && !before.sentinels;
    if (valid)
        endpoint_free(&before);
    if (found) {
        text_clear(error);
        text_addf(error,
            "the ',' at byte %zu is not followed by a URL with a scheme, "
            "as in redis://a,redis://b",
            len + 1);
    }
    if (head)
        explicit_bzero(head, len);
    free(head);
    return found;
}

static int parse_url(struct endpoint *to, const char *url,
    const struct settings *defaults, struct text *error)
{
    size_t len = strlen(url);
    *to = (struct endpoint){.settings = *defaults};
    if (len > 0 && url[len - 1] == ',') {
        text_clear(error);
        text_addf(error,
            "the ',' at byte %zu ends the list with an empty element: "
            "remove the comma (in a URL it is written %%2C)",
            len);
        return NXL_E_URL;
    }
    switch (url_parse(to, url, error)) {
    case URL_OK:
        /* Sentinels without a user often need no password, and must not be
         * sent the server's by a callback that knows of no Sentinels. */
        if (!to->settings.sentinel_login.user)
            to->settings.sentinel_login.source = (struct login_source){0};
        return NXL_OK;
    case URL_NO_MEMORY:
        return NXL_E_NOMEM;
    case URL_MALFORMED:
        break;
    }
    (void)stray_comma(url, defaults, error);
    return NXL_E_URL;
}

static int parse_one(struct endpoints *e, const char *url, size_t count,
    const struct settings *defaults, struct text *error)
{
    struct endpoint *to = &e->at[e->count];
    if (!url)
        return errmsg_invalid(error, "the URL is NULL");
    int rc = parse_url(to, url, defaults, error);
    if (rc == NXL_OK)
        to->server = e->count++;
    else
        number_error(error, e->count + 1U, count);
    return rc;
}

/* -------------------------------------------------------------------- TLS */

static bool same_tls(const struct endpoint *a, const struct endpoint *b)
{
    return b->tls && params_of_tls_equal(&a->settings, &b->settings);
}

/* Reads the files of server i, unless a server before it has the same. */
static int load_tls_of(struct endpoints *e, unsigned i, struct text *error)
{
    struct endpoint *own = &e->at[i];
    for (unsigned j = 0; j < i && !own->tls; j++)
        if (same_tls(own, &e->at[j]))
            own->tls = tls_share(e->at[j].tls);
    if (!own->tls)
        own->tls = tls_new(&own->settings, error);
    return own->tls ? NXL_OK : NXL_E_URL;
}

static int load_tls(struct endpoints *e, struct text *error)
{
    int rc = NXL_OK;
    for (unsigned i = 0; i < e->count && rc == NXL_OK; i++) {
        const struct sentinels *sentinels = e->at[i].sentinels;
        if (!e->at[i].needs_tls && !(sentinels && sentinels->tls))
            continue;
        rc = load_tls_of(e, i, error);
        if (rc != NXL_OK)
            number_error(error, i + 1U, e->count);
    }
    return rc;
}

/* ---------------------------------------------------------- password files */

static bool try_password_file(const char *path, struct text *error)
{
    char *password = NULL;
    bool ok =
        !path || secret_file_read(path, "password file", &password, error);
    secret_free(password);
    return ok;
}

/* Reads each once, so that a mistake is noticed now: they are read again for
 * each connection. */
static int try_password_files(const struct endpoints *e, struct text *error)
{
    for (unsigned i = 0; i < e->count; i++) {
        const struct settings *set = &e->at[i].settings;
        if (try_password_file(set->login.password_file, error) &&
            try_password_file(set->sentinel_login.password_file, error))
            continue;
        number_error(error, i + 1U, e->count);
        return NXL_E_URL;
    }
    return NXL_OK;
}

/* ------------------------------------------------------------------ guards */

/* A guard lasts as long as the longest lease, so that is shorter by default
 * where one is on. */
#define GUARDED_MAX_TTL_MS 30000

static void shorten_max_ttl(struct endpoints *e)
{
    size_t row = param_find(slice_of("max_ttl_ms"));
    bool given = e->at[0].settings.max_ttl_in_options;
    for (unsigned i = 0; i < e->count; i++)
        given = given || gives(&e->at[i], row);
    for (unsigned i = 0; !given && i < e->count; i++)
        e->at[i].settings.max_ttl_ms = GUARDED_MAX_TTL_MS;
}

static int decide_guards(struct endpoints *e, struct text *error)
{
    const struct settings *set = &e->at[0].settings;
    bool restarts = set->guard_restarts != GUARD_SWITCH_OFF;
    bool automatic = e->count > 1 && restarts;
    /* What is behind Sentinels fails over sooner or later. */
    bool fails_over = e->at[0].sentinels;
    e->guards_failover = set->guard_failover == GUARD_SWITCH_AUTO
                             ? automatic || fails_over
                             : set->guard_failover == GUARD_SWITCH_ON;
    e->guards_restarts = automatic || e->guards_failover ||
                         set->guard_restarts == GUARD_SWITCH_ON;
    if (e->guards_failover && !restarts) {
        text_set(error, "guard_failover=on");
        if (set->guard_failover == GUARD_SWITCH_AUTO)
            text_add(error, ", the default with Sentinels,");
        text_add(error, " includes guard_restarts: remove "
                        "guard_restarts=off");
        return NXL_E_URL;
    }
    if (e->guards_failover && set->scheme == LOCK_SCHEME_TIMESTAMP) {
        text_set(error, "guard_failover=on does not work with "
                        "scheme=timestamp: after a failover another clock "
                        "decides which locks have expired");
        return NXL_E_URL;
    }
    if (e->guards_restarts)
        shorten_max_ttl(e);
    return NXL_OK;
}

/* A server that does not answer for longer counts as one that hangs. */
static int check_wait(struct endpoints *e, struct text *error)
{
    const struct settings *set = &e->at[0].settings;
    size_t row = param_find(slice_of("wait_replicas"));
    e->copies_decided = set->wait_replicas > 0;
    for (unsigned i = 0; i < e->count; i++)
        e->copies_decided = e->copies_decided || gives(&e->at[i], row);
    if (e->guards_failover && set->wait_ms > GUARDED_WAIT_MS) {
        text_set(error, "wait_ms is ");
        text_add_duration(error, set->wait_ms, false);
        text_add(error,
            ", longer than guard_failover=on allows (500ms): what is "
            "answered later than a second does not count");
        return NXL_E_URL;
    }
    if (e->guards_failover && set->wait_aof && set->wait_replicas > 0) {
        text_set(error,
            "wait_aof=1 with wait_replicas does not work with "
            "guard_failover=on: replicas say only once a second what they have "
            "written, and what is answered later than a second does not count; "
            "remove wait_aof: wait_replicas alone survives a failover");
        return NXL_E_URL;
    }
    if (set->wait_ms <= set->timeout_ms)
        return NXL_OK;
    text_set(error, "wait_ms is ");
    text_add_duration(error, set->wait_ms, false);
    text_add(error, ", longer than timeout_ms (");
    text_add_duration(error, set->timeout_ms, false);
    text_add(error, "): make it shorter, or timeout_ms longer");
    return NXL_E_URL;
}

int endpoints_parse(struct endpoints *e, const char *const *urls, size_t count,
    const struct settings *defaults, struct text *error)
{
    int rc = NXL_OK;
    e->count = 0;
    if (count < 1 || count > MAX_SERVERS)
        return errmsg_invalid(
            error, "%zu servers given; use 1 to %d", count, MAX_SERVERS);
    for (size_t i = 0; i < count && rc == NXL_OK; i++)
        rc = parse_one(e, urls[i], count, defaults, error);
    for (size_t row = 0; row < url_param_count && rc == NXL_OK; row++)
        if (!param_of_server(row))
            rc = agree(e, row, error);
    if (rc == NXL_OK)
        rc = check_addresses(e, error);
    if (rc == NXL_OK)
        rc = check_sentinels(e, error);
    if (rc == NXL_OK && count > 1 &&
        e->at[0].settings.scheme == LOCK_SCHEME_TIMESTAMP) {
        (void)errmsg_invalid(error,
            "scheme=timestamp works with one server only; %zu are given",
            count);
        rc = NXL_E_URL;
    }
    if (rc == NXL_OK)
        rc = decide_guards(e, error);
    if (rc == NXL_OK)
        rc = check_wait(e, error);
    if (rc == NXL_OK)
        rc = load_tls(e, error);
    if (rc == NXL_OK)
        rc = try_password_files(e, error);
    if (rc != NXL_OK)
        endpoints_free(e);
    return rc;
}

int endpoints_lead_to(
    struct endpoints *e, const char *host, uint16_t port, struct text *error)
{
    struct endpoint *only = &e->at[0];
    if (!endpoint_lead_to(only, host, port)) {
        endpoints_free(e);
        return no_memory(error);
    }
    if (!only->needs_tls) { /* it was for the Sentinels */
        tls_free(only->tls);
        only->tls = NULL;
    }
    only->settings.durable = 0;
    e->guards_restarts = e->guards_failover = false;
    return NXL_OK;
}

int endpoints_split(struct endpoints *e, const char *list,
    const struct settings *defaults, struct text *error)
{
    const char *urls[MAX_SERVERS];
    size_t count = 0;
    e->count = 0;
    if (!list)
        return errmsg_invalid(error, "the URL is NULL");
    size_t size = strlen(list) + 1;
    char *copy = malloc(size); /* it may hold passwords */
    if (!copy)
        return no_memory(error);
    memcpy(copy, list, size);
    urls[count++] = copy;
    for (char *at = copy + url_length(copy); *at; at += url_length(at)) {
        *at++ = '\0'; /* the comma before the next URL */
        if (count < MAX_SERVERS)
            urls[count] = at;
        count++;
    }
    int rc = NXL_E_URL;
    if (count <= MAX_SERVERS) {
        rc = endpoints_parse(e, urls, count, defaults, error);
    } else {
        text_clear(error);
        text_addf(error, "%zu servers in the URL; use at most %d", count,
            MAX_SERVERS);
    }
    explicit_bzero(copy, size);
    free(copy);
    return rc;
}

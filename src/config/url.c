/* SPDX-License-Identifier: MIT */
/*
 * Parses a URL. If it is malformed, says which part is wrong and what to write
 * instead.
 *
 * Invariant: a message never repeats what could be a password. It says which
 * byte of the URL is wrong and which part that was taken for. Of the URL itself
 * it shows only a short number given as port and the name of an unknown
 * parameter, and not even these after a stray '@'.
 */
#include "config/url.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "config/combination.h"
#include "config/url_scheme.h"

#define URL_MAX 8192
#define HOST_MAX 253 /* of a name in DNS */
#define UNIX_PATH_MAX 107
#define PORT_DEFAULT 6379
#define SENTINEL_PORT_DEFAULT 26379
#define SERVICE_MAX 255
#define SERVICE_SHOWN 64
#define SHOWN_HOSTS_MAX 160 /* bytes of a list of Sentinels that are shown */

struct parse {
    struct endpoint *to;
    const char *url;
    struct text *error;
    uint64_t seen;   /* rows set, one bit each */
    bool db_in_path; /* the db was in the path, and is in to->settings.db */
    bool veiled;     /* there is a stray '@': show nothing of the query */
};

#define MESSAGE_NO_MEMORY "out of memory: cannot store the URL"
#define IN_PASSWORD "in a password write / as %2F and ? as %3F"

/* The position as people count, from 1. */
static size_t byte_number(const struct parse *p, const char *place)
{
    return (size_t)(place - p->url) + 1;
}

static enum url_result fail(struct parse *p, const char *why)
{
    text_set(p->error, why);
    return URL_MALFORMED;
}

/* Says "WHAT in the URL (byte N) WHY": what names the part, why says what is
 * wrong with it. */
static enum url_result refuse_part(
    struct parse *p, const char *place, const char *what, const char *why)
{
    text_clear(p->error);
    text_addf(p->error, "%s in the URL (byte %zu) %s", what,
        byte_number(p, place), why);
    return URL_MALFORMED;
}

static struct slice between(const char *from, const char *to)
{
    return (struct slice){from, (size_t)(to - from)};
}

/* The first of the bytes in set, or the end. */
static const char *find(struct slice s, const char *set)
{
    size_t i = 0;

    while (i < s.len && !strchr(set, s.data[i]))
        i++;
    return s.data + i;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte that the %XX at the start of s stands for, or -1. */
static int unescape(struct slice s)
{
    if (s.len < 3 || hex_digit(s.data[1]) < 0 || hex_digit(s.data[2]) < 0)
        return -1;
    return hex_digit(s.data[1]) * 16 + hex_digit(s.data[2]);
}

/* Decodes %XX. The caller owns *out, which may be secret. what names the
 * part. */
static enum url_result decode(
    struct parse *p, struct slice in, const char *what, char **out)
{
    char *text = calloc(1, in.len + 1);
    size_t len = 0;

    if (!text) {
        text_set(p->error, MESSAGE_NO_MEMORY);
        return URL_NO_MEMORY;
    }
    for (size_t i = 0; i < in.len; i++) {
        int byte = (unsigned char)in.data[i];
        if (byte == '%') {
            byte = unescape((struct slice){in.data + i, in.len - i});
            if (byte <= 0) {
                secret_free(text);
                return refuse_part(p, in.data + i, what,
                    byte == 0 ? "cannot hold %00"
                              : "has a '%' without two hexadecimal digits; "
                                "write a literal % as %25");
            }
            i += 2;
        }
        text[len++] = (char)byte;
    }
    *out = text;
    return URL_OK;
}

static enum url_result set_row(
    struct parse *p, size_t row, struct slice in, const char *what)
{
    char *value;

    if (p->seen & UINT64_C(1) << row)
        return refuse_part(p, in.data, what, "is given twice; write it once");
    p->seen |= UINT64_C(1) << row;
    enum url_result result = decode(p, in, what, &value);
    if (result != URL_OK)
        return result;
    if (param_set(&p->to->settings, row, value))
        return URL_OK;
    refuse_part(p, in.data, what, "");
    param_describe(row, p->error);
    return URL_MALFORMED;
}

static enum url_result refuse_unknown(struct parse *p, struct slice name)
{
    refuse_part(p, name.data, "the parameter", "is unknown");
    if (!p->veiled && name.len <= 40) {
        text_add(p->error, ": '");
        text_add_foreign(p->error, name);
        text_add(p->error, "'");
    }
    text_add(p->error, "; ");
    param_advise(name, p->error);
    return URL_MALFORMED;
}

static enum url_result parse_parameter(struct parse *p, struct slice in)
{
    const char *equals = find(in, "=");
    const char *end = in.data + in.len;
    struct slice name = between(in.data, equals);
    uint64_t db = p->to->settings.db;
    size_t row = param_find(name);

    if (equals == end || name.len == 0)
        return refuse_part(p, in.data, "the parameter",
            equals == end ? "has no '='; write & in a value as %26"
                          : "has no name; write ?name=value&name=value");
    if (row == url_param_count)
        return refuse_unknown(p, name);
    enum url_result result =
        set_row(p, row, between(equals + 1, end), url_params[row].name);
    if (result == URL_OK && p->db_in_path && db != p->to->settings.db)
        return refuse_part(p, in.data, "db",
            "differs from the database after the '/'; "
            "write it once");
    return result;
}

static enum url_result parse_query(struct parse *p, struct slice in)
{
    const char *end = in.data + in.len;
    const char *from = in.data;

    p->veiled = find(in, "@") < end;
    while (from < end) {
        const char *stop = find(between(from, end), "&");
        enum url_result result = parse_parameter(p, between(from, stop));
        if (result != URL_OK)
            return result;
        from = stop < end ? stop + 1 : end;
    }
    return URL_OK;
}

static enum url_result parse_credentials(struct parse *p, struct slice in)
{
    const char *end = in.data + in.len;
    const char *colon = find(in, ":");
    enum url_result result = URL_OK;

    if (in.len == 0 || (in.len == 1 && colon < end))
        return refuse_part(p, end, "'@'",
            "has no user or password before it; write "
            "redis://:password@host, or redis://host");
    if (colon > in.data)
        result = set_row(p, param_find(slice_of("user")),
            between(in.data, colon), "the user");
    if (result == URL_OK && end - colon > 1)
        result = set_row(p, param_find(slice_of("password")),
            between(colon + 1, end), "the password");
    return result;
}

static bool is_name(const char *host)
{
    size_t len = strspn(host, "abcdefghijklmnopqrstuvwxyz0123456789-._"
                              "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    return host[len] == '\0' && len >= 1 && len <= HOST_MAX;
}

static bool is_ipv6(const char *host)
{
    char number[INET6_ADDRSTRLEN] = "";
    unsigned char bytes[16];
    size_t len = strcspn(host, "%");

    /* After the '%' comes a zone: the name or number of an interface. */
    if (len >= sizeof(number) || (host[len] && !is_name(host + len + 1)))
        return false;
    memcpy(number, host, len);
    return inet_pton(AF_INET6, number, bytes) == 1;
}

static enum url_result parse_port(
    struct parse *p, struct slice in, struct server_address *to)
{
    char digits[8] = "";
    uint64_t port = 0;

    if (in.len < sizeof(digits))
        memcpy(digits, in.data, in.len);
    if (!read_number(digits, 65535, &port) || port == 0) {
        char what[64];
        /* It looks like a port, and cannot be the beginning of a password: in
         * a list that could go on behind the comma. */
        if (!p->to->sentinels && in.len > 0 && in.len <= 5 &&
            !strchr(in.data, '@') && strspn(digits, "0123456789") == in.len) {
            snprintf(what, sizeof(what),
                "the port '%s' must be a number from 1 to 65535", digits);
            return fail(p, what);
        }
        return refuse_part(p, in.data, "the port",
            "must be a number from 1 to 65535; a password ends with '@', "
            "and " IN_PASSWORD);
    }
    to->port = (uint16_t)port;
    return URL_OK;
}

static enum url_result parse_host(
    struct parse *p, struct slice in, bool bracket, struct server_address *to)
{
    enum url_result result = decode(p, in, "the host", &to->host);

    if (result != URL_OK) {
        if (result == URL_MALFORMED && bracket)
            text_add(p->error, ", as in [fe80::1%25eth0]");
        return result;
    }
    if (bracket && !is_ipv6(to->host))
        return refuse_part(p, in.data, "the host",
            "is not an IPv6 address; write brackets as in "
            "redis://[::1]:6379");
    if (!bracket && !is_name(to->host))
        return refuse_part(p, in.data, "the host",
            "must be a name or address of at most 253 letters, digits, "
            "'-', '.' and '_'; " IN_PASSWORD);
    return URL_OK;
}

static enum url_result parse_host_port(
    struct parse *p, struct slice in, struct server_address *to)
{
    const char *end = in.data + in.len;
    bool bracket = in.len > 0 && in.data[0] == '[';
    const char *stop = find(in, bracket ? "]" : ":");

    if (bracket && stop == end)
        return refuse_part(
            p, in.data, "'['", "has no ']'; write redis://[::1]");
    struct slice host = between(in.data + bracket, stop);
    const char *rest = stop + bracket;
    if (rest < end && *rest != ':')
        return refuse_part(p, rest, "the text after ']'",
            "must begin with ':' and the port, '/' or '?'");
    if (rest < end && find(between(rest + 1, end), ":") < end)
        return refuse_part(p, rest, "':' between host and port",
            "is not the only "
            "one; write an IPv6 address in brackets, as in redis://[::1]:6379, "
            "and a password before an '@'");
    if (host.len == 0 && rest < end)
        return refuse_part(p, rest, "':'",
            "has no host before it; write redis://127.0.0.1:6379; a "
            "password ends with '@', and " IN_PASSWORD);
    if (host.len == 0 && !bracket)
        host = slice_of("127.0.0.1");
    enum url_result result = parse_host(p, host, bracket, to);
    if (result == URL_OK && rest < end)
        result = parse_port(p, between(rest + 1, end), to);
    return result;
}

/* "/" and what follows it. */
static enum url_result parse_db(struct parse *p, struct slice in)
{
    size_t row = param_find(slice_of("db"));

    if (in.len <= 1)
        return URL_OK;
    enum url_result result =
        set_row(p, row, between(in.data + 1, in.data + in.len), "the db");
    if (result == URL_MALFORMED && strchr(in.data, '@'))
        text_add(p->error, "; " IN_PASSWORD);
    /* The same number may be repeated as a parameter. */
    p->seen &= ~(UINT64_C(1) << row);
    p->db_in_path = true;
    return result;
}

static enum url_result parse_path(struct parse *p, struct slice in)
{
    if (in.len <= 1)
        return refuse_part(
            p, in.data, "the path", "is empty; write unix:///run/redis.sock");
    enum url_result result = decode(p, in, "the path", &p->to->address.path);
    if (result == URL_OK && strlen(p->to->address.path) > UNIX_PATH_MAX)
        return refuse_part(p, in.data, "the path",
            "is longer than 107 bytes, the limit for a unix socket");
    return result;
}

/* ---------------------------------------------------------- the Sentinels */

static bool same_host(
    const struct server_address *a, const struct server_address *b)
{
    return a->port == b->port && strcasecmp(a->host, b->host) == 0;
}

/* One element of the list. */
static enum url_result parse_sentinel(struct parse *p, struct slice in)
{
    struct sentinels *s = p->to->sentinels;

    if (in.len == 0)
        return refuse_part(p, in.data, "the list of Sentinels",
            "has an empty element; write redis+sentinel://h1,h2,h3/SERVICE");
    if (s->count == SENTINELS_MAX)
        return refuse_part(p, in.data, "the list of Sentinels",
            "has more than 15 elements; list at most 15");
    struct server_address *to = &s->at[s->count++];
    to->port = SENTINEL_PORT_DEFAULT;
    enum url_result result = parse_host_port(p, in, to);
    if (result != URL_OK)
        return result;
    text_addf(&to->name, strchr(to->host, ':') ? "[%s]:%u" : "%s:%u", to->host,
        (unsigned)to->port);
    for (const struct server_address *other = s->at; other < to; other++)
        if (same_host(other, to))
            return refuse_part(p, in.data, "the list of Sentinels",
                "names the same one twice; list each Sentinel once");
    return URL_OK;
}

static enum url_result parse_sentinels(struct parse *p, struct slice in)
{
    const char *end = in.data + in.len;
    const char *from = in.data;

    for (;;) {
        const char *stop = find(between(from, end), ",");
        enum url_result result = parse_sentinel(p, between(from, stop));
        if (result != URL_OK || stop == end)
            return result;
        from = stop + 1;
    }
}

static bool is_service(const char *name)
{
    size_t len = 0;

    while (name[len] > ' ' && name[len] < 0x7f)
        len++;
    return name[len] == '\0' && len >= 1 && len <= SERVICE_MAX;
}

/* "/SERVICE[/db]", or nothing. */
static enum url_result parse_service(struct parse *p, struct slice in)
{
    const char *end = in.data + in.len;
    const char *from = in.len > 0 ? in.data + 1 : in.data;
    const char *stop = find(between(from, end), "/");
    struct slice name = between(from, stop);
    const char *comma = find(name, ",");

    if (name.len == 0)
        return refuse_part(p, from, "the service",
            "is missing; write " SENTINEL_URL
            ", the name in the Sentinels' \"sentinel monitor\"");
    if (comma < stop)
        return refuse_part(p, comma, "the ',' in the service",
            "must be written %2C; all Sentinels stand before the '/', as in "
            "redis+sentinel://h1,h2,h3/SERVICE");
    enum url_result result =
        decode(p, name, "the service", &p->to->sentinels->service);
    if (result == URL_OK && !is_service(p->to->sentinels->service))
        return refuse_part(p, from, "the service",
            "must have 1 to 255 printable ASCII characters and no space, as "
            "the name in the Sentinels' \"sentinel monitor\"");
    return result == URL_OK ? parse_db(p, between(stop, end)) : result;
}

/* -------------------------------------------------------------- the whole */

static enum url_result parse_place(
    struct parse *p, enum url_scheme scheme, struct slice in)
{
    if (scheme == URL_SCHEME_UNIX)
        return parse_path(p, in);
    return p->to->sentinels ? parse_service(p, in) : parse_db(p, in);
}

static enum url_result parse_server(
    struct parse *p, enum url_scheme scheme, struct slice in)
{
    if (scheme == URL_SCHEME_UNIX)
        return URL_OK;
    return p->to->sentinels ? parse_sentinels(p, in)
                            : parse_host_port(p, in, &p->to->address);
}

static enum url_result check_combination(struct parse *p)
{
    struct sentinels *s = p->to->sentinels;
    struct url_ways ways = {.tls = p->to->needs_tls, .sentinels = s};
    bool said = p->seen & UINT64_C(1) << param_find(slice_of("sentinel_tls"));

    if (s)
        s->tls = said ? p->to->settings.sentinel_tls : p->to->needs_tls;
    ways.sentinel_tls = s && s->tls;
    return combination_valid(&p->to->settings, p->seen, &ways, p->error)
               ? URL_OK
               : URL_MALFORMED;
}

/* What follows "scheme://". */
static enum url_result parse_rest(
    struct parse *p, struct slice in, enum url_scheme scheme)
{
    bool local = scheme == URL_SCHEME_UNIX;
    const char *end = in.data + in.len;
    const char *query = find(in, "?");
    const char *path = find(between(in.data, query), "/");
    const char *host = path;

    while (host > in.data && host[-1] != '@')
        host--;
    if (local && host < path)
        return refuse_part(p, host, "the host",
            "does not belong in a unix URL; write unix:///run/redis.sock, "
            "or unix://user:password@/run/redis.sock; " IN_PASSWORD);
    /* This is more likely a password with a '/' in it than a path. */
    if (find(between(path, query), "@") < query)
        return refuse_part(p, path, "the path",
            "contains '@'; " IN_PASSWORD ", and @ in a path as %40");
    enum url_result result = parse_place(p, scheme, between(path, query));
    if (result == URL_OK && host > in.data)
        result = parse_credentials(p, between(in.data, host - 1));
    if (result == URL_OK)
        result = parse_server(p, scheme, between(host, path));
    if (result == URL_OK && query < end)
        result = parse_query(p, between(query + 1, end));
    return result == URL_OK ? check_combination(p) : result;
}

/* How other clients name the service of Sentinels. */
static enum url_result refuse_fragment(struct parse *p, const char *place)
{
    struct slice scheme = between(p->url, p->url + strcspn(p->url, ":"));
    static const char word[] = "sentinel";
    size_t len = sizeof(word) - 1;

    for (size_t i = 0; i + len <= scheme.len; i++)
        if (strncasecmp(scheme.data + i, word, len) == 0)
            return refuse_part(p, place, "'#'",
                "does not begin the service here; write " SENTINEL_URL "/db");
    return refuse_part(p, place, "'#'",
        "would begin a fragment, which is not supported; write it as %23");
}

/* Refuses bytes that no part of a URL may contain unescaped. */
static enum url_result check_bytes(struct parse *p)
{
    size_t len = strnlen(p->url, URL_MAX + 1);

    if (len > URL_MAX)
        return fail(p, "the URL is longer than 8192 bytes");
    if (len == 0)
        return fail(p, "the URL is empty; write redis://localhost:6379");
    for (size_t i = 0; i < len; i++) {
        unsigned char byte = (unsigned char)p->url[i];
        if (byte == '#')
            return refuse_fragment(p, p->url + i);
        if (byte > ' ' && byte != 0x7f)
            continue;
        refuse_part(
            p, p->url + i, "a space or control byte", "must be removed or");
        text_addf(p->error, " written %%%02X", byte);
        return URL_MALFORMED;
    }
    return URL_OK;
}

/* As many of them as can be read at a glance, and how many more. */
static void add_sentinels(const struct sentinels *s, struct text *name)
{
    unsigned shown = 0;
    size_t len = 0;

    for (; shown < s->count; shown++) {
        len += s->at[shown].name.len + 1;
        if (shown > 0 && len > SHOWN_HOSTS_MAX)
            break;
        text_addf(name, "%s%s", shown > 0 ? "," : "", s->at[shown].name.data);
    }
    if (shown < s->count)
        text_addf(name, " and %u more", s->count - shown);
}

static void set_name(struct endpoint *to, struct slice scheme)
{
    text_clear(&to->address.name);
    text_add_foreign(&to->address.name, scheme);
    if (to->sentinels) {
        add_sentinels(to->sentinels, &to->address.name);
        text_add(&to->address.name, "/");
        text_add_foreign_raw(
            &to->address.name, slice_of(to->sentinels->service), SERVICE_SHOWN);
        text_addf(&to->address.name, "/%u", (unsigned)to->settings.db);
        return;
    }
    if (to->address.path) {
        text_add_foreign(&to->address.name, slice_of(to->address.path));
        if (to->settings.db != 0)
            text_addf(&to->address.name, "?db=%u", (unsigned)to->settings.db);
        return;
    }
    text_addf(&to->address.name,
        strchr(to->address.host, ':') ? "[%s]:%u/%u" : "%s:%u/%u",
        to->address.host, (unsigned)to->address.port,
        (unsigned)to->settings.db);
}

static enum url_result expect_sentinels(struct parse *p)
{
    p->to->address.port = 0;
    p->to->sentinels = calloc(1, sizeof(*p->to->sentinels));
    if (p->to->sentinels)
        return URL_OK;
    text_set(p->error, MESSAGE_NO_MEMORY);
    return URL_NO_MEMORY;
}

enum url_result url_parse(
    struct endpoint *endpoint, const char *url, struct text *error)
{
    struct parse p = {.to = endpoint, .url = url, .error = error};
    size_t len = 0;

    endpoint->address.host = NULL;
    endpoint->address.path = NULL;
    endpoint->sentinels = NULL;
    endpoint->tls = NULL;
    endpoint->address.port = PORT_DEFAULT;
    enum url_scheme scheme = URL_SCHEME_UNKNOWN;
    enum url_result result = check_bytes(&p);
    if (result == URL_OK)
        scheme = url_scheme_read(url, &len, error);
    endpoint->needs_tls =
        scheme == URL_SCHEME_TLS || scheme == URL_SCHEME_SENTINEL_TLS;
    if (result == URL_OK && scheme == URL_SCHEME_UNKNOWN)
        result = URL_MALFORMED;
    if (scheme == URL_SCHEME_SENTINEL || scheme == URL_SCHEME_SENTINEL_TLS)
        result = expect_sentinels(&p);
    if (result == URL_OK)
        result = parse_rest(&p, slice_of(url + len), scheme);
    endpoint->given = p.seen;
    if (result == URL_OK)
        set_name(endpoint, (struct slice){url, len});
    else
        endpoint_free(endpoint);
    return result;
}

static void free_address(struct server_address *address)
{
    free(address->host);
    free(address->path);
    address->host = NULL;
    address->path = NULL;
}

static void free_sentinels(struct sentinels *s)
{
    for (unsigned i = 0; i < s->count; i++)
        free_address(&s->at[i]);
    free(s->service);
    free(s);
}

void settings_become_sentinels(struct settings *settings)
{
    struct login_settings login = settings->login;
    settings->login = settings->sentinel_login;
    settings->sentinel_login = login;
    settings->db = 0;
    settings->sni = NULL;
    settings->to_sentinels = true;
    settings->scheme = LOCK_SCHEME_AUTO;
    settings->wait_replicas = settings->wait_aof = 0;
}

bool endpoint_lead_to(
    struct endpoint *endpoint, const char *host, uint16_t port)
{
    char *copy = strdup(host);
    if (!copy)
        return false;
    free_address(&endpoint->address);
    endpoint->address.host = copy;
    endpoint->address.port = port;
    endpoint->settings.db = 0;
    if (endpoint->sentinels)
        free_sentinels(endpoint->sentinels);
    endpoint->sentinels = NULL;
    set_name(
        endpoint, slice_of(endpoint->needs_tls ? "rediss://" : "redis://"));
    return true;
}

void endpoint_free(struct endpoint *endpoint)
{
    free_address(&endpoint->address);
    if (endpoint->sentinels)
        free_sentinels(endpoint->sentinels);
    endpoint->sentinels = NULL;
    settings_free(&endpoint->settings);
}

/* SPDX-License-Identifier: MIT */
/*
 * URLs, through the parser and through nxl_client_new(). That no message
 * tells anything of a password is checked by exchanging the password: every
 * word of the answer has to stay as it was.
 */
#include "config/url.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#include <nxlock.h>

#include "fuzz/fuzz.h"

#define URL_MAX 8192
#define NAME_BYTES                                                             \
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._"

/* The public result that url_parse() leads to. */
static int parse(struct endpoint *e, const char *url, struct text *error)
{
    static const int results[] = {[URL_OK] = NXL_OK,
        [URL_MALFORMED] = NXL_E_URL,
        [URL_NO_MEMORY] = NXL_E_NOMEM};

    memset(e, 0xa5, sizeof(*e));
    e->settings = (struct settings){.timeout_ms = 2000,
        .max_ttl_ms = 60000,
        .drift_ppm = 10000,
        .keepalive_s = 15};
    memset(error, 0xa5, sizeof(*error));
    text_clear(error);
    return results[url_parse(e, url, error)];
}

static void check_text(const struct text *text)
{
    CHECK(text->len > 0 && text->len < TEXT_MAX);
    CHECK(strlen(text->data) == text->len);
    CHECK(fuzz_printable(text->data));
}

static bool between(uint64_t value, uint64_t low, uint64_t high)
{
    return value >= low && value <= high;
}

static bool length_is(const char *text, size_t low, size_t high)
{
    return !text || between(strlen(text), low, high);
}

static void check_host(const struct server_address *at)
{
    CHECK(!at->path && at->host && length_is(at->host, 1, 253));
    CHECK(strspn(at->host, NAME_BYTES ":%") == strlen(at->host));
    CHECK(at->port >= 1);
}

static void check_sentinels(const struct endpoint *e)
{
    const struct sentinels *s = e->sentinels;
    const struct settings *set = &e->settings;

    CHECK(!e->address.host && !e->address.path && e->address.port == 0);
    CHECK(between(s->count, 1, SENTINELS_MAX));
    CHECK(s->service && length_is(s->service, 1, 255));
    CHECK(fuzz_printable(s->service) && !strchr(s->service, ' '));
    for (unsigned i = 0; i < s->count; i++) {
        check_host(&s->at[i]);
        check_text(&s->at[i].name);
        for (unsigned j = 0; j < i; j++)
            CHECK(strcasecmp(s->at[i].name.data, s->at[j].name.data) != 0);
    }
    CHECK(length_is(set->sentinel_login.user, 1, 8192));
    CHECK(length_is(set->sentinel_login.password, 1, 8192));
    CHECK(!set->sentinel_login.user || set->sentinel_login.password ||
          set->sentinel_login.password_file);
}

static void check_endpoint(const struct endpoint *e)
{
    const struct settings *set = &e->settings;

    if (e->sentinels) {
        check_sentinels(e);
    } else if (e->address.host) {
        check_host(&e->address);
    } else {
        CHECK(e->address.path[0] == '/' && length_is(e->address.path, 2, 107));
    }
    CHECK(between(set->timeout_ms, 10, 600000));
    CHECK(between(set->max_ttl_ms, 20, INT32_MAX));
    CHECK(between(set->drift_ppm, 1, 500000));
    CHECK(between(set->keepalive_s, 1, 32767));
    CHECK(set->db <= INT32_MAX);
    CHECK(length_is(set->login.user, 1, 8192));
    CHECK(length_is(set->login.password, 1, 8192));
    CHECK(length_is(set->prefix, 1, 1024));
    CHECK(!set->login.user || set->login.password || set->login.password_file);
    CHECK(e->sentinels ||
          (!set->sentinel_login.user && !set->sentinel_login.password));
    check_text(&e->address.name);
}

static void check_same_sentinels(
    const struct sentinels *a, const struct sentinels *b)
{
    CHECK((!a) == (!b));
    if (!a)
        return;
    CHECK(a->count == b->count && fuzz_same(a->service, b->service));
    CHECK(a->tls == b->tls);
    for (unsigned i = 0; i < a->count; i++) {
        CHECK(fuzz_same(a->at[i].host, b->at[i].host));
        CHECK(fuzz_same(a->at[i].name.data, b->at[i].name.data));
        CHECK(a->at[i].port == b->at[i].port);
    }
}

/* All but the passwords. */
static void check_same(const struct endpoint *a, const struct endpoint *b)
{
    const struct settings *x = &a->settings, *y = &b->settings;

    check_same_sentinels(a->sentinels, b->sentinels);
    CHECK(fuzz_same(x->sentinel_login.user, y->sentinel_login.user));
    CHECK((!x->sentinel_login.password) == (!y->sentinel_login.password));

    CHECK(fuzz_same(a->address.host, b->address.host) &&
          fuzz_same(a->address.path, b->address.path));
    CHECK(a->address.path || a->address.port == b->address.port);
    CHECK(fuzz_same(a->address.name.data, b->address.name.data));
    CHECK(x->timeout_ms == y->timeout_ms && x->max_ttl_ms == y->max_ttl_ms);
    CHECK(x->drift_ppm == y->drift_ppm && x->keepalive_s == y->keepalive_s);
    CHECK(x->db == y->db);
    CHECK(fuzz_same(x->login.user, y->login.user) &&
          fuzz_same(x->prefix, y->prefix));
    CHECK((!x->login.password) == (!y->login.password));
}

/* ------------------------------------------------------- written once more */

/* Everything but plain letters, digits and what "also" lists as %XX. */
static void write_encoded(FILE *out, const char *text, const char *also)
{
    for (; *text != '\0'; text++) {
        if (strchr(NAME_BYTES, *text) || strchr(also, *text))
            fputc(*text, out);
        else
            fprintf(out, "%%%02x", (unsigned)(unsigned char)*text);
    }
}

static void write_host(FILE *out, const struct server_address *at)
{
    bool bracket = strchr(at->host, ':') != NULL;

    fputs(bracket ? "[" : "", out);
    write_encoded(out, at->host, ":");
    fprintf(out, "%s:%u", bracket ? "]" : "", (unsigned)at->port);
}

static void write_sentinels(FILE *out, const struct sentinels *s)
{
    for (unsigned i = 0; i < s->count; i++) {
        fputs(i > 0 ? "," : "", out);
        write_host(out, &s->at[i]);
    }
    fputc('/', out);
    write_encoded(out, s->service, "");
}

static void write_url(FILE *out, const struct endpoint *e)
{
    const struct settings *set = &e->settings;
    const char *rest = strstr(e->address.name.data, "://") + 3;

    fprintf(
        out, "%.*s", (int)(rest - e->address.name.data), e->address.name.data);
    if (set->login.password) {
        write_encoded(out, set->login.user ? set->login.user : "", "");
        fputc(':', out);
        write_encoded(out, set->login.password, "");
        fputc('@', out);
    }
    if (e->address.path)
        write_encoded(out, e->address.path, "/");
    else if (e->sentinels)
        write_sentinels(out, e->sentinels);
    else
        write_host(out, &e->address);
    fprintf(out, "?db=%llu&timeout_ms=%llu&max_ttl_ms=%llu&drift_ppm=%llu",
        (unsigned long long)set->db, (unsigned long long)set->timeout_ms,
        (unsigned long long)set->max_ttl_ms,
        (unsigned long long)set->drift_ppm);
    fprintf(out, "&keepalive_s=%llu", (unsigned long long)set->keepalive_s);
    if (set->prefix) {
        fputs("&prefix=", out);
        write_encoded(out, set->prefix, "");
    }
    if (e->sentinels)
        fprintf(out, "&sentinel_tls=%d", e->sentinels->tls);
    if (set->sentinel_login.password) {
        fputs("&sentinel_password=", out);
        write_encoded(out, set->sentinel_login.password, "");
    }
    if (set->sentinel_login.user) {
        fputs("&sentinel_user=", out);
        write_encoded(out, set->sentinel_login.user, "");
    }
}

/* Is the name that people are shown a URL? */
static bool name_is_url(const struct endpoint *e)
{
    if (!e->sentinels) {
        const char *place = e->address.host ? e->address.host : e->address.path;
        return strspn(place, NAME_BYTES ":/") == strlen(place);
    }
    const char *service = e->sentinels->service;
    return !strpbrk(e->address.name.data, " %") && strlen(service) <= 64 &&
           strspn(service, NAME_BYTES) == strlen(service);
}

/* What was understood, written as a URL, is understood as the same; and so
 * is the name that people are shown, as far as it is a URL. */
static void check_again(const struct endpoint *e)
{
    char text[4 * URL_MAX] = "";
    FILE *out = fmemopen(text, sizeof(text), "w");
    struct endpoint again;
    struct text error;

    CHECK(out != NULL);
    write_url(out, e);
    CHECK(fclose(out) == 0);
    if (strlen(text) <= URL_MAX) {
        CHECK(parse(&again, text, &error) == NXL_OK);
        check_same(e, &again);
        CHECK(fuzz_same(
            e->settings.login.password, again.settings.login.password));
        endpoint_free(&again);
    }
    if (name_is_url(e)) {
        CHECK(parse(&again, e->address.name.data, &error) == NXL_OK);
        CHECK((!e->sentinels) == (!again.sentinels));
        CHECK(fuzz_same(e->address.host, again.address.host) &&
              fuzz_same(e->address.path, again.address.path));
        CHECK(e->settings.db == again.settings.db);
        CHECK(e->address.path || e->address.port == again.address.port);
        CHECK(fuzz_same(e->address.name.data, again.address.name.data));
        endpoint_free(&again);
    }
}

/* ----------------------------------------------------------- the password */

static char next_of(char c)
{
    if (isdigit((unsigned char)c))
        return c == '9' ? '0' : (char)(c + 1);
    if (isalpha((unsigned char)c))
        return c == 'z' ? 'a' : c == 'Z' ? 'A' : (char)(c + 1);
    return c;
}

/* Another password of the same form: letters and digits change, but for the
 * two after a '%'. */
static void exchange(char *from, const char *end)
{
    for (; from < end; from++) {
        if (*from == '%')
            from += 2;
        else
            *from = next_of(*from);
    }
}

static void exchange_passwords(char *url)
{
    char *rest = strstr(url, "://");

    if (!rest)
        return;
    rest += 3;
    char *path = rest + strcspn(rest, "/?");
    char *at = memrchr(rest, '@', (size_t)(path - rest));
    char *colon = at ? memchr(rest, ':', (size_t)(at - rest)) : NULL;
    if (colon)
        exchange(colon + 1, at);
    for (char *from = strchr(rest, '?'); from; from = strchr(from, '&')) {
        from++;
        if (strncmp(from, "sentinel_", 9) == 0)
            from += 9;
        if (strncmp(from, "password=", 9) == 0)
            exchange(from + 9, from + strcspn(from, "&"));
    }
}

static void check_exchanged(const char *url, int result,
    const struct endpoint *e, const struct text *error)
{
    char *other = fuzz_copy(url, strlen(url));
    struct endpoint changed;
    struct text words;

    exchange_passwords(other);
    CHECK(parse(&changed, other, &words) == result);
    if (result == NXL_OK) {
        check_same(e, &changed);
        endpoint_free(&changed);
    } else {
        CHECK(fuzz_same(error->data, words.data));
    }
    free(other);
}

/* A password with a '/', '?' or '@' as it is: from the first ':' to the last
 * '@'. Made of letters that no message has next to each other. */
static void check_wide_password(const char *url)
{
    static const char marks[] = "QZXJ";
    char *other = fuzz_copy(url, strlen(url));
    char *rest = strstr(other, "://");
    char *colon = rest ? strchr(rest + 3, ':') : NULL;
    char *at = strrchr(other, '@');
    struct endpoint e;
    struct text error;
    size_t turn = 0;

    for (char *c = other; colon && *c != '\0'; c++) {
        bool secret = c > colon && c < at;
        if (secret && *c == '%' && c + 2 < at)
            c += 2;
        else if (secret && isalpha((unsigned char)*c))
            *c = marks[turn++ % 4];
        else if (strchr(marks, *c))
            *c = 'a';
    }
    if (colon && parse(&e, other, &error) == NXL_OK)
        endpoint_free(&e);
    else if (colon)
        CHECK(!strstr(error.data, "QZ") && !strstr(error.data, "ZX") &&
              !strstr(error.data, "XJ") && !strstr(error.data, "JQ"));
    free(other);
}

/* ------------------------------------------------------- the public way in */

static int lowest_descriptor(void)
{
    int fd = dup(STDERR_FILENO);

    CHECK(fd >= 0);
    close(fd);
    return fd;
}

static void check_describe(nxl_client *client, const struct endpoint *e)
{
    char whole[TEXT_MAX], part[7];
    size_t len = nxl_client_describe(client, whole, sizeof(whole));

    CHECK(len < sizeof(whole) && strlen(whole) == len);
    CHECK(fuzz_printable(whole));
    CHECK(strncmp(whole, e->address.name.data, e->address.name.len) == 0);
    CHECK(nxl_client_describe(client, part, sizeof(part)) == len);
    CHECK(strlen(part) == sizeof(part) - 1 && !strncmp(part, whole, 6));
    CHECK(nxl_client_describe(client, NULL, 0) == len);
    CHECK(nxl_client_errmsg(client)[0] == '\0');
}

/* A comma at its end, which the parser of one URL takes as a part of it. */
static bool ends_in_comma(const char *url)
{
    size_t len = strlen(url);

    return len > 0 && url[len - 1] == ',';
}

static void check_client(const char *url, int result, const struct endpoint *e,
    const struct text *error)
{
    bool comma = strchr(url, ',') != NULL; /* it has words of its own */
    static const size_t sizes[] = {256, 0, 1, 2, 40, 512, 600};
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    size_t size = sizes[strlen(url) % (sizeof(sizes) / sizeof(sizes[0]))];
    nxl_client *client = (nxl_client *)&options;
    int descriptor = lowest_descriptor();
    char *why = fuzz_copy("", 0);

    why = realloc(why, size > 0 ? size : 1);
    CHECK(why != NULL);
    memset(why, '#', size > 0 ? size : 1);
    options.errbuf = why;
    options.errbuf_size = size;
    const char *const one[] = {url};
    if (ends_in_comma(url))
        result = NXL_E_URL;
    CHECK(nxl_client_new_urls(&client, one, 1, &options) == result);
    CHECK((client != NULL) == (result == NXL_OK));
    if (result == NXL_OK) {
        check_describe(client, e);
        nxl_client_free(client);
        CHECK(why[0] == '#' && (size == 0 || why[size - 1] == '#'));
    } else if (size > 0) {
        size_t len = error->len < size ? error->len : size - 1;
        CHECK(memchr(why, '\0', size) && fuzz_printable(why));
        CHECK(
            comma || (memcmp(why, error->data, len) == 0 && why[len] == '\0'));
    } else {
        CHECK(why[0] == '#');
    }
    CHECK(lowest_descriptor() == descriptor);
    free(why);
}

/* The same text, which may be a list of several. */
static void check_list(const char *url, int result)
{
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    nxl_client *client = NULL;
    char why[TEXT_MAX] = "";
    bool list = false;

    for (const char *at = url; (at = strchr(at, ',')); at++)
        list |= strstr(at, "://") != NULL;
    options.errbuf = why;
    options.errbuf_size = sizeof(why);
    int rc = nxl_client_new(&client, url, &options);
    CHECK(list || rc == (ends_in_comma(url) ? NXL_E_URL : result));
    CHECK((client != NULL) == (rc == NXL_OK));
    CHECK(rc == NXL_OK || rc == NXL_E_URL);
    CHECK((why[0] != '\0') == (rc != NXL_OK) && fuzz_printable(why));
    nxl_client_free(client);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t len;
    char *all = fuzz_expand(data, size, 2 * URL_MAX, &len);
    struct endpoint e;
    struct text error;

    len = fuzz_text_len(all, len);
    char *url = fuzz_copy(all, len);
    free(all);
    int result = parse(&e, url, &error);
    CHECK(result == NXL_OK || result == NXL_E_URL);
    if (result == NXL_OK) {
        CHECK(len > 0 && len <= URL_MAX);
        check_endpoint(&e);
        check_again(&e);
    } else {
        check_text(&error);
        check_wide_password(url);
    }
    check_exchanged(url, result, &e, &error);
    check_client(url, result, &e, &error);
    check_list(url, result);
    if (result == NXL_OK)
        endpoint_free(&e);
    fuzz_count(result == NXL_OK);
    free(url);
    return 0;
}

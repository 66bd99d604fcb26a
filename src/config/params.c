/* SPDX-License-Identifier: MIT */
/*
 * The table of options, and the functions that set, compare and copy settings
 * by its rows.
 *
 * Invariant: each option has one row, in params.h if a URL may have it and here
 * if only a structure may, and no member of struct settings ever holds a value
 * outside its row's limits.
 */
#include "config/params.h"

#include <stdlib.h>

#include "config/url_scheme.h"
#include "model/token.h"
#include "wire/record.h"

#define PATH_LEN_MAX 4095
#define PREFIX_LEN_MAX 1024
#define DAY_MS 86400000
#define NO_LIMIT INT64_MAX

#define DIGITS_OF(number) #number
#define DIGITS(number) DIGITS_OF(number)

/* clang-format off */
/* The help of a number ends with its bounds and its default. */
#define HELP_NUMBER(help, low, high, otherwise) \
    help ", " #low " to " #high "; default " #otherwise
#define HELP_TEXT(help, low, high, otherwise) help
#define HELP_WORD(help, low, high, otherwise) help
#define HELP_SWITCH(help, low, high, otherwise) help

#define AS_PARAM( \
    name, member, value, help, kind, low, high, otherwise, words, flags) \
    {#name, value, HELP_##kind(help, low, high, otherwise)},
#define AS_ROW( \
    name, member, value, help, kind, low, high, otherwise, words, flags) \
    {flags, offsetof(struct settings, member)},
#define AS_LIMIT( \
    name, member, value, help, kind, low, high, otherwise, words, flags) \
    {#name, LIMIT_##kind, low, high, otherwise, words, NULL},
/* clang-format on */

/* Flags: OWN is an option of one server, not of the whole client. */
enum {
    OWN = 1,
    TLS_ONLY = 2,
    SENTINEL_ONLY = 4,
    TLS_OWN = OWN | TLS_ONLY,
    SENTINEL_OWN = OWN | SENTINEL_ONLY
};

static const char *const schemes[] = {
    [LOCK_SCHEME_AUTO] = "auto", [LOCK_SCHEME_TIMESTAMP] = "timestamp"};
static const char *const guards[] = {[GUARD_SWITCH_AUTO] = "auto",
    [GUARD_SWITCH_ON] = "on",
    [GUARD_SWITCH_OFF] = "off"};
static const char *const checks[] = {[TLS_VERIFY_FULL] = "full",
    [TLS_VERIFY_CA] = "ca",
    [TLS_VERIFY_NONE] = "none"};
static const char *const versions[] = {
    [TLS_VERSION_1_2] = "1.2", [TLS_VERSION_1_3] = "1.3"};
static const char *const modes[] = {
    [0] = "halt", [1] = "retry", [2] = "look"}; /* enum nxl_once_mode */

/* The rows of the URL's parameters, then those of options that only structures
 * have. Bounds that depend on the client or on another member are those of the
 * widest case; api/options.c narrows them, and why says what they depend on. */
static const struct limit limits[] = {URL_PARAMS(AS_LIMIT)
    /* nxl_lock_options */
    {"ttl_ms", LIMIT_NUMBER, 1, 2147483647, 30000, NULL,
        "the most is this client's max_ttl_ms, a client option and a URL "
        "parameter; the least leaves 10 ms after the margin for clock drift"},
    {"label", LIMIT_ASCII, 1, LABEL_MAX, 0, NULL, NULL},
    {"retry_min_ms", LIMIT_NUMBER, 1, 3600000, 10, NULL, NULL},
    {"retry_max_ms", LIMIT_NUMBER, 1, 3600000, 250, NULL, NULL},
    {"fence", LIMIT_SWITCH, 0, 1, 0, NULL, NULL},
    {"renew", LIMIT_SWITCH, 0, 1, 0, NULL, NULL},
    {"min_hold_ms", LIMIT_NUMBER, 0, 2147483647, 0, NULL,
        "the most is this client's max_ttl_ms, a client option and a URL "
        "parameter"},
    {"max_hold_ms", LIMIT_NUMBER, 1, NO_LIMIT, 0, NULL,
        "not below ttl_ms and min_hold_ms; 0: as long as it is renewed"},
    {"permits", LIMIT_NUMBER, 0, PERMITS_MAX, 1, NULL, "1: an exclusive lock"},
    {"weight", LIMIT_NUMBER, 1, PERMITS_MAX, 1, NULL, "the most is permits"},
    {"shared", LIMIT_SWITCH, 0, 1, 0, NULL, NULL},
    /* nxl_once_options */
    {"mode", LIMIT_WORD, 0, 2, 0, modes, NULL},
    {"fingerprint", LIMIT_ASCII, 1, FINGERPRINT_MAX, 0, NULL,
        "use a hash of longer texts"},
    {"keep_ms", LIMIT_NUMBER, 1, INT64_C(365) * DAY_MS, INT64_C(30) * DAY_MS,
        NULL, "the least is the lock's ttl_ms, the most a year"}};

static const struct row {
    int flags;
    size_t offset; /* of the member of struct settings */
} rows[] = {URL_PARAMS(AS_ROW)};

#define COUNT (sizeof(rows) / sizeof(rows[0]))

const struct url_param url_params[] = {URL_PARAMS(AS_PARAM)};
const size_t url_param_count = COUNT;

size_t param_find(struct slice name)
{
    size_t i = 0;

    while (i < COUNT && !slice_equal(name, slice_of(url_params[i].name)))
        i++;
    return i;
}

const struct limit *limit_of(const char *name)
{
    size_t i = 0;

    while (strcmp(limits[i].name, name) != 0)
        i++;
    return &limits[i];
}

void param_describe(size_t row, struct text *text)
{
    limit_describe(&limits[row], text);
}

bool param_set(struct settings *settings, size_t row, char *value)
{
    void *member = (char *)settings + rows[row].offset;

    if (limits[row].kind != LIMIT_TEXT) {
        bool good = limit_read(&limits[row], value, member);
        free(value);
        return good;
    }
    if (!limit_text(&limits[row], value, NULL)) {
        secret_free(value);
        return false;
    }
    char **text = member;
    secret_free(*text);
    *text = value;
    return true;
}

void param_set_number(struct settings *settings, size_t row, uint64_t value)
{
    *(uint64_t *)(void *)((char *)settings + rows[row].offset) = value;
}

void settings_init(struct settings *settings)
{
    *settings = (struct settings){0};
    for (size_t i = 0; i < COUNT; i++)
        if (limits[i].kind != LIMIT_TEXT)
            param_set_number(settings, i, (uint64_t)limits[i].default_value);
}

bool param_of_server(size_t row)
{
    return rows[row].flags & OWN;
}

bool param_of_tls(size_t row)
{
    return rows[row].flags & TLS_ONLY;
}

bool param_of_sentinels(size_t row)
{
    return rows[row].flags & SENTINEL_ONLY;
}

bool param_equal(size_t row, const struct settings *a, const struct settings *b)
{
    const void *in_a = (const char *)a + rows[row].offset;
    const void *in_b = (const char *)b + rows[row].offset;

    if (limits[row].kind != LIMIT_TEXT)
        return *(const uint64_t *)in_a == *(const uint64_t *)in_b;
    const char *text_a = *(char *const *)in_a, *text_b = *(char *const *)in_b;
    return text_a && text_b ? strcmp(text_a, text_b) == 0 : text_a == text_b;
}

bool param_copy(size_t row, struct settings *to, const struct settings *from)
{
    void *in_to = (char *)to + rows[row].offset;
    const void *in_from = (const char *)from + rows[row].offset;
    const char *text = NULL;
    char *copy = NULL;

    if (limits[row].kind != LIMIT_TEXT) {
        *(uint64_t *)in_to = *(const uint64_t *)in_from;
        return true;
    }
    text = *(char *const *)in_from;
    if (text && !(copy = strdup(text)))
        return false;
    secret_free(*(char **)in_to);
    *(char **)in_to = copy;
    return true;
}

bool params_of_tls_equal(const struct settings *a, const struct settings *b)
{
    bool equal = true;

    for (size_t row = 0; equal && row < url_param_count; row++)
        equal = !param_of_tls(row) || param_equal(row, a, b);
    return equal;
}

bool params_of_tls_copy(struct settings *to, const struct settings *from)
{
    bool ok = true;

    for (size_t row = 0; ok && row < url_param_count; row++)
        ok = !param_of_tls(row) || param_copy(row, to, from);
    return ok;
}

/* What parameters of other clients are called here. */
static const struct {
    const char *name, *ours, *client;
} foreign[] = {
    {"ssl_ca_certs", "cacert=FILE", "redis-py"},
    {"ssl_ca_path", "cacertdir=DIR", "redis-py"},
    {"ssl_certfile", "cert=FILE", "redis-py"},
    {"ssl_keyfile", "key=FILE", "redis-py"},
    {"ssl_password", "key_password_file=FILE", "redis-py"},
    {"ssl_cert_reqs", "verify=full, ca or none", "redis-py"},
    {"ssl_check_hostname", "verify=full (checked) or ca", "redis-py"},
    {"ssl_min_version", "tls_min=1.2 or 1.3", "redis-py"},
    {"ssl_ciphers", "tls_ciphers=LIST", "redis-py"},
    {"ssl", "rediss:// for redis://", "other clients"},
    {"tls", "rediss:// for redis://", "other clients"},
    {"skip_verify", "verify=none (HARM: see nxlock-url(7)), better cacert=FILE",
        "go-redis"},
    {"verifyPeer", "verify=full, ca or none", "Lettuce"},
    {"insecure", "verify=none (HARM: see nxlock-url(7)), better cacert=FILE",
        "redis-cli"},
    {"sentinelMasterId", SENTINEL_URL, "Lettuce"},
    {"master_name", SENTINEL_URL, "go-redis"},
    {"addr", "redis+sentinel://h1,h2,h3/SERVICE", "go-redis"},
    {"sentinel_username", "sentinel_user=TEXT", "go-redis"},
    {"service_name", SENTINEL_URL, "redis-py"},
    {"sentinels", "redis+sentinel://h1,h2,h3/SERVICE", "other clients"},
};

void param_advise(struct slice unknown, struct text *text)
{
    for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
        if (!slice_equal(unknown, slice_of(foreign[i].name)))
            continue;
        text_addf(text, "it belongs to %s; write %s", foreign[i].client,
            foreign[i].ours);
        return;
    }
    text_add(text, "the parameters are");
    for (size_t i = 0; i < COUNT; i++)
        text_addf(text, "%s %s", i > 0 ? "," : "", url_params[i].name);
}

void secret_free(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}

void settings_free(struct settings *settings)
{
    for (size_t i = 0; i < COUNT; i++) {
        char **text = (void *)((char *)settings + rows[i].offset);
        if (limits[i].kind != LIMIT_TEXT)
            continue;
        secret_free(*text);
        *text = NULL;
    }
}

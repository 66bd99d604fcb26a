/* SPDX-License-Identifier: MIT */
/*
 * The table of URL parameters, and the functions that read, check and compare
 * by its rows.
 *
 * Invariant: each row is written once, here, and no member of struct settings
 * ever holds a value outside its row's bounds.
 */
#include "net/params.h"

#include <stdlib.h>

#define NUMBER_MAX 2147483647
#define PATH_LONG 4095

/* Each row: name (of the parameter and of the member), placeholder, help, kind,
 * the lowest and highest value (for TEXT, number of bytes), and flags. */
/* clang-format off */
#define ROWS(ROW) \
    ROW(db, "N", "database number; default 0", NUMBER, 0, NUMBER_MAX, OWN) \
    ROW(user, "TEXT", "user to log in as (ACL)", TEXT, 1, SECRET_MAX, OWN) \
    ROW(password, "TEXT", "password to log in with", \
        TEXT, 1, SECRET_MAX, OWN) \
    ROW(password_file, "FILE", \
        "its first line is the password; read for each connection", \
        TEXT, 1, PATH_LONG, OWN) \
    ROW(timeout_ms, "MS", \
        "bounds input and output of a call, 10 to 600000; default 2000", \
        NUMBER, 10, 600000, 0) \
    ROW(max_ttl_ms, "MS", \
        "longest ttl a lock may ask for, 20 to 2147483647; default 60000", \
        NUMBER, 20, NUMBER_MAX, 0) \
    ROW(drift_ppm, "PPM", \
        "how far clock rates may differ, 1 to 500000; default 10000 (1 %)", \
        NUMBER, 1, 500000, 0) \
    ROW(keepalive_s, "S", \
        "idle seconds before a TCP probe, 1 to 32767; default 15", \
        NUMBER, 1, 32767, OWN) \
    ROW(prefix, "TEXT", \
        "put in front of every name, at most 1024 bytes; default none", \
        TEXT, 1, 1024, 0) \
    ROW(scheme, "WORD", \
        "auto, or timestamp: by SETNX and a unix time; default auto", \
        WORD, 0, 1, 0) \
    ROW(interop, "N", \
        "1: take over the past unix time of a dead SETNX program; default 0", \
        SWITCH, 0, 1, 0) \
    ROW(poll, "BOOL", \
        "1: waiters poll; 0: in line, first come first served; default 0", \
        SWITCH, 0, 1, 0) \
    ROW(guard_restarts, "BOOL", \
        "1: no vote for max_ttl_ms after a restart; default if several", \
        SWITCH, 0, 1, 0) \
    ROW(durable, "BOOL", \
        "1: a restart loses nothing (AOF, fsync always); default 0", \
        SWITCH, 0, 1, OWN) \
    ROW(cacert, "FILE", \
        "TLS: certificates of the CAs to trust (PEM); default the system's", \
        TEXT, 1, PATH_LONG, TLS_OWN) \
    ROW(cacertdir, "DIR", \
        "TLS: the same, a directory made by openssl rehash", \
        TEXT, 1, PATH_LONG, TLS_OWN) \
    ROW(cert, "FILE", \
        "TLS: client certificate and its chain (PEM); needs key", \
        TEXT, 1, PATH_LONG, TLS_OWN) \
    ROW(key, "FILE", "TLS: private key of the client certificate (PEM)", \
        TEXT, 1, PATH_LONG, TLS_OWN) \
    ROW(key_password_file, "FILE", \
        "TLS: its first line is the password of the key", \
        TEXT, 1, PATH_LONG, TLS_OWN) \
    ROW(sni, "NAME", \
        "TLS: server name to send and to verify; default the URL's host", \
        TEXT, 1, 253, TLS_OWN) \
    ROW(verify, "WORD", \
        "TLS: full (default), ca or none; HARM of the two: see nxlock(1)", \
        WORD, 0, 2, TLS_OWN) \
    ROW(tls_min, "VERSION", "TLS: oldest version, 1.2 or 1.3; default 1.2", \
        WORD, 0, 1, TLS_OWN) \
    ROW(tls_ciphers, "LIST", "TLS 1.2: ciphers, as openssl ciphers has them", \
        TEXT, 1, 1024, TLS_OWN) \
    ROW(tls_ciphersuites, "LIST", "TLS 1.3: cipher suites", \
        TEXT, 1, 1024, TLS_OWN)

#define AS_PARAM(name, value, help, kind, low, high, flags) \
    {#name, value, help},
#define AS_ROW(name, value, help, kind, low, high, flags) \
    {kind, low, high, flags, offsetof(struct settings, name)},
/* clang-format on */

enum kind { NUMBER, TEXT, WORD, SWITCH };

/* Flags: OWN is an option of one server, not of the whole client. */
enum { OWN = 1, TLS_ONLY = 2, TLS_OWN = OWN | TLS_ONLY };

struct row {
    enum kind kind;
    int64_t low, high;
    int flags;
    size_t place; /* of the member */
};

static const struct row rows[] = {ROWS(AS_ROW)};

#define COUNT (sizeof(rows) / sizeof(rows[0]))

const struct url_param url_params[] = {ROWS(AS_PARAM)};
const size_t url_param_count = COUNT;

/* The words for 0, 1, ... of each row of kind WORD. */
static const struct choices {
    const char *name;
    const char *words[3];
} choices[] = {
    {"scheme",
        {[LOCK_SCHEME_AUTO] = "auto", [LOCK_SCHEME_TIMESTAMP] = "timestamp"}},
    {"verify", {[TLS_VERIFY_FULL] = "full",
                   [TLS_VERIFY_CA] = "ca",
                   [TLS_VERIFY_NONE] = "none"}},
    {"tls_min", {[TLS_VERSION_1_2] = "1.2", [TLS_VERSION_1_3] = "1.3"}},
};

static const char *const *words_of(size_t row)
{
    size_t i = 0;

    while (strcmp(choices[i].name, url_params[row].name) != 0)
        i++;
    return choices[i].words;
}

bool read_number(const char *digits, uint64_t high, uint64_t *value)
{
    uint64_t sum = 0;

    if (!*digits)
        return false;
    for (; *digits; digits++) {
        if (*digits < '0' || *digits > '9')
            return false;
        uint64_t digit = (uint64_t)(*digits - '0');
        if (digit > high || sum > (high - digit) / 10)
            return false;
        sum = sum * 10 + digit;
    }
    *value = sum;
    return true;
}

size_t param_find(struct slice name)
{
    size_t i = 0;

    while (i < COUNT && !slice_equal(name, slice_of(url_params[i].name)))
        i++;
    return i;
}

void param_describe(size_t row, struct text *text)
{
    if (rows[row].kind == WORD) {
        text_add(text, "must be ");
        for (int64_t i = 0; i <= rows[row].high; i++)
            text_addf(text, "%s%s",
                i == 0                ? ""
                : i == rows[row].high ? " or "
                                      : ", ",
                words_of(row)[i]);
        return;
    }
    if (rows[row].kind == SWITCH) {
        text_add(text, "must be 1 (on) or 0 (off)");
        if (row == param_find(slice_of("guard_restarts")))
            text_add(text, "; in the option, -1 means off");
        return;
    }
    text_addf(text,
        rows[row].kind == NUMBER ? "must be a number from %lld to %lld"
                                 : "must have %lld to %lld bytes",
        (long long)rows[row].low, (long long)rows[row].high);
}

bool url_param_check(const char *name, int64_t value, struct text *error)
{
    size_t row = param_find(slice_of(name));

    if (row < COUNT && rows[row].kind != TEXT && value >= rows[row].low &&
        value <= rows[row].high)
        return true;
    text_clear(error);
    text_addf(error, "%s is %lld; it ", name, (long long)value);
    if (row < COUNT)
        param_describe(row, error);
    else
        text_add(error, "is not a known parameter");
    return false;
}

bool param_set(struct settings *settings, size_t row, char *value)
{
    void *place = (char *)settings + rows[row].place;
    uint64_t low = (uint64_t)rows[row].low, high = (uint64_t)rows[row].high;
    uint64_t number = 0;

    if (rows[row].kind == TEXT) {
        char **text = place;
        size_t len = strlen(value);
        if (len < low || len > high) {
            secret_free(value);
            return false;
        }
        secret_free(*text);
        *text = value;
        return true;
    }
    bool good;
    if (rows[row].kind == WORD) {
        while (number < high && strcmp(value, words_of(row)[number]) != 0)
            number++;
        good = strcmp(value, words_of(row)[number]) == 0;
    } else {
        good = read_number(value, high, &number) && number >= low;
    }
    if (good)
        *(uint64_t *)place = number;
    free(value);
    return good;
}

bool param_of_server(size_t row)
{
    return rows[row].flags & OWN;
}

bool param_of_tls(size_t row)
{
    return rows[row].flags & TLS_ONLY;
}

bool param_equal(size_t row, const struct settings *a, const struct settings *b)
{
    const void *in_a = (const char *)a + rows[row].place;
    const void *in_b = (const char *)b + rows[row].place;

    if (rows[row].kind != TEXT)
        return *(const uint64_t *)in_a == *(const uint64_t *)in_b;
    const char *text_a = *(char *const *)in_a, *text_b = *(char *const *)in_b;
    return text_a && text_b ? strcmp(text_a, text_b) == 0 : text_a == text_b;
}

bool param_copy(size_t row, struct settings *to, const struct settings *from)
{
    void *in_to = (char *)to + rows[row].place;
    const void *in_from = (const char *)from + rows[row].place;
    const char *text = NULL;
    char *copy = NULL;

    if (rows[row].kind != TEXT) {
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
    {"skip_verify", "verify=none (HARM: see nxlock(1)), better cacert=FILE",
        "go-redis"},
    {"verifyPeer", "verify=full, ca or none", "Lettuce"},
    {"insecure", "verify=none (HARM: see nxlock(1)), better cacert=FILE",
        "redis-cli"},
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
        char **text = (void *)((char *)settings + rows[i].place);
        if (rows[i].kind != TEXT)
            continue;
        secret_free(*text);
        *text = NULL;
    }
}

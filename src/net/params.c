/* SPDX-License-Identifier: MIT */
/*
 * The table of URL parameters, and the functions that read, check, compare and
 * suggest by its rows.
 *
 * Invariant: each row is written once, here, and no member of struct settings
 * ever holds a value outside its row's bounds.
 */
#include "net/params.h"

#include <stdlib.h>

#define NUMBER_MAX 2147483647
#define SECRET_MAX 8192

/* Each row: name (of the parameter and of the member), placeholder, help, kind,
 * and the lowest and highest value; for TEXT, number of bytes. */
/* clang-format off */
#define ROWS(ROW) \
    ROW(db, "N", "database number; default 0", NUMBER, 0, NUMBER_MAX) \
    ROW(user, "TEXT", "user to log in as (ACL)", TEXT, 1, SECRET_MAX) \
    ROW(password, "TEXT", "password to log in with", TEXT, 1, SECRET_MAX) \
    ROW(timeout_ms, "MS", \
        "bounds input and output of a call, 10 to 600000; default 2000", \
        NUMBER, 10, 600000) \
    ROW(max_ttl_ms, "MS", \
        "longest ttl a lock may ask for, 20 to 2147483647; default 60000", \
        NUMBER, 20, NUMBER_MAX) \
    ROW(drift_ppm, "PPM", \
        "how far clock rates may differ, 1 to 500000; default 10000 (1 %)", \
        NUMBER, 1, 500000) \
    ROW(keepalive_s, "S", \
        "idle seconds before a TCP probe, 1 to 32767; default 15", \
        NUMBER, 1, 32767) \
    ROW(prefix, "TEXT", \
        "put in front of every name, at most 1024 bytes; default none", \
        TEXT, 1, 1024) \
    ROW(scheme, "WORD", \
        "auto, or timestamp: by SETNX and a unix time; default auto", \
        SCHEME, 0, 1) \
    ROW(interop, "N", \
        "1: take over the past unix time of a dead SETNX program; default 0", \
        SWITCH, 0, 1) \
    ROW(guard_restarts, "BOOL", \
        "1: no vote for max_ttl_ms after a restart; default if several", \
        SWITCH, 0, 1) \
    ROW(durable, "BOOL", \
        "1: a restart loses nothing (AOF, fsync always); default 0", \
        SWITCH, 0, 1)

#define AS_PARAM(name, value, help, kind, low, high) {#name, value, help},
#define AS_ROW(name, value, help, kind, low, high) \
    {kind, low, high, offsetof(struct settings, name)},
/* clang-format on */

enum kind { NUMBER, TEXT, SCHEME, SWITCH };

/* The words for 0, 1, ... of a SCHEME. */
static const char *const schemes[] = {
    [LOCK_SCHEME_AUTO] = "auto", [LOCK_SCHEME_TIMESTAMP] = "timestamp"};

struct row {
    enum kind kind;
    int64_t low, high;
    size_t place; /* of the member */
};

static const struct row rows[] = {ROWS(AS_ROW)};

#define COUNT (sizeof(rows) / sizeof(rows[0]))

const struct url_param url_params[] = {ROWS(AS_PARAM)};
const size_t url_param_count = COUNT;

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
    if (rows[row].kind == SCHEME) {
        text_addf(text, "must be %s or %s", schemes[0], schemes[1]);
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
    if (rows[row].kind == SCHEME) {
        while (number < high && strcmp(value, schemes[number]) != 0)
            number++;
        good = strcmp(value, schemes[number]) == 0;
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
    static const char *const names[] = {
        "db", "user", "password", "keepalive_s", "durable"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (row == param_find(slice_of(names[i])))
            return true;
    }
    return false;
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

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* How many letters must be added, dropped or changed to turn one into the
 * other. b is a row's name, which fits in `line`. */
static size_t distance(struct slice a, struct slice b)
{
    size_t line[32];

    if (b.len >= sizeof(line) / sizeof(line[0]))
        return SIZE_MAX;
    for (size_t j = 0; j <= b.len; j++)
        line[j] = j;
    for (size_t i = 0; i < a.len; i++) {
        size_t corner = line[0];
        line[0] = i + 1;
        for (size_t j = 0; j < b.len; j++) {
            size_t change = corner + (a.data[i] != b.data[j]);
            corner = line[j + 1];
            line[j + 1] = least(change, least(line[j], corner) + 1);
        }
    }
    return line[b.len];
}

void param_suggest(struct slice unknown, struct text *text)
{
    size_t nearest = 0, best = SIZE_MAX;

    for (size_t i = 0; i < COUNT; i++) {
        size_t far = distance(unknown, slice_of(url_params[i].name));
        if (far < best) {
            best = far;
            nearest = i;
        }
    }
    /* The names must be similar: at most 3 changes, and fewer than the name has
     * letters. */
    if (best <= 3 && best < unknown.len)
        text_addf(text, "did you mean %s? ", url_params[nearest].name);
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
    secret_free(settings->user);
    secret_free(settings->password);
    secret_free(settings->prefix);
    settings->user = NULL;
    settings->password = NULL;
    settings->prefix = NULL;
}

/* SPDX-License-Identifier: MIT */
/*
 * The limits of every option, at both of its entries: as a parameter of a URL
 * and as a member of a structure. A value at a limit is taken, the next one is
 * refused, and both entries say what is valid in the same words.
 */
#include "support/test.h"

#include "api/endpoints.h"
#include "api/options.h"
#include "base/deadline.h"

/* A client whose limits of leases are LEAST and MOST. */
#define LEAST 13
#define MOST 60000
#define TTL 30000 /* of a lock with no ttl_ms */
#define DAY INT64_C(86400000)

enum structure { NONE, CLIENT, LOCK, ONCE };

static const struct row {
    const char *name;
    bool in_url;
    enum structure structure;
    size_t place, size; /* of the member */
    enum { NUMBER, SWITCH, WORD, TEXT, ASCII } kind;
    int64_t low, high, default_value;
    const char *must; /* what is valid, as both entries say it */
} rows[] = {
#define IN(structure, type, name)                                              \
    structure, offsetof(type, name), sizeof(((type *)NULL)->name)
#define OF_CLIENT(name) #name, true, IN(CLIENT, nxl_client_options, name)
#define OF_URL(name) #name, true, NONE, 0, 0
#define OF_LOCK(name) #name, false, IN(LOCK, nxl_lock_options, name)
#define OF_ONCE(name) #name, false, IN(ONCE, nxl_once_options, name)
    {OF_URL(db), NUMBER, 0, 2147483647, 0, "number from 0 to 2147483647"},
    {OF_URL(user), TEXT, 1, 8192, 0, "must have 1 to 8192 bytes"},
    {OF_URL(password), TEXT, 1, 8192, 0, "must have 1 to 8192 bytes"},
    {OF_URL(password_file), TEXT, 1, 4095, 0, "must have 1 to 4095 bytes"},
    {OF_CLIENT(timeout_ms), NUMBER, 10, 600000, 2000,
        "must be a number from 10 to 600000"},
    {OF_CLIENT(max_ttl_ms), NUMBER, 20, 2147483647, 60000,
        "must be a number from 20 to 2147483647"},
    {OF_CLIENT(drift_ppm), NUMBER, 1, 500000, 10000,
        "must be a number from 1 to 500000"},
    {OF_CLIENT(keepalive_s), NUMBER, 1, 32767, 15,
        "must be a number from 1 to 32767"},
    {OF_CLIENT(prefix), TEXT, 1, 1024, 0, "must have 1 to 1024 bytes"},
    {OF_CLIENT(scheme), WORD, 0, 1, 0, "must be auto or timestamp"},
    {OF_CLIENT(interop), SWITCH, 0, 1, 0, "must be 1 (on) or 0 (off)"},
    {OF_CLIENT(poll), SWITCH, 0, 1, 0, "must be 1 (on) or 0 (off)"},
    {OF_CLIENT(guard_restarts), WORD, 0, 2, 0, "must be auto, on or off"},
    {OF_CLIENT(guard_failover), WORD, 0, 2, 0, "must be auto, on or off"},
    {OF_URL(durable), SWITCH, 0, 1, 0, "must be 1 (on) or 0 (off)"},
    {OF_CLIENT(wait_replicas), NUMBER, 0, 100, 0,
        "must be a number from 0 to 100"},
    {OF_CLIENT(wait_ms), NUMBER, 0, 60000, 0,
        "must be a number from 0 to 60000"},
    {OF_CLIENT(wait_aof), SWITCH, 0, 1, 0, "must be 1 (on) or 0 (off)"},
    {OF_URL(sentinel_user), TEXT, 1, 8192, 0, "must have 1 to 8192 bytes"},
    {OF_URL(sentinel_password), TEXT, 1, 8192, 0, "must have 1 to 8192 bytes"},
    {OF_URL(sentinel_password_file), TEXT, 1, 4095, 0,
        "must have 1 to 4095 bytes"},
    {OF_URL(sentinel_tls), SWITCH, 0, 1, 0, "must be 1 (on) or 0 (off)"},
    {OF_URL(cacert), TEXT, 1, 4095, 0, "must have 1 to 4095 bytes"},
    {OF_URL(cacertdir), TEXT, 1, 4095, 0, "must have 1 to 4095 bytes"},
    {OF_URL(cert), TEXT, 1, 4095, 0, "must have 1 to 4095 bytes"},
    {OF_URL(key), TEXT, 1, 4095, 0, "must have 1 to 4095 bytes"},
    {OF_URL(key_password_file), TEXT, 1, 4095, 0, "must have 1 to 4095 bytes"},
    {OF_URL(sni), TEXT, 1, 253, 0, "must have 1 to 253 bytes"},
    {OF_URL(verify), WORD, 0, 2, 0, "must be full, ca or none"},
    {OF_URL(tls_min), WORD, 0, 1, 0, "must be 1.2 or 1.3"},
    {OF_URL(tls_ciphers), TEXT, 1, 1024, 0, "must have 1 to 1024 bytes"},
    {OF_URL(tls_ciphersuites), TEXT, 1, 1024, 0, "must have 1 to 1024 bytes"},
    {OF_LOCK(ttl_ms), NUMBER, LEAST, MOST, TTL,
        "must be a number from 13 to 60000 (the most is this client's "
        "max_ttl_ms, a client option and a URL parameter; the least leaves 10 "
        "ms after the margin for clock drift)"},
    {OF_LOCK(label), ASCII, 1, 128, 0,
        "must be one word of printable ASCII, 1 to 128 bytes"},
    {OF_LOCK(retry_min_ms), NUMBER, 1, 3600000, 10,
        "must be a number from 1 to 3600000"},
    {OF_LOCK(retry_max_ms), NUMBER, 1, 3600000, 250,
        "must be a number from 1 to 3600000"},
    {OF_LOCK(fence), SWITCH, 0, 1, 0, "must be 1 (on) or 0 (off)"},
    {OF_LOCK(renew), SWITCH, 0, 1, 0, "must be 1 (on) or 0 (off)"},
    {OF_LOCK(min_hold_ms), NUMBER, 0, MOST, 0,
        "must be a number from 0 to 60000 (the most is this client's "
        "max_ttl_ms, a client option and a URL parameter)"},
    {OF_LOCK(max_hold_ms), NUMBER, TTL, INT64_MAX, 0,
        "must be a number of at least 30000 (not below ttl_ms and min_hold_ms; "
        "0: as long as it is renewed)"},
    {OF_ONCE(mode), WORD, 0, 2, 0, "must be halt, retry or look"},
    {OF_ONCE(fingerprint), ASCII, 1, 128, 0,
        "must be one word of printable ASCII, 1 to 128 bytes (use a hash of "
        "longer texts)"},
    {OF_ONCE(keep_ms), NUMBER, TTL, 365 * DAY, 30 * DAY,
        "must be a number from 30000 to 31536000000 (the least is the lock's "
        "ttl_ms, the most a year)"},
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static struct text error;

static bool is_text(const struct row *row)
{
    return row->kind == TEXT || row->kind == ASCII;
}

/* ------------------------------------------------------------- the two entries
 */

static bool url_takes(const struct row *row, const char *value)
{
    struct settings settings;
    char *copy = strdup(value);

    assert_non_null(copy);
    settings_init(&settings);
    size_t i = param_find(slice_of(row->name));
    assert_true(i < url_param_count);
    bool taken = param_set(&settings, i, copy);
    settings_free(&settings);
    text_clear(&error);
    if (!taken)
        param_describe(i, &error);
    return taken;
}

/* Any structure with that member set and the others zero. */
union options {
    size_t size;
    nxl_client_options client;
    nxl_lock_options lock;
    nxl_once_options once;
};

static bool options_take(const struct row *row, union options *options)
{
    struct node node = {.next = NULL};
    struct nxl_client client = {
        .max_ttl_ms = MOST, .drift_ppm = 10000, .nodes.first = &node};
    struct lock_settings lock;
    struct settings settings;
    nxl_once_options once;
    bool taken;

    text_clear(&error);
    switch (row->structure) {
    case CLIENT:
        options->size = sizeof(options->client);
        return options_client(&options->client, &settings, &error);
    case LOCK:
        options->size = sizeof(options->lock);
        /* A hold is limited only where the lock is renewed. */
        options->lock.renew |= options->lock.max_hold_ms > 0;
        text_clear(&client.errmsg);
        taken = options_lock(&client, "job", &options->lock, &lock);
        error = client.errmsg;
        return taken;
    case ONCE:
        options->size = sizeof(options->once);
        return options_once(&options->once, TTL, &once, &error);
    case NONE:
        break;
    }
    fail();
    return false;
}

static bool structure_takes_number(const struct row *row, int64_t value)
{
    union options options;
    int narrow = (int)value;

    memset(&options, 0, sizeof(options));
    if (row->size == sizeof(narrow) && narrow != value)
        return false; /* it cannot be written */
    memcpy((char *)&options + row->place,
        row->size == sizeof(narrow) ? (void *)&narrow : (void *)&value,
        row->size);
    return options_take(row, &options);
}

static bool structure_takes_text(const struct row *row, const char *value)
{
    union options options;

    memset(&options, 0, sizeof(options));
    memcpy((char *)&options + row->place, &value, sizeof(value));
    return options_take(row, &options);
}

/* ------------------------------------------------------------------- the tests
 */

static void every_option_is_here(void **state)
{
    (void)state;
    size_t in_url = 0;

    for (size_t i = 0; i < ROWS; i++) {
        assert_string_equal(limit_of(rows[i].name)->name, rows[i].name);
        if (!rows[i].in_url)
            continue;
        assert_int_equal(param_find(slice_of(rows[i].name)), in_url);
        in_url++;
    }
    assert_int_equal(in_url, url_param_count);
    assert_int_equal(param_find(slice_of("ttl")), url_param_count);
    assert_int_equal(param_find(slice_of("")), url_param_count);
    assert_int_equal(param_find(slice_of("dbx")), url_param_count);
    assert_int_equal(param_find(slice_of("d")), url_param_count);
}

static void assert_url_refuses(const struct row *row, const char *value)
{
    if (url_takes(row, value))
        fail_msg("%s=%s is taken in a URL", row->name, value);
    assert_contains(error.data, row->must);
}

static void numbers_in_a_url(const struct row *row)
{
    const int64_t good[] = {row->low, row->high};
    static const char *const garbage[] = {"", "x", "1x", " 1", "1 ", "+1", "-1",
        "0x10", "1.0", "1e3", "18446744073709551616", "on"};
    char digits[32];

    for (size_t i = 0; i < 2; i++) {
        snprintf(digits, sizeof(digits), "%lld", (long long)good[i]);
        assert_true(url_takes(row, digits));
    }
    snprintf(digits, sizeof(digits), "%lld", (long long)row->low - 1);
    assert_url_refuses(row, digits);
    snprintf(digits, sizeof(digits), "%lld", (long long)row->high + 1);
    assert_url_refuses(row, digits);
    for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++)
        assert_url_refuses(row, garbage[i]);
}

static void words_in_a_url(const struct row *row)
{
    const char *const *words = limit_of(row->name)->words;
    static const char *const garbage[] = {
        "", "0", "1", "2", "-1", "x", "AUTO", "auto ", "Full", "timestamps"};

    for (int64_t i = row->low; i <= row->high; i++) {
        assert_true(url_takes(row, words[i]));
        assert_contains(row->must, words[i]);
    }
    for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++)
        assert_url_refuses(row, garbage[i]);
}

/* Texts of length bytes; the caller frees them. */
static char *text_of(int64_t length)
{
    char *text = malloc((size_t)length + 1);

    assert_non_null(text);
    memset(text, 'x', (size_t)length);
    text[length] = '\0';
    return text;
}

static void texts_in_a_url(const struct row *row)
{
    char *least = text_of(row->low), *most = text_of(row->high);
    char *longer = text_of(row->high + 1);

    assert_true(url_takes(row, least));
    assert_true(url_takes(row, most));
    assert_url_refuses(row, longer);
    assert_url_refuses(row, "");
    free(least);
    free(most);
    free(longer);
}

static void urls(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        if (!rows[i].in_url)
            continue;
        if (rows[i].kind == WORD)
            words_in_a_url(&rows[i]);
        else if (is_text(&rows[i]))
            texts_in_a_url(&rows[i]);
        else
            numbers_in_a_url(&rows[i]);
    }
}

/* What is valid, as a structure says it: words with their numbers. */
static void assert_said(const struct row *row)
{
    const char *const *words = limit_of(row->name)->words;
    char word[64];

    assert_int_equal(strncmp(error.data, row->name, strlen(row->name)), 0);
    if (row->kind != WORD) {
        assert_contains(error.data, row->must);
        return;
    }
    for (int64_t i = row->low; i <= row->high; i++) {
        snprintf(word, sizeof(word), "%lld (%s)", (long long)i, words[i]);
        assert_contains(error.data, word);
    }
}

static void numbers_in_a_structure(const struct row *row)
{
    const int64_t bad[] = {row->low - 1, -1, INT64_MIN, INT64_MAX,
        row->high < INT64_MAX ? row->high + 1 : -2,
        INT64_C(4294967296) + row->low};
    char is[64];

    assert_true(structure_takes_number(row, 0));
    assert_true(structure_takes_number(row, row->low));
    assert_true(structure_takes_number(row, row->high));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (bad[i] == 0 || (bad[i] >= row->low && bad[i] <= row->high))
            continue; /* the default; or there is no upper limit */
        bool narrow = row->size == sizeof(int) && (int)bad[i] != bad[i];
        if (structure_takes_number(row, bad[i]))
            fail_msg("%s is %lld: taken", row->name, (long long)bad[i]);
        if (narrow)
            continue;
        snprintf(is, sizeof(is), "%s is %lld; it must be ", row->name,
            (long long)bad[i]);
        assert_contains(error.data, is);
        assert_said(row);
    }
}

static void texts_in_a_structure(const struct row *row)
{
    char *least = text_of(row->low), *most = text_of(row->high);
    char *longer = text_of(row->high + 1), has[64];

    assert_true(structure_takes_text(row, NULL));
    assert_true(structure_takes_text(row, least));
    assert_true(structure_takes_text(row, most));
    assert_false(structure_takes_text(row, longer));
    snprintf(has, sizeof(has), "%s has %lld bytes; it must ", row->name,
        (long long)row->high + 1);
    assert_contains(error.data, has);
    assert_said(row);
    /* An empty prefix is none. */
    assert_int_equal(structure_takes_text(row, ""), row->kind == TEXT);
    if (row->kind == ASCII) {
        assert_false(structure_takes_text(row, "a b"));
        assert_contains(error.data, " is 'a b'; it must ");
        assert_said(row);
        assert_false(structure_takes_text(row, "caf\xc3\xa9"));
        assert_contains(error.data, " is 'caf\\xc3\\xa9'; it must ");
    }
    free(least);
    free(most);
    free(longer);
}

static void structures(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].structure == NONE)
            continue;
        if (is_text(&rows[i]))
            texts_in_a_structure(&rows[i]);
        else
            numbers_in_a_structure(&rows[i]);
    }
}

/* What was given at one entry has the same effect at the other. */
static void both_entries_set_the_same(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        const struct row *row = &rows[i];
        struct settings by_url, by_structure;
        nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
        char digits[32];
        int narrow = (int)row->high;

        if (row->structure != CLIENT || is_text(row))
            continue;
        size_t at = param_find(slice_of(row->name));
        settings_init(&by_url);
        if (row->kind == WORD)
            snprintf(digits, sizeof(digits), "%s",
                limit_of(row->name)->words[row->high]);
        else
            snprintf(digits, sizeof(digits), "%lld", (long long)row->high);
        assert_true(param_set(&by_url, at, strdup(digits)));
        memcpy((char *)&options + row->place,
            row->size == sizeof(narrow) ? (const void *)&narrow
                                        : (const void *)&row->high,
            row->size);
        assert_true(options_client(&options, &by_structure, &error));
        by_structure.max_ttl_in_options =
            false; /* a URL does not note it there */
        assert_memory_equal(&by_url, &by_structure, sizeof(by_url));
    }
}

static void defaults(void **state)
{
    (void)state;
    struct settings expected, settings;

    assert_true(options_client(NULL, &settings, &error));
    settings_init(&expected);
    assert_memory_equal(&settings, &expected, sizeof(settings));
    for (size_t i = 0; i < ROWS; i++) {
        const struct row *row = &rows[i];
        assert_int_equal(
            limit_of(row->name)->default_value, row->default_value);
        if (!row->in_url || is_text(row))
            continue;
        param_set_number(&expected, param_find(slice_of(row->name)),
            (uint64_t)row->default_value);
    }
    assert_memory_equal(&settings, &expected, sizeof(settings));
}

/* The help of a number is made from its row. */
static void help_tells_the_bounds(void **state)
{
    (void)state;
    char words[64];

    for (size_t i = 0; i < ROWS && rows[i].in_url; i++) {
        const struct url_param *param =
            &url_params[param_find(slice_of(rows[i].name))];
        const char *help = param->help;
        assert_true(strlen(param->value) > 0);
        assert_between(strlen(help), 1, 79);
        if (rows[i].kind != NUMBER)
            continue;
        snprintf(words, sizeof(words), ", %lld to %lld; default %lld",
            (long long)rows[i].low, (long long)rows[i].high,
            (long long)rows[i].default_value);
        assert_contains(help, words);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_option_is_here),
        cmocka_unit_test(urls),
        cmocka_unit_test(structures),
        cmocka_unit_test(both_entries_set_the_same),
        cmocka_unit_test(defaults),
        cmocka_unit_test(help_tells_the_bounds),
    };
    return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}

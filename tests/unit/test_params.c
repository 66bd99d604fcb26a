/* SPDX-License-Identifier: MIT */
/*
 * The table of connection options: every row can be found, is bounded where
 * it says, and sets its own member and no other.
 */
#include "support/test.h"

#include "net/params.h"

static char *copy(const char *text)
{
    char *made = strdup(text);
    assert_non_null(made);
    return made;
}

static void every_row_is_told_to_people(void **state)
{
    (void)state;
    assert_int_equal(url_param_count, 24);
    for (size_t i = 0; i < url_param_count; i++) {
        assert_int_equal(param_find(slice_of(url_params[i].name)), i);
        assert_true(strlen(url_params[i].value) > 0);
        assert_true(strlen(url_params[i].help) > 0);
        assert_true(strlen(url_params[i].help) < 80);
    }
    assert_int_equal(param_find(slice_of("ttl")), url_param_count);
    assert_int_equal(param_find(slice_of("")), url_param_count);
    assert_int_equal(param_find(slice_of("dbx")), url_param_count);
    assert_int_equal(param_find(slice_of("d")), url_param_count);
}

static const struct bounds {
    const char *name;
    size_t place;
    int64_t low, high;
} bounds[] = {
    {"db", offsetof(struct settings, db), 0, 2147483647},
    {"timeout_ms", offsetof(struct settings, timeout_ms), 10, 600000},
    {"max_ttl_ms", offsetof(struct settings, max_ttl_ms), 20, 2147483647},
    {"drift_ppm", offsetof(struct settings, drift_ppm), 1, 500000},
    {"keepalive_s", offsetof(struct settings, keepalive_s), 1, 32767},
};

#define BOUNDS (sizeof(bounds) / sizeof(bounds[0]))

static bool try_number(struct settings *s, const char *name, int64_t number)
{
    char digits[32];

    snprintf(digits, sizeof(digits), "%lld", (long long)number);
    return param_set(s, param_find(slice_of(name)), copy(digits));
}

static void numbers_have_bounds(void **state)
{
    struct text error;

    (void)state;
    for (size_t i = 0; i < BOUNDS; i++) {
        const struct bounds *b = &bounds[i];
        struct settings s = {0}, expected = {0};
        uint64_t *own = (void *)((char *)&expected + b->place);

        assert_true(url_param_check(b->name, b->low, &error));
        assert_true(url_param_check(b->name, b->high, &error));
        assert_false(url_param_check(b->name, b->low - 1, &error));
        assert_contains(error.data, b->name);
        assert_false(url_param_check(b->name, b->high + 1, &error));
        assert_false(url_param_check(b->name, INT64_MIN, &error));

        assert_true(try_number(&s, b->name, b->low));
        *own = (uint64_t)b->low;
        assert_memory_equal(&s, &expected, sizeof(s));
        assert_true(try_number(&s, b->name, b->high));
        *own = (uint64_t)b->high;
        assert_memory_equal(&s, &expected, sizeof(s));
        assert_false(try_number(&s, b->name, b->high + 1));
        assert_false(try_number(&s, b->name, b->low - 1));
        assert_memory_equal(&s, &expected, sizeof(s));
    }
    url_param_check("timeout_ms", 9, &error);
    assert_string_equal(
        error.data, "timeout_ms is 9; it must be a number from 10 to 600000");
    assert_false(url_param_check("prefix", 5, &error));
    assert_false(url_param_check("nothing", 5, &error));
    assert_contains(error.data, "it is not a known parameter");
}

static void schemes_are_words(void **state)
{
    struct settings s = {0};
    struct text text;
    size_t row = param_find(slice_of("scheme"));
    static const char *const bad[] = {
        "", "0", "1", "Timestamp", "timestamps", "time", "auto "};

    (void)state;
    assert_true(param_set(&s, row, copy("timestamp")));
    assert_int_equal(s.scheme, 1);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(param_set(&s, row, copy(bad[i])));
    assert_int_equal(s.scheme, 1);
    assert_true(param_set(&s, row, copy("auto")));
    assert_int_equal(s.scheme, 0);
    text_clear(&text);
    param_describe(row, &text);
    assert_string_equal(text.data, "must be auto or timestamp");
    assert_true(url_param_check("scheme", 1, &text));
    assert_false(url_param_check("scheme", 2, &text));
    assert_false(url_param_check("scheme", -1, &text));
}

static void help_tells_the_bounds(void **state)
{
    struct text bound;

    (void)state;
    for (size_t i = 1; i < BOUNDS; i++) {
        const char *help =
            url_params[param_find(slice_of(bounds[i].name))].help;
        text_clear(&bound);
        text_addf(&bound, "%lld to %lld", (long long)bounds[i].low,
            (long long)bounds[i].high);
        assert_contains(help, bound.data);
    }
}

static void texts_are_kept_or_refused(void **state)
{
    struct settings s = {0};
    size_t prefix = param_find(slice_of("prefix"));
    char longest[1024 + 2];

    (void)state;
    assert_true(param_set(&s, prefix, copy("app:")));
    assert_string_equal(s.prefix, "app:");
    assert_true(param_set(&s, param_find(slice_of("user")), copy("joe")));
    assert_true(param_set(&s, param_find(slice_of("password")), copy("pw")));
    assert_string_equal(s.user, "joe");
    assert_string_equal(s.password, "pw");

    memset(longest, 'x', sizeof(longest));
    longest[1025] = '\0';
    assert_false(param_set(&s, prefix, copy(longest)));
    assert_false(param_set(&s, prefix, copy("")));
    assert_string_equal(s.prefix, "app:");
    longest[1024] = '\0';
    assert_true(param_set(&s, prefix, copy(longest)));
    assert_string_equal(s.prefix, longest);

    settings_free(&s);
    assert_null(s.user);
    assert_null(s.password);
    assert_null(s.prefix);
    settings_free(&s);
}

static void numbers_are_digits_only(void **state)
{
    static const char *const wrong[] = {"", " 1", "1 ", "+1", "-1", "0x10",
        "1.0", "1e3", "99999999999999999999", "18446744073709551616"};
    uint64_t value = 7;

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_false(read_number(wrong[i], UINT64_MAX, &value));
    assert_int_equal(value, 7);
    assert_true(read_number("18446744073709551615", UINT64_MAX, &value));
    assert_true(value == UINT64_MAX);
    assert_true(read_number("000", 0, &value));
    assert_int_equal(value, 0);
    assert_false(read_number("1", 0, &value));
    assert_false(read_number("11", 10, &value));
    assert_true(read_number("10", 10, &value));
    assert_int_equal(value, 10);
}

static void an_unknown_name_gets_the_list(void **state)
{
    static const char *const names[] = {
        "timeout", "tiemout_ms", "DB", "x", "", "SSL_CA_CERTS"};
    struct text text;

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        text_clear(&text);
        param_advise(slice_of(names[i]), &text);
        assert_non_null(strstr(text.data,
            "the parameters are db, user, password, password_file, "
            "timeout_ms, max_ttl_ms, drift_ppm, keepalive_s, prefix"));
        assert_ptr_equal(strstr(text.data, "the parameters"), text.data);
    }
}

static void another_clients_name_is_translated(void **state)
{
    static const char *const pairs[][2] = {
        {"ssl_ca_certs", "it belongs to redis-py; write cacert=FILE"},
        {"ssl_check_hostname",
            "it belongs to redis-py; write verify=full (checked) or ca"},
        {"skip_verify",
            "it belongs to go-redis; write verify=none (HARM: see nxlock(1)), "
            "better cacert=FILE"},
        {"verifyPeer", "it belongs to Lettuce; write verify=full, ca or none"},
        {"ssl", "it belongs to other clients; write rediss:// for redis://"},
    };
    struct text text;

    (void)state;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        text_clear(&text);
        param_advise(slice_of(pairs[i][0]), &text);
        assert_string_equal(text.data, pairs[i][1]);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_told_to_people),
        cmocka_unit_test(numbers_have_bounds),
        cmocka_unit_test(schemes_are_words),
        cmocka_unit_test(help_tells_the_bounds),
        cmocka_unit_test(texts_are_kept_or_refused),
        cmocka_unit_test(numbers_are_digits_only),
        cmocka_unit_test(an_unknown_name_gets_the_list),
        cmocka_unit_test(another_clients_name_is_translated),
    };
    return cmocka_run_group_tests_name("params", tests, NULL, NULL);
}

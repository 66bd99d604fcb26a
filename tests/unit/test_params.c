/* SPDX-License-Identifier: MIT */
/*
 * The table of connection options: every row can be found, and a name that is
 * in none gets advice. What each row takes is in test_limits.c.
 */
#include "support/test.h"

#include "config/params.h"

static void every_row_is_told_to_people(void **state)
{
    (void)state;
    assert_int_equal(url_param_count, 32);
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
        {"skip_verify", "it belongs to go-redis; write verify=none (HARM: see "
                        "nxlock-url(7)), better cacert=FILE"},
        {"verifyPeer", "it belongs to Lettuce; write verify=full, ca or none"},
        {"ssl", "it belongs to other clients; write rediss:// for redis://"},
        {"sentinelMasterId",
            "it belongs to Lettuce; write redis+sentinel://host:26379/SERVICE"},
        {"master_name", "it belongs to go-redis; write "
                        "redis+sentinel://host:26379/SERVICE"},
        {"service_name", "it belongs to redis-py; write "
                         "redis+sentinel://host:26379/SERVICE"},
        {"sentinels", "it belongs to other clients; write "
                      "redis+sentinel://h1,h2,h3/SERVICE"},
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
        cmocka_unit_test(numbers_are_digits_only),
        cmocka_unit_test(an_unknown_name_gets_the_list),
        cmocka_unit_test(another_clients_name_is_translated),
    };
    return cmocka_run_group_tests_name("params", tests, NULL, NULL);
}

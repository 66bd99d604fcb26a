/* SPDX-License-Identifier: MIT */
/*
 * URLs in parts: which values a parameter takes, and where the URLs of a list
 * end. Both are compared with what nxl_client_new() makes of them.
 */
#include "support/test.h"

#include <nxlock.h>

#include "api/private.h"
#include "config/params.h"

static int result_of(const char *url)
{
    nxl_client *client;
    int rc = nxl_client_new(&client, url, NULL);
    if (rc == NXL_OK)
        nxl_client_free(client);
    return rc;
}

static void values_are_judged_as_in_a_url(void **state)
{
    (void)state;
    static const char *const values[] = {"0", "1", "2", "10", "13", "20", "-1",
        "600000", "600001", "2147483647", "2147483648", "auto", "timestamp",
        "on", "", "x", "1x"};
    for (size_t i = 0; i < url_param_count; i++) {
        /* Those that need or exclude others are in test_combination.c. */
        if (strncmp(url_params[i].help, "TLS", 3) == 0 ||
            strncmp(url_params[i].help, "Sentinel", 8) == 0 ||
            strcmp(url_params[i].name, "password_file") == 0)
            continue;
        /* A user needs a password, and a password stands once. */
        const char *host = strcmp(url_params[i].name, "password") == 0
                               ? "redis://h?"
                               : "redis://:x@h?";
        for (size_t j = 0; j < sizeof(values) / sizeof(values[0]); j++) {
            char url[128], must[128] = "";
            snprintf(url, sizeof(url), "%s%s=%s", host, url_params[i].name,
                values[j]);
            bool taken = url_param_accepts(
                url_params[i].name, values[j], must, sizeof(must));
            assert_int_equal(taken, result_of(url) == NXL_OK);
            assert_int_equal(taken, must[0] == '\0');
            assert_true(taken || strncmp(must, "must ", 5) == 0);
        }
    }
}

static void the_condition_is_told(void **state)
{
    (void)state;
    char must[64];
    assert_false(url_param_accepts("db", "x", must, sizeof(must)));
    assert_string_equal(must, "must be a number from 0 to 2147483647");
    assert_false(url_param_accepts("prefix", "", must, sizeof(must)));
    assert_string_equal(must, "must have 1 to 1024 bytes");
    assert_false(url_param_accepts("dbx", "1", must, sizeof(must)));
    assert_string_equal(must, "is unknown");
    assert_false(url_param_accepts(NULL, "1", must, sizeof(must)));
    assert_false(url_param_accepts("db", NULL, must, sizeof(must)));
    assert_string_equal(must, "must not be NULL");
    assert_false(url_param_accepts("db", "x", must, 8));
    assert_string_equal(must, "must be");
    assert_false(url_param_accepts("db", "x", NULL, 0));
}

static void a_list_is_divided_before_a_scheme(void **state)
{
    (void)state;
    static const struct {
        const char *list;
        size_t length;
    } rows[] = {
        {"", 0},
        {"redis://a", 9},
        {"redis://a,redis://b", 9},
        {"redis://a,b", 11},
        {"redis+sentinel://a,b:1/m,redis://c", 24},
        {"redis://:x,y@a,redis://b", 14},
        {"redis://a?prefix=x,:/y,x+y-z.1://b", 22},
        {"redis://a,1x://b", 16},
        {"redis://a,://b", 14},
        {"redis://a,", 10},
        {",redis://b", 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(url_length(rows[i].list), rows[i].length);
    assert_int_equal(url_length(NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_judged_as_in_a_url),
        cmocka_unit_test(the_condition_is_told),
        cmocka_unit_test(a_list_is_divided_before_a_scheme),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

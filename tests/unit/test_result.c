/* SPDX-License-Identifier: MIT */
/* Results keep their numbers, and each has a name and a meaning of its own. */
#include "support/test.h"

#include <limits.h>
#include <nxlock.h>

static const struct known {
    int number, result;
    const char *name;
} known[] = {
    {0, NXL_OK, "NXL_OK: "},
    {1, NXL_BUSY, "NXL_BUSY: "},
    {2, NXL_LOST, "NXL_LOST: "},
    {3, NXL_UNKNOWN, "NXL_UNKNOWN: "},
    {4, NXL_PENDING, "NXL_PENDING: "},
    {5, NXL_CANCELLED, "NXL_CANCELLED: "},
    {6, NXL_FREE, "NXL_FREE: "},
    {7, NXL_DONE, "NXL_DONE: "},
    {8, NXL_DOUBT, "NXL_DOUBT: "},
    {9, NXL_MISMATCH, "NXL_MISMATCH: "},
    {-1, NXL_E_INVALID, "NXL_E_INVALID: "},
    {-2, NXL_E_NOMEM, "NXL_E_NOMEM: "},
    {-3, NXL_E_SYSTEM, "NXL_E_SYSTEM: "},
    {-4, NXL_E_URL, "NXL_E_URL: "},
    {-5, NXL_E_UNREACHABLE, "NXL_E_UNREACHABLE: "},
    {-6, NXL_E_DENIED, "NXL_E_DENIED: "},
    {-7, NXL_E_REFUSED, "NXL_E_REFUSED: "},
    {-8, NXL_E_WRONG_TYPE, "NXL_E_WRONG_TYPE: "},
    {-9, NXL_E_NOT_REDIS, "NXL_E_NOT_REDIS: "},
    {-10, NXL_E_UNSUPPORTED, "NXL_E_UNSUPPORTED: "},
    {-11, NXL_E_SERVER, "NXL_E_SERVER: "},
    {-12, NXL_E_FORKED, "NXL_E_FORKED: "},
};

#define KNOWN (sizeof(known) / sizeof(known[0]))

static void numbers_stay(void **state)
{
    (void)state;
    for (size_t i = 0; i < KNOWN; i++)
        assert_int_equal(known[i].result, known[i].number);
}

static void each_has_a_name_and_a_meaning(void **state)
{
    (void)state;
    for (size_t i = 0; i < KNOWN; i++) {
        const char *words = nxl_strerror(known[i].result);
        size_t len = strlen(known[i].name);
        assert_int_equal(strncmp(words, known[i].name, len), 0);
        assert_true(strlen(words) > len + 3);
        assert_null(strchr(words, '\n'));
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(words, nxl_strerror(known[j].result));
    }
}

static void others_are_unknown(void **state)
{
    (void)state;
    static const int others[] = {10, -13, 100, -100, INT_MAX, INT_MIN};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_string_equal(nxl_strerror(others[i]), "unknown result");
}

static void version_is_three_numbers(void **state)
{
    (void)state;
    unsigned major, minor, patch;
    char rest;
    assert_int_equal(
        sscanf(nxl_version(), "%u.%u.%u%c", &major, &minor, &patch, &rest), 3);
    assert_string_equal(nxl_version(), NXLOCK_VERSION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_stay),
        cmocka_unit_test(each_has_a_name_and_a_meaning),
        cmocka_unit_test(others_are_unknown),
        cmocka_unit_test(version_is_three_numbers),
    };
    return cmocka_run_group_tests_name("result", tests, NULL, NULL);
}

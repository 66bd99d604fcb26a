/* SPDX-License-Identifier: MIT */
/*
 * The tests' own header must be able to fail a test. Each case runs a small
 * group in a child, whose exit code and output say what the group came to.
 */
#include "support/test.h"

#include <sys/wait.h>

#include "support/bytes.h"

static void passes(void **state)
{
    (void)state;
}

static void leaks(void **state)
{
    (void)state;
    assert_true(dup(0) >= 0);
}

static void leaks_openly(void **state)
{
    test_ignore_fds();
    leaks(state);
}

static void hangs(void **state)
{
    (void)state;
    for (;;)
        pause();
}

static void out_of_range(void **state)
{
    (void)state;
    assert_between(-1, 0, 5);
}

static void in_range(void **state)
{
    (void)state;
    assert_between(-5, -5, -5);
    assert_between(INT64_MAX, 0, INT64_MAX);
}

static void has_text(void **state)
{
    (void)state;
    assert_no_text("something is wrong");
}

static void lacks_text(void **state)
{
    (void)state;
    assert_contains("abc", "bd");
}

static void skips(void **state)
{
    (void)state;
    test_skip("it is Tuesday");
    assert_true(false);
}

static int skips_in_setup(void **state)
{
    (void)state;
    return test_skip("no server");
}

static int fails_in_setup(void **state)
{
    (void)state;
    return -1;
}

static int makes_seven(void **state)
{
    *state = (void *)(uintptr_t)7;
    return 0;
}

static void wants_seven(void **state)
{
    assert_int_equal((uintptr_t)*state, 7);
}

static void must_not_run(void **state)
{
    (void)state;
    assert_true(false);
}

/* Exit code of a child that runs the group, its output into *said. */
static int run_group(
    const struct CMUnitTest *test, CMFixtureFunction setup, struct bytes *said)
{
    char data[4096];
    int ends[2], status;
    ssize_t n;

    assert_int_equal(pipe(ends), 0);
    pid_t pid = test_fork();
    if (pid == 0) {
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        close(ends[1]);
        const struct CMUnitTest tests[] = {*test};
        int rc = cmocka_run_group_tests_name("inner", tests, setup, NULL);
        fflush(stdout);
        fflush(stderr);
        _exit(rc);
    }
    close(ends[1]);
    while ((n = read(ends[0], data, sizeof(data))) > 0)
        bytes_add(said, data, (size_t)n);
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void expect_group(const struct CMUnitTest *test, CMFixtureFunction setup,
    bool good, const char *words)
{
    struct bytes said = {NULL, 0, 0};
    int rc = run_group(test, setup, &said);

    assert_contains(said.data, words);
    assert_true((rc == 0) == good);
    bytes_free(&said);
}

static void test_assertions_fail(void **state)
{
    (void)state;
    const struct CMUnitTest good[] = {
        cmocka_unit_test(passes), cmocka_unit_test(in_range)};
    expect_group(&good[0], NULL, true, "OK ] passes");
    expect_group(&good[1], NULL, true, "OK ] in_range");
    const struct CMUnitTest bad[] = {cmocka_unit_test(out_of_range),
        cmocka_unit_test(has_text), cmocka_unit_test(lacks_text)};
    expect_group(&bad[0], NULL, false, "-1 = -1 is not within 0 ... 5");
    expect_group(&bad[1], NULL, false, "something is wrong");
    expect_group(&bad[2], NULL, false, "\"bd\" is not in \"abc\"");
}

static void test_descriptors_are_counted(void **state)
{
    (void)state;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaks), cmocka_unit_test(leaks_openly)};
    expect_group(&tests[0], NULL, false, "descriptors were open before");
    expect_group(&tests[1], NULL, true, "OK ] leaks_openly");
}

static void test_a_hung_test_ends(void **state)
{
    (void)state;
    const struct CMUnitTest test = cmocka_unit_test(hangs);
    struct bytes said = {NULL, 0, 0};

    setenv("NXLOCK_TEST_TIMEOUT", "1", 1);
    assert_int_equal(run_group(&test, NULL, &said), TEST_EXIT_HUNG);
    unsetenv("NXLOCK_TEST_TIMEOUT");
    assert_contains(said.data, "[  FAILED  ] hangs\nHUNG");
    bytes_free(&said);
}

static void test_skipping(void **state)
{
    (void)state;
    const struct CMUnitTest tests[] = {cmocka_unit_test(skips),
        cmocka_unit_test_setup(must_not_run, skips_in_setup),
        cmocka_unit_test(must_not_run)};
    expect_group(&tests[0], NULL, true, "SKIP: it is Tuesday");
    expect_group(&tests[1], NULL, true, "SKIPPED ] must_not_run");
    expect_group(&tests[2], skips_in_setup, true, "SKIPPED ] must_not_run");
}

/* A message names its test, and a test that was skipped has none. */
static void test_a_failure_has_its_name(void **state)
{
    (void)state;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lacks_text), cmocka_unit_test(skips)};
    struct bytes said = {NULL, 0, 0};
    expect_group(&tests[0], NULL, false, "in \"abc\"\nlacks_text failed:\n");
    assert_int_equal(run_group(&tests[1], NULL, &said), 0);
    assert_null(strstr(said.data, "failed:"));
    bytes_free(&said);
}

static void test_one_alone(void **state)
{
    (void)state;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes), cmocka_unit_test(must_not_run)};
    setenv("NXLOCK_TEST_CASE", "pass*", 1);
    expect_group(&tests[0], NULL, true, "OK ] passes");
    expect_group(&tests[1], NULL, false, "no test is called pass*");
    unsetenv("NXLOCK_TEST_CASE");
}

static void test_fixtures(void **state)
{
    (void)state;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(wants_seven, makes_seven),
        cmocka_unit_test(wants_seven),
        cmocka_unit_test_prestate(wants_seven, (void *)(uintptr_t)7),
        cmocka_unit_test_setup(passes, fails_in_setup)};
    expect_group(&tests[0], NULL, true, "OK ] wants_seven");
    expect_group(&tests[1], makes_seven, true, "OK ] wants_seven");
    expect_group(&tests[2], NULL, true, "OK ] wants_seven");
    expect_group(&tests[3], NULL, false, "passes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_assertions_fail),
        cmocka_unit_test(test_descriptors_are_counted),
        cmocka_unit_test(test_a_hung_test_ends),
        cmocka_unit_test(test_skipping),
        cmocka_unit_test(test_a_failure_has_its_name),
        cmocka_unit_test(test_one_alone),
        cmocka_unit_test(test_fixtures),
    };
    return cmocka_run_group_tests_name("support_test", tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * What judges in the tests must be able to fail: support/test.h, by small
 * groups in a child, whose exit code and output say what they came to; and the
 * fake, which tells on a client that does not do what its script expects.
 */
#include "support/test.h"

#include <sys/socket.h>
#include <sys/wait.h>

#include "support/bytes.h"
#include "support/fake.h"
#include "support/local.h"

#define SET_K_V "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n"
#define PING "*1\r\n$4\r\nPING\r\n"

/* ---------------------------------------------------------- support/test.h */

static void passes(void **state)
{
    (void)state;
    assert_between(-5, -5, -5);
    assert_between(INT64_MAX, 0, INT64_MAX);
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

static void what_a_group_comes_to(void **state)
{
    static const struct {
        struct CMUnitTest test;
        CMFixtureFunction setup; /* of the group */
        const char *only;        /* NXLOCK_TEST_CASE */
        int code;
        const char *words;
    } rows[] = {
        {cmocka_unit_test(passes), NULL, NULL, 0, "OK ] passes"},
        {cmocka_unit_test(out_of_range), NULL, NULL, 1,
            "-1 = -1 is not within 0 ... 5"},
        {cmocka_unit_test(has_text), NULL, NULL, 1, "something is wrong"},
        /* A message names its test. */
        {cmocka_unit_test(lacks_text), NULL, NULL, 1,
            "\"bd\" is not in \"abc\"\nlacks_text failed:\n"},
        {cmocka_unit_test(leaks), NULL, NULL, 1,
            "descriptors were open before"},
        {cmocka_unit_test(leaks_openly), NULL, NULL, 0, "OK ] leaks_openly"},
        {cmocka_unit_test(skips), NULL, NULL, 0, "SKIP: it is Tuesday"},
        {cmocka_unit_test_setup(must_not_run, skips_in_setup), NULL, NULL, 0,
            "SKIPPED ] must_not_run"},
        {cmocka_unit_test(must_not_run), skips_in_setup, NULL, 0,
            "SKIPPED ] must_not_run"},
        {cmocka_unit_test(passes), NULL, "pass*", 0, "OK ] passes"},
        {cmocka_unit_test(must_not_run), NULL, "pass*", 1,
            "no test is called pass*"},
        {cmocka_unit_test(wants_seven), makes_seven, NULL, 0,
            "OK ] wants_seven"},
        {cmocka_unit_test_setup(passes, fails_in_setup), NULL, NULL, 1,
            "passes"},
        {cmocka_unit_test(hangs), NULL, NULL, TEST_EXIT_HUNG,
            "[  FAILED  ] hangs\nHUNG"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct bytes said = {NULL, 0, 0};

        if (rows[i].code == TEST_EXIT_HUNG)
            setenv("NXLOCK_TEST_TIMEOUT", "1", 1);
        if (rows[i].only)
            setenv("NXLOCK_TEST_CASE", rows[i].only, 1);
        int code = run_group(&rows[i].test, rows[i].setup, &said);
        unsetenv("NXLOCK_TEST_TIMEOUT");
        unsetenv("NXLOCK_TEST_CASE");
        assert_contains(said.data, rows[i].words);
        if ((code == 0) != (rows[i].code == 0) ||
            (code == TEST_EXIT_HUNG) != (rows[i].code == TEST_EXIT_HUNG))
            fail_msg("%s: exit code %d", rows[i].test.name, code);
        bytes_free(&said);
    }
}

/* ---------------------------------------------------------------- the fake */

/* The script meets a client that sends this and ends. */
static void what_the_fake_tells(void **state)
{
    static const struct {
        const char *script, *sent, *verdict; /* NULL: it is content */
    } rows[] = {
        {"EXPECT set k v\nSEND +OK\\r\\n\n", SET_K_V, NULL},
        {"EXPECT SET * $a", SET_K_V, NULL},
        {"EXPECT PING", SET_K_V,
            "connection 0, script line 1 (EXPECT PING): there came: SET k v"},
        {"EXPECT PING", "", "there came the client's close"},
        {"EXPECT PING", "PING\r\n", "bytes that are no command"},
        {"EXPECT PING", PING PING, "after the last step there came: PING"},
        {"EXPECT SET k", SET_K_V, "there came: SET k v"},
        {"EXPECT SET k v *", SET_K_V, "there came: SET k v"},
        {"EXPECT SET $a $a", SET_K_V, "there came: SET k v"},
        {"EXPECT SET K v", SET_K_V, "there came: SET k v"},
        {"EXPECT PING\nEXPECT-CLOSE", PING PING, "there came: PING"},
        {"WAIT-FOR me", "", "the test ended first"},
        {"CLOSE\nACCEPT\nCLOSE", "", "connection 1: it was never made"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct fake *f = fake_start(rows[i].script);
        int fd = local_connect(fake_path(f), 0);
        assert_true(fd >= 0);
        assert_true(local_send(fd, rows[i].sent, strlen(rows[i].sent)));
        shutdown(fd, SHUT_WR);
        const char *verdict = fake_join_within(f, 100);
        if (rows[i].verdict)
            assert_contains(verdict, rows[i].verdict);
        else
            assert_no_text(verdict);
        close(fd);
        fake_free(f);
    }
}

static void an_unexpected_connection_is_told(void **state)
{
    (void)state;
    struct fake *f = fake_start("SILENCE\n");
    int one = local_connect(fake_path(f), 0);
    int two = local_connect(fake_path(f), 0);
    char c;

    assert_int_equal(recv(two, &c, 1, 0), 0);
    assert_contains(fake_join(f), "connection 1: it was not expected");
    close(one);
    close(two);
    fake_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_group_comes_to),
        cmocka_unit_test(what_the_fake_tells),
        cmocka_unit_test(an_unexpected_connection_is_told),
    };
    return cmocka_run_group_tests_name("support", tests, NULL, NULL);
}

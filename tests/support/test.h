/* SPDX-License-Identifier: MIT */
/*
 * What every test program includes first, and the only file that includes
 * cmocka. cmocka_run_group_tests_name() is replaced so that every test
 *
 * - is watched: one that does not end within TEST_TIMEOUT_S ends the program
 *   with its name, instead of hanging it (NXLOCK_TEST_TIMEOUT: seconds);
 * - leaves no descriptor open behind (unless it calls test_ignore_fds());
 * - has its name beside its message if it fails: meson shows what a program
 *   prints to standard error far from the names, which go to standard output;
 * - can be run alone: NXLOCK_TEST_CASE is its name, or a pattern with *;
 * - can be skipped from a fixture, with a reason (test_skip()).
 *
 * It is all in this header so that a test needs no other object. cmocka's
 * own rule stands: assertions belong to the thread that runs the test.
 */
#ifndef NXLOCK_TEST_H
#define NXLOCK_TEST_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#ifndef TEST_TIMEOUT_S
#define TEST_TIMEOUT_S 120
#endif
#define TEST_EXIT_HUNG 98

enum test_phase { TEST_OUTSIDE, TEST_GROUP_SETUP, TEST_SETUP, TEST_BODY };

struct test_state {
    enum test_phase phase;
    const struct CMUnitTest *own; /* the test as its author wrote it */
    bool finished;                /* its body returned */
    bool skipped;                 /* its body ended by skip() */
    bool fds_ignored;
    int fds;
    size_t begun; /* how many tests were */
    bool skip, skip_all;
    void *group_state;
    CMFixtureFunction group_setup, group_teardown;
    char name[128];
};

/* One for the program, although every object that includes this has it. */
__attribute__((weak)) struct test_state test_state;

/* ------------------------------------------------------------- for tests */

/* Of this process, by /proc/self/fd. */
static inline int count_fds(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    if (!dir)
        return -1;
    for (struct dirent *e = readdir(dir); e; e = readdir(dir))
        count += e->d_name[0] != '.';
    closedir(dir);
    return count - 1;
}

static inline uint64_t test_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static inline int64_t test_now_ms(void)
{
    return (int64_t)(test_now_ns() / UINT64_C(1000000));
}

/* For polling a condition that nothing announces; not to order events. */
static inline void test_pause_ms(int ms)
{
    struct timespec t = {ms / 1000, (ms % 1000) * 1000000L};
    nanosleep(&t, NULL);
}

static inline void test_assert_between(int64_t value, int64_t low, int64_t high,
    const char *what, const char *file, int line)
{
    if (value >= low && value <= high)
        return;
    print_error("%s = %lld is not within %lld ... %lld\n", what,
        (long long)value, (long long)low, (long long)high);
    _fail(file, line);
}

/* low <= value <= high, as signed 64-bit numbers. */
#define assert_between(value, low, high)                                       \
    test_assert_between((int64_t)(value), (int64_t)(low), (int64_t)(high),     \
        #value, __FILE__, __LINE__)

static inline void test_assert_contains(
    const char *text, const char *part, const char *file, int line)
{
    if (text && strstr(text, part))
        return;
    print_error("\"%s\" is not in \"%s\"\n", part, text ? text : "(null)");
    _fail(file, line);
}

#define assert_contains(text, part)                                            \
    test_assert_contains(text, part, __FILE__, __LINE__)

static inline void test_assert_no_text(
    const char *text, const char *file, int line)
{
    if (!text)
        return;
    print_error("%s\n", text);
    _fail(file, line);
}

/* For functions that return NULL or what is wrong: fake_join(). */
#define assert_no_text(text) test_assert_no_text(text, __FILE__, __LINE__)

/* Waits until the condition holds, for 30 s at most. */
#define assert_eventually(condition)                                           \
    do {                                                                       \
        int64_t test_end = test_now_ms() + 30000;                              \
        while (!(condition)) {                                                 \
            if (test_now_ms() > test_end) {                                    \
                print_error("never came true: %s\n", #condition);              \
                _fail(__FILE__, __LINE__);                                     \
            }                                                                  \
            test_pause_ms(1);                                                  \
        }                                                                      \
    } while (0)

#undef skip
#define skip() (test_state.skipped = true, _skip(__FILE__, __LINE__))

/* This test may leave descriptors open. */
static inline void test_ignore_fds(void)
{
    test_state.fds_ignored = true;
}

/* Skips loudly. Ends a test's body at once; in a fixture it returns -1, which
 * the fixture returns in turn (of a group: all its tests are skipped). */
static inline int test_skip(const char *reason)
{
    fprintf(stderr, "SKIP: %s\n", reason);
    if (test_state.phase == TEST_BODY)
        skip();
    test_state.skip = true;
    test_state.skip_all |= test_state.phase == TEST_GROUP_SETUP;
    return -1;
}

/* fork() whose child dies with the test program. */
static inline pid_t test_fork(void)
{
    fflush(stdout);
    fflush(stderr);
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
    }
    return pid;
}

/* ------------------------------------------------------------ the wrapper */

static inline void test_write_error(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        _exit(TEST_EXIT_HUNG);
}

static inline void test_hung(int number)
{
    (void)number;
    test_write_error("\n[  FAILED  ] ");
    test_write_error(test_state.name);
    test_write_error("\nHUNG: it did not end in time; giving up\n");
    _exit(TEST_EXIT_HUNG);
}

static inline void test_watch(const char *name)
{
    const char *asked = getenv("NXLOCK_TEST_TIMEOUT");
    unsigned seconds = asked ? (unsigned)strtoul(asked, NULL, 10) : 0;
    struct sigaction action;

    snprintf(test_state.name, sizeof(test_state.name), "%s", name);
    memset(&action, 0, sizeof(action));
    action.sa_handler = test_hung;
    sigaction(SIGALRM, &action, NULL);
    alarm(seconds > 0 ? seconds : TEST_TIMEOUT_S);
}

static inline int test_wrapped_setup(void **state)
{
    const struct CMUnitTest *own = *state;
    int rc = 0;

    test_state.own = own;
    test_state.begun++;
    test_state.finished = test_state.skipped = test_state.fds_ignored = false;
    test_state.skip = test_state.skip_all;
    test_state.fds = count_fds();
    test_watch(own->name);
    *state =
        test_state.group_state ? test_state.group_state : own->initial_state;
    test_state.phase = TEST_SETUP;
    if (own->setup_func && !test_state.skip)
        rc = own->setup_func(state);
    return test_state.skip ? 0 : rc;
}

static inline void test_wrapped_body(void **state)
{
    test_state.phase = TEST_BODY;
    if (test_state.skip)
        skip();
    test_state.own->test_func(state);
    test_state.finished = true;
}

/* A thread that was told to end may still be about to close its own. */
static inline bool test_fds_closed(void)
{
    for (int i = 0; i < 400; i++) {
        if (count_fds() <= test_state.fds)
            return true;
        test_pause_ms(5);
    }
    return false;
}

static inline int test_wrapped_teardown(void **state)
{
    int rc = 0;

    test_state.phase = TEST_OUTSIDE;
    if (!test_state.finished && !test_state.skipped)
        print_error("%s failed:\n", test_state.name);
    if (test_state.own->teardown_func && !test_state.skip)
        rc = test_state.own->teardown_func(state);
    if (test_state.finished && !test_state.fds_ignored && !test_fds_closed()) {
        print_error("%s: %d descriptors were open before, %d are now\n",
            test_state.name, test_state.fds, count_fds());
        rc = -1;
    }
    alarm(0);
    return rc;
}

static inline int test_wrapped_group_setup(void **state)
{
    (void)state; /* cmocka would prefer it to what each test is given */
    test_state.phase = TEST_GROUP_SETUP;
    test_watch("group setup");
    int rc = test_state.group_setup
                 ? test_state.group_setup(&test_state.group_state)
                 : 0;
    return test_state.skip_all ? 0 : rc;
}

static inline int test_wrapped_group_teardown(void **state)
{
    (void)state;
    test_state.phase = TEST_OUTSIDE;
    test_watch("group teardown");
    int rc = 0;
    if (test_state.group_teardown && !test_state.skip_all)
        rc = test_state.group_teardown(&test_state.group_state);
    alarm(0);
    return rc;
}

static inline int test_run_group(const char *name,
    const struct CMUnitTest *tests, size_t count, CMFixtureFunction setup,
    CMFixtureFunction teardown)
{
    struct CMUnitTest *wrapped = calloc(count + 1, sizeof(*wrapped));
    struct CMUnitTest *own = calloc(count + 1, sizeof(*own));
    const char *only = getenv("NXLOCK_TEST_CASE");
    if (!wrapped || !own)
        abort();
    for (size_t i = 0; i < count; i++) {
        own[i] = tests[i];
        wrapped[i] = (struct CMUnitTest){tests[i].name, test_wrapped_body,
            test_wrapped_setup, test_wrapped_teardown, &own[i]};
    }
    test_state.group_setup = setup;
    test_state.group_teardown = teardown;
    test_state.group_state = NULL;
    test_state.skip_all = false;
    test_state.begun = 0;
    cmocka_set_test_filter(only);
    setvbuf(stdout, NULL, _IOLBF, 0); /* what was said outlives a crash */
    int rc = _cmocka_run_group_tests(name, wrapped, count,
        test_wrapped_group_setup, test_wrapped_group_teardown);
    free(wrapped);
    free(own);
    if (only && rc == 0 && test_state.begun == 0) {
        print_error("NXLOCK_TEST_CASE: no test is called %s\n", only);
        return 1;
    }
    return rc;
}

#undef cmocka_run_group_tests
#undef cmocka_run_group_tests_name
#define cmocka_run_group_tests_name(name, tests, setup, teardown)              \
    test_run_group(                                                            \
        name, tests, sizeof(tests) / sizeof((tests)[0]), setup, teardown)
#define cmocka_run_group_tests(tests, setup, teardown)                         \
    cmocka_run_group_tests_name(#tests, tests, setup, teardown)

#endif

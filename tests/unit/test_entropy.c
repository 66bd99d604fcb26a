/* SPDX-License-Identifier: MIT */
/* No byte twice: not within a process, and not across fork(). */
#include "support/test.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/entropy.h"

#define DRAWS 500

static int compare(const void *a, const void *b)
{
    return memcmp(a, b, 16);
}

static void assert_all_differ(unsigned char (*blocks)[16], size_t count)
{
    static const unsigned char zero[16];

    qsort(blocks, count, 16, compare);
    assert_memory_not_equal(blocks[0], zero, 16);
    for (size_t i = 1; i < count; i++)
        assert_memory_not_equal(blocks[i], blocks[i - 1], 16);
}

static void test_fresh_bytes_over_refills(void **state)
{
    static unsigned char blocks[DRAWS][16];
    struct entropy *e = entropy_new();

    (void)state;
    assert_non_null(e);
    for (int i = 0; i < DRAWS; i++)
        assert_true(entropy_take(e, blocks[i], 16));
    assert_all_differ(blocks, DRAWS);
    assert_false(entropy_forked(e));
    entropy_free(e);
    entropy_free(NULL);
}

static void test_every_length(void **state)
{
    struct entropy *e = entropy_new();

    (void)state;
    assert_non_null(e);
    for (int round = 0; round < 50; round++) {
        for (size_t len = 1; len <= 64; len++) {
            unsigned char out[66];
            memset(out, 0xee, sizeof(out));
            assert_true(entropy_take(e, out + 1, len));
            assert_int_equal(out[0], 0xee);
            assert_int_equal(out[len + 1], 0xee);
        }
    }
    entropy_free(e);
}

/* Runs in a child: its draws go to fd, its view of the fork to the exit. */
static void child(struct entropy *e, int fd)
{
    for (int i = 0; i < DRAWS; i++) {
        unsigned char block[16];
        if (!entropy_take(e, block, sizeof(block)) ||
            write(fd, block, sizeof(block)) != sizeof(block))
            _exit(1);
    }
    _exit(entropy_forked(e) ? 0 : 2);
}

static void test_child_shares_nothing(void **state)
{
    static unsigned char blocks[2 * DRAWS][16];
    struct entropy *e = entropy_new();
    int fds[2];
    int status;

    (void)state;
    assert_non_null(e);
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        child(e, fds[1]);
    close(fds[1]);
    for (int i = 0; i < DRAWS; i++)
        assert_int_equal(read(fds[0], blocks[i], 16), 16);
    close(fds[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);

    for (int i = DRAWS; i < 2 * DRAWS; i++)
        assert_true(entropy_take(e, blocks[i], 16));
    assert_all_differ(blocks, 2 * DRAWS);
    assert_false(entropy_forked(e));
    entropy_free(e);
}

static void test_grandchild_knows(void **state)
{
    struct entropy *e = entropy_new();
    int status;

    (void)state;
    assert_non_null(e);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        unsigned char block[16];
        entropy_take(e, block, sizeof(block));
        pid_t grandchild = fork();
        if (grandchild == 0)
            _exit(entropy_forked(e) ? 0 : 1);
        if (waitpid(grandchild, &status, 0) != grandchild)
            _exit(2);
        _exit(WEXITSTATUS(status));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    entropy_free(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fresh_bytes_over_refills),
        cmocka_unit_test(test_every_length),
        cmocka_unit_test(test_child_shares_nothing),
        cmocka_unit_test(test_grandchild_knows),
    };
    return cmocka_run_group_tests_name("entropy", tests, NULL, NULL);
}

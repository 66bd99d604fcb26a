/* SPDX-License-Identifier: MIT */
/* Who may have access to a password file: its owner, and a group to which root
 * gave it to read. */
#include "support/test.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/params.h"
#include "config/secret_file.h"

#define SOMEONE 65534 /* a user and a group without rights of their own */

static char path[] = "/tmp/nxlock-secret-XXXXXX";

static bool is_accepted(void)
{
    struct text error = {0};
    char *secret = NULL;
    bool ok = secret_file_read(path, "password file", &secret, &error);
    secret_free(secret);
    return ok;
}

/* The same, asked by another user, who is in the group. */
static bool someone_accepts(void)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        bool dropped = setgid(SOMEONE) == 0 && setuid(SOMEONE) == 0;
        _exit(dropped && is_accepted() ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void write_secret(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "secret\n", 7), 7);
    close(fd);
}

static void its_owner_alone(void **state)
{
    static const mode_t refused[] = {0640, 0604, 0644, 0620, 0602, 0610, 0666};

    (void)state;
    assert_int_equal(chmod(path, 0600), 0);
    assert_true(is_accepted());
    assert_int_equal(chmod(path, 0400), 0);
    assert_true(is_accepted());
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        assert_int_equal(chmod(path, refused[i]), 0);
        assert_false(is_accepted());
    }
}

static void a_group_of_root(void **state)
{
    static const struct {
        mode_t mode;
        bool accepted;
    } rows[] = {{0440, true}, {0640, true}, {0444, false}, {0460, false},
        {0450, false}, {0441, false}, {0644, false}, {0660, false}};

    (void)state;
    if (geteuid() != 0) {
        print_message("SKIPPED: only root can give a file to a group\n");
        skip();
    }
    assert_int_equal(chown(path, 0, SOMEONE), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(chmod(path, rows[i].mode), 0);
        assert_int_equal(someone_accepts(), rows[i].accepted);
    }
    assert_int_equal(chown(path, SOMEONE, SOMEONE), 0);
    assert_int_equal(chmod(path, 0440), 0);
    assert_false(someone_accepts()); /* not root's */
    assert_int_equal(chmod(path, 0400), 0);
    assert_true(someone_accepts());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_owner_alone),
        cmocka_unit_test(a_group_of_root),
    };

    write_secret(NULL);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}

/* SPDX-License-Identifier: MIT */
/* Which files a password is read from, and what of them is the password. */
#include "support/test.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "net/params.h"
#include "net/secret_file.h"
#include "support/local.h"

static char folder[LOCAL_PATH], path[LOCAL_PATH];

static int set_up(void **state)
{
    (void)state;
    local_dir_make(folder);
    local_path(path, folder, "password");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    local_dir_remove(folder);
    return 0;
}

static void write_file(const char *bytes, size_t len, mode_t mode)
{
    unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), (ssize_t)len);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

/* NULL words: the secret is that. Otherwise it is refused with these. */
static void assert_read(const char *secret, const char *words)
{
    char *got = NULL;
    struct text error;
    text_clear(&error);
    bool ok = secret_file_read(path, "password file", &got, &error);
    if (words) {
        assert_false(ok);
        assert_contains(error.data, "cannot use the password file ");
        assert_contains(error.data, path);
        assert_contains(error.data, words);
    } else {
        if (!ok)
            print_error("%s\n", error.data);
        assert_true(ok);
        assert_string_equal(got, secret);
    }
    secret_free(got);
}

static void the_first_line_counts(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t len;
        const char *secret, *words;
    } rows[] = {
#define BYTES(text) text, sizeof(text) - 1
        {BYTES("secret\n"), "secret", NULL},
        {BYTES("secret"), "secret", NULL},
        {BYTES("secret\r\n"), "secret", NULL},
        {BYTES("secret\r"), "secret\r", NULL},
        {BYTES(" a b \nanother\n"), " a b ", NULL},
        {BYTES("s\xc3\xa4"), "s\xc3\xa4", NULL},
        {BYTES("secret\nz\0"), "secret", NULL},
        {BYTES(""), NULL, "first line is empty"},
        {BYTES("\nsecret\n"), NULL, "first line is empty"},
        {BYTES("\r\nsecret\n"), NULL, "first line is empty"},
        {BYTES("sec\0ret\n"), NULL, "has a zero byte"},
        {BYTES("\0"), NULL, "has a zero byte"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        write_file(rows[i].bytes, rows[i].len, 0600);
        assert_read(rows[i].secret, rows[i].words);
    }
}

static void it_may_have_8192_bytes(void **state)
{
    (void)state;
    static char bytes[SECRET_MAX + 100], secret[SECRET_MAX + 1];
    static const char *const ends[] = {"", "\n", "\r\n", "\nmore"};
    memset(bytes, 'x', sizeof(bytes));
    memset(secret, 'x', SECRET_MAX);
    for (size_t i = 0; i < 4; i++) {
        size_t len = strlen(ends[i]);
        memcpy(bytes + SECRET_MAX, ends[i], len);
        write_file(bytes, SECRET_MAX + len, 0600);
        assert_read(secret, NULL);
        memset(bytes, 'x', sizeof(bytes));
        memcpy(bytes + SECRET_MAX + 1, ends[i], len);
        write_file(bytes, SECRET_MAX + 1 + len, 0600);
        assert_read(NULL, "longer than 8192 bytes");
        memset(bytes, 'x', sizeof(bytes));
    }
    write_file(bytes, sizeof(bytes), 0600);
    assert_read(NULL, "longer than 8192 bytes");
}

static void others_must_not_have_access(void **state)
{
    (void)state;
    for (mode_t bit = 01; bit <= 040; bit <<= 1) {
        write_file("secret", 6, 0600 | bit);
        assert_read(NULL, "other users have access to it; chmod 600 it");
    }
    write_file("secret", 6, 0400);
    assert_read("secret", NULL);
}

static void it_must_be_ours(void **state)
{
    (void)state;
    if (geteuid() != 0)
        test_skip("only root can give a file to another user");
    write_file("secret", 6, 0600);
    assert_int_equal(chown(path, 12345, 0), 0);
    assert_read(NULL, "it belongs to another user");
}

static void it_must_be_a_regular_file(void **state)
{
    (void)state;
    assert_read(NULL, "No such file or directory");
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_read(NULL, "not a regular file"); /* and does not block */
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_read(NULL, "not a regular file");
    assert_int_equal(rmdir(path), 0);
}

int main(void)
{
#define file_test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        file_test(the_first_line_counts),
        file_test(it_may_have_8192_bytes),
        file_test(others_must_not_have_access),
        file_test(it_must_be_ours),
        file_test(it_must_be_a_regular_file),
    };
    return cmocka_run_group_tests_name("secret file", tests, NULL, NULL);
}

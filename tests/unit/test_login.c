/* SPDX-License-Identifier: MIT */
/*
 * Credentials of a server from a file that changes at certain moments of its
 * connection, which a real server would not let a test choose.
 */
#include "server_rig.h"

#include <fcntl.h>

static char file[LOCAL_PATH];

static void file_says(const char *password)
{
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(
        write(fd, password, strlen(password)), (ssize_t)strlen(password));
    close(fd);
}

static int set_up(void **state)
{
    (void)state;
    char folder[LOCAL_PATH], parameters[2 * LOCAL_PATH];
    local_dir_make(folder);
    local_path(file, folder, "password");
    snprintf(
        parameters, sizeof(parameters), "?user=joe&password_file=%s", file);
    rig_init(parameters, true);
    file_says("first");
    return 0;
}

static int tear_down(void **state)
{
    rig_tear_down(state);
    unlink(file);
    *strrchr(file, '/') = '\0';
    local_dir_remove(file);
    return 0;
}

/* The peer takes a connection with that password. */
static void assert_auth(const char *password)
{
    char part[128];
    rig_accept();
    snprintf(part, sizeof(part), "AUTH\r\n$3\r\njoe\r\n$%zu\r\n%s\r\n",
        strlen(password), password);
    assert_said(part);
}

/* The peer refuses AUTH, and with it CLIENT ID and INFO. */
static void refuse(void)
{
    rig_send("-WRONGPASS no\r\n-NOAUTH no\r\n-NOAUTH no\r\n");
}

static void welcome(void)
{
    rig_send("+OK\r\n");
    rig_send_handshake(7, RIG_RUN_ID);
    assert_null(rig_turn());
    assert_int_equal(rig.s.state, SERVER_UP);
}

static void it_is_read_for_each_connection(void **state)
{
    (void)state;
    rig_submit(0);
    rig_push();
    assert_auth("first");
    welcome();
    assert_true(rig.s.logged_in);
    rig_push();
    assert_said("SET\r\n");
    assert_non_null(rig_reply("+OK\r\n"));
    file_says("second");
    rig_hang_up();
    rig.now += NS_PER_S;
    rig_submit(1);
    rig_push();
    assert_auth("second");
}

/* Whoever wrote the file was a moment too late. */
static void a_new_one_is_tried_at_once(void **state)
{
    (void)state;
    rig_submit(0);
    rig_push();
    assert_auth("first");
    file_says("second");
    refuse();
    assert_null(rig_turn()); /* the request goes on waiting */
    rig_push();
    assert_auth("second");
    welcome();
    assert_true(rig.s.logged_in);
}

static void the_same_one_is_not_sent_again(void **state)
{
    (void)state;
    struct request *r = rig_submit(0);
    rig_push();
    assert_auth("first");
    refuse();
    assert_null(rig_turn());
    rig_push();
    assert_ptr_equal(rig_turn(), r);
    rig_assert_fault(FAULT_DENIED, false, "WRONGPASS no");
    assert_int_equal(rig.s.connections, 1);
    assert_false(rig.s.logged_in);
    /* The next request tries it again: the server may have changed. */
    rig.now += NS_PER_S;
    rig_submit(1);
    rig_push();
    assert_auth("first");
    welcome();
}

/* A file that changes all the time does not make a call endless. */
static void only_one_more_is_tried(void **state)
{
    (void)state;
    struct request *r = rig_submit(0);
    rig_push();
    assert_auth("first");
    file_says("second");
    refuse();
    assert_null(rig_turn());
    rig_push();
    assert_auth("second");
    file_says("third");
    refuse();
    assert_ptr_equal(rig_turn(), r);
    rig_assert_fault(FAULT_DENIED, false, "WRONGPASS no");
    assert_int_equal(rig.s.connections, 2);
}

static void a_file_that_is_gone_fails_for_now(void **state)
{
    (void)state;
    struct request *r = rig_submit(0);
    rig_push();
    assert_auth("first");
    unlink(file);
    refuse();
    assert_null(rig_turn());
    rig_push();
    assert_ptr_equal(rig_turn(), r);
    rig_assert_fault(FAULT_CREDENTIALS, false, "cannot use the password file");
    file_says("first");
    rig.now += NS_PER_S;
    rig_submit(1);
    rig_push();
    assert_auth("first"); /* the refusal of the same is forgotten */
}

/* Only AUTH is about the password. */
static void another_refusal_is_final(void **state)
{
    (void)state;
    rig.s.handshake_terms.db = 3;
    struct request *r = rig_submit(0);
    rig_push();
    assert_auth("first");
    file_says("second");
    rig_send("+OK\r\n-NOPERM no\r\n:7\r\n-NOPERM no\r\n");
    assert_ptr_equal(rig_turn(), r);
    rig_assert_fault(FAULT_NO_PERMISSION, false, "NOPERM no");
}

int main(void)
{
#define login_test(name)                                                       \
    cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        login_test(it_is_read_for_each_connection),
        login_test(a_new_one_is_tried_at_once),
        login_test(the_same_one_is_not_sent_again),
        login_test(only_one_more_is_tried),
        login_test(a_file_that_is_gone_fails_for_now),
        login_test(another_refusal_is_final),
    };
    return cmocka_run_group_tests_name("login", tests, NULL, NULL);
}

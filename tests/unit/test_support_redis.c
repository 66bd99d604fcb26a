/* SPDX-License-Identifier: MIT */
/* The server fixture: a server of one's own that can crash, stop and come
 * back, and dies with the test. */
#include "support/test.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "support/redis.h"

static struct redis r;

static int start(void **state)
{
    (void)state;
    return redis_start(&r, NULL);
}

static int stop(void **state)
{
    (void)state;
    redis_stop(&r);
    return 0;
}

static void test_commands(void **state)
{
    (void)state;
    char value[8];

    assert_false(redis_exists(&r, "k"));
    assert_false(redis_get(&r, "k", value, sizeof(value)));
    assert_int_equal(redis_pttl(&r, "k"), -2);
    redis_run(&r, "SET", "k", "v w", "PX", "60000", NULL);
    assert_true(redis_get(&r, "k", value, sizeof(value)));
    assert_string_equal(value, "v w");
    assert_between(redis_pttl(&r, "k"), 50000, 60000);
    redisReply *reply = redis_commandf(&r, "INCR %s", "k");
    assert_int_equal(reply->type, REDIS_REPLY_ERROR);
    freeReplyObject(reply);
    assert_int_equal(redis_run(&r, "DEL", "k", NULL), 1);
    assert_int_equal(redis_calls(&r, "set"), 1);
    assert_int_equal(redis_calls(&r, "evalsha"), 0);
}

static void test_places(void **state)
{
    (void)state;
    char expected[64];

    snprintf(
        expected, sizeof(expected), "redis://127.0.0.1:%u", (unsigned)r.port);
    assert_string_equal(r.url, expected);
    assert_memory_equal(r.unix_url, "unix:///", 8);
    assert_int_equal(redis_clients(&r), 0);
    int tcp = local_connect(NULL, r.port), local = local_connect(r.path, 0);
    assert_true(tcp >= 0 && local >= 0);
    assert_eventually(redis_clients(&r) == 2);
    close(tcp);
    close(local);
    assert_eventually(redis_clients(&r) == 0);
}

static void test_freeze_and_thaw(void **state)
{
    (void)state;
    char answer[8];
    int fd = local_connect(r.path, 0);

    redis_freeze(&r);
    redis_freeze(&r);
    assert_true(local_send(fd, "PING\r\n", 6));
    test_pause_ms(30);
    assert_int_equal(recv(fd, answer, 7, MSG_DONTWAIT), -1);
    redis_thaw(&r);
    assert_int_equal(recv(fd, answer, 7, MSG_WAITALL), 7);
    assert_memory_equal(answer, "+PONG\r\n", 7);
    close(fd);
    redis_freeze(&r); /* and stopping must do with it */
}

static void test_restart_loses_data(void **state)
{
    (void)state;
    uint16_t port = r.port;

    redis_run(&r, "SET", "k", "v", NULL);
    redis_restart(&r);
    assert_int_equal(r.port, port);
    assert_false(redis_exists(&r, "k"));
    redis_kill(&r);
    assert_int_equal(local_connect(NULL, port), -1);
    assert_int_equal(local_connect(r.path, 0), -1);
    redis_restart(&r);
    assert_false(redis_exists(&r, "k"));
}

static void test_its_connection_is_replaced(void **state)
{
    (void)state;
    char c;

    redis_run(&r, "SET", "k", "v", NULL);
    redis_run(&r, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no", NULL);
    assert_eventually(
        recv(r.context->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 ||
        errno != EAGAIN);
    assert_true(redis_exists(&r, "k"));
}

static void test_arguments(void **state)
{
    (void)state;
    struct redis other;

    redis_start(&other, "--requirepass", "secret", "--appendonly", "yes",
        "--appendfsync", "always", NULL);
    redis_run(&other, "SET", "k", "v", NULL);
    redis_restart(&other);
    assert_true(redis_exists(&other, "k"));
    int fd = local_connect(other.path, 0);
    char answer[8];
    assert_true(local_send(fd, "PING\r\n", 6));
    assert_int_equal(recv(fd, answer, 7, MSG_WAITALL), 7);
    assert_memory_equal(answer, "-NOAUTH", 7);
    close(fd);
    redis_stop(&other);
    assert_int_equal(access(other.dir, F_OK), -1);
}

static void test_it_dies_with_us(void **state)
{
    (void)state;
    int ends[2];
    pid_t server;

    assert_int_equal(pipe(ends), 0);
    pid_t pid = test_fork();
    if (pid == 0) {
        struct redis own;
        redis_start(&own, NULL);
        if (write(ends[1], &own, sizeof(own)) != sizeof(own))
            _exit(1);
        raise(SIGKILL);
    }
    struct redis own;
    assert_int_equal(read(ends[0], &own, sizeof(own)), sizeof(own));
    server = own.pid;
    waitpid(pid, NULL, 0);
    assert_eventually(kill(server, 0) != 0);
    assert_int_equal(local_connect(own.path, 0), -1);
    local_dir_remove(own.dir);
    close(ends[0]);
    close(ends[1]);
}

static void test_missing_server(void **state)
{
    (void)state;
    struct redis none;

    setenv("NXLOCK_REDIS_SERVER", "/nowhere/redis-server", 1);
    setenv("NXLOCK_SKIP_LIVE", "1", 1);
    test_state.phase = TEST_SETUP;
    int rc = redis_start(&none, NULL);
    test_state.phase = TEST_BODY;
    bool skipped = test_state.skip;
    unsetenv("NXLOCK_REDIS_SERVER");
    unsetenv("NXLOCK_SKIP_LIVE");
    test_state.skip = false;
    assert_int_equal(rc, -1);
    assert_true(skipped);
}

static void test_server_without_acl(void **state)
{
    (void)state;
    struct redis none;

    assert_int_equal(redis_needs_acl(&r), 0); /* does not end this test */
    assert_int_equal(redis_needs(&r, 1, "anything"), 0);
    assert_int_equal(
        redis_start(&none, "--rename-command", "ACL", "", NULL), 0);
    test_state.phase = TEST_SETUP;
    int rc = redis_needs_acl(&none);
    bool skipped = test_state.skip;
    test_state.skip = false;
    int later = redis_needs(&none, 1000, "command of the far future");
    bool also = test_state.skip;
    test_state.skip = false;
    test_state.phase = TEST_BODY;
    redis_stop(&none);
    assert_true(rc == -1 && skipped);
    assert_true(later == -1 && also);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_commands, start, stop),
        cmocka_unit_test_setup_teardown(test_places, start, stop),
        cmocka_unit_test_setup_teardown(test_freeze_and_thaw, start, stop),
        cmocka_unit_test_setup_teardown(test_restart_loses_data, start, stop),
        cmocka_unit_test_setup_teardown(
            test_its_connection_is_replaced, start, stop),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_it_dies_with_us),
        cmocka_unit_test(test_missing_server),
        cmocka_unit_test_setup_teardown(test_server_without_acl, start, stop),
    };
    return cmocka_run_group_tests_name("support_redis", tests, NULL, NULL);
}

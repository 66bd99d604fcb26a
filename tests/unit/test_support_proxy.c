/* SPDX-License-Identifier: MIT */
/* The proxy between a raw socket and a scripted server: what each order does
 * to the bytes of either direction. */
#include "support/test.h"

#include <errno.h>
#include <sys/socket.h>

#include "support/fake.h"
#include "support/local.h"
#include "support/proxy.h"

#define PING "*1\r\n$4\r\nPING\r\n"

static struct fake *f;
static struct proxy *p;

static int start(void **state)
{
    (void)state;
    f = fake_start("ACCEPT *\nSERVE");
    p = proxy_start(fake_path(f), 0);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    proxy_stop(p);
    fake_free(f);
    return 0;
}

static int dial(void)
{
    int fd = local_connect(proxy_url(p) + strlen("unix://"), 0);
    assert_true(fd >= 0);
    return fd;
}

static void say(int fd)
{
    assert_true(local_send(fd, PING, strlen(PING)));
}

static void hear(int fd)
{
    char answer[7];
    assert_int_equal(recv(fd, answer, 7, MSG_WAITALL), 7);
    assert_memory_equal(answer, "+PONG\r\n", 7);
}

static void hear_nothing(int fd)
{
    char c;
    assert_int_equal(recv(fd, &c, 1, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
}

static void hear_close(int fd)
{
    char c;
    assert_true(recv(fd, &c, 1, 0) <= 0);
}

static void test_passes_on(void **state)
{
    (void)state;
    int one = dial();
    int two =
        local_connect(NULL, (uint16_t)atoi(strrchr(proxy_tcp_url(p), ':') + 1));

    say(one);
    say(one);
    say(two);
    hear(two);
    hear(one);
    hear(one);
    assert_int_equal(proxy_bytes(p, PROXY_UP), 3 * strlen(PING));
    assert_int_equal(proxy_bytes(p, PROXY_DOWN), 21);
    assert_int_equal(proxy_accepted(p), 2);
    close(one);
    assert_eventually(proxy_connections(p) == 1);
    close(two);
    assert_eventually(proxy_connections(p) == 0);
}

static void test_delays(void **state)
{
    (void)state;
    int fd = dial();
    int64_t then = test_now_ms();

    proxy_delay(p, PROXY_UP, 40);
    say(fd);
    hear(fd);
    assert_between(test_now_ms() - then, 39, 5000);
    proxy_delay(p, PROXY_DOWN, 60);
    then = test_now_ms();
    say(fd);
    hear(fd);
    assert_between(test_now_ms() - then, 98, 5000);
    close(fd);
}

static void test_holds(void **state)
{
    (void)state;
    int fd = dial();

    proxy_hold(p, PROXY_DOWN, true);
    say(fd);
    assert_true(proxy_await(p, PROXY_DOWN, 7));
    hear_nothing(fd);
    proxy_hold(p, PROXY_UP, true);
    proxy_hold(p, PROXY_DOWN, false);
    hear(fd);
    say(fd);
    assert_true(proxy_await(p, PROXY_UP, 2 * strlen(PING)));
    assert_int_equal(fake_count(f, -1, "PING"), 1);
    proxy_hold(p, PROXY_UP, false);
    hear(fd);
    close(fd);
}

static void test_holds_one_source(void **state)
{
    (void)state;
    uint16_t port = (uint16_t)atoi(strrchr(proxy_tcp_url(p), ':') + 1);
    int other = dial();
    int before = local_connect(NULL, port);

    say(before);
    hear(before);
    proxy_hold_from(p, PROXY_UP, 1, true); /* 127.0.0.1 */
    int while_held = local_connect(NULL, port);
    int gone = local_connect(NULL, port);
    say(before);
    say(while_held);
    say(gone);
    close(gone);
    assert_eventually(proxy_connections(p) == 3);
    say(other);
    hear(other);
    hear_nothing(before);
    hear_nothing(while_held);
    proxy_hold_from(p, PROXY_UP, 1, false);
    hear(before);
    hear(while_held);
    close(before);
    close(while_held);
    close(other);
}

static void test_drops(void **state)
{
    (void)state;
    int fd = dial();

    proxy_drop(p, PROXY_DOWN, true);
    say(fd);
    assert_true(proxy_await(p, PROXY_DOWN, 7));
    proxy_drop(p, PROXY_DOWN, false);
    hear_nothing(fd);
    say(fd);
    hear(fd);
    hear_nothing(fd);
    assert_int_equal(fake_count(f, -1, "PING"), 2);
    close(fd);
}

static void test_cuts_within_a_reply(void **state)
{
    (void)state;
    char answer[8];
    int fd = dial();

    say(fd);
    hear(fd);
    proxy_cut_after(p, PROXY_DOWN, 9);
    say(fd);
    hear(fd);
    say(fd);
    assert_int_equal(recv(fd, answer, 2, MSG_WAITALL), 2);
    assert_memory_equal(answer, "+P", 2);
    hear_close(fd);
    close(fd);
    fd = dial();
    say(fd);
    say(fd);
    hear(fd);
    hear(fd); /* once only */
    close(fd);
}

static void test_cuts_before_the_request(void **state)
{
    (void)state;
    int fd = dial();

    proxy_cut_after(p, PROXY_UP, 0);
    say(fd);
    hear_close(fd);
    assert_int_equal(fake_count(f, -1, ""), 0);
    close(fd);
}

static void test_cuts_all(void **state)
{
    (void)state;
    char c;
    int one =
        local_connect(NULL, (uint16_t)atoi(strrchr(proxy_tcp_url(p), ':') + 1));
    int two = dial();

    assert_eventually(proxy_connections(p) == 2);
    proxy_cut(p, true);
    assert_int_equal(proxy_connections(p), 0);
    assert_int_equal(recv(one, &c, 1, 0), -1);
    assert_int_equal(errno, ECONNRESET);
    hear_close(two);
    close(one);
    close(two);
    one = dial();
    assert_eventually(proxy_connections(p) == 1);
    proxy_cut(p, false);
    assert_int_equal(recv(one, &c, 1, 0), 0);
    close(one);
}

static void test_refuses(void **state)
{
    (void)state;
    int fd = dial();

    assert_eventually(proxy_connections(p) == 1);
    proxy_refuse(p, true);
    assert_int_equal(local_connect(proxy_url(p) + strlen("unix://"), 0), -1);
    uint16_t port =
        (uint16_t)strtoul(strrchr(proxy_tcp_url(p), ':') + 1, NULL, 10);
    assert_int_equal(local_connect(NULL, port), -1);
    assert_int_equal(local_listen_tcp(&port), -1); /* it is not up for grabs */
    say(fd);
    hear(fd);
    proxy_refuse(p, false);
    int other = dial();
    say(other);
    hear(other);
    close(fd);
    close(other);
}

static void test_a_delayed_request_survives_its_sender(void **state)
{
    (void)state;
    int fd = dial();

    proxy_delay(p, PROXY_UP, 50);
    say(fd);
    close(fd);
    assert_eventually(fake_count(f, -1, "PING") == 1);
}

/* The sender's connection is over; what it sent comes when it is delivered. */
static void test_strands(void **state)
{
    (void)state;
    int fd = dial();

    say(fd);
    hear(fd);
    proxy_hold(p, PROXY_UP, true);
    say(fd);
    assert_true(proxy_await(p, PROXY_UP, 2 * strlen(PING)));
    proxy_strand(p);
    proxy_hold(p, PROXY_UP, false);
    hear_close(fd);
    close(fd);
    fd = dial(); /* later connections are not concerned */
    say(fd);
    hear(fd);
    assert_int_equal(fake_count(f, -1, "PING"), 2);
    assert_int_equal(proxy_connections(p), 2);
    proxy_deliver(p);
    assert_eventually(fake_count(f, -1, "PING") == 3);
    say(fd);
    hear(fd);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_passes_on, start, stop),
        cmocka_unit_test_setup_teardown(test_delays, start, stop),
        cmocka_unit_test_setup_teardown(test_holds, start, stop),
        cmocka_unit_test_setup_teardown(test_holds_one_source, start, stop),
        cmocka_unit_test_setup_teardown(test_drops, start, stop),
        cmocka_unit_test_setup_teardown(test_cuts_within_a_reply, start, stop),
        cmocka_unit_test_setup_teardown(
            test_cuts_before_the_request, start, stop),
        cmocka_unit_test_setup_teardown(test_cuts_all, start, stop),
        cmocka_unit_test_setup_teardown(test_refuses, start, stop),
        cmocka_unit_test_setup_teardown(test_strands, start, stop),
        cmocka_unit_test_setup_teardown(
            test_a_delayed_request_survives_its_sender, start, stop),
    };
    return cmocka_run_group_tests_name("support_proxy", tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * From an endpoint to a descriptor: unix, numbers and names; whatever happens,
 * no descriptor is left (support/test.h counts them). Linked with
 * --wrap=getaddrinfo: names are answered here, when the test says so.
 */
#include "unit/dial_rig.h"

int __wrap_getaddrinfo(const char *host, const char *service,
    const struct addrinfo *hints, struct addrinfo **list);

static void a_unix_socket(void **state)
{
    (void)state;
    char dir[LOCAL_PATH], path[LOCAL_PATH];
    local_dir_make(dir);
    local_path(path, dir, "s");
    aim("unix://%s", path);
    assert_int_equal(start(clock_now()), DIAL_FAILED);
    assert_contains(error.data, "No such file");
    assert_false(dial_busy(&dial));
    int listener = local_listen_unix(path);
    assert_int_equal(start(clock_now()), DIAL_CONNECTED);
    assert_false(dial_busy(&dial));
    assert_connected_to(listener);
    local_dir_remove(dir);
}

static void an_address_in_numbers(void **state)
{
    (void)state;
    uint16_t port = 0;
    int listener = local_listen_tcp(&port);
    aim("redis://127.0.0.1:%u", port);
    assert_int_equal(drive(start(clock_now())), DIAL_CONNECTED);
    assert_connected_to(listener);
}

static void nobody_listens(void **state)
{
    (void)state;
    aim("redis://127.0.0.1:%u", closed_port());
    assert_int_equal(drive(start(clock_now())), DIAL_FAILED);
    assert_contains(error.data, "refused");
    assert_int_equal(made.fd, -1);
}

/* The clock is ours: nothing here takes the time it says. */
static void no_answer_by_the_end(void **state)
{
    (void)state;
    struct full full = fill();
    aim("redis://127.0.0.1:%u", full.port);
    assert_int_equal(start(1000), DIAL_WAIT);
    assert_int_equal(dial_events(&dial), POLLOUT);
    assert_int_equal(dial_deadline(&dial), 1000 + BUDGET);
    assert_int_equal(
        dial_step(&dial, &to, 1000 + BUDGET - 1, &made, &error), DIAL_WAIT);
    assert_int_equal(
        dial_step(&dial, &to, 1000 + BUDGET, &made, &error), DIAL_FAILED);
    assert_contains(error.data, "to the connection attempt within 2s");
    assert_false(dial_busy(&dial));
    empty(&full);
}

static void given_up_while_connecting(void **state)
{
    (void)state;
    struct full full = fill();
    aim("redis://127.0.0.1:%u", full.port);
    assert_int_equal(start(1000), DIAL_WAIT);
    int s = dial.fd;
    dial_cancel(&dial);
    assert_int_equal(fcntl(s, F_GETFD), -1);
    assert_false(dial_busy(&dial));
    assert_int_equal(dial_deadline(&dial), NEVER);
    dial_cancel(&dial);
    empty(&full);
}

/* -------------------------------------------------------------------- names */

static void a_name_is_looked_up(void **state)
{
    (void)state;
    uint16_t port = 0;
    int listener = local_listen_tcp(&port);
    aim("redis://here.test:%u", port);
    uint64_t now = clock_now();
    enum dial_state first = start(now);
    assert_int_equal(dial.stage, DIAL_LOOKING_UP);
    assert_int_equal(dial_events(&dial), POLLIN);
    assert_int_equal(dial_deadline(&dial), now + BUDGET);
    assert_int_equal(dial_step(&dial, &to, now, &made, &error), DIAL_WAIT);
    sem_post(&allowed);
    assert_int_equal(drive(first), DIAL_CONNECTED);
    assert_connected_to(listener);
}

static void a_name_that_is_not_known(void **state)
{
    (void)state;
    aim("redis://none.test:7000");
    enum dial_state first = start(clock_now());
    sem_post(&allowed);
    assert_int_equal(drive(first), DIAL_FAILED);
    assert_contains(error.data, "none.test");
}

/* The look-up that was begun is over: what it says is there to be read. */
static void let_end(int look_up)
{
    struct pollfd waiting = {.fd = look_up, .events = POLLIN};
    sem_post(&allowed);
    assert_int_equal(poll(&waiting, 1, 10000), 1);
}

static void a_look_up_that_takes_too_long(void **state)
{
    (void)state;
    aim("redis://here.test:7000");
    assert_int_equal(start(1000), DIAL_WAIT);
    assert_int_equal(
        dial_step(&dial, &to, 1000 + BUDGET, &made, &error), DIAL_FAILED);
    assert_contains(error.data, "not resolved within 2s");
    assert_false(dial_busy(&dial));
    let_end(dial.fd);
}

static void given_up_while_looking_up(void **state)
{
    (void)state;
    aim("redis://here.test:7000");
    assert_int_equal(start(1000), DIAL_WAIT);
    int look_up = fcntl(dial.fd, F_DUPFD_CLOEXEC, 0);
    dial_free(&dial);
    assert_false(dial_busy(&dial));
    assert_null(dial.job);
    assert_int_equal(dial.fd, -1);
    dial_free(&dial);
    let_end(look_up); /* by itself, for nobody */
    close(look_up);
}

/* One look-up serves as many attempts as it takes. */
static void a_look_up_outlives_attempts(void **state)
{
    (void)state;
    uint16_t port = 0;
    int listener = local_listen_tcp(&port);
    aim("redis://here.test:%u", port);
    uint64_t now = 1000;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(start(now), DIAL_WAIT);
        assert_int_equal(dial.stage, DIAL_LOOKING_UP);
        assert_int_equal(dial_deadline(&dial), now + BUDGET);
        now += BUDGET;
        assert_int_equal(
            dial_step(&dial, &to, now, &made, &error), DIAL_FAILED);
        assert_false(dial_busy(&dial));
    }
    assert_int_equal(start(clock_now()), DIAL_WAIT);
    sem_post(&allowed);
    assert_int_equal(drive(DIAL_WAIT), DIAL_CONNECTED);
    assert_connected_to(listener);
    assert_int_equal(atomic_load(&look_ups), 1);
    assert_null(dial.job);
}

/* That of the former primary must not lead there as if it were the new one. */
static void a_look_up_of_another_target_is_given_up(void **state)
{
    (void)state;
    static const char *const moves[] = {
        "redis://127.0.0.1:%u", "redis://two.test:%u", "redis://here.test:%u"};
    for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++) {
        uint16_t old_port = 0, port = 0;
        int old = local_listen_tcp(&old_port);
        int listener = local_listen_tcp(&port);
        aim("redis://here.test:%u", old_port);
        assert_int_equal(start(clock_now()), DIAL_WAIT);
        int look_up = fcntl(dial.fd, F_DUPFD_CLOEXEC, 0);
        dial_cancel(&dial);
        let_end(look_up);
        close(look_up);
        aim(moves[i], port);
        enum dial_state first = start(clock_now());
        sem_post(&allowed);
        assert_int_equal(drive(first), DIAL_CONNECTED);
        assert_connected_to(listener);
        close(old);
        tear_down(NULL);
        set_up(NULL);
    }
}

/* It is over between two attempts; its descriptor is not polled then. */
static void an_answer_between_attempts(void **state)
{
    (void)state;
    struct poller poller = {.fd = epoll_create1(EPOLL_CLOEXEC)};
    struct epoll_event event;
    uint16_t port = 0;
    int listener = local_listen_tcp(&port);
    dial.poller = &poller;
    aim("redis://here.test:%u", port);
    assert_int_equal(start(1000), DIAL_WAIT);
    dial_cancel(&dial);
    let_end(dial.fd);
    assert_int_equal(epoll_wait(poller.fd, &event, 1, 0), 0);
    assert_int_equal(drive(start(clock_now())), DIAL_CONNECTED);
    assert_connected_to(listener);
    assert_int_equal(atomic_load(&look_ups), 1);
    /* Not over yet: polled again. */
    assert_int_equal(start(1000), DIAL_WAIT);
    dial_cancel(&dial);
    assert_int_equal(start(1000), DIAL_WAIT);
    let_end(dial.fd);
    assert_int_equal(epoll_wait(poller.fd, &event, 1, 0), 1);
    dial_cancel(&dial);
    assert_int_equal(epoll_wait(poller.fd, &event, 1, 0), 0);
    dial_free(&dial);
    close(poller.fd);
}

static void a_failure_between_attempts(void **state)
{
    (void)state;
    aim("redis://none.test:7000");
    assert_int_equal(start(1000), DIAL_WAIT);
    dial_cancel(&dial);
    let_end(dial.fd);
    assert_int_equal(start(1000 + BUDGET), DIAL_FAILED);
    assert_contains(error.data, "none.test");
    assert_null(dial.job);
    assert_int_equal(dial.fd, -1);
    assert_int_equal(atomic_load(&look_ups), 1);
    /* An old one says nothing about now. */
    assert_int_equal(start(1000), DIAL_WAIT);
    dial_cancel(&dial);
    let_end(dial.fd);
    assert_int_equal(start(1000 + 60 * NS_PER_S), DIAL_WAIT);
    let_end(dial.fd);
    assert_int_equal(atomic_load(&look_ups), 3);
}

#define dial_test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        dial_test(a_unix_socket),
        dial_test(an_address_in_numbers),
        dial_test(nobody_listens),
        dial_test(no_answer_by_the_end),
        dial_test(given_up_while_connecting),
        dial_test(a_name_is_looked_up),
        dial_test(a_name_that_is_not_known),
        dial_test(a_look_up_that_takes_too_long),
        dial_test(given_up_while_looking_up),
        dial_test(a_look_up_outlives_attempts),
        dial_test(a_look_up_of_another_target_is_given_up),
        dial_test(an_answer_between_attempts),
        dial_test(a_failure_between_attempts),
    };
    return cmocka_run_group_tests_name("dial", tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * Several addresses of one host: each has its share of the time, which goes
 * back to those that need it, and the most telling cause is told, or all.
 * Linked with --wrap=getaddrinfo.
 */
#include "unit/dial_rig.h"

int __wrap_getaddrinfo(const char *host, const char *service,
    const struct addrinfo *hints, struct addrinfo **list);

static void the_second_address_serves(void **state)
{
    (void)state;
    uint16_t port = closed_port();
    int listener = listen_v6(port);
    if (listener < 0)
        test_skip("no IPv6 loopback here");
    aim("redis://localhost:%u", port);
    assert_int_equal(drive(start(clock_now())), DIAL_CONNECTED);
    assert_connected_to(listener);
}

static void a_silent_address_has_its_share(void **state)
{
    (void)state;
    struct full full = fill();
    int listener = listen_v6(full.port);
    if (listener < 0) {
        empty(&full);
        test_skip("no IPv6 loopback here");
    }
    aim("redis://localhost:%u", full.port);
    assert_int_equal(start(1000), DIAL_WAIT);
    uint64_t half = 1000 + BUDGET / 2;
    assert_int_equal(dial_deadline(&dial), half);
    assert_int_equal(dial_step(&dial, &to, half - 1, &made, &error), DIAL_WAIT);
    enum dial_state next = dial_step(&dial, &to, half, &made, &error);
    if (next == DIAL_WAIT) {
        struct pollfd waiting = {.fd = dial.fd, .events = POLLOUT};
        assert_int_equal(dial_deadline(&dial), 1000 + BUDGET);
        assert_int_equal(poll(&waiting, 1, 10000), 1);
        next = dial_step(&dial, &to, half + 1, &made, &error);
    }
    assert_int_equal(next, DIAL_CONNECTED);
    assert_connected_to(listener);
    empty(&full);
}

/* What the other one does not need; and both causes are told. */
static void a_silent_address_gets_the_time_back(void **state)
{
    (void)state;
    struct full full = fill();
    struct text words;
    aim("redis://localhost:%u", full.port);
    assert_int_equal(start(1000), DIAL_WAIT);
    uint64_t half = 1000 + BUDGET / 2;
    text_clear(&words);
    assert_false(dial_explain(&dial, &words));
    assert_int_equal(dial_step(&dial, &to, half, &made, &error), DIAL_WAIT);
    assert_true(dial_explain(&dial, &words));
    assert_contains(words.data, "[::1]");
    assert_contains(words.data, "no answer to the connection attempt");
    assert_int_equal(dial_deadline(&dial), 1000 + BUDGET);
    assert_int_equal(
        dial_step(&dial, &to, 1000 + BUDGET - 1, &made, &error), DIAL_WAIT);
    assert_int_equal(
        dial_step(&dial, &to, 1000 + BUDGET, &made, &error), DIAL_FAILED);
    assert_contains(error.data, "127.0.0.1:");
    assert_contains(error.data, "no answer to the connection attempt");
    assert_contains(error.data, "[::1]");
    empty(&full);
}

/* The other one fails after the share is over: there is time for another
 * attempt at the first. */
static void a_silent_address_is_tried_again(void **state)
{
    (void)state;
    struct full first = fill(), second = fill_at(2, first.port);
    aim("redis://two.test:%u", first.port);
    sem_post(&allowed);
    enum dial_state next = start(1000);
    while (next == DIAL_WAIT && dial.stage == DIAL_LOOKING_UP) {
        struct pollfd waiting = {.fd = dial.fd, .events = POLLIN};
        poll(&waiting, 1, 10000);
        next = dial_step(&dial, &to, 1000, &made, &error);
    }
    uint64_t half = 1000 + BUDGET / 2;
    assert_int_equal(dial_deadline(&dial), half);
    assert_int_equal(dial_step(&dial, &to, half, &made, &error), DIAL_WAIT);
    assert_int_equal(dial.current, 1);
    empty(&second); /* refused, as soon as it is asked again */
    struct pollfd waiting = {.fd = dial.fd, .events = POLLOUT};
    assert_int_equal(poll(&waiting, 1, 30000), 1);
    assert_int_equal(dial_step(&dial, &to, half + 1, &made, &error), DIAL_WAIT);
    assert_int_equal(dial.current, 0);
    assert_int_equal(dial_deadline(&dial), 1000 + BUDGET);
    assert_int_equal(
        dial_step(&dial, &to, 1000 + BUDGET, &made, &error), DIAL_FAILED);
    assert_contains(error.data, "127.0.0.1:");
    assert_contains(
        error.data, "no answer to the connection attempt; 127.0.0.2");
    assert_contains(error.data, "refused");
    empty(&first);
}

static enum transport_step say_nothing(struct transport *t, struct text *words)
{
    (void)words;
    t->silence = "no answer to the handshake";
    t->wants_read = true;
    return TRANSPORT_WAITS;
}

/* Of two causes of the same gravity the one that came furthest. */
static void a_handshake_says_more_than_a_refusal(void **state)
{
    (void)state;
    static const struct transport_kind mute = {.handshake = say_nothing};
    uint16_t port = 0;
    int listener = local_listen_tcp(&port);
    dial.kind = &mute;
    aim("redis://localhost:%u", port);
    enum dial_state next = start(1000);
    while (next == DIAL_WAIT && dial.stage != DIAL_SECURING) {
        struct pollfd waiting = {.fd = dial.fd, .events = dial_events(&dial)};
        poll(&waiting, 1, 10000);
        next = dial_step(&dial, &to, 1000, &made, &error);
    }
    assert_int_equal(
        dial_step(&dial, &to, 1000 + BUDGET / 2, &made, &error), DIAL_WAIT);
    assert_int_equal(dial_deadline(&dial), 1000 + BUDGET);
    assert_int_equal(
        dial_step(&dial, &to, 1000 + BUDGET, &made, &error), DIAL_FAILED);
    assert_contains(error.data, "no answer to the handshake");
    assert_null(strstr(error.data, "refused"));
    close(listener);
}

#define dial_test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        dial_test(the_second_address_serves),
        dial_test(a_silent_address_has_its_share),
        dial_test(a_silent_address_gets_the_time_back),
        dial_test(a_silent_address_is_tried_again),
        dial_test(a_handshake_says_more_than_a_refusal),
    };
    return cmocka_run_group_tests_name("dial_several", tests, NULL, NULL);
}

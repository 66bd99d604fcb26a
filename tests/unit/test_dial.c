/* SPDX-License-Identifier: MIT */
/*
 * From an endpoint to a descriptor: unix, numbers and names; whatever happens,
 * no descriptor is left (support/test.h counts them). Several addresses of one
 * host share the time. Linked with --wrap=getaddrinfo: names are answered here,
 * when the test says so.
 */
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/deadline.h"
#include "net/dial.h"
#include "net/socket.h"
#include "support/local.h"

#define BUDGET (2 * NS_PER_S)

int __real_getaddrinfo(const char *host, const char *service,
    const struct addrinfo *hints, struct addrinfo **list);
int __wrap_getaddrinfo(const char *host, const char *service,
    const struct addrinfo *hints, struct addrinfo **list);

static sem_t allowed; /* waited for before a look-up answers */
static atomic_uint look_ups;

int __wrap_getaddrinfo(const char *host, const char *service,
    const struct addrinfo *hints, struct addrinfo **list)
{
    if (hints->ai_flags & AI_NUMERICHOST)
        return __real_getaddrinfo(host, service, hints, list);
    atomic_fetch_add(&look_ups, 1);
    sem_wait(&allowed);
    struct addrinfo numeric = *hints;
    numeric.ai_flags |= AI_NUMERICHOST;
    if (strcmp(host, "here.test") == 0)
        return __real_getaddrinfo("127.0.0.1", service, &numeric, list);
    if (strcmp(host, "two.test") == 0) {
        struct addrinfo *second = NULL;
        int rc = __real_getaddrinfo("127.0.0.1", service, &numeric, list);
        rc = rc ? rc
                : __real_getaddrinfo("127.0.0.2", service, &numeric, &second);
        if (rc == 0)
            (*list)->ai_next = second;
        return rc;
    }
    return EAI_NONAME;
}

static struct dial dial;
static struct endpoint url_of_it;
static struct target to;
static struct text error;
static struct transport made;

__attribute__((format(printf, 1, 2))) static void aim(const char *format, ...)
{
    char url[256];
    va_list args;
    va_start(args, format);
    vsnprintf(url, sizeof(url), format, args);
    va_end(args);
    endpoint_free(&url_of_it);
    url_of_it =
        (struct endpoint){.settings = {.timeout_ms = 2000, .keepalive_s = 15}};
    assert_int_equal(url_parse(&url_of_it, url, &error), URL_OK);
    to = target_of(&url_of_it);
    text_clear(&error);
}

static int set_up(void **state)
{
    (void)state;
    dial = (struct dial){.kind = &transport_plain, .fd = -1};
    made = TRANSPORT_CLOSED;
    atomic_store(&look_ups, 0);
    return sem_init(&allowed, 0, 0);
}

static int tear_down(void **state)
{
    (void)state;
    dial_free(&dial);
    endpoint_free(&url_of_it);
    url_of_it = (struct endpoint){0};
    return 0;
}

static enum dial_state start(uint64_t now)
{
    return dial_start(&dial, &to, now, now + BUDGET, &made, &error);
}

/* Polls and steps as a driver does, to the end. */
static enum dial_state drive(enum dial_state state)
{
    while (state == DIAL_WAIT) {
        assert_true(dial_busy(&dial));
        struct pollfd waiting = {.fd = dial.fd, .events = dial_events(&dial)};
        uint64_t now = clock_now();
        poll(&waiting, 1, deadline_poll_ms(dial_deadline(&dial), now));
        state = dial_step(&dial, &to, clock_now(), &made, &error);
    }
    assert_false(dial_busy(&dial));
    assert_int_equal(dial_deadline(&dial), NEVER);
    return state;
}

static void assert_connected_to(int listener)
{
    struct pollfd waiting = {.fd = listener, .events = POLLIN};
    assert_true(made.fd >= 0 && fcntl(made.fd, F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(made.fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(poll(&waiting, 1, 10000), 1);
    int peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(peer >= 0);
    assert_int_equal(send(peer, "x", 1, 0), 1);
    waiting.fd = made.fd;
    assert_int_equal(poll(&waiting, 1, 10000), 1);
    close(peer);
    transport_close(&made);
    close(listener);
}

/* Nobody listens there, and nobody will. */
static uint16_t closed_port(void)
{
    uint16_t port = 0;
    int listener = local_listen_tcp(&port);
    assert_true(listener >= 0);
    close(listener);
    return port;
}

/* Of ::1 at that port; -1 where there is no IPv6. */
static int listen_v6(uint16_t port)
{
    struct sockaddr_in6 at = {.sin6_family = AF_INET6};
    int one = 1, s = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    at.sin6_addr = in6addr_loopback;
    at.sin6_port = htons(port);
    if (s < 0)
        return -1;
    setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
    if (bind(s, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(s, 4) < 0) {
        close(s);
        return -1;
    }
    return s;
}

struct full {
    int listener, waiting[8];
    uint16_t port;
};

/* A listener on 127.0.0.host that answers no more: its queue is full. port 0:
 * any. */
static struct full fill_at(unsigned host, uint16_t port)
{
    struct full f = {.port = 0};
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t len = sizeof(at);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + host);
    at.sin_port = htons(port);
    f.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(f.listener, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(f.listener, 0), 0);
    assert_int_equal(getsockname(f.listener, (struct sockaddr *)&at, &len), 0);
    f.port = ntohs(at.sin_port);
    for (int i = 0; i < 8; i++) {
        f.waiting[i] =
            socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        int rc = connect(f.waiting[i], (struct sockaddr *)&at, sizeof(at));
        assert_true(rc == 0 || errno == EINPROGRESS);
    }
    return f;
}

static struct full fill(void)
{
    return fill_at(1, 0);
}

static void empty(struct full *f)
{
    for (int i = 0; i < 8; i++)
        close(f->waiting[i]);
    close(f->listener);
}

/* -------------------------------------------------------------- one address */

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

/* -------------------------------------------------------- several addresses */

/* Each has its share of the time, which goes back to those that need it, and
 * the most telling cause is told, or all. */
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
        dial_test(the_second_address_serves),
        dial_test(a_silent_address_has_its_share),
        dial_test(a_silent_address_gets_the_time_back),
        dial_test(a_silent_address_is_tried_again),
        dial_test(a_handshake_says_more_than_a_refusal),
    };
    return cmocka_run_group_tests_name("dial", tests, NULL, NULL);
}

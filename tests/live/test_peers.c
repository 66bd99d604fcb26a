/* SPDX-License-Identifier: MIT */
/*
 * Peers that are no Redis server, or no server at all: told apart from a busy
 * lock, within the call's time, and without taking in more than a little of
 * what they pour out.
 */
#include "live/live_rig.h"

#include <poll.h>
#include <sys/socket.h>

#include "support/local.h"

enum { TIMEOUT_MS = 300, GROWTH_KB = 2048 };

/* A listener that plays the same to every connection. */
static struct peer {
    int listener, stop[2];
    uint16_t port;
    char url[64];
    const char *text;    /* said as soon as the client has spoken; NULL: none */
    bool again;          /* ... over and over */
    bool closes;         /* ... and hangs up */
    _Atomic bool resets; /* ... with a reset */
    pthread_t thread;
} peer;

static bool stopping(int ms)
{
    struct pollfd fd = {.fd = peer.stop[0], .events = POLLIN};
    return poll(&fd, 1, ms) != 0;
}

/* Until the client goes away, or the end. */
static void talk(int fd)
{
    char bytes[4096];
    struct pollfd fds[] = {
        {.fd = fd, .events = POLLIN}, {.fd = peer.stop[0], .events = POLLIN}};
    bool said = !peer.text;

    while (poll(fds, 2, -1) > 0 && fds[1].revents == 0) {
        if (recv(fd, bytes, sizeof(bytes), 0) <= 0)
            return;
        if (!said && !local_send(fd, peer.text, strlen(peer.text)))
            return;
        said = true;
        while (peer.again && !stopping(0))
            if (!local_send(fd, peer.text, strlen(peer.text)))
                return;
        if (peer.resets)
            local_make_reset(fd);
        if (peer.closes)
            return;
    }
}

static void *peer_run(void *argument)
{
    (void)argument;
    struct pollfd fds[] = {{.fd = peer.listener, .events = POLLIN},
        {.fd = peer.stop[0], .events = POLLIN}};
    while (poll(fds, 2, -1) > 0 && fds[1].revents == 0) {
        int fd = accept(peer.listener, NULL, NULL);
        if (fd < 0)
            continue;
        struct timeval limit = {0, 100000}; /* of a client that reads no more */
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
        talk(fd);
        close(fd);
    }
    return NULL;
}

static void peer_start(const char *text, bool again, bool closes)
{
    peer = (struct peer){.text = text, .again = again, .closes = closes};
    peer.listener = local_listen_tcp(&peer.port);
    assert_true(peer.listener >= 0);
    assert_int_equal(pipe(peer.stop), 0);
    snprintf(peer.url, sizeof(peer.url), "redis://127.0.0.1:%u",
        (unsigned)peer.port);
    assert_int_equal(pthread_create(&peer.thread, NULL, peer_run, NULL), 0);
}

static void peer_end(void)
{
    assert_int_equal(write(peer.stop[1], "", 1), 1);
    pthread_join(peer.thread, NULL);
    close(peer.stop[0]);
    close(peer.stop[1]);
    close(peer.listener);
}

/* Every call ends as expected, in time, and takes no memory. */
static void meet(int expected, const char *words, const char *remedy)
{
    char url[96];
    snprintf(url, sizeof(url), "%s?timeout_ms=%d", peer.url, TIMEOUT_MS);
    nxl_client *client = client_at(url);
    nxl_lock *lock = new_lock(client, "job", 5000);
    nxl_holder holder = NXL_HOLDER_INIT;
    static const int64_t waits[] = {0, 0, 100, 500};
    long resident = resident_kb();

    for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
        int64_t most = waits[i] > TIMEOUT_MS ? waits[i] : TIMEOUT_MS;
        int64_t before = test_now_ms();
        assert_result(nxl_lock_acquire(lock, waits[i]), expected, lock);
        assert_between(test_now_ms() - before, 0, most + LATE_MS);
        assert_told(lock, peer.url, words, remedy);
        assert_false(nxl_lock_held(lock));
    }
    int64_t before = test_now_ms();
    assert_result(nxl_lock_inspect(lock, &holder), expected, lock);
    assert_between(test_now_ms() - before, 0, TIMEOUT_MS + LATE_MS);
    assert_told(lock, peer.url, words, remedy);
    if (!LIVE_INSTRUMENTED)
        assert_between(resident_kb() - resident, -1000000, GROWTH_KB);
    before = test_now_ms();
    end(lock, client);
    assert_between(test_now_ms() - before, 0, 500 + LATE_MS);
    peer_end();
}

static const char which_port[] = "this is the port of a Redis";

static void web_server(void **state)
{
    peer_start("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"
               "<html>no</html>\r\n",
        false, true);
    meet(NXL_E_NOT_REDIS, "HTTP/1.1 400 Bad Request", which_port);
}

/* What a TLS server answers to plain text: an alert. */
static void tls_port(void **state)
{
    peer_start("\x15\x03\x03\x01\x02\x02\x46", false, true);
    meet(NXL_E_NOT_REDIS, "\\x15\\x03\\x03", "a TLS port needs rediss://");
}

static void endless_line(void **state)
{
    static char line[65537] = "+";
    memset(line + 1, 'x', sizeof(line) - 2);
    peer_start(line, true, false);
    meet(NXL_E_NOT_REDIS, "bytes", which_port);
}

static void giant_array(void **state)
{
    peer_start("*2147483647\r\n", false, false);
    meet(NXL_E_NOT_REDIS, "*2147483647", which_port);
    peer_start("*2147483647\r\n", true, false);
    meet(NXL_E_NOT_REDIS, "*2147483647", which_port);
}

/* Announced, and then nothing comes of it: that is silence. */
static void giant_string_announced(void **state)
{
    peer_start("$99999999999\r\n", false, false);
    meet(NXL_E_UNREACHABLE, "no answer", "timeout_ms");
}

static void giant_string(void **state)
{
    static char text[65536];
    memset(text, 'x', sizeof(text) - 1);
    memcpy(text, "$99999999999\r\n", 14);
    peer_start(text, true, false);
    meet(NXL_E_NOT_REDIS, "bytes", which_port);
}

static void nested_arrays(void **state)
{
    peer_start("*1\r\n*1\r\n*1\r\n*1\r\n", true, false);
    meet(NXL_E_NOT_REDIS, "*1", which_port);
}

/* Replies of the right form to other questions. */
static void unasked_replies(void **state)
{
    peer_start("+OK\r\n", true, false);
    meet(NXL_E_NOT_REDIS, "OK", which_port);
}

static void closes_at_once(void **state)
{
    peer_start(NULL, false, true);
    meet(NXL_E_UNREACHABLE, "(a TLS port? write rediss://; a proxy for",
        "check that the server is running");
}

/* So does redis-server's TLS port with what is no TLS. */
static void resets_at_once(void **state)
{
    peer_start(NULL, false, true);
    peer.resets = true;
    meet(NXL_E_UNREACHABLE, "(a TLS port? write rediss://; a proxy for",
        "check that the server is running");
}

static void says_nothing(void **state)
{
    peer_start(NULL, false, false);
    meet(NXL_E_UNREACHABLE, "no answer", "the port belongs to another service");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(web_server),
        cmocka_unit_test(tls_port),
        cmocka_unit_test(endless_line),
        cmocka_unit_test(giant_array),
        cmocka_unit_test(giant_string_announced),
        cmocka_unit_test(giant_string),
        cmocka_unit_test(nested_arrays),
        cmocka_unit_test(unasked_replies),
        cmocka_unit_test(closes_at_once),
        cmocka_unit_test(resets_at_once),
        cmocka_unit_test(says_nothing),
    };
    return cmocka_run_group_tests_name("peers", tests, NULL, NULL);
}

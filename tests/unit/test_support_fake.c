/* SPDX-License-Identifier: MIT */
/* The fake does what its script says to a raw socket, and tells on a client
 * that does something else. */
#include "support/test.h"

#include <errno.h>
#include <sys/socket.h>

#include "support/bytes.h"
#include "support/fake.h"
#include "support/local.h"

#define SET_K_V "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n"
#define PING "*1\r\n$4\r\nPING\r\n"

static int dial(struct fake *f)
{
    int fd = local_connect(fake_path(f), 0);
    assert_true(fd >= 0);
    return fd;
}

static void say(int fd, const char *text)
{
    assert_true(local_send(fd, text, strlen(text)));
}

/* One command of words, as a client would send it. */
static void say_words(int fd, const char *words)
{
    struct bytes body = {NULL, 0, 0}, out = {NULL, 0, 0};
    int count = 0;

    while (*words != '\0') {
        size_t len = strcspn(words, " ");
        bytes_addf(&body, "$%zu\r\n%.*s\r\n", len, (int)len, words);
        words += len + (words[len] == ' ');
        count++;
    }
    bytes_addf(&out, "*%d\r\n", count);
    bytes_add(&out, body.data, body.len);
    say(fd, out.data);
    bytes_free(&body);
    bytes_free(&out);
}

/* Exactly these bytes come. */
static void hear(int fd, const char *text)
{
    struct bytes got = {NULL, 0, 0};
    char c;

    while (got.len < strlen(text) && recv(fd, &c, 1, 0) == 1)
        bytes_add(&got, &c, 1);
    assert_non_null(got.data);
    assert_string_equal(got.data, text);
    bytes_free(&got);
}

/* The rest of a line, whatever it is: a number that depends on the time. */
static void hear_line(int fd)
{
    char c = '\0';
    while (c != '\n')
        assert_int_equal(recv(fd, &c, 1, 0), 1);
}

static void hear_close(int fd)
{
    char c;
    assert_int_equal(recv(fd, &c, 1, 0), 0);
}

static void test_expect_and_send(void **state)
{
    (void)state;
    struct fake *f = fake_start("# a comment\n"
                                "EXPECT set k v\n"
                                "SEND +OK\\r\\n\n"
                                "EXPECT SET k$ v\\x20w\n"
                                "SEND-PART $-\n"
                                "SEND 1\\r\\n\n"
                                "EXPECT-CLOSE\n");
    int fd = dial(f);
    say(fd, SET_K_V);
    hear(fd, "+OK\r\n");
    say(fd, "*3\r\n$3\r\nsEt\r\n$2\r\nk$\r\n$3\r\nv w\r\n");
    hear(fd, "$-1\r\n");
    close(fd);
    assert_no_text(fake_join(f));
    assert_string_equal(fake_log(f), "0 SET k v\n0 sEt k$ v\\x20w\n");
    fake_free(f);
}

static void test_pipelined_and_split(void **state)
{
    (void)state;
    struct fake *f = fake_start("EXPECT SET k v\nEXPECT PING\nEXPECT SET k v\n"
                                "SEND +1\\r\\n+2\\r\\n+3\\r\\n\n");
    int fd = dial(f);
    say(fd, SET_K_V PING SET_K_V);
    hear(fd, "+1\r\n+2\r\n+3\r\n");
    close(fd);
    assert_no_text(fake_join(f));
    fake_free(f);

    f = fake_start("EXPECT SET k v\nTELL one\nEXPECT PING\nSEND +1\\r\\n");
    fd = dial(f);
    for (const char *at = SET_K_V PING; *at != '\0'; at++)
        assert_int_equal(send(fd, at, 1, MSG_NOSIGNAL), 1);
    assert_true(fake_await(f, "one"));
    hear(fd, "+1\r\n");
    close(fd);
    assert_no_text(fake_join(f));
    fake_free(f);
}

static void test_wildcards(void **state)
{
    (void)state;
    struct fake *f = fake_start("EXPECT SET * $tok NX PX 100\n"
                                "EXPECT EVAL * 1 lock:* $tok\n"
                                "EXPECT DEL **\n"
                                "SEND =$tok=$other=\n"
                                "EXPECT INFO \"\"\n"
                                "ACCEPT\n"
                                "EXPECT GET $tok **\n");
    int fd = dial(f);
    say_words(fd, "SET lock:a abc NX PX 100");
    say_words(fd, "EVAL return 1 lock:a abc");
    say_words(fd, "DEL a b c d");
    hear(fd, "=abc=$other=");
    say(fd, "*2\r\n$4\r\nINFO\r\n$0\r\n\r\n");
    int second = dial(f);
    say_words(second, "GET abc");
    assert_no_text(fake_join(f));
    assert_string_equal(fake_taken(f, "tok"), "abc");
    assert_null(fake_taken(f, "other"));
    close(fd);
    close(second);
    fake_free(f);
}

/* The script meets this client; the verdict has these words in it. */
static void tells_on(const char *script, const char *sent, const char *words)
{
    struct fake *f = fake_start(script);
    int fd = dial(f);

    say(fd, sent);
    shutdown(fd, SHUT_WR);
    assert_contains(fake_join_within(f, 100), words);
    close(fd);
    fake_free(f);
}

static void test_it_tells(void **state)
{
    (void)state;
    tells_on("EXPECT PING", SET_K_V,
        "connection 0, script line 1 (EXPECT): there came: SET k v");
    tells_on("EXPECT PING", "", "there came the client's close");
    tells_on("EXPECT PING", "PING\r\n", "bytes that are no command");
    tells_on("EXPECT PING", PING PING, "after the last step there came: PING");
    tells_on("EXPECT SET k", SET_K_V, "there came: SET k v");
    tells_on("EXPECT SET k v *", SET_K_V, "there came: SET k v");
    tells_on("EXPECT SET $a $a", SET_K_V, "there came: SET k v");
    tells_on("EXPECT SET k w*", SET_K_V, "there came: SET k v");
    tells_on("EXPECT SET K v", SET_K_V, "there came: SET k v");
    tells_on("EXPECT PING\nEXPECT-CLOSE", PING PING, "there came: PING");
    tells_on("WAIT-FOR me", "", "the test ended first");
    tells_on("SERVE 1\n", "", "there came the client's close");
    tells_on("CLOSE\nACCEPT\nCLOSE", "", "connection 1: it was never made");
}

static void test_unexpected_connection(void **state)
{
    (void)state;
    struct fake *f = fake_start("SILENCE\n");
    int one = dial(f), two = dial(f);

    hear_close(two);
    assert_contains(fake_join(f), "connection 1: it was not expected");
    close(one);
    close(two);
    fake_free(f);
}

static void test_further_connections(void **state)
{
    (void)state;
    struct fake *f = fake_start("CLOSE\nACCEPT *\nEXPECT PING\nSEND +P\\r\\n");
    int fd = dial(f);

    hear_close(fd);
    close(fd);
    for (int i = 0; i < 3; i++) {
        fd = dial(f);
        say(fd, PING);
        hear(fd, "+P\r\n");
        close(fd);
    }
    assert_no_text(fake_join(f));
    assert_int_equal(fake_connections(f), 4);
    assert_int_equal(fake_count(f, -1, "ping"), 3);
    assert_int_equal(fake_count(f, 2, ""), 1);
    fake_free(f);
}

static void test_signals(void **state)
{
    (void)state;
    struct fake *f = fake_start("EXPECT PING\nTELL here\nWAIT-FOR go\n"
                                "SEND +P\\r\\n\nDELAY 30\nCLOSE");
    int fd = dial(f);
    char c;

    say(fd, PING);
    assert_true(fake_await(f, "here"));
    assert_int_equal(recv(fd, &c, 1, MSG_DONTWAIT), -1);
    int64_t then = test_now_ms();
    fake_signal(f, "go");
    hear(fd, "+P\r\n");
    hear_close(fd);
    assert_between(test_now_ms() - then, 25, 5000);
    close(fd);
    assert_no_text(fake_join(f));
    fake_free(f);
}

static void test_handshake(void **state)
{
    (void)state;
    struct fake *f = fake_start("INFO role:slave\\r\\n\nEXPECT-HANDSHAKE\n"
                                "EXPECT SET k v\nSEND +OK\\r\\n");
    int fd = dial(f);

    say_words(fd, "AUTH me secret");
    say_words(fd, "SELECT 3");
    say_words(fd, "CLIENT ID");
    say_words(fd, "INFO");
    say_words(fd, "SCRIPT LOAD abc");
    say(fd, SET_K_V);
    hear(fd, "+OK\r\n+OK\r\n:7\r\n$12\r\nrole:slave\r\n\r\n$40\r\n"
             "a9993e364706816aba3e25717850c26c9cd0d89d\r\n+OK\r\n");
    close(fd);
    assert_no_text(fake_join(f));
    fake_free(f);
}

static void test_handshake_then_nothing(void **state)
{
    (void)state;
    struct fake *f = fake_start("EXPECT-HANDSHAKE\nCLOSE\nACCEPT\n"
                                "EXPECT-HANDSHAKE\nCLOSE");
    int fd = dial(f);

    say_words(fd, "CLIENT ID");
    hear(fd, ":7\r\n");
    hear_close(fd);
    close(fd);
    fd = dial(f);
    say_words(fd, "CLIENT ID");
    hear(fd, ":8\r\n");
    for (int i = 0; i < 3; i++)
        say_words(fd, "SCRIPT LOAD x");
    for (int i = 0; i < 3; i++)
        hear(fd, "$40\r\n11f6ad8ec52a2984abaafd7c3b516503785c2072\r\n");
    hear_close(fd);
    close(fd);
    assert_no_text(fake_join(f));
    fake_free(f);
}

static void test_serve(void **state)
{
    (void)state;
    struct fake *f = fake_start("SERVE");
    int fd = dial(f);

    say_words(fd, "SET k tok NX PX 60000");
    say_words(fd, "SET k other NX PX 60000");
    hear(fd, "+OK\r\n$-1\r\n");
    assert_string_equal(fake_value(f, "k"), "tok");
    say_words(fd, "EVALSHA 0123456789012345678901234567890123456789 1 k tok");
    hear(fd, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
    say_words(fd, "EVAL call('del') 1 k other");
    say_words(fd, "EVAL call('pexpire') 1 k other 70000");
    say_words(fd, "EVAL call('pexpire') 1 k tok 50");
    hear(fd, ":0\r\n:-2\r\n:");
    hear_line(fd);
    say_words(fd, "EVAL call('get') 1 nokey");
    say_words(fd, "EVAL call('get') 1 k");
    hear(fd, "*0\r\n*2\r\n$3\r\ntok\r\n:");
    hear_line(fd);
    say_words(fd, "EVAL call('del') 1 k tok");
    say_words(fd, "EXISTS k");
    say_words(fd, "PTTL k");
    say_words(fd, "FLUSHALL");
    hear(fd, ":1\r\n:0\r\n:-2\r\n-ERR unknown command\r\n");
    assert_null(fake_value(f, "k"));
    close(fd);
    assert_no_text(fake_join(f));
    fake_free(f);
}

static void test_serve_expires_and_kills(void **state)
{
    (void)state;
    struct fake *f = fake_start("SERVE\nACCEPT\nSERVE");
    int fd = dial(f), other;

    int64_t then = test_now_ms();
    say_words(fd, "SET k tok NX PX 20");
    hear(fd, "+OK\r\n");
    for (char c = '1'; c == '1';) {
        say_words(fd, "EXISTS k");
        hear(fd, ":");
        assert_int_equal(recv(fd, &c, 1, 0), 1);
        hear(fd, "\r\n");
    }
    assert_between(test_now_ms() - then, 18, 5000);
    other = dial(f);
    say_words(other, "CLIENT KILL ID 7");
    say_words(other, "CLIENT KILL ID 99");
    hear(other, ":1\r\n:0\r\n");
    hear_close(fd);
    close(fd);
    close(other);
    assert_no_text(fake_join(f));
    fake_free(f);
}

static void test_reset_and_refuse(void **state)
{
    (void)state;
    struct fake *f = fake_start("EXPECT PING\nREFUSE\nTELL shut\nRESET");
    int fd = local_connect(NULL, fake_port(f));
    char c;

    assert_true(fd >= 0);
    say(fd, PING);
    assert_true(fake_await(f, "shut"));
    assert_int_equal(recv(fd, &c, 1, 0), -1);
    assert_int_equal(errno, ECONNRESET);
    assert_int_equal(local_connect(NULL, fake_port(f)), -1);
    assert_int_equal(errno, ECONNREFUSED);
    assert_int_equal(local_connect(fake_path(f), 0), -1);
    close(fd);
    assert_no_text(fake_join(f));
    fake_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_expect_and_send),
        cmocka_unit_test(test_pipelined_and_split),
        cmocka_unit_test(test_wildcards),
        cmocka_unit_test(test_it_tells),
        cmocka_unit_test(test_unexpected_connection),
        cmocka_unit_test(test_further_connections),
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_handshake),
        cmocka_unit_test(test_handshake_then_nothing),
        cmocka_unit_test(test_serve),
        cmocka_unit_test(test_serve_expires_and_kills),
        cmocka_unit_test(test_reset_and_refuse),
    };
    return cmocka_run_group_tests_name("support_fake", tests, NULL, NULL);
}

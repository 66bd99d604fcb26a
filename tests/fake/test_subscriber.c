/* SPDX-License-Identifier: MIT */
/*
 * What may come on the connection that listens to a channel, in which order,
 * and what ends it: a message counts on the own channel after the confirmation,
 * and any other push, or none at all, never brings a false one.
 */
#include "support/listening.h"

#include "support/fake.h"

#define NEXT "ACCEPT\n"
#define PING_PONG "EXPECT PING\nSEND +PONG\\r\\n\n"
#define ASKED PING_PONG "EXPECT SUBSCRIBE $c\n"
#define CONFIRM "SEND *3\\r\\n$9\\r\\nsubscribe\\r\\n\nBULK $c\nSEND :1\\r\\n\n"
#define MESSAGE(text)                                                          \
    "SEND *3\\r\\n$7\\r\\nmessage\\r\\n\nBULK $c\nBULK " text "\n"
#define UP ASKED CONFIRM

static struct fake *fake;

static void play_with(const char *script, const char *parameters)
{
    char url[256];
    fake = fake_start(script);
    snprintf(url, sizeof(url), "%s?%s", fake_url(fake), parameters);
    listening_open(url);
}

static void play(const char *script)
{
    play_with(script, "timeout_ms=1000");
    listening_want();
}

static void play_ends(void)
{
    nxl_client_free(listening.client);
    assert_no_text(fake_join(fake));
    fake_free(fake);
}

static void messages_come_at_any_time(void **state)
{
    (void)state;
    play(UP MESSAGE("one") "WAIT-FOR more\n" MESSAGE("two") MESSAGE("three"));
    listening_until(listening.messages == 1);
    fake_signal(fake, "more");
    listening_until(listening.messages == 3);
    assert_string_equal(listening.message[0], "one");
    assert_string_equal(listening.message[1], "two");
    assert_string_equal(listening.message[2], "three");
    assert_int_equal(listening_number(), 1);
    assert_true(listening_is(MESSAGES_UP));
    assert_int_equal(listening.changes, 1);
    play_ends();
}

/* In parts, and in the same packet as the confirmation. */
static void a_message_comes_in_parts(void **state)
{
    (void)state;
    play(ASKED "SEND-PART *3\\r\\n$9\\r\\nsubs\nDELAY 20\n"
               "SEND-PART cribe\\r\\n\nBULK $c\n"
               "SEND-PART :1\\r\\n*3\\r\\n$7\\r\\nmess\nDELAY 20\n"
               "SEND-PART age\\r\\n\nBULK $c\nSEND-PART $3\\r\\nx\nDELAY 20\n"
               "SEND yz\\r\\n\n");
    listening_until(listening.messages == 1);
    assert_string_equal(listening.message[0], "xyz");
    play_ends();
}

/* What came before the connection ended is not lost with it. */
static void messages_before_the_end(void **state)
{
    (void)state;
    play(UP MESSAGE("one") "CLOSE\n" NEXT UP MESSAGE("two"));
    listening_until(listening.messages == 2);
    assert_string_equal(listening.message[0], "one");
    assert_string_equal(listening.message[1], "two");
    assert_int_equal(listening_number(), 2);
    play_ends();
}

/* Each of these ends the connection, without a message, and the next one is as
 * if nothing had been. */
static void what_must_not_come(void **state)
{
    static const char *const bad[] = {
        /* before the confirmation */
        ASKED MESSAGE("early"),
        ASKED MESSAGE("early") CONFIRM,
        /* of another channel, or to none */
        UP
        "SEND *3\\r\\n$7\\r\\nmessage\\r\\n$3\\r\\nnxl\\r\\n$1\\r\\nx\\r\\n\n",
        UP "SEND *4\\r\\n$8\\r\\npmessage\\r\\n$1\\r\\n*\\r\\n\nBULK $c\n"
           "BULK x\n",
        UP "SEND *3\\r\\n$11\\r\\nunsubscribe\\r\\n\nBULK $c\nSEND :0\\r\\n\n",
        UP CONFIRM,
        /* of another form */
        UP "SEND *2\\r\\n$7\\r\\nmessage\\r\\n\nBULK $c\n",
        UP "SEND *3\\r\\n$7\\r\\nmessage\\r\\n\nBULK $c\nSEND :5\\r\\n\n",
        UP "SEND *3\\r\\n+message\\r\\n\nBULK $c\nBULK x\n",
        UP "SEND >3\\r\\n$7\\r\\nmessage\\r\\n\nBULK $c\nBULK x\n",
        UP "SEND +OK\\r\\n\n",
        UP "SEND -ERR no\\r\\n\n",
        UP "SEND HTTP/1.1 400\\r\\n\n",
        /* instead of the confirmation */
        ASKED "SEND +OK\\r\\n\n",
        ASKED "SEND *3\\r\\n$9\\r\\nsubscribe\\r\\n$1\\r\\nx\\r\\n:1\\r\\n\n",
        ASKED "SEND *3\\r\\n$9\\r\\nsubscribe\\r\\n\nBULK $c\nBULK 1\n",
        /* in the handshake */
        ("EXPECT PING\nSEND "
         "*3\\r\\n$7\\r\\nmessage\\r\\n$1\\r\\nc\\r\\n$1\\r\\n"
         "x\\r\\n\n"),
    };
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char script[2048];
        bool was_up = strncmp(bad[i], UP, strlen(UP)) == 0;
        /* After a refusal it would take its time. */
        snprintf(script, sizeof(script), "%sEXPECT-CLOSE\n%s", bad[i],
            was_up ? NEXT UP MESSAGE("good") : "");
        play(script);
        if (was_up)
            listening_until(listening.messages == 1);
        else
            listening_until(listening_is(MESSAGES_NONE));
        if (was_up)
            assert_string_equal(listening.message[0], "good");
        assert_int_equal(listening.messages, was_up);
        assert_int_equal(listening_number(), was_up ? 2 : 0);
        play_ends();
    }
}

/* A refusal is reported in the server's words, and not tried again soon. The
 * play says if anything comes behind it. */
static void refusals(void **state)
{
    static const struct {
        const char *script, *words;
        unsigned calm_ms;
    } rows[] = {
        {ASKED "SEND -NOPERM no channel\\r\\n\n", "NOPERM no channel", 20000},
        {ASKED "SEND -ERR unknown command 'SUBSCRIBE'\\r\\n\n",
            "ERR unknown command", 20000},
        {ASKED "SEND -ERR max number of clients reached\\r\\n\n",
            "ERR max number of clients reached", 3000},
        {ASKED "SEND -NOAUTH Authentication required\\r\\n\n",
            "NOAUTH Authentication required", 20000},
        {ASKED "SEND -ERR strange\\r\\n\n", "ERR strange", 20000},
        /* A server that is full says so before any command. */
        {"SEND -ERR max number of clients reached\\r\\n\nCLOSE\n",
            "max number of clients", 3000},
        /* A proxy closes the connection at a command that it does not know. */
        {ASKED "CLOSE\n" NEXT ASKED "CLOSE\n", "a proxy?", 3000},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        play(rows[i].script);
        listening_until(listening_is(MESSAGES_NONE));
        listening_turn();
        assert_int_equal(listening.changes, 1);
        assert_contains(subscriber_words(listening.subscriber), rows[i].words);
        listening_for(50);
        assert_true(loop_deadline(listening.client) >
                    deadline_after_ms(clock_now(), rows[i].calm_ms));
        play_ends();
    }
}

/* A peer that hangs up in the handshake is tried again. */
static void hung_up_on(void **state)
{
    (void)state;
    play("EXPECT PING\nCLOSE\n" NEXT "EXPECT PING\nCLOSE\n" NEXT
         "EXPECT PING\nCLOSE\n" NEXT UP MESSAGE("x"));
    listening_until(listening.messages == 1);
    assert_int_equal(listening_number(), 1);
    play_ends();
}

/* Each connection logs in on its own, and no password is shown. */
static void a_refused_password(void **state)
{
    (void)state;
    play_with("EXPECT AUTH Zqx7Wv\nEXPECT PING\n"
              "SEND -WRONGPASS invalid Zqx7Wv\\r\\n-NOAUTH no\\r\\n\n"
              "EXPECT-CLOSE\n",
        "timeout_ms=1000&password=Zqx7Wv");
    listening_want();
    listening_until(listening_is(MESSAGES_NONE));
    assert_contains(subscriber_words(listening.subscriber), "text omitted");
    assert_null(strstr(subscriber_words(listening.subscriber), "Zqx7"));
    play_ends();
}

/* A peer that never answers SUBSCRIBE, and one that is lost before. */
static void silence(void **state)
{
    (void)state;
    play_with(ASKED "EXPECT-CLOSE\n" NEXT UP MESSAGE("x"), "timeout_ms=100");
    int64_t began = test_now_ms();
    listening_want();
    listening_until(listening.messages == 1);
    assert_between(test_now_ms() - began, 1900, 4000);
    assert_int_equal(listening_number(), 1);
    play_ends();
}

/* While no lock waits: the connection stays as it is, a lost one is not
 * replaced, and one that is not made yet is not made. */
static void rest(void **state)
{
    (void)state;
    play(UP MESSAGE("one") "WAIT-FOR end\nCLOSE\n" NEXT UP MESSAGE("three"));
    listening_until(listening.messages == 1);
    listening_rest();
    listening_turn();
    assert_true(listening_is(MESSAGES_UP));
    assert_true(loop_deadline(listening.client) == NEVER);
    fake_signal(fake, "end");
    listening_until(subscriber_connection(listening.subscriber) == 0);
    listening_turn();
    assert_true(loop_deadline(listening.client) == NEVER);
    assert_int_equal(fake_connections(fake), 1);
    listening_want();
    listening_until(listening.messages == 2);
    assert_int_equal(listening_number(), 2);
    play_ends();
}

static void rest_before_it_is_made(void **state)
{
    (void)state;
    fake = fake_start("ACCEPT *\n");
    char url[256];
    snprintf(url, sizeof(url), "%s?timeout_ms=1000", fake_url(fake));
    listening_open(url);
    listening_want();
    listening_rest();
    listening_for(30);
    assert_int_equal(fake_connections(fake), 0);
    nxl_client_free(listening.client);
    fake_free(fake);
}

/* Silence for 10 s is broken by another SUBSCRIBE, whose answer shows that the
 * connection lives; without an answer it is made anew. */
static void a_dead_connection(void **state)
{
    (void)state;
    play_with(UP
        "EXPECT SUBSCRIBE $c\n" CONFIRM MESSAGE(
            "one") "EXPECT SUBSCRIBE $c\nEXPECT-CLOSE\n" NEXT UP MESSAGE("two"),
        "timeout_ms=100");
    listening_want();
    listening_until(listening.messages == 1);
    assert_int_equal(listening_number(), 1);
    listening_until(listening.messages == 2);
    assert_int_equal(listening_number(), 2);
    play_ends();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_come_at_any_time),
        cmocka_unit_test(a_message_comes_in_parts),
        cmocka_unit_test(messages_before_the_end),
        cmocka_unit_test(what_must_not_come),
        cmocka_unit_test(refusals),
        cmocka_unit_test(hung_up_on),
        cmocka_unit_test(a_refused_password),
        cmocka_unit_test(silence),
        cmocka_unit_test(rest),
        cmocka_unit_test(rest_before_it_is_made),
        cmocka_unit_test(a_dead_connection),
    };
    return cmocka_run_group_tests_name("subscriber", tests, NULL, NULL);
}

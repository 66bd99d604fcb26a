/* SPDX-License-Identifier: MIT */
/*
 * Messages: the server, its words, the remedy, in that order; never an
 * unprintable byte of a server's, never longer than there is room.
 */
#include "support/test.h"

#include "api/message.h"

static struct server server;
static struct nxl_client client;
static struct nxl_lock *lock;

static int set_up(void **state)
{
    (void)state;
    server = (struct server){0};
    client = (struct nxl_client){.servers = &server, .server_count = 1};
    text_add(&server.endpoint.name, "redis://db7:6379/0");
    lock = calloc(1, sizeof(*lock));
    if (lock == NULL)
        return -1;
    lock->client = &client;
    lock->operation.kind = NXL_OP_ACQUIRE;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(lock);
    lock = NULL;
    return 0;
}

#define message_test(function)                                                 \
    cmocka_unit_test_setup_teardown(function, set_up, tear_down)

static struct outcome failed(enum fault fault, const char *words, size_t len)
{
    return (struct outcome){
        .kind = OUTCOME_FAULT, .fault = fault, .text = {words, len}};
}

static void say_fault(enum fault fault, const char *words)
{
    struct outcome outcome = failed(fault, words, strlen(words));
    message_fault(lock, &server, &outcome);
}

static const char *say_result(int result, enum fault fault)
{
    lock->operation.result = result;
    message_result(lock, fault);
    return lock->message.data;
}

static void faults_become_results(void **state)
{
    (void)state;
    static const struct {
        enum fault fault;
        int result;
    } rows[] = {
        {FAULT_NONE, NXL_E_UNREACHABLE},
        {FAULT_UNREACHABLE, NXL_E_UNREACHABLE},
        {FAULT_SILENT, NXL_E_UNREACHABLE},
        {FAULT_RETRY, NXL_E_REFUSED},
        {FAULT_ELSEWHERE, NXL_E_REFUSED},
        {FAULT_FULL, NXL_E_REFUSED},
        {FAULT_REFUSING, NXL_E_REFUSED},
        {FAULT_DENIED, NXL_E_DENIED},
        {FAULT_WRONG_TYPE, NXL_E_WRONG_TYPE},
        {FAULT_UNSUPPORTED, NXL_E_UNSUPPORTED},
        {FAULT_NOT_REDIS, NXL_E_NOT_REDIS},
        {FAULT_SERVER, NXL_E_SERVER},
        {FAULT_SYSTEM, NXL_E_SYSTEM},
        {FAULT_RESTARTED, NXL_E_REFUSED},
        {FAULT_SETUP, NXL_E_URL},
    };
    assert_int_equal(sizeof(rows) / sizeof(rows[0]), FAULT_CLASSES);
    for (size_t i = 0; i < FAULT_CLASSES; i++)
        assert_int_equal(result_of_fault(rows[i].fault), rows[i].result);
}

static void server_words_remedy(void **state)
{
    (void)state;
    say_fault(FAULT_FULL, "OOM command not allowed");
    assert_string_equal(say_result(NXL_E_REFUSED, FAULT_FULL),
        "redis://db7:6379/0: OOM command not allowed; the server has reached "
        "maxmemory; raise it or free memory");
    assert_string_equal(client.message.data, lock->message.data);
}

static void the_last_fault_is_told(void **state)
{
    (void)state;
    say_fault(FAULT_RETRY, "LOADING");
    say_fault(FAULT_SERVER, "ERR something");
    assert_string_equal(say_result(NXL_E_SERVER, FAULT_SERVER),
        "redis://db7:6379/0: ERR something");
}

static void foreign_bytes_are_made_visible(void **state)
{
    (void)state;
    static const char bytes[] = "a\x1b[2J\r\n\0z\xc3";
    struct outcome outcome = failed(FAULT_SERVER, bytes, sizeof(bytes) - 1);
    message_fault(lock, &server, &outcome);
    assert_string_equal(lock->message.data,
        "redis://db7:6379/0: a\\x1b[2J\\x0d\\x0a\\x00z\\xc3");
    assert_int_equal(lock->message.len, strlen(lock->message.data));
}

static void long_words_fit(void **state)
{
    (void)state;
    static char words[4000];
    memset(words, '\x01', sizeof(words));
    struct outcome outcome = failed(FAULT_DENIED, words, sizeof(words));
    for (int i = 0; i < 60; i++)
        text_add(&server.endpoint.name, "/long/path");
    message_fault(lock, &server, &outcome);
    say_result(NXL_E_DENIED, FAULT_DENIED);
    assert_true(lock->message.len < TEXT_MAX);
    assert_int_equal(strlen(lock->message.data), lock->message.len);
}

/* Nothing was heard, and the message says how far it got. */
static void silence_is_described(void **state)
{
    (void)state;
    static const char *const words[] = {
        [SERVER_DOWN] = "redis://db7:6379/0: no connection; ",
        [SERVER_DIALLING] = "redis://db7:6379/0: no connection in time; ",
        [SERVER_SHAKING] = "redis://db7:6379/0: connected, but no answer",
        [SERVER_UP] = "redis://db7:6379/0: no answer in time; ",
    };
    for (int i = SERVER_DOWN; i <= SERVER_UP; i++) {
        text_clear(&lock->message);
        server.state = (__typeof__(server.state))i;
        assert_contains(say_result(NXL_E_UNREACHABLE, FAULT_SILENT), words[i]);
        assert_contains(lock->message.data, fault_remedy(FAULT_SILENT));
    }
    server.state = SERVER_DOWN;
    text_clear(&lock->message);
    text_add(&server.why, "connection refused");
    assert_contains(say_result(NXL_UNKNOWN, FAULT_UNREACHABLE),
        "redis://db7:6379/0: connection refused; check that the server runs");
    assert_string_equal(client.message.data, lock->message.data);
}

static void busy_tells_how_long_still(void **state)
{
    (void)state;
    int64_t *left = &lock->operation.machine.acquire.left_ms;
    say_fault(FAULT_RETRY, "LOADING");
    *left = LEFT_UNKNOWN;
    assert_string_equal(
        say_result(NXL_BUSY, FAULT_NONE), "somebody else holds the name");
    *left = 1234;
    assert_contains(say_result(NXL_BUSY, FAULT_NONE), ", for 1234 ms at most");
    *left = 0;
    assert_contains(say_result(NXL_BUSY, FAULT_NONE), ", for 0 ms at most");
    *left = LEFT_FOREVER;
    assert_contains(say_result(NXL_BUSY, FAULT_NONE), "the key has no end");
    assert_string_equal(client.message.data, ""); /* nothing went wrong */
}

static void success_clears_the_message(void **state)
{
    (void)state;
    static const int good[] = {NXL_OK, NXL_FREE};
    for (size_t i = 0; i < 2; i++) {
        say_fault(FAULT_RETRY, "LOADING");
        assert_string_equal(say_result(good[i], FAULT_RETRY), "");
        assert_int_equal(lock->message.len, 0);
    }
}

static void other_outcomes_are_named(void **state)
{
    (void)state;
    static const struct {
        int result;
        const char *words;
    } others[] = {{NXL_LOST, "its time was over"}, {NXL_CANCELLED, "ended it"}};
    for (size_t i = 0; i < 2; i++) {
        say_fault(FAULT_RETRY, "LOADING");
        assert_contains(
            say_result(others[i].result, FAULT_RETRY), others[i].words);
    }
    assert_string_equal(client.message.data, "");
}

static void refusals_are_formatted_and_cut(void **state)
{
    (void)state;
    static char words[2000];
    struct text text;
    text_clear(&text);
    text_add(&text, "before");
    assert_int_equal(
        message_invalid(&text, "ttl_ms is %d %s", -3, "%s"), NXL_E_INVALID);
    assert_string_equal(text.data, "ttl_ms is -3 %s");
    memset(words, 'w', sizeof(words) - 1);
    assert_int_equal(message_invalid(&text, "%s", words), NXL_E_INVALID);
    assert_int_equal(strlen(text.data), text.len);
    assert_true(text.len < TEXT_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        message_test(faults_become_results),
        message_test(server_words_remedy),
        message_test(the_last_fault_is_told),
        message_test(foreign_bytes_are_made_visible),
        message_test(long_words_fit),
        message_test(silence_is_described),
        message_test(busy_tells_how_long_still),
        message_test(success_clears_the_message),
        message_test(other_outcomes_are_named),
        message_test(refusals_are_formatted_and_cut),
    };
    return cmocka_run_group_tests_name("message", tests, NULL, NULL);
}

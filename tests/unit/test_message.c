/* SPDX-License-Identifier: MIT */
/*
 * Messages: the server, its words, the remedy, in that order; never an
 * unprintable byte of a server's, never longer than there is room.
 */
#include "support/test.h"

#include "lock/errmsg.h"
#include "lock/remedy.h"

#include <stdlib.h>

static struct server server;
static struct server_address address, addresses[3];
static struct settings settings;
static struct request requests[3];
static struct nxl_client client;
static struct note notes[3];
static struct operation operation;
static struct report report;

static void forget_notes(void)
{
    for (size_t i = 0; i < sizeof(notes) / sizeof(notes[0]); i++)
        free(notes[i].words);
    memset(notes, 0, sizeof(notes));
}

static int set_up(void **state)
{
    (void)state;
    address = (struct server_address){0};
    settings = (struct settings){0};
    server =
        (struct server){.to = {.address = &address, .settings = &settings}};
    requests[0].server = &server;
    client = (struct nxl_client){.server_count = 1};
    text_add(&address.name, "redis://db7:6379/0");
    forget_notes();
    free(operation.errmsg);
    operation = (struct operation){
        .client = &client, .notes = notes, .requests = requests};
    report = (struct report){.operation = &operation,
        .kind = NXL_OP_ACQUIRE,
        .left_ms = LEFT_UNKNOWN};
    return 0;
}

#define message_test(function) cmocka_unit_test_setup(function, set_up)

static struct outcome failed(enum fault fault, const char *words, size_t len)
{
    return (struct outcome){
        .kind = OUTCOME_FAULT, .fault = fault, .text = {words, len}};
}

static void note_fault(unsigned i, enum fault fault, const char *words)
{
    struct outcome outcome = failed(fault, words, strlen(words));
    operation_note(&operation, i, &outcome);
}

static void say_fault(enum fault fault, const char *words)
{
    note_fault(0, fault, words);
}

static const char *say_result(int result, enum fault fault)
{
    report.result = result;
    report.fault = fault;
    errmsg_compose(&report, operation_errmsg(&operation));
    return operation_words(&operation);
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
        {FAULT_TIMEOUT, NXL_E_UNREACHABLE},
        {FAULT_RETRY, NXL_E_REFUSED},
        {FAULT_NOT_PRIMARY, NXL_E_REFUSED},
        {FAULT_FULL, NXL_E_REFUSED},
        {FAULT_REFUSING, NXL_E_REFUSED},
        {FAULT_DENIED, NXL_E_DENIED},
        {FAULT_NO_PERMISSION, NXL_E_DENIED},
        {FAULT_SCRIPT_DENIED, NXL_E_DENIED},
        {FAULT_WRONG_TYPE, NXL_E_WRONG_TYPE},
        {FAULT_UNSUPPORTED, NXL_E_UNSUPPORTED},
        {FAULT_NOT_REDIS, NXL_E_NOT_REDIS},
        {FAULT_SERVER, NXL_E_SERVER},
        {FAULT_SYSTEM, NXL_E_SYSTEM},
        {FAULT_RESTARTED, NXL_E_REFUSED},
        {FAULT_PROMOTED, NXL_E_REFUSED},
        {FAULT_DEMOTED, NXL_E_REFUSED},
        {FAULT_NO_INFO, NXL_E_DENIED},
        {FAULT_NOT_DURABLE, NXL_E_URL},
        {FAULT_DUPLICATE, NXL_E_URL},
        {FAULT_IS_SENTINEL, NXL_E_URL},
        {FAULT_TLS, NXL_E_UNREACHABLE},
        {FAULT_CERTIFICATE, NXL_E_DENIED},
        {FAULT_ACTIVE_REPLICA, NXL_E_REFUSED},
        {FAULT_CLUSTER, NXL_E_REFUSED},
        {FAULT_CLUSTER_DOWN, NXL_E_REFUSED},
        {FAULT_CREDENTIALS, NXL_E_UNREACHABLE},
        {FAULT_NO_DATABASE, NXL_E_SERVER},
        {FAULT_SLOTS, NXL_E_REFUSED},
        {FAULT_COPIES, NXL_E_REFUSED},
        {FAULT_UNCONFIRMED, NXL_E_REFUSED},
        {FAULT_NAMED_LATE, NXL_E_REFUSED},
        {FAULT_WRONG_SENTINELS, NXL_E_URL},
        {FAULT_SENTINEL_DENIED, NXL_E_DENIED},
        {FAULT_SENTINEL_RIGHTS, NXL_E_DENIED},
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
    assert_string_equal(client.errmsg.data, operation.errmsg->data);
}

/* What ends the message, of this fault. */
static void assert_remedy(enum fault fault, const char *remedy)
{
    const char *said;
    say_fault(fault, "words");
    said = say_result(result_of_fault(fault), fault);
    assert_non_null(strchr(said, ';'));
    assert_string_equal(strchr(said, ';') + 2, remedy);
}

static void remedies_with_sentinels(void **state)
{
    static const struct age_terms age;
    (void)state;
    assert_remedy(FAULT_SENTINEL_DENIED,
        "the Sentinels have a user and a password of their own: set "
        "sentinel_user and sentinel_password_file in the URL");
    assert_remedy(FAULT_SENTINEL_RIGHTS,
        "at each Sentinel, allow sentinel_user: +info "
        "+sentinel|get-master-addr-by-name +sentinel|master "
        "+sentinel|sentinels");
    server.uses_sentinels = true;
    assert_remedy(FAULT_DENIED,
        "check the user and password, in the URL or wherever they come from");
    assert_remedy(FAULT_DEMOTED,
        "wait until the Sentinels name the new primary (about a second after "
        "SENTINEL FAILOVER, half a minute after FAILOVER; do not send FAILOVER "
        "to a server that Sentinels watch)");
    server.handshake_terms.age = &age; /* guard_failover=on */
    assert_remedy(FAULT_NO_INFO, "allow its user to run INFO (ACL: +info)");
}

static void remedies_of_a_sentinel_alone(void **state)
{
    (void)state;
    settings.to_sentinels = true;
    assert_remedy(FAULT_DENIED, remedy_of(FAULT_SENTINEL_DENIED));
    assert_remedy(FAULT_NO_PERMISSION, remedy_of(FAULT_SENTINEL_RIGHTS));
    assert_remedy(FAULT_UNREACHABLE,
        "check that this Sentinel is running and that its host and port in the "
        "URL are right");
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
    operation_note(&operation, 0, &outcome);
    assert_string_equal(say_result(NXL_E_SERVER, FAULT_SERVER),
        "redis://db7:6379/0: a\\x1b[2J\\x0d\\x0a\\x00z\\xc3");
    assert_int_equal(operation.errmsg->len, strlen(operation.errmsg->data));
}

static void long_words_fit(void **state)
{
    (void)state;
    static char words[4000];
    memset(words, '\x01', sizeof(words));
    struct outcome outcome = failed(FAULT_DENIED, words, sizeof(words));
    for (int i = 0; i < 60; i++)
        text_add(&address.name, "/long/path");
    operation_note(&operation, 0, &outcome);
    say_result(NXL_E_DENIED, FAULT_DENIED);
    assert_true(operation.errmsg->len < TEXT_MAX);
    assert_int_equal(strlen(operation.errmsg->data), operation.errmsg->len);
}

/* Nothing was heard, and the message says how far it got. */
static void silence_is_described(void **state)
{
    (void)state;
    static const char *const words[] = {
        [SERVER_DOWN] = "redis://db7:6379/0: no connection; ",
        [SERVER_CONNECTING] = "redis://db7:6379/0: no connection in time; ",
        [SERVER_SHAKING] = "redis://db7:6379/0: connected, but no answer",
        [SERVER_UP] = "redis://db7:6379/0: no answer in time; ",
    };
    for (int i = SERVER_DOWN; i <= SERVER_UP; i++) {
        server.state = (__typeof__(server.state))i;
        assert_contains(say_result(NXL_E_UNREACHABLE, FAULT_TIMEOUT), words[i]);
        assert_contains(operation.errmsg->data, remedy_of(FAULT_TIMEOUT));
    }
    server.state = SERVER_DOWN;
    text_add(&server.why, "connection refused");
    assert_contains(say_result(NXL_UNKNOWN, FAULT_UNREACHABLE),
        "redis://db7:6379/0: connection refused; check that the server is "
        "running");
    assert_string_equal(client.errmsg.data, operation.errmsg->data);
}

static void busy_tells_how_long_still(void **state)
{
    (void)state;
    int64_t *left = &report.left_ms;
    say_fault(FAULT_RETRY, "LOADING");
    *left = LEFT_UNKNOWN;
    assert_string_equal(
        say_result(NXL_BUSY, FAULT_NONE), "another client holds the lock");
    *left = 1234;
    assert_contains(say_result(NXL_BUSY, FAULT_NONE),
        ", for at most 1.3s unless it is renewed");
    *left = 0;
    assert_contains(
        say_result(NXL_BUSY, FAULT_NONE), ", for at most 0s unless it is");
    *left = LEFT_FOREVER;
    assert_contains(say_result(NXL_BUSY, FAULT_NONE), "its key never expires");
    report.here = (struct held_here){
        .handles = 1, .alone = true, .held_ns = UINT64_C(3200000000)};
    assert_string_equal(say_result(NXL_BUSY, FAULT_NONE),
        "held by this client itself for 3.2s, by another handle; release it "
        "there, or use that handle");
    report.here.handles = 2;
    report.here.alone = false;
    *left = 1000;
    assert_string_equal(say_result(NXL_BUSY, FAULT_NONE),
        "held by this client itself for 3.2s, by 2 other handles, and maybe by "
        "other clients, for at most 1s unless it is renewed");
    report.here.handles = 0;
    assert_string_equal(client.errmsg.data, ""); /* nothing went wrong */
}

static void success_clears_the_message(void **state)
{
    (void)state;
    static const int good[] = {NXL_OK, NXL_FREE};
    for (size_t i = 0; i < 2; i++) {
        say_fault(FAULT_RETRY, "LOADING");
        assert_string_equal(say_result(good[i], FAULT_RETRY), "");
        assert_int_equal(operation.errmsg->len, 0);
    }
}

static void other_outcomes_are_named(void **state)
{
    (void)state;
    static const struct {
        int result;
        const char *words;
    } others[] = {
        {NXL_LOST, "the lease expired"}, {NXL_CANCELLED, "cancelled by"}};
    for (size_t i = 0; i < 2; i++) {
        say_fault(FAULT_RETRY, "LOADING");
        assert_contains(
            say_result(others[i].result, FAULT_RETRY), others[i].words);
    }
    assert_string_equal(client.errmsg.data, "");
}

/* ---------------------------------------------------------- several servers */

static struct server three[3];
static void of_three(void)
{
    memset(three, 0, sizeof(three));
    memset(addresses, 0, sizeof(addresses));
    forget_notes();
    client.server_count = 3;
    for (int i = 0; i < 3; i++) {
        three[i].to.address = &addresses[i];
        three[i].to.settings = &settings;
        requests[i].server = &three[i];
        text_addf(&addresses[i].name, "redis://%c", 'a' + i);
        three[i].state = SERVER_UP;
        notes[i].kind = NOTE_YES;
    }
}

static void one_cause_has_its_remedy(void **state)
{
    (void)state;
    of_three();
    note_fault(0, FAULT_NOT_DURABLE, "no AOF");
    note_fault(2, FAULT_NOT_DURABLE, "no AOF");
    assert_string_equal(say_result(NXL_E_URL, FAULT_NOT_DURABLE),
        "2 of 3 servers are needed; redis://a, redis://c: no AOF; enable its "
        "append-only file (appendonly yes, appendfsync always), or remove "
        "durable=1 from its URL");
}

static void mixed_causes_have_their_own(void **state)
{
    (void)state;
    of_three();
    note_fault(0, FAULT_DUPLICATE, "the same server");
    note_fault(1, FAULT_FULL, "OOM");
    assert_string_equal(say_result(NXL_E_URL, FAULT_DUPLICATE),
        "2 of 3 servers are needed; redis://a: the same server [list each "
        "server once]; redis://b: OOM [the server has reached maxmemory; "
        "raise it or free memory]");
    assert_string_equal(client.errmsg.data, operation.errmsg->data);
}

/* One remedy of several would pass for that of all. */
static void without_room_there_is_none(void **state)
{
    (void)state;
    of_three();
    for (unsigned i = 0; i < 3; i++)
        text_addf(&addresses[i].name, "%070d", 0);
    note_fault(0, FAULT_DENIED, "WRONGPASS");
    note_fault(1, FAULT_NO_INFO, "INFO is refused");
    note_fault(2, FAULT_NOT_PRIMARY, "READONLY");
    const char *said = say_result(NXL_E_DENIED, FAULT_DENIED);
    assert_contains(said, "WRONGPASS");
    assert_contains(said, "INFO is refused");
    assert_contains(said, "READONLY");
    assert_null(strstr(said, "check the user"));
}

static void a_minority_to_be_mended(void **state)
{
    (void)state;
    bool young = true;
    struct text text;
    of_three();
    text_clear(&text);
    notes[0].kind = NOTE_ASKED; /* slow, and not needed */
    note_fault(1, FAULT_UNREACHABLE, "refused");
    assert_false(errmsg_minority(&operation, &young, &text));
    note_fault(1, FAULT_RESTARTED, "started 3 s ago");
    assert_true(errmsg_minority(&operation, &young, &text));
    assert_true(young);
    assert_contains(text.data, "1 of 3 servers did not take part in a grant: "
                               "redis://b: started 3 s ago; ");
    three[0].state = SERVER_DOWN; /* it had hung up before it was asked */
    three[0].why_fault = FAULT_DENIED;
    text_add(&three[0].why, "WRONGPASS");
    text_clear(&text);
    assert_true(errmsg_minority(&operation, &young, &text));
    assert_false(young);
    assert_contains(text.data, "redis://a: WRONGPASS");
    assert_contains(text.data, "redis://b: started 3 s ago");
    assert_null(strstr(text.data, "redis://c"));
}

/* Who kept a lease from being prolonged until it was over. */
static void a_lapsed_lease_names_who_was_silent(void **state)
{
    (void)state;
    of_three();
    report.kind = NXL_OP_EXTEND;
    notes[1].kind = NOTE_ASKED;
    note_fault(2, FAULT_UNREACHABLE, "connection lost");
    assert_string_equal(say_result(NXL_LOST, FAULT_NONE),
        "the lease had expired, or the key was removed or taken; redis://b: "
        "no answer in time; redis://c: connection lost");
}

static void refusals_are_formatted_and_cut(void **state)
{
    (void)state;
    static char words[2000];
    struct text text;
    text_clear(&text);
    text_add(&text, "before");
    assert_int_equal(
        errmsg_invalid(&text, "ttl_ms is %d %s", -3, "%s"), NXL_E_INVALID);
    assert_string_equal(text.data, "ttl_ms is -3 %s");
    memset(words, 'w', sizeof(words) - 1);
    assert_int_equal(errmsg_invalid(&text, "%s", words), NXL_E_INVALID);
    assert_int_equal(strlen(text.data), text.len);
    assert_true(text.len < TEXT_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        message_test(faults_become_results),
        message_test(server_words_remedy),
        message_test(remedies_with_sentinels),
        message_test(remedies_of_a_sentinel_alone),
        message_test(the_last_fault_is_told),
        message_test(foreign_bytes_are_made_visible),
        message_test(long_words_fit),
        message_test(silence_is_described),
        message_test(busy_tells_how_long_still),
        message_test(success_clears_the_message),
        message_test(other_outcomes_are_named),
        message_test(one_cause_has_its_remedy),
        message_test(mixed_causes_have_their_own),
        message_test(without_room_there_is_none),
        message_test(a_minority_to_be_mended),
        message_test(a_lapsed_lease_names_who_was_silent),
        message_test(refusals_are_formatted_and_cut),
    };
    return cmocka_run_group_tests_name("message", tests, NULL, NULL);
}

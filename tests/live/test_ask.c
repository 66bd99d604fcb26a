/* SPDX-License-Identifier: MIT */
/*
 * Questions to a real server: every form of an answer, every kind of refusal,
 * and that locks on the same connection do not notice.
 */
#include "api/private.h"
#include "live_rig.h"

#include <sys/wait.h>

static struct answer *answer;

static int tear_down(void **state)
{
    answer_free(answer);
    answer = NULL;
    return 0;
}

#define ask_test(function)                                                     \
    cmocka_unit_test_setup_teardown(function, live_clean, tear_down)

/* A question of words with blanks between them. */
static int ask_of(nxl_client *client, size_t server_number, const char *line)
{
    char copy[256];
    const char *words[16];
    size_t count = 0;
    char *rest = copy, *one;
    answer_free(answer);
    answer = (struct answer *)&answer; /* it is to be set, whatever comes */
    snprintf(copy, sizeof(copy), "%s", line);
    while ((one = strsep(&rest, " ")))
        words[count++] = one;
    int rc = client_ask(client, server_number, count, words, NULL, &answer);
    if (rc != NXL_OK) {
        assert_null(answer);
        assert_true(nxl_client_errmsg(client)[0] != '\0');
    }
    return rc;
}

static void asks(nxl_client *client, const char *line)
{
    live_assert_result(ask_of(client, 0, line), NXL_OK,
        nxl_client_errmsg(client), __FILE__, __LINE__);
}

static const char *item(size_t i)
{
    return answer_item(answer, i, NULL);
}

static void every_form(void **state)
{
    nxl_client *client = new_client("prefix=p:&max_ttl_ms=45000");
    size_t length = 7;
    assert_string_equal(nxl_client_prefix(client), "p:");
    assert_int_equal(nxl_client_max_ttl_ms(client), 45000);
    asks(client, "PING");
    assert_int_equal(answer_count(answer), 1);
    assert_string_equal(item(0), "PONG");
    redis_run(&server, "SET", "k", "value", NULL);
    asks(client, "STRLEN k");
    assert_string_equal(item(0), "5");
    asks(client, "GETRANGE k 1 2");
    assert_string_equal(answer_item(answer, 0, &length), "al");
    assert_int_equal(length, 2);
    asks(client, "PTTL gone");
    assert_string_equal(item(0), "-2");
    asks(client, "OBJECT ENCODING gone");
    assert_int_equal(answer_count(answer), 1);
    assert_null(answer_item(answer, 0, &length));
    assert_int_equal(length, 0);
    assert_null(answer_item(answer, 1, &length));
    asks(client, "SCAN 0");
    assert_int_equal(answer_count(answer), 2);
    assert_string_equal(item(1), "k");
    asks(client, "TIME");
    assert_int_equal(answer_count(answer), 2);
    asks(client, "CONFIG GET nothing-of-that-name");
    assert_int_equal(answer_count(answer), 0);
    asks(client, "ACL GETUSER default");
    assert_true(answer_count(answer) > 8); /* lists in a list */
    asks(client, "ROLE");
    assert_string_equal(item(0), "master");
    assert_int_equal(answer_count(NULL), 0);
    assert_null(answer_item(NULL, 0, NULL));
    answer_free(NULL);
    nxl_client_free(client);
}

static void binary_words(void **state)
{
    nxl_client *client = new_client("");
    static const char *const words[] = {"GETRANGE", "a\0b", "0", "99"};
    static const size_t lengths[] = {8, 3, 1, 2};
    size_t length;
    freeReplyObject(redis_commandf(
        &server, "SET %b %b", "a\0b", (size_t)3, "x\0y", (size_t)3));
    assert_int_equal(client_ask(client, 0, 4, words, lengths, &answer), NXL_OK);
    assert_memory_equal(answer_item(answer, 0, &length), "x\0y", 4);
    assert_int_equal(length, 3);
    nxl_client_free(client);
}

/* Longer than what is kept of a reply otherwise, and than what is fed. */
static void large_answers(void **state)
{
    nxl_client *client = new_client("timeout_ms=10000");
    nxl_lock *lock = new_lock(client, "job", 20000);
    static char big[1500000];
    char line[64];
    memset(big, 'x', sizeof(big) - 1);
    redis_run(&server, "SET", "big", big, NULL);
    asks(client, "GETRANGE big 0 524287");
    size_t length;
    assert_non_null(answer_item(answer, 0, &length));
    assert_int_equal(length, 524288);
    asks(client, "INFO all");
    assert_contains(item(0), "redis_version");
    /* One key of a list that long. */
    big[400000] = '\0';
    redis_run(&server, "SET", big, "v", NULL);
    asks(client, "SCAN 0 COUNT 1000");
    assert_int_equal(answer_count(answer), 3);
    for (int i = 0; i < 3; i++) {
        big[0] = (char)('a' + i);
        redis_run(&server, "SET", big, "v", NULL);
    }
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    snprintf(line, sizeof(line), "SCAN 0 COUNT 1000");
    assert_int_equal(ask_of(client, 0, line), NXL_E_UNSUPPORTED);
    assert_contains(nxl_client_errmsg(client), "SCAN is longer than");
    assert_contains(nxl_client_errmsg(client), server_url);
    /* And neither the connection nor what is on it was hurt by that. */
    asks(client, "CLIENT ID");
    char before[32];
    snprintf(before, sizeof(before), "%s", item(0));
    assert_int_equal(ask_of(client, 0, line), NXL_E_UNSUPPORTED);
    asks(client, "CLIENT ID");
    assert_string_equal(item(0), before);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    end(lock, client);
}

static void arguments_that_are_refused(void **state)
{
    nxl_client *client = new_client("");
    static const char *const words[] = {"PING", NULL};
    static const size_t lengths[] = {4, 262141};
    static char long_word[262142];
    const char *const long_words[] = {"PING", long_word};
    assert_int_equal(
        client_ask(client, 0, 2, long_words, lengths, &answer), NXL_E_INVALID);
    assert_contains(nxl_client_errmsg(client), "longer than 262144 bytes");
    assert_int_equal(ask_of(client, 1, "PING"), NXL_E_INVALID);
    assert_contains(nxl_client_errmsg(client), "no server 1");
    assert_int_equal(
        client_ask(client, 0, 0, words, NULL, &answer), NXL_E_INVALID);
    assert_int_equal(
        client_ask(client, 0, 65, words, NULL, &answer), NXL_E_INVALID);
    assert_int_equal(
        client_ask(client, 0, 1, NULL, NULL, &answer), NXL_E_INVALID);
    assert_int_equal(
        client_ask(client, 0, 1, words, NULL, NULL), NXL_E_INVALID);
    assert_int_equal(
        client_ask(client, 0, 2, words, NULL, &answer), NXL_E_INVALID);
    assert_contains(nxl_client_errmsg(client), "word 2 of the query is NULL");
    assert_int_equal(
        client_ask(NULL, 0, 1, words, NULL, &answer), NXL_E_INVALID);
    assert_int_equal(redis_clients(&server), 0);
    assert_int_equal(nxl_client_fd(client) < 0, 0);
    assert_int_equal(ask_of(client, 0, "PING"), NXL_E_INVALID);
    assert_contains(nxl_client_errmsg(client), "event-loop API");
    nxl_client_free(client);
}

static void refusals(void **state)
{
    nxl_client *client = new_client("user=seer&password=Zqx7");
    redis_run(&server, "ACL", "SETUSER", "seer", "reset", "on", ">Zqx7", "~*",
        "+@all", "-info", "-exists", NULL);
    redis_run(&server, "LPUSH", "list", "x", NULL);
    assert_int_equal(ask_of(client, 0, "INFO"), NXL_E_DENIED);
    assert_contains(nxl_client_errmsg(client), "NOPERM");
    assert_contains(nxl_client_errmsg(client), "see docs/acl.md");
    assert_int_equal(ask_of(client, 0, "GETRANGE list 0 9"), NXL_E_WRONG_TYPE);
    assert_int_equal(ask_of(client, 0, "SCAN x"), NXL_E_SERVER);
    assert_contains(nxl_client_errmsg(client), "invalid cursor");
    asks(client, "PING"); /* it is the same connection still */
    nxl_client_free(client);
    redis_run(&server, "ACL", "DELUSER", "seer", NULL);

    client = new_client("user=nobody&password=Zqx7");
    assert_int_equal(ask_of(client, 0, "PING"), NXL_E_DENIED);
    assert_contains(nxl_client_errmsg(client), "WRONGPASS");
    nxl_client_free(client);
    client = new_client("db=9999");
    assert_true(ask_of(client, 0, "PING") < 0);
    nxl_client_free(client);
    client = client_at("unix:///nothing/here");
    assert_int_equal(ask_of(client, 0, "PING"), NXL_E_UNREACHABLE);
    nxl_client_free(client);
}

static void a_server_that_hangs(void **state)
{
    nxl_client *client = new_client("timeout_ms=200");
    asks(client, "PING");
    redis_freeze(&server);
    for (int i = 0; i < 3; i++) {
        int64_t began = test_now_ms();
        assert_int_equal(ask_of(client, 0, "INFO"), NXL_E_UNREACHABLE);
        assert_between(test_now_ms() - began, 200, 200 + LATE_MS + 200);
    }
    assert_contains(nxl_client_errmsg(client), "no answer in time");
    redis_thaw(&server);
    asks(client, "PING"); /* it gets its own answer, not a late one's */
    assert_string_equal(item(0), "PONG");
    nxl_client_free(client);
}

static void over_restarts(void **state)
{
    nxl_client *client = new_client("");
    asks(client, "PING");
    for (int i = 0; i < 3; i++) {
        redis_kill(&server);
        assert_int_equal(ask_of(client, 0, "PING"), NXL_E_UNREACHABLE);
        redis_restart(&server);
        asks(client, "PING");
    }
    nxl_client_free(client);
}

static void in_a_child(void **state)
{
    nxl_client *client = new_client("");
    asks(client, "PING");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        static const char *const words[] = {"PING"};
        struct answer *none = (struct answer *)&child;
        int rc = client_ask(client, 0, 1, words, NULL, &none);
        _exit(rc == NXL_E_FORKED && !none ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    asks(client, "PING");
    nxl_client_free(client);
}

/* ---------------------------------------------------------------- threads */

#define THREADS 8
#define QUESTIONS 150

struct asker {
    pthread_t thread;
    nxl_client *client;
    int number;
    unsigned wrong;
};

static void *ask_often(void *argument)
{
    struct asker *a = argument;
    char key[16];
    const char *words[] = {"STRLEN", key};
    for (int i = 0; i < QUESTIONS; i++) {
        struct answer *mine = NULL;
        int wanted = i % 100;
        snprintf(key, sizeof(key), "k%d", wanted);
        int rc = client_ask(a->client, 0, 2, words, NULL, &mine);
        const char *said = answer_item(mine, 0, NULL);
        a->wrong += rc != NXL_OK || !said || atoi(said) != wanted;
        answer_free(mine);
    }
    return NULL;
}

static void *lock_often(void *argument)
{
    struct asker *a = argument;
    char name[16];
    nxl_lock *lock = NULL;
    snprintf(name, sizeof(name), "lock%d", a->number);
    a->wrong += nxl_lock_new(&lock, a->client, name, NULL) != NXL_OK;
    for (int i = 0; i < QUESTIONS / 2 && a->wrong == 0; i++) {
        a->wrong += nxl_lock_acquire(lock, 0) != NXL_OK;
        a->wrong += nxl_lock_release(lock) != NXL_OK;
    }
    nxl_lock_free(lock);
    return NULL;
}

static void from_many_threads(void **state)
{
    static struct asker askers[THREADS];
    nxl_client *client = new_client("timeout_ms=20000");
    static char value[128];
    for (int i = 0; i < 100; i++) {
        char key[16];
        snprintf(key, sizeof(key), "k%d", i);
        redis_run(&server, "SET", key, value, NULL);
        value[i] = 'x';
    }
    memset(value, 0, sizeof(value));
    for (int i = 0; i < THREADS; i++) {
        askers[i] = (struct asker){.client = client, .number = i};
        assert_int_equal(pthread_create(&askers[i].thread, NULL,
                             i % 2 ? lock_often : ask_often, &askers[i]),
            0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(askers[i].thread, NULL);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(askers[i].wrong, 0);
    assert_int_equal(redis_clients(&server), 1);
    nxl_client_free(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {ask_test(every_form),
        ask_test(binary_words), ask_test(large_answers),
        ask_test(arguments_that_are_refused), ask_test(refusals),
        ask_test(a_server_that_hangs), ask_test(over_restarts),
        ask_test(in_a_child), ask_test(from_many_threads)};
    return live_run("ask") ? 1 : 0;
}

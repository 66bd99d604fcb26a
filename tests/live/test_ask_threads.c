/* SPDX-License-Identifier: MIT */
/* Questions to a real server from many threads, beside locks on the same
 * connection; and those that no server gets. scenes/ask has the answers. */
#include "api/private.h"
#include "live_rig.h"

static void arguments_that_are_refused(void **state)
{
    nxl_client *client = new_client("max_ttl_ms=45000");
    struct answer *answer = NULL;
    static const char *const words[] = {"PING", NULL};
    static const size_t lengths[] = {4, 262141};
    static char long_word[262142];
    const char *const long_words[] = {"PING", long_word};
    assert_int_equal(
        client_ask(client, 0, 2, long_words, lengths, &answer), NXL_E_INVALID);
    assert_contains(nxl_client_errmsg(client), "longer than 262144 bytes");
    assert_int_equal(
        client_ask(client, 1, 1, words, NULL, &answer), NXL_E_INVALID);
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
    assert_int_equal(nxl_client_max_ttl_ms(client), 45000);
    assert_int_equal(nxl_client_fd(client) < 0, 0);
    assert_int_equal(
        client_ask(client, 0, 1, words, NULL, &answer), NXL_E_INVALID);
    assert_null(answer);
    assert_contains(nxl_client_errmsg(client), "event-loop API");
    assert_int_equal(answer_count(NULL), 0);
    assert_null(answer_item(NULL, 0, NULL));
    answer_free(NULL);
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
    const struct CMUnitTest tests[] = {
        live_test(arguments_that_are_refused),
        live_test(from_many_threads),
    };
    return live_run("ask, from threads") ? 1 : 0;
}

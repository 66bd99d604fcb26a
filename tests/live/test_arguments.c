/* SPDX-License-Identifier: MIT */
/*
 * Arguments that no scene can give: NULL, options of the structures, and
 * structures of other sizes, as programs have that were built with an older or
 * a newer header; and questions that no server gets (scenes/ask has the
 * answers to others).
 */
#include "api/private.h"
#include "live/live_rig.h"

#define RUBBISH 0xee

static const char foreign[] = "123e4567-e89b-42d3-a456-426614174000@them";

static void null_is_refused(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = (nxl_lock *)client;
    nxl_lock_options options = OPTIONS(.name_length = 3);
    assert_int_equal(nxl_lock_new(&lock, client, NULL, NULL), NXL_E_INVALID);
    assert_contains(nxl_client_errmsg(client), "the name is NULL");
    assert_null(lock);
    assert_int_equal(
        nxl_lock_new(&lock, client, NULL, &options), NXL_E_INVALID);
    assert_contains(nxl_client_errmsg(client), "the name is NULL");
    assert_int_equal(nxl_lock_new(NULL, client, "x", NULL), NXL_E_INVALID);
    lock = (nxl_lock *)client;
    assert_int_equal(nxl_lock_new(&lock, NULL, "x", NULL), NXL_E_INVALID);
    assert_null(lock);
    assert_int_equal(nxl_client_holds(NULL, "job", 3), 0);
    assert_int_equal(nxl_client_holds(client, NULL, 3), 0);
    lock = new_lock(client, "job", 5000);
    assert_int_equal(nxl_lock_fence(NULL), 0);
    assert_int_equal(nxl_lock_interrupt(NULL), NXL_E_INVALID);
    assert_int_equal(nxl_lock_break(lock, NULL), NXL_E_INVALID);
    assert_int_equal(nxl_lock_adopt(lock, NULL), NXL_E_INVALID);
    end(lock, client);
}

/* What is asked about nothing, or about too much, is answered without harm. */
static void questions_about_nothing(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "job", 5000);
    nxl_server_facts facts = NXL_SERVER_FACTS_INIT;
    nxl_holder holder = NXL_HOLDER_INIT;
    char text[64] = "?";
    assert_string_equal(nxl_lock_errmsg(NULL), "the lock is NULL");
    assert_string_equal(nxl_lock_errmsg_at(NULL, 0), "the lock is NULL");
    assert_string_equal(nxl_lock_errmsg_at(lock, 1), "");
    assert_int_equal(nxl_lock_loss(NULL, text, sizeof(text)), NXL_LOSS_NONE);
    assert_string_equal(text, "");
    assert_int_equal(nxl_lock_loss(lock, text, 0), NXL_LOSS_NONE);
    assert_int_equal(nxl_client_loss_fd(NULL), -1);
    assert_int_equal(nxl_client_describe(NULL, text, sizeof(text)), 0);
    assert_int_equal(nxl_client_describe_server(client, 1, text, 1), 0);
    assert_int_equal(nxl_client_server_facts(NULL, 0, &facts), NXL_E_INVALID);
    assert_int_equal(nxl_client_server_facts(client, 0, NULL), NXL_E_INVALID);
    assert_int_equal(nxl_client_server_facts(client, 1, &facts), NXL_E_INVALID);
    facts.size = offsetof(nxl_server_facts, url) - 1;
    assert_int_equal(nxl_client_server_facts(client, 0, &facts), NXL_E_INVALID);
    assert_int_equal(nxl_lock_holder(NULL, &holder), NXL_E_INVALID);
    assert_int_equal(nxl_lock_holder(lock, NULL), NXL_E_INVALID);
    assert_int_equal(nxl_lock_holder_at(NULL, 0, 0, &holder), NXL_E_INVALID);
    assert_int_equal(nxl_lock_holder_at(lock, 0, 0, NULL), NXL_E_INVALID);
    end(lock, client);
}

/* The prefix of the options, which needs no escapes. */
static void prefix_of_the_options(void **state)
{
    nxl_client *client;
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    options.prefix = "two words ";
    assert_int_equal(nxl_client_new(&client, server_url, &options), NXL_OK);
    nxl_lock *lock = new_lock(client, "x", 5000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_value("two words x", nxl_lock_token(lock));
    end(lock, client);
}

/* ------------------------------------------------------- sizes of a holder */

/* The bytes behind the size that a caller gives are its own. */
union caller {
    nxl_holder holder;
    unsigned char bytes[sizeof(nxl_holder) + 64];
};

static int ask_inspect(nxl_lock *lock, nxl_holder *holder)
{
    return nxl_lock_inspect(lock, holder);
}

static int ask_holder(nxl_lock *lock, nxl_holder *holder)
{
    return nxl_lock_holder(lock, holder);
}

static int ask_holder_at(nxl_lock *lock, nxl_holder *holder)
{
    return nxl_lock_holder_at(lock, 0, 0, holder);
}

static void caller_of_size(union caller *caller, size_t size)
{
    memset(caller, RUBBISH, sizeof(*caller));
    caller->holder.size = size;
}

static void shows_as_much_as_fits(
    int (*ask)(nxl_lock *, nxl_holder *), nxl_lock *lock, size_t size)
{
    union caller caller;
    nxl_holder *seen = &caller.holder;
    size_t known = size < sizeof(*seen) ? size : sizeof(*seen);

    caller_of_size(&caller, size);
    assert_result(ask(lock, seen), NXL_OK, lock);
    assert_int_equal(seen->size, size);
    assert_string_equal(seen->value, foreign);
    assert_int_equal(seen->value_length, strlen(foreign));
    assert_false(seen->truncated);
    assert_false(seen->ours);
    assert_true(nxl_holder_is(seen, foreign));
    if (size >= offsetof(nxl_holder, left_ms))
        assert_ptr_equal(seen->label, seen->value + 37);
    if (size >= offsetof(nxl_holder, value_ends_s))
        assert_between(seen->left_ms, 50000, 60000);
    if (size >= sizeof(*seen))
        assert_int_equal(seen->value_ends_s, 0);
    for (size_t i = known; i < sizeof(caller); i++)
        assert_int_equal(caller.bytes[i], RUBBISH);
}

static void refuses_the_size(
    int (*ask)(nxl_lock *, nxl_holder *), nxl_lock *lock, size_t size)
{
    union caller caller, before;

    caller_of_size(&caller, size);
    before = caller;
    assert_int_equal(ask(lock, &caller.holder), NXL_E_INVALID);
    assert_memory_equal(&caller, &before, sizeof(caller));
}

static void too_small_for_break(nxl_lock *lock, size_t size)
{
    union caller caller = {.holder = NXL_HOLDER_INIT};

    strcpy(caller.holder.value, foreign);
    caller.holder.value_length = strlen(foreign);
    caller.holder.size = size;
    assert_false(nxl_holder_is(&caller.holder, foreign));
    assert_result(nxl_lock_break(lock, &caller.holder), NXL_E_INVALID, lock);
    assert_contains(nxl_lock_errmsg(lock), "NXL_HOLDER_INIT");
    assert_value("job", foreign);
}

static void holders_of_every_size(void **state)
{
    static const struct {
        size_t size;
        bool fits;
    } sizes[] = {{0, false}, {sizeof(size_t), false},
        {offsetof(nxl_holder, ours), false},
        {offsetof(nxl_holder, label) - 1, false},
        {offsetof(nxl_holder, label), true},
        {offsetof(nxl_holder, left_ms), true},
        {offsetof(nxl_holder, value_ends_s), true}, {sizeof(nxl_holder), true},
        {sizeof(nxl_holder) + 8, true}, {sizeof(union caller), true}};
    /* The last two show what the inspection before them found. */
    static int (*const asks[])(nxl_lock *, nxl_holder *) = {
        ask_inspect, ask_holder, ask_holder_at};
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "job", 5000);

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        size_t size = sizes[i].size;
        union caller caller;
        stranger_sets("job", foreign, 60000);
        if (!sizes[i].fits) {
            refuses_the_size(ask_inspect, lock, size);
            assert_contains(nxl_lock_errmsg(lock), "NXL_HOLDER_INIT");
            assert_result(nxl_lock_inspect(lock, NULL), NXL_OK, lock);
            refuses_the_size(ask_holder, lock, size);
            refuses_the_size(ask_holder_at, lock, size);
            too_small_for_break(lock, size);
            continue;
        }
        for (size_t k = 0; k < sizeof(asks) / sizeof(*asks); k++)
            shows_as_much_as_fits(asks[k], lock, size);
        caller_of_size(&caller, size);
        assert_result(nxl_lock_inspect(lock, &caller.holder), NXL_OK, lock);
        assert_result(nxl_lock_break(lock, &caller.holder), NXL_OK, lock);
        assert_false(redis_exists(&server, "job"));
    }
    end(lock, client);
}

static void holders_by_index(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "job", 5000);
    nxl_holder seen = NXL_HOLDER_INIT;

    stranger_sets("job", foreign, 60000);
    assert_result(nxl_lock_inspect(lock, NULL), NXL_OK, lock);
    assert_int_equal(nxl_lock_holder_at(lock, 0, SIZE_MAX, &seen), NXL_FREE);
    assert_int_equal(seen.value_length, 0);
    assert_int_equal(nxl_lock_holder_at(lock, 1, 1, &seen), NXL_E_INVALID);
    assert_int_equal(nxl_lock_holder_at(lock, 0, 0, &seen), NXL_OK);
    assert_string_equal(seen.value, foreign);
    end(lock, client);
}

static void questions_that_are_refused(void **state)
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
    assert_contains(nxl_client_errmsg(client), "has 1 to 64 words");
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

/* A Unix time is a token too. */
static void whose_token_it_is(void **state)
{
    nxl_client *client = new_client("scheme=timestamp");
    nxl_lock *lock = new_lock(client, "k", 5000);
    nxl_holder holder = NXL_HOLDER_INIT;
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_inspect(lock, &holder), NXL_OK, lock);
    assert_true(holder.ours);
    assert_true(nxl_holder_is(&holder, nxl_lock_token(lock)));
    assert_true(nxl_holder_is(&holder, holder.value));
    assert_false(nxl_holder_is(&holder, foreign));
    assert_false(nxl_holder_is(&holder, ""));
    assert_false(nxl_holder_is(&holder, NULL));
    assert_false(nxl_holder_is(NULL, foreign));
    redis_run(&server, "SET", "k", foreign, NULL);
    assert_result(nxl_lock_inspect(lock, &holder), NXL_OK, lock);
    assert_true(nxl_holder_is(&holder, foreign));
    assert_false(nxl_holder_is(&holder, nxl_lock_token(lock)));
    end(lock, client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        live_test(null_is_refused),
        live_test(questions_about_nothing),
        live_test(prefix_of_the_options),
        live_test(holders_of_every_size),
        live_test(holders_by_index),
        live_test(questions_that_are_refused),
        live_test(whose_token_it_is),
    };
    return live_run_long("arguments");
}

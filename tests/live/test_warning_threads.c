/* SPDX-License-Identifier: MIT */
/*
 * The warning that locks promise less, once for many threads, and with a
 * callback that uses the client; and whose token a Unix time is. What is warned
 * of, and when: live/scenes/warning.scenes.
 */
#include "live/live_rig.h"

#define STAMPS "scheme=timestamp"

static struct told {
    _Atomic int times;
    char text[512];
    nxl_client *asks; /* a client that is used in it */
} told;

static void listen_to(void *arg, const char *text)
{
    struct told *t = arg;

    snprintf(t->text, sizeof(t->text), "%s", text);
    if (t->asks) {
        char description[256];
        assert_true(
            nxl_client_describe(t->asks, description, sizeof(description)) > 0);
        end(new_lock(t->asks, "other", 1000), NULL);
    }
    t->times++;
}

static nxl_client *listener(const char *parameters)
{
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    nxl_client *client;
    char url[512];

    told.times = 0;
    told.text[0] = '\0';
    told.asks = NULL;
    options.warning = listen_to;
    options.warning_arg = &told;
    snprintf(url, sizeof(url), "%s?%s", server_url, parameters);
    assert_int_equal(nxl_client_new(&client, url, &options), NXL_OK);
    return client;
}

static void *a_thread_s_cycles(void *arg)
{
    nxl_lock *lock = arg;
    for (int i = 0; i < 50; i++) {
        if (nxl_lock_acquire(lock, 5000) != NXL_OK ||
            nxl_lock_release(lock) != NXL_OK)
            return lock;
    }
    return NULL;
}

static void warned_once_by_many_threads(void **state)
{
    nxl_client *client = listener(STAMPS);
    nxl_lock *lock[4];
    pthread_t thread[4];
    told.asks = client;
    for (int i = 0; i < 4; i++) {
        char name[8];
        snprintf(name, sizeof(name), "k%d", i);
        lock[i] = new_lock(client, name, 5000);
        pthread_create(&thread[i], NULL, a_thread_s_cycles, lock[i]);
    }
    for (int i = 0; i < 4; i++) {
        void *failed;
        pthread_join(thread[i], &failed);
        assert_null(failed);
        nxl_lock_free(lock[i]);
    }
    assert_int_equal(told.times, 1);
    nxl_client_free(client);
}

/* ----------------------------------------------------------- whose token */

static void token_of_a_timestamp(void **state)
{
    nxl_client *client = new_client(STAMPS);
    nxl_lock *lock = new_lock(client, "k", 5000);
    nxl_holder holder = NXL_HOLDER_INIT;
    char other[] = "6fa459ea-ee8a-4ca4-894e-db77e160355e";
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_inspect(lock, &holder), NXL_OK, lock);
    assert_true(holder.ours);
    assert_true(nxl_holder_is(&holder, nxl_lock_token(lock)));
    assert_true(nxl_holder_is(&holder, holder.value));
    assert_false(nxl_holder_is(&holder, other));
    assert_false(nxl_holder_is(&holder, ""));
    assert_false(nxl_holder_is(&holder, NULL));
    assert_false(nxl_holder_is(NULL, other));
    redis_run(&server, "SET", "k", other, NULL);
    assert_result(nxl_lock_inspect(lock, &holder), NXL_OK, lock);
    assert_true(nxl_holder_is(&holder, other));
    assert_false(nxl_holder_is(&holder, nxl_lock_token(lock)));
    end(lock, client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        live_test(warned_once_by_many_threads),
        live_test(token_of_a_timestamp),
    };
    return live_run("weaker promises");
}

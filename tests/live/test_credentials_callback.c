/* SPDX-License-Identifier: MIT */
/*
 * A callback for credentials that fails, takes long, forks, or is running when
 * the client is freed: nothing but the connection waits for it.
 */
#include "live/credentials_rig.h"
#include "live/renew_rig.h"

#include <errno.h>
#include <sys/wait.h>

#include "base/redact.h"

static void callback_fails_once(void **state)
{
    nxl_client *client = app_client();
    nxl_lock *lock = new_lock(client, "name", 5000);
    source_fails("no token", (unsigned)on.servers);
    assert_result(acquire(client, lock, 0), NXL_E_UNREACHABLE, lock);
    assert_contains(
        nxl_lock_errmsg(lock), "the credentials callback failed: no token");
    assert_acquired(client, lock);
    end(lock, client);
}

static void wait_outlasts_failing_callbacks(void **state)
{
    nxl_client *client = app_client();
    nxl_lock *lock = new_lock(client, "name", 5000);
    source_fails("no token", 3 * (unsigned)on.servers);
    assert_result(acquire(client, lock, 20000), NXL_OK, lock);
    assert_true(atomic_load(&supply.calls) > 3);
    end(lock, client);
}

/* The reason may hold a password that has never been in use. */
static void reason_of_a_failure_is_shown_without_secrets(void **state)
{
    static const struct {
        const char *user, *password, *why, *shown;
    } rows[] = {
        {"", SECRET "new", "got " SECRET "new, late",
            "failed: " REDACTED_SECRET},
        {"", SECRET "one", "a\nb " SECRET "one", "failed: " REDACTED_SECRET},
        {"", SECRET "new", "a\nb", "failed: a\\x0ab"},
        {"", "", "", "callback failed"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        nxl_client *client = app_client();
        nxl_lock *lock = new_lock(client, "name", 5000);
        source_gives(rows[i].password);
        source_fails(rows[i].why, 1000);
        assert_result(acquire(client, lock, 0), NXL_E_UNREACHABLE, lock);
        assert_contains(nxl_lock_errmsg(lock), rows[i].shown);
        end(lock, client);
    }
}

static void empty_password_of_the_callback(void **state)
{
    nxl_client *client = app_client();
    nxl_lock *lock = new_lock(client, "name", 5000);
    source_gives("");
    assert_result(acquire(client, lock, 0), NXL_E_UNREACHABLE, lock);
    assert_contains(nxl_lock_errmsg(lock), "it left the password empty");
    end(lock, client);
}

static bool fills_everything(void *arg, nxl_credentials *c)
{
    (void)arg;
    memset(c->password, 'x', sizeof(c->password));
    memset(c->why, 'y', sizeof(c->why));
    return true;
}

static void unterminated_password_of_the_callback(void **state)
{
    nxl_client_options options = CREDENTIALS_OPTIONS;
    nxl_client *client;
    options.credentials = fills_everything;
    assert_int_equal(nxl_client_new(&client, url_of(0), &options), NXL_OK);
    nxl_lock *lock = new_lock(client, "name", 5000);
    assert_result(acquire(client, lock, 0), NXL_E_UNREACHABLE, lock);
    assert_contains(
        nxl_lock_errmsg(lock), "the password is not zero-terminated");
    end(lock, client);
}

/* IAM's tokens are long. Its user goes before the URL's. */
static void long_password_and_user_of_the_callback(void **state)
{
    char token[8193] = SECRET;
    memset(token + strlen(token), 't', sizeof(token) - 1 - strlen(token));
    servers_make_user(token);
    source_gives(token);
    nxl_client *client = app_client();
    nxl_lock *lock = new_lock(client, "name", 5000);
    source_user("other");
    assert_result(acquire(client, lock, 0), NXL_E_DENIED, lock);
    source_user("app");
    assert_acquired(client, lock);
    connect_app(client); /* or one that is on its way would be closed late */
    source_user("");
    servers_close_connections();
    look_again();
    assert_acquired(client, lock);
    connect_app(client);
    for (size_t i = 0; i < on.servers; i++)
        assert_true(app_is_on(i));
    /* It was called for each of them. */
    pthread_mutex_lock(&supply.mutex);
    unsigned servers_asked = supply.servers;
    pthread_mutex_unlock(&supply.mutex);
    assert_int_equal(servers_asked, (1U << on.servers) - 1);
    end(lock, client);
}

/* The token that was refused has expired meanwhile: one call, no failure. */
static void refused_credentials_are_asked_for_again(void **state)
{
    nxl_client *client = app_client();
    nxl_lock *lock = new_lock(client, "name", 5000);
    servers_make_user(SECRET "two");
    source_gives_next(SECRET "two");
    assert_result(acquire(client, lock, 0), NXL_OK, lock);
    connect_app(client);
    /* The second server's result may not have been needed for a majority, and
     * is fetched anew if it has been left lying. */
    assert_true(atomic_load(&supply.calls) > on.servers);
    assert_true(on.servers > 1 || atomic_load(&supply.calls) == 2);
    end(lock, client);
}

/* -------------------------------------------------------------- it is slow */

static void await_entered(size_t times)
{
    while (times-- > 0)
        while (sem_wait(&supply.entered) != 0)
            ;
}

static void let_go(void)
{
    source_hangs(false);
    for (size_t i = 0; i < 100; i++)
        sem_post(&supply.leave);
    assert_eventually(atomic_load(&supply.running) == 0);
}

/* The call ends in time. The result of the same call of the callback serves
 * the next attempt. */
static void callback_slower_than_the_timeout(void **state)
{
    unsigned late = 0;
    nxl_client *client = app_client_with(TIMEOUT_MS);
    nxl_lock *lock = new_lock(client, "name", 5000);
    source_hangs(true);
    int64_t before = test_now_ms();
    assert_result(acquire(client, lock, 0), NXL_E_UNREACHABLE, lock);
    assert_between(test_now_ms() - before, 0, TIMEOUT_MS + LATE_MS);
    assert_contains(
        nxl_lock_errmsg(lock), "the credentials callback has not returned");
    assert_result(acquire(client, lock, 50), NXL_E_UNREACHABLE, lock);
    assert_int_equal(atomic_load(&supply.calls), on.servers);
    let_go();
    /* Only an attempt that takes the result and is late nevertheless has to ask
     * again. */
    while (acquire(client, lock, 0) == NXL_E_UNREACHABLE && late < 50)
        late++;
    assert_true(nxl_lock_held(lock));
    assert_between(
        atomic_load(&supply.calls), on.servers, (1 + late) * on.servers);
    end(lock, client);
}

/* Of three servers one is connected anew, and its callback hangs. */
static void other_servers_go_on_while_a_callback_hangs(void **state)
{
    if (on.servers < 3)
        return;
    nxl_client *client = app_client();
    nxl_lock *held = lock_with(client, "held", .ttl_ms = 900, .renew = 1);
    nxl_lock *lock = new_lock(client, "name", 5000);
    connect_app(client);
    assert_result(acquire(client, held, 0), NXL_OK, held);
    source_hangs(true);
    redis_run(&servers[1], "CLIENT", "KILL", "USER", "app", NULL);
    look_again();
    for (uint64_t end = stats_of(client).renewals + 3;
         stats_of(client).renewals < end;) {
        assert_acquired(client, lock);
        assert_true(nxl_lock_held(held));
        assert_true(app_is_on(0) && app_is_on(2));
    }
    assert_int_equal(atomic_load(&supply.running), 1);
    let_go();
    connect_app(client);
    assert_true(app_is_on(1));
    assert_result(release(client, held), NXL_OK, held);
    nxl_lock_free(held);
    end(lock, client);
}

/* ---------------------------------------------------------- it ends, and fork
 */

static atomic_bool is_freed;

static void *free_it(void *client)
{
    nxl_client_free(client);
    atomic_store(&is_freed, true);
    return NULL;
}

/* Freeing the client returns when the callbacks that run have returned. */
static void assert_freeing_waits(nxl_client *client, nxl_lock *lock)
{
    pthread_t thread;
    nxl_lock_free(lock);
    atomic_store(&is_freed, false);
    assert_int_equal(pthread_create(&thread, NULL, free_it, client), 0);
    test_pause_ms(50); /* it would be over by then */
    assert_false(atomic_load(&is_freed));
    let_go();
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(atomic_load(&supply.running), 0);
}

static void freeing_waits_for_the_callback(void **state)
{
    nxl_client *client = app_client_with(TIMEOUT_MS);
    nxl_lock *lock = new_lock(client, "name", 5000);
    source_hangs(true);
    assert_result(acquire(client, lock, 0), NXL_E_UNREACHABLE, lock);
    await_entered(on.servers);
    assert_int_equal(atomic_load(&supply.running), on.servers);
    assert_freeing_waits(client, lock);
    /* After that it is never called again. */
    assert_int_equal(atomic_load(&supply.calls), on.servers);
}

/* Sentinels have a login of their own. Their addresses lead nowhere: it is
 * called before they are connected to. */
static void freeing_waits_for_the_callback_of_sentinels(void **state)
{
    enum { SENTINELS = 3 };
    static const char url[] = "redis+sentinel://127.0.0.1:1,127.0.0.1:2,"
                              "127.0.0.1:3/svc?sentinel_user=watcher";
    nxl_client_options options = CREDENTIALS_OPTIONS;
    nxl_client *client;
    options.guard_restarts = NXL_GUARD_AUTO;
    options.timeout_ms = TIMEOUT_MS;
    assert_int_equal(nxl_client_new(&client, url, &options), NXL_OK);
    nxl_lock *lock = new_lock(client, "name", 5000);
    source_hangs(true);
    assert_int_not_equal(acquire(client, lock, 0), NXL_OK);
    await_entered(SENTINELS);
    assert_int_equal(atomic_load(&supply.for_sentinels), SENTINELS);
    assert_freeing_waits(client, lock);
}

static int in_child(nxl_client *client, nxl_lock *lock)
{
    unsigned before = atomic_load(&supply.calls);
    int rc =
        by_loop ? nxl_lock_acquire_start(lock, 0) : nxl_lock_acquire(lock, 0);
    nxl_client_free(client); /* does not wait for the parent's thread */
    return rc == NXL_E_FORKED && atomic_load(&supply.calls) == before ? 0 : 1;
}

static void forked_child_does_not_call_the_callback(void **state)
{
    int status = -1;
    nxl_client *client = app_client_with(TIMEOUT_MS);
    nxl_lock *lock = new_lock(client, "name", 5000);
    source_hangs(true);
    assert_result(acquire(client, lock, 0), NXL_E_UNREACHABLE, lock);
    await_entered(on.servers);
    pid_t child = test_fork();
    if (child == 0)
        _exit(in_child(client, lock));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    let_go();
    assert_result(acquire(client, lock, 20000), NXL_OK, lock);
    end(lock, client);
}

static atomic_int children;

/* As popen() does, for a token from a command. */
static bool forks(void *arg, nxl_credentials *c)
{
    int status = -1;
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    pid_t child = fork();
    if (child == 0)
        _exit(7);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    atomic_fetch_add(&children, WIFEXITED(status) && WEXITSTATUS(status) == 7 &&
                                    sigismember(&mask, SIGTERM));
    return supply_credentials(arg, c);
}

static void callback_may_fork(void **state)
{
    nxl_client_options options = CREDENTIALS_OPTIONS;
    char url[512];
    nxl_client *client;
    snprintf(url, sizeof(url), "%s?user=app", url_of(0));
    options.credentials = forks;
    atomic_store(&children, 0);
    assert_int_equal(nxl_client_new(&client, url, &options), NXL_OK);
    nxl_lock *lock = new_lock(client, "name", 5000);
    assert_acquired(client, lock);
    assert_int_equal(atomic_load(&children), 1);
    end(lock, client);
}

/* -------------------------------------------------------- several sources */

/* A password or a file of the URL goes before the callback. */
static void password_of_the_url_goes_before_the_callback(void **state)
{
    static const char *const forms[] = {
        "user=app&password=" SECRET "one", "user=app&password_file=%s"};
    for (size_t i = 0; i < 2; i++) {
        nxl_client_options options = CREDENTIALS_OPTIONS;
        char parameters[512], list[URLS_ROOM] = "";
        nxl_client *client;
        /* clang-format off */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-extra-args"
        snprintf(parameters, sizeof(parameters), forms[i], with.path);
#pragma GCC diagnostic pop
        /* clang-format on */
        for (size_t n = 0; n < on.servers; n++)
            add_url(list, url_of(n), parameters);
        assert_int_equal(nxl_client_new(&client, list, &options), NXL_OK);
        nxl_lock *lock = new_lock(client, "name", 5000);
        assert_acquired(client, lock);
        connect_app(client);
        assert_int_equal(atomic_load(&supply.calls), 0);
        end(lock, client);
    }
}

static const struct CMUnitTest tests[] = {
    credentials_test(callback_fails_once),
    credentials_test(wait_outlasts_failing_callbacks),
    credentials_test(reason_of_a_failure_is_shown_without_secrets),
    credentials_test(empty_password_of_the_callback),
    credentials_test(unterminated_password_of_the_callback),
    credentials_test(long_password_and_user_of_the_callback),
    credentials_test(refused_credentials_are_asked_for_again),
    credentials_test(callback_slower_than_the_timeout),
    credentials_test(other_servers_go_on_while_a_callback_hangs),
    credentials_test(freeing_waits_for_the_callback),
    credentials_test(freeing_waits_for_the_callback_of_sentinels),
    credentials_test(forked_child_does_not_call_the_callback),
    credentials_test(callback_may_fork),
    credentials_test(password_of_the_url_goes_before_the_callback),
};

int main(void)
{
    int failed = 0;
    for (int i = 0; i < 2; i++) {
        by_loop = i;
        failed += on_run(one_tcp,
            i ? "callback (event loop, one server)"
              : "callback (blocking, one server)",
            tests);
        failed += on_run(three,
            i ? "callback (event loop, three servers)"
              : "callback (blocking, three servers)",
            tests);
    }
    return failed;
}

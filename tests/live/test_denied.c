/* SPDX-License-Identifier: MIT */
/*
 * Passwords, users, rights and databases: a client that is not let in, or not
 * where it was to go, writes nothing anywhere, and says so without showing a
 * password.
 */
#include "live/live_rig.h"

static bool by_tcp;

static int guarded_tcp(void **state)
{
    by_tcp = true;
    return redis_start(&server, "--requirepass", "sesame", NULL);
}

static int guarded_unix(void **state)
{
    by_tcp = false;
    return redis_start(&server, "--requirepass", "sesame", NULL);
}

static int clean(void **state)
{
    if (redis_needs_acl(&server) != 0)
        return -1;
    redis_run(&server, "ACL", "SETUSER", "alice", "reset", "on", ">secret",
        "~*", "&*", "+@all", NULL);
    redis_run(&server, "ACL", "LOG", "RESET", NULL);
    return live_clean(state);
}

#define denied_test(function) cmocka_unit_test_setup(function, clean)

/* login: "user:password@" or "". tail: "?db=3" or "". */
static nxl_client *login(struct redis *r, const char *who, const char *tail)
{
    char url[512];
    if (by_tcp)
        snprintf(url, sizeof(url), "%s://%s127.0.0.1:%u/%s", r->scheme, who,
            (unsigned)r->port, tail);
    else
        snprintf(url, sizeof(url), "unix://%s%s%s", who, r->path, tail);
    return client_at(url);
}

static const char *place(struct redis *r)
{
    return by_tcp ? r->url : r->unix_url;
}

/* No operation gets through, and nothing was written or even asked for. */
static void assert_denied(nxl_client *client, const char *words)
{
    static const char token[] = "123e4567-e89b-42d3-a456-426614174000";
    nxl_lock *lock = new_lock(client, "job", 5000);
    nxl_holder holder = NXL_HOLDER_INIT;
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_DENIED, lock);
    assert_told(lock, place(&server), words, "check the user and password");
    assert_null(strstr(nxl_lock_errmsg(lock), "wrong-one"));
    assert_null(strstr(nxl_lock_errmsg(lock), "secret"));
    assert_result(nxl_lock_acquire(lock, 100), NXL_E_DENIED, lock);
    assert_result(nxl_lock_inspect(lock, &holder), NXL_E_DENIED, lock);
    assert_result(nxl_lock_adopt(lock, token), NXL_E_DENIED, lock);
    assert_told(lock, place(&server), words, "check the user and password");
    assert_false(nxl_lock_held(lock));
    end(lock, client);
    assert_int_equal(redis_run(&server, "DBSIZE", NULL), 0);
}

static void no_password(void **state)
{
    assert_denied(login(&server, "", ""),
        "NOAUTH Authentication required; check the user");
}

static void wrong_password(void **state)
{
    assert_denied(login(&server, ":wrong-one@", ""), "WRONGPASS");
    assert_denied(login(&server, "alice:wrong-one@", ""), "WRONGPASS");
    assert_denied(login(&server, "nobody:wrong-one@", ""), "WRONGPASS");
    assert_int_equal(redis_calls(&server, "set"), 0);
    assert_int_equal(redis_calls(&server, "evalsha"), 0);
}

static void switched_off_user(void **state)
{
    redis_run(&server, "ACL", "SETUSER", "alice", "off", NULL);
    assert_denied(login(&server, "alice:secret@", ""), "WRONGPASS");
    assert_int_equal(redis_calls(&server, "set"), 0);
}

/* A cycle that succeeds, in this database, as this user. */
static void assert_admitted(nxl_client *client, const char *user, int db)
{
    char words[64];
    nxl_lock *lock = new_lock(client, "job", 5000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_extend(lock, 6000), NXL_OK, lock);
    redisReply *list = redis_command(&server, "CLIENT", "LIST", NULL);
    snprintf(words, sizeof(words), " user=%s ", user);
    assert_contains(list->str, words);
    snprintf(words, sizeof(words), " db=%d ", db);
    assert_contains(list->str, words);
    freeReplyObject(list);
    assert_int_equal(redis_run(&server, "DBSIZE", NULL), db == 0 ? 1 : 0);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    end(lock, client);
}

static void right_password(void **state)
{
    assert_admitted(login(&server, ":sesame@", ""), "default", 0);
    assert_admitted(login(&server, "alice:secret@", ""), "alice", 0);
    assert_admitted(
        login(&server, "", "?user=alice&password=secret"), "alice", 0);
    redis_run(&server, "ACL", "SETUSER", "alice", ">a b@/:?%", NULL);
    assert_admitted(
        login(&server, "alice:a%20b%40%2f%3a%3f%25@", ""), "alice", 0);
}

/* Where everybody may do everything, a lock command behind a refused AUTH
 * would be done all the same, as somebody else. */
static void wrong_password_at_an_open_server(void **state)
{
    struct redis open;
    redis_start(&open, NULL);
    static const char *const logins[] = {
        ":wrong-one@", "alice:wrong-one@", "default:wrong-one@"};
    redis_run(
        &open, "ACL", "SETUSER", "alice", "on", ">secret", "~*", "+@all", NULL);
    for (int i = 0; i < 3; i++) {
        nxl_client *client = login(&open, logins[i], "");
        nxl_lock *lock = new_lock(client, "job", 5000);
        int expected = i == 2 ? NXL_OK : NXL_E_DENIED; /* nopass takes any */
        assert_result(nxl_lock_acquire(lock, 0), expected, lock);
        assert_int_equal(redis_run(&open, "DBSIZE", NULL), i == 2);
        assert_int_equal(redis_calls(&open, "set"), i == 2);
        if (i < 2)
            assert_told(lock, place(&open), i == 0 ? "AUTH" : "WRONGPASS",
                "check the user and password");
        end(lock, client);
    }
    redis_stop(&open);
}

/* ------------------------------------------------------------------- rights */

static void user_without_the_key(void **state)
{
    redis_run(&server, "ACL", "SETUSER", "alice", "resetkeys", "~mine:*", NULL);
    nxl_client *client = login(&server, "alice:secret@", "");
    nxl_lock *lock = new_lock(client, "job", 5000);
    nxl_lock *good = new_lock(client, "mine:job", 5000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_DENIED, lock);
    assert_told(lock, place(&server), "NOPERM", "allow the user this command");
    assert_result(nxl_lock_acquire(good, 0), NXL_OK, good);
    assert_result(nxl_lock_release(good), NXL_OK, good);
    nxl_lock_free(good);
    end(lock, client);
    assert_int_equal(redis_run(&server, "DBSIZE", NULL), 0);
}

/* A reader is granted the lock before it draws a number. Without permission for
 * that it is told so, and what it was granted is removed. That this has been
 * done is not known when the call ends, so the result is unknown. */
static void reader_without_the_counter(void **state)
{
    redis_run(&server, "ACL", "SETUSER", "alice", "resetkeys", "~job",
        "~{job}:nxl*", NULL);
    nxl_client *client = login(&server, "alice:secret@", "");
    nxl_lock *lock = lock_with(client, "job", .shared = 1, .fence = 1);
    nxl_lock *plain = lock_with(client, "job", .shared = 1);
    assert_result(nxl_lock_acquire(lock, 0), NXL_UNKNOWN, lock);
    assert_told(lock, place(&server), "NOPERM", "allow the user this command");
    assert_result(nxl_lock_acquire(lock, 20000), NXL_UNKNOWN, lock);
    assert_result(nxl_lock_acquire(plain, 20000), NXL_OK, plain);
    assert_result(nxl_lock_release(plain), NXL_OK, plain);
    assert_int_equal(redis_run(&server, "DBSIZE", NULL), 0);
    nxl_lock_free(plain);
    end(lock, client);
}

/* Who may not run what would show the holders is not told that the key is no
 * lock; where it is none, that is said to those who may. */
static void readers_that_may_not_be_seen(void **state)
{
    nxl_client *owner = login(&server, "default:sesame@", "");
    nxl_lock *reader = lock_with(owner, "job", .shared = 1);
    nxl_client *client = login(&server, "alice:secret@", "");
    nxl_lock *lock = new_lock(client, "job", 5000);
    nxl_holder holder = NXL_HOLDER_INIT;
    assert_result(nxl_lock_acquire(reader, 0), NXL_OK, reader);
    assert_result(nxl_lock_inspect(lock, &holder), NXL_OK, lock);
    redis_run(&server, "ACL", "SETUSER", "alice", "-zrange", NULL);
    assert_result(nxl_lock_inspect(lock, &holder), NXL_E_DENIED, lock);
    assert_told(lock, place(&server), "", "+zrange");
    redis_run(&server, "ACL", "SETUSER", "alice", "+zrange", "-evalsha", NULL);
    for (int i = 0; i < 2; i++) { /* also once it is known */
        assert_result(nxl_lock_inspect(lock, &holder), NXL_E_DENIED, lock);
        assert_told(lock, place(&server), "'evalsha'", "allow the user");
    }
    assert_result(nxl_lock_release(reader), NXL_OK, reader);
    assert_result(nxl_lock_inspect(lock, &holder), NXL_FREE, lock);
    redis_run(&server, "RPUSH", "job", "one", NULL);
    assert_result(nxl_lock_inspect(lock, &holder), NXL_E_DENIED, lock);
    redis_run(&server, "ACL", "SETUSER", "alice", "+evalsha", NULL);
    assert_result(nxl_lock_inspect(lock, &holder), NXL_E_WRONG_TYPE, lock);
    end(lock, client);
    end(reader, owner);
}

/* ---------------------------------------------------------------- databases */

static void database_of_the_url(void **state)
{
    assert_admitted(login(&server, "alice:secret@", "?db=3"), "alice", 3);
    assert_int_equal(redis_run(&server, "DBSIZE", NULL), 0);
}

static void refused_database(void **state)
{
    nxl_client *client = login(&server, "alice:secret@", "?db=99");
    nxl_lock *lock = new_lock(client, "job", 5000);
    nxl_holder holder = NXL_HOLDER_INIT;
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_SERVER, lock);
    assert_told(lock, place(&server), "DB index is out of range",
        "choose an existing database: /N at the end of the URL");
    assert_result(nxl_lock_acquire(lock, 100), NXL_E_SERVER, lock);
    assert_result(nxl_lock_inspect(lock, &holder), NXL_E_SERVER, lock);
    end(lock, client);

    redis_run(&server, "ACL", "SETUSER", "alice", "-select", NULL);
    client = login(&server, "alice:secret@", "?db=3");
    lock = new_lock(client, "job", 5000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_DENIED, lock);
    assert_told(
        lock, place(&server), "'select'", "allow the user this command");
    end(lock, client);
    assert_int_equal(redis_run(&server, "DBSIZE", NULL), 0);
    assert_int_equal(redis_calls(&server, "set"), 0);
}

static void refused_database_at_an_open_server(void **state)
{
    struct redis open;
    redis_start(&open, "--databases", "2", NULL);
    nxl_client *client = login(&open, "", "?db=2");
    nxl_lock *lock = new_lock(client, "job", 5000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_SERVER, lock);
    assert_contains(nxl_lock_errmsg(lock), "DB index is out of range");
    end(lock, client);
    assert_int_equal(redis_run(&open, "DBSIZE", NULL), 0);
    assert_int_equal(redis_calls(&open, "set"), 0);
    client = login(&open, "", "?db=1");
    lock = new_lock(client, "job", 5000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_int_equal(redis_run(&open, "DBSIZE", NULL), 0);
    end(lock, client);
    redis_stop(&open);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        denied_test(no_password),
        denied_test(wrong_password),
        denied_test(switched_off_user),
        denied_test(right_password),
        denied_test(wrong_password_at_an_open_server),
        denied_test(user_without_the_key),
        denied_test(reader_without_the_counter),
        denied_test(readers_that_may_not_be_seen),
        denied_test(database_of_the_url),
        denied_test(refused_database),
        denied_test(refused_database_at_an_open_server),
    };
    return live_run_with("denied", tests, guarded_tcp, guarded_unix, live_stop);
}

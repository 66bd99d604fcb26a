/* SPDX-License-Identifier: MIT */
/*
 * Passwords that change while the client lives, from a file and from a
 * callback, in both modes, on one server and on three: what happens to the
 * server, to the source and to the connection, and what a call then gives.
 */
#include "api/private.h"
#include "live/credentials_rig.h"
#include "live/renew_rig.h"

/* What happens between two calls. */
static void nothing(void)
{
}

static void connections_are_closed(void)
{
    servers_close_connections();
}

static void user_is_made_anew(void)
{
    source_gives(SECRET "two");
    servers_make_user(SECRET "two");
}

static void password_is_changed(void)
{
    source_gives(SECRET "two");
    servers_change_password(SECRET "two");
}

static void password_is_changed_and_connections_closed(void)
{
    password_is_changed();
    servers_close_connections();
}

static void only_servers_change(void)
{
    servers_make_user(SECRET "two");
}

static void only_source_changes(void)
{
    source_gives(SECRET "two");
}

static void only_source_changes_and_connections_closed(void)
{
    source_gives(SECRET "two");
    servers_close_connections();
}

static void user_is_switched_off(void)
{
    for (size_t i = 0; i < on.servers; i++)
        redis_run(&servers[i], "ACL", "SETUSER", "app", "off", NULL);
    servers_close_connections();
}

static const struct row {
    void (*event)(void);
    bool stays; /* the connections do */
    int result; /* of the next call */
} rows[] = {
    {nothing, true, NXL_OK},
    {connections_are_closed, false, NXL_OK},
    {user_is_made_anew, false, NXL_OK},
    {password_is_changed, true, NXL_OK},
    {password_is_changed_and_connections_closed, false, NXL_OK},
    {only_servers_change, false, NXL_E_DENIED},
    {only_source_changes, true, NXL_OK},
    {only_source_changes_and_connections_closed, false, NXL_E_DENIED},
    {user_is_switched_off, false, NXL_E_DENIED},
};

static void each_event(void **state)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        credentials_clean(state);
        nxl_client *client = app_client();
        nxl_lock *lock = new_lock(client, "name", 5000);
        connect_app(client);
        assert_acquired(client, lock);
        rows[i].event();
        long long before = connections_made();
        look_again();
        int rc = acquire(client, lock, 0);
        live_assert_result(
            rc, rows[i].result, nxl_lock_errmsg(lock), __FILE__, __LINE__);
        assert_int_equal(connections_made() == before, rows[i].stays);
        if (rc == NXL_E_DENIED)
            assert_contains(nxl_lock_errmsg(lock), "WRONGPASS");
        /* Whatever was wrong, mended servers and source are enough. */
        servers_make_user(SECRET "three");
        source_gives(SECRET "three");
        look_again();
        if (rc == NXL_OK)
            assert_result(release(client, lock), NXL_OK, lock);
        assert_acquired(client, lock);
        end(lock, client);
    }
}

static nxl_server_facts facts_of(nxl_client *client, size_t i)
{
    nxl_server_facts facts = NXL_SERVER_FACTS_INIT;
    assert_int_equal(nxl_client_server_facts(client, i, &facts), NXL_OK);
    assert_hidden(facts.error);
    return facts;
}

static bool all_have_refused(nxl_client *client)
{
    for (size_t i = 0; i < on.servers; i++)
        if (!strstr(facts_of(client, i).error, "WRONGPASS"))
            return false;
    return true;
}

#define await(client, condition)                                               \
    do {                                                                       \
        int64_t await_end = test_now_ms() + 30000;                             \
        while (!(condition)) {                                                 \
            assert_true(test_now_ms() < await_end);                            \
            if (by_loop)                                                       \
                turn(client, 5);                                               \
            else                                                               \
                test_pause_ms(5);                                              \
        }                                                                      \
    } while (0)

/* A lock is held and renewed while the user is made anew; the new password
 * comes to the source when the old one has been refused. */
static void renewals_go_on(void **state)
{
    nxl_client *client = app_client();
    nxl_lock *lock = lock_with(client, "name", .ttl_ms = 3000, .renew = 1);
    connect_app(client);
    assert_result(acquire(client, lock, 0), NXL_OK, lock);
    servers_make_user(SECRET "two");
    await(client, all_have_refused(client));
    source_gives(SECRET "two");
    uint64_t before = stats_of(client).renewals;
    await(client, stats_of(client).renewals > before);
    assert_true(nxl_lock_held(lock));
    assert_result(release(client, lock), NXL_OK, lock);
    end(lock, client);
}

static void facts_say_whether_it_is_logged_in(void **state)
{
    nxl_client *client = app_client();
    nxl_lock *lock = new_lock(client, "name", 5000);
    assert_true(facts_of(client, 0).sends_password);
    assert_false(facts_of(client, 0).logged_in);
    connect_app(client);
    assert_acquired(client, lock);
    assert_true(facts_of(client, 0).logged_in);
    servers_close_connections();
    assert_true(facts_of(client, 0).logged_in); /* the last one was */
    servers_make_user(SECRET "two");
    look_again();
    /* Two servers that refuse it are enough for a call to end. */
    do
        assert_result(acquire(client, lock, 0), NXL_E_DENIED, lock);
    while (facts_of(client, 0).logged_in);
    end(lock, client);
}

/* Which ends of passwords the client would show. */
static const char *shown(const nxl_client *client)
{
    static const char *const ends[] = {".one", ".two", ".three"};
    static char list[32];

    list[0] = '\0';
    for (size_t i = 0; i < 3; i++) {
        size_t length = strlen(ends[i]);
        if (client_shown(client, ends[i], &length) == ends[i])
            snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s",
                list[0] ? " " : "", ends[i] + 1);
    }
    return list;
}

/* The passwords in use and the ones before them. */
static void former_passwords_are_hidden_too(void **state)
{
    nxl_client *client = app_client();
    nxl_lock *lock = new_lock(client, "name", 5000);
    connect_app(client);
    assert_string_equal(shown(client), "two three");
    user_is_made_anew();
    look_again();
    connect_app(client);
    assert_string_equal(shown(client), "three");
    servers_make_user(SECRET "three");
    source_gives(SECRET "three");
    look_again();
    connect_app(client);
    assert_string_equal(shown(client), "one");
    end(lock, client);
}

static const struct CMUnitTest tests[] = {
    credentials_test(each_event),
    credentials_test(renewals_go_on),
    credentials_test(facts_say_whether_it_is_logged_in),
    credentials_test(former_passwords_are_hidden_too),
};

static int run(bool from_file, bool loops, bool three)
{
    char name[64];
    with.from_file = from_file;
    by_loop = loops;
    snprintf(name, sizeof(name), "credentials (%s, %s, %s)",
        from_file ? "file" : "callback", by_loop ? "event loop" : "blocking",
        three ? "three servers" : "one server");
    return three ? on_run(three, name, tests) : on_run(one_tcp, name, tests);
}

int main(void)
{
    int failed = 0;
    for (int i = 0; i < 8; i++)
        failed += run(i & 1, i & 2, i & 4);
    return failed;
}

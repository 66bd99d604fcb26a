/* SPDX-License-Identifier: MIT */
/*
 * A password file that cannot be used: an error when the client is made, a
 * failure for now at a later connection; and what clients with a source of
 * passwords leave behind.
 */
#include "live/credentials_rig.h"

#include "live/leaks_rig.h"

static char too_long[8200];

static const struct row {
    const char *bytes; /* NULL: there is no file */
    size_t len;
    mode_t mode;
    const char *words; /* NULL: the password is "one" */
} rows[] = {
#define BYTES(text) text, sizeof(text) - 1
    {NULL, 0, 0, "No such file or directory"},
    {BYTES(SECRET "one\n"), 0644, "chmod 600 it"},
    {BYTES(SECRET "one\n"), 0640, "chmod 600 it"},
    {BYTES("\n"), 0600, "first line is empty"},
    {BYTES(SECRET "o\0ne\n"), 0600, "zero byte"},
    {too_long, sizeof(too_long), 0600, "longer than 8192 bytes"},
    {BYTES(SECRET "one\r\n"), 0600, NULL},
    {BYTES(SECRET "one\nmore\n"), 0400, NULL},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static void make_file(const struct row *row)
{
    unlink(with.path);
    if (row->bytes)
        write_bytes(row->bytes, row->len, row->mode);
}

static void unusable_password_file_at_the_start(void **state)
{
    for (size_t i = 0; i < ROWS; i++) {
        nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
        char list[URLS_ROOM] = "", parameters[LOCAL_PATH + 64], why[512];
        nxl_client *client;
        snprintf(parameters, sizeof(parameters), "user=app&password_file=%s",
            with.path);
        for (size_t n = 0; n < on.servers; n++)
            add_url(list, url_of(n), n + 1 < on.servers ? "" : parameters);
        make_file(&rows[i]);
        options.errbuf = why;
        options.errbuf_size = sizeof(why);
        int rc = nxl_client_new(&client, list, &options);
        assert_int_equal(rc, rows[i].words ? NXL_E_URL : NXL_OK);
        if (rc != NXL_OK) {
            assert_contains(why, rows[i].words);
            assert_contains(why, with.path);
            assert_contains(why, on.servers > 1 ? "URL 3 of 3: " : "cannot");
            assert_hidden(why);
        }
        nxl_client_free(client);
    }
}

/* The next call fails, until the file is right again. */
static void unusable_password_file_at_a_later_connection(void **state)
{
    for (size_t i = 0; i < ROWS; i++) {
        source_gives(SECRET "one");
        nxl_client *client = app_client();
        nxl_lock *lock = new_lock(client, "name", 5000);
        connect_app(client);
        make_file(&rows[i]);
        servers_close_connections();
        look_again();
        int rc = acquire(client, lock, 0);
        if (rows[i].words) {
            assert_int_equal(rc, NXL_E_UNREACHABLE);
            assert_contains(
                nxl_lock_errmsg(lock), "cannot use the password file");
            assert_contains(nxl_lock_errmsg(lock), with.path);
            assert_contains(nxl_lock_errmsg(lock), rows[i].words);
            source_gives(SECRET "one");
            rc = acquire(client, lock, 0);
        }
        assert_result(rc, NXL_OK, lock);
        end(lock, client);
    }
}

/* A wait for the lock goes on, and succeeds when the file is there. */
static void password_file_missing_during_a_wait(void **state)
{
    static struct waiter waiter;
    nxl_server_facts facts = NXL_SERVER_FACTS_INIT;
    nxl_client *client = app_client();
    nxl_lock *lock = new_lock(client, "name", 5000);
    connect_app(client);
    unlink(with.path);
    servers_close_connections();
    look_again();
    waiter_start(&waiter, lock, 20000);
    do
        assert_int_equal(nxl_client_server_facts(client, 0, &facts), NXL_OK);
    while (!strstr(facts.error, "cannot use the password file"));
    source_gives(SECRET "one");
    assert_int_equal(waiter_join(&waiter), NXL_OK);
    end(lock, client);
}

/* ------------------------------------------------------------------- leaks */

static void cycle(unsigned n)
{
    with.from_file = n % 2;
    source_fails(n % 8 == 6 ? "why" : NULL, 1000);
    nxl_client *client = app_client();
    nxl_lock *lock = new_lock(client, "name", 5000);
    if (n % 8 == 3)
        unlink(with.path);
    int rc = acquire(client, lock, 0);
    assert_true(rc == NXL_OK || n % 8 == 6 || n % 8 == 3);
    if (n % 8 > 3) { /* refused, and then others */
        servers_make_user(SECRET "two");
        look_again();
        (void)acquire(client, lock, 0);
        source_gives(SECRET "two");
        (void)acquire(client, lock, 0);
        servers_make_user(SECRET "one");
    }
    source_gives(SECRET "one");
    end(lock, client);
    for (size_t i = 0; i < on.servers; i++)
        redis_run(&servers[i], "FLUSHALL", NULL);
}

static void clients_with_password_sources_leak_nothing(void **state)
{
    assert_steady(slow() ? 16 : 80, cycle);
    with.from_file = true;
}

static const struct CMUnitTest tests[] = {
    credentials_test(unusable_password_file_at_the_start),
    credentials_test(unusable_password_file_at_a_later_connection),
    credentials_test(password_file_missing_during_a_wait),
    credentials_test(clients_with_password_sources_leak_nothing),
};

int main(int argc, char **argv)
{
    (void)argc;
    count_exactly(argv);
    memset(too_long, 'x', sizeof(too_long));
    with.from_file = true;
    return on_one_and_three_run("password file", tests);
}

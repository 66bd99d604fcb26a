/* SPDX-License-Identifier: MIT */
/*
 * The files that a URL names. What cannot be used is refused by
 * nxl_client_new(), which names the file. Files that are renewed under a living
 * client count from the next connection on, and one that is broken for a moment
 * is waited for.
 */
#include "live/tls_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "live/renew_rig.h"

#define CERT "&cert=@/client.pem"
#define KEY "&key=@/client.key"
#define LOCKED "&cert=@/locked-client.pem&key=@/locked-client.key"

/* Files of a client, under names of their own, so that they can be changed. */
#define OWN "cacert=@/own-ca.pem&cert=@/own.pem&key=@/own.key"

/* ------------------------------------------------------------- at the start */

static const struct {
    const char *parameters, *words;
} unusable[] = {
    {"cacert=@/none.pem", "cacert=@/none.pem: No such file or directory"},
    {"cacert=@", "cacert=@: not a regular file"},
    {"cacert=@/fifo", "cacert=@/fifo: not a regular file"},
    {"cacert=/dev/null", "cacert=/dev/null: not a regular file"},
    {"cacert=@/empty", "cacert=@/empty: "},
    {"cacert=@/nonsense",
        "cacert=@/nonsense: contains no certificate in PEM format"},
    {"cacert=@/client.key", "cacert=@/client.key: "},
    {"cacert=@/unreadable", "cacert=@/unreadable: Permission denied"},
    {"cacertdir=@/ca.pem", "cacertdir=@/ca.pem: not a directory"},
    {"cacertdir=@/none", "cacertdir=@/none: No such file or directory"},
    {TRUST "&cert=@/none.pem" KEY, "cert=@/none.pem: No such file"},
    {TRUST "&cert=@/fifo" KEY, "cert=@/fifo: not a regular file"},
    {TRUST "&cert=@/nonsense" KEY,
        "cert=@/nonsense: contains no certificate in PEM format"},
    {TRUST "&cert=@/client.key" KEY,
        "cert=@/client.key: contains no certificate in PEM format"},
    {TRUST CERT "&key=@/none.key", "key=@/none.key: No such file"},
    {TRUST CERT "&key=@/fifo", "key=@/fifo: not a regular file"},
    {TRUST CERT "&key=@/nonsense",
        "key=@/nonsense: contains no private key in PEM format"},
    {TRUST CERT "&key=@/client.pem",
        "key=@/client.pem: contains no private key in PEM format"},
    {TRUST CERT "&key=@/unreadable", "key=@/unreadable: Permission denied"},
    {TRUST CERT "&key=@/server.key",
        "key=@/server.key: does not belong to the certificate in cert"},
    {TRUST LOCKED, "key=@/locked-client.key: it is encrypted; name the file "
                   "with its password: key_password_file="},
    {TRUST LOCKED "&key_password_file=@/wrong-password",
        "key=@/locked-client.key: cannot be read with the password in "
        "key_password_file"},
    {TRUST LOCKED "&key_password_file=@/empty",
        "cannot use the key password file @/empty: its first line is empty"},
    {TRUST LOCKED "&key_password_file=@/shared",
        "cannot use the key password file @/shared: other users have access"},
    {TRUST LOCKED "&key_password_file=@/none",
        "key_password_file=@/none: No such file or directory"},
    {TRUST LOCKED "&key_password_file=@/fifo",
        "key_password_file=@/fifo: not a regular file"},
    {TRUST "&tls_ciphers=NONE-OF-THEM", "tls_ciphers names no cipher"},
    {TRUST "&tls_ciphersuites=NONE_OF_THEM", "tls_ciphersuites names no"},
};

static void write_file(const char *name, const char *text, mode_t mode)
{
    char path[2 * LOCAL_PATH];
    snprintf(path, sizeof(path), "%s/%s", server.dir, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fchmod(fileno(file), mode), 0);
    fclose(file);
}

static void make_files(void)
{
    char path[2 * LOCAL_PATH];
    write_file("empty", "", 0600);
    write_file("nonsense", "-----BEGIN CERTIFICATE-----\nnonsense\n", 0600);
    write_file("unreadable", "", 0);
    write_file("wrong-password", "open barley\n", 0600);
    write_file("password", CERTS_PASSWORD "\r\n", 0600);
    write_file("shared", CERTS_PASSWORD "\n", 0644);
    tls_expand(path, sizeof(path), "@/fifo");
    assert_int_equal(mkfifo(path, 0600), 0);
}

static void unusable_files_are_named(void **state)
{
    make_files();
    char url[TLS_URL], words[TLS_URL], told[512];
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    options.errbuf = told;
    options.errbuf_size = sizeof(told);
    for (size_t i = 0; i < sizeof(unusable) / sizeof(unusable[0]); i++) {
        nxl_client *client;
        if (strstr(unusable[i].parameters, "unreadable") && geteuid() == 0)
            continue; /* root can read it */
        tls_url(url, "127.0.0.1", server.tls_port, unusable[i].parameters);
        tls_expand(words, sizeof(words), unusable[i].words);
        int rc = nxl_client_new(&client, url, &options);
        if (rc != NXL_E_URL)
            print_error("%s\n", unusable[i].parameters);
        assert_int_equal(rc, NXL_E_URL);
        assert_null(client);
        assert_contains(told, words);
        assert_null(strstr(told, "unknown error"));
        assert_null(strstr(told, CERTS_PASSWORD));
        assert_null(strstr(told, "barley"));
    }
}

static void the_second_of_three_is_named(void **state)
{
    char list[3 * TLS_URL], second[TLS_URL], told[512];
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    nxl_client *client;
    options.errbuf = told;
    options.errbuf_size = sizeof(told);
    tls_url(second, "127.0.0.2", server.tls_port, "cacert=@/none.pem");
    snprintf(list, sizeof(list), "%s,%s,%s", server.tls_url, second,
        "redis://127.0.0.3");
    assert_int_equal(nxl_client_new(&client, list, &options), NXL_E_URL);
    assert_contains(told, "URL 2 of 3");
    assert_contains(told, "none.pem: No such file or directory");
}

/* ---------------------------------------------------- under a living client
 */

/* Replaces a file, in one step as a renewed certificate should be, or written
 * in place. */
static void put(const char *name, const char *from, bool in_one_step)
{
    char source[2 * LOCAL_PATH], path[2 * LOCAL_PATH], part[3 * LOCAL_PATH];
    char bytes[16384];
    snprintf(source, sizeof(source), "%s/%s", server.dir, from);
    snprintf(path, sizeof(path), "%s/%s", server.dir, name);
    snprintf(part, sizeof(part), "%s%s", path, in_one_step ? ".part" : "");
    FILE *in = fopen(source, "re"), *out = fopen(part, "we");
    assert_true(in && out);
    size_t count = fread(bytes, 1, sizeof(bytes), in);
    assert_int_equal(fwrite(bytes, 1, count, out), count);
    fclose(in);
    fclose(out);
    if (in_one_step)
        assert_int_equal(rename(part, path), 0);
}

static nxl_client *own_client(void)
{
    put("own-ca.pem", "ca.pem", true);
    put("own.pem", "client.pem", true);
    put("own.key", "client.key", true);
    return tls_client(OWN);
}

static void cycle(nxl_lock *lock)
{
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
}

/* It counts from the next connection on, not before. */
static void renewed_client_certificate(void **state)
{
    tls_set("tls-auth-clients", "yes");
    nxl_client *client = own_client();
    nxl_lock *lock = new_lock(client, "job", 30000);
    cycle(lock);
    for (int in_one_step = 0; in_one_step < 2; in_one_step++) {
        put("own.pem", "foreign-client.pem", in_one_step);
        put("own.key", "foreign-client.key", in_one_step);
        cycle(lock);
        tls_hang_up();
        assert_result(nxl_lock_acquire(lock, 0), NXL_E_DENIED, lock);
        assert_told(lock, "rediss://", "does not accept the client certificate",
            "(unknown CA); check cert=");
        put("own.pem", "client.pem", in_one_step);
        put("own.key", "client.key", in_one_step);
        cycle(lock);
    }
    end(lock, client);
}

/* The password is read again with the key. */
static void renewed_key_with_a_password(void **state)
{
    tls_set("tls-auth-clients", "yes");
    put("own.pem", "locked-client.pem", true);
    put("own.key", "locked-client.key", true);
    write_file("own-password", CERTS_PASSWORD, 0600);
    nxl_client *client = tls_client(TRUST "&cert=@/own.pem&key=@/own.key"
                                          "&key_password_file=@/own-password");
    nxl_lock *lock = new_lock(client, "job", 30000);
    cycle(lock);
    write_file("own-password", "open barley", 0600);
    tls_hang_up();
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_UNREACHABLE, lock);
    assert_told(lock, "own.key", "cannot be read with the password",
        "key_password_file");
    write_file("own-password", CERTS_PASSWORD, 0600);
    cycle(lock);
    end(lock, client);
}

static void another_authority(void **state)
{
    nxl_client *client = own_client();
    nxl_lock *lock = new_lock(client, "job", 30000);
    cycle(lock);
    put("own-ca.pem", "other-ca.pem", true);
    cycle(lock); /* still the old connection */
    tls_hang_up();
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_UNREACHABLE, lock);
    assert_told(lock, "rediss://", "signed by 'nxlock test CA'", "own-ca.pem");
    tls_present("foreign");
    cycle(lock);
    tls_hang_up();
    tls_present("server");
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_UNREACHABLE, lock);
    put("own-ca.pem", "ca.pem", true);
    cycle(lock);
    end(lock, client);
}

/* What a renewal leaves broken for a moment is tried again within a wait. */
static void broken_for_a_moment(void **state)
{
    static const struct {
        const char *name, *good;
    } files[] = {{"own-ca.pem", "ca.pem"}, {"own.pem", "client.pem"},
        {"own.key", "client.key"}};
    char path[2 * LOCAL_PATH];
    tls_set("tls-auth-clients", "yes");
    write_file("nonsense", "-----BEGIN CERTIFICATE-----\nnonsense\n", 0600);
    nxl_client *client = own_client();
    nxl_lock *lock = new_lock(client, "job", 30000);
    cycle(lock);
    for (size_t i = 0; i < 6; i++) {
        static struct waiter waiter;
        snprintf(path, sizeof(path), "%s/%s", server.dir, files[i / 2].name);
        if (i % 2)
            assert_int_equal(unlink(path), 0);
        else
            put(files[i / 2].name, "nonsense", false);
        tls_hang_up();
        assert_result(nxl_lock_acquire(lock, 0), NXL_E_UNREACHABLE, lock);
        assert_contains(nxl_lock_errmsg(lock), path);
        waiter_start(&waiter, lock, 30000);
        put(files[i / 2].name, files[i / 2].good, false);
        assert_result(waiter_join(&waiter), NXL_OK, lock);
        assert_result(nxl_lock_release(lock), NXL_OK, lock);
    }
    end(lock, client);
}

/* A lock that is renewed meanwhile stays held. */
static void held_over_a_renewal(void **state)
{
    static const char *const pairs[][2] = {{"first.pem", "first.key"},
        {"client.pem", "client.key"}, {"first.pem", "first.key"}};
    tls_set("tls-auth-clients", "yes");
    put("first.pem", "client.pem", true);
    put("first.key", "client.key", true);
    certs_make(server.dir, "client", NULL); /* while there is no thread */
    nxl_client *client = own_client();
    nxl_lock *lock = lock_with(client, "job", .ttl_ms = 3000, .renew = 1);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    for (int i = 0; i < 3; i++) {
        put("own.pem", pairs[i][0], true);
        put("own.key", pairs[i][1], true);
        tls_hang_up();
        uint64_t renewals = stats_of(client).renewals;
        assert_eventually(stats_of(client).renewals > renewals);
        assert_true(nxl_lock_held(lock));
    }
    assert_value("job", nxl_lock_token(lock));
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    end(lock, client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        tls_test(unusable_files_are_named),
        tls_test(the_second_of_three_is_named),
        tls_test(renewed_client_certificate),
        tls_test(renewed_key_with_a_password),
        tls_test(another_authority),
        tls_test(broken_for_a_moment),
        tls_test(held_over_a_renewal),
    };
    return tls_run("TLS files");
}

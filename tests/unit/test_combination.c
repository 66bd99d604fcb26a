/* SPDX-License-Identifier: MIT */
/* Parameters of a URL that need or exclude each other. */
#include "support/test.h"

#include "config/url.h"

static const struct row {
    const char *url, *words; /* NULL: they go together */
} table[] = {
    {"rediss://h", NULL},
    {"valkeys://h/3?cacert=/ca.pem", NULL},
    {"rediss://h?cacert=/ca.pem&cacertdir=/etc/ssl/certs&verify=ca", NULL},
    {"rediss://h?cert=/c.pem&key=/k.pem&key_password_file=/p", NULL},
    {"rediss://h?verify=none&sni=db.example&tls_min=1.3", NULL},
    {"rediss://joe@h?password_file=/p", NULL},
    {"redis://h?user=joe&password_file=/p", NULL},
    {"redis://:x@h?password_file=/p",
        "password and password_file are both given"},
    {"redis://joe@h", "a user without a password"},
    {"rediss://h?cert=/c.pem",
        "cert is given without key: a client certificate needs"},
    {"rediss://h?key=/k.pem",
        "key is given without cert: a private key needs its"},
    {"rediss://h?key_password_file=/p",
        "key_password_file is given without key"},
    {"rediss://h?cacert=/c.pem&verify=none", "a CA is given, but verify=none"},
    {"rediss://h?cacertdir=/c&verify=none", "a CA is given, but verify=none"},
    {"redis://h?cacert=/c.pem", "cacert is for TLS"},
    {"valkey://h?cacertdir=/c", "cacertdir is for TLS"},
    {"unix:///s?cert=/c.pem&key=/k.pem", "cert is for TLS"},
    {"redis://h?key=/k.pem", "key is for TLS"},
    {"redis://h?key_password_file=/p", "key_password_file is for TLS"},
    {"redis://h?sni=x", "sni is for TLS"},
    {"redis://h?verify=full", "verify is for TLS"},
    {"redis://h?tls_min=1.3", "write rediss:// (or valkeys://)"},
    {"redis://h?tls_ciphers=x", "tls_ciphers is for TLS"},
    {"redis://h?tls_ciphersuites=x", "tls_ciphersuites is for TLS"},
    {"redis+sentinel://h/m?sentinel_user=u&sentinel_password=p", NULL},
    {"redis+sentinel://h/m?sentinel_user=u&sentinel_password_file=/p", NULL},
    {"rediss+sentinel://h/m?sni=x&sentinel_tls=0", NULL},
    {"redis+sentinel://h/m?cacert=/c&sentinel_tls=1", NULL},
    {"redis+sentinel://h/m?sentinel_user=u",
        "sentinel_user is given without a password; add "
        "sentinel_password_file=FILE"},
    {"redis+sentinel://h/m?sentinel_password=p&sentinel_password_file=/p",
        "sentinel_password and sentinel_password_file are both given"},
    {"redis+sentinel://h/m?sni=x&sentinel_tls=1",
        "sni is for TLS to the server"},
    {"redis+sentinel://h/m?sni=x", "write rediss+sentinel:// instead of"},
    {"redis+sentinel://h/m?cacert=/c&sentinel_tls=0", "cacert is for TLS"},
    {"redis://h?sentinel_user=u", "sentinel_user is for Sentinels, but this "
                                  "URL names the server itself"},
    {"rediss://h?sentinel_password=S3CRET", "sentinel_password is for"},
    {"unix:///s?sentinel_password_file=/p", "sentinel_password_file is for"},
    {"redis://h?sentinel_tls=0", "write redis+sentinel://host:26379/SERVICE"},
};

static void combinations_are_checked(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct endpoint endpoint = {.settings = {.timeout_ms = 2000}};
        struct text error = {0};
        enum url_result result = url_parse(&endpoint, table[i].url, &error);
        if (table[i].words) {
            assert_int_equal(result, URL_MALFORMED);
            assert_contains(error.data, table[i].words);
            assert_null(strstr(error.data, "S3CRET"));
            continue;
        }
        if (result != URL_OK)
            print_error("%s: %s\n", table[i].url, error.data);
        assert_int_equal(result, URL_OK);
        endpoint_free(&endpoint);
    }
}

static void only_schemes_of_tls_need_it(void **state)
{
    static const char *const urls[] = {
        "redis://h", "valkey://h", "unix:///s", "rediss://h", "valkeys://h"};

    (void)state;
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        struct endpoint endpoint = {.settings = {.timeout_ms = 2000}};
        struct text error = {0};
        assert_int_equal(url_parse(&endpoint, urls[i], &error), URL_OK);
        assert_int_equal(endpoint.needs_tls, i >= 3);
        endpoint_free(&endpoint);
    }
}

/* To the Sentinels by default as to the server. */
static void each_way_may_use_tls(void **state)
{
    static const struct {
        const char *url;
        bool server, sentinels;
    } rows[] = {{"redis+sentinel://h/m", false, false},
        {"valkey+sentinel://h/m?sentinel_tls=1", false, true},
        {"rediss+sentinel://h/m", true, true},
        {"valkeys+sentinel://h/m?sentinel_tls=0", true, false}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct endpoint endpoint = {.settings = {.timeout_ms = 2000}};
        struct text error = {0};
        assert_int_equal(url_parse(&endpoint, rows[i].url, &error), URL_OK);
        assert_int_equal(endpoint.needs_tls, rows[i].server);
        assert_int_equal(endpoint.sentinels->tls, rows[i].sentinels);
        endpoint.tls = (struct tls *)&endpoint; /* only compared */
        assert_int_equal(target_of(&endpoint).tls != NULL, rows[i].server);
        endpoint_free(&endpoint);
    }
}

static bool gives(const struct login_source *source, unsigned server,
    struct login_answer *answer)
{
    (void)source, (void)server, (void)answer;
    return true;
}

static void a_callback_may_have_the_password(void **state)
{
    struct endpoint endpoint = {
        .settings = {.timeout_ms = 2000, .login.source = {.ask = gives}}};
    struct text error = {0};

    (void)state;
    assert_int_equal(url_parse(&endpoint, "redis://joe@h", &error), URL_OK);
    assert_string_equal(endpoint.settings.login.user, "joe");
    endpoint_free(&endpoint);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(combinations_are_checked),
        cmocka_unit_test(only_schemes_of_tls_need_it),
        cmocka_unit_test(each_way_may_use_tls),
        cmocka_unit_test(a_callback_may_have_the_password),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

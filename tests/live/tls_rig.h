/* SPDX-License-Identifier: MIT */
/*
 * One real server that speaks TLS, which rows of a table set up: its
 * certificate, its settings, and the parameters of a client's URL. In
 * parameters and paths '@' is the directory with the certificates.
 */
#ifndef NXLOCK_TESTS_LIVE_TLS_RIG_H
#define NXLOCK_TESTS_LIVE_TLS_RIG_H

#include "live/api_rig.h"

#include "support/certs.h"
#include "support/redis_tls.h"

#define TLS_URL 2048
#define TRUST "cacert=@/ca.pem"

/* What a row changes at the server, and what it is changed back to. */
static const char *const tls_defaults[][2] = {{"tls-auth-clients", "no"},
    {"tls-protocols", ""}, {"tls-ciphers", ""}, {"tls-ciphersuites", ""},
    {"maxclients", "10000"}};

#define TLS_DEFAULTS (sizeof(tls_defaults) / sizeof(tls_defaults[0]))

static inline int tls_start(void **state)
{
    static const char *const all[] = {"other-ca", "intermediate", "expired",
        "not-yet-valid", "wrong-host", "name-only", "cn-only", "self-signed",
        "foreign", "chained", "unchained", "long-names", "foreign-client",
        "expired-client", "locked-client", NULL};
    /* ::1 only where there is one. */
    int rc = redis_start_tls(&server, &(struct redis_tls){.certificate = NULL},
        "--bind", "127.0.0.1", "-::1", NULL);
    return rc == 0 ? certs_make_all(server.dir, all) : rc;
}

/* Serves the certificate of that name, which is not made anew. */
static inline void tls_present(const char *name)
{
    char certificate[2 * LOCAL_PATH], key[2 * LOCAL_PATH];
    snprintf(certificate, sizeof(certificate), "%s/%s.pem", server.dir, name);
    snprintf(key, sizeof(key), "%s/%s.key", server.dir, name);
    redis_run(&server, "CONFIG", "SET", "tls-cert-file", certificate,
        "tls-key-file", key, NULL);
}

static inline void tls_set(const char *name, const char *value)
{
    redis_run(&server, "CONFIG", "SET", name, value, NULL);
}

/* The server ends all connections but the test's own. One that was used a
 * moment ago is not looked at again before it is used. */
static inline void tls_hang_up(void)
{
    redis_run(
        &server, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes", NULL);
    test_pause_ms(3);
}

static inline int tls_clean(void **state)
{
    int rc = live_clean(state);
    tls_hang_up(); /* those of a test that failed */
    tls_present("server");
    for (size_t i = 0; i < TLS_DEFAULTS; i++)
        tls_set(tls_defaults[i][0], tls_defaults[i][1]);
    return rc;
}

#define tls_test(function) cmocka_unit_test_setup(function, tls_clean)
#define tls_run(name)                                                          \
    cmocka_run_group_tests_name(name, tests, tls_start, live_stop)

/* Replaces each '@' by the directory. */
static inline void tls_expand(char *to, size_t room, const char *text)
{
    size_t len = 0;
    for (; *text; text++) {
        bool dir = *text == '@';
        int n = snprintf(to + len, room - len, "%.*s",
            dir ? (int)sizeof(server.dir) : 1, dir ? server.dir : text);
        len += (size_t)n;
        assert_true(len < room);
    }
    to[len] = '\0';
}

static inline void tls_url(
    char url[TLS_URL], const char *host, uint16_t port, const char *parameters)
{
    char expanded[TLS_URL - 128];
    tls_expand(expanded, sizeof(expanded), parameters);
    snprintf(url, TLS_URL, "rediss://%s:%u%s%s", host, (unsigned)port,
        *expanded ? "?" : "", expanded);
}

/* A client of the server's TLS port. */
static inline nxl_client *tls_client(const char *parameters)
{
    char url[TLS_URL];
    tls_url(url, "127.0.0.1", server.tls_port, parameters);
    return client_at(url);
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What can be wrong between a client and a TLS server, row by row: the result,
 * the cause and the remedy in words, in time, through both APIs, with and
 * without a wait. What a person has to repair ends a wait at once; what may
 * pass is tried until the wait is over.
 */
#include "live/tls_rig.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* The first handshake of a program takes seconds under valgrind. */
#define TIMEOUT_MS (LIVE_INSTRUMENTED ? 20000 : 2000)
#define LONG_WAIT_MS 20000

/* What is changed at the server: a setting and its value. */
struct change {
    const char *name, *value;
};

#define CLIENTS_CERTIFIED                                                      \
    {                                                                          \
        "tls-auth-clients", "yes"                                              \
    }
#define ONLY_1_2                                                               \
    {                                                                          \
        "tls-protocols", "TLSv1.2"                                             \
    }
#define ONLY_1_3                                                               \
    {                                                                          \
        "tls-protocols", "TLSv1.3"                                             \
    }
/* OpenSSL has no TLS 1.1 at its usual security level. */
#define ONLY_1_1                                                               \
    {"tls-ciphers", "DEFAULT:@SECLEVEL=0"},                                    \
    {                                                                          \
        "tls-protocols", "TLSv1.1"                                             \
    }
#define WITH(name) "&cert=@/" name ".pem&key=@/" name ".key"

#define SIGNED_BY_OTHER "the certificate is signed by 'Other test CA', which "
#define NAME_CACERT " does not know; name the file of its CA with cacert="
#define FOR_ANOTHER "the certificate is for elsewhere.example, not for "
#define ADD_SNI                                                                \
    "; if that is the right server, add sni=NAME with a name of the "          \
    "certificate (redis-cli does not check names)"
#define REQUIRED "the server requires a client certificate; add cert= and key="
#define NOT_ACCEPTED "the server does not accept the client certificate "
#define CHECK_CERT "; check cert=, and the CA that the server trusts"
#define NO_VERSION "the server and this client have no TLS version in common"
#define NO_CIPHER "perhaps there is no cipher in common: see tls_ciphers"

/* Without words it works. */
static const struct row {
    const char *name;
    const char *certificate; /* of the server; NULL: "server" */
    const char *host;        /* NULL: 127.0.0.1 */
    const char *parameters;  /* NULL: TRUST */
    struct change changes[3];
    int result;
    const char *words, *remedy;
} rows[] = {
    {"good", .certificate = "server"},
    {"good, by name", .host = "localhost"},
    {"good, IPv6", .host = "[::1]"},
    {"good, TLS 1.2 only", .changes = {ONLY_1_2}},
    {"good, TLS 1.3 only", .changes = {ONLY_1_3}},
    {"good, tls_min", .parameters = TRUST "&tls_min=1.3"},
    {"good, by an intermediate CA", .certificate = "chained"},
    {"good, a directory of CAs", .parameters = "cacertdir=@/cas"},
    {"good, the name is in the common name alone", "cn-only",
        .host = "localhost"},
    {"good, its own certificate is trusted", "self-signed",
        .parameters = "cacert=@/self-signed.pem"},
    {"good, sni", "wrong-host", .parameters = TRUST "&sni=elsewhere.example"},
    {"good, sni for a name of the certificate", "name-only",
        .parameters = TRUST "&sni=localhost"},
    {"good, a client certificate", .parameters = TRUST WITH("client"),
        .changes = {CLIENTS_CERTIFIED}},
    {"good, its key has a password",
        .parameters =
            TRUST WITH("locked-client") "&key_password_file=@/password",
        .changes = {CLIENTS_CERTIFIED}},
    {"good, a cipher",
        .parameters = TRUST "&tls_ciphers=ECDHE-ECDSA-"
                            "AES128-GCM-SHA256",
        .changes = {ONLY_1_2}},
    {"good, a cipher suite",
        .parameters = TRUST "&tls_ciphersuites=TLS_CHACHA20_POLY1305_SHA256",
        .changes = {ONLY_1_3}},

    {"verify=ca, another name", "wrong-host", .parameters = TRUST "&verify=ca"},
    {"verify=ca, expired", "expired", .parameters = TRUST "&verify=ca",
        .result = NXL_E_UNREACHABLE, .words = "' expired on ",
        .remedy = "; renew it at the server"},
    {"verify=ca, another CA", "foreign", .parameters = TRUST "&verify=ca",
        .result = NXL_E_UNREACHABLE, .words = SIGNED_BY_OTHER,
        .remedy = "ca.pem" NAME_CACERT},
    {"verify=none, another CA", "foreign", .parameters = "verify=none"},
    {"verify=none, another name", "wrong-host", .parameters = "verify=none"},
    {"verify=none, expired", "expired", .parameters = "verify=none"},
    {"verify=none, self-signed", "self-signed", .parameters = "verify=none"},

    {"expired", "expired", .result = NXL_E_UNREACHABLE,
        .words = "the certificate of 'server' expired on 20",
        .remedy = "; renew it at the server"},
    {"not yet valid", "not-yet-valid", .result = NXL_E_UNREACHABLE,
        .words = "the certificate of 'server' is valid from 20",
        .remedy = " on; check the clock of this machine"},
    {"wrong host", "wrong-host", "localhost", .result = NXL_E_UNREACHABLE,
        .words = FOR_ANOTHER "localhost", .remedy = ADD_SNI},
    {"wrong address", "wrong-host", .result = NXL_E_UNREACHABLE,
        .words = FOR_ANOTHER "127.0.0.1", .remedy = ADD_SNI},
    {"wrong IPv6 address", "wrong-host", "[::1]", .result = NXL_E_UNREACHABLE,
        .words = FOR_ANOTHER "::1", .remedy = ADD_SNI},
    {"wrong host of long names", "long-names", .host = "localhost",
        .result = NXL_E_UNREACHABLE,
        .words = "the certificate is for first-a-server-with-a-long-name.",
        .remedy = ", ..., not for localhost" ADD_SNI},
    {"a name, but no address", "name-only", .result = NXL_E_UNREACHABLE,
        .words = "the certificate is for localhost, not for 127.0.0.1",
        .remedy = ADD_SNI},
    {"no address in the common name", "cn-only", .result = NXL_E_UNREACHABLE,
        .words = "the certificate is for localhost, not for 127.0.0.1",
        .remedy = ADD_SNI},
    {"wrong sni", "server", .parameters = TRUST "&sni=elsewhere.example",
        .result = NXL_E_UNREACHABLE,
        .words = "the certificate is for localhost, 127.0.0.1, "
                 "::1, not for elsewhere.example",
        .remedy = ADD_SNI},
    {"unknown CA", "foreign", .result = NXL_E_UNREACHABLE,
        .words = SIGNED_BY_OTHER, .remedy = "ca.pem" NAME_CACERT},
    {"a CA unknown to the system", "server", .parameters = "",
        .result = NXL_E_UNREACHABLE,
        .words = "the certificate is signed by 'nxlock test CA', which ",
        .remedy = "the system" NAME_CACERT},
    {"intermediate CA missing", "unchained", .result = NXL_E_UNREACHABLE,
        .words = "the certificate is signed by 'nxlock intermediate CA', ",
        .remedy = NAME_CACERT " (or, if that is an intermediate CA, let the "
                              "server send its certificate)"},
    {"self-signed", "self-signed", .result = NXL_E_UNREACHABLE,
        .words = "the certificate is self-signed, and ",
        .remedy = "ca.pem" NAME_CACERT},

#define BOTH_VERSIONS(name, parameters_, words_, remedy_)                      \
    {name ", TLS 1.2", .parameters = parameters_,                              \
        .changes = {CLIENTS_CERTIFIED, ONLY_1_2}, .result = NXL_E_DENIED,      \
        .words = words_, .remedy = remedy_},                                   \
    {                                                                          \
        name ", TLS 1.3", .parameters = parameters_,                           \
                          .changes = {CLIENTS_CERTIFIED, ONLY_1_3},            \
                          .result = NXL_E_DENIED, .words = words_,             \
                          .remedy = remedy_                                    \
    }
    BOTH_VERSIONS("no client certificate", TRUST, REQUIRED, "add cert= and"),
    BOTH_VERSIONS("no client certificate, verify=none", "verify=none", REQUIRED,
        "add cert= and"),
    BOTH_VERSIONS("foreign client certificate", TRUST WITH("foreign-client"),
        NOT_ACCEPTED "(unknown CA)", CHECK_CERT),
    BOTH_VERSIONS("expired client certificate", TRUST WITH("expired-client"),
        NOT_ACCEPTED "(expired)", "; renew it"),
    BOTH_VERSIONS("client certificate of a server", TRUST WITH("server"),
        NOT_ACCEPTED "(not for clients)", CHECK_CERT),

    {"server has no TLS 1.3", .parameters = TRUST "&tls_min=1.3",
        .changes = {ONLY_1_2}, .result = NXL_E_UNREACHABLE, .words = NO_VERSION,
        .remedy = "see tls_min"},
    {"server has TLS 1.1 alone", .changes = {ONLY_1_1},
        .result = NXL_E_UNREACHABLE, .words = NO_VERSION,
        .remedy = "enable TLS 1.2 or 1.3 at the server (tls-protocols)"},
    {"no cipher in common",
        .parameters = TRUST "&tls_ciphers=ECDHE-RSA-AES128-GCM-SHA256",
        .changes = {ONLY_1_2}, .result = NXL_E_UNREACHABLE,
        .words = "the server refused the TLS handshake", .remedy = NO_CIPHER},
    {"no cipher suite in common",
        .parameters = TRUST "&tls_ciphersuites=TLS_AES_128_GCM_SHA256",
        .changes = {{"tls-ciphersuites", "TLS_AES_256_GCM_SHA384"}, ONLY_1_3},
        .result = NXL_E_UNREACHABLE,
        .words = "the server refused the TLS handshake", .remedy = NO_CIPHER},
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static void set_up(const struct row *row)
{
    if (row->certificate)
        tls_present(row->certificate);
    for (size_t i = 0; i < 3 && row->changes[i].name; i++)
        tls_set(row->changes[i].name, row->changes[i].value);
}

static void expect_refusal(
    const struct row *row, nxl_client *client, nxl_lock *lock, int64_t wait_ms)
{
    int64_t began = test_now_ms();
    assert_result(CALL(client, acquire, lock, wait_ms), row->result, lock);
    assert_between(test_now_ms() - began, 0, TIMEOUT_MS + LATE_MS);
    assert_told(lock, "rediss://", row->words, row->remedy);
    assert_false(nxl_lock_held(lock));
}

static void a_row(void **state)
{
    const struct row *row = *state;
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    char url[TLS_URL];
    options.timeout_ms = TIMEOUT_MS;
    if (row->host && *row->host == '[') {
        int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct sockaddr_in6 to = {.sin6_family = AF_INET6,
            .sin6_addr = IN6ADDR_LOOPBACK_INIT,
            .sin6_port = htons(server.tls_port)};
        bool there = connect(fd, (void *)&to, sizeof(to)) == 0;
        close(fd);
        if (!there)
            test_skip("this machine has no ::1");
    }
    set_up(row);
    tls_url(url, row->host ? row->host : "127.0.0.1", server.tls_port,
        row->parameters ? row->parameters : TRUST);
    for (int api = 0; api < 2; api++) {
        nxl_client *client;
        by_loop = api;
        assert_int_equal(nxl_client_new(&client, url, &options), NXL_OK);
        nxl_lock *lock = new_lock(client, "job", 30000);
        if (row->words) {
            expect_refusal(row, client, lock, 0);
            expect_refusal(row, client, lock, LONG_WAIT_MS);
        } else {
            assert_result(CALL(client, acquire, lock, 0), NXL_OK, lock);
            assert_value("job", nxl_lock_token(lock));
            assert_result(CALL(client, release, lock), NXL_OK, lock);
        }
        end(lock, client);
    }
    assert_false(redis_exists(&server, "job"));
    assert_eventually(redis_clients(&server) == 0);
}

static int start(void **state)
{
    char path[2 * LOCAL_PATH];
    int rc = tls_start(state);
    tls_expand(path, sizeof(path), "@/password");
    FILE *file = rc == 0 ? fopen(path, "we") : NULL;
    if (file) {
        fchmod(fileno(file), 0600);
        fputs(CERTS_PASSWORD "\n", file);
        fclose(file);
    }
    return rc;
}

int main(void)
{
    struct CMUnitTest tests[ROWS];
    for (size_t i = 0; i < ROWS; i++)
        tests[i] = (struct CMUnitTest){
            rows[i].name, a_row, tls_clean, NULL, (void *)&rows[i]};
    return cmocka_run_group_tests_name("TLS errors", tests, start, live_stop);
}

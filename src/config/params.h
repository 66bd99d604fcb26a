/* SPDX-License-Identifier: MIT */
/*
 * The one table of options: what those of a URL and of the public structures
 * are called and what they take, and which member of struct settings a
 * parameter of a URL sets. It also feeds the command's flags and the
 * documentation.
 */
#ifndef NXLOCK_CONFIG_PARAMS_H
#define NXLOCK_CONFIG_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/limit.h"
#include "config/login_source.h"

/* Values of settings, each in the order of the parameter's words. */
enum lock_scheme { LOCK_SCHEME_AUTO, LOCK_SCHEME_TIMESTAMP };
enum guard_switch {
    GUARD_SWITCH_AUTO, /* on with two servers or more, or with Sentinels */
    GUARD_SWITCH_ON,
    GUARD_SWITCH_OFF
};
enum tls_verify {
    TLS_VERIFY_FULL, /* who signed the server's certificate, and its names */
    TLS_VERIFY_CA,   /* HARM: whoever has any certificate of that CA can act as
                      * the server */
    TLS_VERIFY_NONE  /* HARM: whoever is in between reads the password and
                      * grants locks */
};
enum tls_version { TLS_VERSION_1_2, TLS_VERSION_1_3 };

/* Who logs in, and where the password is from. */
struct login_settings {
    char *user;          /* owned; NULL: none */
    char *password;      /* owned; NULL: none; wiped when freed */
    char *password_file; /* owned; NULL: none */
    /* Not of the URL: asked for a server whose URL has no password. */
    struct login_source source;
};

/* The members that the rows set. They hold the defaults before parsing. */
struct settings {
    uint64_t timeout_ms;
    uint64_t max_ttl_ms;
    bool max_ttl_in_options; /* as an option; if a URL sets it, endpoint.given
                                says */
    uint64_t drift_ppm;
    uint64_t keepalive_s;
    uint64_t scheme;  /* enum lock_scheme */
    uint64_t interop; /* 0 or 1 */
    uint64_t db;
    struct login_settings login;
    struct login_settings sentinel_login; /* to the Sentinels */
    uint64_t sentinel_tls;   /* 0 or 1; valid only if the URL sets it */
    bool to_sentinels;       /* settings_become_sentinels() was called */
    char *prefix;            /* owned; NULL: none */
    uint64_t poll;           /* 0 or 1: do not wait in line */
    uint64_t guard_restarts; /* enum guard_switch */
    uint64_t guard_failover; /* likewise */
    uint64_t durable;        /* 0 or 1: the server loses nothing in a restart */
    uint64_t wait_replicas;  /* that must have a write before it counts */
    uint64_t wait_ms;        /* how long to wait for them; 0: by the ttls */
    uint64_t wait_aof;       /* 0 or 1: and the append-only file must */

    /* Of TLS; texts are owned, NULL: none. */
    uint64_t verify;  /* enum tls_verify */
    uint64_t tls_min; /* enum tls_version: the oldest that is accepted */
    char *cacert, *cacertdir;
    char *cert, *key, *key_password_file;
    char *sni; /* the name to send and to verify; NULL: the host */
    char *tls_ciphers, *tls_ciphersuites;
};

/* The parameters of a URL: name (also of the member of nxl_client_options,
 * where it has one), member of struct settings, placeholder, help, kind, the
 * lowest and highest value (for TEXT, number of bytes), the default, the words
 * of a WORD, and flags. Only params.c, which has the names that the rows use,
 * makes something of them; here they are beside their members. */
/* clang-format off */
#define URL_PARAMS(ROW) \
    ROW(db, db, "N", "database number", NUMBER, 0, 2147483647, 0, NULL, OWN) \
    ROW(user, login.user, "TEXT", "user to log in as (ACL)", \
        TEXT, 1, SECRET_MAX, 0, NULL, OWN) \
    ROW(password, login.password, "TEXT", "password to log in with", \
        TEXT, 1, SECRET_MAX, 0, NULL, OWN) \
    ROW(password_file, login.password_file, "FILE", \
        "its first line is the password; read for each connection", \
        TEXT, 1, PATH_LEN_MAX, 0, NULL, OWN) \
    ROW(timeout_ms, timeout_ms, "MS", "bounds input and output of a call", \
        NUMBER, 10, 600000, 2000, NULL, 0) \
    ROW(max_ttl_ms, max_ttl_ms, "MS", "longest ttl a lock may ask for", \
        NUMBER, 20, 2147483647, 60000, NULL, 0) \
    ROW(drift_ppm, drift_ppm, "PPM", "how far clock rates may differ", \
        NUMBER, 1, 500000, 10000, NULL, 0) \
    ROW(keepalive_s, keepalive_s, "S", "idle seconds before a TCP probe", \
        NUMBER, 1, 32767, 15, NULL, OWN) \
    ROW(prefix, prefix, "TEXT", "put in front of every name, at most " \
        DIGITS(PREFIX_LEN_MAX) " bytes; default none", \
        TEXT, 1, PREFIX_LEN_MAX, 0, NULL, 0) \
    ROW(scheme, scheme, "WORD", \
        "auto, or timestamp: by SETNX and a unix time; default auto", \
        WORD, 0, 1, LOCK_SCHEME_AUTO, schemes, 0) \
    ROW(interop, interop, "N", \
        "1: take over the past unix time of a dead SETNX program; default 0", \
        SWITCH, 0, 1, 0, NULL, 0) \
    ROW(poll, poll, "BOOL", \
        "1: waiters poll; 0: in line, first come first served; default 0", \
        SWITCH, 0, 1, 0, NULL, 0) \
    ROW(guard_restarts, guard_restarts, "WORD", \
        "on: no vote for max_ttl_ms after a restart; off; default if several", \
        WORD, 0, 2, GUARD_SWITCH_AUTO, guards, 0) \
    ROW(guard_failover, guard_failover, "WORD", \
        "on: the same after a promotion, with guard_restarts; off; auto", \
        WORD, 0, 2, GUARD_SWITCH_AUTO, guards, 0) \
    ROW(durable, durable, "BOOL", \
        "1: a restart loses nothing (AOF, fsync always); default 0", \
        SWITCH, 0, 1, 0, NULL, OWN) \
    ROW(wait_replicas, wait_replicas, "N", \
        "replicas that must have a lock or record, by WAIT", \
        NUMBER, 0, 100, 0, NULL, 0) \
    ROW(wait_ms, wait_ms, "MS", \
        "how long to wait for them; 0: ttl / 20, 50 to 500", \
        NUMBER, 0, 60000, 0, NULL, 0) \
    ROW(wait_aof, wait_aof, "BOOL", \
        "1: and for its append-only file (WAITAOF, Redis 7.2); default 0", \
        SWITCH, 0, 1, 0, NULL, 0) \
    ROW(sentinel_user, sentinel_login.user, "TEXT", \
        "Sentinel: user to log in to the Sentinels as", \
        TEXT, 1, SECRET_MAX, 0, NULL, SENTINEL_OWN) \
    ROW(sentinel_password, sentinel_login.password, "TEXT", \
        "Sentinel: password to log in to them with", \
        TEXT, 1, SECRET_MAX, 0, NULL, SENTINEL_OWN) \
    ROW(sentinel_password_file, sentinel_login.password_file, "FILE", \
        "Sentinel: its first line is that password", \
        TEXT, 1, PATH_LEN_MAX, 0, NULL, SENTINEL_OWN) \
    ROW(sentinel_tls, sentinel_tls, "BOOL", \
        "Sentinel: 1: reach them by TLS; 0: not; default as the scheme", \
        SWITCH, 0, 1, 0, NULL, SENTINEL_OWN) \
    ROW(cacert, cacert, "FILE", \
        "TLS: certificates of the CAs to trust (PEM); default the system's", \
        TEXT, 1, PATH_LEN_MAX, 0, NULL, TLS_OWN) \
    ROW(cacertdir, cacertdir, "DIR", \
        "TLS: the same, a directory made by openssl rehash", \
        TEXT, 1, PATH_LEN_MAX, 0, NULL, TLS_OWN) \
    ROW(cert, cert, "FILE", \
        "TLS: client certificate and its chain (PEM); needs key", \
        TEXT, 1, PATH_LEN_MAX, 0, NULL, TLS_OWN) \
    ROW(key, key, "FILE", "TLS: private key of the client certificate (PEM)", \
        TEXT, 1, PATH_LEN_MAX, 0, NULL, TLS_OWN) \
    ROW(key_password_file, key_password_file, "FILE", \
        "TLS: its first line is the password of the key", \
        TEXT, 1, PATH_LEN_MAX, 0, NULL, TLS_OWN) \
    ROW(sni, sni, "NAME", \
        "TLS: server name to send and to verify; default the URL's host", \
        TEXT, 1, 253, 0, NULL, TLS_OWN) \
    ROW(verify, verify, "WORD", \
        "TLS: full (default), ca or none; HARM of the two: see nxlock-url(7)", \
        WORD, 0, 2, TLS_VERIFY_FULL, checks, TLS_OWN) \
    ROW(tls_min, tls_min, "VERSION", \
        "TLS: oldest version, 1.2 or 1.3; default 1.2", \
        WORD, 0, 1, TLS_VERSION_1_2, versions, TLS_OWN) \
    ROW(tls_ciphers, tls_ciphers, "LIST", \
        "TLS 1.2: ciphers, as openssl ciphers has them", \
        TEXT, 1, 1024, 0, NULL, TLS_OWN) \
    ROW(tls_ciphersuites, tls_ciphersuites, "LIST", "TLS 1.3: cipher suites", \
        TEXT, 1, 1024, 0, NULL, TLS_OWN)
/* clang-format on */

struct url_param {
    const char *name, *value, *help;
};
extern const struct url_param url_params[];
extern const size_t url_param_count;

/* The limits of an option, whether a URL may have it or only a structure. There
 * must be one of that name. */
const struct limit *limit_of(const char *name);

/* Every number has its default, and every text is NULL. */
void settings_init(struct settings *settings);

/* The row of that name; url_param_count if there is none. */
size_t param_find(struct slice name);

/* Sets the row's member from text. Takes over value, which is malloc'ed, in any
 * case. False: it is not valid, and settings is unchanged; param_describe()
 * then says what is valid: "must be a number from 10 to 600000". */
bool param_set(struct settings *settings, size_t row, char *value);
void param_describe(size_t row, struct text *text);
/* The same from a number that limit_number() has accepted. */
void param_set_number(struct settings *settings, size_t row, uint64_t value);

/* Is this an option of one server, not of the whole client? */
bool param_of_server(size_t row);
/* Does it only make sense with TLS? */
bool param_of_tls(size_t row);
/* Does it only make sense with Sentinels? */
bool param_of_sentinels(size_t row);

/* Do both have the same value in that row? */
bool param_equal(
    size_t row, const struct settings *a, const struct settings *b);
/* Sets the row's member of *to as in *from. false: no memory. */
bool param_copy(size_t row, struct settings *to, const struct settings *from);
/* The same two for all rows that only make sense with TLS. */
bool params_of_tls_equal(const struct settings *a, const struct settings *b);
bool params_of_tls_copy(struct settings *to, const struct settings *from);

/* Adds what to write instead of an unknown name: what a parameter of another
 * client is called here, or the known names. */
void param_advise(struct slice unknown, struct text *text);

/* Frees the strings and forgets them; a password is overwritten first. */
void settings_free(struct settings *settings);
void secret_free(char *secret);

#endif

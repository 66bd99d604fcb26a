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
enum guard_restarts {
    GUARD_RESTARTS_AUTO, /* on if there are two servers or more */
    GUARD_RESTARTS_ON,
    GUARD_RESTARTS_OFF
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
    uint64_t drift_ppm;
    uint64_t keepalive_s;
    uint64_t scheme;  /* enum lock_scheme */
    uint64_t interop; /* 0 or 1 */
    uint64_t db;
    struct login_settings login;
    char *prefix;            /* owned; NULL: none */
    uint64_t poll;           /* 0 or 1: do not wait in line */
    uint64_t guard_restarts; /* enum guard_restarts */
    uint64_t durable;        /* 0 or 1: the server loses nothing in a restart */

    /* Of TLS; texts are owned, NULL: none. */
    uint64_t verify;  /* enum tls_verify */
    uint64_t tls_min; /* enum tls_version: the oldest that is accepted */
    char *cacert, *cacertdir;
    char *cert, *key, *key_password_file;
    char *sni; /* the name to send and to verify; NULL: the host */
    char *tls_ciphers, *tls_ciphersuites;
};

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

/* SPDX-License-Identifier: MIT */
/*
 * OpenSSL's context: whom to trust, the client certificate, versions and
 * ciphers. Certificates are renewed while programs run, so before each
 * connection the files are compared with what was read.
 *
 * Invariant: a context is made from all of its files or not at all, and a file
 * that has changed is read again before the next connection.
 */
#include "net/tls/parts.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>

#include "config/secret_file.h"

struct named_file {
    const char *parameter, *path;
    bool is_directory;
};

static size_t list_files(const struct settings *set, struct named_file *files)
{
    const struct named_file all[TLS_FILES] = {
        {"cacert", set->cacert, false},
        {"cacertdir", set->cacertdir, true},
        {"cert", set->cert, false},
        {"key", set->key, false},
        {"key_password_file", set->key_password_file, false},
    };
    size_t count = 0;

    for (size_t i = 0; i < TLS_FILES; i++)
        if (all[i].path)
            files[count++] = all[i];
    return count;
}

/* Says "PARAMETER=PATH: WHY". */
static bool blame_file(struct text *error, const char *parameter,
    const char *path, const char *why)
{
    text_clear(error);
    text_addf(error, "%s=", parameter);
    text_add_foreign(error, slice_of(path));
    text_add(error, ": ");
    text_add(error, why);
    return false;
}

/* A pipe, which could block, or anything else that is no file is refused. */
static bool read_versions(const struct settings *set,
    struct file_version *versions, struct text *error)
{
    struct named_file files[TLS_FILES];
    size_t count = list_files(set, files);

    memset(versions, 0, TLS_FILES * sizeof(*versions));
    for (size_t i = 0; i < count; i++) {
        const struct named_file *f = &files[i];
        struct stat now;
        if (stat(f->path, &now) != 0)
            return blame_file(error, f->parameter, f->path, strerror(errno));
        if (f->is_directory ? !S_ISDIR(now.st_mode) : !S_ISREG(now.st_mode))
            return blame_file(error, f->parameter, f->path,
                f->is_directory ? "not a directory" : "not a regular file");
        versions[i] = (struct file_version){
            now.st_dev, now.st_ino, now.st_size, now.st_ctim};
    }
    return true;
}

/* Why a file could not be read, by OpenSSL's errors. missing is what to say if
 * they only mean that the file has nothing of the kind. */
static const char *reason_of_errors(const char *missing)
{
    unsigned long first = ERR_peek_error(), last = ERR_peek_last_error();
    const char *reason = ERR_reason_error_string(last);

    if (ERR_SYSTEM_ERROR(first))
        return strerror(ERR_GET_REASON(first));
    if (!reason || ERR_COMMON_ERROR(last) || /* "PEM lib" explains nothing */
        ERR_GET_REASON(last) == X509_R_NO_CERTIFICATE_OR_CRL_FOUND)
        return missing;
    return reason;
}

#define NO_MEMORY "out of memory: cannot prepare TLS"
#define NO_CERTIFICATE "contains no certificate in PEM format"
#define NO_KEY "contains no private key in PEM format"

/* -------------------------------------------------- the client's own key */

struct key_password {
    const char *text; /* NULL: there is none */
    bool wanted;      /* the key is encrypted */
};

/* For OpenSSL: without this function it would ask at the terminal. */
static int give_key_password(char *to, int room, int writing, void *arg)
{
    struct key_password *password = arg;
    size_t len = password->text ? strlen(password->text) : 0;

    (void)writing;
    password->wanted = true;
    if (len == 0 || len > (size_t)room)
        return -1;
    memcpy(to, password->text, len);
    return (int)len;
}

/* Why the key cannot be used. */
static const char *key_objection(const struct key_password *password, bool read)
{
    if (read ||
        ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH)
        return "does not belong to the certificate in cert";
    if (!password->wanted)
        return reason_of_errors(NO_KEY);
    return password->text
               ? "cannot be read with the password in key_password_file"
               : "it is encrypted; name the file with its password: "
                 "key_password_file=";
}

static bool load_key(
    SSL_CTX *ctx, const struct settings *set, struct text *error)
{
    const char *file = set->key_password_file;
    char *secret = NULL;

    if (file && !secret_file_read(file, "key password file", &secret, error))
        return false;
    struct key_password password = {.text = secret};
    SSL_CTX_set_default_passwd_cb(ctx, give_key_password);
    SSL_CTX_set_default_passwd_cb_userdata(ctx, &password);
    bool ok = SSL_CTX_use_PrivateKey_file(ctx, set->key, SSL_FILETYPE_PEM) == 1;
    SSL_CTX_set_default_passwd_cb_userdata(ctx, NULL);
    SSL_CTX_set_default_passwd_cb(ctx, NULL);
    bool fits = ok && SSL_CTX_check_private_key(ctx) == 1;
    if (!fits)
        blame_file(error, "key", set->key, key_objection(&password, ok));
    secret_free(secret);
    return fits;
}

static bool load_certificate(
    SSL_CTX *ctx, const struct settings *set, struct text *error)
{
    if (!set->cert)
        return true;
    if (SSL_CTX_use_certificate_chain_file(ctx, set->cert) != 1)
        return blame_file(
            error, "cert", set->cert, reason_of_errors(NO_CERTIFICATE));
    return load_key(ctx, set, error);
}

/* ---------------------------------------------------------- whom to trust */

static bool load_trust(
    SSL_CTX *ctx, const struct settings *set, struct text *error)
{
    if (set->verify == TLS_VERIFY_NONE)
        return true;
    if (!set->cacert && !set->cacertdir) {
        if (SSL_CTX_set_default_verify_paths(ctx) == 1)
            return true;
        text_set(error, "cannot read the system's CA certificates; name your "
                        "own with cacert=");
        return false;
    }
    if (set->cacert && SSL_CTX_load_verify_file(ctx, set->cacert) != 1)
        return blame_file(
            error, "cacert", set->cacert, reason_of_errors(NO_CERTIFICATE));
    if (set->cacertdir && SSL_CTX_load_verify_dir(ctx, set->cacertdir) != 1)
        return blame_file(error, "cacertdir", set->cacertdir,
            reason_of_errors(NO_CERTIFICATE));
    /* What the user names is trusted, even if it is no root. */
    X509_VERIFY_PARAM_set_flags(
        SSL_CTX_get0_param(ctx), X509_V_FLAG_PARTIAL_CHAIN);
    return true;
}

static bool load_ciphers(
    SSL_CTX *ctx, const struct settings *set, struct text *error)
{
    const char *wrong = NULL;

    if (set->tls_ciphers && SSL_CTX_set_cipher_list(ctx, set->tls_ciphers) != 1)
        wrong = "tls_ciphers";
    else if (set->tls_ciphersuites &&
             SSL_CTX_set_ciphersuites(ctx, set->tls_ciphersuites) != 1)
        wrong = "tls_ciphersuites";
    if (!wrong)
        return true;
    text_clear(error);
    text_addf(error,
        "%s names no cipher that this OpenSSL knows; `openssl ciphers -s "
        "-tls1_%d` lists them",
        wrong, strcmp(wrong, "tls_ciphers") == 0 ? 2 : 3);
    return false;
}

/* Called when the server asks for a client certificate and there is none. */
static int note_request(SSL *ssl, X509 **certificate, EVP_PKEY **key)
{
    struct session *s = SSL_get_app_data(ssl);

    (void)certificate;
    (void)key;
    s->cert_requested = true;
    return 0;
}

static SSL_CTX *make_context(const struct settings *set, struct text *error)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

    ERR_clear_error();
    if (!ctx) {
        text_set(error, NO_MEMORY);
        return NULL;
    }
    SSL_CTX_set_min_proto_version(
        ctx, set->tls_min == TLS_VERSION_1_3 ? TLS1_3_VERSION : TLS1_2_VERSION);
    /* Not SSL_MODE_RELEASE_BUFFERS: it saves 33 KB of an idle connection, and
     * allocates them again for each message. */
    SSL_CTX_set_mode(ctx,
        SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    /* One read of the BIO for a record, not two: header and body. */
    SSL_CTX_set_read_ahead(ctx, 1);
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    /* A resumed session would skip the verification. */
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_client_cert_cb(ctx, note_request);
    if (load_trust(ctx, set, error) && load_certificate(ctx, set, error) &&
        load_ciphers(ctx, set, error))
        return ctx;
    SSL_CTX_free(ctx);
    ERR_clear_error();
    return NULL;
}

SSL_CTX *tls_context(struct tls *tls, struct text *error)
{
    struct file_version versions[TLS_FILES];

    /* Before the files are read: one that changes meanwhile is read again. */
    if (!read_versions(&tls->settings, versions, error))
        return NULL;
    if (tls->context && memcmp(tls->versions, versions, sizeof(versions)) == 0)
        return tls->context;
    SSL_CTX *made = make_context(&tls->settings, error);
    if (!made)
        return NULL;
    SSL_CTX_free(tls->context); /* open connections hold a reference */
    tls->context = made;
    memcpy(tls->versions, versions, sizeof(versions));
    return made;
}

void tls_read_again(struct tls *tls)
{
    SSL_CTX_free(tls->context); /* open connections hold a reference */
    tls->context = NULL;
}

/* ---------------------------------------------------------- its life time */

/* The system's CAs are read for the first connection: that takes a while. */
static bool has_something_to_check(const struct settings *set)
{
    struct named_file files[TLS_FILES];

    return list_files(set, files) > 0 || set->tls_ciphers ||
           set->tls_ciphersuites;
}

struct tls *tls_new(const struct settings *settings, struct text *error)
{
    /* OpenSSL must not free itself at exit(), while a thread of this library
     * may still renew a lock. */
    OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL);
    struct tls *tls = calloc(1, sizeof(*tls));
    bool ok = tls && params_of_tls_copy(&tls->settings, settings);

    if (!ok)
        text_set(error, NO_MEMORY);
    else if (has_something_to_check(settings))
        ok = tls_context(tls, error) != NULL;
    if (ok) {
        tls->owners = 1;
        return tls;
    }
    tls_free(tls);
    return NULL;
}

struct tls *tls_share(struct tls *tls)
{
    tls->owners++;
    return tls;
}

void tls_free(struct tls *tls)
{
    if (!tls || (tls->owners > 0 && --tls->owners > 0))
        return;
    SSL_CTX_free(tls->context);
    settings_free(&tls->settings);
    free(tls);
}

/* SPDX-License-Identifier: MIT */
/*
 * A table of certificates and the child process that makes them. Keys are of
 * the curve P-256, which takes a tenth of a millisecond; all are read from and
 * written to files, so a certificate can be made long after its authority.
 */
#include "support/certs.h"

#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { NAMES_MAX = 32, PATH_ROOM = 4096, HOUR_S = 3600, DAY_S = 24 * HOUR_S };

#define LOOPBACK "DNS:localhost,IP:127.0.0.1,IP:::1"

/* As long as those of managed services, and longer. */
#define OF_60(n)                                                               \
    "DNS:" n "-a-server-with-a-long-name.a-group.a-region.a-provider.example"
#define LONG_NAMES                                                             \
    OF_60("first") "," OF_60("second") "," OF_60("third") "," OF_60("fourth")

enum role { SERVER, CLIENT, AUTHORITY };

struct row {
    const char *name, *issuer; /* issuer NULL: signed by itself */
    enum role role;
    const char *common, *places; /* places: subjectAltName, or NULL */
    long begins_s, ends_s;       /* from now; both 0: a usual time */
    bool chain;                  /* its issuer's certificate is in its file */
    const char *password;        /* of its key, or NULL */
};

#define SERVER_ROW .role = SERVER, .common = "server", .places = LOOPBACK
#define CLIENT_ROW .role = CLIENT, .common = "client"

static const struct row rows[] = {
    {"ca", .role = AUTHORITY, .common = "nxlock test CA"},
    {"other-ca", .role = AUTHORITY, .common = "Other test CA"},
    {"intermediate", "ca", .role = AUTHORITY,
        .common = "nxlock intermediate CA"},
    {"server", "ca", SERVER_ROW},
    {"expired", "ca", SERVER_ROW, .begins_s = -30 * DAY_S, .ends_s = -DAY_S},
    /* An hour more: it is still five days when a test looks at it. */
    {"expiring", "ca", SERVER_ROW, .begins_s = -DAY_S,
        .ends_s = 5 * DAY_S + HOUR_S},
    {"not-yet-valid", "ca", SERVER_ROW, .begins_s = DAY_S,
        .ends_s = 30 * DAY_S},
    {"wrong-host", "ca", .common = "server", .places = "DNS:elsewhere.example"},
    {"long-names", "ca", .common = "server", .places = LONG_NAMES},
    {"name-only", "ca", .common = "server", .places = "DNS:localhost"},
    {"cn-only", "ca", .common = "localhost"},
    {"self-signed", SERVER_ROW},
    {"foreign", "other-ca", SERVER_ROW},
    {"chained", "intermediate", SERVER_ROW, .chain = true},
    {"unchained", "intermediate", SERVER_ROW},
    {"client", "ca", CLIENT_ROW},
    {"foreign-client", "other-ca", CLIENT_ROW},
    {"expired-client", "ca", CLIENT_ROW, .begins_s = -30 * DAY_S,
        .ends_s = -DAY_S},
    {"locked-client", "ca", CLIENT_ROW, .password = CERTS_PASSWORD},
};

struct pair {
    X509 *certificate;
    EVP_PKEY *key;
};

/* --------------------------------------------------------- in the child */

static void give_up(const char *what)
{
    fprintf(stderr, "certificates: %s: %s\n", what, strerror(errno));
    ERR_print_errors_fp(stderr);
    _exit(1);
}

#define need(expression) ((expression) ? (void)0 : give_up(#expression))

static FILE *open_part(const char *dir, const char *name, const char *kind)
{
    char path[PATH_ROOM];

    snprintf(path, sizeof(path), "%s/%s.%s.part", dir, name, kind);
    FILE *file = fopen(path, "we");
    if (!file || fchmod(fileno(file), 0600) != 0)
        give_up(path);
    return file;
}

static void close_part(
    FILE *file, const char *dir, const char *name, const char *kind)
{
    char part[PATH_ROOM], path[PATH_ROOM];

    snprintf(part, sizeof(part), "%s/%s.%s.part", dir, name, kind);
    snprintf(path, sizeof(path), "%s/%s.%s", dir, name, kind);
    if (fclose(file) != 0 || rename(part, path) != 0)
        give_up(path);
}

static FILE *open_made(const char *dir, const char *name, const char *kind)
{
    char path[PATH_ROOM];

    snprintf(path, sizeof(path), "%s/%s.%s", dir, name, kind);
    return fopen(path, "re");
}

/* False: it has not been made. */
static bool read_pair(const char *dir, const char *name, struct pair *pair)
{
    FILE *certificate = open_made(dir, name, "pem");
    FILE *key = open_made(dir, name, "key");

    if (!certificate || !key)
        return false;
    need(pair->certificate = PEM_read_X509(certificate, NULL, NULL, NULL));
    need(pair->key = PEM_read_PrivateKey(key, NULL, NULL, NULL));
    fclose(certificate);
    fclose(key);
    return true;
}

static void extend(
    X509 *certificate, X509 *issuer, int extension, const char *value)
{
    X509V3_CTX context;

    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    X509_EXTENSION *made =
        X509V3_EXT_conf_nid(NULL, &context, extension, value);
    if (!made || X509_add_ext(certificate, made, -1) != 1)
        give_up(value);
    X509_EXTENSION_free(made);
}

static void add_extensions(X509 *certificate, X509 *issuer, const struct row *r)
{
    bool authority = r->role == AUTHORITY;

    extend(certificate, issuer, NID_subject_key_identifier, "hash");
    extend(certificate, issuer, NID_authority_key_identifier, "keyid:always");
    extend(certificate, issuer, NID_basic_constraints,
        authority ? "critical,CA:TRUE" : "critical,CA:FALSE");
    extend(certificate, issuer, NID_key_usage,
        authority ? "critical,keyCertSign,cRLSign"
                  : "critical,digitalSignature");
    if (!authority)
        extend(certificate, issuer, NID_ext_key_usage,
            r->role == CLIENT ? "clientAuth" : "serverAuth");
    if (r->places)
        extend(certificate, issuer, NID_subject_alt_name, r->places);
}

static void number(X509 *certificate)
{
    unsigned char bytes[8];

    need(RAND_bytes(bytes, sizeof(bytes)) == 1);
    bytes[0] = (bytes[0] & 0x3f) | 0x40; /* not negative, of one length */
    BIGNUM *drawn = BN_bin2bn(bytes, sizeof(bytes), NULL);
    need(drawn);
    need(BN_to_ASN1_INTEGER(drawn, X509_get_serialNumber(certificate)));
    BN_free(drawn);
}

static struct pair sign(const struct row *r, const struct pair *issuer)
{
    struct pair made = {X509_new(), EVP_EC_gen("P-256")};

    need(made.certificate && made.key);
    if (!issuer)
        issuer = &made;
    X509 *certificate = made.certificate;
    X509_NAME *name = X509_get_subject_name(certificate);
    need(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
        (const unsigned char *)r->common, -1, -1, 0));
    need(X509_set_version(certificate, X509_VERSION_3));
    need(X509_set_issuer_name(
        certificate, X509_get_subject_name(issuer->certificate)));
    need(X509_set_pubkey(certificate, made.key));
    number(certificate);
    bool usual = r->begins_s == 0 && r->ends_s == 0;
    X509_gmtime_adj(
        X509_getm_notBefore(certificate), usual ? -(long)DAY_S : r->begins_s);
    X509_gmtime_adj(
        X509_getm_notAfter(certificate), usual ? 10 * 365L * DAY_S : r->ends_s);
    add_extensions(certificate, issuer->certificate, r);
    need(X509_sign(certificate, issuer->key, EVP_sha256()));
    return made;
}

static void write_pair(
    const char *dir, const struct row *r, struct pair *made, X509 *issuer)
{
    FILE *file = open_part(dir, r->name, "key");
    const EVP_CIPHER *cipher = r->password ? EVP_aes_256_cbc() : NULL;

    need(PEM_write_PKCS8PrivateKey(file, made->key, cipher, r->password,
        r->password ? (int)strlen(r->password) : 0, NULL, NULL));
    close_part(file, dir, r->name, "key");
    file = open_part(dir, r->name, "pem");
    need(PEM_write_X509(file, made->certificate));
    if (r->chain)
        need(PEM_write_X509(file, issuer));
    close_part(file, dir, r->name, "pem");
}

/* By the name under which OpenSSL looks it up in a directory of authorities. */
static void link_by_hash(const char *dir, const char *name, X509 *certificate)
{
    char path[PATH_ROOM], target[PATH_ROOM];

    snprintf(path, sizeof(path), "%s/cas", dir);
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        give_up(path);
    snprintf(path, sizeof(path), "%s/cas/%08lx.0", dir,
        X509_subject_name_hash(certificate));
    snprintf(target, sizeof(target), "../%s.pem", name);
    if (symlink(target, path) != 0 && errno != EEXIST)
        give_up(path);
}

static const struct row *row_of(const char *name)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    fprintf(stderr, "certificates: there is no '%s'\n", name);
    _exit(2);
}

static void make(const char *dir, const char *name)
{
    const struct row *r = row_of(name);
    struct pair issuer = {NULL, NULL};

    if (r->issuer && !read_pair(dir, r->issuer, &issuer)) {
        make(dir, r->issuer);
        need(read_pair(dir, r->issuer, &issuer));
    }
    struct pair made = sign(r, r->issuer ? &issuer : NULL);
    write_pair(dir, r, &made, issuer.certificate);
    if (strcmp(name, "ca") == 0)
        link_by_hash(dir, name, made.certificate);
    X509_free(made.certificate);
    EVP_PKEY_free(made.key);
    X509_free(issuer.certificate);
    EVP_PKEY_free(issuer.key);
}

/* -------------------------------------------------------- in the program */

int certs_make_all(const char *dir, const char *const *names)
{
    int status = 0;
    pid_t pid = test_fork();

    if (pid == 0) {
        for (; *names; names++)
            make(dir, *names);
        _exit(0);
    }
    if (pid < 0)
        fail_msg("fork: %s", strerror(errno));
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (status != 0)
        fail_msg("the certificates in %s could not be made", dir);
    return 0;
}

int certs_make(const char *dir, ...)
{
    const char *names[NAMES_MAX + 1];
    size_t count = 0;
    va_list more;

    va_start(more, dir);
    do {
        if (count > NAMES_MAX)
            abort();
        names[count] = va_arg(more, const char *);
    } while (names[count++]);
    va_end(more);
    return certs_make_all(dir, names);
}

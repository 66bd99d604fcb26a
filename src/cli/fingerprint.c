/* SPDX-License-Identifier: MIT */
/*
 * Makes the fingerprint of once, the SHA-256 of what the user wrote, by
 * OpenSSL. A record has room for a short word only, and the text may be a
 * secret.
 *
 * Invariant: the same bytes have the same fingerprint, whichever option they
 * come from; and without OpenSSL a fingerprint is refused, never left out.
 */
#include "cli/fingerprint.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/report.h"
#include "cli/secret.h"

#if NXLOCK_OPENSSL

#include <openssl/evp.h>

static bool add_file(EVP_MD_CTX *context, const char *path)
{
    char data[4096], word[DISCREET_ROOM];
    FILE *file = fopen(path, "rbe");
    bool ok = file != NULL;
    size_t got;

    errno = file ? 0 : errno;
    while (ok && (got = fread(data, 1, sizeof(data), file)) > 0)
        ok = EVP_DigestUpdate(context, data, got) == 1;
    ok = ok && !ferror(file);
    if (!ok)
        say("cannot read --fingerprint-file %s: %s", discreet(word, path),
            strerror(errno != 0 ? errno : ENOMEM));
    if (file)
        fclose(file);
    return ok;
}

static int make(const struct once_args *once, EVP_MD_CTX *context, char *out)
{
    const char *text = once->fingerprint;
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;

    if (!context || EVP_DigestInit_ex(context, EVP_sha256(), NULL) != 1) {
        say("cannot make a fingerprint: OpenSSL has no SHA-256, or no memory");
        return EXIT_INTERNAL;
    }
    if (once->fingerprint_file && !add_file(context, once->fingerprint_file))
        return EXIT_USAGE;
    if ((text && EVP_DigestUpdate(context, text, strlen(text)) != 1) ||
        EVP_DigestFinal_ex(context, digest, &length) != 1) {
        say("cannot make a fingerprint: out of memory");
        return EXIT_INTERNAL;
    }
    for (unsigned i = 0; i < length && 2 * i + 2 < FINGERPRINT_ROOM; i++)
        snprintf(out + 2 * (size_t)i, 3, "%02x", digest[i]);
    return 0;
}

static int make_by_openssl(const struct once_args *once, char *out)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    int code = make(once, context, out);

    EVP_MD_CTX_free(context);
    return code;
}

#else

static int make_by_openssl(const struct once_args *once, char *out)
{
    (void)out;
    say("%s needs OpenSSL, and this nxlock was built without it: install "
        "libssl-dev (openssl-devel) and build it again",
        once->fingerprint ? "--fingerprint" : "--fingerprint-file");
    return EXIT_USAGE;
}

#endif

int fingerprint_make(const struct args *args, char *out)
{
    const struct once_args *once = &args->work;

    out[0] = '\0';
    return once->fingerprint || once->fingerprint_file
               ? make_by_openssl(once, out)
               : 0;
}

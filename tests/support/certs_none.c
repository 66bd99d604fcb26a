/* SPDX-License-Identifier: MIT */
/* In place of certs.c where there is no OpenSSL: tests with TLS are skipped. */
#include "support/certs.h"

#include "support/test.h"

int certs_make(const char *dir, ...)
{
    return certs_make_all(dir, NULL);
}

int certs_make_all(const char *dir, const char *const *names)
{
    (void)dir;
    (void)names;
    return test_skip("built without OpenSSL 3.0 or later (libssl-dev)");
}

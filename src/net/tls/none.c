/* SPDX-License-Identifier: MIT */
/* In place of TLS in a build without OpenSSL: refuses it, and says how to get
 * it. */
#include "net/tls/tls.h"

struct tls *tls_new(const struct settings *settings, struct text *error)
{
    (void)settings;
    text_set(error,
        "this build of nxlock has no TLS; build it with OpenSSL (Debian: "
        "libssl-dev; meson -Dtls=enabled), or write redis:// or unix:// with "
        "the local end of a TLS tunnel");
    return NULL;
}

struct tls *tls_share(struct tls *tls)
{
    return tls;
}

void tls_free(struct tls *tls)
{
    (void)tls;
}

/* Never used: no endpoint has settings for TLS. */
const struct transport_kind transport_tls = {.open = NULL};

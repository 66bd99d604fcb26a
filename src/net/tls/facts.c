/* SPDX-License-Identifier: MIT */
/*
 * What people are told about an open connection: its version of TLS, and when
 * certificates expire.
 */
#include "net/tls/parts.h"

#include <time.h>

static int64_t seconds_of(const ASN1_TIME *when)
{
    struct tm parts;

    return when && ASN1_TIME_to_tm(when, &parts) == 1 ? timegm(&parts) : 0;
}

void tls_facts(const struct transport *t, struct transport_facts *facts)
{
    const struct session *s = t->own;
    STACK_OF(X509) *chain = SSL_get0_verified_chain(s->ssl);
    X509 *peer = SSL_get0_peer_certificate(s->ssl);
    X509 *own = SSL_get_certificate(s->ssl);

    facts->encrypted = true;
    facts->version = SSL_get_version(s->ssl);
    facts->own_ends_s = own ? seconds_of(X509_get0_notAfter(own)) : 0;
    facts->ends_s = peer ? seconds_of(X509_get0_notAfter(peer)) : 0;
    for (int i = 0; i < sk_X509_num(chain); i++) {
        int64_t ends = seconds_of(X509_get0_notAfter(sk_X509_value(chain, i)));
        if (ends && ends < facts->ends_s)
            facts->ends_s = ends;
    }
}

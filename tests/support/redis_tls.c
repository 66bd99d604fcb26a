/* SPDX-License-Identifier: MIT */
/* Apart from redis.c, so that only who asks for TLS is linked with OpenSSL. */
#include "support/redis_tls.h"

#include "support/certs.h"
#include "support/redis_inner.h"
#include "support/test.h"

int redis_start_tls(struct redis *r, const struct redis_tls *tls, ...)
{
    const char *name = tls->certificate ? tls->certificate : "server";
    const char *clients = tls->clients ? tls->clients : "no";
    va_list extra;

    va_start(extra, tls);
    int rc = redis_prepare(r, extra);
    va_end(extra);
    if (rc == 0 && certs_make(r->dir, "ca", "client", name, NULL) != 0) {
        redis_stop(r);
        rc = -1;
    }
    if (rc != 0)
        return rc;
    redis_add_tls(r, r->dir, name, clients);
    r->tls_only = tls->only;
    r->tls_certified = strcmp(clients, "yes") == 0;
    return redis_begin(r);
}

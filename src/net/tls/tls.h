/* SPDX-License-Identifier: MIT */
/*
 * TLS for the connections to a server: what the rest of the library sees of it.
 * Only this folder includes OpenSSL. A build without OpenSSL has none.c
 * instead, which refuses every rediss:// URL.
 */
#ifndef NXLOCK_NET_TLS_TLS_H
#define NXLOCK_NET_TLS_TLS_H

#include "config/params.h"
#include "net/transport.h"

/* How to connect to a server by TLS: whom to trust, and with which certificate.
 * Shared by endpoints with the same settings. */
struct tls;

/* Reads the files that the settings name. NULL: *error says which one cannot be
 * used, and why. */
struct tls *tls_new(const struct settings *settings, struct text *error);
/* One more owner of it. */
struct tls *tls_share(struct tls *tls);
/* For each owner; NULL is allowed. */
void tls_free(struct tls *tls);

/* Needs a target with TLS. */
extern const struct transport_kind transport_tls;

#endif

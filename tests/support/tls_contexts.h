/* SPDX-License-Identifier: MIT */
/*
 * How many of OpenSSL's contexts exist in this process. Only those count that
 * were made after tls_contexts_watch().
 */
#ifndef NXLOCK_TESTS_SUPPORT_TLS_CONTEXTS_H
#define NXLOCK_TESTS_SUPPORT_TLS_CONTEXTS_H

#include <openssl/ssl.h>
#include <stdatomic.h>
#include <stdlib.h>

static atomic_int tls_contexts;

static void on_tls_context_new(void *parent, void *data, CRYPTO_EX_DATA *all,
    int index, long number, void *argument)
{
    (void)parent, (void)data, (void)all;
    (void)index, (void)number, (void)argument;
    tls_contexts++;
}

static void on_tls_context_free(void *parent, void *data, CRYPTO_EX_DATA *all,
    int index, long number, void *argument)
{
    (void)parent, (void)data, (void)all;
    (void)index, (void)number, (void)argument;
    tls_contexts--;
}

static inline void tls_contexts_watch(void)
{
    static int index = -1;
    if (index < 0)
        index = SSL_CTX_get_ex_new_index(
            0, NULL, on_tls_context_new, NULL, on_tls_context_free);
    if (index < 0)
        abort();
}

#endif

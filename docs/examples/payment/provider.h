/* SPDX-License-Identifier: MIT */
/*
 * One request to the provider. Here it goes over a unix socket to provider.py;
 * yours is an HTTP POST with the header Idempotency-Key, and has the same
 * three answers.
 */
#ifndef PROVIDER_H
#define PROVIDER_H

#include <stddef.h>

#include "charge.h"

enum answer {
    ANSWER_PAID,
    ANSWER_DECLINED,
    /* None came, or none that says what was done: the charge may stand. Ask
     * again, with the same key. */
    ANSWER_UNKNOWN
};

/* Blocks for ten seconds at most. reference gets the provider's number of the
 * charge when it was paid. */
enum answer provider_charge(const char *path, const char *key,
    const struct order *order, char *reference, size_t size);

#endif

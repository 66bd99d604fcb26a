/* SPDX-License-Identifier: MIT */
/*
 * The payment provider: a SQLite file with a row for each charge. It has no
 * idempotency keys: whoever asks is charged, as often as asked.
 */
#ifndef NXLOCK_TESTS_FAULTS_ONCE_LEDGER_H
#define NXLOCK_TESTS_FAULTS_ONCE_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ledger;

struct charge {
    uint64_t key;
    uint64_t fence;
    int64_t doubts; /* of which the worker was told before */
    const void *receipt;
    size_t length;
};

/* FNV-1a; what the ledger says of a receipt. */
int64_t receipt_sum(const void *receipt, size_t length);

/* Ends the process if it cannot. */
struct ledger *ledger_open(const char *path);
void ledger_close(struct ledger *ledger);

/* With the ledger's lock in hand asks may() once more, then charges; false:
 * may() said no. It is not asked if it is NULL. */
bool ledger_charge(struct ledger *ledger, const struct charge *charge,
    bool (*may)(void *arg), void *arg);

/* The first receipt of the key, at most size bytes; false: no charge. */
bool ledger_find(struct ledger *ledger, uint64_t key, void *receipt,
    size_t size, size_t *length);
/* Is there a charge of the key with such a receipt? */
bool ledger_has(struct ledger *ledger, uint64_t key, int64_t sum);

#endif

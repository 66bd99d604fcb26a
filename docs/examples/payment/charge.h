/* SPDX-License-Identifier: MIT */
/*
 * The row of an order in the table charge: it goes from nothing to 'charging'
 * and on to 'paid', 'declined' or 'review', and only the worker with the
 * highest fencing token changes it.
 */
#ifndef CHARGE_H
#define CHARGE_H

#include <stddef.h>
#include <stdint.h>

struct sqlite3;

struct order {
    char id[64];
    char currency[8];
    int64_t amount; /* in the smallest unit: cents, yen */
};

enum claim {
    CLAIM_FAILED = -1, /* the database refused; said on stderr */
    CLAIM_MINE,        /* charge it, with the key */
    CLAIM_SETTLED,     /* nothing is left to do */
    CLAIM_STALE,       /* a later holder of the lock has claimed it */
    CLAIM_REVIEW       /* a person has to look at it; the row says so */
};

enum record {
    RECORD_FAILED = -1,
    RECORD_DONE,
    RECORD_STALE /* a later holder has claimed it; it gets the same answer */
};

#define KEY_SIZE 96

/* NULL: it cannot be opened; said on stderr. */
struct sqlite3 *shop_open(const char *path);

/* Some of the orders that are not settled, whether or not they have been begun;
 * random ones, so that two workers seldom choose the same one. Returns how
 * many; -1: the database refused. */
int shop_open_orders(struct sqlite3 *shop, struct order *orders, int room);

/* Commits before it returns, so that a crash leaves the row behind. key gets
 * what to show to the provider. */
enum claim charge_claim(struct sqlite3 *shop, const struct order *order,
    int64_t fence, char key[KEY_SIZE]);

/* state is "paid" or "declined"; reference is the provider's, may be NULL. */
enum record charge_record(struct sqlite3 *shop, const struct order *order,
    int64_t fence, const char *state, const char *reference);

#endif

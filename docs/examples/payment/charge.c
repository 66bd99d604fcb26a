/* SPDX-License-Identifier: MIT */
/*
 * The rows of orders in the database, for SQLite.
 *
 * Invariant: one statement compares the fencing token and changes the row, so a
 * worker that was stopped and resumes too late changes nothing. An order keeps
 * the provider key of its first attempt forever.
 *
 * PostgreSQL takes the same statements, with $1 for ?1.
 */
#include "charge.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* 20 hours: well within the time for which the provider remembers a key. */
#define RETRY_S "72000"

/* No row comes back: it was refused, and why_not() finds out the reason. */
static const char claim_sql[] =
    "INSERT INTO charge AS c (order_id, provider_key, amount_minor, currency,"
    "                         state, fence, first_at)"
    " VALUES (?1, ?2, ?3, ?4, 'charging', ?5, ?6)"
    " ON CONFLICT (order_id) DO UPDATE"
    "  SET fence = excluded.fence, attempts = c.attempts + 1"
    "  WHERE c.state = 'charging'"
    "    AND c.fence < excluded.fence"
    "    AND c.amount_minor = excluded.amount_minor"
    "    AND c.currency = excluded.currency"
    "    AND excluded.first_at - c.first_at < " RETRY_S
    " RETURNING provider_key";

static const char record_sql[] =
    "UPDATE charge SET state = ?3, provider_ref = ?4"
    " WHERE order_id = ?1"
    "   AND fence = ?2"
    "   AND state = 'charging'"
    " RETURNING order_id";

/* Too old, or not the order that was begun: the provider is not asked again. */
static const char review_sql[] =
    "UPDATE charge SET state = 'review', fence = ?2"
    " WHERE order_id = ?1 AND fence < ?2 AND state = 'charging'"
    " RETURNING order_id";

static const char row_sql[] =
    "SELECT state, fence >= ?2 FROM charge WHERE order_id = ?1";

static const char open_sql[] =
    "SELECT o.order_id, o.amount_minor, o.currency"
    " FROM orders AS o LEFT JOIN charge AS c ON c.order_id = o.order_id"
    " WHERE c.state IS NULL OR c.state = 'charging'"
    " ORDER BY random() LIMIT ?1";

static sqlite3_stmt *prepare(sqlite3 *shop, const char *sql)
{
    sqlite3_stmt *statement = NULL;

    if (sqlite3_prepare_v2(shop, sql, -1, &statement, NULL) != SQLITE_OK)
        fprintf(stderr, "shop: %s\n", sqlite3_errmsg(shop));
    return statement; /* NULL is taken by every call below as an error */
}

static void bind_text(sqlite3_stmt *statement, int at, const char *text)
{
    sqlite3_bind_text(statement, at, text, -1, SQLITE_TRANSIENT);
}

/* Runs it to its end, which commits. 1: a row came, its first column is in
 * text (NULL: not wanted); 0: none; -1: refused, and nothing was done. */
static int finish(sqlite3_stmt *statement, char *text, size_t size)
{
    int rows = 0, rc;

    while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
        rows = 1;
        if (text)
            snprintf(text, size, "%s",
                (const char *)sqlite3_column_text(statement, 0));
    }
    if (rc != SQLITE_DONE)
        fprintf(
            stderr, "shop: %s\n", sqlite3_errmsg(sqlite3_db_handle(statement)));
    sqlite3_finalize(statement);
    return rc == SQLITE_DONE ? rows : -1;
}

sqlite3 *shop_open(const char *path)
{
    sqlite3 *shop = NULL;

    if (sqlite3_open_v2(path, &shop, SQLITE_OPEN_READWRITE, NULL) ==
        SQLITE_OK) {
        sqlite3_busy_timeout(
            shop, 20000); /* another one may be stopped in there */
        return shop;
    }
    fprintf(stderr, "%s: %s\n", path, sqlite3_errmsg(shop));
    sqlite3_close(shop);
    return NULL;
}

int shop_open_orders(sqlite3 *shop, struct order *orders, int room)
{
    sqlite3_stmt *statement = prepare(shop, open_sql);
    int count = 0, rc;

    sqlite3_bind_int(statement, 1, room);
    while ((rc = sqlite3_step(statement)) == SQLITE_ROW && count < room) {
        struct order *order = &orders[count++];
        const char *id = (const char *)sqlite3_column_text(statement, 0);
        if (strlen(id) >= sizeof(order->id)) { /* schema.sql forbids it */
            fprintf(stderr, "shop: the id of %s is too long\n", id);
            break; /* cut, it would be another order */
        }
        strcpy(order->id, id);
        order->amount = sqlite3_column_int64(statement, 1);
        snprintf(order->currency, sizeof(order->currency), "%s",
            (const char *)sqlite3_column_text(statement, 2));
    }
    if (rc != SQLITE_DONE && rc != SQLITE_ROW)
        fprintf(stderr, "shop: %s\n", sqlite3_errmsg(shop));
    sqlite3_finalize(statement);
    return rc == SQLITE_DONE ? count : -1;
}

/* The claim changed nothing. */
static enum claim why_not(
    sqlite3 *shop, const struct order *order, int64_t fence)
{
    sqlite3_stmt *statement = prepare(shop, row_sql);
    enum claim claim = CLAIM_FAILED;

    bind_text(statement, 1, order->id);
    sqlite3_bind_int64(statement, 2, fence);
    if (sqlite3_step(statement) == SQLITE_ROW) {
        const char *state = (const char *)sqlite3_column_text(statement, 0);
        if (strcmp(state, "charging") != 0)
            claim = CLAIM_SETTLED;
        else if (sqlite3_column_int(statement, 1))
            claim = CLAIM_STALE;
        else
            claim = CLAIM_REVIEW;
    }
    sqlite3_finalize(statement);
    if (claim != CLAIM_REVIEW)
        return claim;

    statement = prepare(shop, review_sql);
    bind_text(statement, 1, order->id);
    sqlite3_bind_int64(statement, 2, fence);
    int moved = finish(statement, NULL, 0);
    return moved < 0 ? CLAIM_FAILED : moved ? CLAIM_REVIEW : CLAIM_STALE;
}

enum claim charge_claim(
    sqlite3 *shop, const struct order *order, int64_t fence, char key[KEY_SIZE])
{
    sqlite3_stmt *statement = prepare(shop, claim_sql);

    /* Of the order and nothing else: no time, no process, no attempt. */
    snprintf(key, KEY_SIZE, "charge-%s", order->id);
    bind_text(statement, 1, order->id);
    bind_text(statement, 2, key);
    sqlite3_bind_int64(statement, 3, order->amount);
    bind_text(statement, 4, order->currency);
    sqlite3_bind_int64(statement, 5, fence);
    sqlite3_bind_int64(statement, 6, (sqlite3_int64)time(NULL));
    switch (finish(statement, key, KEY_SIZE)) {
    case 1:
        return CLAIM_MINE;
    case 0:
        return why_not(shop, order, fence);
    default:
        return CLAIM_FAILED;
    }
}

enum record charge_record(sqlite3 *shop, const struct order *order,
    int64_t fence, const char *state, const char *reference)
{
    sqlite3_stmt *statement = prepare(shop, record_sql);

    bind_text(statement, 1, order->id);
    sqlite3_bind_int64(statement, 2, fence);
    bind_text(statement, 3, state);
    if (reference)
        bind_text(statement, 4, reference);
    int moved = finish(statement, NULL, 0);
    return moved < 0 ? RECORD_FAILED : moved ? RECORD_DONE : RECORD_STALE;
}

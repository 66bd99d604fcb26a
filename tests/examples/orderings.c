/* SPDX-License-Identifier: MIT */
/*
 * The statements of the payment example, one after another, in every order
 * in which two workers can come: only the greatest fencing number moves a row.
 */
#include "charge.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

static sqlite3 *shop;
static int bad;

#define CHECK(condition)                                                       \
    do {                                                                       \
        if (!(condition)) {                                                    \
            printf("line %d: %s\n", __LINE__, #condition);                     \
            bad = 1;                                                           \
        }                                                                      \
    } while (0)

static struct order order_of(const char *id)
{
    struct order order = {.currency = "EUR", .amount = 100};
    snprintf(order.id, sizeof(order.id), "%s", id);
    return order;
}

static enum claim claim(const struct order *order, int64_t fence)
{
    char key[KEY_SIZE], wanted[KEY_SIZE];
    enum claim found = charge_claim(shop, order, fence, key);
    snprintf(wanted, sizeof(wanted), "charge-%s", order->id);
    CHECK(found != CLAIM_MINE || strcmp(key, wanted) == 0);
    return found;
}

static enum record record(
    const struct order *order, int64_t fence, const char *state)
{
    char reference[80];
    snprintf(reference, sizeof(reference), "ch_%s", order->id);
    return charge_record(shop, order, fence, state,
        strcmp(state, "paid") == 0 ? reference : NULL);
}

/* The one value that a question has. */
static const char *ask(const char *sql, const char *id)
{
    static char text[64];
    sqlite3_stmt *statement;
    snprintf(text, sizeof(text), "(no row)");
    CHECK(sqlite3_prepare_v2(shop, sql, -1, &statement, NULL) == SQLITE_OK);
    sqlite3_bind_text(statement, 1, id, -1, SQLITE_STATIC);
    while (sqlite3_step(statement) == SQLITE_ROW)
        snprintf(text, sizeof(text), "%s",
            (const char *)sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    return text;
}

static const char *state_of(const struct order *order)
{
    return ask("SELECT state FROM charge WHERE order_id = ?1", order->id);
}

static void first_then_later(void)
{
    struct order order = order_of("later");
    CHECK(claim(&order, 5) == CLAIM_MINE);
    CHECK(claim(&order, 5) == CLAIM_STALE); /* its own number, once more */
    CHECK(claim(&order, 4) == CLAIM_STALE);
    CHECK(claim(&order, 6) == CLAIM_MINE);
    CHECK(record(&order, 5, "paid") == RECORD_STALE);
    CHECK(record(&order, 7, "paid") == RECORD_STALE);
    CHECK(strcmp(state_of(&order), "charging") == 0);
    CHECK(record(&order, 6, "paid") == RECORD_DONE);
    CHECK(record(&order, 6, "declined") == RECORD_STALE);
    CHECK(strcmp(state_of(&order), "paid") == 0);
    CHECK(claim(&order, 7) == CLAIM_SETTLED);
    CHECK(claim(&order, 3) == CLAIM_SETTLED);
    CHECK(
        strcmp(ask("SELECT attempts FROM charge WHERE order_id = ?1", order.id),
            "2") == 0);
}

static void declined(void)
{
    struct order order = order_of("declined");
    CHECK(claim(&order, 1) == CLAIM_MINE);
    CHECK(record(&order, 1, "declined") == RECORD_DONE);
    CHECK(claim(&order, 2) == CLAIM_SETTLED);
}

static void another_amount(void)
{
    struct order order = order_of("amount");
    CHECK(claim(&order, 5) == CLAIM_MINE);
    order.amount = 101;
    CHECK(claim(&order, 4) == CLAIM_STALE);
    CHECK(strcmp(state_of(&order), "charging") == 0);
    CHECK(claim(&order, 6) == CLAIM_REVIEW);
    CHECK(strcmp(state_of(&order), "review") == 0);
    CHECK(record(&order, 5, "paid") == RECORD_STALE);
    CHECK(claim(&order, 7) == CLAIM_SETTLED);
}

static void too_old(void)
{
    struct order order = order_of("old");
    CHECK(claim(&order, 5) == CLAIM_MINE);
    ask("UPDATE charge SET first_at = first_at - 71000 WHERE order_id = ?1",
        order.id);
    CHECK(claim(&order, 6) == CLAIM_MINE);
    ask("UPDATE charge SET first_at = first_at - 1000 WHERE order_id = ?1",
        order.id);
    CHECK(claim(&order, 7) == CLAIM_REVIEW);
    CHECK(record(&order, 6, "paid") == RECORD_STALE);
    CHECK(strcmp(state_of(&order), "review") == 0);
}

static void what_is_open(void)
{
    struct order orders[4];
    ask("INSERT INTO orders VALUES ('later', 100, 'EUR'), ('new', 7, 'JPY'),"
        " ('begun', 8, 'EUR'), ('old', 100, 'EUR')",
        "");
    struct order begun = order_of("begun");
    begun.amount = 8;
    CHECK(shop_open_orders(shop, orders, 4) == 2);
    CHECK(claim(&begun, 1) == CLAIM_MINE);
    CHECK(shop_open_orders(shop, orders, 4) == 2);
    const struct order *other = &orders[strcmp(orders[0].id, "new") != 0];
    CHECK(strcmp(other->id, "new") == 0 && other->amount == 7);
    CHECK(strcmp(other->currency, "JPY") == 0);
    CHECK(orders[0].amount + orders[1].amount == 15);
    CHECK(shop_open_orders(shop, orders, 1) == 1);
}

int main(int argc, char **argv)
{
    shop = argc > 1 ? shop_open(argv[1]) : NULL;
    if (!shop)
        return 1;
    first_then_later();
    declined();
    another_amount();
    too_old();
    what_is_open();
    sqlite3_close(shop);
    return bad;
}

/* SPDX-License-Identifier: MIT */
/* The rows. A process that is killed in here leaves none or a whole one. */
#include "once_ledger.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PATIENCE_MS = 60000 };

struct ledger {
    sqlite3 *db;
    sqlite3_stmt *charge, *find, *has;
};

int64_t receipt_sum(const void *receipt, size_t length)
{
    const unsigned char *bytes = receipt;
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < length; i++)
        sum = (sum ^ bytes[i]) * UINT64_C(0x100000001b3);
    return (int64_t)sum;
}

static void check(struct ledger *ledger, bool fine)
{
    if (fine)
        return;
    fprintf(stderr, "ledger: %s\n", sqlite3_errmsg(ledger->db));
    exit(6);
}

static void run(struct ledger *ledger, const char *sql)
{
    check(ledger, sqlite3_exec(ledger->db, sql, NULL, NULL, NULL) == SQLITE_OK);
}

static sqlite3_stmt *prepare(struct ledger *ledger, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    check(ledger,
        sqlite3_prepare_v2(ledger->db, sql, -1, &statement, NULL) == SQLITE_OK);
    return statement;
}

/* While another process does the same, SQLite says at once that it is busy,
 * whatever the timeout. */
static void use_wal(struct ledger *ledger)
{
    static const char sql[] = "PRAGMA journal_mode = WAL";
    const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
    int rc = sqlite3_exec(ledger->db, sql, NULL, NULL, NULL);
    for (int i = 0; rc == SQLITE_BUSY && i < PATIENCE_MS / 10; i++) {
        nanosleep(&pause, NULL);
        rc = sqlite3_exec(ledger->db, sql, NULL, NULL, NULL);
    }
    check(ledger, rc == SQLITE_OK);
}

struct ledger *ledger_open(const char *path)
{
    struct ledger *ledger = calloc(1, sizeof(*ledger));
    if (!ledger)
        exit(6);
    check(ledger, sqlite3_open(path, &ledger->db) == SQLITE_OK);
    sqlite3_busy_timeout(ledger->db, PATIENCE_MS);
    /* Nothing here survives the machine; all of it survives a process. */
    use_wal(ledger);
    run(ledger, "PRAGMA synchronous = OFF;"
                "CREATE TABLE IF NOT EXISTS charges (id INTEGER PRIMARY KEY,"
                " key INTEGER, fence INTEGER, doubts INTEGER, sum INTEGER,"
                " receipt BLOB);"
                "CREATE INDEX IF NOT EXISTS k ON charges (key)");
    ledger->charge =
        prepare(ledger, "INSERT INTO charges (key, fence, doubts, sum, receipt)"
                        " VALUES (?1, ?2, ?3, ?4, ?5)");
    ledger->find = prepare(
        ledger, "SELECT receipt FROM charges WHERE key = ?1 ORDER BY id");
    ledger->has =
        prepare(ledger, "SELECT 1 FROM charges WHERE key = ?1 AND sum = ?2");
    return ledger;
}

void ledger_close(struct ledger *ledger)
{
    sqlite3_finalize(ledger->charge);
    sqlite3_finalize(ledger->find);
    sqlite3_finalize(ledger->has);
    sqlite3_close(ledger->db);
    free(ledger);
}

/* Steps to the first row or the end; true: a row. */
static bool step(struct ledger *ledger, sqlite3_stmt *statement)
{
    int rc = sqlite3_step(statement);
    check(ledger, rc == SQLITE_ROW || rc == SQLITE_DONE);
    return rc == SQLITE_ROW;
}

bool ledger_charge(struct ledger *ledger, const struct charge *charge,
    bool (*may)(void *arg), void *arg)
{
    sqlite3_stmt *s = ledger->charge;
    run(ledger, "BEGIN IMMEDIATE");
    bool charges = !may || may(arg);
    if (charges) {
        sqlite3_bind_int64(s, 1, (sqlite3_int64)charge->key);
        sqlite3_bind_int64(s, 2, (sqlite3_int64)charge->fence);
        sqlite3_bind_int64(s, 3, charge->doubts);
        sqlite3_bind_int64(s, 4, receipt_sum(charge->receipt, charge->length));
        sqlite3_bind_blob(
            s, 5, charge->receipt, (int)charge->length, SQLITE_STATIC);
        step(ledger, s);
        sqlite3_reset(s);
    }
    run(ledger, "COMMIT");
    return charges;
}

bool ledger_find(struct ledger *ledger, uint64_t key, void *receipt,
    size_t size, size_t *length)
{
    sqlite3_stmt *s = ledger->find;
    sqlite3_bind_int64(s, 1, (sqlite3_int64)key);
    bool found = step(ledger, s);
    if (found) {
        const void *blob = sqlite3_column_blob(s, 0);
        *length = (size_t)sqlite3_column_bytes(s, 0);
        if (*length > size)
            exit(6);
        if (*length)
            memcpy(receipt, blob, *length);
    }
    sqlite3_reset(s);
    return found;
}

bool ledger_has(struct ledger *ledger, uint64_t key, int64_t sum)
{
    sqlite3_stmt *s = ledger->has;
    sqlite3_bind_int64(s, 1, (sqlite3_int64)key);
    sqlite3_bind_int64(s, 2, sum);
    bool found = step(ledger, s);
    sqlite3_reset(s);
    return found;
}

/* SPDX-License-Identifier: MIT */
/* Every statement is a transaction of its own, so a process that is stopped
 * or killed between two of them holds up nobody. */
#include "resource.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

enum { BUSY_MS = 10000 };

struct resource {
    sqlite3 *db;
};

static void give_up(struct resource *r, const char *doing)
{
    fprintf(stderr, "%s: %s\n", doing, sqlite3_errmsg(r->db));
    _Exit(9);
}

/* With up to two numbers for ?1 and ?2; the first column of the first row, or
 * how many rows were changed. */
static int64_t run(
    struct resource *r, const char *sql, uint64_t first, uint64_t second)
{
    sqlite3_stmt *statement;
    int64_t value = -1;
    if (sqlite3_prepare_v2(r->db, sql, -1, &statement, NULL) != SQLITE_OK)
        give_up(r, sql);
    int count = sqlite3_bind_parameter_count(statement);
    if (count > 0)
        sqlite3_bind_int64(statement, 1, (sqlite3_int64)first);
    if (count > 1)
        sqlite3_bind_int64(statement, 2, (sqlite3_int64)second);
    int rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW)
        value = sqlite3_column_int64(statement, 0);
    else if (rc == SQLITE_DONE)
        value = sqlite3_changes(r->db);
    else
        give_up(r, sql);
    sqlite3_finalize(statement);
    return value;
}

struct resource *resource_open(const char *path)
{
    struct resource *r = calloc(1, sizeof(*r));
    if (!r || sqlite3_open_v2(path, &r->db, SQLITE_OPEN_READWRITE, NULL))
        _Exit(9);
    sqlite3_busy_timeout(r->db, BUSY_MS);
    run(r, "PRAGMA synchronous = OFF", 0, 0);
    return r;
}

void resource_close(struct resource *r)
{
    sqlite3_close(r->db);
    free(r);
}

struct reading resource_read(struct resource *r, uint64_t fence)
{
    struct reading reading = {.fence = fence};
    reading.fresh = run(r, "UPDATE checked SET fence = ?1 WHERE fence <= ?1",
                        fence, 0) == 1;
    reading.checked = run(r, "SELECT value FROM checked", 0, 0);
    reading.plain = run(r, "SELECT value FROM plain", 0, 0);
    return reading;
}

void resource_write(struct resource *r, const struct reading *reading)
{
    run(r, "UPDATE plain SET value = ?1, writes = writes + 1",
        (uint64_t)reading->plain + 1, 0);
    if (reading->fresh &&
        run(r,
            "UPDATE checked SET value = ?1, writes = writes + 1, fence = ?2 "
            "WHERE fence <= ?2",
            (uint64_t)reading->checked + 1, reading->fence) == 1)
        return;
    run(r, "UPDATE refused SET count = count + 1", 0, 0);
}

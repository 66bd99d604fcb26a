/* SPDX-License-Identifier: MIT */
/*
 * The command list: prints the locks, and the records of nxlock once, that a
 * scan of all servers has found.
 *
 * Invariant: no token is printed, only what shows who it is.
 */
#include "cli/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/clock.h"
#include "cli/report/date.h"
#include "cli/report/duration.h"
#include "cli/run/every.h"
#include "cli/report/report.h"
#include "cli/look/scan.h"
#include "wire/record.h"

/* Orders by name and value, so that what several servers have is together. */
static int compare(const struct found *one, const struct found *two)
{
    size_t shorter = one->name_length < two->name_length ? one->name_length
                                                         : two->name_length;
    int order = memcmp(one->name, two->name, shorter);

    if (order != 0)
        return order;
    if (one->name_length != two->name_length)
        return one->name_length < two->name_length ? -1 : 1;
    /* Several holders come and go, and each server may show another one. */
    if (one->held.count > 0 && two->held.count > 0)
        return 0;
    return strcmp(one->value, two->value);
}

/* The one with most left first. */
static int in_order(const void *a, const void *b)
{
    const struct found *one = a, *two = b;
    int order = compare(one, two);

    if (order != 0 || one->left_ms == two->left_ms)
        return order;
    if (one->left_ms == -1 || two->left_ms == -1)
        return one->left_ms == -1 ? -1 : 1;
    return one->left_ms > two->left_ms ? -1 : 1;
}

static size_t count_servers(const struct found *f)
{
    return (size_t)__builtin_popcount(f->servers);
}

/* Makes one of what several servers have, or what a scan came across again. Its
 * left_ms is then how long a majority of the servers will have it or, without a
 * majority, all of those that have it. */
static void merge(struct scan *scan)
{
    size_t count = 0;

    for (size_t i = 0; i < scan->count; i++) {
        struct found f = scan->list[i];
        struct found *to = &scan->list[count > 0 ? count - 1 : 0];
        if (count == 0 || compare(to, &f) != 0) {
            scan->list[count++] = f;
            continue;
        }
        if (!(to->servers & f.servers) &&
            count_servers(to) <= scan->servers / 2)
            to->left_ms = f.left_ms;
        to->servers |= f.servers;
        found_free(&f);
    }
    scan->count = count;
}

/* What the list says about a lock or a record. */
struct shown {
    const char *state;
    bool is_record;
    struct record record;
    struct holders holders;
};

static void describe(
    const struct scan *scan, const struct found *f, struct shown *shown)
{
    struct record *record = &shown->record;
    struct slice value = slice_of(f->value);

    shown->is_record = record_parse(value, record);
    if (shown->is_record && record->state == ONCE_BEGUN && f->left_ms < 0)
        shown->state = record_state_word(ONCE_DOUBT);
    else if (shown->is_record)
        shown->state = record_state_word(record->state);
    else if (count_servers(f) <= scan->servers / 2)
        shown->state = "partial";
    else if (every_is_mark(f->name, f->name_length))
        shown->state = "every";
    else
        shown->state = "held";
    shown->holders =
        (struct holders){.shared = f->held.count > 0, .held = f->held};
    if (!shown->holders.shared)
        shown->holders.held.count = 1;
    holder_make(&shown->holders.first, shown->is_record ? record->token : value,
        f->left_ms);
}

/* Writes what a record says as members. */
static void json_record(struct json *json, const struct record *record)
{
    char at[DATE_ROOM];

    json_number(json, "attempt", record->attempt);
    json_number(json, "doubts", record->doubts);
    date_rfc3339(at, record->since_ms / MS_PER_S);
    json_text(json, "began", at, strlen(at));
    if (record->ended_ms == 0)
        return;
    date_rfc3339(at, record->ended_ms / MS_PER_S);
    json_text(json, "ended", at, strlen(at));
    json_number(json, "code", record->code);
}

static void print_json(
    const struct scan *scan, const struct found *f, const struct shown *shown)
{
    struct json json;

    json_begin(&json, stdout);
    json_number(&json, "v", JSON_VERSION);
    json_text(&json, "name", f->name, f->name_length);
    json_text(&json, "state", shown->state, strlen(shown->state));
    holder_json(&json, &shown->holders.first);
    if (shown->holders.shared) {
        holders_json_held(&json, &f->held);
        json_number(&json, "holder_count", (int64_t)f->held.count);
    }
    if (shown->is_record)
        json_record(&json, &shown->record);
    if (scan->servers > 1) {
        json_number(&json, "at", (int64_t)count_servers(f));
        json_number(&json, "of", (int64_t)scan->servers);
    }
    json_end(&json);
}

/* Replaces control bytes, and zero bytes, which would cut the row. */
static const char *clean_name(struct found *f)
{
    for (size_t i = 0; i < f->name_length; i++) {
        if (f->name[i] == '\0')
            f->name[i] = '?';
    }
    clean_text(f->name, f->name_length);
    return f->name;
}

/* The columns of a terminal that text takes, if each character takes one. */
static int characters(const char *text)
{
    int count = 0;

    for (; *text != '\0'; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80; /* begins one */
    return count;
}

static void print_row(const struct scan *scan, const struct found *f,
    const struct shown *shown, int width)
{
    char owner[HOLDER_WORDS], left[DURATION_ROOM] = "-", name[NAME_SHOWN];

    if (f->left_ms >= 0)
        duration_left(left, f->left_ms);
    holders_owner(owner, &shown->holders);
    name_shown(name, f->name);
    if (width > 0)
        printf("%s%*s  %-7s  %-32s  %6s", name, width - characters(name), "",
            shown->state, owner, left);
    else
        printf("%s\t%s\t%s\t%s", f->name, shown->state, owner, left);
    if (scan->servers > 1)
        printf(width > 0 ? "  %zu/%zu" : "\t%zu/%zu", count_servers(f),
            scan->servers);
    putchar('\n');
}

/* Prints the head of a table, for a terminal. Returns the width of the names;
 * 0: there is no table. */
static int print_head(struct scan *scan)
{
    int width = 4;
    char shown[NAME_SHOWN];

    for (size_t i = 0; i < scan->count; i++) {
        int length = characters(name_shown(shown, clean_name(&scan->list[i])));
        if (length > width)
            width = length;
    }
    if (scan->count == 0 || !isatty(STDOUT_FILENO))
        return 0;
    printf("%-*s  %-7s  %-32s  %6s%s\n", width, "NAME", "STATE", "OWNER",
        "LEFT", scan->servers > 1 ? "  SERVERS" : "");
    return width;
}

static void print_all(struct scan *scan)
{
    bool as_json = scan->session.args->json;
    int width = as_json ? 0 : print_head(scan);
    struct shown shown;

    for (size_t i = 0; i < scan->count; i++) {
        const struct found *f = &scan->list[i];
        describe(scan, f, &shown);
        if (as_json)
            print_json(scan, f, &shown);
        else
            print_row(scan, f, &shown, width);
    }
}

static int list(struct scan *scan)
{
    const struct args *args = scan->session.args;

    scan->glob = args->name ? args->name : "*";
    scan_servers(scan);
    if (scan->count > 1)
        qsort(scan->list, scan->count, sizeof(scan->list[0]), in_order);
    merge(scan);
    print_all(scan);
    if (report_output() != EXIT_DONE)
        return EXIT_INTERNAL;
    /* A lock that is held on a majority is seen if a majority was scanned. */
    return scan->scanned > scan->servers / 2 ? EXIT_DONE : scan->code;
}

int subcommand_list(const struct args *args)
{
    struct scan scan;

    memset(&scan, 0, sizeof(scan));
    int code = session_open_plain(&scan.session, args);
    if (code == 0)
        code = list(&scan);
    scan_free(&scan);
    session_close(&scan.session);
    return code;
}

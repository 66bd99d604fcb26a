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

#include "cli/report/duration.h"
#include "cli/run/every.h"
#include "cli/report/report.h"
#include "cli/look/scan.h"
#include "cli/once/once_words.h"

/* Orders by name, kind and token, so that what several servers have is
 * together. */
static int compare(const struct found *one, const struct found *two)
{
    int order = strcmp(one->name, two->name);

    if (order != 0)
        return order;
    if (!one->state != !two->state)
        return one->state ? -1 : 1;
    bool shared = one->held.count > 0;
    if (shared != (two->held.count > 0))
        return shared ? -1 : 1;
    /* Several holders come and go, and each server may show another one. */
    return shared ? 0 : strcmp(one->token, two->token);
}

/* The one with most left first. */
static int in_order(const void *a, const void *b)
{
    const struct found *one = a, *two = b;
    int order = compare(one, two);

    /* -1, never, is the largest. */
    uint64_t left = (uint64_t)one->left_ms, other = (uint64_t)two->left_ms;

    return order != 0 || left == other ? order : left > other ? -1 : 1;
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

static const char *state_of(const struct scan *scan, const struct found *f)
{
    if (f->state)
        return f->state;
    if (count_servers(f) <= scan->servers / 2)
        return "partial";
    return every_is_mark(f->name, strlen(f->name)) ? "every" : "held";
}

static void print_json(const struct scan *scan, const struct found *f,
    const struct holders *holders)
{
    const char *state = state_of(scan, f);
    struct json json;

    json_begin(&json, stdout);
    json_number(&json, "v", JSON_VERSION);
    json_string(&json, "name", f->name);
    json_string(&json, "state", state);
    if (f->state) {
        holder_json_who(&json, &holders->first);
        record_json(&json, &f->record);
    } else {
        holder_json(&json, &holders->first);
    }
    if (holders->shared) {
        holders_json_held(&json, &f->held);
        json_number(&json, "holder_count", (int64_t)f->held.count);
    }
    if (scan->servers > 1) {
        json_number(&json, "at", (int64_t)count_servers(f));
        json_number(&json, "of", (int64_t)scan->servers);
    }
    json_end(&json);
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
    const struct holders *holders, int width)
{
    char owner[HOLDER_WORDS], left[DURATION_ROOM] = "-", name[NAME_SHOWN];

    if (f->left_ms >= 0)
        duration_left(left, f->left_ms);
    holders_owner(owner, holders);
    name_shown(name, f->name);
    if (width > 0)
        printf("%s%*s  %-7s  %-32s  %6s", name, width - characters(name), "",
            state_of(scan, f), owner, left);
    else
        printf("%s\t%s\t%s\t%s", f->name, state_of(scan, f), owner, left);
    if (scan->servers > 1)
        printf(width > 0 ? "  %zu/%zu" : "\t%zu/%zu", count_servers(f),
            scan->servers);
    putchar('\n');
}

/* Prints the head of a table, for a terminal. Returns the width of the names;
 * 0: there is no table. */
static int print_head(const struct scan *scan)
{
    int width = 4;
    char shown[NAME_SHOWN];

    for (size_t i = 0; i < scan->count; i++) {
        int length = characters(name_shown(shown, scan->list[i].name));
        if (length > width)
            width = length;
    }
    if (scan->count == 0 || !isatty(STDOUT_FILENO))
        return 0;
    printf("%-*s  %-7s  %-32s  %6s%s\n", width, "NAME", "STATE", "OWNER",
        "LEFT", scan->servers > 1 ? "  SERVERS" : "");
    return width;
}

static void print_all(const struct scan *scan)
{
    bool as_json = scan->session.args->json;
    int width = as_json ? 0 : print_head(scan);

    for (size_t i = 0; i < scan->count; i++) {
        struct found *f = &scan->list[i];
        struct holders holders = {.shared = f->held.count > 0, .held = f->held};
        if (!holders.shared)
            holders.held.count = 1;
        holder_make(&holders.first, slice_of(f->token), f->left_ms);
        if (as_json) {
            print_json(scan, f, &holders);
        } else {
            clean_text(f->name, strlen(f->name));
            print_row(scan, f, &holders, width);
        }
    }
}

static int list(struct scan *scan)
{
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
    struct scan scan = {.code = 0};
    int code = session_open_plain(&scan.session, args);
    if (code == 0)
        code = list(&scan);
    scan_free(&scan);
    session_close(&scan.session);
    return code;
}

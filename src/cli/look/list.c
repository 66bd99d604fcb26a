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
#include "cli/look/holders.h"
#include "cli/report/json.h"
#include "cli/report/report.h"
#include "cli/look/scan.h"
#include "wire/record.h"

static int longest_first(const void *a, const void *b)
{
    int64_t one = *(const int64_t *)a, two = *(const int64_t *)b;

    return one == two ? 0 : one == -1 ? -1 : two == -1 ? 1 : one > two ? -1 : 1;
}

/* Returns how many servers have the lock. *left_ms: how long a majority of all
 * servers will have it or, without a majority, all of those that have it. */
static size_t count_holders(
    const struct lister *lister, const struct lock_entry *f, int64_t *left_ms)
{
    int64_t left[NXL_SERVERS_MAX];
    size_t quorum = lister->servers / 2 + 1, count = 0;

    for (size_t i = 0; i < lister->servers; i++) {
        if (f->left_ms[i] != LOCK_NOWHERE)
            left[count++] = f->left_ms[i];
    }
    qsort(left, count, sizeof(left[0]), longest_first);
    *left_ms = left[(count < quorum ? count : quorum) - 1];
    return count;
}

/* What the list says about a lock or a record. */
struct shown {
    size_t count; /* servers that have it */
    int64_t left_ms;
    const char *state;
    bool is_record;
    struct record record;
    nxl_holder holder;
};

static void describe(const struct lister *lister, const struct lock_entry *f,
    struct shown *shown)
{
    struct record *record = &shown->record;
    bool every = every_is_mark(f->name, f->name_length);

    shown->count = count_holders(lister, f, &shown->left_ms);
    shown->is_record = record_parse(slice_of(f->value), record);
    bool in_doubt =
        shown->is_record && record->state == ONCE_BEGUN && shown->left_ms < 0;
    if (shown->is_record)
        shown->state = record_state_word(in_doubt ? ONCE_DOUBT : record->state);
    else if (shown->count <= lister->servers / 2)
        shown->state = "partial";
    else
        shown->state = every ? "every" : "held";
    holder_make(&shown->holder,
        shown->is_record ? record->token : slice_of(f->value), shown->left_ms);
}

/* Writes what a record says as members. */
static void print_record_json(struct json *json, const struct record *record)
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

/* Writes how several hold a lock as members. */
static void print_share_json(struct json *json, const struct lock_share *share)
{
    const char *kind = share->permits > 0 ? "permits" : "shared";

    json_text(json, "kind", kind, strlen(kind));
    json_number(json, "permits_held", share->used);
    if (share->permits > 0)
        json_number(json, "permits", share->permits);
    json_number(json, "holder_count", (int64_t)share->holders);
    if (share->partial)
        json_true(json, "more_holders");
}

static void print_lock_json(
    const struct lister *lister, const struct lock_entry *f)
{
    struct shown shown;
    struct json json;

    describe(lister, f, &shown);
    json_begin(&json, stdout);
    json_number(&json, "v", JSON_VERSION);
    json_text(&json, "name", f->name, f->name_length);
    json_text(&json, "state", shown.state, strlen(shown.state));
    holder_json(&json, &shown.holder);
    if (f->share.holders > 0)
        print_share_json(&json, &f->share);
    if (shown.is_record)
        print_record_json(&json, &shown.record);
    if (lister->servers > 1) {
        json_number(&json, "at", (int64_t)shown.count);
        json_number(&json, "of", (int64_t)lister->servers);
    }
    json_end(&json);
}

/* Replaces control bytes, and zero bytes, which would cut the line. */
static const char *clean_name(struct lock_entry *f)
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

/* Writes who holds it: "db7:41233:job", "3 holders, 3 of 4 permits". */
static void owner_words(
    char who[HOLDER_WHO], const struct lock_entry *f, const nxl_holder *holder)
{
    const struct lock_share *share = &f->share;
    char words[HOLDERS_SHARE];

    if (share->holders == 1)
        holder_who(who, holder);
    else if (share->holders > 1)
        snprintf(who, HOLDER_WHO, "%s%zu holders",
            share->partial ? "at least " : "", share->holders);
    size_t used = share->holders > 0 ? strlen(who) : 0;
    if (used > 0)
        snprintf(who + used, HOLDER_WHO - used, ", %s",
            holders_share(words, share->used, share->permits));
    else
        holder_who(who, holder);
}

static void print_line(
    const struct lister *lister, struct lock_entry *f, int width, bool aligned)
{
    char who[HOLDER_WHO], left[DURATION_ROOM] = "-", name[NAME_SHOWN];
    struct shown shown;

    describe(lister, f, &shown);
    if (shown.left_ms >= 0)
        duration_left(left, shown.left_ms);
    owner_words(who, f, &shown.holder);
    name_shown(name, clean_name(f));
    if (aligned)
        printf("%s%*s  %-7s  %-32s  %6s", name, width - characters(name), "",
            shown.state, who, left);
    else
        printf("%s\t%s\t%s\t%s", f->name, shown.state, who, left);
    if (lister->servers > 1)
        printf(
            aligned ? "  %zu/%zu" : "\t%zu/%zu", shown.count, lister->servers);
    putchar('\n');
}

static void print_all(const struct lister *lister)
{
    const struct lock_list *found = &lister->locks;
    bool aligned = isatty(STDOUT_FILENO);
    int width = 4;
    char shown[NAME_SHOWN];

    for (size_t i = 0; i < found->count && !lister->session.args->json; i++) {
        int length = characters(name_shown(shown, clean_name(found->list[i])));
        if (length > width)
            width = length;
    }
    if (aligned && !lister->session.args->json && found->count > 0)
        printf("%-*s  %-7s  %-32s  %6s%s\n", width, "NAME", "STATE", "OWNER",
            "LEFT", lister->servers > 1 ? "  SERVERS" : "");
    for (size_t i = 0; i < found->count; i++) {
        if (lister->session.args->json)
            print_lock_json(lister, found->list[i]);
        else
            print_line(lister, found->list[i], width, aligned);
    }
}

static int list(struct lister *lister)
{
    const struct args *args = lister->session.args;

    lister->glob = args->name ? args->name : "*";
    scan_servers(lister);
    lock_list_sort(&lister->locks);
    print_all(lister);
    if (report_output() != EXIT_DONE)
        return EXIT_INTERNAL;
    /* A lock that is held on a majority is seen if a majority was scanned. */
    return lister->scanned > lister->servers / 2 ? EXIT_DONE : lister->code;
}

int subcommand_list(const struct args *args)
{
    struct lister lister;

    memset(&lister, 0, sizeof(lister));
    int code = session_open_plain(&lister.session, args);
    if (code == 0)
        code = list(&lister);
    lock_list_free(&lister.locks);
    session_close(&lister.session);
    return code;
}

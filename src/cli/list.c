/* SPDX-License-Identifier: MIT */
/*
 * The command list: scans the keys of every server for locks.
 *
 * Invariant: the server is never blocked: its keys are scanned in small steps,
 * and no more of a value is read than a token is long. A list that lacks a
 * server says so.
 */
#include "cli/commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/connect.h"
#include "cli/duration.h"
#include "cli/every.h"
#include "cli/lock_list.h"
#include "cli/holder.h"
#include "cli/json.h"
#include "cli/partial.h"
#include "cli/report.h"
#include "cli/secret.h"

#define COUNT_FIRST 250 /* keys that one step looks at */
#define VALUE_MOST "511"

struct lister {
    struct session session;
    struct lock_list locks;
    size_t servers;
    char *pattern;  /* owned */
    size_t scanned; /* servers that were scanned to the end */
    int code;       /* exit code for the first that was not; 0: none */
    bool no_cursor; /* an answer to SCAN had no cursor */
};

/* ---------------------------------------------------------------- scanning */

/* The pattern for SCAN: the prefix with its special characters escaped, then
 * GLOB. NULL: no memory. */
static char *pattern_of(const char *prefix, const char *glob)
{
    char *pattern = malloc(2 * strlen(prefix) + strlen(glob) + 1);
    char *at = pattern;

    if (!pattern)
        return NULL;
    for (; *prefix != '\0'; prefix++) {
        if (strchr("*?[]\\", *prefix))
            *at++ = '\\';
        *at++ = *prefix;
    }
    memcpy(at, glob, strlen(glob) + 1);
    return pattern;
}

/* Adds the key to the list if its value is a token. */
static int inspect_key(
    struct lister *lister, size_t server, const char *key, size_t length)
{
    nxl_client *client = lister->session.client;
    const char *value_of[] = {"GETRANGE", key, "0", VALUE_MOST};
    const char *left_of[] = {"PTTL", key};
    const size_t lengths[] = {8, length, 1, 3};
    const size_t left_lengths[] = {4, length};
    size_t prefix = strlen(nxl_client_prefix(client)), size;
    nxl_answer *value, *left;
    int rc = nxl_client_ask(client, server, 4, value_of, lengths, &value);

    if (rc == NXL_E_WRONG_TYPE)
        return NXL_OK;
    if (rc != NXL_OK)
        return rc;
    const char *token = nxl_answer_item(value, 0, &size);
    if (token && strlen(token) == size && is_token(token) && length >= prefix) {
        rc = nxl_client_ask(client, server, 2, left_of, left_lengths, &left);
        const char *ms = nxl_answer_item(left, 0, NULL);
        int64_t left_ms = ms ? strtoll(ms, NULL, 10) : -2;
        if (left_ms >= -1 && !lock_list_add(&lister->locks, key + prefix,
                                 length - prefix, token, server, left_ms))
            rc = NXL_E_NOMEM;
        nxl_answer_free(left);
    }
    nxl_answer_free(value);
    return rc;
}

/* Inspects the keys of one step of SCAN; item 0 is the next cursor. */
static int inspect_keys(
    struct lister *lister, size_t server, const nxl_answer *keys)
{
    int rc = NXL_OK;

    for (size_t i = 1; rc == NXL_OK && i < nxl_answer_count(keys); i++) {
        size_t length;
        const char *key = nxl_answer_item(keys, i, &length);
        if (key)
            rc = inspect_key(lister, server, key, length);
    }
    return rc;
}

/* The next step of the scan. */
struct step {
    char cursor[24];
    unsigned count;
    bool typed; /* use TYPE string, which 6.0 and later know */
};

static int take_step(
    struct lister *lister, size_t server, struct step *step, nxl_answer **keys)
{
    char count[12];
    const char *words[] = {"SCAN", step->cursor, "MATCH", lister->pattern,
        "COUNT", count, "TYPE", "string"};

    for (;;) {
        snprintf(count, sizeof(count), "%u", step->count);
        int rc = nxl_client_ask(lister->session.client, server,
            step->typed ? 8 : 6, words, NULL, keys);
        if (rc != NXL_E_UNSUPPORTED)
            return rc;
        if (step->typed)
            step->typed = false;
        else if (step->count > 1) /* long names can make an answer too big */
            step->count = (step->count + 9) / 10;
        else
            return rc;
    }
}

static int scan_server(struct lister *lister, size_t server)
{
    struct step step = {.cursor = "0", .count = COUNT_FIRST, .typed = true};
    int rc;

    do {
        nxl_answer *keys;
        rc = take_step(lister, server, &step, &keys);
        if (rc != NXL_OK)
            return rc;
        const char *cursor = nxl_answer_item(keys, 0, NULL);
        lister->no_cursor = !cursor || *cursor == '\0' ||
                            cursor[strspn(cursor, "0123456789")] != '\0';
        snprintf(step.cursor, sizeof(step.cursor), "%s",
            lister->no_cursor ? "0" : cursor);
        rc = lister->no_cursor ? NXL_E_NOT_REDIS
                               : inspect_keys(lister, server, keys);
        nxl_answer_free(keys);
    } while (rc == NXL_OK && strcmp(step.cursor, "0") != 0);
    return rc;
}

/* Warns if the server may not have all locks. In JSON the warning is an object
 * before the locks, so that an empty list is not mistaken for "nothing is
 * held". */
static void warn_about(const struct lister *lister, size_t server)
{
    char words[PARTIAL_WORDS];
    struct json json;

    if (!partial_words(lister->session.client, server, true, words))
        return;
    say("warning: %s", words);
    if (!lister->session.args->json)
        return;
    json_begin(&json, stdout);
    json_number(&json, "v", JSON_VERSION);
    json_text(&json, "warning", words, strlen(words));
    json_end(&json);
}

static void scan_servers(struct lister *lister)
{
    nxl_client *client = lister->session.client;

    for (size_t i = 0; i < lister->servers; i++) {
        int rc = scan_server(lister, i);
        if (rc == NXL_OK) {
            lister->scanned++;
            warn_about(lister, i);
            continue;
        }
        say("%s: %s", lister->servers > 1 ? "left out" : "cannot list",
            rc == NXL_E_NOMEM   ? "out of memory"
            : lister->no_cursor ? "the answer to SCAN has no cursor: is this "
                                  "a Redis server?"
                                : nxl_client_errmsg(client));
        if (rc == NXL_E_UNREACHABLE)
            connect_advise(lister->session.args, rc, nxl_client_errmsg(client));
        if (lister->code == 0)
            lister->code = exit_code_for(rc, EXIT_BUSY);
    }
    if (lister->servers > 1 && lister->scanned <= lister->servers / 2)
        say("the list is incomplete: %zu of %zu servers answered",
            lister->scanned, lister->servers);
}

/* ---------------------------------------------------------------- printing */

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

static const char *lock_state(
    const struct lister *lister, const struct lock_entry *f, size_t count)
{
    if (count <= lister->servers / 2)
        return "partial";
    return every_is_record(f->name, f->name_length) ? "every" : "held";
}

static void print_lock_json(
    const struct lister *lister, const struct lock_entry *f)
{
    int64_t left_ms;
    size_t count = count_holders(lister, f, &left_ms);
    const char *state = lock_state(lister, f, count);
    nxl_holder holder;
    struct json json;

    holder_make(&holder, f->value, left_ms);
    json_begin(&json, stdout);
    json_number(&json, "v", JSON_VERSION);
    json_text(&json, "name", f->name, f->name_length);
    json_text(&json, "state", state, strlen(state));
    holder_json(&json, &holder);
    if (lister->servers > 1) {
        json_number(&json, "at", (int64_t)count);
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

static void print_line(
    const struct lister *lister, struct lock_entry *f, int width, bool aligned)
{
    int64_t left_ms;
    size_t count = count_holders(lister, f, &left_ms);
    const char *state = lock_state(lister, f, count);
    nxl_holder holder;
    char who[HOLDER_WHO], left[DURATION_ROOM] = "-", shown[NAME_SHOWN];

    if (left_ms >= 0)
        duration_left(left, left_ms);
    holder_make(&holder, f->value, left_ms);
    holder_who(who, &holder);
    clean_name(f);
    if (aligned)
        printf("%-*s  %-7s  %-32s  %6s", width, name_shown(shown, f->name),
            state, who, left);
    else
        printf("%s\t%s\t%s\t%s", f->name, state, who, left);
    if (lister->servers > 1)
        printf(aligned ? "  %zu/%zu" : "\t%zu/%zu", count, lister->servers);
    putchar('\n');
}

static void print_all(const struct lister *lister)
{
    const struct lock_list *found = &lister->locks;
    bool aligned = isatty(STDOUT_FILENO);
    int width = 4;
    char shown[NAME_SHOWN];

    for (size_t i = 0; i < found->count && !lister->session.args->json; i++) {
        int length = (int)strlen(name_shown(shown, clean_name(found->list[i])));
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

    lister->servers = nxl_client_servers(lister->session.client);
    lister->pattern = pattern_of(nxl_client_prefix(lister->session.client),
        args->name ? args->name : "*");
    if (!lister->pattern) {
        say("out of memory");
        return EXIT_INTERNAL;
    }
    scan_servers(lister);
    lock_list_sort(&lister->locks);
    print_all(lister);
    if (ferror(stdout) || fflush(stdout) != 0) {
        say("cannot print: %s", strerror(errno));
        return EXIT_INTERNAL;
    }
    /* A lock that is held on a majority is seen if a majority was scanned. */
    return lister->scanned > lister->servers / 2 ? EXIT_DONE : lister->code;
}

int command_list(const struct args *args)
{
    struct lister lister;

    memset(&lister, 0, sizeof(lister));
    int code = session_open_plain(&lister.session, args);
    if (code == 0)
        code = list(&lister);
    lock_list_free(&lister.locks);
    free(lister.pattern);
    session_close(&lister.session);
    return code;
}

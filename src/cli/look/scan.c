/* SPDX-License-Identifier: MIT */
/*
 * Scans the keys of every server for locks, and for records of nxlock once.
 *
 * Invariant: the server is never blocked: its keys are scanned in small steps,
 * and no more of a value is read than a token, or the header of a record,
 * is long. A list that lacks a server, or records, says so. Memory grows with
 * the number of locks, not of keys.
 */
#include "cli/look/scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/private.h"
#include "cli/answer.h"
#include "cli/servers/connect.h"
#include "cli/look/partial.h"
#include "cli/report/report.h"
#include "cli/servers/secret.h"
#include "wire/record.h"

#define FIRST_ROOM 64
#define COUNT_FIRST 250 /* keys that one step looks at */
#define VALUE_MAX "511"
#define HEADER_MAX "1023" /* longer than the header of a record */
#define CURSOR_ROOM 24
#define MEMBERS_SHOWN 1000
#define MEMBERS_MOST "-1001" /* and the head */

/* ----------------------------------------------------------------- reading */

/* The server answered, but not to this command. */
static int refuse_answer(struct scan *scan, const char *command)
{
    scan->odd = command;
    return NXL_E_NOT_REDIS;
}

/* Asks about a key; the words behind it may be NULL. */
static int ask_about(struct scan *scan, const char *command, struct slice key,
    const char *first, const char *last, const char *more,
    struct answer **answer)
{
    const char *words[] = {command, key.data, first, last, more};
    size_t lengths[5], count = 0;

    for (; count < 5 && words[count]; count++)
        lengths[count] = count == 1 ? key.len : strlen(words[count]);
    return client_ask(
        scan->session.client, scan->server, count, words, lengths, answer);
}

/* Reads the beginning of the key's value, up to byte most; no value if it is no
 * string. */
static int read_value(struct scan *scan, struct slice key, const char *most,
    struct answer **value)
{
    int rc = ask_about(scan, "GETRANGE", key, "0", most, NULL, value);

    if (rc == NXL_OK && !answer_item(*value, 0, NULL)) {
        answer_free(*value);
        *value = NULL;
        rc = refuse_answer(scan, "GETRANGE");
    }
    return rc == NXL_E_WRONG_TYPE ? NXL_OK : rc;
}

/* *left_ms: the key's TTL, -1 if it has none, less if there is no such key. */
static int read_left(struct scan *scan, struct slice key, int64_t *left_ms)
{
    struct answer *left;
    int rc = ask_about(scan, "PTTL", key, NULL, NULL, NULL, &left);

    *left_ms = -2;
    if (rc == NXL_OK &&
        (!answer_number(left, 0, EXACT_MAX, left_ms) || *left_ms < -2))
        rc = refuse_answer(scan, "PTTL");
    answer_free(left);
    return rc;
}

/* ------------------------------------------------------------------- locks */

void found_free(struct found *found)
{
    free(found->name);
    free(found->value);
}

/* Adds the lock, or a record of it, to the list. */
static int add(struct scan *scan, struct slice lock, struct slice value,
    int64_t left_ms, struct holding held)
{
    size_t below = strlen(scan->prefix), length = lock.len - below;

    if (scan->count == scan->room) {
        size_t room = scan->room == 0 ? FIRST_ROOM : 2 * scan->room;
        struct found *more = realloc(scan->list, room * sizeof(*more));
        if (!more)
            return NXL_E_NOMEM;
        scan->list = more;
        scan->room = room;
    }
    struct found *f = &scan->list[scan->count];
    *f = (struct found){.name = malloc(length + 1),
        .name_length = length,
        .value = strndup(value.data, value.len),
        .servers = 1U << scan->server,
        .left_ms = left_ms,
        .held = held};
    if (!f->name || !f->value) {
        found_free(f);
        return NXL_E_NOMEM;
    }
    memcpy(f->name, lock.data + below, length);
    f->name[length] = '\0';
    scan->count++;
    return NXL_OK;
}

/* Adds the key if its value is a token. */
static int take_exclusive(
    struct scan *scan, struct slice key, struct slice lock)
{
    struct answer *value;
    int64_t left_ms;
    int rc = read_value(scan, key, VALUE_MAX, &value);
    struct slice token = answer_slice(value, 0);

    if (token.data && strlen(token.data) == token.len && is_token(token.data)) {
        rc = read_left(scan, key, &left_ms);
        if (rc == NXL_OK && left_ms >= -1)
            rc = add(scan, lock, token, left_ms, (struct holding){0});
    }
    answer_free(value);
    return rc;
}

/* Counts those whose leases have not ended. */
static struct holding count_members(const struct answer *members, int64_t now)
{
    size_t count = answer_count(members) / 2 - 1;
    struct holding held = {.partial = count >= MEMBERS_SHOWN};
    int64_t ends;

    for (size_t i = 0; i < count; i++) {
        struct slice token = answer_slice(members, 2 * i);
        if (!token.data ||
            !answer_number(members, 2 * i + 1, EXACT_MAX, &ends) || ends <= now)
            continue;
        /* A member of a later version takes one permit, alone. */
        struct share share = token_share(token);
        holding_add(&held, share.weight, share.weight > 0 ? share.permits : 1);
    }
    return held;
}

/* Adds the key if it is a lock that several may hold: a sorted set of tokens,
 * the last one to end before the head, see docs/wire.md. It expires with that
 * one's lease, which says what time it is for the server. */
static int take_shared(struct scan *scan, struct slice key, struct slice lock)
{
    struct answer *members;
    int64_t ends, left_ms;
    int rc = ask_about(
        scan, "ZRANGE", key, MEMBERS_MOST, "-1", "WITHSCORES", &members);
    size_t count = answer_count(members);

    if (rc == NXL_OK && count >= 4 &&
        slice_starts(answer_slice(members, count - 2), "nxl=") &&
        answer_number(members, count - 3, EXACT_MAX, &ends)) {
        rc = read_left(scan, key, &left_ms);
        struct holding held = count_members(members, ends - left_ms);
        if (rc == NXL_OK && left_ms >= 0 && held.count > 0)
            rc = add(
                scan, lock, answer_slice(members, count - 4), left_ms, held);
    }
    answer_free(members);
    return rc == NXL_E_WRONG_TYPE ? NXL_OK : rc;
}

/* What the record is about: all before the first newline. */
static struct slice header_of(const struct answer *value)
{
    struct slice header = answer_slice(value, 0);
    const char *end =
        header.data ? memchr(header.data, '\n', header.len) : NULL;

    header.len = end ? (size_t)(end - header.data) : 0;
    return header;
}

/* *left_ms: for how long the lock still has this token; -1: it has not. */
static int read_lock(
    struct scan *scan, struct slice lock, struct slice token, int64_t *left_ms)
{
    struct answer *value;
    int rc = read_value(scan, lock, VALUE_MAX, &value);

    *left_ms = -1;
    if (rc == NXL_OK && slice_equal(answer_slice(value, 0), token))
        rc = read_left(scan, lock, left_ms);
    answer_free(value);
    return rc;
}

/* Is that still the header of the record? */
static int read_again(
    struct scan *scan, struct slice key, struct slice header, bool *same)
{
    struct answer *value;
    int rc = read_value(scan, key, HEADER_MAX, &value);

    *same = rc == NXL_OK && slice_equal(header_of(value), header);
    answer_free(value);
    return rc;
}

/* Adds the record if it is to be shown. One that has begun is in doubt, left_ms
 * is -1, only if it is read twice, and the lock in between does not have its
 * token: otherwise it might just have ended, and all is read again. */
static int take_record(struct scan *scan, struct slice key, struct slice lock)
{
    struct answer *value;
    struct record record;
    int64_t left_ms = -1;
    bool same = true;
    int rc = read_value(scan, key, HEADER_MAX, &value);
    struct slice header = header_of(value);

    if (rc == NXL_OK && record_parse(header, &record)) {
        if (record.state == ONCE_BEGUN)
            rc = read_lock(scan, lock, record.token, &left_ms);
        else if (record.state != ONCE_DOUBT)
            rc = read_left(scan, key, &left_ms);
        if (rc == NXL_OK && record.state == ONCE_BEGUN && left_ms < 0)
            rc = read_again(scan, key, header, &same);
        bool shown = scan->session.args->records || left_ms == -1;
        if (rc == NXL_OK && same && shown && left_ms >= -1)
            rc = add(scan, lock, header, left_ms, (struct holding){0});
    }
    answer_free(value);
    return rc == NXL_OK && !same ? take_record(scan, key, lock) : rc;
}

/* -------------------------------------------------------------------- scan */

/* What the keys are that a scan of a server looks for. The server matches their
 * names and types. */
static const struct form {
    const char *before, *after; /* around the name in the key */
    const char *type;           /* for TYPE, which 6.0 and later know */
    int (*take)(struct scan *scan, struct slice key, struct slice lock);
} forms[] = {
    {"", "", "string", take_exclusive},
    {"", "", "zset", take_shared},
    {"{", "}:once", "string", take_record},
    {"", "::once", "string", take_record},
};

#define FORMS (sizeof(forms) / sizeof(forms[0]))

/* Takes a key of that form, or leaves out what may not be read. */
static int take_key(
    struct scan *scan, const struct form *form, struct slice key)
{
    enum companion what = COMPANIONS;
    struct slice lock;
    bool is_companion = companion_of(key, &what, &lock);

    if (form->take == take_record && what != COMPANION_RECORD)
        return NXL_OK;
    if (form->take == take_shared && is_companion) /* who waits for a lock */
        return NXL_OK;
    if (form->take != take_record)
        lock = key;
    if (!slice_starts(lock, scan->prefix))
        return NXL_OK;
    int rc = form->take(scan, key, lock);
    if (rc != NXL_E_DENIED)
        return rc;
    scan->key_denied = form->take == take_exclusive;
    if (scan->key_denied)
        return rc;
    scan->members_kept |= form->take == take_shared;
    scan->records_kept |= form->take == take_record;
    return NXL_OK;
}

/* The pattern of the keys of that form. NULL: no memory; else the caller frees
 * it. */
static char *make_pattern(const struct scan *scan, const struct form *form)
{
    char *pattern = NULL;
    size_t length;
    FILE *out = open_memstream(&pattern, &length);

    if (!out)
        return NULL;
    fputs(form->before, out);
    for (const char *at = scan->prefix; *at != '\0'; at++)
        fprintf(out, strchr("*?[]\\", *at) ? "\\%c" : "%c", *at);
    fprintf(out, "%s%s", scan->glob, form->after);
    return fclose(out) == 0 ? pattern : NULL;
}

/* The next step of the scan. */
struct step {
    const char *pattern, *type;
    char cursor[CURSOR_ROOM];
    unsigned count;
};

/* Asks for the keys of one step. Answer 0 is the next cursor. */
static int take_step(struct scan *scan, struct step *step, struct answer **keys)
{
    char count[12];
    const char *words[] = {"SCAN", step->cursor, "MATCH", step->pattern,
        "COUNT", count, "TYPE", step->type};

    for (;;) {
        snprintf(count, sizeof(count), "%u", step->count);
        int rc = client_ask(scan->session.client, scan->server,
            scan->untyped ? 6 : 8, words, NULL, keys);
        if (rc != NXL_E_UNSUPPORTED)
            return rc;
        if (!scan->untyped)
            scan->untyped = true;
        else if (step->count > 1) /* long names can make an answer too big */
            step->count = (step->count + 9) / 10;
        else
            return rc;
    }
}

/* Goes on to the next cursor. False: there is none. No server gives the same
 * one twice in a row, which would have no end. */
static bool next_cursor(struct step *step, const struct answer *keys)
{
    const char *cursor = answer_item(keys, 0, NULL);
    size_t length = cursor ? strlen(cursor) : 0;

    if (length == 0 || length >= CURSOR_ROOM ||
        cursor[strspn(cursor, "0123456789")] != '\0' ||
        (strcmp(cursor, step->cursor) == 0 && strcmp(cursor, "0") != 0))
        return false;
    memcpy(step->cursor, cursor, length + 1);
    return true;
}

static int scan_form(struct scan *scan, const struct form *form)
{
    char *pattern = make_pattern(scan, form);
    struct step step = {pattern, form->type, "0", COUNT_FIRST};
    int rc = pattern ? NXL_OK : NXL_E_NOMEM;

    while (rc == NXL_OK) {
        struct answer *keys;
        rc = take_step(scan, &step, &keys);
        if (rc == NXL_OK && !next_cursor(&step, keys))
            rc = refuse_answer(scan, "SCAN");
        for (size_t i = 1; rc == NXL_OK && i < answer_count(keys); i++) {
            struct slice key = answer_slice(keys, i);
            if (key.data)
                rc = take_key(scan, form, key);
        }
        answer_free(keys);
        if (strcmp(step.cursor, "0") == 0)
            break;
    }
    free(pattern);
    return rc;
}

/* ----------------------------------------------------------------- servers */

/* Warns if the server may not have all locks. In JSON the warning is an object
 * before the locks, so that an empty list is not mistaken for "nothing is
 * held". */
static void warn_about(const struct scan *scan)
{
    char words[PARTIAL_WORDS];
    struct json json;

    if (!partial_words(scan->session.client, scan->server, true, words))
        return;
    say("warning: %s", words);
    if (!scan->session.args->json)
        return;
    json_begin(&json, stdout);
    json_number(&json, "v", JSON_VERSION);
    json_text(&json, "warning", words, strlen(words));
    json_end(&json);
}

static void report_left_out(struct scan *scan, int rc)
{
    const char *what = scan->servers > 1 ? "left out" : "cannot list";
    nxl_client *client = scan->session.client;

    if (scan->odd)
        say("%s: the answer to %s is not that of a Redis server", what,
            scan->odd);
    else
        say("%s: %s%s", what,
            rc == NXL_E_NOMEM ? "out of memory" : nxl_client_errmsg(client),
            rc == NXL_E_UNSUPPORTED ? "; list needs Redis 2.8 or later" : "");
    if (scan->key_denied)
        say("if the user has permissions for certain names only, list these: "
            "nxlock list 'GLOB'");
    if (rc == NXL_E_UNREACHABLE)
        connect_advise(scan->session.args, client, rc);
    if (scan->code == 0)
        scan->code = exit_code_for(rc, EXIT_BUSY);
}

void scan_servers(struct scan *scan)
{
    nxl_client *client = scan->session.client;

    scan->servers = nxl_client_servers(client);
    scan->prefix = nxl_client_prefix(client);
    for (scan->server = 0; scan->server < scan->servers; scan->server++) {
        int rc = NXL_OK;
        scan->odd = NULL;
        scan->key_denied = false;
        scan->untyped = false;
        for (size_t i = 0; rc == NXL_OK && i < FORMS; i++)
            rc = scan_form(scan, &forms[i]);
        scan->scanned += rc == NXL_OK;
        if (rc == NXL_OK)
            warn_about(scan);
        else
            report_left_out(scan, rc);
    }
    if (scan->members_kept)
        say("locks that several may hold are left out: the user may not read "
            "their members (+zrange); see docs/acl.md");
    if (scan->records_kept)
        say("records of 'nxlock once' are left out: the user may not read "
            "them; see docs/acl.md");
    if (scan->servers > 1 && scan->scanned <= scan->servers / 2)
        say("the list is incomplete: %zu of %zu servers answered",
            scan->scanned, scan->servers);
}

void scan_free(struct scan *scan)
{
    for (size_t i = 0; i < scan->count; i++)
        found_free(&scan->list[i]);
    free(scan->list);
}
